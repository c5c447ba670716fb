"""Starts that fill one GPU after the other: each task once where it may run, and all but the last GPU full."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed import A30, A100, SLOW_A30, mixed_batch
from strategies import realistic_batches
from whole_problems import everywhere, first_places

from mig_opt import Batch, Pool, generate_batch, solve
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.local_search import LoadSearch, Start
from mig_opt.batch.loads.starts import FilledStarts, PatternStarts
from mig_opt.instances.batch import ScalingName


def source_of(problem: IntegerBatch, lower: int, upper: int) -> FilledStarts:
    """Return a source with the least areas of the tasks as dual prices."""
    areas = [
        min(
            place.durations[task] * place.placement.profile.compute_slices
            for place in problem.places
            if task in place.durations
        )
        for task in range(len(problem.batch.tasks))
    ]
    groups = [branches_of(problem, gpus) for gpus in problem.groups]
    return FilledStarts(problem, groups, np.array(areas, float), lambda: (lower, upper))


def drawn(problem: IntegerBatch, lower: int, upper: int, seed: int = 0) -> Start:
    return source_of(problem, lower, upper).draw(np.random.default_rng(seed), everywhere(problem), lambda: False)


def ticks(problem: IntegerBatch) -> tuple[int, int]:
    """Return a bound and the length of a schedule."""
    result = solve(problem.batch, "far")
    assert result.makespan is not None
    return problem.ticks.floor(result.lower_bound), problem.ticks.nearest(result.makespan)


@given(realistic_batches(max_tasks=12, max_gpus=4), st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_task_gets_a_place_where_it_may_run(batch: Batch, over: bool) -> None:
    problem = IntegerBatch(batch.replace(gpus=max(2, batch.gpus), initial=()))
    source = source_of(problem, *ticks(problem))
    start = source.draw(np.random.default_rng(0), everywhere(problem), lambda: over)
    assert start.work >= 0
    assert all(task in problem.places[at].durations for task, at in enumerate(start.places.tolist()))


@pytest.mark.parametrize("seed", range(4))
def test_every_task_gets_a_place_of_its_kind(seed: int) -> None:
    """Also those that run on one kind of GPU only."""
    batch = mixed_batch(Random(seed), 24, [Pool(A30, 2), Pool(A100, 1), Pool(SLOW_A30, 2)], missing=0.4, live=False)
    problem = IntegerBatch(batch)
    source = source_of(problem, *ticks(problem))
    patterns = PatternStarts(problem, [(group, (task,)) for group, task in runnable(problem)])
    for draw in (source.draw, patterns.draw):
        places = draw(np.random.default_rng(seed), everywhere(problem), lambda: False).places
        assert all(task in problem.places[at].durations for task, at in enumerate(places.tolist()))


def runnable(problem: IntegerBatch) -> set[tuple[int, int]]:
    """Return the groups of GPUs with the tasks that can run there."""
    group = {gpu: number for number, gpus in enumerate(problem.groups) for gpu in gpus}
    return {(group[place.gpu], task) for place in problem.places for task in place.durations}


@pytest.mark.parametrize("scaling", ["PoorScaling", "MixedScaling", "GoodScaling"])
def test_all_gpus_but_the_last_are_full_and_in_time(scaling: ScalingName) -> None:
    problem = IntegerBatch(generate_batch(75, scaling=scaling, gpus=3, seed=1))
    lower, upper = ticks(problem)
    places = drawn(problem, lower, upper).places.tolist()
    slack = max(place.destroy for place in problem.places) + 75 * (upper // 20_000 + 1)
    for gpu in range(2):
        own = [at for at in places if problem.places[at].gpu == gpu]
        assert own
        busy = LoadSearch(*alone(problem, places, gpu)).length
        assert 0.95 * lower < busy <= lower + 0.2 * (upper - lower) + slack
    assert problem.ticks.nearest(problem.nested(places).makespan) < 1.2 * upper


def alone(problem: IntegerBatch, places: list[int], gpu: int) -> tuple[IntegerBatch, list[int], int, int]:
    """Return the part of a batch that one GPU has, and its places."""
    tasks = [task for task, at in enumerate(places) if problem.places[at].gpu == gpu]
    part = IntegerBatch(problem.batch.replace(tasks=tuple(problem.batch.tasks[task] for task in tasks), gpus=1))
    index = {place.placement: at for at, place in enumerate(part.places)}
    return part, [index[problem.places[places[task]].placement] for task in tasks], 0, 1


def test_a_search_may_start_from_them_at_once() -> None:
    problem = IntegerBatch(generate_batch(20, gpus=2, seed=3))
    source, starts = source_of(problem, *ticks(problem)), []
    search = LoadSearch(problem, first_places(problem), 0, 1)
    search.start_from(lambda *given: starts.append(given) or source.draw(*given), at_once=True)
    cycles = search.cycles(0)
    for results in itertools.islice(cycles, 3):
        for length, found in results:
            assert length == problem.ticks.nearest(problem.nested(found).makespan)
    cycles.close()
    assert len(starts) == 1
