"""Batches in ticks with all of their places, also those that are of no use to any short schedule."""

from __future__ import annotations

from mig_opt.batch.batch import Batch
from mig_opt.batch.horizon import Horizon
from mig_opt.batch.integer_batch import IntegerBatch


def whole_problem(batch: Batch) -> IntegerBatch:
    """The problem without a horizon: everything can end by then, on every GPU that can be of use."""
    operation = max((*batch.operations.create.values(), *batch.operations.destroy.values()))
    seconds = sum(max(task.times.values()) + 2 * operation for task in batch.tasks)
    seconds += sum(entry.free + operation for entry in batch.initial)
    return IntegerBatch(batch, Horizon.of(batch).until(seconds))
