"""The kinds of files, and those of other programs: what :func:`mig_opt.read` and :func:`mig_opt.write` call.

This is the edge of the package: nothing else parses, and only here pydantic is used. Whatever is wrong with an input
raises one :class:`~mig_opt.errors.InputError` that lists *all* its problems, each with its path
(``tasks[3].times.2: must be a finite number of seconds > 0, is -1.0``). Files are UTF-8 and carry the name of their
format, such as ``mig-opt/batch/1``; :func:`mig_opt.schema` describes each of them in full. All times are seconds, all
memory is in GB, sizes are numbers of compute slices.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Listed(NamedTuple):
    """Kind of file: the name of the class of what files of the kind hold, and where the kind itself is."""

    content: str
    place: str


KINDS: Mapping[str, Listed] = {
    "batch": Listed("Batch", "mig_opt.files.batch.batches:BATCH"),
    "schedule": Listed("Schedule", "mig_opt.files.batch.schedules:SCHEDULE"),
    "result": Listed("ScheduleResult", "mig_opt.files.batch.schedules:RESULT"),
    "certificate": Listed("Certificate", "mig_opt.files.batch.certificates:CERTIFICATE"),
    "study": Listed("Study", "mig_opt.files.studies:STUDY"),
    "services": Listed("Demand", "mig_opt.files.serving.demands:DEMAND"),
    "profiles": Listed("ProfileTable", "mig_opt.files.serving.profiles:PROFILES"),
    "deployment": Listed("Deployment", "mig_opt.files.serving.deployments:DEPLOYMENT"),
    "deployment-result": Listed("DeploymentResult", "mig_opt.files.serving.deployment_results:DEPLOYMENT_RESULT"),
    "trace": Listed("Trace", "mig_opt.files.fleet.traces:TRACE"),
    "state": Listed("FleetState", "mig_opt.files.fleet.states:STATE"),
    "costs": Listed("OperationCosts", "mig_opt.files.costs:COSTS"),
    "gpu": Listed("GpuModel", "mig_opt.files.kinds:GPU"),
    "commands": Listed("Commands", "mig_opt.files.batch.journals:COMMANDS"),
}
"""The kinds by their names. Only what is read or written is imported: a kind loads all that its files hold."""
