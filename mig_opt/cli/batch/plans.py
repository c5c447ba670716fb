"""Batches and schedules for the commands that work for several problems."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import lower_bounds
from mig_opt.batch.schedule import Schedule
from mig_opt.cli.batch.screens import batch_rows, unplaceable, validation_card
from mig_opt.cli.inputs import load_batch
from mig_opt.cli.options import ProblemOptions
from mig_opt.cli.plans import BoundsFound, Plans
from mig_opt.cli.screens import Part, Rows, bounds_table, seconds
from mig_opt.validation import Validation, validate


class BatchPlans(Plans[Batch, Schedule, Validation]):
    """A batch and a schedule of it."""

    kind, plan_kinds = "batch", ("schedule", "result")
    noun, plural, predicate, hooks = "schedule", "batches", "is a batch", "HOOKS"

    @staticmethod
    def own_options(options: ProblemOptions) -> dict[str, object]:
        return {"--gpus": options.gpus, "--cost-free": options.cost_free}

    def load(self) -> Batch:
        given = self.options
        return load_batch(self.argument, given.gpu, given.gpus, cost_free=given.cost_free, document=self.document)

    def read_plan(self, path: Path, problem: Batch | None) -> Schedule:
        from mig_opt.files import read_schedule

        return read_schedule(path)

    def validate(self, problem: Batch, plan: Schedule, tolerance: float | None = None) -> Validation:
        return validate(problem, plan, tolerance=1e-6 if tolerance is None else tolerance)

    def figures(self, found: Validation) -> dict[str, float | None]:
        return {"makespan": found.makespan}

    def validation_parts(self, problem: Batch, plan: Schedule, found: Validation) -> Iterable[Part]:
        yield validation_card(problem, found)

    def remarks(self, plan: Schedule, found: Validation) -> list[str]:
        if plan.operations is not None or found.schedule.operations is None:
            return []
        count = len(found.schedule.operations)
        return [f"The schedule came without operations; {count} that are in time for its runs were found."]

    def rows(self, problem: Batch) -> Rows:
        return batch_rows(problem)

    def bounds(self, problem: Batch) -> BoundsFound:
        reasons = unplaceable(problem)
        bounds = () if reasons else lower_bounds(problem)
        best = bounds[0].value if bounds else None
        document = [dataclasses.asdict(bound) for bound in bounds]
        return BoundsFound(best, f"{seconds(best)} s", document, bounds_table(bounds), reasons)

    def draw(self, problem: Batch, found: Validation, plan: Schedule, out: Path, lower_bound: float | None) -> None:
        from mig_opt.plotting import save_plot

        save_plot(problem, found.schedule, out, lower_bound=lower_bound)

    def number_of_gpus(self, problem: Batch, plan: Schedule) -> int:
        return problem.gpus

    def script(self, problem: Batch, found: Validation, plan: Schedule, devices: Sequence[str] | None) -> str:
        from mig_opt.rollout import schedule_script

        return schedule_script(problem, found.schedule, devices=devices)
