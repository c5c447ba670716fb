"""The papers about online schedulers: groups run on a small cut, and their own measures are what they say."""

import itertools
import math
from collections import Counter
from statistics import fmean

import pytest
from online_worlds import PLAIN_COSTS, job, trace

from bench.fleet import fragmentation_worlds as tables
from bench.fleet import memory as online_memory
from bench.fleet import pcie as online_pcie
from bench.fleet.fragmentation_worlds import ALL, MIX, OFF, PROFILES, STATIC, World, make_trace, total, wait
from bench.fleet.fragmentation_worlds import Bench as Fragmentation
from bench.papers import measure as papers
from bench.papers.claims import Verdict
from mig_opt import Job, Trace, generate_trace, get_gpu, simulate
from mig_opt.gpu.partitions import find_partition


@pytest.mark.deep
@pytest.mark.parametrize("name", ["migm", "fragmentation", "pcie"])
def test_a_cut_of_every_group(name):
    for key, measure in papers.load(name).groups.items():
        claims = measure(True).claims
        assert all(bool(claim.measured) == (claim.verdict is not Verdict.CANNOT) for claim in claims), key


def test_desired_and_actual_instances():
    """Created from 0 to 1 for a, which ends at 6; b wants one from 2 on and waits until 6; c needs its place at 20."""
    wanted = trace(job("a", 0, "4g.20gb", 5), job("b", 2, "4g.20gb", 5), job("c", 20, "7g.40gb", 5), costs=PLAIN_COSTS)
    log = simulate(wanted, "first-fit").log
    counts = tables.instance_counts(log)
    # b uses the same instance from 6 to 11; it stays until 20.5, when it has been destroyed for c.
    assert counts["4g.20gb"][-1] == (20.5, 0, 0)
    assert (6.0, 1, 1) in counts["4g.20gb"]
    assert max(desired for _, desired, _ in counts["4g.20gb"]) == 2
    shares = tables.surplus_shares(log)
    assert shares["4g.20gb"] == pytest.approx((20.5 - 11) / 26.5)
    assert shares["7g.40gb"] == 0


def test_concurrent_tasks_are_held_up_by_their_neighbours():
    found = tables.slowdowns(4, 2)
    assert set(found) == {"fragmentation-aware", *tables.RIVALS}
    assert all(value >= 1 - 1e-9 for own in found.values() for values in own.values() for value in values)
    drawn = tables.concurrent_tasks(6, 1)
    assert len(drawn.jobs) == 6
    assert sum(next(iter(one.times)) for one in drawn.jobs) <= 21
    assert all(one.arrival == 0 and one.pcie_gbps == 17.65 for one in drawn.jobs)


def test_starving_jobs_use_larger_instances():
    """Only where they have seconds for them, and where larger instances exist."""
    none, some = (
        online_pcie.Sample(online_pcie.Plan(seeds=3), sizes="1,2,3,4,7", **online_pcie.LARGER[name]).runs("pcie-aware")
        for name in ("no other size", "all larger sizes, as fast")
    )
    assert {one.larger for one in none} == {0.0}
    assert max(one.larger for one in some) > 0


def test_static_partitions_have_the_instances_of_the_mix():
    for partitions in STATIC:
        placed = itertools.chain(*(find_partition(get_gpu("A100"), name) for name in partitions))
        counts = Counter(placement.profile.compute_slices for placement in placed)
        assert {size: count / 10 for size, count in counts.items()} == MIX


def test_a_world():
    """Sizes and contention are other ones, arrivals and lengths those of the family; models suit the sizes."""
    plain, bound = (make_trace("long-25", 3, World(jobs=200, contention=name)) for name in ("no job", "opt"))
    for mine, other in zip(plain.jobs, bound.jobs, strict=True):
        size = next(iter(mine.times))
        assert mine.profile == PROFILES[size]
        assert mine.name.endswith(("opt-13b", "bloom-7b1") if size > 2 else ("opt-6.7b", "bloom-1b7"))
        assert (mine.name, mine.arrival, mine.times) == (other.name, other.arrival, other.times)
        assert (mine.pcie_gbps, other.pcie_gbps) == (0.0, 17.65 if "opt" in mine.name else 0.0)
    shares = [sum(PROFILES[size] == one.profile for one in plain.jobs) / 200 for size in MIX]
    assert shares == pytest.approx(list(MIX.values()), abs=0.1)


def test_the_baseline_is_first_fit_on_static_partitions():
    bench = Fragmentation(2, World(jobs=20))
    traces = (make_trace("long-25", seed, bench.world) for seed in range(2))
    expected = [simulate(trace, "static", partition=STATIC[0]).metrics.completion.mean for trace in traces]
    assert bench.values("long-25", OFF, total) == expected
    assert bench.saved("long-25", OFF, OFF, wait) == 0.0
    means = [sum(bench.values("long-25", way, wait)) for way in (ALL, OFF)]
    assert bench.saved("long-25", ALL, OFF, wait) == pytest.approx(100 * (1 - means[0] / means[1]))


def test_figures_of_a_trace():
    """a and b are slower by 2 beside each other, from their begin to their ends; c is not PCIe-bound."""
    jobs = [Job(name, 0.0, {1: 30.0}, "1g.5gb", pcie_gbps=30.0, sensitivity=1.0) for name in "ab"]
    jobs.append(Job("c", 0.0, {1: 10.0}, "1g.5gb"))
    trace = Trace(tuple(jobs), get_gpu("A100"), pcie_limit=30.0)
    found = online_pcie.run(trace, "first-fit", {})
    log = simulate(trace, "first-fit").log
    assert found.completion == pytest.approx(math.fsum(log.finished) / 3)
    assert (found.wait, found.short) == (0, 0)
    assert online_pcie.run(trace.replace(gpus=2), "pcie-aware", {}).short == 1
    better = found._replace(completion=found.completion * 2)
    assert online_pcie.lower([found], [better]) == [pytest.approx(50)]


def test_gpus_with_more_instances():
    gpu = online_pcie.hypothetical(14)
    trace = generate_trace("pcie-4", gpu=gpu, jobs=60, load=1000.0, gpus=2)
    for policy in ("pcie-aware", "pcie-unaware", "first-fit"):
        done = simulate(trace, policy)
        assert not done.unfinished
        assert {run.placement.start for run in done.log.runs()} == set(range(14))
    assert online_pcie.hypothetical(7) is get_gpu("A100")


@pytest.mark.deep
def test_scheme_a_beats_b_where_runtimes_are_similar():
    """Sorted by memory, the longer jobs come last and are dealt equally; in any order B ends with one of them."""
    found = online_memory.similar_throughputs(20, 0.0, 1.25)
    assert fmean(found["A"]) > fmean(found["B"]) + 0.02
    assert fmean(found["A"]) >= fmean(found["A, one queue"])
    drawn = generate_trace("migm-ml2", seed=1, sigma=0.0)
    longer = online_memory.second_kind(drawn, 1.5)
    for one, other in zip(drawn.jobs, longer.jobs, strict=True):
        assert other.times[7] == pytest.approx(one.times[7] * (0.8 if one.memory_gb == 3.5 else 1.2))


def test_the_energy_of_jobs_is_the_formula_of_the_printed_pairs():
    """With a share c of the power constant, the energy is 1 / (c / throughput + 1 - c) of that of the whole GPU."""
    measured = online_memory.outcomes("ml2", 1, "A")[0].throughput
    wanted = 1 / (0.29 / measured + 0.71)
    assert online_memory.own_energy("ml2", "A", 1, 0.29) == pytest.approx(wanted, rel=1e-3)
