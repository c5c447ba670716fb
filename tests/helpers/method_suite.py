"""Options and values that the tests of all methods share."""

from typing import Any

import tiny

from mig_opt import Batch, Task, generate_batch, methods
from mig_opt.heuristics.batch.fixed_partition import suitable_partitions
from mig_opt.method.registry import get_method

NAMES = [method.name for method in methods()]
# As the tiny batch, but ``big`` runs on smaller instances too, so that a fixed partition has one for every task.
FITS = tiny.BATCH.replace(tasks=(Task("big", {1: 8.0, 2: 4.0, 4: 2.0}), *tiny.BATCH.tasks[1:]))
HARD = generate_batch(20, seed=6)


def options_of(method: str, batch: Batch) -> dict[str, Any]:
    """Options that a method needs beside its name."""
    if "partition" not in get_method(method).options:
        return {}
    # One that all tasks can run on; without one, it must not matter which.
    return {"partition": next(suitable_partitions(batch), batch.gpu.maximal_partitions()[0])}
