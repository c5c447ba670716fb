"""The PCIe-aware scheduler and its rival, stage by stage, each on a trace made for it.

The link has 30 GB/s. A job of 30 GB/s with sensitivity 1 is slower by 1 for each PCIe-bound job on its GPU (``heavy``);
one of 15 GB/s by half of that, so two of them run at full speed (``light``). Operations take no time where not said.
"""

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import A100, NO_COSTS, PLAIN_COSTS, TABLES, operations, rows, traces
from online_worlds import job as plain
from online_worlds import run as run_policy
from online_worlds import trace as world

from mig_opt import Job, OperationCosts, Simulation, Trace, simulate
from mig_opt.gpu.geometry import members
from mig_opt.heuristics.fleet.partitions import repartition, smallest_instances
from mig_opt.heuristics.fleet.pcie_aware import PcieAware
from mig_opt.heuristics.fleet.reconfiguration import JobClass
from mig_opt.simulation import Cluster

SMALL = "1g.5gb"


def heavy(name: str, arrival: float, seconds: float, profile: str = SMALL) -> Job:
    return plain(name, arrival, profile, seconds, pcie_gbps=30.0, sensitivity=1.0)


def light(name: str, arrival: float, seconds: float) -> Job:
    return plain(name, arrival, SMALL, seconds, pcie_gbps=15.0, sensitivity=1.0)


def quiet(name: str, arrival: float, seconds: float, profile: str = SMALL) -> Job:
    return plain(name, arrival, profile, seconds)


def run(policy: str, *jobs: Job, gpus: int = 1, costs: OperationCosts = NO_COSTS, **options: object) -> Simulation:
    done = run_policy(policy, world(*jobs, gpus=gpus, costs=costs), **options)
    assert not done.unfinished
    return done


def aware(*jobs: Job, gpus: int = 1, **options: object) -> Simulation:
    return run("pcie-aware", *jobs, gpus=gpus, **options)


def gpus_of(done: Simulation) -> dict[str, int]:
    return {str(row[0]): int(str(row[1])) for row in rows(done.log)}


def times_of(done: Simulation) -> dict[str, tuple[object, object]]:
    """Seconds at which each job was given its place and ended."""
    return {row[0]: (row[3], row[4]) for row in rows(done.log)}


@pytest.mark.parametrize("policy", ["pcie-aware", "pcie-unaware"])
def test_gpus_start_with_the_smallest_instances(policy: str) -> None:
    """Seven creations of 1 s each, one after the other: a begins on the first at 1, b on the second at 2."""
    done = run(policy, quiet("a", 0, 10), quiet("b", 0, 10), costs=PLAIN_COSTS)
    assert [(kind, where) for kind, _, where, _, _ in operations(done.log)] == [
        ("create", f"1g.5gb@{start}") for start in range(7)
    ]
    assert rows(done.log) == [("a", 0, "1g.5gb@0", 1, 11, "FINISHED"), ("b", 0, "1g.5gb@1", 2, 12, "FINISHED")]
    # A partition is looked up once for all: for each of 2000 GPUs that took minutes.
    assert gpus_of(run(policy, quiet("a", 0, 10), gpus=2000, partition="4+2+1")) == {"a": 0}


def test_a_starving_job_starts_all_the_same() -> None:
    """The scheduler looks when c and d arrive. At 41 b has waited for 40 s, which is not more than the threshold."""
    jobs = heavy("a", 0, 100), heavy("b", 1, 10), quiet("c", 41, 1), quiet("d", 42, 1)
    done = aware(*jobs, wait_threshold=40)
    # From 42 to 62 both run at half speed.
    assert times_of(done) == {"a": (0, 110), "b": (42, 62), "c": (41, 42), "d": (42, 43)}
    assert times_of(aware(*jobs, wait_threshold=None))["b"] == (100, 110)


def test_a_marked_gpu_takes_only_jobs_that_do_not_prolong_it() -> None:
    """b finds no 3g and marks the GPU, which ends at 10. c would end at 7, d at 23. At 10 there is room for b and d.

    3g@4 destroys the instances at 4, 5 and 6; the others stay.
    """
    jobs = quiet("a", 0, 10), quiet("b", 1, 5, "3g.20gb"), quiet("c", 2, 5), quiet("d", 3, 20)
    for policy in ("pcie-aware", "pcie-unaware"):
        done = run(policy, *jobs)
        assert times_of(done) == {"a": (0, 10), "b": (10, 15), "c": (2, 7), "d": (10, 30)}
        made = [(kind, where) for kind, _, where, _, _ in operations(done.log)][7:]
        assert made == [*(("destroy", f"1g.5gb@{start}") for start in (4, 5, 6)), ("create", "3g.20gb@4")]


def test_the_end_of_a_job_on_a_marked_gpu_is_that_beside_its_neighbours() -> None:
    """Beside a, which ends at 10, c would take 2 x 5 s from 2 on: 12. 4 s are just short enough."""
    jobs = heavy("a", 0, 10), quiet("b", 1, 5, "3g.20gb")
    assert times_of(aware(*jobs, heavy("c", 2, 5), delay_threshold=2.0))["c"] == (10, 15)
    # a then ends at 2 + 2 x 4 + 4 = 14.
    assert times_of(aware(*jobs, heavy("c", 2, 4), delay_threshold=2.0)) == {"a": (0, 14), "b": (14, 19), "c": (2, 10)}
    assert times_of(aware(*jobs, heavy("c", 2, 4)))["c"] == (10, 14)


def test_a_mark_goes_when_nobody_needs_it() -> None:
    """c marks GPU 1 (its end is 30), but runs on GPU 0 from 10 on: at 20, d may prolong GPU 1."""
    wide = [quiet(name, at, seconds, "3g.20gb") for name, at, seconds in (("a", 0, 10), ("b", 0, 25), ("c", 1, 5))]
    jobs = *wide, quiet("x", 0, 30), quiet("d", 20, 100)
    done = aware(*jobs, gpus=2, partition=["3+3", "1+1+1+1+1+1+1"])
    assert gpus_of(done) == {"a": 0, "b": 0, "x": 1, "c": 0, "d": 1}
    assert times_of(done)["d"] == (20, 120)


def test_an_idle_gpu_is_divided_for_the_most_jobs_but_first_for_a_starving_one() -> None:
    """At 10 the GPU is idle. 7g serves b, 4g and 3g serve c and d: two are more than one.

    The older b does not mark the GPU again before the two have started. When it has waited too long, it is first.
    """
    jobs = quiet("a", 0, 10), quiet("b", 1, 5, "7g.40gb"), quiet("c", 2, 5, "3g.20gb"), quiet("d", 3, 5, "4g.20gb")
    assert times_of(aware(*jobs)) == {"a": (0, 10), "b": (15, 20), "c": (10, 15), "d": (10, 15)}
    starving = aware(*jobs, wait_threshold=8.5)
    assert times_of(starving) == {"a": (0, 10), "b": (10, 15), "c": (15, 20), "d": (15, 20)}


def test_the_mark_moves_to_a_gpu_that_is_idle_first() -> None:
    """y is thought to take 8 x 5 s, so c marks GPU 0, whose end is 20. But y is done at 8."""
    jobs = quiet("w", 0, 20), heavy("x", 0, 20), heavy("y", 0, 8), quiet("c", 1, 5, "3g.20gb")
    done = aware(*jobs, gpus=2, sensitivities={"y": 5.0})
    assert gpus_of(done) == {"w": 0, "x": 0, "y": 1, "c": 1}
    assert times_of(done)["c"] == (8, 13)


def test_a_starving_job_takes_a_larger_instance() -> None:
    """b asks for 1g, which 4g and 3g do not leave. At 10, when d comes, it has waited for 9 s: 3g is the best fit."""
    asks = Job("b", 1, {1: 10.0, 3: 8.0, 4: 7.0}, SMALL)
    jobs = quiet("a", 0, 100, "4g.20gb"), asks, quiet("d", 10, 5, "7g.40gb")
    done = aware(*jobs, partition="4+3", wait_threshold=5)
    assert rows(done.log)[0] == ("b", 0, "3g.20gb@4", 10, 18, "FINISHED")
    # It has no time for 3g: it waits for the end of the GPU, which it has marked.
    done = aware(jobs[0], quiet("b", 1, 10), jobs[2], partition="4+3", wait_threshold=5)
    assert times_of(done)["b"] == (100, 110)
    # Without a threshold it never takes more than it asked for.
    done = aware(*jobs, partition="4+3", wait_threshold=None)
    assert times_of(done)["b"] == (100, 110)


def test_a_larger_instance_on_a_marked_gpu_must_not_prolong_it() -> None:
    """On 3g b would end at 18, a ends at 15."""
    asks = Job("b", 1, {1: 10.0, 3: 8.0}, SMALL)
    done = aware(quiet("a", 0, 15, "4g.20gb"), asks, quiet("d", 10, 5, "7g.40gb"), partition="4+3", wait_threshold=5)
    assert times_of(done)["b"] == (15, 25)


class Checked(PcieAware):
    """Compares each start with what the rules say when every GPU is looked at; only GPUs without jobs are divided."""

    def _start(self, cluster: Cluster, job_class: JobClass, job: int, gpu: int, profile: int) -> None:
        waited = cluster.now - self._waiting_since[job]
        starving = self.wait_threshold is not None and waited > self.wait_threshold
        slowdown = cluster.slowdown(job, gpu)
        allowed = self.delay_threshold is None or slowdown <= self.delay_threshold or not cluster.bound_on(gpu)
        assert allowed or starving
        with_room = [
            other
            for other, state in enumerate(cluster.states)
            if state.idle_of(profile) and other not in self._marks.values()
        ]
        if gpu not in self._marks.values():
            assert gpu == min(with_room, key=lambda other: (*self.worth(cluster, job, other), other))
        if profile != job_class.profile:
            assert starving
        super()._start(cluster, job_class, job, gpu, profile)

    def _create(self, cluster: Cluster, gpu: int, placements: Iterable[int]) -> None:
        assert not cluster.states[gpu].busy
        super()._create(cluster, gpu, placements)

    def worth(self, cluster: Cluster, job: int, gpu: int) -> tuple[float, int, int]:
        used = cluster.states[gpu].usage
        return cluster.slowdown(job, gpu), -used.used_compute, -used.used_memory


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(traces(), st.sampled_from([None, 1.0, 1.5]), st.sampled_from([None, 0.0, 3.0]))
def test_choices_are_those_of_the_rules(wanted: Trace, delay: float | None, wait: float | None) -> None:
    run_policy(Checked(delay_threshold=delay, wait_threshold=wait), wanted)


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
        policies = (kind(delay_threshold=delay, wait_threshold=wait) for kind in (PcieAware, Forgetful))
        found, wanted = (simulate(Trace(tuple(jobs), A100, 3), policy, reject=reject) for policy in policies)
        assert list(found.log.runs()) == list(wanted.log.runs())
