"""The rules of the simulator on traces of a few jobs, by hand; a creation takes 1 s, a destruction 0.5 s."""

import math
from typing import Any

import pytest
from documents import refused
from hypothesis import given
from hypothesis import strategies as st
from online_worlds import NO_COSTS, TABLES, Scripted, Step, job, operations, place, rows, trace
from online_worlds import run as run_policy

from mig_opt import PolicyError, Simulation, Trace, simulate
from mig_opt.gpu.geometry import GpuState
from mig_opt.simulation import Cluster, Job, Policy
from mig_opt.simulation.fleet.instances import Ranking


def run(wanted: Trace, places: dict[str, tuple[int, str]], *steps: tuple[float, Step]) -> Simulation:
    return run_policy(Scripted(places, steps), wanted)


def test_in_the_same_moment_room_is_made_before_it_is_asked_for() -> None:
    wanted = trace(job("a", 0, "7g.40gb", 5), job("b", 5, "7g.40gb", 5), costs=NO_COSTS)
    done = run(wanted, {"a": (0, "7g.40gb@0"), "b": (0, "7g.40gb@0")})
    assert [row[3:5] for row in rows(done.log)] == [(0, 5), (5, 10)]


def bound(name: str, arrival: float, seconds: float, demand: float, sensitivity: float = 1.0) -> Job:
    return job(name, arrival, "1g.5gb", seconds, pcie_gbps=demand, sensitivity=sensitivity)


def test_what_a_policy_sees() -> None:
    seen: list[object] = []

    def look(cluster: Cluster) -> None:
        seen.extend([
            cluster.progress(0), cluster.progress(2), cluster.expected_end(0), cluster.bound_on(0),
            cluster.slowdown(0, 0), cluster.slowdown(2, 0), cluster.slowdown(2, 1), cluster.load(0),
            cluster.jobs_on(0), list(cluster.waiting), cluster.movable(1), cluster.place(1), cluster.place(2),
        ])  # fmt: skip

    run(
        trace(bound("a", 0, 8, 20), bound("b", 0, 8, 20), bound("c", 1, 8, 20), gpus=2, costs=NO_COSTS),
        {"a": (0, "1g.5gb@0"), "b": (0, "1g.5gb@1")},
        (4, look),
        (20, lambda cluster: cluster.start(2, 1, place("1g.5gb@0"))),
    )
    b_at = (0, place("1g.5gb@1"))
    # 4 s at 4/3 are 3 of 8; 5 s are left, 20/3 at this rate; a third one would make it 20 x 3 / 30 = 2.
    assert seen == [
        0.375, 0.0, pytest.approx(4 + 20 / 3), 2,
        pytest.approx(4 / 3), 2.0, 1.0, pytest.approx(2 / 7),
        [0, 1], [2], True, b_at, None,
    ]  # fmt: skip


def test_who_follows_a_migrating_job_waits_until_it_has_left() -> None:
    done = run(
        trace(job("a", 0, "3g.20gb", 10), job("b", 5.25, "4g.20gb", 1), job("c", 0, "1g.5gb", 1), gpus=2),
        {"a": (0, "3g.20gb@0"), "c": (1, "1g.5gb@0"), "b": (0, "4g.20gb@0")},
        (5, lambda cluster: cluster.migrate(0, 1, place("3g.20gb@4"))),
    )
    # a leaves at 6; then 3g@0 is destroyed (6-6.5) and 4g@0 created (6.5-7.5).
    assert operations(done.log)[-2:] == [("destroy", 0, "3g.20gb@0", 6, 6.5), ("create", 0, "4g.20gb@0", 6.5, 7.5)]
    assert rows(done.log)[2] == ("b", 0, "4g.20gb@0", 7.5, 8.5, "FINISHED")


def test_when_an_instance_is_ready() -> None:
    seen: list[float] = []

    def move(cluster: Cluster) -> None:
        cluster.migrate(0, 0, place("2g.10gb@2"))
        cluster.create(0, place("1g.5gb@6"))
        names = ("2g.10gb@0", "2g.10gb@2", "1g.5gb@6")
        seen.extend([cluster.driver_free(0), *(cluster.ready(0, place(name)) for name in names)])

    run(trace(job("a", 0, "2g.10gb", 9)), {"a": (0, "2g.10gb@0")}, (4, move))
    # The replica is created from 4 to 5, when a leaves 2g@0; 1g@6 from 5 to 6.
    assert seen == [6, 5, 5, 6]


def test_a_job_fails_where_it_needs_more_memory_than_there_is() -> None:
    growth = ((0.0, 3.0), (0.5, 8.0))
    wanted = trace(Job("a", 0.0, {1: 8.0, 2: 4.0}, memory_growth=growth), costs=NO_COSTS)
    script = Scripted({"a": (0, "1g.5gb@0")}, [(6, lambda cluster: cluster.start(0, 0, place("2g.10gb@4")))])
    done = run_policy(script, wanted)
    # Half of 8 s; at 6 it starts from zero.
    assert rows(done.log) == [("a", 0, "1g.5gb@0", 0, 4, "OUT_OF_MEMORY"), ("a", 0, "2g.10gb@4", 6, 10, "FINISHED")]
    assert script.heard == [("failed", 0, 8.0, 4.0), ("finished", 0, 0, "2g.10gb@4", 10.0)]
    assert (done.log.scheduled[0], done.metrics.failures) == (0, 1)


def test_memory_can_be_observed() -> None:
    seen: list[float] = []
    growth = ((0.25, 3.0), (0.5, 4.5), (0.75, 1.0))
    times = (0.5, 2, 4, 6)
    run(
        trace(job("a", 0.25, "1g.5gb", 8, memory_growth=growth), costs=NO_COSTS),
        {"a": (0, "1g.5gb@0")},
        *((0.25 + time, lambda cluster: seen.append(cluster.memory_used(0))) for time in times),
    )
    assert seen == [0, 3, 4.5, 1]


class Stubborn(Scripted):
    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        cluster.start(job, gpu, placement)


def test_a_job_that_fails_too_often_is_given_up() -> None:
    policy = Stubborn({"a": (0, "1g.5gb@0")})
    done = simulate(trace(job("a", 0, "1g.5gb", 8, memory_gb=6.0)), policy, failure_limit=3)
    # With too much memory from the start it fails at once.
    assert rows(done.log) == [("a", 0, "1g.5gb@0", 1, 1, "OUT_OF_MEMORY")] * 3
    assert (done.unfinished, policy.heard) == (("a",), [("gave up", 0, 1)])


def test_a_policy_that_wakes_up_in_ever_the_same_moment_is_stopped() -> None:
    """With a job that runs on for ten seconds: nothing else would end it."""

    class Sleepless(Scripted):
        def begin(self, cluster: Cluster) -> None:
            cluster.wake(1.0)

        def woken(self, cluster: Cluster, tag: int) -> None:
            cluster.wake(math.nextafter(cluster.now, math.inf))

    with pytest.raises(PolicyError, match="10001 times in a row, at 1 s"):
        simulate(trace(job("a", 0.0, "1g.5gb", 10.0)), Sleepless({"a": (0, "1g.5gb@0")}))


def test_many_wake_ups_in_one_moment_are_no_row() -> None:
    """Each was asked for on its own, and so is the next one of each."""
    woken: list[int] = []

    class Timers(Scripted):
        def begin(self, cluster: Cluster) -> None:
            for number in range(11_000):
                cluster.wake(1.0, number)

        def woken(self, cluster: Cluster, tag: int) -> None:
            woken.append(tag)
            if cluster.now < 1.0 + 1e-7:
                cluster.wake(cluster.now + 5e-7, tag)

    simulate(trace(job("a", 0.0, "1g.5gb", 10.0)), Timers({"a": (0, "1g.5gb@0")}))
    assert woken == [*range(11_000)] * 2


def test_a_policy_that_only_wakes_up_comes_to_an_end() -> None:
    class Sleepless(Policy):
        def arrived(self, cluster: Cluster, job: int) -> None:
            cluster.wake(cluster.now + 1)

        def woken(self, cluster: Cluster, tag: int) -> None:
            cluster.wake(cluster.now + 1)

    done = simulate(trace(job("a", 0, "1g.5gb", 3)), Sleepless())
    assert done.unfinished == ("a",)
    assert rows(done.log) == []


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda cluster: cluster.start(0, 0, place("1g.5gb@1")), "'a' was started, but does not wait"),
        (lambda cluster: cluster.start(1, 0, place("3g.20gb@0")), "3g.20gb@0 of GPU 0 was claimed"),
        (lambda cluster: cluster.start(1, 0, place("2g.10gb@4")), "'b' was put on 2g.10gb@4, but has no time"),
        (lambda cluster: cluster.migrate(1, 0, place("3g.20gb@4")), "'b' was to migrate, but does not run"),
        (lambda cluster: cluster.migrate(2, 0, place("1g.5gb@5")), "'c' was to migrate, but does not run"),
        (lambda cluster: cluster.stop(1), "'b' was stopped, but has no place"),
        (lambda cluster: cluster.create(0, place("7g.40gb@0")), "7g.40gb@0 of GPU 0 was to be created"),
        (lambda cluster: cluster.destroy(0, place("1g.5gb@0")), "1g.5gb@0 of GPU 0 was to be destroyed"),
        (lambda cluster: cluster.wake(1.5), "must be later"),
        (lambda cluster: cluster.start(7, 0, 0), "job number 7 was started, but does not wait"),
        (lambda cluster: cluster.start(1, 1, 0), "there is no GPU 1; they are numbered from 0 to 0"),
        (lambda cluster: cluster.migrate(0, -1, 0), "there is no GPU -1"),
        (lambda cluster: cluster.create(0, 99), "there is no placement 99"),
        (lambda cluster: cluster.destroy(0, -1), "there is no placement -1"),
    ],
)  # fmt: skip
def test_what_cannot_be_done(act: Step, message: str) -> None:
    wanted = trace(job("a", 0, "1g.5gb", 9), job("b", 1, "3g.20gb", 3), job("c", 1, "1g.5gb", 3))
    places = {"a": (0, "1g.5gb@0"), "c": (0, "1g.5gb@6")}
    with pytest.raises(PolicyError, match=message):
        run(wanted, places, (1.5, act))


@pytest.mark.parametrize(
    ("policy", "options", "paths"),
    [
        ("first-fit", {"failure_limit": 0, "thresold": 0.3}, "thresold failure_limit"),
        ("first-fit", {"patience": math.nan}, "patience"),
        ("fragmentation-aware", {"threshold": 2, "migration": "no", "backfill": 1, "partition": "4+3"}, ""),
        ("baskets", {"quota": 2.0, "small_quota": -1, "large": "7g", "defragmentation": 1, "consolidate_s": 0}, ""),
        ("memory-aware-b", {"prediction": 1, "folding": None, "start_gb": -1, "sample_s": 0, "tolerance": -0.5}, ""),
        ("memory-aware-a", {"division": "fair", "slowdown_limit": 0.5}, ""),
        ("memory-aware-b", {"backfill": True}, "backfill"),
        ("pcie-aware", {"delay_threshold": 0.9, "sensitivities": [1.0], "wait_threshold": math.inf}, ""),
        ("pcie-aware", {"sensitivities": {"a": -0.1, "b": math.nan}}, "sensitivities.a sensitivities.b"),
        ("pcie-aware", {"sensitivities": {"training": 1.0, 1: 1.0}}, "sensitivities.training sensitivities.1"),
        ("pcie-unaware", {"partition": 4}, "partition"),
        ("static", {"partition": ["4+3", "5+2", "7"]}, "partition[1] partition"),
        ("static", {"partition": 4}, "partition"),
        ("planner", {"balance": 2, "window": -1, "most": 0, "patience": 0, "rounds": -1, "work": 0, "seed": -1}, ""),
        ("planner", {"method": "fixpart", "goal": "fast"}, "method goal"),
        ("planner", {"method": "no-such-method"}, "method"),
        ("planner", {"method": ""}, "method"),
    ],
)
def test_wrong_options_are_all_named(policy: str, options: dict[str, Any], paths: str) -> None:
    """By default each of them."""
    found = refused(simulate, trace(job("a", 0, "1g.5gb", 3)), policy, **options)
    assert sorted(found) == sorted(paths.split() or options)


def test_wrong_arguments() -> None:
    wanted = trace(job("a", 0, "1g.5gb", 3))
    for policy, options, message in (
        ("firstfit", {}, "did you mean first-fit or best-fit"),
        (Scripted({}), {"backfill": True}, "backfill: is for policies that are given by name"),
        (3, {}, "policy: must be the name of a policy or an object"),
        (Scripted, {}, "policy: must be the name of a policy or an object"),
    ):
        refused(simulate, wanted, policy, **options, match=message)
    refused(simulate, "trace.json", match="trace: must be a Trace")


def busy(*names: str) -> int:
    return TABLES.mask(map(place, names))


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "1g.5gb@0", "4g.20gb@0", "7g.40gb@0"])), max_size=60))
def test_ranking_against_a_search(changes: list[tuple[int, str]]) -> None:
    """After any changes, asked now and then: the least key, then the least index; refused ones stay in the order."""
    pool = TABLES
    states = [pool.state(0, 0)] * 6

    def key(state: GpuState, profile: int) -> int | None:
        return state.usage.used_compute if state.usage.available[profile] else None

    ranking = Ranking(states, key)
    for number, (gpu, name) in enumerate(changes):
        states[gpu] = pool.state(busy(name) if name else 0, 0)
        ranking.changed.add(gpu)
        profile = number % 6
        order = sorted((found, gpu) for gpu, state in enumerate(states) if (found := key(state, profile)) is not None)
        if number % 3 == 0:
            assert ranking.best(profile) == (order[0][1] if order else None)
        elif number % 3 == 1:
            seen: list[int] = []
            assert ranking.first(profile, lambda gpu, seen=seen: bool(seen.append(gpu)), below=4) is None
            assert seen == [gpu for found, gpu in order if found < 4]
        else:
            odd = [gpu for _, gpu in order if gpu % 2]
            assert ranking.first(profile, lambda gpu: gpu % 2 == 1, below=100) == (odd[0] if odd else None)


def test_a_ranking_does_not_grow_without_end() -> None:
    pool = TABLES
    states = [pool.state(0, 0)] * 2
    ranking = Ranking(states, lambda state, profile: state.usage.used_compute)
    for _ in range(5000):
        for mask in (busy("1g.5gb@0"), 0):
            states[1] = pool.state(mask, 0)
            ranking.changed.add(1)
            assert ranking.best(5) == 0
    assert len(ranking._orders[5][0]) < 2000
