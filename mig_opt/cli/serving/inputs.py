"""Reads the services that the arguments of a command name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mig_opt.arguments import wrong_integer
from mig_opt.cli.inputs import STANDARD_INPUT, piped
from mig_opt.cli.outcome import Checks, as_options, options_named
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.serving.demand import Demand, GpuPool, SloRule
from mig_opt.serving.deployment import Deployment
from mig_opt.serving.profile_table import ProfileTable

if TYPE_CHECKING:
    from mig_opt.instances import InstanceKind

ServicesArgument = Annotated[
    str, typer.Argument(metavar="SERVICES", help="JSON or CSV file, bundled demand, or -.", show_default=False)
]
PoolOption = Annotated[
    str | None,
    typer.Option("--gpu", metavar="GPU", help="In place of the GPUs that SERVICES names; CSV files need it."),
]
ProfilesOption = Annotated[
    list[Path] | None,
    typer.Option("--profiles", metavar="FILE", help="Profile tables, or a folder of them; may be given repeatedly."),
]
ScenarioOption = Annotated[
    str | None, typer.Option("--scenario", metavar="NAME", help="Which rows of a CSV file with such a column.")
]
SloShareOption = Annotated[
    float | None,
    typer.Option("--slo-share", metavar="S", help="Share of the SLO that latency may take.  [default: 0.5]"),
]
WholeMsOption = Annotated[
    bool | None,
    typer.Option(
        "--whole-ms/--no-whole-ms", help="SLO in whole ms, latency below the share: ParvaGPU's program (share 0.45)."
    ),
]
MaxProcessesOption = Annotated[
    int | None, typer.Option("--max-processes", metavar="N", help="Most processes that share an instance.")
]

_OPTIONS = as_options("gpu", "slo_share", "max_processes")


_DEPLOYMENTS = ("deployment", "deployment-result")


@dataclass(frozen=True, slots=True)
class DemandOptions:
    """What options say about services; None where they say nothing.

    Attributes
    ----------
    gpu, profiles, scenario, slo_share, whole_ms, max_processes
        The values of the options of these names.
    """

    gpu: str | None = None
    profiles: Sequence[Path] | None = None
    scenario: str | None = None
    slo_share: float | None = None
    whole_ms: bool | None = None
    max_processes: int | None = None

    def for_services_only(self) -> list[str]:
        """Return the options that were given and mean nothing for a batch."""
        given = {
            "--profiles": self.profiles or None,
            "--scenario": self.scenario,
            "--slo-share": self.slo_share,
            "--whole-ms": self.whole_ms,
            "--max-processes": self.max_processes,
        }
        return [name for name, value in given.items() if value is not None]


def about_services(
    name: str, document: bytes | None, plan: Path | None, options: DemandOptions, for_batches: Mapping[str, object]
) -> bool:
    """Whether a command that takes a batch or services is about services.

    Parameters
    ----------
    name : str
        The argument that names them.
    document : bytes or None
        What standard input holds, if the argument stands for it.
    plan : Path or None
        The file of a schedule or a deployment, which tells what is meant if the first argument does not.
    options : DemandOptions
        Options for services.
    for_batches : mapping
        The values of options that mean nothing for services, by name: those that are None or False were not given.

    Raises
    ------
    InputError
        If options were given that are for the other kind.
    """
    for_services = options.for_services_only()
    kind = _kind(name, document)
    if kind is None:
        services = bool(for_services) or (plan is not None and _kind(str(plan), None) in _DEPLOYMENTS)
    else:
        services = kind == "services"
    given = [option for option, value in for_batches.items() if value is not None and value is not False]
    wrong, meant, actual = (given, "batches", "has services") if services else (for_services, "services", "is a batch")
    if kind is not None and wrong:
        message = f"is for {meant}, but {name} {actual}; leave it out"
        raise InputError([Problem(option, message) for option in wrong])
    return services


def _kind(name: str, document: bytes | None) -> str | None:
    """Return the kind of what an argument names, None if that cannot be told."""
    from mig_opt.files import document_kind
    from mig_opt.files.documents import read_text
    from mig_opt.instances import instance_names

    if document is not None:
        return document_kind(document)
    if not os.access(name, os.F_OK):
        bundled: dict[str, InstanceKind] = {"services": "demand", "batch": "batch"}
        return next((kind for kind, instances in bundled.items() if name in instance_names(instances)), None)
    try:
        return document_kind(read_text(name), table=_is_table(name))
    except InputError:  # those who read it say so
        return None


def load_services(name: str, options: DemandOptions, document: bytes | None = None) -> Demand:
    """Return the demand that SERVICES and its options stand for.

    Parameters
    ----------
    name : str
        The argument SERVICES.
    options : DemandOptions
        The options.
    document : bytes, optional
        What standard input holds, if it has been read.

    Raises
    ------
    WrongInputsError
        With every problem of the services, the profiles and the options.
    """
    checks = Checks()
    if options.gpu is not None:
        with checks.step(), options_named(_OPTIONS):
            get_gpu(options.gpu)
    wrong_gpu = bool(checks.errors)
    with checks.step(), options_named(_OPTIONS):
        _check_rule(options)
    source: _Source | None = None
    with checks.step():
        source = _Source.of(name, document)
    if source is None or wrong_gpu:
        checks.finish()
    assert source is not None
    tables: list[ProfileTable] = []
    with checks.step():
        tables = _read_tables(options.profiles or (), options.gpu or source.gpu())
    lacking = bool(checks.errors)
    demand: Demand | None = None
    with checks.step():
        try:
            with options_named(source.options):
                demand = source.demand(options, tables)
        except InputError as error:
            # For lack of tables that could not be read, others seem to be missing.
            problems = [problem for problem in error.problems if not (lacking and _is_about_tables(problem))]
            if problems:
                raise InputError(problems, error.source) from None
    checks.finish()
    assert demand is not None
    return _ruled(demand, options)


def _is_about_tables(problem: Problem) -> bool:
    return problem.path in ("--profiles", "profiles") or problem.path.endswith((".model", ", model"))


def read_fleet(path: Path, demand: Demand | None) -> Deployment:
    """Return the deployment that is running, from a file.

    Parameters
    ----------
    path : Path
        The file.
    demand : Demand, optional
        Has the figures that the file leaves out, and the kind of GPU of a CSV file.

    Raises
    ------
    InputError
        With every problem of the file, also if its instances cannot exist together.
    """
    from mig_opt.validation.serving.instances import check_instances

    fleet = read_deployment_for(demand, path)
    try:
        check_instances(running=fleet)
    except InputError as error:
        problems = [Problem(problem.path.removeprefix("running."), problem.message) for problem in error.problems]
        raise InputError(problems, str(path)) from None
    return fleet


def read_deployment_for(demand: Demand | None, path: Path) -> Deployment:
    """Return a deployment from a file; a CSV file is for the only kind of GPU of the demand.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    from mig_opt.files import read_deployment

    gpu = demand.pools[0].gpu.name if demand is not None and len(demand.pools) == 1 else None
    with options_named({"gpu": "--gpu"} if _is_table(str(path)) else {}):
        return read_deployment(path, demand=demand, gpu=gpu)


def _check_rule(options: DemandOptions) -> None:
    problems: list[Problem] = []
    if options.slo_share is not None:
        try:
            SloRule(options.slo_share)
        except InputError as error:
            problems += error.problems
    if options.max_processes is not None:
        problems += wrong_integer("max_processes", options.max_processes, 1, 2**31 - 1)
    if problems:
        raise InputError(problems)


def _ruled(demand: Demand, options: DemandOptions) -> Demand:
    share = demand.rule.share if options.slo_share is None else options.slo_share
    whole_ms = demand.rule.whole_ms if options.whole_ms is None else options.whole_ms
    most = demand.max_processes if options.max_processes is None else options.max_processes
    return demand.replace(rule=SloRule(share, whole_ms), max_processes=most)


def _read_tables(paths: Sequence[Path], gpu: str | None) -> list[ProfileTable]:
    from mig_opt.files import read_profiles

    checks = Checks()
    tables: dict[tuple[str, str], tuple[ProfileTable, Path]] = {}
    for path in paths:
        with checks.step(), options_named({"gpu": "--gpu"}):
            for table in read_profiles(path, gpu):
                known = tables.setdefault((table.model, table.gpu), (table, path))
                if known[0] is not table:
                    message = f"has a table of {table.model!r} on {table.gpu}, as {known[1]} has; name one of them"
                    raise InputError([Problem("", message)], str(path))
    checks.finish()
    return [table for table, _ in tables.values()]


@dataclass(frozen=True, slots=True)
class _Source:
    """Where services come from: a bundled demand, a file, or a JSON document from standard input."""

    name: str
    document: str | bytes | None = None
    bundled: Demand | None = None

    @classmethod
    def of(cls, name: str, document: bytes | None) -> _Source:
        from mig_opt.files.documents import read_text
        from mig_opt.instances import instance_names, load_demand

        if name == STANDARD_INPUT:
            return cls("standard input", document if document is not None else piped(name))
        if os.access(name, os.F_OK):
            return cls(name, None if _is_table(name) else read_text(name))
        if name in instance_names("demand"):
            return cls(name, bundled=load_demand(name))
        if name in instance_names("batch"):
            message = f"is a batch of tasks, not a demand of services; its command is: mig-opt solve {name}"
            raise InputError([Problem("", message)], name)
        if name != Path(name).stem:
            raise InputError([Problem("", "no such file")], name)
        known = (*instance_names("demand"), *instance_names("batch"))
        message = f"no such file, and no bundled demand of that name; {nearest(name, known)}"
        raise InputError([Problem("", message)], name)

    def gpu(self) -> str | None:
        """Return the kind of GPU that the services are for, if they name one only and it can be read."""
        from mig_opt.files.documents import parsed

        if self.bundled is not None:
            return self.bundled.pools[0].gpu.name
        if self.document is None:
            return None
        try:
            raw, _ = parsed(self.document, "")
        except InputError:
            return None
        pools = raw.get("pools")
        kinds = [pool.get("gpu") for pool in pools if isinstance(pool, dict)] if isinstance(pools, list) else []
        named = kinds[0] if len(kinds) == 1 else raw.get("gpu")
        try:
            return get_gpu(named).name if isinstance(named, str) else None
        except InputError:
            return None

    @property
    def options(self) -> dict[str, str]:
        """The options that stand for what problems are about."""
        names = {"tables": "--profiles", "scenario": "--scenario"}
        # A JSON document has a key of that name.
        return names if self.document is not None else names | {"gpu": "--gpu"}

    def demand(self, options: DemandOptions, tables: list[ProfileTable]) -> Demand:
        """Return the demand with these tables."""
        from mig_opt.files import demand_from_json, read_demand

        gpu = options.gpu
        if self.bundled is not None:
            _no_scenario(self.name, options)
            own = {(table.model, table.gpu): table for table in self.bundled.tables}
            own |= {(table.model, table.gpu): table for table in tables}
            pools = self.bundled.pools if gpu is None else (GpuPool(get_gpu(gpu)),)
            return self.bundled.replace(tables=tuple(own.values()), pools=pools)
        if self.document is None:
            return read_demand(self.name, gpu=gpu, tables=tables, scenario=options.scenario)
        _no_scenario(self.name, options)
        return demand_from_json(self.document, gpu=gpu, tables=tables, name=Path(self.name).stem, source=self.name)


def _no_scenario(name: str, options: DemandOptions) -> None:
    if options.scenario is not None:
        raise InputError([Problem("scenario", f"{name} is no CSV file with a column scenario; leave it out")])


def _is_table(name: str) -> bool:
    return Path(name).suffix.lower() == ".csv"
