"""Batches with schedules, and services with deployments, for commands that work on both."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.cli import options
from mig_opt.cli.answers import Call
from mig_opt.cli.batch.reports import batch_facts, unplaceable, validation_facts
from mig_opt.cli.checks import refuse
from mig_opt.cli.figures import bounds_table, in_seconds
from mig_opt.cli.inputs import is_table, load_batch, piped
from mig_opt.cli.serving.inputs import check_deployment_names, load_services, read_deployment_for
from mig_opt.cli.serving.reports import demand_facts, services_table
from mig_opt.cli.serving.reports import validation_facts as deployment_facts
from mig_opt.errors import InputError, Problem
from mig_opt.method.report import Facts, Table
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.texts import plural
from mig_opt.validation import DeploymentValidation, Validation
from mig_opt.verbs.plans import bounds, validate


class BoundsFound(NamedTuple):
    """Lower bounds of a problem: the best one as number and text, all as JSON and table, and why there is no plan."""

    best: float | None
    text: str | None
    document: list[dict[str, Any]]
    table: Table
    reasons: Sequence[str]


class _Given:
    """A problem and a plan for it in files, as far as they were read and validated.

    ``document`` is the content of standard input, if the argument that names the problem stands for it.
    """

    problem: Any = None
    plan: Any = None
    found: Any = None
    tolerance: float

    def __init__(self, argument: str, given: Any, document: bytes | None) -> None:
        self.argument, self.given, self.document = argument, given, document

    def read(self, call: Call, path: Path) -> None:
        """Read the problem and the plan; what is wrong is noted."""
        self.problem = call.attempt(self.load)
        self.plan = call.attempt(self.read_plan, path)

    def validate(self, tolerance: float | None = None) -> int:
        """Validate the plan, whose times (or shares) may differ by the tolerance; return the number of violations."""
        used = self.tolerance if tolerance is None else tolerance
        self.found = validate(self.problem, self.plan, tolerance=used)
        return len(self.found.violations)

    def load(self) -> Any:
        """Return the problem."""
        raise NotImplementedError

    def read_plan(self, path: Path) -> Any:
        """Return the plan in a file; the problem is None if it could not be read."""
        raise NotImplementedError


class GivenBatch(_Given):
    """A batch and a schedule of it."""

    kind, plan_kinds, own_options = "batch", ("schedule", "result"), ("gpus", "cost_free", "costs")
    noun, plural, predicate, hooks = "schedule", "batches", "is a batch", "HOOKS"
    figure, tolerance = "makespan", 1e-6
    problem: Batch
    plan: Schedule
    found: Validation
    given: options.ProblemOptions
    measured = False  # true if the plan is an execution, and the times of the problem are those that were measured

    def load(self) -> Batch:
        """Return the batch."""
        return load_batch(self.argument, self.given, self.document)

    def read_plan(self, path: Path) -> Schedule:
        """Return the schedule in a file; that of a journal is the execution, and the batch gets its times."""
        from mig_opt.files.batch.journals import is_journal, read_journal
        from mig_opt.files.batch.schedules import read_schedule

        if not is_journal(path):
            return read_schedule(path)
        journal = read_journal(path)
        if self.problem is not None and self.problem != journal.batch:
            refuse("", f"is the journal of another batch than {self.argument}", path)
        batch, schedule = journal.measured()
        self.problem, self.measured = batch.replace(name=f"{journal.batch.name}, as measured"), True
        return schedule

    def valid_plan(self) -> Schedule:
        """Return the plan, with the operations that were found."""
        return self.found.schedule

    def facts(self) -> Facts:
        """Return the facts about the problem."""
        return batch_facts(self.problem)

    def validation(self) -> tuple[Facts, list[Table], list[str], dict[str, Any]]:
        """Return facts, tables and remarks about the validation, and more data of a valid plan."""
        operations, remarks = self.found.schedule.operations, []
        if self.measured:
            remarks = ["Times of tasks and operations are as they were measured; all other rules are those of plans."]
        elif self.plan.operations is None and operations is not None:
            count = plural(len(operations), "operation")
            remarks = [f"The schedule has no operations; found for its runs: {count}."]
        return validation_facts(self.problem, self.found), [], remarks, {}

    def bounds(self) -> BoundsFound:
        """Return the lower bounds of the problem."""
        reasons = unplaceable(self.problem)
        found = () if reasons else bounds(self.problem)
        best = found[0].value if found else None
        return BoundsFound(best, in_seconds(best), list(map(asdict, found)), bounds_table(found), reasons)

    def chart(self) -> tuple[list[Any], dict[str, Any]]:
        """Return what :func:`mig_opt.plot` takes."""
        return [self.problem, self.found.schedule], {}

    def number_of_gpus(self) -> int:
        """Return the number of GPUs for which a script needs devices."""
        return self.problem.gpus

    def check_script(self, path: Path) -> None:
        """Refuse what a script cannot hold: of a schedule nothing."""

    def script(self, devices: Sequence[str] | None) -> str:
        """Return a script for bash that carries out the plan."""
        from mig_opt.operations.rollout.nvidia_smi import schedule_script

        return schedule_script(self.problem, self.found.schedule, devices=devices)


class GivenServices(_Given):
    """Services and a deployment of them."""

    kind, plan_kinds = "services", ("deployment", "deployment-result")
    own_options = ("profiles", "scenario", "slo_share", "whole_ms", "max_processes")
    noun, plural, predicate, hooks = "deployment", "services", "has services", "[HOOKS]"
    figure, tolerance = "gpus", 1e-9
    problem: Demand
    plan: Deployment
    found: DeploymentValidation
    given: options.ServicesOptions

    def load(self) -> Demand:
        """Return the demand."""
        return load_services(self.argument, self.given, self.document)

    def read_plan(self, path: Path) -> Deployment:
        """Return the deployment in a file."""
        return read_deployment_for(self.problem, path)

    def valid_plan(self) -> Deployment:
        """Return the plan."""
        return self.plan

    def facts(self) -> Facts:
        """Return the facts about the problem."""
        return demand_facts(self.problem)

    def validation(self) -> tuple[Facts, list[Table], list[str], dict[str, Any]]:
        """Return facts, tables and remarks about the validation, and more data of a valid plan."""
        from mig_opt.files.serving.deployment_results import deployment_shares

        facts = deployment_facts(self.problem, self.plan, self.found)
        if not self.found.valid:
            return facts, [], [], {}
        return facts, [services_table(self.problem, self.plan)], [], deployment_shares(self.problem, self.plan)

    def bounds(self) -> BoundsFound:
        """Return the lower bounds of the problem."""
        from mig_opt.api.deploy import why_unservable
        from mig_opt.serving.bounds import shortage

        reasons = why_unservable(self.problem)
        found = () if reasons else bounds(self.problem)
        if found and (lacking := shortage(self.problem, found[0])):
            reasons = [lacking]
        best = found[0].gpus if found else None
        document = [
            {"name": bound.name, "value": bound.gpus, "not_rounded": bound.value, "reason": bound.reason}
            for bound in found
        ]
        rows = [[bound.name, str(bound.gpus), f"{bound.value:.3f}", bound.reason] for bound in found]
        shown = Table(["bound", ">GPUs", ">not rounded", "~because"], rows)
        return BoundsFound(best, None if best is None else plural(best, "GPU"), document, shown, reasons)

    def chart(self) -> tuple[list[Any], dict[str, Any]]:
        """Return what :func:`mig_opt.plot` takes."""
        return [self.plan], {"demand": self.problem}

    def number_of_gpus(self) -> int:
        """Return the number of GPUs for which a script needs devices."""
        return len(self.plan.gpus)

    def check_script(self, path: Path) -> None:
        """Refuse what a script cannot hold: some names of services."""
        check_deployment_names("nvidia-smi", self.plan, path)

    def script(self, devices: Sequence[str] | None) -> str:
        """Return a script for bash that carries out the plan."""
        from mig_opt.operations.rollout.nvidia_smi import deployment_script

        return deployment_script(self.plan, devices=devices)


Given = GivenBatch | GivenServices
_KINDS: tuple[type[Given], ...] = (GivenBatch, GivenServices)


def given_problem(argument: str, plan: Path | None, given: options.ProblemOptions, **for_batches: object) -> Given:
    """Return what a command works on: a problem of the kind that its arguments are about.

    The kind of the file that ``argument`` names decides, if it can be told; else that of the plan, or options that are
    for one kind alone, as ``for_batches`` are. Options of another kind are refused.
    """
    document = piped(argument)
    kind = _kind(argument, document)
    named = {field.name for field in dataclasses.fields(given) if getattr(given, field.name) not in (field.default, [])}
    own = {
        problem: [f"--{name.replace('_', '-')}" for name in problem.own_options if name in named] for problem in _KINDS
    }
    own[GivenBatch] += [option for option, value in for_batches.items() if value is not None]
    chosen = next((problem for problem in _KINDS if problem.kind == kind), None)
    if chosen is None:
        plan_kind = None if plan is None else _kind(str(plan), None)
        serves = own[GivenServices] or plan_kind in GivenServices.plan_kinds
        chosen = GivenServices if serves else GivenBatch
    else:
        wrong = [
            Problem(option, f"is for {problem.plural}, but {argument} {chosen.predicate}; leave it out")
            for problem in _KINDS
            if problem is not chosen
            for option in own[problem]
        ]
        if wrong:
            raise InputError(wrong)
    return chosen(argument, given if chosen is GivenBatch else given.for_services(), document)


def given_services(services: str, given: options.ServicesOptions) -> GivenServices:
    """Return the services that a command works on."""
    return GivenServices(services, given, piped(services))


def _kind(name: str, document: bytes | None) -> str | None:
    """Return the kind of file that an argument names, None if that cannot be told."""
    from mig_opt.files.documents import read_text
    from mig_opt.files.recognition import document_kind
    from mig_opt.instances.bundled import instance_names

    if document is not None:
        return document_kind(document)
    if not os.access(name, os.F_OK):
        return "batch" if name in instance_names() else "services" if name in instance_names("demand") else None
    try:
        return document_kind(read_text(name), table=is_table(name))
    except InputError:  # reported where the file is read
        return None
