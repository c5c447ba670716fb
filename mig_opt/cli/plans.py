"""Batches with schedules, and services with deployments, as commands see them that work for both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import lower_bounds
from mig_opt.batch.schedule import Schedule
from mig_opt.cli.batch.screens import batch_rows, unplaceable, validation_card
from mig_opt.cli.inputs import check_outputs, load_batch
from mig_opt.cli.options import ProblemOptions, ServicesOptions
from mig_opt.cli.outcome import Checks, refuse
from mig_opt.cli.screens import Part, Rows, bounds_table, seconds, table
from mig_opt.cli.serving.inputs import check_deployment_names, load_services, read_deployment_for
from mig_opt.cli.serving.screens import demand_rows, deployment_validation_card, services_table
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.texts import plural
from mig_opt.validation import DeploymentValidation, Validation, validate, validate_deployment


class BoundsFound(NamedTuple):
    """Lower bounds of a problem: the best one as number and text, all as JSON and table, and why there is no plan."""

    best: float | None
    text: str
    document: list[dict[str, Any]]
    table: Part
    reasons: Sequence[str]


class Plans(ABC):
    """A problem and a plan for it in files: one subclass for each kind of problem.

    ``document`` is the content of standard input, if the argument that names the problem stands for it. Problem, plan
    and the outcome of the validation are there as far as they were read and validated.
    """

    kind: ClassVar[str]  # of the file that holds the problem
    plan_kinds: ClassVar[tuple[str, ...]]  # of the files that hold a plan
    own_options: ClassVar[tuple[str, ...]]  # those that are for this kind of problem alone
    noun: ClassVar[str]  # the word for a plan
    plural: ClassVar[str]  # the word for problems of this kind
    predicate: ClassVar[str]  # the end of a sentence about a file of this kind
    hooks: ClassVar[str]  # the arguments of a script
    figure: ClassVar[str]  # the name of the figure of a plan that the validator finds
    tolerance: ClassVar[float]  # seconds (or a share) by which figures may differ, if the command does not say
    validator: ClassVar[Callable[..., Any]]

    problem: Any = None
    plan: Any = None
    found: Any

    def __init__(self, argument: str, document: bytes | None) -> None:
        self.argument, self.document = argument, document

    def read(self, path: Path, chart: Path | None = None, output: Path | None = None) -> None:
        """Read the problem and the plan, and see to it that outputs can be written; all errors come at once."""
        checks = Checks()
        self.problem = checks.attempt(self.load)
        self.plan = checks.attempt(self.read_plan, path)
        checks.attempt(check_outputs, [self.argument, path], chart, output=output)
        checks.finish()

    @abstractmethod
    def load(self) -> Any:
        """Return the problem."""

    @abstractmethod
    def read_plan(self, path: Path) -> Any:
        """Return the plan in a file; the problem is None if it could not be read."""

    def validate(self, tolerance: float | None = None) -> Any:
        """Return the outcome of the validator; times (or shares) may differ by ``tolerance``."""
        return self.validator(self.problem, self.plan, tolerance=self.tolerance if tolerance is None else tolerance)

    @abstractmethod
    def validation_parts(self) -> Iterable[Part]:
        """Yield a card of the validation, and more below it for a valid plan."""

    def remarks(self) -> list[str]:
        """Return remarks on the validation."""
        return []

    def shares(self) -> dict[str, Any]:
        """Return what a valid plan leaves unused, for the document of its validation."""
        return {}

    @abstractmethod
    def rows(self) -> Rows:
        """Return the rows of a card that describe the problem."""

    @abstractmethod
    def bounds(self) -> BoundsFound:
        """Return the lower bounds of the problem."""

    @abstractmethod
    def draw(self, out: Path, lower_bound: float | None) -> None:
        """Write a chart of the plan."""

    def check_script(self, path: Path) -> None:  # noqa: B027 - most plans have no such names
        """Refuse names in the file of the plan that a script cannot hold."""

    @abstractmethod
    def number_of_gpus(self) -> int:
        """Return the number of GPUs for which a script needs devices."""

    @abstractmethod
    def script(self, devices: Sequence[str] | None) -> str:
        """Return a script for bash that carries out the plan."""


class BatchPlans(Plans):
    """A batch and a schedule of it."""

    kind, plan_kinds, own_options = "batch", ("schedule", "result"), ("gpus", "cost_free", "costs")
    noun, plural, predicate, hooks = "schedule", "batches", "is a batch", "HOOKS"
    figure, tolerance, validator = "makespan", 1e-6, staticmethod(validate)
    problem: Batch
    plan: Schedule
    measured = False  # true if the plan is an execution, and the times of the problem are those that were measured
    found: Validation

    def __init__(self, argument: str, document: bytes | None, options: ProblemOptions) -> None:
        super().__init__(argument, document)
        self.options = options

    def load(self) -> Batch:
        given = self.options
        costs = given.costs
        return load_batch(
            self.argument, given.gpu, given.gpus, costs=costs, cost_free=given.cost_free, document=self.document
        )

    def read_plan(self, path: Path) -> Schedule:
        from mig_opt.files.batch.journals import is_journal, read_journal
        from mig_opt.files.batch.schedules import read_schedule

        if not is_journal(path):
            return read_schedule(path)
        journal = read_journal(path)
        if self.problem is not None and self.problem != journal.batch:
            refuse("", f"is the journal of another batch than {self.argument}", path)
        name = journal.batch.name
        batch, schedule = journal.measured()
        self.problem, self.measured = batch.replace(name=f"{name}, as measured"), True
        return schedule

    def validation_parts(self) -> Iterable[Part]:
        yield validation_card(self.problem, self.found)

    def remarks(self) -> list[str]:
        operations = self.found.schedule.operations
        if self.measured:
            return ["Times of tasks and operations are as they were measured; all other rules are those of plans."]
        if self.plan.operations is not None or operations is None:
            return []
        return [f"The schedule has no operations; found for its runs: {plural(len(operations), 'operation')}."]

    def rows(self) -> Rows:
        return batch_rows(self.problem)

    def bounds(self) -> BoundsFound:
        reasons = unplaceable(self.problem)
        bounds = () if reasons else lower_bounds(self.problem)
        best = bounds[0].value if bounds else None
        return BoundsFound(best, f"{seconds(best)} s", list(map(asdict, bounds)), bounds_table(bounds), reasons)

    def draw(self, out: Path, lower_bound: float | None) -> None:
        from mig_opt.views import plot

        plot(self.problem, self.found.schedule, to=out, lower_bound=lower_bound)

    def number_of_gpus(self) -> int:
        return self.problem.gpus

    def script(self, devices: Sequence[str] | None) -> str:
        from mig_opt.operations.rollout import schedule_script

        return schedule_script(self.problem, self.found.schedule, devices=devices)


class ServingPlans(Plans):
    """Services and a deployment of them."""

    kind, plan_kinds = "services", ("deployment", "deployment-result")
    own_options = ("profiles", "scenario", "slo_share", "whole_ms", "max_processes")
    noun, plural, predicate, hooks = "deployment", "services", "has services", "[HOOKS]"
    figure, tolerance, validator = "gpus", 1e-9, staticmethod(validate_deployment)
    problem: Demand
    plan: Deployment
    found: DeploymentValidation

    def __init__(self, argument: str, document: bytes | None, options: ServicesOptions) -> None:
        super().__init__(argument, document)
        self.options = options

    def load(self) -> Demand:
        return load_services(self.argument, self.options, self.document)

    def read_plan(self, path: Path) -> Deployment:
        return read_deployment_for(self.problem, path)

    def validation_parts(self) -> Iterable[Part]:
        yield deployment_validation_card(self.problem, self.plan, self.found)
        if self.found.valid:
            yield from ("", services_table(self.problem, self.plan))

    def shares(self) -> dict[str, Any]:
        from mig_opt.files.serving.deployment_results import deployment_shares

        return deployment_shares(self.problem, self.plan)

    def rows(self) -> Rows:
        return demand_rows(self.problem)

    def bounds(self) -> BoundsFound:
        from mig_opt.api.deploy import why_unservable
        from mig_opt.serving.bounds import fleet_bounds, shortage

        reasons = why_unservable(self.problem)
        bounds = () if reasons else fleet_bounds(self.problem)
        if bounds and (lacking := shortage(self.problem, bounds[0])):
            reasons = [lacking]
        best = bounds[0].gpus if bounds else None
        document = [
            {"name": bound.name, "value": bound.gpus, "not_rounded": bound.value, "reason": bound.reason}
            for bound in bounds
        ]
        rows = ([bound.name, str(bound.gpus), f"{bound.value:.3f}", bound.reason] for bound in bounds)
        shown = table(["bound", ">GPUs", ">not rounded", "~because"], rows)
        return BoundsFound(best, plural(best or 0, "GPU"), document, shown, reasons)

    def draw(self, out: Path, lower_bound: float | None) -> None:
        from mig_opt.views import plot

        plot(self.plan, to=out, demand=self.problem)

    def number_of_gpus(self) -> int:
        return len(self.plan.gpus)

    def check_script(self, path: Path) -> None:
        check_deployment_names("nvidia-smi", self.plan, path)

    def script(self, devices: Sequence[str] | None) -> str:
        from mig_opt.operations.rollout import deployment_script

        return deployment_script(self.plan, devices=devices)
