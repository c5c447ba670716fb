"""FAR's refinement: the paper's two figures by hand; no step makes any schedule longer; its guarantee holds."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_gpu, batches, realistic_batches, whole_seconds

from mig_opt import generate_batch, solve
from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import PlannedInstance
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import OperationCosts
from mig_opt.heuristics.batch.far import best_plans, best_published, far, far_printed, far_published, far_unrefined
from mig_opt.heuristics.batch.far.concatenation import EndState, far_behind
from mig_opt.heuristics.batch.far.refinement import Reading, Refinement
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.validation import validate

A30 = get_gpu("A30")
EPS = 2e-9
READINGS: tuple[tuple[Reading, bool], ...] = (
    ("margins", False),
    ("slacks", False),
    ("margins", True),
    ("slacks", True),
)


def refinement(tasks: dict[str, tuple[float, ...]], *, zero: bool = True, gpus: int = 1, **more: float) -> Refinement:
    """A refinement on A30s: for each placement (``2g@0``, or ``2g@0/1`` on GPU 1) the seconds of its tasks.

    A task can run on the size where it is; ``more`` are the gigabytes that tasks need, as ``t3=8``.
    """
    names = {profile.name[:2]: profile.name for profile in A30.profiles_of("base")}
    planned: list[Task] = []
    instances = [PlannedInstance(gpu, placement) for gpu in range(gpus) for placement in A30.placements()]
    for where, seconds in tasks.items():
        place, _, gpu = where.partition("/")
        placement = A30.placement(names[place[:2]], int(place[3:]))
        there = next(one for one in instances if (one.gpu, one.placement) == (int(gpu or 0), placement))
        for each in seconds:
            name = f"t{len(planned)}"
            planned.append(Task(name, {placement.profile.compute_slices: each}, more.get(name)))
            there.tasks.append(planned[-1])
    costs = OperationCosts.zero(A30) if zero else A30.operation_costs
    return Refinement(Batch(tuple(planned), A30, gpus, operations=costs), instances)


def refined(batch: Batch) -> tuple[Control, Refinement]:
    """A control that knows the schedules of phases 1 and 2, and the refinement of the last one."""
    control = Control[Schedule]()
    return control, Refinement(batch, best_plans(batch, control)[0].instances())


# By hand


def test_a_task_is_moved() -> None:
    # Figure 5: 1 s + 1 s before 4 s on one half, only 4 s on the other. The inner tasks fit nowhere, so it is the turn
    # of the outer ones: 1 s is below the margin of 2 s.
    found = refinement({"2g@0": (1.0, 1.0), "1g@0": (4.0,), "1g@1": (4.0,), "1g@2": (4.0,), "1g@3": (4.0,)})
    assert found.makespan == 6.0
    found.run(Control[Schedule]())
    assert (found.moves, found.swaps) == (1, 0)
    assert found.makespan == 5.0


def test_tasks_are_swapped() -> None:
    # Figure 6: 5 + 5 against 3 + 3. No task is shorter than the margin of 4; 5 for 3 is half of it.
    found = refinement({"2g@0": (5.0, 5.0), "2g@2": (3.0, 3.0)})
    found.run(Control[Schedule]())
    assert (found.moves, found.swaps) == (0, 1)
    assert found.makespan == 8.0


def test_a_step_that_only_looks_good_is_not_taken() -> None:
    # Moving 0.1 s to a new instance seems to end at 0.22 s, but that is created behind the first one: 0.24 + 0.1.
    # Without it the first would end at 0.22, too.
    found = refinement({"2g@0": (0.1, 0.1)}, zero=False)
    assert found.makespan == pytest.approx(0.32)
    found.run(Control[Schedule]())
    assert (found.moves, found.swaps) == (0, 0)
    assert found.makespan == pytest.approx(0.32)


def test_tasks_go_to_other_gpus() -> None:
    found = refinement({"2g@0": (3.0, 3.0), "2g@2": (6.0,), "2g@0/1": (1.0,)}, gpus=2)
    found.run(Control[Schedule]())
    # 3 s go beside the 1 s; the 6 s stay alone and decide, so there is nothing more to gain.
    assert found.makespan == 6.0
    found = refinement({"4g@0": (3.0, 3.0), "4g@0/1": (1.0,)}, gpus=2)
    found.run(Control[Schedule]())
    assert found.makespan == 4.0
    assert sorted((run.gpu, run.begin, run.end) for run in found.schedule().runs) == [(0, 0, 3), (1, 0, 3), (1, 3, 4)]


def test_memory_forbids_moves() -> None:
    gpu = get_gpu("A100")
    tasks = (Task("a", {1: 5.0}, 8), Task("b", {1: 5.0}, 8), Task("c", {1: 1.0}, 4))
    batch = Batch(tasks, gpu, operations=OperationCosts.zero(gpu))
    instances = [PlannedInstance(0, placement) for placement in gpu.placements("double-memory")]
    at = {str(instance.placement): instance.tasks for instance in instances}
    at["1g.10gb@0"] += tasks
    found = Refinement(batch, instances)
    found.run(Control[Schedule]())
    schedule = found.schedule()
    assert validate(batch, schedule).valid
    # One of the two moves to another 1g.10gb, the small task anywhere.
    assert schedule.makespan == 5.0
    assert {run.profile for run in schedule.runs if run.task in "ab"} == {"1g.10gb"}


def test_limits() -> None:
    tasks = {"4g@0": (1.0,) * 8, "4g@0/1": (0.5,)}
    found = refinement(tasks, gpus=2)
    found.run(Control[Schedule](), max_steps=2)
    assert found.moves == 2
    found = refinement(tasks, gpus=2)
    found.run(Control[Schedule](), min_improvement=0.2)
    assert found.moves == 1  # from 8 to 7, by an eighth
    found = refinement(tasks, gpus=2)
    found.run(Control[Schedule](RunOptions(time_limit=1e-9)))
    assert found.moves == 0


def test_a_time_limit_leaves_time_for_the_refinement() -> None:
    batch = generate_batch(30, scaling="PoorScaling", seed=4)
    whole = Control[Schedule](RunOptions(deterministic=True))
    far(batch, whole)
    first = Control[Schedule](RunOptions(deterministic=True))
    far_unrefined(batch, first)
    assert whole.objective is not None
    assert first.objective is not None
    assert whole.objective < first.objective
    # Time for the first allocation only, and a bit.
    control = Control[Schedule](RunOptions(deterministic=True, time_limit=first.clock / 100))
    far(batch, control)
    kept = Control[Schedule](RunOptions(deterministic=True, time_limit=first.clock / 100))
    far_unrefined(batch, kept)
    assert control.objective is not None
    assert kept.objective is not None
    assert control.objective <= kept.objective


# Any batches


@given(st.one_of(batches(any_gpu, max_tasks=14, max_gpus=3), realistic_batches(any_gpu, max_gpus=3)))
def test_far_is_never_worse_than_its_phase_2_and_at_least_as_good_as_every_step(batch: Batch) -> None:
    control, found = refined(batch)
    assert control.objective is not None
    found.run(Control[Schedule]())
    whole = Control[Schedule]()
    far(batch, whole)
    assert whole.plan is not None
    assert whole.plan.makespan <= min(control.objective, found.makespan) + 1e-8
    assert whole.plan.makespan <= control.objective
    assert validate(batch, whole.plan).violations == ()
    printed = Control[Schedule]()
    far_printed(batch, printed)
    assert printed.objective == pytest.approx(min(control.objective, found.makespan), abs=1e-8)
    published = Control[Schedule]()
    far_published(batch, published)
    assert published.objective is not None
    assert published.objective >= whole.plan.makespan - 1e-8
    assert published.plan is not None
    assert validate(batch, published.plan).violations == ()


@given(st.one_of(batches(max_tasks=14, max_gpus=3), realistic_batches()))
def test_every_step_is_a_valid_schedule_and_no_longer_than_the_one_before(batch: Batch) -> None:
    _, found = refined(batch)
    last, idle = inf, 0
    for steps in range(1, 200):
        reading, several = READINGS[steps % len(READINGS)]
        schedule = found.schedule()
        assert validate(batch, schedule).violations == ()
        assert schedule.makespan == pytest.approx(found.makespan, abs=1e-8)
        assert found.makespan <= last
        last = found.makespan
        found.run(Control[Schedule](), reading=reading, several=several, max_steps=steps)
        idle = 0 if found.moves + found.swaps == steps else idle + 1
        if idle == len(READINGS):
            break
    else:
        pytest.fail("it does not end")


# Section 5 of the paper: without operation costs, and if no task is slower on a larger instance.


@st.composite
def monotone(draw: st.DrawFn, name: str, gpus: int, most: int) -> Batch:
    gpu = get_gpu(name)
    times = st.one_of(whole_seconds, st.integers(1, 300).map(lambda n: n / 100))
    rows = draw(st.lists(st.lists(times, min_size=len(gpu.sizes), max_size=len(gpu.sizes)), min_size=1, max_size=most))
    tasks = tuple(
        Task(f"t{index}", dict(zip(gpu.sizes, sorted(row, reverse=True), strict=True)))
        for index, row in enumerate(rows)
    )
    return Batch(tasks, gpu, gpus, operations=OperationCosts.zero(gpu))


def within(batch: Batch, factor: float) -> None:
    best = solve(batch, "cp", workers=1)
    assert best.status == "optimal"
    assert best.makespan is not None
    for method in ("far-unrefined", "far-printed", "far"):
        makespan = solve(batch, method).makespan
        assert makespan is not None
        assert best.makespan - EPS <= makespan <= factor * best.makespan + EPS


@pytest.mark.deep
@given(monotone("A30", 1, 8))
@settings(max_examples=60)
def test_an_a30_takes_at_most_seven_quarters_of_the_optimum(batch: Batch) -> None:
    within(batch, 7 / 4)


@pytest.mark.deep
@given(st.sampled_from(["A100", "H100"]).flatmap(lambda name: monotone(name, 1, 8)))
@settings(max_examples=60)
def test_an_a100_takes_at_most_twice_the_optimum(batch: Batch) -> None:
    within(batch, 2)


# Behind another batch, as the authors' program


def ones(*seconds: float) -> Batch:
    """Tasks for one slice of an A30 each, operations without time."""
    tasks = tuple(Task(f"t{at}", {1: each}) for at, each in enumerate(seconds))
    return Batch(tasks, A30, operations=OperationCosts.zero(A30))


def behind(batch: Batch, *busy: float) -> tuple[int, int, list[list[float]]]:
    """Moves and swaps behind slices that are busy so long, and the seconds that each slice then runs, longest first."""
    plan = best_published(batch, Control[Schedule]())
    plan.refine_behind({(0, position): seconds for position, seconds in enumerate(busy)})
    loads: dict[int, list[float]] = {position: [] for position in range(4)}
    for instance in plan.instances():
        loads[instance.placement.start] += [task.times[1] for task in instance.tasks]
    return plan.moves, plan.swaps, list(loads.values())


def test_behind_a_busy_slice_a_task_moves_to_the_slice_that_is_idle_longest() -> None:
    # Slice 0 would end at 10 + 3; the others are idle for 13 - 3 seconds, and the first of them takes the task.
    assert behind(ones(3.0, 3.0, 3.0, 3.0), 10.0) == (1, 0, [[], [3.0, 3.0], [3.0], [3.0]])


def test_behind_a_busy_slice_tasks_are_swapped_if_none_fits() -> None:
    # Slice 0 would end at 3 + 5, and slice 1 is idle for 8 - 1 - 3: too short for the 5 seconds, so they are swapped.
    assert behind(ones(5.0, 3.0, 3.0, 3.0), 3.0, 1.0, 1.0, 1.0) == (0, 1, [[3.0], [5.0], [3.0], [3.0]])


def test_steps_behind_a_batch_keep_the_plan_that_they_started_from() -> None:
    plan = best_published(ones(3.0, 3.0, 3.0, 3.0), Control[Schedule]())
    before = plan.instances()
    other = plan.copy()
    other.refine_behind({(0, 0): 10.0})
    assert (plan.moves, other.moves) == (0, 1)
    assert plan.instances() == before != other.instances()


@given(batches(max_tasks=6), st.lists(st.integers(0, 9), min_size=8, max_size=8))
@settings(max_examples=40)
def test_schedules_that_fit_behind_others_are_valid(batch: Batch, busy: list[int]) -> None:
    batch = batch.replace(initial=())
    one = next(profile for profile in batch.gpu.profiles_of("base") if profile.compute_slices == 1)
    live = {(0, one.name, start): float(busy[start % 8]) for start in one.starts}
    for schedule in far_behind(batch, EndState(live), Control[Schedule]()):
        assert validate(batch, schedule).valid
