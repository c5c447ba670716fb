"""A schedule on one A30 that can be checked by hand, and what validators say about it in short."""

from __future__ import annotations

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.validation import Validation

A30 = get_gpu("A30")


# An A30 creates 1g / 2g / 4g in 0.11 / 0.12 / 0.13 s and destroys any of them in 0.1 s.
#   4g@0  created 0-0.13     big   0.13-2.13 (2 s)   destroyed 2.13-2.23
#   2g@0  created 2.23-2.35  left  2.35-5.35 (3 s)
#   1g@2  created 2.35-2.46  right 2.46-6.46 (4 s)   makespan 6.46
BATCH = Batch((Task("big", {4: 2.0}), Task("left", {1: 5.0, 2: 3.0}), Task("right", {1: 4.0}, memory_gb=5)), A30)


RUNS = (
    Run("big", 0, "4g.24gb", 0, 0.13, 2.13),
    Run("left", 0, "2g.12gb", 0, 2.35, 5.35),
    Run("right", 0, "1g.6gb", 2, 2.46, 6.46),
)


OPERATIONS = (
    Operation("create", 0, "4g.24gb", 0, 0.0, 0.13),
    Operation("destroy", 0, "4g.24gb", 0, 2.13, 2.23),
    Operation("create", 0, "2g.12gb", 0, 2.23, 2.35),
    Operation("create", 0, "1g.6gb", 2, 2.35, 2.46),
)


TINY = Schedule(RUNS, OPERATIONS)


def found(result: Validation) -> list[tuple[str, str]]:
    return [(str(violation.code), violation.path) for violation in result.violations]


def codes(result: Validation) -> set[str]:
    return {str(violation.code) for violation in result.violations}
