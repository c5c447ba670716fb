"""The horizon: a valid schedule ends there, no shorter one is lost, and what ends later changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Decisions, any_gpu, batches, decisions, late_things, spread_batches

from mig_opt import Batch, LiveInstance, OperationCosts, Schedule, Task, generate_batch, get_gpu, solve, validate
from mig_opt.batch.horizon import Horizon
from mig_opt.batch.integer_batch import IntegerBatch, Ticks
from mig_opt.batch.timing import timed_schedule

A30 = get_gpu("A30")


@given(st.one_of(batches(any_gpu, max_gpus=3), spread_batches()))
def test_a_valid_schedule_ends_there_and_is_one_of_the_problem(batch: Batch) -> None:
    horizon = Horizon.of(batch)
    assert validate(batch, horizon.schedule).valid
    assert horizon.schedule.makespan == pytest.approx(horizon.seconds, rel=1e-9, abs=1e-9)
    problem = IntegerBatch(batch)
    assert len(problem.places_of(horizon.schedule)) == len(batch.tasks)
    if problem.ticks.exact:
        assert problem.ticks.of_sum(horizon.schedule.makespan).denominator == 1


def lost(batch: Batch, schedule: Schedule) -> set[str]:
    """The tasks that a schedule runs where they cannot end by the horizon."""
    index = {task.name: number for number, task in enumerate(batch.tasks)}
    reached = {
        (place.gpu, place.placement.shape, task) for place in Horizon.of(batch).places for task in place.durations
    }
    shape = batch.gpu.placement
    return {
        run.task
        for run in schedule.runs
        if (run.gpu, shape(run.profile, run.start).shape, index[run.task]) not in reached
    }


@given(decisions())
def test_no_shorter_schedule_is_lost(case: Decisions) -> None:
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    horizon = Horizon.of(case.batch)
    # GPUs that nobody needs are left out.
    if schedule.makespan <= horizon.seconds and case.batch.gpus == horizon.batch.gpus:
        assert not lost(case.batch, schedule)


@given(spread_batches(), st.data())
def test_what_ends_later_changes_nothing(batch: Batch, data: st.DataObject) -> None:
    later = data.draw(late_things(batch))
    assert Ticks.of(later) == Ticks.of(batch)
    one, two = (Horizon.of(each) for each in (batch, later))
    assert one.seconds == two.seconds
    # GPUs that nobody needs may be left out of one of the two.
    alike = [
        {(place.placement, place.free is None, *place.durations.items()) for place in each.places}
        for each in (one, two)
    ]
    assert alike[0] == alike[1]


@pytest.mark.parametrize("far", [generate_batch(n, seed=n).replace(gpus=gpus) for n in (20, 200) for gpus in (1, 4)])
def test_it_is_not_far_from_the_best(far: Batch) -> None:
    makespan = solve(far, "far").makespan
    assert makespan is not None
    assert Horizon.of(far).seconds <= 1.3 * makespan


def test_operations_that_take_long_are_few() -> None:
    costs = OperationCosts({1: 1000.0, 2: 900.0, 4: 40.0}, {1: 10.0, 2: 25e3, 4: 30e3})
    tasks = Task("a", {1: 75e3, 2: 0.05, 4: 2.8}), Task("b", {1: 0.6, 4: 0.01}), Task("c", {1: 0.8, 4: 0.18})
    assert Horizon.of(Batch(tasks, A30, operations=costs)).seconds == pytest.approx(42.99)


@pytest.mark.parametrize(("free", "sizes"), [(86400.0, (1, 2)), (5.0, (1, 2, 4))])
def test_sizes_that_nobody_waits_for(free: float, sizes: tuple[int, ...]) -> None:
    """The least work is on four slices, of which one is busy: for a day nobody waits, for some seconds everybody."""
    tasks = tuple(Task(f"t{at}", {1: 8.0, 2: 5.0, 4: 1.5}) for at in range(4))
    batch = Batch(tasks, A30, initial=(LiveInstance(0, "1g.6gb", 0, free),))
    assert tuple(Horizon.of(batch).in_reach.tasks[0].times) == sizes
    for method in ("far", "list", "lpt", "search"):
        makespan = solve(batch, method, workers=1).makespan
        assert makespan is not None
        assert makespan < 40


def test_tasks_that_can_run_nowhere_do_not_count() -> None:
    nowhere = Task("nowhere", {1: 1.0}, memory_gb=20.0)
    one = Batch((Task("a", {1: 2.5}), nowhere), A30)
    assert Horizon.of(one).seconds == 2.61
    assert Ticks.of(one.replace(tasks=(nowhere,))).exact
