"""The services and deployments that the arguments of a command name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mig_opt import Demand, Deployment, Pool, ProfileTable, SloRule, get_gpu
from mig_opt.cli.checks import Checks, options_named, refuse
from mig_opt.cli.inputs import STANDARD_INPUT, is_bundled, is_table, kind_of, piped, running_in_state
from mig_opt.cli.options import ServicesOptions, TableOptions
from mig_opt.errors import InputError, problems_of, raise_any
from mig_opt.rules import wrong_integer

if TYPE_CHECKING:
    from mig_opt import FleetState

_GPU = {"gpu": "--gpu"}  # the option that problems of that path are about


def load_services(name: str, options: TableOptions) -> Demand:
    """Return the demand that SERVICES and its options stand for; all that is wrong about them is refused at once."""
    checks = Checks()
    if options.gpu is not None:
        checks.attempt(get_gpu, options.gpu)
    wrong_gpu = bool(checks.errors)
    rule = options if isinstance(options, ServicesOptions) else ServicesOptions()
    wrong_share = () if rule.slo_share is None else problems_of(SloRule, rule.slo_share)
    few = () if rule.max_processes is None else wrong_integer("max_processes", rule.max_processes, 1, 2**31 - 1)
    checks.note([*wrong_share, *few])
    source = checks.attempt(_source, name)
    if source is None or wrong_gpu:
        checks.finish()
    tables = checks.attempt(_read_tables, options.profiles or (), options.gpu or _own_gpu(source, name)) or []
    lacking = bool(checks.errors)
    # A JSON document has a key of that name.
    named = {"tables": "--profiles", "scenario": "--scenario"} | ({} if isinstance(source, str | bytes) else _GPU)
    with checks.step():
        try:
            with options_named(named):
                demand = _demand(name, source, options, tables)
        except InputError as error:
            # For lack of tables that could not be read, others seem to be missing.
            of_tables = ("profiles", ".model", ", model")
            raise_any([one for one in error.problems if not (lacking and one.path.endswith(of_tables))], error.source)
    checks.finish()
    share = demand.rule.share if rule.slo_share is None else rule.slo_share
    whole_ms = demand.rule.whole_ms if rule.whole_ms is None else rule.whole_ms
    most = demand.max_processes if rule.max_processes is None else rule.max_processes
    return demand.replace(rule=SloRule(share, whole_ms), max_processes=most)


def _read_tables(paths: Sequence[Path], gpu: str | None) -> list[ProfileTable]:
    from mig_opt.files.serving.profiles import PROFILES

    checks = Checks()
    tables: dict[tuple[str, str], tuple[ProfileTable, Path]] = {}
    for path in paths:
        with checks.step(), options_named(_GPU):
            for table in PROFILES.read(path, gpu=gpu):
                known = tables.setdefault((table.model, table.gpu), (table, path))
                if known[0] is not table:
                    message = f"has a table of {table.model!r} on {table.gpu}, as {known[1]} has; name one of them"
                    refuse("", message, path)
    checks.finish()
    return [table for table, _ in tables.values()]


def _source(name: str) -> Demand | Path | str | bytes:
    """Return the origin of services: a bundled demand, a CSV file, or a JSON document."""
    from mig_opt.files.documents import read_text
    from mig_opt.instances.bundled import load

    if name == STANDARD_INPUT:
        return piped()
    if is_bundled(name, "demand"):
        bundled = load(name)
        assert isinstance(bundled, Demand)
        return bundled
    return Path(name) if is_table(name) and os.access(name, os.F_OK) else read_text(name)


def _own_gpu(source: Demand | Path | str | bytes, label: str) -> str | None:
    """Return the kind of GPU that services are for, if they name one only and it can be read."""
    from mig_opt.files.documents import parsed
    from mig_opt.files.kinds import with_named_gpus
    from mig_opt.files.values import Findings

    if isinstance(source, Demand):
        return source.pools[0].gpu.name
    if isinstance(source, Path):
        return None
    try:
        raw = with_named_gpus(parsed(source, "")[0], "", Findings(label))
        pools = raw.get("pools")
        kinds = [pool.get("gpu") for pool in pools if isinstance(pool, dict)] if isinstance(pools, list) else []
        named = kinds[0] if len(kinds) == 1 else raw.get("gpu")
        return get_gpu(named).name if isinstance(named, str) else None
    except InputError:
        return None


def _demand(
    name: str, source: Demand | Path | str | bytes, options: TableOptions, tables: list[ProfileTable]
) -> Demand:
    """Return the demand of a source with these tables."""
    from mig_opt.files.serving.demands import DEMAND

    gpu, label = options.gpu, "standard input" if name == STANDARD_INPUT else name
    if isinstance(source, Path):
        return DEMAND.read(source, gpu=gpu, tables=tables, scenario=options.scenario)
    if options.scenario is not None:
        refuse("--scenario", f"{label} is no CSV file with a column scenario; leave it out")
    if not isinstance(source, Demand):
        return DEMAND.from_json(source, gpu=gpu, tables=tables, name=Path(label).stem, source=label)
    own = {(table.model, table.gpu): table for table in (*source.tables, *tables)}
    pools = source.pools if gpu is None else (Pool(get_gpu(gpu)),)
    return source.replace(tables=tuple(own.values()), pools=pools)


def read_deployment_for(demand: Demand | None, path: Path) -> Deployment:
    """Return a deployment from a file, with the figures of the demand that the file leaves out.

    A CSV file is for the only kind of GPU of the demand.
    """
    from mig_opt.files.serving.deployments import DEPLOYMENT

    gpu = demand.pools[0].gpu.name if demand is not None and len(demand.pools) == 1 else None
    with options_named(_GPU if is_table(path) else {}):
        return DEPLOYMENT.read(path, demand=demand, gpu=gpu)


def read_running_and_state(path: Path, demand: Demand | None) -> tuple[Deployment, FleetState | None]:
    """Return what is running by a file, and the state in it if it is one; refuse instances that cannot coexist."""
    from mig_opt import FleetState, read
    from mig_opt.validation.serving.deployments import deployment_problems

    state = read(FleetState, path) if kind_of(str(path)) == "state" else None
    fleet = read_deployment_for(demand, path) if state is None else running_in_state(demand, state, path)
    raise_any(deployment_problems(fleet), path)
    return fleet, state


def check_deployment_names(form: str | None, deployment: Deployment, source: Path) -> None:
    """Refuse names of services of a deployment that a format cannot hold."""
    names = ((f"segments[{index}].service", segment.service) for index, segment in enumerate(deployment.segments))
    check_names(form, names, source)


def check_names(form: str | None, names: Iterable[tuple[str, str]], source: str | Path) -> None:
    """Refuse names of services (with their paths) that a format cannot hold, once each."""
    from mig_opt.operations.rollout.shell import name_problems

    first = {name: path for path, name in reversed(list(names))}
    problems = list(name_problems((path, name) for name, path in first.items())) if form == "nvidia-smi" else []
    raise_any(problems, source)
