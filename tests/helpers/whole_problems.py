"""Batches in ticks with all of their places, also those of no use to any short schedule, and searches on them."""

import itertools

import numpy as np

from mig_opt.batch.batch import Batch
from mig_opt.batch.horizon import Horizon
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.local_search import LoadSearch


def whole_problem(batch: Batch) -> IntegerBatch:
    """The problem without a horizon: everything can end by then, on every GPU that can be of use."""
    operation = max((*batch.operations.create.values(), *batch.operations.destroy.values()))
    seconds = sum(max(task.times.values()) + 2 * operation for task in batch.tasks)
    seconds += sum(entry.free + operation for entry in batch.initial)
    return IntegerBatch(batch, Horizon.of(batch).until(seconds))


def first_places(problem: IntegerBatch) -> list[int]:
    """The first place of each task that it may run at."""
    return everywhere(problem).argmax(axis=1).tolist()


def everywhere(problem: IntegerBatch) -> np.ndarray:
    """The places at which each task may run, a row for each."""
    count = range(len(problem.batch.tasks))
    return np.array([[task in place.durations for place in problem.places] for task in count])


def told(search: LoadSearch, count: int) -> list[tuple[int, list[int]]]:
    """The lengths and places that some cycles of a search tell."""
    cycles = search.cycles(0)
    found = [result for results in itertools.islice(cycles, count) for result in results]
    cycles.close()
    return found
