"""The study of the fragmentation-aware scheduler's paper, on a cut so small that its figures mean nothing."""

import itertools
from collections import Counter

import pytest

from bench.fleet.fragmentation_worlds import ALL, MIX, OFF, PROFILES, STATIC, Bench, World, make_trace, total, wait
from mig_opt import get_gpu, simulate
from mig_opt.gpu.partitions import find_partition


def test_static_partitions_have_the_instances_of_the_mix() -> None:
    for partitions in STATIC:
        placed = itertools.chain(*(find_partition(get_gpu("A100"), name) for name in partitions))
        counts = Counter(placement.profile.compute_slices for placement in placed)
        assert {size: count / 10 for size, count in counts.items()} == MIX


def test_a_world() -> None:
    """Sizes and contention are other ones, arrivals and lengths those of the family; models suit the sizes."""
    plain, bound = (make_trace("long-25", 3, World(jobs=200, contention=name)) for name in ("no job", "opt"))
    for job, other in zip(plain.jobs, bound.jobs, strict=True):
        size = next(iter(job.times))
        assert job.profile == PROFILES[size]
        assert job.name.endswith(("opt-13b", "bloom-7b1") if size > 2 else ("opt-6.7b", "bloom-1b7"))
        assert (job.name, job.arrival, job.times) == (other.name, other.arrival, other.times)
        assert (job.pcie_gbps, other.pcie_gbps) == (0.0, 17.65 if "opt" in job.name else 0.0)
    shares = [sum(PROFILES[size] == job.profile for job in plain.jobs) / 200 for size in MIX]
    assert shares == pytest.approx(list(MIX.values()), abs=0.1)


def test_the_baseline_is_first_fit_on_static_partitions() -> None:
    bench = Bench(2, World(jobs=20))
    traces = (make_trace("long-25", seed, bench.world) for seed in range(2))
    expected = [simulate(trace, "static", partition=STATIC[0]).metrics.completion.mean for trace in traces]
    assert bench.values("long-25", OFF, total) == expected
    assert bench.saved("long-25", OFF, OFF, wait) == 0.0
    means = [sum(bench.values("long-25", way, wait)) for way in (ALL, OFF)]
    assert bench.saved("long-25", ALL, OFF, wait) == pytest.approx(100 * (1 - means[0] / means[1]))
