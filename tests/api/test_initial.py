"""Runs that begin with a plan of the caller's."""

import dataclasses
from pathlib import Path

import pytest
import tiny
from command_line import Command
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import batches

from mig_opt import InputError, OperationCosts, Run, Schedule, deploy, get_gpu, load, methods, solve
from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.validation import validate


def delayed(schedule: Schedule, seconds: float) -> Schedule:
    """The same runs, later; operations are no longer in time."""
    runs = (dataclasses.replace(run, begin=run.begin + seconds, end=run.end + seconds) for run in schedule.runs)
    return Schedule(tuple(runs), schedule.operations)


@pytest.mark.parametrize("method", [method.name for method in methods() if "partition" not in method.options])
@pytest.mark.parametrize("seconds", [0.0, 5.0, -1.0], ids=["in time", "late", "too early"])
def test_no_method_returns_more_than_it_began_with(method: str, seconds: float) -> None:
    result = solve(tiny.BATCH, method, initial=delayed(tiny.BEST, seconds), time_limit=5)
    assert result.makespan == pytest.approx(tiny.OPTIMUM)


@given(batches(), st.floats(0.1, 50), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_other_times_are_mended(batch: Batch, seconds: float, chance) -> None:
    """Late runs, shuffled within the file and stretched in time, still say where and in which order tasks run."""
    if batch.unplaceable():
        return
    begun = solve(batch, "lpt").schedule
    times = ({"begin": seconds * (1 + run.begin), "end": seconds * (1 + run.end)} for run in begun.runs)
    runs = [dataclasses.replace(run, **late) for run, late in zip(begun.runs, times, strict=True)]
    chance.shuffle(runs)
    found = solve(batch, "lpt", initial=Schedule(tuple(runs), None))
    assert validate(batch, found.schedule).valid
    assert found.makespan <= begun.makespan + 1e-6


@pytest.mark.parametrize("method", ["cp", "milp", "search"])
def test_it_may_use_any_gpu(method: str) -> None:
    """Methods look at no more idle GPUs than there are tasks; here the last of five is used, and beats FAR."""
    costs = OperationCosts({1: 1.0, 2: 1.0, 4: 1.0}, {1: 1.0, 2: 1.0, 4: 1.0})
    tasks = Task("t0", {1: 1.3, 2: 0.9, 4: 2.5}), Task("t1", {1: 0.8}), Task("t2", {2: 0.9, 4: 1.6})
    batch = Batch(tasks, get_gpu("A30"), 5, costs, (LiveInstance(0, "1g.6gb", 1, 0.1),))
    runs = (
        Run("t0", 0, "1g.6gb", 1, 0.1, 1.4),
        Run("t1", 0, "1g.6gb", 1, 1.4, 2.2),
        Run("t2", 4, "2g.12gb", 2, 1.0, 1.9),
    )
    assert solve(batch, method, initial=Schedule(runs)).makespan <= 2.2


def test_a_run_that_stops_at_once_returns_it() -> None:
    batch, demand = load("rodinia-a30"), load("parvagpu-s2")
    schedule, fleet = solve(batch, "far").schedule, deploy(demand).deployment
    assert solve(batch, "cp", initial=schedule, stop=lambda progress: True).schedule == schedule
    assert deploy(demand, initial=fleet, stop=lambda progress: True).deployment == fleet


def test_times_that_were_rounded_are_no_better() -> None:
    """The validator takes them, but no schedule is that short."""
    batch = Batch((Task("a", {1: 0.05}),), get_gpu("A30")).replace(operations=OperationCosts.zero(get_gpu("A30")))
    found = solve(batch, "far", initial=Schedule((Run("a", 0, "1g.6gb", 0, 0.0, 0.0499995),)))
    assert (found.status, found.makespan) == ("optimal", 0.05)


def test_what_no_times_mend_is_named() -> None:
    wrong = Schedule((Run("big", 0, "1g.6gb", 0, 0.2, 2.2), Run("left", 1, "2g.12gb", 0, 0.2, 3.2)), None)
    paths = refused(solve, tiny.BATCH, initial=wrong)
    assert paths == ["initial.tasks[2]", "initial.runs[1].gpu", "initial.runs[0]"]
    refused(solve, tiny.BATCH, initial="plan.json", match="initial: must be a Schedule")


def test_deploy_begins_with_a_deployment() -> None:
    demand = load("parvagpu-s2")
    best = deploy(demand).deployment
    assert deploy(demand, "first-fit").gpus > len(best.gpus)
    assert deploy(demand, "first-fit", initial=best).gpus == len(best.gpus)
    refused(deploy, load("parvagpu-s5"), initial=best, match=r"initial\.services")
    with pytest.raises(InputError, match="initial: is not for runs in which only some"):
        deploy(demand, running=best, initial=best, only=[demand.services[0].name])


def test_the_commands_take_files(run: Command, tmp_path: Path) -> None:
    batch, plan, fleet = (tmp_path / f"{name}.json" for name in ("batch", "plan", "fleet"))
    BATCH.write(tiny.BATCH, batch)
    SCHEDULE.write(delayed(tiny.BEST, 7.0), plan)
    assert run("solve", batch, "--method", "lpt", "--initial", plan, "--json").json["makespan"] == 6.34
    SCHEDULE.write(dataclasses.replace(tiny.BEST, runs=tiny.BEST.runs[1:]), plan)
    outcome = run("solve", batch, "--initial", plan)
    assert (outcome.code, outcome.out) == (2, "")
    assert "--initial.tasks[0]: task 'big'" in outcome.err
    demand = load("parvagpu-s2")
    DEPLOYMENT.write(deploy(demand).deployment, fleet)
    given = ("parvagpu-s2", "--method", "first-fit", "--initial", fleet, "--json")
    assert run("deploy", *given).json["gpus"] == 3
    outcome = run("deploy", *given, "--promise", "99%")
    assert (outcome.code, "--initial: is not for" in outcome.err) == (2, True)
