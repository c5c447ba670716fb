"""A long time that no short schedule has, in a task, an operation or an instance, changes nothing."""

from pathlib import Path

import pytest
from command_line import Command
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import late_things, spread_batches

from mig_opt import InputError, Status, check, explain, get_gpu, load, plan_stream, prove, solve, write
from mig_opt.api.change import plan_change
from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.gpu.model import OperationCosts
from mig_opt.serving.deployment import Deployment, Segment

A30, RODINIA = get_gpu("A30"), load("rodinia-a30")
OPTIMUM = 28.43392
DAY, YEARS = 86400.0, 1e8


def busy(gpu: int, free: float) -> Batch:
    return RODINIA.replace(gpus=2, initial=(LiveInstance(gpu, "4g.24gb", 0, free),))


def useless_size(seconds: float) -> Batch:
    first, *others = RODINIA.tasks
    times = {size: time for size, time in first.times.items() if size != 4}
    return RODINIA.replace(tasks=(Task(first.name, {**times, 4: seconds}), *others))


CASES = {"one GPU busy for a day": busy(1, DAY), "the first GPU": busy(0, DAY), "for years": busy(1, YEARS)}
CASES |= {"a useless size": useless_size(YEARS), "useless digits": useless_size(1000.123456789)}


@pytest.mark.parametrize("case", CASES)
def test_second_proofs_and_explanations(case: str) -> None:
    batch, schedule = CASES[case], solve(CASES[case], workers=1).schedule
    certificate = prove(batch, schedule, "cp", workers=1)
    assert (certificate.claim.value, certificate.exact) == ("proved", True)
    assert check(batch, schedule, certificate).holds
    explanation = explain(batch, 28.4, workers=1, time_limit=5)
    assert explanation.verdict.value == "impossible"
    assert explanation.lower_bound == pytest.approx(OPTIMUM, abs=0.04)


def test_a_single_task_is_proven_by_its_bound() -> None:
    batch = Batch((Task("a", {1: 1.329244, 4: 1000.000001}),), A30)
    for method in ("cp", "milp", "far", "list"):
        result = solve(batch, method)
        assert (result.status, result.makespan, result.lower_bound) == (Status.OPTIMAL, 1.439244, 1.439244)
    # As a number its speedup on 4 slices is 0.
    assert solve(Batch((Task("a", {1: 1e-300, 4: 1e30}, memory_gb=8.0),), A30), "miso-opt").makespan == 1e30


def test_operations_that_nobody_can_wait_for() -> None:
    costs = OperationCosts({**A30.operation_costs.create, 4: YEARS}, {**A30.operation_costs.destroy, 4: YEARS})
    tasks = tuple(Task(f"t{at}", {1: 8.0, 2: 5.0 + at / 7, 4: 1.0}) for at in range(4))
    late = solve(Batch(tasks, A30, operations=costs), workers=1)
    without = tuple(Task(task.name, {size: task.times[size] for size in (1, 2)}) for task in tasks)
    best = solve(Batch(without, A30), workers=1)
    assert (late.status, late.makespan) == (best.status, best.makespan)


def test_a_schedule_that_is_longer_than_need_be_is_not_optimal() -> None:
    """Its makespan is no whole number of the ticks in which others are counted."""
    batch = Batch((Task("a", {1: 10.0, 2: 10.4}),), A30, operations=OperationCosts.zero(A30))
    longer = solve(batch.replace(tasks=(Task("a", {2: 10.4}),))).schedule
    found = prove(batch, longer, "cp")
    assert (found.claim.value, found.tick) == ("refuted", "10")
    assert check(batch, longer, found).holds


def test_a_gpu_that_is_busy_by_its_state(run: Command, tmp_path: Path) -> None:
    batch, state = tmp_path / "batch.json", tmp_path / "state.json"
    write(RODINIA, batch)
    write(FleetState(A30, 2, (HeldInstance(1, "4g.24gb", 0, "job"),)), state)
    ended = run("solve", batch, "--from", state, "--busy-until", DAY, "--json")
    assert (ended.json["status"], ended.json["makespan"]) == ("optimal", OPTIMUM)


@pytest.mark.parametrize("free", [DAY, YEARS])
def test_streams_do_not_wait_for_it(free: float) -> None:
    one, two = ([RODINIA.replace(gpus=gpus)] * 2 for gpus in (1, 2))
    two[0] = busy(1, free)
    for join in ("trivial", "reversed", "moved", "handover"):
        expected, found = (plan_stream(each, join=join, method="cp", workers=1) for each in (one, two))
        assert found.ends == expected.ends


@pytest.mark.parametrize("seconds", [1e10, 1e11])
def test_streams_and_changes_may_take_for_ages(seconds: float) -> None:
    batch = Batch((Task("a", {1: 1.1 * seconds, 2: 0.7 * seconds}), Task("b", {2: seconds / 3})), A30)
    assert len(plan_stream([batch] * 3, join="trivial").ends) == 3
    costs = OperationCosts({1: 1.1 * seconds, 2: seconds / 3, 4: seconds}, {1: seconds / 7, 2: seconds / 9, 4: seconds})
    whole, half, small = (Segment("a", 0, f"{at}g.{6 * at}gb", at % 4, 1, 1, 10.0, 0.1) for at in (4, 2, 1))
    one, two = Deployment(("A30",), (whole,)), Deployment(("A30",), (half, small))
    for running, deployment in ((one, two), (two, one)):
        assert plan_change(running, deployment, operations={"A30": costs}).plan.duration > seconds


@pytest.mark.parametrize("most", [2, pytest.param(3, marks=pytest.mark.deep)])
@given(st.data(), st.sampled_from(["cp", "cp", "milp", "search", "far"]))
@settings(max_examples=60)
def test_what_is_proven_without_it_is_proven_with_it(most: int, data: st.DataObject, method: str) -> None:
    batch = data.draw(spread_batches(most))
    late = data.draw(late_things(batch))
    one, two = (solve(each, method, workers=1) for each in (batch, late))
    # A heuristic is proven by bounds without a solver alone; they count the creation of any instance that has a time.
    if one.status is Status.OPTIMAL and method in ("cp", "milp"):
        assert two.status is Status.OPTIMAL
        assert two.makespan == pytest.approx(one.makespan, rel=1e-6)
    tried = solve(batch, "brute-force", workers=1, time_limit=1.0)
    if tried.status is Status.OPTIMAL:
        best = tried.makespan
        for result in (one, two):
            assert result.lower_bound <= best * (1 + 1e-9)
            assert result.makespan >= best * (1 - 1e-6)
            assert result.status is not Status.OPTIMAL or result.makespan <= best * (1 + 1e-6)


@pytest.mark.parametrize(
    ("times", "free", "path"),
    [
        (({1: 1e308}, {1: 1e308}), 0.0, "tasks[0].times.1"),
        (({1: 6e299}, {1: 1.0, 2: 6e299}), 0.0, "tasks[1].times.2"),
        (({1: 1.0},), 1e301, "initial[0].free"),
    ],
)
def test_times_that_cannot_be_added_up_are_refused(
    times: tuple[dict[int, float], ...], free: float, path: str, run: Command, tmp_path: Path
) -> None:
    tasks = tuple(Task(f"t{at}", row) for at, row in enumerate(times))
    with pytest.raises(InputError, match="makes all times add up to more than 1e\\+300 s") as caught:
        Batch(tasks, A30, initial=(LiveInstance(0, "1g.6gb", 0, free),))
    assert [problem.path for problem in caught.value.problems] == [path]
    if not free:
        table = tmp_path / "times.csv"
        rows = (f"{task.name},{task.times[1]},{task.times.get(2, '')}\n" for task in tasks)
        table.write_text("task,t1_s,t2_s\n" + "".join(rows))
        ended = run("solve", table, "--gpu", "A30")
        assert ended.code == 2
        assert "add up to more than 1e+300 s; give shorter ones" in ended.err
