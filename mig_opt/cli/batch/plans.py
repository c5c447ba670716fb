"""Batches and schedules for the commands that work for several problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import lower_bounds
from mig_opt.batch.schedule import Schedule
from mig_opt.cli.batch.screens import batch_rows, unplaceable, validation_card
from mig_opt.cli.inputs import load_batch
from mig_opt.cli.plans import BoundsFound, Plans
from mig_opt.cli.screens import Part, Rows, bounds_table, seconds
from mig_opt.validation import Validation, validate


class BatchPlans(Plans):
    """A batch and a schedule of it."""

    kind, plan_kinds, own_options = "batch", ("schedule", "result"), ("gpus", "cost_free")
    noun, plural, predicate, hooks = "schedule", "batches", "is a batch", "HOOKS"
    problem: Batch
    plan: Schedule
    found: Validation

    def load(self) -> Batch:
        given = self.options
        return load_batch(self.argument, given.gpu, given.gpus, cost_free=given.cost_free, document=self.document)

    def read_plan(self, path: Path) -> Schedule:
        from mig_opt.files.batch.schedules import read_schedule

        return read_schedule(path)

    def validate(self, tolerance: float | None = None) -> Validation:
        return validate(self.problem, self.plan, tolerance=1e-6 if tolerance is None else tolerance)

    def figures(self) -> dict[str, float | None]:
        return {"makespan": self.found.makespan}

    def validation_parts(self) -> Iterable[Part]:
        yield validation_card(self.problem, self.found)

    def remarks(self) -> list[str]:
        operations = self.found.schedule.operations
        if self.plan.operations is not None or operations is None:
            return []
        return [f"The schedule came without operations; {len(operations)} that are in time for its runs were found."]

    def rows(self) -> Rows:
        return batch_rows(self.problem)

    def bounds(self) -> BoundsFound:
        reasons = unplaceable(self.problem)
        bounds = () if reasons else lower_bounds(self.problem)
        best = bounds[0].value if bounds else None
        return BoundsFound(best, f"{seconds(best)} s", list(map(asdict, bounds)), bounds_table(bounds), reasons)

    def draw(self, out: Path, lower_bound: float | None) -> None:
        from mig_opt.plotting import save_plot

        save_plot(self.problem, self.found.schedule, out, lower_bound=lower_bound)

    def number_of_gpus(self) -> int:
        return self.problem.gpus

    def script(self, devices: Sequence[str] | None) -> str:
        from mig_opt.rollout import schedule_script

        return schedule_script(self.problem, self.found.schedule, devices=devices)
