"""FAR and its refinement: the paper's figures by hand; valid, no worse for shortcuts and steps, as good as promised."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Any

import pytest
import tiny
from controlled import controlled
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import A30, any_gpu, batches, realistic_batches, whole_seconds

from mig_opt import Batch, OperationCosts, Schedule, Task, generate_batch, get_gpu, solve
from mig_opt.batch.bounds import lower_bounds
from mig_opt.batch.timing import PlannedInstance
from mig_opt.heuristics.batch.far import best_plans, best_published, far, far_printed, far_published, far_unrefined
from mig_opt.heuristics.batch.far.concatenation import EndState, far_behind
from mig_opt.heuristics.batch.far.refinement import Reading, Refinement
from mig_opt.heuristics.batch.far.repartitioning import AllocationFamily, Repartitioning, RepartitionPlan
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.validation import validate

EPS = 2e-9


def run_far(batch: Batch, *, refine: bool = True) -> Schedule:
    return controlled(far if refine else far_unrefined, batch).plan


def unskipped(batch: Batch) -> Schedule:
    """The schedule of phases 1 and 2 if every allocation is planned to its end."""
    control, least = Control[Schedule](), inf
    for family in families(batch):
        plan = RepartitionPlan(Repartitioning(batch), family)
        if plan.makespan < least:
            least = plan.makespan
            control.report_plan(plan.schedule())
    return control.plan


def families(batch: Batch) -> Iterator[AllocationFamily]:
    """The family, at each of its allocations."""
    family = AllocationFamily(batch)
    yield family
    while family.advance():
        yield family


def test_a_gpu_that_has_slices_for_no_smallest_instance() -> None:
    small, large, whole = (profile for profile in A30.profiles if not profile.attributes)
    gpu = replace(A30, name="gap", profiles=(replace(small, starts=(0, 1), max_count=2), large, whole))
    batch = Batch(tuple(Task(name, {1: 3.0, 2: 1.0}) for name in "abc"), gpu)
    assert controlled(far_published, batch).plan.makespan == 2.12


@pytest.mark.parametrize(
    ("times", "steps"),
    [
        ({1: 8.0, 2: 4.0, 4: 2.0}, ["1g", "2g", "4g"]),  # linear: of equal work the smallest first
        ({1: 8.0, 2: 3.0, 4: 2.0}, ["2g", "4g"]),  # super-linear from 1 to 2: 1g is never of use
        ({1: 8.0, 2: 9.0, 4: 4.0}, ["1g", "4g"]),  # slower on 2g: passed over
        ({1: 8.0, 2: 8.0, 4: 8.0}, ["1g", "2g", "4g"]),  # equally fast: any larger size belongs to the family
        ({1: 8.0, 2: 4.0, 4: 4.0}, ["1g", "2g", "4g"]),
        ({1: 8.0, 2: 7.0, 4: 3.0}, ["1g", "4g"]),  # 2g is faster, but 4g has less work: 12 < 14
        ({2: 7.0}, ["2g"]),
    ],
)
def test_the_sizes_that_a_task_goes_through(times: dict[int, float], steps: list[str]) -> None:
    found = families(Batch((Task("a", times),), A30))
    assert [profile.name[:2] for family in found for profile, group in family.groups.items() if group] == steps


def test_the_instance_that_is_free_first_takes_the_longest_task() -> None:
    zero = OperationCosts.zero(A30)
    tasks = tuple(Task(f"t{seconds}", {2: float(seconds)}) for seconds in (2, 3, 5, 4))
    schedule = run_far(Batch(tasks, A30, operations=zero))
    # 5 and 4 first; 3 follows 4, 2 follows 5: both halves end at 7.
    found = [(run.task, run.start, run.begin) for run in schedule.runs]
    assert found == [("t5", 0, 0.0), ("t4", 2, 0.0), ("t3", 2, 4.0), ("t2", 0, 5.0)]
    # Of two that are free at once it is the one that has been longer.
    batch = Batch((Task("a", {2: 2.0}), Task("b", {2: 2.0}), Task("c", {2: 1.0})), A30, operations=zero)
    assert [(run.task, run.start) for run in run_far(batch).runs] == [("a", 0), ("b", 2), ("c", 0)]
    # The 2g of left is created before the 1g of right, 0.12 s later than in the best schedule.
    assert run_far(tiny.BATCH, refine=False) == tiny.FAR_UNREFINED


@pytest.mark.parametrize("n", [7, 100])
@pytest.mark.parametrize("method", ["far", "search", "cp", "milp", "brute-force"])
def test_phases_1_and_2_are_done_whatever_the_limit(method: str, n: int) -> None:
    batch = generate_batch(n, seed=2)
    unlimited, limited = solve(batch, "far-unrefined"), solve(batch, method, time_limit=1e-9)
    assert limited.makespan <= unlimited.makespan


@given(st.one_of(batches(max_tasks=14, max_gpus=3), realistic_batches(), realistic_batches(any_gpu, max_gpus=3)))
def test_skipping_changes_nothing(batch: Batch) -> None:
    assert run_far(batch, refine=False) == unskipped(batch)


@given(batches(any_gpu, max_tasks=10))
def test_along_the_family_area_never_falls_and_the_longest_task_never_grows(batch: Batch) -> None:
    points = []
    for family in families(batch):
        points.append((family.area, family.longest))
        allocated = [(at, -minus, p) for p, group in family.groups.items() for minus, at in group]
        assert sorted(at for at, _, _ in allocated) == list(range(len(batch.tasks)))
        assert all(batch.tasks[at].time_on(profile) == seconds for at, seconds, profile in allocated)
        assert family.longest == max(seconds for _, seconds, _ in allocated)
        assert family.area == pytest.approx(sum(p.compute_slices * seconds for _, seconds, p in allocated))
    assert len(points) - 1 <= (len(batch.gpu.profiles_of(batch.profile_set)) - 1) * len(batch.tasks)
    for (area, longest), (more, shorter) in pairwise(points):
        assert more >= area * (1 - 1e-9)
        assert shorter <= longest


@given(st.one_of(batches(max_tasks=12), realistic_batches(max_tasks=12)))
def test_plans_know_their_makespan(batch: Batch) -> None:
    """The search decides by the makespan that comes out, but for destructions that are removed in the end."""
    repartitioning = Repartitioning(batch)
    for family in families(batch):
        plan = RepartitionPlan(repartitioning, family)
        schedule = plan.schedule()
        assert validate(batch, schedule).violations == ()
        assert plan.makespan >= schedule.makespan - EPS
        if batch.parallel_operations or not any(batch.operations.destroy.values()):
            assert plan.makespan == pytest.approx(schedule.makespan, abs=1e-8)


READINGS: list[tuple[Reading, bool]] = [(name, several) for several in (False, True) for name in ("margins", "slacks")]


def refinement(tasks: dict[str, tuple[float, ...]], *, gpus: int = 1) -> Refinement:
    """A refinement on A30s: for each placement (``2g@0``, or ``2g@0/1`` on GPU 1) the seconds of its tasks.

    A task can run on the size where it is.
    """
    names = {profile.name[:2]: profile.name for profile in A30.profiles_of("base")}
    planned: list[Task] = []
    instances = [PlannedInstance(gpu, placement) for gpu in range(gpus) for placement in A30.placements()]
    for where, seconds in tasks.items():
        place, _, gpu = where.partition("/")
        placement = A30.placement(names[place[:2]], int(place[3:]))
        there = next(one for one in instances if (one.gpu, one.placement) == (int(gpu or 0), placement))
        for each in seconds:
            planned.append(Task(f"t{len(planned)}", {placement.profile.compute_slices: each}))
            there.tasks.append(planned[-1])
    return Refinement(Batch(tuple(planned), A30, gpus, operations=OperationCosts.zero(A30)), instances)


def refined(batch: Batch) -> tuple[Control, Refinement]:
    """A control that knows the schedules of phases 1 and 2, and the refinement of the last one."""
    control = Control[Schedule]()
    return control, Refinement(batch, best_plans(batch, control)[0].instances())


def run(found: Refinement, **limits: Any) -> Refinement:
    """The same after its run."""
    found.run(Control[Schedule](), **limits)
    return found


def test_a_task_is_moved() -> None:
    # Figure 5: 1 s + 1 s before 4 s on one half, only 4 s on the other. The inner tasks fit nowhere, so it is the turn
    # of the outer ones: 1 s is below the margin of 2 s.
    found = refinement({"2g@0": (1.0, 1.0), "1g@0": (4.0,), "1g@1": (4.0,), "1g@2": (4.0,), "1g@3": (4.0,)})
    assert found.makespan == 6.0
    run(found)
    assert (found.moves, found.swaps, found.makespan) == (1, 0, 5.0)


def test_tasks_are_swapped() -> None:
    # Figure 6: 5 + 5 against 3 + 3. No task is shorter than the margin of 4; 5 for 3 is half of it.
    found = run(refinement({"2g@0": (5.0, 5.0), "2g@2": (3.0, 3.0)}))
    assert (found.moves, found.swaps, found.makespan) == (0, 1, 8.0)


def test_tasks_go_to_other_gpus() -> None:
    # 3 s go beside the 1 s; the 6 s stay alone and decide, so there is nothing more to gain.
    assert run(refinement({"2g@0": (3.0, 3.0), "2g@2": (6.0,), "2g@0/1": (1.0,)}, gpus=2)).makespan == 6.0
    found = run(refinement({"4g@0": (3.0, 3.0), "4g@0/1": (1.0,)}, gpus=2))
    assert found.makespan == 4.0
    assert sorted((run.gpu, run.begin, run.end) for run in found.schedule().runs) == [(0, 0, 3), (1, 0, 3), (1, 3, 4)]


def test_memory_forbids_moves() -> None:
    gpu = get_gpu("A100")
    tasks = (Task("a", {1: 5.0}, 8), Task("b", {1: 5.0}, 8), Task("c", {1: 1.0}, 4))
    batch = Batch(tasks, gpu, operations=OperationCosts.zero(gpu))
    places = gpu.placement("1g.10gb", 0), gpu.placement("1g.5gb", 2), gpu.placement("1g.5gb", 3)
    instances = [PlannedInstance(0, placement) for placement in places]
    instances[0].tasks += tasks
    schedule = run(Refinement(batch, instances)).schedule()
    assert validate(batch, schedule).valid
    # Only the small task moves; with room for the others it would be 5 s.
    assert schedule.makespan == 10.0


def test_limits() -> None:
    tasks = {"4g@0": (1.0,) * 8, "4g@0/1": (0.5,)}
    assert run(refinement(tasks, gpus=2), max_steps=2).moves == 2
    assert run(refinement(tasks, gpus=2), min_improvement=0.2).moves == 1  # from 8 to 7, by an eighth
    found = refinement(tasks, gpus=2)
    found.run(Control[Schedule](RunOptions(time_limit=1e-9)))
    assert found.moves == 0


def test_a_time_limit_leaves_time_for_the_refinement() -> None:
    batch = generate_batch(30, scaling="PoorScaling", seed=4)
    whole, first = (controlled(method, batch, deterministic=True) for method in (far, far_unrefined))
    assert whole.objective < first.objective
    # Time for the first allocation only, and a bit.
    limit = first.clock / 100
    both = [controlled(method, batch, deterministic=True, time_limit=limit) for method in (far, far_unrefined)]
    assert both[0].objective <= both[1].objective


@given(st.one_of(batches(any_gpu, max_tasks=14, max_gpus=3), realistic_batches(any_gpu, max_gpus=3)))
def test_far_is_valid_never_below_a_bound_nor_worse_than_its_phase_2_or_any_step(batch: Batch) -> None:
    control, found = refined(batch)
    best = min(control.objective, run(found).makespan)
    whole, printed, published = (controlled(method, batch) for method in (far, far_printed, far_published))
    assert whole.objective <= best + 1e-8
    assert whole.objective <= control.objective
    assert printed.objective == pytest.approx(best, abs=1e-8)
    assert published.objective >= whole.objective - 1e-8
    for each in (whole, published):
        assert validate(batch, each.plan).violations == ()
    for bound in lower_bounds(batch):
        assert 0 < bound.value <= whole.objective + EPS, bound


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
        run(found, reading=reading, several=several, max_steps=steps)
        idle = 0 if found.moves + found.swaps == steps else idle + 1
        if idle == len(READINGS):
            break
    else:
        pytest.fail("it does not end")


@st.composite
def monotone(draw: st.DrawFn, *names: str) -> Batch:
    """As in section 5 of the paper: without operation costs, and no task is slower on a larger instance."""
    gpu = get_gpu(draw(st.sampled_from(names)))
    times = st.one_of(whole_seconds, st.integers(1, 300).map(lambda n: n / 100))
    rows = draw(st.lists(st.lists(times, min_size=len(gpu.sizes), max_size=len(gpu.sizes)), min_size=1, max_size=8))
    tasks = tuple(
        Task(f"t{index}", dict(zip(gpu.sizes, sorted(row, reverse=True), strict=True)))
        for index, row in enumerate(rows)
    )
    return Batch(tasks, gpu, operations=OperationCosts.zero(gpu))


@pytest.mark.deep
@given(st.one_of(monotone("A30"), monotone("A100", "H100")))
@settings(max_examples=120)
def test_an_a30_takes_at_most_seven_quarters_of_the_optimum_and_larger_gpus_twice_as_long(batch: Batch) -> None:
    best, factor = solve(batch, "cp", workers=1), 7 / 4 if batch.gpu == A30 else 2
    assert best.status == "optimal"
    for method in ("far-unrefined", "far-printed", "far"):
        assert best.makespan - EPS <= solve(batch, method).makespan <= factor * best.makespan + EPS


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


def test_behind_a_busy_slice_a_task_moves_to_the_slice_that_is_idle_longest_or_is_swapped() -> None:
    # Slice 0 would end at 10 + 3; the others are idle for 13 - 3 seconds, and the first of them takes the task.
    assert behind(ones(3.0, 3.0, 3.0, 3.0), 10.0) == (1, 0, [[], [3.0, 3.0], [3.0], [3.0]])
    # Slice 0 would end at 3 + 5, and slice 1 is idle for 8 - 1 - 3: too short for the 5 seconds, so they are swapped.
    assert behind(ones(5.0, 3.0, 3.0, 3.0), 3.0, 1.0, 1.0, 1.0) == (0, 1, [[3.0], [5.0], [3.0], [3.0]])


def test_steps_behind_a_batch_keep_the_plan_that_they_started_from() -> None:
    plan = best_published(ones(3.0, 3.0, 3.0, 3.0), Control[Schedule]())
    before = plan.instances()
    other = plan.copy()
    other.refine({(0, 0): 10.0}, over=lambda: True)  # when the time is up there are no steps
    other.refine_behind({(0, 0): 10.0})
    assert (plan.moves, other.moves) == (0, 1)
    assert plan.instances() == before != other.instances()
    late = Control[Schedule](RunOptions(time_limit=1e-9))
    assert len(set(far_behind(ones(3.0, 3.0, 3.0, 3.0), EndState({(0, "1g.6gb", 0): 10.0}), late))) == 1


@given(batches(max_tasks=6), st.lists(st.integers(0, 9), min_size=8, max_size=8))
@settings(max_examples=40)
def test_schedules_that_fit_behind_others_are_valid(batch: Batch, busy: list[int]) -> None:
    batch = batch.replace(initial=())
    one = next(profile for profile in batch.gpu.profiles_of("base") if profile.compute_slices == 1)
    live = {(0, one.name, start): float(busy[start % 8]) for start in one.starts}
    for schedule in far_behind(batch, EndState(live), Control[Schedule]()):
        assert validate(batch, schedule).valid
