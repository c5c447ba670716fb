"""FAR: the family by hand, and on random batches schedules that are valid and no worse for the shortcuts."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from strategies import any_gpu, batches, realistic_batches, tiny_batches

from mig_opt import generate_batch, solve
from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.bounds import lower_bounds
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import OperationCosts, Placement
from mig_opt.heuristics.batch.far import far, far_unrefined
from mig_opt.heuristics.batch.far.repartitioning import AllocationFamily, Repartitioning
from mig_opt.method.control import Control
from mig_opt.models.batch.brute_force import brute_force
from mig_opt.validation import validate

A30, A100 = get_gpu("A30"), get_gpu("A100")
EPS = 2e-9


def run_far(batch: Batch, *, refine: bool = True) -> Schedule:
    control = Control[Schedule]()
    (far if refine else far_unrefined)(batch, control)
    assert control.plan is not None
    return control.plan


def unskipped(batch: Batch) -> Schedule:
    """The schedule of phases 1 and 2 if every allocation is planned to its end."""
    control, family, least = Control[Schedule](), AllocationFamily(batch), inf
    while True:
        plan = Repartitioning(batch).plan(family)
        if plan is not None and plan.makespan < least:
            least = plan.makespan
            control.report_plan(plan.schedule())
        if not family.advance():
            break
    assert control.plan is not None
    return control.plan


def allocation(family: AllocationFamily, batch: Batch) -> dict[str, str]:
    return {batch.tasks[at].name: profile.name for profile, group in family.groups.items() for _, at in group}


def allocations(batch: Batch) -> list[dict[str, str]]:
    family = AllocationFamily(batch)
    found = [allocation(family, batch)]
    while family.advance():
        found.append(allocation(family, batch))
    return found


# By hand


def test_the_tiny_instance(tiny_batch: Batch) -> None:
    schedule = run_far(tiny_batch, refine=False)
    # The 2g of left is created before the 1g of right, 0.12 s later than in the best schedule.
    assert schedule.runs == (
        Run("big", 0, "4g.24gb", 0, 0.13, 2.13),
        Run("left", 0, "2g.12gb", 0, 2.35, 5.35),
        Run("right", 0, "1g.6gb", 2, 2.46, 6.46),
    )
    assert schedule.makespan == tiny.FAR
    assert [(o.kind, o.profile) for o in schedule.operations or ()] == [
        ("create", "4g.24gb"),
        ("destroy", "4g.24gb"),
        ("create", "2g.12gb"),
        ("create", "1g.6gb"),
    ]


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
    batch = Batch((Task("a", times),), A30)
    assert [found["a"][:2] for found in allocations(batch)] == steps


def test_the_instance_that_is_free_first_takes_the_longest_task() -> None:
    zero = OperationCosts.zero(A30)
    tasks = tuple(Task(f"t{seconds}", {2: float(seconds)}) for seconds in (2, 3, 5, 4))
    schedule = run_far(Batch(tasks, A30, operations=zero))
    # 5 and 4 first; 3 follows 4, 2 follows 5: both halves end at 7.
    assert [(run.task, run.start, run.begin) for run in schedule.runs] == [
        ("t5", 0, 0.0),
        ("t4", 2, 0.0),
        ("t3", 2, 4.0),
        ("t2", 0, 5.0),
    ]


def test_of_two_that_are_free_at_once_the_one_that_has_been_longer_takes_the_next_task() -> None:
    zero = OperationCosts.zero(A30)
    batch = Batch((Task("a", {2: 2.0}), Task("b", {2: 2.0}), Task("c", {2: 1.0})), A30, operations=zero)
    assert [(run.task, run.start) for run in run_far(batch).runs] == [("a", 0), ("b", 2), ("c", 0)]


def test_allocations_that_can_still_win_are_not_skipped() -> None:
    # First allocation: wide on 2g (4), long alone on a slice (4.1), the other two after each other (4): 4.1, and the
    # area says 16.1 / 4 = 4.025. Second: long on 2g (2.06), then the others side by side: 4.06. The area is 16.12 / 4 =
    # 4.03, the longest task 4: both are close to 4.1, but below.
    tasks = (Task("wide", {2: 4.0}), Task("long", {1: 4.1, 2: 2.06}), Task("c", {1: 2.0}), Task("d", {1: 2.0}))
    batch = Batch(tasks, A30, operations=OperationCosts.zero(A30))
    control = Control[Schedule]()
    far_unrefined(batch, control)
    assert [point.makespan for point in control.trajectory] == [4.1, 4.06]


@pytest.mark.parametrize("n", [7, 100])
@pytest.mark.parametrize("method", ["far", "search", "cp", "milp", "brute-force"])
def test_phases_1_and_2_are_done_whatever_the_limit(method: str, n: int) -> None:
    batch = generate_batch(n, seed=2)
    unlimited, limited = solve(batch, "far-unrefined"), solve(batch, method, time_limit=1e-9)
    assert unlimited.makespan is not None
    assert limited.makespan is not None
    assert limited.makespan <= unlimited.makespan


# Any batches


@given(st.one_of(batches(any_gpu, max_tasks=12, max_gpus=3), realistic_batches(any_gpu, max_gpus=3)))
def test_schedules_are_valid_and_not_below_the_bounds(batch: Batch) -> None:
    schedule = run_far(batch)
    assert validate(batch, schedule).violations == ()
    for bound in lower_bounds(batch):
        assert bound.value <= schedule.makespan + EPS


@given(tiny_batches)
def test_never_better_than_the_optimum(batch: Batch) -> None:
    control = Control[Schedule]()
    brute_force(batch, control)
    assert control.objective is not None
    assert run_far(batch).makespan >= control.objective - EPS


@given(st.one_of(batches(max_tasks=14, max_gpus=3), realistic_batches(), realistic_batches(any_gpu, max_gpus=3)))
def test_skipping_changes_nothing(batch: Batch) -> None:
    assert run_far(batch, refine=False) == unskipped(batch)


@given(batches(any_gpu, max_tasks=10))
def test_along_the_family_area_never_falls_and_the_longest_task_never_grows(batch: Batch) -> None:
    family = AllocationFamily(batch)
    points = [(family.area, family.longest)]
    steps = 0
    while family.advance():
        points.append((family.area, family.longest))
        steps += 1
        allocated = [(at, -minus, p) for p, group in family.groups.items() for minus, at in group]
        assert sorted(at for at, _, _ in allocated) == list(range(len(batch.tasks)))
        assert all(batch.tasks[at].time_on(profile) == seconds for at, seconds, profile in allocated)
        assert family.longest == max(seconds for _, seconds, _ in allocated)
        assert family.area == pytest.approx(sum(p.compute_slices * seconds for _, seconds, p in allocated))
    assert steps <= (len(batch.gpu.profiles_of(batch.profile_set)) - 1) * len(batch.tasks)
    for (area, longest), (more, shorter) in pairwise(points):
        assert more >= area * (1 - 1e-9)
        assert shorter <= longest


@given(st.one_of(batches(max_tasks=12), realistic_batches(max_tasks=12)))
def test_plans_know_their_makespan(batch: Batch) -> None:
    """The search decides by the makespan that comes out, but for destructions that are removed in the end."""
    family, repartitioning = AllocationFamily(batch), Repartitioning(batch)
    more = True
    while more:
        plan = repartitioning.plan(family)
        assert plan is not None
        schedule = plan.schedule()
        assert validate(batch, schedule).violations == ()
        assert plan.makespan >= schedule.makespan - EPS
        if batch.parallel_operations or not any(batch.operations.destroy.values()):
            assert plan.makespan == pytest.approx(schedule.makespan, abs=1e-8)
        more = family.advance()


@given(st.data(), st.one_of(batches(max_tasks=12), realistic_batches()))
def test_a_plan_is_given_up_only_if_it_reaches_the_limit(data: st.DataObject, batch: Batch) -> None:
    family, repartitioning = AllocationFamily(batch), Repartitioning(batch)
    for _ in range(data.draw(st.integers(0, 5))):
        family.advance()
    whole = repartitioning.plan(family)
    assert whole is not None
    share = data.draw(st.sampled_from([0.3, 0.7, 0.95, 0.9999, 1.0, 1.0001, 1.05, 2.0]))
    plan = repartitioning.plan(family, stop_at=whole.makespan * share)
    assert (plan is not None) == (share > 1)
    if plan is not None:
        assert plan.makespan == whole.makespan


@given(st.one_of(batches(max_tasks=10), realistic_batches()))
def test_no_operation_is_spent_for_nothing(batch: Batch) -> None:
    schedule = run_far(batch)
    operations = schedule.operations or ()

    def place(entry: Operation | Run) -> Placement:
        return batch.gpu.placement(entry.profile, entry.start)

    for index, operation in enumerate(operations):
        if operation.kind == "create":
            assert any(
                (run.gpu, run.profile, run.start) == (operation.gpu, operation.profile, operation.start)
                and run.begin >= operation.end - EPS
                for run in schedule.runs
            )
        else:
            assert any(
                later.kind == "create" and later.gpu == operation.gpu and place(later).conflicts(place(operation))
                for later in operations[index + 1 :]
            )
    # The order of repartitioning goes down the tree, so nothing is created twice.
    created = [(o.gpu, place(o).shape) for o in operations if o.kind == "create"]
    assert len(created) == len(set(created))
    # Section 3.2 of the paper: at most one reconfiguration for each inner node of the tree (and each live instance).
    tree = batch.gpu.repartition_tree(batch.profile_set)
    inner = sum(tree.out_degree(node) > 0 for node in tree)
    assert sum(o.kind == "destroy" for o in operations) <= batch.gpus * inner + len(batch.initial)
