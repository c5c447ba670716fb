"""Starts from patterns of a GPU: all tasks get a place where they may run, the patterns one GPU each."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import realistic_batches
from whole_problems import everywhere, first_places

from mig_opt import Batch, Task, generate_batch, get_gpu
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.local_search import LoadSearch
from mig_opt.batch.loads.starts import PatternStarts


def drawn(problem: IntegerBatch, patterns: list[tuple[int, ...]], seed: int = 0) -> list[int]:
    start = PatternStarts(problem, [(0, tasks) for tasks in patterns]).draw(
        np.random.default_rng(seed), everywhere(problem), lambda: False
    )
    assert start.work > 0
    places: list[int] = start.places.tolist()
    return places


@pytest.mark.deep
@given(realistic_batches(max_tasks=12, max_gpus=4), st.data())
@settings(max_examples=25, deadline=None)
def test_every_task_gets_a_place_where_it_may_run(batch: Batch, data: st.DataObject) -> None:
    batch = batch.replace(gpus=max(2, batch.gpus), initial=())
    problem = IntegerBatch(batch)
    tasks = st.integers(0, len(batch.tasks) - 1)
    patterns = data.draw(st.lists(st.sets(tasks, min_size=1).map(lambda some: tuple(sorted(some))), min_size=1))
    possible = everywhere(problem)
    for task, alone in enumerate(data.draw(st.lists(st.booleans(), max_size=len(batch.tasks)))):
        if alone:
            possible[task, np.nonzero(possible[task])[0][1:]] = False
    source = PatternStarts(problem, [(0, tasks) for tasks in patterns])
    for seed in range(2):
        places = source.draw(np.random.default_rng(seed), everywhere(problem), lambda: False).places
        assert all(task in problem.places[at].durations for task, at in enumerate(places))
    # What was found before is of no use where it may not be any more.
    search = LoadSearch(problem, first_places(problem), 0, 1)
    search.forbid(~possible)
    starts = []
    search.draw = lambda *given: starts.append(given) or source.draw(*given)
    cycles = search.cycles(0)
    for results in itertools.islice(cycles, 100):
        for length, found in results:
            assert length == problem.ticks.nearest(problem.nested(found).makespan)
            assert possible[np.arange(len(found)), found].all()
    cycles.close()
    assert starts


@pytest.mark.deep
def test_patterns_have_a_gpu_of_their_own() -> None:
    problem = IntegerBatch(generate_batch(14, gpus=4, seed=1))
    patterns = [(0, 1, 2, 3, 4), (5, 6, 7, 8), (4, 5), (9, 10, 3)]
    seen = set()
    for seed in range(12):
        on = [problem.places[at].gpu for at in drawn(problem, patterns, seed)]
        together = [some for some in patterns if len({on[task] for task in some}) == 1]
        alone = [some for some in together if all(on[task] != on[some[0]] for task in range(14) if task not in some)]
        # Two of them leave two GPUs for all else; some pairs have a task in common.
        assert len(alone) == 2
        assert not set(alone[0]) & set(alone[1])
        seen.update(alone)
    assert seen == set(patterns)


def test_two_gpus_have_one_of_the_patterns_each_start() -> None:
    problem = IntegerBatch(generate_batch(12, gpus=2, seed=1))
    on = [problem.places[at].gpu for at in drawn(problem, [(0, 2, 4, 6, 8, 10)])]
    assert on == [0, 1] * 6


def test_a_pattern_that_is_everything() -> None:
    problem = IntegerBatch(generate_batch(4, gpus=3, seed=1))
    assert {problem.places[at].gpu for at in drawn(problem, [(0, 1, 2, 3)])} == {0}


def test_a_task_that_needs_much_memory_is_among_the_others() -> None:
    """A pattern without it is a batch with fewer profiles."""
    tasks = (Task("large", {1: 4.0}, memory_gb=10), *(Task(f"t{at}", {1: 3.0, 2: 2.0}) for at in range(5)))
    problem = IntegerBatch(Batch(tasks, get_gpu("A100"), gpus=2))
    assert problem.batch.profile_set == "double-memory"
    places = [problem.places[at] for at in drawn(problem, [(1, 2, 3)])]
    assert [place.gpu for place in places] == [1, 0, 0, 0, 1, 1]
    assert places[0].placement.profile.memory_gb >= 10


@pytest.mark.deep
def test_a_seed_decides_everything() -> None:
    problem = IntegerBatch(generate_batch(11, gpus=3, seed=3))
    patterns = [tuple(range(at, at + 5)) for at in range(7)]

    starts = []

    def told(seed: int) -> list[list[tuple[int, list[int]]]]:
        search = LoadSearch(problem, first_places(problem), seed, 1)
        source = PatternStarts(problem, [(0, tasks) for tasks in patterns])
        search.draw = lambda *given: starts.append(seed) or source.draw(*given)
        cycles = search.cycles(0)
        result = list(itertools.islice(cycles, 70))
        cycles.close()
        return result

    assert told(1) == told(1)
    assert starts


def test_work_is_the_same_for_whoever_needs_it_first() -> None:
    """Else the number of cycles would depend on which thread is faster."""
    problem = IntegerBatch(generate_batch(12, gpus=2, seed=1))
    source = PatternStarts(problem, [(0, (0, 2, 4, 6, 8, 10))])
    first, second = (source.draw(np.random.default_rng(3), everywhere(problem), lambda: False) for _ in range(2))
    assert first.work == second.work
    assert first.places.tolist() == second.places.tolist()


@pytest.mark.deep
def test_a_search_that_is_stuck_starts_from_patterns() -> None:
    problem = IntegerBatch(generate_batch(10, gpus=2, seed=3))
    asked = []

    def draw(rng: np.random.Generator, possible: np.ndarray, over: object):  # type: ignore[no-untyped-def]
        asked.append(possible.shape)
        return PatternStarts(problem, [(0, (0, 1, 2, 3, 4))]).draw(rng, possible, lambda: False)

    search = LoadSearch(problem, first_places(problem), 0, 1)
    search.draw = draw
    cycles = search.cycles(0)
    for _ in itertools.islice(cycles, 150):
        pass
    cycles.close()
    assert asked
    assert set(asked) == {(10, len(problem.places))}
