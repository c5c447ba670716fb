"""Figures of a log by hand, and the check of a log: each mistake is found."""

import dataclasses
import math
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, Chaos, Scripted, job, place, trace, traces

from mig_opt import InputError, Job, Trace, simulate
from mig_opt.simulation import Log, PowerModel, RunOutcome, Spread, check_log, measure
from mig_opt.validation import validate


def two_jobs() -> Log:
    """a on 3g@0 from 1 to 5; b (waits from 2 to 6) on 4g@0 from 7.5 to 9.5."""
    wanted = trace(job("a", 0, "3g.20gb", 4), job("b", 2, "4g.20gb", 2))
    script = Scripted({"a": (0, "3g.20gb@0")}, [(6, lambda cluster: cluster.start(1, 0, place("4g.20gb@0")))])
    return simulate(wanted, script).log


def test_figures_by_hand() -> None:
    metrics = measure(two_jobs(), PowerModel(idle=10, full=80))
    assert (metrics.jobs, metrics.finished, metrics.makespan) == (2, 2, 9.5)
    # From arrival to decision: 0 and 4; from there to the end: 5 and 3.5; in all 5 and 7.5.
    assert metrics.wait == Spread(2, 2, 4, 4)
    assert metrics.execution == Spread(4.25, 4.25, 5, 5)
    assert metrics.completion == Spread(6.25, 6.25, 7.5, 7.5)
    # 3 slices for 4 s and 4 for 2 s, of 7 for 9.5 s.
    assert metrics.utilisation == pytest.approx(20 / 66.5)
    # 1.75 / 6 while a runs, 0 beside 4g@0.
    assert metrics.fragmentation == pytest.approx(4 * 1.75 / 6 / 9.5)
    assert (metrics.creations, metrics.destructions, metrics.migrations, metrics.failures, metrics.stops) == (
        2, 1, 0, 0, 0,
    )  # fmt: skip
    # 10 W all the time, and 70 W for 20 of 7 slices.
    assert metrics.energy == pytest.approx(95 + 70 * 20 / 7)


def test_wrong_power() -> None:
    with pytest.raises(InputError) as caught:
        PowerModel(idle=-1, full=math.inf)
    assert [problem.path for problem in caught.value.problems] == ["idle", "full"]
    with pytest.raises(InputError, match="full: must be at least"):
        PowerModel(idle=100, full=50)


# Energy that jobs say themselves


def test_energy_that_jobs_say_themselves() -> None:
    """a costs 900 J wherever it runs; b counts by its slices: 200 W x 3/7 for 4 s. 50 W all the time, 10 s."""
    a = Job("a", 0.0, {1: 10.0, 7: 2.0}, energy_j=900.0)
    wanted = trace(a, job("b", 0, "3g.20gb", 4), costs=NO_COSTS)
    assert simulate(wanted, "first-fit").metrics.energy == pytest.approx(500 + 900 + 200 * 3 / 7 * 4)
    alone = trace(a, costs=NO_COSTS)
    assert simulate(alone, "whole-gpu").metrics.energy == pytest.approx(100 + 900)
    # Two of them share the link and take twice as long: their work is the same.
    shared = Job("c", 0.0, {1: 10.0}, pcie_gbps=30.0, sensitivity=1.0, energy_j=900.0)
    both = trace(shared, dataclasses.replace(shared, name="d"), costs=NO_COSTS)
    done = simulate(both, "first-fit").metrics
    assert (done.makespan, done.energy) == (pytest.approx(20), pytest.approx(1000 + 1800))


def test_metrics_with_another_power_model() -> None:
    done = simulate(trace(job("a", 0, "7g.40gb", 9)), "first-fit")
    # 1 s idle, 9 s at full power.
    assert done.metrics.energy == pytest.approx(50 + 9 * 250)
    assert done.metrics_with(PowerModel(0, 1)).energy == pytest.approx(9)


# The check


def eventful() -> Log:
    """A migration, contention, a failure and a stop."""
    growth = ((0.0, 3.0), (0.5, 8.0))
    jobs = [
        job("a", 0, "1g.5gb", 9, pcie_gbps=20.0, sensitivity=1.0),
        job("b", 0, "1g.5gb", 9, pcie_gbps=20.0, sensitivity=1.0),
        Job("c", 0.0, {1: 8.0, 2: 4.0}, memory_growth=growth),
    ]
    steps = [
        (3.0, lambda cluster: cluster.migrate(0, 1, place("1g.5gb@6"))),
        (4.5, lambda cluster: cluster.stop(1)),
        (5.5, lambda cluster: cluster.start(1, 1, place("1g.5gb@3"))),
        (9.0, lambda cluster: cluster.start(2, 0, place("2g.10gb@4"))),
    ]
    places = {"a": (0, "1g.5gb@0"), "b": (0, "1g.5gb@1"), "c": (0, "1g.5gb@2")}
    return simulate(trace(*jobs, gpus=2), Scripted(places, steps)).log


def messages(log: Log) -> str:
    return "\n".join(map(str, check_log(log)))


@pytest.mark.parametrize("column", ["run_begin", "run_end"])
@pytest.mark.parametrize("change", [-0.01, 0.01])
def test_a_time_that_is_wrong_is_found(column: str, change: float) -> None:
    """Of every run but the stopped one, which could have been stopped at any other moment."""
    log = eventful()
    for index, outcome in enumerate(log.run_outcome):
        if outcome != RunOutcome.STOPPED:
            changed = deepcopy(log)
            getattr(changed, column)[index] += change
            assert messages(changed), (index, RunOutcome(outcome))


def test_each_mistake_has_its_message() -> None:
    log = eventful()
    last = max(range(len(log.run_job)), key=lambda index: log.run_end[index])

    def with_run(begin: float, end: float, outcome: RunOutcome) -> Log:
        changed = deepcopy(log)
        changed.add_run(log.run_job[last], (1, place("1g.5gb@0")), begin, end, outcome)
        return changed

    late = log.run_end[last]
    assert "runs again after it was done" in messages(with_run(late, late + 1, RunOutcome.STOPPED))
    assert "was finished 2 times" in messages(with_run(late, late + 9, RunOutcome.FINISHED))
    assert "migrated, but does not go on" in messages(with_run(late, late + 1, RunOutcome.MIGRATED))
    assert "before" in messages(with_run(-1, 0, RunOutcome.STOPPED))
    assert "of its work where memory allows 1" in messages(with_run(late, late + 90, RunOutcome.STOPPED))
    lost = deepcopy(log)
    lost.finished[log.run_job[last]] = math.nan
    assert "but nan is noted" in messages(lost)


def test_a_schedule_without_its_operations_is_refused() -> None:
    batch, schedule = eventful().as_schedule()
    assert validate(batch, schedule).valid
    assert not validate(batch, schedule.replace(operations=schedule.operations[1:])).valid
    assert {task.name.split(":")[1] for task in batch.tasks} == {"a", "b", "c"}


# Any jobs, whatever a policy does with them


@pytest.mark.deep
@settings(max_examples=40, deadline=None)
@given(traces(), st.integers(0, 5))
def test_memory_and_energy_add_up(wanted: Trace, seed: int) -> None:
    """Both are recomputed piece by piece: the memory at many moments of each run, the joules from the work of each."""
    jobs = tuple(dataclasses.replace(each, energy_j=100.0 * number) for number, each in enumerate(wanted.jobs))
    done = simulate(wanted.replace(jobs=jobs), Chaos(seed))
    log, metrics = done.log, done.metrics
    gb_seconds, joules = 0.0, 0.0
    before: dict[int, float] = {}
    for run, work in zip(log.runs(), log.work_done(), strict=True):
        own = jobs[run.job]
        joules += 100.0 * run.job * work
        start = before.pop(run.job, 0.0)
        if run.outcome is RunOutcome.MIGRATED:
            before[run.job] = start + work
        pieces = 300
        shares = (start + work * (piece + 0.5) / pieces for piece in range(pieces))
        if own.memory_growth:
            steps = [(0.0, 0.0), *own.memory_growth]
            mean = sum([gb for at, gb in steps if at <= share][-1] for share in shares) / pieces
        else:
            mean = run.placement.profile.memory_gb if own.memory_gb is None else own.memory_gb
        gb_seconds += mean * (run.end - run.begin)
    whole = wanted.gpus * wanted.gpu.memory_gb * metrics.makespan
    assert metrics.memory_utilisation == pytest.approx(gb_seconds / whole if whole else 0.0, rel=0.02, abs=1e-9)
    assert metrics.energy == pytest.approx(50 * wanted.gpus * metrics.makespan + joules, rel=1e-6)
