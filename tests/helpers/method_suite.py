"""What the tests of all methods share."""

from __future__ import annotations

from typing import Any

import tiny

from mig_opt import Batch, Callbacks, Schedule, ScheduleResult, Task, generate_batch, methods
from mig_opt.heuristics.batch.fixed_partition import suitable_partitions
from mig_opt.method.registry import get_method

NAMES = [method.name for method in methods()]
# As the tiny batch, but ``big`` runs on smaller instances too, so that a fixed partition has one for every task.
FITS = tiny.BATCH.replace(tasks=(Task("big", {1: 8.0, 2: 4.0, 4: 2.0}), *tiny.BATCH.tasks[1:]))
HARD = generate_batch(20, seed=6)


class Diary(Callbacks):
    """Writes down what happens."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.makespans: list[float] = []
        self.bounds: list[float] = []

    def on_start(self, batch: Batch, method: str) -> None:
        self.events.append(f"start {method}")

    def on_incumbent(self, seconds: float, schedule: Schedule, lower_bound: float) -> None:
        self.events.append("incumbent")
        self.makespans.append(schedule.makespan)

    def on_bound(self, seconds: float, makespan: float | None, lower_bound: float) -> None:
        self.events.append("bound")
        self.bounds.append(lower_bound)

    def on_end(self, result: ScheduleResult) -> None:
        self.events.append(f"end {result.status}")


def options_of(method: str, batch: Batch) -> dict[str, Any]:
    """What a method needs beside its name."""
    if "partition" not in get_method(method).options:
        return {}
    # One that all tasks can run on; without one, it must not matter which.
    return {"partition": next(suitable_partitions(batch), batch.gpu.maximal_partitions()[0])}
