"""Whatever arrives and whoever decides: nothing is lost, every log is valid, and it is the same on every run."""

import dataclasses
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import Chaos, columns, run, traces

from mig_opt import Job, Simulation, Trace, get_gpu, methods, simulate
from mig_opt.method.registry import get_policy
from mig_opt.simulation import RunOutcome
from mig_opt.simulation.fleet.options import policy_options

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
