"""Traces that are generated: what the papers print, and what is assumed."""

import itertools
import math
import statistics
from collections import Counter
from typing import Any

import pytest
from documents import complaints, refused

from mig_opt import Trace, generate_trace
from mig_opt.files.fleet.traces import TRACE
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.fleet.description import describe_trace
from mig_opt.instances.fleet.registry import get_trace_family, trace_families
from mig_opt.instances.fleet.states import generate_state
from mig_opt.instances.serving import generate_demand, generate_rates

NAMES = [family.name for family in trace_families()]


@pytest.mark.parametrize("name", NAMES)
def test_every_family(name):
    family = get_trace_family(name)
    assert family.description
    assert family.source
    assert family.assumptions
    trace = generate_trace(name, seed=5)
    assert trace.gpus == family.gpus
    assert generate_trace(name, seed=5) == trace
    assert TRACE.from_json(TRACE.to_json(trace)) == trace
    assert trace_bounds(trace).makespan[0].value > 0
    for parameter in family.parameters:
        assert parameter.description
        assert not list(parameter.problems(parameter.default))


def gaps(trace: Trace) -> list[float]:
    arrivals = [0.0, *(job.arrival for job in trace.jobs)]
    return [after - before for before, after in itertools.pairwise(arrivals)]


@pytest.mark.parametrize(("name", "gap"), [("normal-25", 25), ("long-50", 50)])
def test_fragmentation(name, gap):
    trace = generate_trace(name, jobs=4000)
    # The mean and the deviation of exponential gaps are equal; 4000 of them are within 5 % with near certainty.
    assert statistics.mean(gaps(trace)) == pytest.approx(gap, rel=0.08)
    assert statistics.stdev(gaps(trace)) == pytest.approx(gap, rel=0.12)
    profiles = Counter(job.profile for job in trace.jobs)
    assert set(profiles) == {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb"}
    assert min(profiles.values()) > 850
    small = {"opt-6.7b", "bloom-1b7"}
    for job in trace.jobs:
        assert (job.name.split("-", 1)[1] in small) == (job.profile in {"1g.5gb", "2g.10gb"})
        assert job.memory_gb is None


def test_long_lengths_are_the_top_half():
    normal, long = ([job.work for job in generate_trace(f"{name}-25", jobs=4000).jobs] for name in ("normal", "long"))
    assert statistics.median(normal) == pytest.approx(90, rel=0.06)
    assert min(long) >= 90.0
    upper = [seconds for seconds in normal if seconds >= 90]
    assert statistics.median(long) == pytest.approx(statistics.median(upper), rel=0.1)
    # The mean of a lognormal, for sigma = 1.
    assert statistics.mean(normal) == pytest.approx(90 * math.exp(0.5), rel=0.1)


@pytest.mark.deep
def test_the_normal_workload_loads_four_gpus_as_is_said():
    for name, load in (("normal-25", 0.53), ("long-25", 0.89)):
        assert describe_trace(generate_trace(name, jobs=20_000)).load == pytest.approx(load, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_pcie_mix(share):
    trace = generate_trace("pcie-60", pcie_share=share)
    kinds = Counter((job.name.split("-")[1], job.pcie_gbps, job.sensitivity) for job in trace.jobs)
    bound = round(1400 * share)
    wanted = {
        ("bloom7b1", 17.65, 1.07): bound // 2,
        ("bloom560m", 5.7, 1.25): bound // 2,
        ("resnet50", 0.0, 0.0): 1400 - bound,
    }
    assert kinds == {kind: count for kind, count in wanted.items() if count}
    assert (trace.pcie_limit, trace.gpus) == (30.08, 60)
    assert all(25 <= job.work <= 75 for job in trace.jobs)


def test_pcie_jobs_on_larger_instances():
    """The same jobs; half of them also have seconds for all larger sizes, by the square root of the sizes."""
    plain = generate_trace("pcie-4", sizes="1,2,4", seed=3).jobs
    flexible = generate_trace("pcie-4", sizes="1,2,4", seed=3, larger=0.5, larger_gain=0.5).jobs
    assert sum(len(job.times) > 1 for job in flexible) <= round(0.5 * 93)
    assert sum(len(job.times) > 1 for job in flexible) > 40, "all sizes but 7g have larger ones"
    for one, other in zip(plain, flexible, strict=True):
        assert (one.name, one.arrival, one.profile, one.work) == (other.name, other.arrival, other.profile, other.work)
        own = next(iter(one.times))
        if len(other.times) > 1:
            assert list(other.times) == [size for size in (1, 2, 3, 4, 7) if size >= own]
            assert other.times[7] == pytest.approx(one.work * (own / 7) ** 0.5, abs=1e-3)
    assert generate_trace("pcie-4", larger=1.0).jobs[5].times.keys() == {1, 2, 3, 4, 7}


def test_pcie_load_and_sizes():
    trace = generate_trace("pcie-4", jobs=20_000, load=0.5, sizes="1,2,4", spread=0)
    assert describe_trace(trace).load == pytest.approx(0.5, rel=0.05)
    assert {job.profile for job in trace.jobs} == {"1g.5gb", "2g.10gb", "4g.20gb"}
    assert {job.work for job in trace.jobs} == {50.0}
    assert complaints(generate_trace, "pcie-4", sizes="1;2") == [
        "sizes: must be numbers of compute slices with commas between them, like 1,2, is '1;2'"
    ]
    assert "no instances of 5 compute slices" in complaints(generate_trace, "pcie-4", sizes="5")[0]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("hm1", {"1g.5gb": 50}),
        ("hm2", {"1g.5gb": 50}),
        ("hm3", {"1g.5gb": 100}),
        ("hm4", {"3g.20gb": 50}),
        ("ht1", {"1g.5gb": 11, "3g.20gb": 2, "7g.40gb": 2}),
        ("ht2", {"1g.5gb": 6, "3g.20gb": 6, "7g.40gb": 6}),
        ("ht3", {"1g.5gb": 24, "3g.20gb": 6, "7g.40gb": 6}),
        ("ml1", {"1g.5gb": 7, "3g.20gb": 7}),
        ("ml2", {"1g.5gb": 21}),
        ("ml3", {"3g.20gb": 18}),
    ],
)
def test_memory_mixes(name, counts):
    """The tightest fit of each job, by memory."""
    trace = generate_trace(f"migm-{name}")
    tightest = {4.0: "1g.5gb", 3.5: "1g.5gb", 4.7: "1g.5gb", 16.0: "3g.20gb", 32.0: "7g.40gb"}
    assert Counter(tightest[job.memory_gb or 0] for job in trace.jobs) == counts
    assert {job.arrival for job in trace.jobs} == {0.0}


@pytest.mark.parametrize(
    ("name", "jobs", "fails_at"), [("flan-t5-train", 4, 41), ("flan-t5", 6, 27), ("qwen2", 1, 94), ("llama3", 1, 72)]
)
@pytest.mark.parametrize("noise", [0.0, 0.05, 1.0])
def test_growing_memory_fails_where_it_is_printed(name, jobs, fails_at, noise):
    trace = generate_trace(f"migm-{name}", noise_gb=noise)
    assert len(trace.jobs) == jobs
    iterations: Any = next(p.default for p in get_trace_family(f"migm-{name}").parameters if p.name == "iterations")
    for job in trace.jobs:
        assert len(job.memory_growth) == iterations
        over = [step for step, (_, gb) in enumerate(job.memory_growth, 1) if gb > 10]
        assert over[0] == fails_at
        assert job.memory_gb == job.memory_growth[-1][1] == max(gb for _, gb in job.memory_growth)
        assert [share for share, _ in job.memory_growth] == [step / iterations for step in range(iterations)]


def test_streams_of_batches():
    trace = generate_trace("far-stream", batches=3, tasks=4, mean_gap=50.0, gpu="A30")
    arrivals = Counter(job.arrival for job in trace.jobs)
    assert list(arrivals.values()) == [4, 4, 4]
    assert trace.jobs[0].arrival == 0.0
    assert all(set(job.times) == {1, 2, 4} and job.profile is None for job in trace.jobs)
    assert len({tuple(job.times.values()) for job in trace.jobs}) == 12


def test_figures_that_nothing_can_be_drawn_with():
    assert refused(generate_state, 2, share=-0.5, seed=-1, gpu=5) == ["share", "seed", "gpu"]
    for count in (0, 1.5, "two"):
        assert refused(generate_demand, count, seed=-1) == ["seed", "services"]
        assert refused(generate_rates, generate_demand(2), count, seed=-1) == ["steps", "seed"]
    refused(
        generate_trace, "normal-25", jobs=3, sigma=1000, match="these figures of normal-25 make seconds that are no"
    )
