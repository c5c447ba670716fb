"""The parts of reconfiguring schedulers: partitions of idle GPUs, and jobs that found nothing."""

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import A100, TABLES

from mig_opt import Job, Trace, simulate
from mig_opt.gpu.geometry import members
from mig_opt.heuristics.fleet.partitions import repartition, smallest_instances
from mig_opt.heuristics.fleet.pcie_aware import PcieAware
from mig_opt.heuristics.fleet.reconfiguration import JobClass
from mig_opt.simulation.fleet.cluster import Cluster

# Partitions of idle GPUs


def counted(places: Iterable[int]) -> Counter[int]:
    return Counter(TABLES.profile_of[place] for place in places)


@pytest.mark.deep
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_partitions_serve_the_most_jobs(data: st.DataObject) -> None:
    """Against all maximal partitions. Whatever is there before, nothing lies fallow afterwards."""
    waiting = data.draw(st.dictionaries(st.integers(0, len(TABLES.profiles) - 1), st.integers(1, 9), min_size=1))
    first = data.draw(st.sampled_from([None, *waiting]))
    before = data.draw(st.sampled_from(PARTITIONS))
    idle = TABLES.mask(before)
    after = idle
    for place in repartition(TABLES, idle, waiting, first):
        assert not after >> place & 1
        after = after & ~TABLES.conflicts[place] | 1 << place
    best = max(
        sum(min(waiting.get(profile, 0), count) for profile, count in counted(partition).items())
        for partition in PARTITIONS
        if first is None or first in counted(partition)
    )
    served = counted(members(after))
    assert first is None or first in served
    assert sum(min(waiting.get(profile, 0), count) for profile, count in served.items()) >= best
    assert all(TABLES.conflicts[place] & after for place in smallest_instances(TABLES))


PARTITIONS = [
    tuple(TABLES.index(placement.profile.name, placement.start) for placement in partition)
    for partition in A100.maximal_partitions("double-memory")
]


def test_partitions_use_what_is_there() -> None:
    """One 1g.5gb and one 3g for a GPU with 3g@0 and four 1g: nothing has to be done."""
    there = TABLES.mask([TABLES.index("3g.20gb", 0), *(TABLES.index("1g.5gb", start) for start in (4, 5, 6))])
    three, one = (TABLES.profile_index(A100.profile(name)) for name in ("3g.20gb", "1g.5gb"))
    assert repartition(TABLES, there, {three: 1, one: 2}) == ()
    assert len(repartition(TABLES, there, {three: 2})) == 1


# Jobs that found nothing


class Forgetful(PcieAware):
    """Looks for a place for every waiting job at every event."""

    def _run_or_skip(self, cluster: Cluster, job_class: JobClass) -> bool:
        self._refused.clear()
        return super()._run_or_skip(cluster, job_class)

    def _mark(self, cluster: Cluster, profile: int) -> bool:
        self._unmarkable.clear()
        return super()._mark(cluster, profile)


@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize("wait", [None, 5.0, 60.0])
@pytest.mark.parametrize("delay", [None, 1.0, 1.5])
def test_who_found_nothing_finds_nothing_until_there_is_more(
    delay: float | None, wait: float | None, reject: bool
) -> None:
    for seed in range(4):
        draw = random.Random(seed)
        jobs, now = [], 0.0
        for number in range(80):
            now += draw.expovariate(draw.choice([0.1, 1.0]))
            times = {size: draw.uniform(5, 60) for size in (1, 2, 3)}
            profile = draw.choice(["1g.5gb", "2g.10gb", "3g.20gb"])
            pcie = draw.choice([0.0, 6.0, 18.0])
            jobs.append(Job(f"j{number}", now, times, profile, pcie_gbps=pcie, sensitivity=draw.uniform(0.5, 1.5)))
        trace = Trace(tuple(jobs), A100, 3)
        found, wanted = (
            simulate(trace, policy(delay_threshold=delay, wait_threshold=wait), reject=reject)
            for policy in (PcieAware, Forgetful)
        )
        assert list(found.log.runs()) == list(wanted.log.runs())
