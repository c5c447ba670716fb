"""Reading and writing the files of batches and of services; reading studies.

This is the edge of the package: nothing else parses, and only here pydantic is used. Whatever is wrong with an input
raises one :class:`~mig_opt.errors.InputError` that lists *all* its problems, each with its path
(``tasks[3].times.2: must be > 0 seconds, is -1.0``). Files are UTF-8 and carry the name of their format:

=================  ===============================  ===============================================================
kind               ``"schema"``                     functions
=================  ===============================  ===============================================================
batch              ``mig-opt/batch/1``              :func:`read_batch`, :func:`write_batch`
schedule           ``mig-opt/schedule/1``           :func:`read_schedule`, :func:`write_schedule`
result             ``mig-opt/result/1``             :func:`read_result`, :func:`write_result`
certificate        ``mig-opt/certificate/1``        :func:`read_certificate`, :func:`write_certificate`
study              ``mig-opt/study/1``              :func:`mig_opt.studies.read_study`
services           ``mig-opt/services/1``           :func:`read_demand`, :func:`write_demand`
profiles           ``mig-opt/profiles/1``           :func:`read_profiles`, :func:`write_profiles`
deployment         ``mig-opt/deployment/1``         :func:`read_deployment`, :func:`write_deployment`
deployment-result  ``mig-opt/deployment-result/1``  :func:`read_deployment_result`, :func:`write_deployment_result`
trace              ``mig-opt/trace/1``              :func:`read_trace`, :func:`write_trace`
state              ``mig-opt/state/1``              :func:`read_state`, :func:`write_state`
=================  ===============================  ===============================================================

:func:`json_schema` describes each of them in full. All times are seconds, all memory is in GB, sizes are numbers of
compute slices.
"""

from mig_opt.files.batch.batches import batch_from_json, batch_to_json, read_batch, write_batch
from mig_opt.files.batch.schedules import (
    certificate_from_json,
    certificate_to_json,
    read_certificate,
    read_result,
    read_schedule,
    result_from_json,
    result_to_json,
    schedule_from_json,
    schedule_to_json,
    write_certificate,
    write_result,
    write_schedule,
)
from mig_opt.files.documents import check_writable
from mig_opt.files.fleet.openb import TraceImport, import_trace
from mig_opt.files.fleet.states import read_state, state_from_csv, state_from_json, state_to_json, write_state
from mig_opt.files.fleet.traces import (
    read_trace,
    trace_from_csv,
    trace_from_json,
    trace_to_csv,
    trace_to_json,
    write_trace,
)
from mig_opt.files.recognition import document_kind
from mig_opt.files.schema import json_schema
from mig_opt.files.serving.demands import demand_from_json, demand_to_json, read_demand, write_demand
from mig_opt.files.serving.deployments import (
    deployment_from_json,
    deployment_to_csv,
    deployment_to_json,
    import_deployment,
    read_deployment,
    write_deployment,
)
from mig_opt.files.serving.profiles import (
    import_profiles,
    profiles_from_json,
    profiles_to_json,
    read_profiles,
    write_profiles,
)
from mig_opt.files.serving.results import (
    deployment_result_from_json,
    deployment_result_to_json,
    read_deployment_result,
    write_deployment_result,
)

__all__ = [
    "TraceImport",
    "batch_from_json",
    "batch_to_json",
    "certificate_from_json",
    "certificate_to_json",
    "check_writable",
    "demand_from_json",
    "demand_to_json",
    "deployment_from_json",
    "deployment_result_from_json",
    "deployment_result_to_json",
    "deployment_to_csv",
    "deployment_to_json",
    "document_kind",
    "import_deployment",
    "import_profiles",
    "import_trace",
    "json_schema",
    "profiles_from_json",
    "profiles_to_json",
    "read_batch",
    "read_certificate",
    "read_demand",
    "read_deployment",
    "read_deployment_result",
    "read_profiles",
    "read_result",
    "read_schedule",
    "read_state",
    "read_trace",
    "result_from_json",
    "result_to_json",
    "schedule_from_json",
    "schedule_to_json",
    "state_from_csv",
    "state_from_json",
    "state_to_json",
    "trace_from_csv",
    "trace_from_json",
    "trace_to_csv",
    "trace_to_json",
    "write_batch",
    "write_certificate",
    "write_demand",
    "write_deployment",
    "write_deployment_result",
    "write_profiles",
    "write_result",
    "write_schedule",
    "write_state",
    "write_trace",
]
