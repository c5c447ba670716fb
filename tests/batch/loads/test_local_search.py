"""The local search on the loads: its paths are right, never worse than the start, and decided by the seed."""

import itertools
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import batches, realistic_batches
from whole_problems import first_places, told

from mig_opt import Batch, GpuModel, LiveInstance, OperationCosts, Pool, Profile, Task, generate_batch, get_gpu, solve
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.local_search import LoadSearch, Start
from mig_opt.gpu.catalogue import add_gpu
from mig_opt.models.batch.subset_proof import SubsetTables


def makespan(problem: IntegerBatch, places: Sequence[int]) -> int:
    return problem.ticks.nearest(problem.nested(places).makespan)


def check(problem: IntegerBatch, places: list[int], length: int) -> None:
    assert all(task in problem.places[at].durations for task, at in enumerate(places))
    # Where times are rounded down, so are their sums.
    assert length == makespan(problem, places) or (not problem.ticks.exact and length < makespan(problem, places))


@pytest.mark.deep
@given(st.one_of(batches(), realistic_batches(max_gpus=4)), st.integers(0, 2**31 - 1), st.integers(1, 8))
@settings(max_examples=80)
def test_lengths_are_right_and_never_rise(batch: Batch, seed: int, free: int) -> None:
    problem = IntegerBatch(batch)
    start = first_places(problem)
    search = LoadSearch(problem, start, seed, 1)
    check(problem, search.places, search.length)
    before = makespan(problem, start)
    assert search.length <= before
    places = np.array(start, np.int64)
    for number in range(3):
        length = search.run(places, free, 4, seed + number, 0, 0)
        check(problem, places.tolist(), length)
        assert length <= before
        before = length


@given(realistic_batches(max_gpus=3), st.integers(0, 1000))
@settings(max_examples=40)
def test_a_perturbation_stays_within_its_slack(batch: Batch, slack: int) -> None:
    problem = IntegerBatch(batch)
    places = np.array(first_places(problem), np.int64)
    search = LoadSearch(problem, places.tolist(), 0, 1)
    before = search.run(places, 1, 0, 0, 0, 0)
    after = search.run(places, 6, 1, 1, 0, slack)
    check(problem, places.tolist(), after)
    assert after <= before + slack


@given(realistic_batches(max_tasks=12, max_gpus=2))
@settings(max_examples=10)
def test_cycles_tell_their_lengths_and_keep_the_best(batch: Batch) -> None:
    problem = IntegerBatch(batch)
    search = LoadSearch(problem, first_places(problem), 5, 2)
    cycles = search.cycles(0)
    best = search.length
    for results in itertools.islice(cycles, 3):
        for length, places in results:
            check(problem, places, length)
        best = min(best, *(length for length, _ in results))
        assert search.length == best
        check(problem, search.places, search.length)
    cycles.close()


@pytest.mark.deep
def test_a_seed_decides_everything() -> None:
    problem = IntegerBatch(generate_batch(18, gpus=2, seed=3))
    start = first_places(problem)

    one, same, other = (told(LoadSearch(problem, start, seed, 1), 5) for seed in (1, 1, 2))
    assert one == same != other


def test_many_tasks_begin_close_to_the_bound() -> None:
    # The search hardly ever brings many tasks back from expensive places: it must not begin with them there.
    batch = generate_batch(300, times="NarrowTimes", seed=1)
    problem = IntegerBatch(batch)
    search = LoadSearch(problem, first_places(problem), 0, 1)
    assert search.length < 1.001 * problem.ticks.floor(best_lower_bound(batch))


@pytest.mark.deep
@given(st.one_of(batches(max_tasks=7), realistic_batches(max_tasks=7, max_gpus=2)), st.data())
@settings(max_examples=80)
def test_a_round_with_every_task_finds_the_least_length(batch: Batch, data: st.DataObject) -> None:
    # The search counts what waits for the driver, and for live instances on other slices; the tables do not.
    batch = batch.replace(operations=OperationCosts.zero(batch.gpu))
    problem = IntegerBatch(batch)
    count = len(batch.tasks)
    able = [[at for at, place in enumerate(problem.places) if task in place.durations] for task in range(count)]
    start = [data.draw(st.sampled_from(places)) for places in able]
    highest = makespan(problem, start)
    tables = SubsetTables(problem, highest)
    assert tables.fill(1, lambda: False)
    search = LoadSearch(problem, start, 0, 1)
    places = np.array(start, np.int64)
    length = search.run(places, count, 1, data.draw(st.integers(0, 99)), 0, 0)
    check(problem, places.tolist(), length)
    assert length == tables.least or (problem.live and length > tables.least)


def test_places_that_are_left_out_are_not_used_again() -> None:
    problem = IntegerBatch(generate_batch(12, gpu="A30", seed=2))
    search = LoadSearch(problem, first_places(problem), 0, 2)
    cycles = search.cycles(0)
    next(cycles)
    forbidden = np.zeros((12, len(problem.places)), np.bool_)
    forbidden[np.arange(12), search.places] = True
    search.forbid(forbidden)
    check(problem, search.places, search.length)
    for results in itertools.islice(cycles, 4):
        for length, places in [*results, (search.length, search.places)]:
            check(problem, places, length)
            assert not forbidden[np.arange(12), places].any()
    cycles.close()


def test_fresh_starts_have_no_task_where_it_cannot_run() -> None:
    """Four of the slices have no price, so places there seem to cost nothing."""
    tasks = [*(Task(f"t{at}", {4: 1.0 + at}) for at in range(20)), *(Task(f"s{at}", {1: 0.1}) for at in range(3))]
    problem = IntegerBatch(Batch(tuple(tasks), get_gpu("A100"), initial=(LiveInstance(0, "1g.5gb", 5, 1.0),)))
    search = LoadSearch(problem, first_places(problem), 0, 1)
    places = search.fresh(np.random.default_rng(0), np.arange(23))
    assert search.possible[np.arange(23), places].all()


def test_what_a_thread_raises_is_raised_and_what_it_found_is_told() -> None:
    problem = IntegerBatch(generate_batch(16, gpus=2, seed=2))
    search = LoadSearch(problem, first_places(problem), 0, 2)
    found = told(search, 2) + search.collected()
    assert not search.collected()
    assert search.length == min(length for length, _ in found)

    def draw(*_: object) -> Start:
        raise RuntimeError("no start")

    search.start_from(draw, at_once=True)
    with pytest.raises(RuntimeError, match="no start"):
        next(search.cycles(0))


def test_threads_go_on_after_a_pause() -> None:
    """No thread and no best assignment is lost by the end of a call, or by leaving out places."""
    problem = IntegerBatch(generate_batch(16, gpus=2, seed=2))
    search = LoadSearch(problem, first_places(problem), 0, 3)
    for calls in range(3):
        search.active = 3 - calls
        before, cycles = search.length, search.cycles(0)
        lengths = [length for results in itertools.islice(cycles, 6) for length, _ in results]
        search.forbid(np.zeros((16, len(problem.places)), np.bool_))
        assert next(cycles)
        cycles.close()
        assert search.length <= min([before, *lengths])
        check(problem, search.places, search.length)


@pytest.mark.parametrize("workers", [1, 2])
def test_it_goes_on_from_what_others_have_found(workers: int) -> None:
    problem = IntegerBatch(generate_batch(20, seed=2))
    other = LoadSearch(problem, first_places(problem), 1, 1)
    told(other, 5)
    search = LoadSearch(problem, first_places(problem), 0, workers)
    assert other.length < search.length
    forbidden = np.zeros((20, len(problem.places)), np.bool_)
    forbidden[0, other.places[0]] = True
    search.forbid(forbidden)
    search.go_on_from(other.places)
    assert search.length > other.length
    search = LoadSearch(problem, first_places(problem), 0, workers)
    search.go_on_from(other.places)
    assert search.best == other.best
    # No thread is behind its start by more than what is accepted.
    assert all(length < other.length * 1.003 for length, _ in told(search, 1))


def test_a_task_keeps_its_last_place() -> None:
    problem = IntegerBatch(generate_batch(4, gpu="A30", seed=2))
    search = LoadSearch(problem, first_places(problem), 0, 1)
    before = search.length, search.places
    search.forbid(np.ones((4, len(problem.places)), np.bool_))
    assert (search.length, search.places) == before


@pytest.mark.deep
def test_it_gets_away_from_a_task_that_ends_last_by_itself() -> None:
    """One task of 97.188 s ends at 97.348 s on one slice: all else fits beside it, and nothing near is shorter."""
    batch = generate_batch(60, scaling="PoorScaling", gpus=4, seed=1)
    (longest,) = (task for task in batch.tasks if task.times[1] == 97.188)
    result = solve(batch, "search", time_limit=20.0, deterministic=True)
    assert result.makespan < longest.times[1] + batch.operations.create[1]
    (run,) = (run for run in result.schedule.runs if run.task == longest.name)
    assert not run.profile.startswith("1g")


SIZES = (1, 2, 4, 8, 16, 32)
PROFILES = tuple(Profile(f"{n}g.{n}gb", n, n, n, float(n), 32 // n, tuple(range(0, 32, n))) for n in SIZES)
COSTS = OperationCosts(dict.fromkeys(SIZES, 0.1), {n: 0.5 * n for n in SIZES})
WIDE = add_gpu(GpuModel("wide", "wide", 32.0, 32, 32, PROFILES, COSTS))
"""A GPU with more places than are timed: there the longest path counts."""


def test_a_gpu_with_more_places_than_are_timed_beside_one_with_fewer() -> None:
    """Nothing is read or written beside the arrays, and the next draw finds a place for each task."""
    rng, small = Random(1), get_gpu("A30")
    scales = [(rng.uniform(5, 40), rng.uniform(0.6, 1.1)) for _ in range(20)]

    def times(work: float, how: float) -> dict[str, dict[int, float]]:
        on_wide = {n: round(4 * work / n**how, 2) for n in SIZES}
        return {"A30": {n: round(work / n**0.9, 2) for n in small.sizes}, "wide": on_wide}

    tasks = tuple(Task(f"t{at}", times(*scale)) for at, scale in enumerate(scales))
    batch = Batch(tasks, pools=(Pool(small, 1), Pool(WIDE, 1)))
    problem = IntegerBatch(batch)
    assert len(problem.places) > 62
    search = LoadSearch(problem, first_places(problem), 0, 1)
    assert all(length <= makespan(problem, found) for length, found in told(search, 3))
    places, before = np.array(search.places), search.length
    for seed in range(5):
        length = search.run(places, 9, 60, seed, 0, 0)
        assert length <= min(before, makespan(problem, places.tolist()))
        before = length
