"""Figures of a log by hand, the check of a log, and whatever arrives and whoever decides: nothing is lost."""

import dataclasses
import math
from collections import Counter
from copy import deepcopy

import pytest
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, Chaos, Scripted, columns, job, place, run, trace, traces

from mig_opt import Job, Simulation, Trace, get_gpu, methods, simulate
from mig_opt.method.registry import get_policy
from mig_opt.simulation import Log, PowerModel, RunOutcome, check_log
from mig_opt.simulation.fleet.options import policy_options
from mig_opt.validation import validate


def test_wrong_power() -> None:
    assert refused(PowerModel, idle=-1, full=math.inf) == ["idle", "full"]
    refused(PowerModel, idle=100, full=50, match="full: must be at least")


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
    for there, work in zip(log.runs(), log.work_done(), strict=True):
        own = jobs[there.job]
        joules += 100.0 * there.job * work
        start = before.pop(there.job, 0.0)
        if there.outcome is RunOutcome.MIGRATED:
            before[there.job] = start + work
        pieces = 300
        shares = (start + work * (piece + 0.5) / pieces for piece in range(pieces))
        if own.memory_growth:
            steps = [(0.0, 0.0), *own.memory_growth]
            mean = sum([gb for at, gb in steps if at <= share][-1] for share in shares) / pieces
        else:
            mean = there.placement.profile.memory_gb if own.memory_gb is None else own.memory_gb
        gb_seconds += mean * (there.end - there.begin)
    whole = wanted.gpus * wanted.gpu.memory_gb * metrics.makespan
    assert metrics.memory_utilisation == pytest.approx(gb_seconds / whole if whole else 0.0, rel=0.02, abs=1e-9)
    assert metrics.energy == pytest.approx(50 * wanted.gpus * metrics.makespan + joules, rel=1e-6)


NAMES = [policy.name for policy in methods("simulate")]


@pytest.mark.parametrize("gpu", ["A30", "H100", "RTX-PRO-6000"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "static"])  # whose partitions lack profiles
def test_other_gpus(name: str, gpu: str) -> None:
    model = get_gpu(gpu)
    sizes, largest = dict.fromkeys(model.sizes, 8.0), model.memory_gb
    asked = [{"profile": profile.name} for profile in model.profiles_of("base")]
    jobs = [
        Job(f"j{n}", n * 0.5, sizes, **[{"memory_gb": largest * (n % 5 + 0.5) / 6}, *asked][n % (len(asked) + 1)])
        for n in range(30)
    ]
    assert run(name, Trace(tuple(jobs), model, 2)).unfinished == ()


@settings(max_examples=70, deadline=None)
@given(traces(), st.integers(0, 10**6))
def test_anything_that_a_policy_may_do(trace: Trace, seed: int) -> None:
    done = run(Chaos(seed), trace, failure_limit=5)
    failures = Counter(own.job for own in done.log.runs() if own.outcome == RunOutcome.OUT_OF_MEMORY)
    assert {trace.jobs[job].name for job, failed in failures.items() if failed == 5} == set(done.unfinished)
    assert columns(simulate(trace, Chaos(seed), failure_limit=5).log) == columns(done.log)


@pytest.mark.deep
@settings(max_examples=15, deadline=None)
@given(traces(), st.booleans(), st.data())
@pytest.mark.parametrize("name", NAMES)
def test_each_policy(name: str, trace: Trace, backfill: bool, data: st.DataObject) -> None:
    options: dict[str, object] = {"backfill": backfill} if "backfill" in policy_options(get_policy(name)) else {}
    if name == "planner":
        options = {"method": "list", "rounds": 20, "balance": data.draw(st.sampled_from([0.0, 0.5, 1.0]))}
        options |= {"overtaken": data.draw(st.sampled_from([0.0, 20.0])), "overtaken_s": 1.0}
        options |= {"window": data.draw(st.sampled_from([0.0, 2.5])), "most": data.draw(st.sampled_from([3, 48]))}
    if name == "fragmentation-aware":
        for technique in ("load_balancing", "dynamic_partitioning", "migration"):
            options[technique] = data.draw(st.booleans())
        options["threshold"] = data.draw(st.sampled_from([0.0, 0.4, 0.6, 1.0]))
    if name.startswith("memory-aware"):
        options |= {"prediction": data.draw(st.booleans()), "folding": data.draw(st.booleans())}
        options |= {"slowdown_limit": data.draw(st.sampled_from([None, 1.0, 2.0])), "sample_s": 0.5, "tolerance": 0.5}
    if name == "memory-aware-a":
        options["division"] = data.draw(st.sampled_from(["equal", "shared"]))
    if name.startswith("pcie"):
        options["wait_threshold"] = data.draw(st.sampled_from([None, 0.0, 3.0, 60.0]))
        options["partition"] = data.draw(st.sampled_from([None, "7", "4+3", "2+2+2+1"]))
    if name == "pcie-aware":
        options["delay_threshold"] = data.draw(st.sampled_from([None, 1.0, 1.5, 3.0]))
        jobs = st.sampled_from([job.name for job in trace.jobs])
        options["sensitivities"] = data.draw(st.dictionaries(jobs, st.sampled_from([0.0, 0.4, 2.0])))
    done = run(name, trace, **options)
    again = simulate(trace, name, **options)
    assert columns(again.log) == columns(done.log)
    assert (again.events, again.metrics) == (done.events, done.metrics)
    whole = options.get("dynamic_partitioning", name != "static")
    if whole and all(job.profile is None and not job.memory_growth for job in trace.jobs):
        assert done.unfinished == tuple(job.name for job in trace.jobs if not trace.profiles(job))


def decided(done: Simulation, before: float) -> list[tuple[object, ...]]:
    """Runs that had begun before some second, with the ends of those that were over by then."""
    return sorted(
        (run.job, run.begin, run.gpu, str(run.placement), run.end if run.end < before else None)
        for run in done.log.runs()
        if run.begin < before
    )


@settings(max_examples=10, deadline=None)
@given(traces(), st.data())
@pytest.mark.parametrize("name", [name for name in NAMES if name != "static"])  # its partitions follow from the trace
def test_nobody_knows_what_will_arrive(name: str, trace: Trace, data: st.DataObject) -> None:
    options: dict[str, object] = {"rounds": 20} if name == "planner" else {}
    later = data.draw(st.sampled_from([job.arrival for job in trace.jobs]))
    known = tuple(job for job in trace.jobs if job.arrival < later)
    if known:
        part = simulate(trace.replace(jobs=known), name, **options)
        assert decided(simulate(trace, name, **options), later) == decided(part, later)


@pytest.mark.deep
@settings(max_examples=10, deadline=None)
@given(traces(), st.data())
@pytest.mark.parametrize("name", NAMES)
def test_nobody_knows_how_memory_will_grow(name: str, trace: Trace, data: st.DataObject) -> None:
    """Some of the jobs go on to need a little more, or more than there is: the same until the first one fails."""
    options: dict[str, object] = {"rounds": 20} if name == "planner" else {}
    growing = data.draw(st.sets(st.sampled_from(range(len(trace.jobs))), min_size=1))

    def with_peak(peak_gb: float) -> Trace:
        jobs = list(trace.jobs)
        for number in growing:
            growth = ((0.0, 4.0), (0.5, peak_gb))
            jobs[number] = dataclasses.replace(jobs[number], memory_gb=None, memory_growth=growth)
        return trace.replace(jobs=tuple(jobs))

    much = simulate(with_peak(100.0), name, failure_limit=1, **options)
    failed = min((run.end for run in much.log.runs() if run.outcome is RunOutcome.OUT_OF_MEMORY), default=math.inf)
    assert decided(simulate(with_peak(4.5), name, failure_limit=1, **options), failed) == decided(much, failed)
