"""Batches with schedules, and services with deployments, for commands that work on both."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mig_opt import Batch, Demand, Problem, Schedule, bounds, export, validate
from mig_opt.cli import options
from mig_opt.cli.answers import Call
from mig_opt.cli.batch.reports import batch_facts, unplaceable, validation_facts
from mig_opt.cli.checks import refuse
from mig_opt.cli.figures import bounds_table
from mig_opt.cli.inputs import STANDARD_INPUT, kind_of, load_batch, piped
from mig_opt.cli.serving.inputs import check_deployment_names, load_services, read_deployment_for
from mig_opt.cli.serving.reports import demand_facts, services_table
from mig_opt.cli.serving.reports import validation_facts as deployment_facts
from mig_opt.errors import raise_any
from mig_opt.method.report import Facts, Part, Points, Report, Table
from mig_opt.texts import in_seconds, plural


@dataclass(frozen=True)
class ProblemKind:
    """A kind of problem: the words for it, and what commands do with its problems and plans."""

    name: str  # of the files that hold the problem
    options: type  # of its commands; all but the kind of GPU are for this kind of problem alone
    noun: str  # the word for a plan
    plural: str  # the word for problems of this kind
    predicate: str  # the end of a sentence about a file of this kind
    hooks: str  # the arguments of a script
    figure: str  # the name of the figure of a plan that the validator finds
    load: Callable[..., Any]
    read_plan: Callable[[Given, Path], Any]
    facts: Callable[[Any], Facts]
    validation: Callable[[Given], Report]
    bounds: Callable[[Any], Report]
    drawn: Callable[[Given], tuple[list[Any], dict[str, Any]]]
    number_of_gpus: Callable[[Given], int]
    script: Callable[[Given, Sequence[str] | None], str]
    check_script: Callable[[Given, Path], None] | None = None  # refuses what a script cannot hold


class Given:
    """A problem and a plan for it in files, as far as they were read and validated."""

    problem: Any = None
    plan: Any = None
    found: Any = None
    measured = False  # true if the plan is an execution, and the times of the problem are those that were measured

    def __init__(self, kind: ProblemKind, argument: str, given: Any) -> None:
        self.kind, self.argument, self.given = kind, argument, given

    def load(self) -> Any:
        """Return the problem."""
        return self.kind.load(self.argument, self.given)

    def read(self, call: Call, path: Path) -> None:
        """Read the problem and the plan; what is wrong is noted."""
        self.problem = call.attempt(self.load)
        self.plan = call.attempt(self.kind.read_plan, self, path)

    def validate(self, tolerance: float | None = None) -> str:
        """Validate the plan; return the number of violations in words, empty if there are none."""
        given: dict[str, Any] = {} if tolerance is None else {"tolerance": tolerance}
        self.found = validate(self.problem, self.plan, **given)
        return "" if self.found.valid else plural(len(self.found.violations), "violation")


def given_problem(argument: str, plan: Path | None, given: options.ProblemOptions, **for_batches: object) -> Given:
    """Return what a command works on: a problem of the kind that its arguments are about.

    The kind of the file that ``argument`` names decides, if it can be told; else that of the plan, or options that are
    for one kind alone, as ``for_batches`` are. Options of another kind are refused.
    """
    from mig_opt.files.recognition import document_kind

    name = document_kind(piped()) if argument == STANDARD_INPUT else kind_of(argument)
    named = [field.name for field in dataclasses.fields(given) if getattr(given, field.name) not in (field.default, [])]
    fields = {kind.name: {field.name for field in dataclasses.fields(kind.options)} - {"gpu"} for kind in _KINDS}
    own = {kind: [f"--{name.replace('_', '-')}" for name in named if name in names] for kind, names in fields.items()}
    own[BATCH.name] += [option for option, value in for_batches.items() if value is not None]
    chosen = next((kind for kind in _KINDS if kind.name == name), None)
    if chosen is None:
        deployed = plan is not None and kind_of(str(plan)) in ("deployment", "deployment-result")
        chosen = SERVICES if own[SERVICES.name] or deployed else BATCH
    else:
        raise_any(
            Problem(option, f"is for {kind.plural}, but {argument} {chosen.predicate}; leave it out")
            for kind in _KINDS
            if kind is not chosen
            for option in own[kind.name]
        )
    values = (getattr(given, field.name) for field in dataclasses.fields(chosen.options))
    return Given(chosen, argument, chosen.options(*values))


# Batches


def _read_schedule(given: Given, path: Path) -> Schedule:
    """Return the schedule in a file; that of a journal is the execution, and the batch gets its times."""
    from mig_opt.files.batch.journals import is_journal, read_journal
    from mig_opt.files.batch.schedules import SCHEDULE

    if not is_journal(path):
        return SCHEDULE.read(path)
    journal = read_journal(path)
    if given.problem is not None and given.problem != journal.batch:
        refuse("", f"is the journal of another batch than {given.argument}", path)
    batch, schedule = journal.measured()
    given.problem, given.measured = batch.replace(name=f"{journal.batch.name}, as measured"), True
    return schedule


def _schedule_validation(given: Given) -> Report:
    operations, remarks = given.found.schedule.operations, []
    if given.measured:
        remarks = ["Times of tasks and operations are as they were measured; all other rules are those of plans."]
    elif given.plan.operations is None and operations is not None:
        remarks = [f"The schedule has no operations; found for its runs: {plural(len(operations), 'operation')}."]
    return Report(validation_facts(given.problem, given.found), remarks=remarks)


def _batch_bounds(batch: Batch) -> Report:
    reasons = unplaceable(batch)
    found = () if reasons else bounds(batch)
    best = found[0].value if found else None
    return _bounds(best, in_seconds(best), list(map(asdict, found)), bounds_table(found), reasons)


def _bounds(
    best: float | None, text: str | None, data: list[dict[str, Any]], table: Table, reasons: Sequence[str]
) -> Report:
    """Return the best bound as number and text, all as data and table, and why there is no plan."""
    parts: list[Part] = [Points(reasons), *([] if best is None else [table])]
    return Report([("lower bound", text)], parts, reasons, {"lower_bound": best, "bounds": data})


BATCH = ProblemKind(
    name="batch",
    options=options.CostOptions,
    noun="schedule",
    plural="batches",
    predicate="is a batch",
    hooks="HOOKS",
    figure="makespan",
    load=load_batch,
    read_plan=_read_schedule,
    facts=batch_facts,
    validation=_schedule_validation,
    bounds=_batch_bounds,
    drawn=lambda given: ([given.problem, given.found.schedule], {}),
    number_of_gpus=lambda given: given.problem.gpus,
    script=lambda given, devices: export(given.problem, "script", given.found.schedule, devices=devices),
)


# Services


def _deployment_validation(given: Given) -> Report:
    from mig_opt.files.serving.deployment_results import deployment_shares

    demand, plan = given.problem, given.plan
    tables = [services_table(demand, plan)] if given.found.valid else []
    shares = deployment_shares(demand, plan) if given.found.valid else {}
    return Report(deployment_facts(demand, plan, given.found), tables, data=shares)


def _demand_bounds(demand: Demand) -> Report:
    from mig_opt.api.deploy import why_unservable
    from mig_opt.serving.bounds import shortage

    reasons = why_unservable(demand)
    found = () if reasons else bounds(demand)
    if found and (lacking := shortage(demand, found[0])):
        reasons = [lacking]
    best, counted = found[0].cost if found else None, demand.costs.counted
    data = [
        {"name": bound.name, "value": bound.cost, "not_rounded": bound.value, "reason": bound.reason} for bound in found
    ]
    rows = [[bound.name, f"{bound.cost:.10g}", f"{bound.value:.3f}", bound.reason] for bound in found]
    table = Table(["bound", ">GPUs" if counted else ">cost", ">not rounded", "~because"], rows)
    text = None if best is None else plural(int(best), "GPU") if counted else f"cost {best:.10g}"
    return _bounds(best, text, data, table, reasons)


SERVICES = ProblemKind(
    name="services",
    options=options.ServicesOptions,
    noun="deployment",
    plural="services",
    predicate="has services",
    hooks="[HOOKS]",
    figure="gpus",
    load=load_services,
    read_plan=lambda given, path: read_deployment_for(given.problem, path),
    facts=demand_facts,
    validation=_deployment_validation,
    bounds=_demand_bounds,
    drawn=lambda given: ([given.plan], {"demand": given.problem}),
    number_of_gpus=lambda given: len(given.plan.gpus),
    check_script=lambda given, path: check_deployment_names("nvidia-smi", given.plan, path),
    script=lambda given, devices: export(given.plan, "script", devices=devices),
)

_KINDS = (BATCH, SERVICES)
