"""Starts from patterns of a GPU, and such as fill one GPU after the other: each task once where it may run."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed import A30, A100, SLOW_A30, mixed_batch
from strategies import realistic_batches
from whole_problems import everywhere, first_places, told

from mig_opt import Batch, Pool, Task, generate_batch, get_gpu, solve
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.local_search import LoadSearch
from mig_opt.batch.loads.starts import FilledStarts, PatternStarts
from mig_opt.instances.batch import ScalingName

Source = PatternStarts | FilledStarts


def drawn(problem: IntegerBatch, source: Source, seed: int = 0, *, over: bool = False) -> list[int]:
    """The places of a start, at which the tasks may run."""
    start = source.draw(np.random.default_rng(seed), everywhere(problem), lambda: over)
    assert start.work >= 0
    assert all(task in problem.places[at].durations for task, at in enumerate(start.places))
    return start.places.tolist()


def gpus_of(problem: IntegerBatch, patterns: list[tuple[int, ...]], seed: int = 0) -> list[int]:
    """The GPU of each task in a start from patterns."""
    source = PatternStarts(problem, [(0, tasks) for tasks in patterns])
    return [problem.places[at].gpu for at in drawn(problem, source, seed)]


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
        drawn(problem, source, seed)
    # What was found before is of no use where it may not be any more.
    search = LoadSearch(problem, first_places(problem), 0, 1)
    search.forbid(~possible)
    starts = []
    search.draw = lambda *given: starts.append(given) or source.draw(*given)
    for length, found in told(search, 100):
        assert length == problem.ticks.nearest(problem.nested(found).makespan)
        assert possible[np.arange(len(found)), found].all()
    assert starts


@pytest.mark.deep
def test_patterns_have_a_gpu_of_their_own() -> None:
    problem = IntegerBatch(generate_batch(14, gpus=4, seed=1))
    patterns = [(0, 1, 2, 3, 4), (5, 6, 7, 8), (4, 5), (9, 10, 3)]
    seen = set()
    for seed in range(12):
        on = gpus_of(problem, patterns, seed)
        together = [some for some in patterns if len({on[task] for task in some}) == 1]
        alone = [some for some in together if all(on[task] != on[some[0]] for task in range(14) if task not in some)]
        # Two of them leave two GPUs for all else; some pairs have a task in common.
        assert len(alone) == 2
        assert not set(alone[0]) & set(alone[1])
        seen.update(alone)
    assert seen == set(patterns)


def test_two_gpus_have_one_of_the_patterns_each_start() -> None:
    problem = IntegerBatch(generate_batch(12, gpus=2, seed=1))
    assert gpus_of(problem, [(0, 2, 4, 6, 8, 10)]) == [0, 1] * 6
    # A pattern may be everything.
    assert gpus_of(IntegerBatch(generate_batch(4, gpus=3, seed=1)), [(0, 1, 2, 3)]) == [0] * 4


def test_a_task_that_needs_much_memory_is_among_the_others() -> None:
    """A pattern without it is a batch with fewer profiles."""
    tasks = (Task("large", {1: 4.0}, memory_gb=10), *(Task(f"t{at}", {1: 3.0, 2: 2.0}) for at in range(5)))
    problem = IntegerBatch(Batch(tasks, get_gpu("A100"), gpus=2))
    assert problem.batch.profile_set == "double-memory"
    assert gpus_of(problem, [(1, 2, 3)]) == [1, 0, 0, 0, 1, 1]


def test_work_is_the_same_for_whoever_needs_it_first() -> None:
    """Else the number of cycles would depend on which thread is faster."""
    problem = IntegerBatch(generate_batch(12, gpus=2, seed=1))
    source = PatternStarts(problem, [(0, (0, 2, 4, 6, 8, 10))])
    first, second = (source.draw(np.random.default_rng(3), everywhere(problem), lambda: False) for _ in range(2))
    assert first.work == second.work
    assert first.places.tolist() == second.places.tolist()


def source_of(problem: IntegerBatch, lower: int, upper: int) -> FilledStarts:
    """Return a source with the least areas of the tasks as dual prices."""
    work = [
        {task: ticks * place.placement.profile.compute_slices for task, ticks in place.durations.items()}
        for place in problem.places
    ]
    areas = [min(own[task] for own in work if task in own) for task in range(len(problem.batch.tasks))]
    groups = [branches_of(problem, gpus) for gpus in problem.groups]
    return FilledStarts(problem, groups, np.array(areas, float), lambda: (lower, upper))


def ticks(problem: IntegerBatch) -> tuple[int, int]:
    """Return a bound and the length of a schedule."""
    result = solve(problem.batch, "far")
    return problem.ticks.floor(result.lower_bound), problem.ticks.nearest(result.makespan)


@given(realistic_batches(max_tasks=12, max_gpus=4), st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_task_of_a_full_gpu_is_where_it_may_run(batch: Batch, over: bool) -> None:
    problem = IntegerBatch(batch.replace(gpus=max(2, batch.gpus), initial=()))
    drawn(problem, source_of(problem, *ticks(problem)), over=over)


@pytest.mark.parametrize("seed", range(4))
def test_every_task_gets_a_place_of_its_kind(seed: int) -> None:
    """Also those that run on one kind of GPU only."""
    batch = mixed_batch(Random(seed), 24, [Pool(A30, 2), Pool(A100, 1), Pool(SLOW_A30, 2)], missing=0.4, live=False)
    problem = IntegerBatch(batch)
    group = {gpu: number for number, gpus in enumerate(problem.groups) for gpu in gpus}
    runnable = {(group[place.gpu], task) for place in problem.places for task in place.durations}
    patterns = PatternStarts(problem, [(group, (task,)) for group, task in runnable])
    for source in (source_of(problem, *ticks(problem)), patterns):
        drawn(problem, source, seed)


@pytest.mark.parametrize("scaling", ["PoorScaling", "MixedScaling", "GoodScaling"])
def test_all_gpus_but_the_last_are_full_and_in_time(scaling: ScalingName) -> None:
    problem = IntegerBatch(generate_batch(75, scaling=scaling, gpus=3, seed=1))
    lower, upper = ticks(problem)
    places = drawn(problem, source_of(problem, lower, upper))
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
    for length, found in told(search, 3):
        assert length == problem.ticks.nearest(problem.nested(found).makespan)
    assert len(starts) == 1
