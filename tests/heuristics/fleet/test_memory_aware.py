"""The rules of the memory-aware schedulers, each on a trace made for it, with the arithmetic.

Without stated costs operations take no time. On an A100 1g has 5 GB, 2g 10 GB, 3g and 4g 20 GB, 7g 40 GB.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import A100, NO_COSTS, PLAIN_COSTS, TABLES, assert_sound, audit, job, operations, place, rows, trace

from mig_opt import InputError, Job, OperationCosts, Simulation, Trace, get_gpu, simulate
from mig_opt.heuristics.fleet.partition_manager import PartitionManager
from mig_opt.simulation import Cluster

STEPS = 20


def run(policy: str, wanted: Trace, **options: object) -> Simulation:
    done = simulate(wanted, policy, observer=audit, **options)
    assert_sound(done.log)
    return done


def sized(name: str, gb: float, times: dict[int, float], arrival: float = 0.0) -> Job:
    """A job that asks for no profile and says how much memory it needs."""
    return Job(name, arrival, times, memory_gb=gb)


def small(name: str, seconds: float, arrival: float = 0.0) -> Job:
    return sized(name, 4.0, {1: seconds, 2: seconds, 7: seconds}, arrival)


def half(name: str, seconds: float, arrival: float = 0.0) -> Job:
    return sized(name, 16.0, {3: seconds, 4: seconds, 7: seconds}, arrival)


def full(name: str, seconds: float, arrival: float = 0.0) -> Job:
    return sized(name, 32.0, {7: seconds}, arrival)


def growing(name: str, first: float, last: float, arrival: float = 0.0) -> Job:
    """A job of 20 iterations of a second on all sizes, that each need more memory than the one before."""
    rise = (last - first) / (STEPS - 1)
    growth = tuple((step / STEPS, first + rise * step) for step in range(STEPS))
    return Job(name, arrival, dict.fromkeys(A100.sizes, 20.0), memory_growth=growth)


def free(*jobs: Job, gpus: int = 1, costs: OperationCosts = NO_COSTS) -> Trace:
    return trace(*jobs, gpus=gpus, costs=costs)


def places(done: Simulation) -> dict[str, str]:
    """Where each job ran last."""
    return {str(row[0]): f"{row[1]}:{row[2]}" for row in rows(done.log)}


BOTH = pytest.mark.parametrize("policy", ["memory-aware-a", "memory-aware-b"])


# The partition manager (section 4.2)


@BOTH
def test_the_placement_that_leaves_most_configurations(policy: str) -> None:
    """1g: 12 on slice 6, then 6 on 4 and on 5. On slice 0, with these, 2 (1+1+2 and 1+1+1+1), as on every other.

    The left four slices have 6 configurations, the right three have 3: 3, 2+1 and 1+1+1.
    """
    wanted = free(*(small(name, 10, number) for number, name in enumerate("abcde")))
    assert places(run(policy, wanted)) == {
        "a": "0:1g.5gb@6", "b": "0:1g.5gb@4", "c": "0:1g.5gb@5", "d": "0:1g.5gb@0", "e": "0:1g.5gb@1",
    }  # fmt: skip
    # 3g on the right leaves 6, on the left 3; 4g leaves 3. Then one is left whatever it is: the fastest.
    assert places(run(policy, free(half("a", 9), half("b", 9)))) == {"a": "0:3g.20gb@4", "b": "0:3g.20gb@0"}
    faster = sized("b", 16.0, {3: 9.0, 4: 8.0, 7: 7.0}, 1.0)
    assert places(run(policy, free(sized("a", 16.0, faster.times), faster)))["b"] == "0:4g.20gb@0"


def test_the_tightest_memory() -> None:
    """Memory decides, not speed: 8 GB need 2g.10gb; at the limit an instance is enough."""
    times = {1: 9.0, 2: 6.0, 3: 5.0, 4: 4.0, 7: 3.0}
    wanted = free(*(sized(name, gb, times) for name, gb in [("a", 5.0), ("b", 8.0), ("c", 20.0)]))
    found = places(run("memory-aware-b", wanted))
    assert found == {"a": "0:1g.5gb@6", "b": "0:2g.10gb@4", "c": "0:4g.20gb@0"}


def test_a_size_on_which_it_cannot_run_is_no_fit() -> None:
    """4 GB, but no time on 1g: 2g. 8 GB and no time but on 1g: 1g.10gb, which the paper does not use else."""
    wanted = free(sized("a", 4.0, {2: 3.0, 7: 2.0}), sized("b", 8.0, {1: 3.0}))
    assert places(run("memory-aware-b", wanted)) == {"a": "0:2g.10gb@0", "b": "0:1g.10gb@6"}


def test_a_job_that_asks_for_a_profile_gets_it() -> None:
    wanted = free(job("a", 0, "4g.20gb", 3, memory_gb=2.0), job("b", 0, "1g.10gb", 3))
    assert places(run("memory-aware-b", wanted)) == {"a": "0:4g.20gb@0", "b": "0:1g.10gb@6"}


def test_an_idle_instance_that_fits_tightly_is_used() -> None:
    """c comes when a's 1g@6 is idle."""
    wanted = free(small("a", 2), small("b", 9), small("c", 1, 3.0), costs=PLAIN_COSTS)
    done = run("memory-aware-b", wanted)
    # Created from 0 to 1 and from 1 to 2; a runs from 1 to 3 and leaves 1g@6 to c at once.
    assert rows(done.log)[:2] == [
        ("a", 0, "1g.5gb@6", 1, 3, "FINISHED"),
        ("c", 0, "1g.5gb@6", 3, 4, "FINISHED"),
    ]
    assert done.metrics.creations == 2


def test_an_instance_is_created_before_others_are_fused_or_split() -> None:
    """2g is idle at 0 when b wants 1g: 1g@6 is created beside it although 1g in its place would be possible."""
    wanted = free(sized("a", 8.0, {2: 2.0}), small("b", 1, 5.0), costs=PLAIN_COSTS)
    assert operations(run("memory-aware-b", wanted).log) == [
        ("create", 0, "2g.10gb@0", 0, 1),
        ("create", 0, "1g.5gb@6", 5, 6),
    ]


def test_fusion() -> None:
    """a holds 4g@0; b, c and d leave three 1g idle on the right. e wants 3g: all three are fused."""
    times = {4: 50.0}
    jobs = [sized("a", 16.0, times), *(small(name, 2, 1.0) for name in "bcd"), half("e", 5, 10.0)]
    done = run("memory-aware-b", free(*jobs, costs=PLAIN_COSTS))
    assert operations(done.log)[4:] == [
        ("destroy", 0, "1g.5gb@4", 10, 10.5),
        ("destroy", 0, "1g.5gb@5", 10.5, 11),
        ("destroy", 0, "1g.5gb@6", 11, 11.5),
        ("create", 0, "3g.20gb@4", 11.5, 12.5),
    ]
    assert ("e", 0, "3g.20gb@4", 12.5, 17.5, "FINISHED") in rows(done.log)


def test_fission() -> None:
    """The whole GPU is idle when b wants 1g: it is split; what b does not need stays free for c."""
    done = run("memory-aware-b", free(full("a", 5), small("b", 9, 10.0), half("c", 2, 11.0), costs=PLAIN_COSTS))
    assert operations(done.log) == [
        ("create", 0, "7g.40gb@0", 0, 1),
        ("destroy", 0, "7g.40gb@0", 10, 10.5),
        ("create", 0, "1g.5gb@6", 10.5, 11.5),
        ("create", 0, "3g.20gb@0", 11.5, 12.5),
    ]


@pytest.mark.parametrize(
    ("idle", "wanted"),
    [
        # Beside all that exist, though 4g@0 would be faster: 1g@0 is in its way.
        (["1g.5gb@0"], "3g.20gb@4"),
        # An idle 3g is there, whatever else could be made.
        (["3g.20gb@0", "1g.5gb@6"], "3g.20gb@0"),
        # 3g@4 leaves 1+1 on the left, with 2 configurations; 4g@0 leaves 1g@6, with 2. It destroys one instance less.
        (["1g.5gb@0", "1g.5gb@1", "1g.5gb@6"], "3g.20gb@4"),
        # 3g@4 leaves 1+1 as above; 4g@0 leaves 1g@4 and 1g@6, with 1.
        (["1g.5gb@0", "1g.5gb@1", "1g.5gb@4", "1g.5gb@6"], "3g.20gb@4"),
        # 3g@4 leaves a full left side, 1; 4g@0 leaves 1g@6, 2. What can be reached comes before what is destroyed.
        (["2g.10gb@0", "1g.5gb@2", "1g.5gb@3", "1g.5gb@6"], "4g.20gb@0"),
    ],
)
def test_which_placement_is_chosen(idle: list[str], wanted: str) -> None:
    """A job that is faster on 4g than on 3g, on a GPU with idle instances."""
    cluster = Cluster(free(sized("a", 16.0, {3: 6.0, 4: 4.0})), TABLES)
    for name in idle:
        cluster.create(0, place(name))
    manager = PartitionManager(cluster, folding=True, slowdown_limit=None)
    fit = manager.tight_fit(cluster.trace.jobs[0], 16.0)
    assert fit is not None
    assert manager.place(fit) == (0, place(wanted))
    assert manager.place_on(0, fit) == place(wanted)


def test_the_gpu_on_which_least_has_to_be_done() -> None:
    """GPU 0 would have to split 7g, GPU 1 has room, GPU 2 has an idle 1g; then GPU 2 has none left, but has room."""
    cluster = Cluster(free(small("a", 3), small("b", 3), gpus=3), TABLES)
    cluster.create(0, place("7g.40gb@0"))
    cluster.create(1, place("4g.20gb@0"))
    cluster.create(2, place("1g.5gb@2"))
    cluster.waiting.update({0: None, 1: None})
    manager = PartitionManager(cluster, folding=True, slowdown_limit=None)
    fit = manager.tight_fit(cluster.trace.jobs[0], 4.0)
    assert fit is not None
    assert manager.place(fit) == (2, place("1g.5gb@2"))
    cluster.start(0, 2, place("1g.5gb@2"))
    assert manager.place(fit) == (1, place("1g.5gb@6"))


# Warp folding (section 4.3)


def test_folding_onto_fewer_slices_with_the_same_memory() -> None:
    """Both halves have 20 GB; on 3g the jobs take 6 s, on 4g 4 s. Unfolded, only 4g@0 will do: 4 + 4 s."""
    jobs = [sized(name, 16.0, {3: 6.0, 4: 4.0}) for name in "ab"]
    folded = run("memory-aware-b", free(*jobs))
    assert rows(folded.log) == [
        ("b", 0, "4g.20gb@0", 0, 4, "FINISHED"),
        ("a", 0, "3g.20gb@4", 0, 6, "FINISHED"),
    ]
    alone = run("memory-aware-b", free(*jobs), folding=False)
    assert rows(alone.log) == [("a", 0, "4g.20gb@0", 0, 4, "FINISHED"), ("b", 0, "4g.20gb@0", 4, 8, "FINISHED")]


def test_a_limit_on_the_slowdown() -> None:
    """The paper's example: 120 SMs of work take two steps on 100, and two on 60 as well, but not on fewer.

    Here 4g takes the two steps of 7g, 2g takes four and 1g eight. At 1.0 the job is folded from 7g to 4g, at 2.0 to 2g.
    """
    wanted = free(sized("a", 4.0, {1: 8.0, 2: 4.0, 4: 2.0, 7: 2.0}))
    found = {limit: places(run("memory-aware-b", wanted, slowdown_limit=limit))["a"] for limit in (1.0, 2.0, None)}
    assert found == {1.0: "0:4g.20gb@0", 2.0: "0:2g.10gb@0", None: "0:1g.5gb@6"}


# Scheme B


def test_in_order() -> None:
    """b needs the whole GPU and waits for a; c, which would fit beside a, waits behind b."""
    done = run("memory-aware-b", free(half("a", 10), full("b", 5), small("c", 3)))
    assert [(row[0], *row[3:5]) for row in rows(done.log)] == [("a", 0, 10), ("b", 10, 15), ("c", 15, 18)]


# Warps (section 4.3)


def wide(name: str, sms: int | None, gb: float = 4.0) -> Job:
    """A job that fills so many SMs; an A100 has 14 on each compute slice, 98 on 7g."""
    return Job(name, 0.0, dict.fromkeys(A100.sizes, 5.0), memory_gb=gb, sms=sms)


@BOTH
@pytest.mark.parametrize(
    ("sms", "folding", "wanted"),
    [
        (14, True, "1g.5gb"),
        (15, True, "2g.10gb"),
        (28, False, "2g.10gb"),
        # Two rounds on 98, for which 60 suffice: 7g, since 4g has 56. Two rounds of 112 need 56.
        (120, True, "7g.40gb"),
        (112, True, "4g.20gb"),
        (112, False, "7g.40gb"),
        # 21 rounds of 98, for which 96 are needed.
        (2000, True, "7g.40gb"),
        (None, True, "1g.5gb"),
    ],
)
def test_the_tight_fit_has_room_for_the_warps(policy: str, sms: int | None, folding: bool, wanted: str) -> None:
    done = run(policy, free(wide("a", sms)), warps=True, folding=folding)
    assert places(done)["a"].startswith(f"0:{wanted}@")
    assert places(run(policy, free(wide("a", sms)), folding=folding))["a"].startswith("0:1g.5gb@"), "memory alone"


def test_memory_counts_beside_warps() -> None:
    """12 GB need 20 GB of memory, where 3g has 42 SMs: enough for 42, not for 43."""
    for sms, wanted in ((20, "3g.20gb"), (42, "3g.20gb"), (43, "4g.20gb")):
        assert places(run("memory-aware-b", free(wide("a", sms, 12.0)), warps=True))["a"].split("@")[0] == f"0:{wanted}"


# Scheme A


def test_jobs_of_a_size_come_by_increasing_memory() -> None:
    """All fit in 40 GB, one after the other: 21, 25, 25 (in the order of arrival), 30, 39 GB."""
    needs = {"a": 39.0, "b": 25.0, "c": 21.0, "d": 30.0, "e": 25.0}
    wanted = free(*(sized(name, gb, {7: 5.0}) for name, gb in needs.items()))
    for options in ({}, {"division": "shared"}):
        assert [row[0] for row in rows(run("memory-aware-a", wanted, **options).log)] == list("cbeda")
    assert [row[0] for row in rows(run("memory-aware-b", wanted).log)] == list("abcde")


def test_smaller_jobs_that_come_later_do_not_starve_a_larger_one_of_their_size() -> None:
    """They join the phase in the order of arrival: s00, s01, then large. A new phase sorts those that wait: e, d."""
    stream = [sized(f"s{number:02}", 21.0, {7: 5.0}, 2.0 * number) for number in range(40)]
    done = run("memory-aware-a", free(*stream, sized("large", 39.0, {7: 5.0}, 3.0)))
    assert [row[0] for row in rows(done.log)][:4] == ["s00", "s01", "large", "s02"]
    jobs = [small("a", 5), small("b", 5, 1.0), sized("d", 39.0, {7: 5.0}, 2.0), sized("e", 25.0, {7: 5.0}, 3.0)]
    assert [row[0] for row in rows(run("memory-aware-a", free(*jobs)).log)] == list("abed")


def test_by_size() -> None:
    """The small jobs c and d first, side by side, though they are last; then the half; then the full one."""
    done = run("memory-aware-a", free(half("a", 10), full("b", 5), small("c", 3), small("d", 4)))
    assert [(row[0], *row[3:5]) for row in rows(done.log)] == [("c", 0, 3), ("d", 0, 4), ("a", 4, 14), ("b", 14, 19)]


def test_equal_parts_for_unequal_halves() -> None:
    """Five jobs of 6 s on 3g and 4 s on 4g. Dealt: a, c, e on 3g, 18 s; b, d on 4g, 8 s.

    From one queue: 4g takes b, c at 4 and e at 8, 3g takes a and d: 12 s, as in scheme B.
    """
    wanted = free(*(sized(name, 16.0, {3: 6.0, 4: 4.0}) for name in "abcde"))
    equal = run("memory-aware-a", wanted)
    assert equal.metrics.makespan == 18
    assert {name: where for name, where in places(equal).items() if where.endswith("3g.20gb@4")}.keys() == set("ace")
    shared, in_order = run("memory-aware-a", wanted, division="shared"), run("memory-aware-b", wanted)
    assert rows(shared.log) == rows(in_order.log)
    assert shared.metrics.makespan == 12


def test_who_comes_during_a_phase() -> None:
    """b comes while a runs and nobody else waits: it joins. c is larger and waits; d, small, comes later: after c."""
    wanted = free(small("a", 10), small("b", 10, 1.0), full("c", 5, 2.0), small("d", 1, 3.0))
    done = run("memory-aware-a", wanted)
    assert [(row[0], *row[3:5]) for row in rows(done.log)] == [("a", 0, 10), ("b", 1, 11), ("c", 11, 16), ("d", 16, 17)]


def test_a_steady_stream_of_small_jobs_does_not_starve_a_large_one() -> None:
    jobs = [small(f"s{number:02}", 5, number) for number in range(60)]
    done = run("memory-aware-a", free(*jobs, full("large", 5, 2.5)))
    (end,) = [row[4] for row in rows(done.log) if row[0] == "large"]
    # s00 to s02 are there before it and end by 7.
    assert end == 12


def test_after_a_rest_the_smallest_come_first_again() -> None:
    """b comes when all is done; without a rest c, which is larger than a, would be next."""
    done = run("memory-aware-a", free(small("a", 3), full("c", 5, 10.0), small("b", 2, 10.0)))
    assert [(row[0], *row[3:5]) for row in rows(done.log)] == [("a", 0, 3), ("b", 10, 12), ("c", 12, 17)]


def test_jobs_with_the_same_memory_on_other_profiles_have_another_phase() -> None:
    """a can run on 4g alone, b on 3g alone: b, which takes fewer slices, is first, though both would fit."""
    done = run("memory-aware-a", free(sized("a", 16.0, {4: 3.0}), sized("b", 16.0, {3: 5.0})))
    assert [(row[0], *row[3:5]) for row in rows(done.log)] == [("b", 0, 5), ("a", 5, 8)]


def test_gpus_have_phases_of_their_own() -> None:
    """GPU 0 takes the smallest, which all fit; GPU 1 the next ones."""
    wanted = free(full("a", 6), half("b", 5), half("c", 5), small("d", 9), small("e", 9), gpus=2)
    done = run("memory-aware-a", wanted)
    assert {row[0]: (row[1], row[3]) for row in rows(done.log)} == {
        "d": (0, 0), "e": (0, 0), "b": (1, 0), "c": (1, 0), "a": (1, 5),
    }  # fmt: skip


def test_several_gpus_share_the_jobs_of_a_phase() -> None:
    """Twenty small jobs on two GPUs, seven instances each: a second round has 6 jobs. 10 s in all, not 15 s."""
    done = run("memory-aware-a", free(*(small(f"s{number:02}", 5) for number in range(20)), gpus=2))
    assert done.metrics.makespan == 10


# Memory that is not known (sections 2.3 and 3.2)


@BOTH
def test_start_small_and_restart_after_a_failure(policy: str) -> None:
    """1 GB and 0.5 GB more each second: 5.5 GB at 9 s, so 2g; 10.5 GB at its 19 s, so a half, where it takes 20 s.

    The half is made beside what is idle.
    """
    done = run(policy, free(growing("a", 1.0, 10.5)), prediction=False)
    assert rows(done.log) == [
        ("a", 0, "1g.5gb@6", 0, 9, "OUT_OF_MEMORY"),
        ("a", 0, "2g.10gb@4", 9, 28, "OUT_OF_MEMORY"),
        ("a", 0, "3g.20gb@0", 28, 48, "FINISHED"),
    ]


@BOTH
def test_early_restart(policy: str) -> None:
    """Looked at from second 1 to 6 it has 1.5 to 4 GB: a line to 11 GB at the end, which needs a half."""
    done = run(policy, free(growing("a", 1.0, 10.5)))
    assert rows(done.log) == [
        ("a", 0, "1g.5gb@6", 0, 6, "STOPPED"),
        ("a", 0, "3g.20gb@0", 6, 26, "FINISHED"),
    ]
    seldom = run(policy, free(growing("a", 1.0, 10.5)), sample_s=4.0)
    # Looks are at 4 and 8; at 9 it fails. On 2g they are at 12, 16, 20 and 24, four are too few; at 28 it fails again.
    assert [row[3:] for row in rows(seldom.log)] == [
        (0, 9, "OUT_OF_MEMORY"),
        (9, 28, "OUT_OF_MEMORY"),
        (28, 48, "FINISHED"),
    ]


@BOTH
def test_a_job_that_will_fit_is_left_alone(policy: str) -> None:
    done = run(policy, free(growing("a", 1.0, 4.0)))
    assert rows(done.log) == [("a", 0, "1g.5gb@6", 0, 20, "FINISHED")]


@pytest.mark.deep
@BOTH
@pytest.mark.parametrize(
    ("arrival", "seconds", "sample_s"), [(0.0, 1e12, 1.0), (1e17, 1600.0, 1.0), (0.0, 1.0, 1e-300), (1e9, 1.0, 1e-12)]
)
def test_looks_come_to_an_end(policy: str, arrival: float, seconds: float, sample_s: float) -> None:
    """1e12 s are not looked at every second, and 1e17 s and one more are 1e17 s.

    After a thousandth of what is left each time, a second is left of 1e12 s after a thousand times ln(1e12), so fewer
    than 28,000 looks, and of the last thousand seconds each: 1000.
    """
    grows = Job("a", arrival, {1: seconds}, memory_growth=((0.0, 1.0), (0.5, 2.0)))
    done = run(policy, free(grows), sample_s=sample_s)
    assert not done.unfinished
    assert done.events < 150_000


@BOTH
def test_the_start_can_be_larger(policy: str) -> None:
    wanted = free(growing("a", 1.0, 10.5), Job("b", 0.0, {1: 3.0}, "1g.5gb", memory_growth=((0.0, 2.0),)))
    done = run(policy, wanted, prediction=False, start_gb=10.0)
    found = [row for row in rows(done.log) if row[0] == "a"]
    assert found[0][2] == ("2g.10gb@4" if policy.endswith("a") else "2g.10gb@0")
    assert [row[4] for row in found] == [found[0][3] + 19, found[0][3] + 39]
    assert places(done)["b"].startswith("0:1g.5gb"), "it cannot have more"


@BOTH
def test_a_forecast_beyond_the_largest_instance(policy: str) -> None:
    """3 GB more each second: 61 GB at the end are predicted, but it levels off at 30. It gets the whole GPU."""
    growth = tuple((step / STEPS, min(1.0 + 3.0 * step, 30.0)) for step in range(STEPS))
    wanted = free(Job("a", 0.0, dict.fromkeys(A100.sizes, 20.0), memory_growth=growth))
    done = run(policy, wanted, start_gb=20.0)
    assert [row[2] for row in rows(done.log)] == ["3g.20gb@4", "7g.40gb@0"]
    assert rows(done.log)[-1][3:] == (6, 26, "FINISHED")


@BOTH
def test_nothing_larger_is_waited_for_in_vain(policy: str) -> None:
    """a asks for 1g.5gb and outgrows it: nobody can help. b goes on."""
    stuck = Job("a", 0.0, {1: 20.0}, "1g.5gb", memory_growth=growing("x", 1.0, 10.5).memory_growth)
    done = run(policy, free(stuck, small("b", 3, 30.0)))
    assert done.unfinished == ("a",)
    assert rows(done.log) == [("a", 0, "1g.5gb@6", 0, 9, "OUT_OF_MEMORY"), ("b", 0, "1g.5gb@6", 30, 33, "FINISHED")]
    known = run(policy, free(sized("a", 50.0, {7: 3.0}), small("b", 3)))
    assert (known.unfinished, len(rows(known.log))) == (("a",), 1), "it never begins"


def test_a_restarted_job_is_last() -> None:
    """a fails at 9 and waits for a half behind b, which needs the whole GPU, and c."""
    wanted = free(growing("a", 1.0, 10.5), full("b", 5), small("c", 3))
    done = run("memory-aware-b", wanted, prediction=False)
    assert [(row[0], *row[3:5]) for row in rows(done.log)][:3] == [("a", 0, 9), ("b", 9, 14), ("c", 14, 17)]
    by_size = run("memory-aware-a", wanted, prediction=False)
    # Small ones first, a among them; what a needs now, 5.5 GB, is less than what b needs.
    assert [(row[0], *row[3:5]) for row in rows(by_size.log)] == [
        ("c", 0, 3), ("a", 0, 9), ("a", 9, 28), ("a", 28, 48), ("b", 48, 53),
    ]  # fmt: skip


@pytest.mark.deep
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.floats(0.5, 39), st.floats(0.5, 39)), min_size=1, max_size=10),
    st.integers(1, 3),
    st.booleans(),
)
@BOTH
def test_all_that_can_be_done_is_done(
    policy: str, wanted: list[tuple[int, float, float]], gpus: int, prediction: bool
) -> None:
    jobs = [
        growing(f"j{number}", first, last, arrival=float(arrival))
        for number, (arrival, first, last) in enumerate(wanted)
    ]
    done = run(policy, free(*jobs, gpus=gpus), prediction=prediction, sample_s=0.7)
    assert done.unfinished == ()
    assert prediction or not done.metrics.stops


# The rival


def test_the_whole_gpu() -> None:
    """One after the other on 7g.40gb, which is created once; a job without a time for it runs alone all the same."""
    jobs = [job("a", 0, "1g.5gb", 4), small("b", 3), growing("c", 1.0, 10.5), half("d", 2)]
    done = run("whole-gpu", trace(*jobs, costs=PLAIN_COSTS))
    assert [row[:5] for row in rows(done.log)] == [
        ("a", 0, "1g.10gb@0", 1, 5),
        ("b", 0, "7g.40gb@0", 6.5, 9.5),
        ("c", 0, "7g.40gb@0", 9.5, 29.5),
        ("d", 0, "7g.40gb@0", 29.5, 31.5),
    ]
    two = run("whole-gpu", trace(*(small(name, 3) for name in "abc"), gpus=2, costs=NO_COSTS))
    assert [(row[1], *row[3:5]) for row in rows(two.log)] == [(0, 0, 3), (1, 0, 3), (0, 3, 6)]


def test_a_job_for_which_the_whole_gpu_is_too_small() -> None:
    done = run("whole-gpu", free(sized("a", 50.0, {7: 3.0}), small("b", 2)))
    assert done.unfinished == ("a",)
    assert rows(done.log)[-1] == ("b", 0, "7g.40gb@0", 0, 2, "FINISHED")


# Options, other GPUs


def test_wrong_options_are_all_named() -> None:
    wrong = {"prediction": 1, "folding": None, "start_gb": -1, "sample_s": 0, "tolerance": -0.5, "slowdown_limit": 0.5}
    wanted = free(small("a", 1))
    with pytest.raises(InputError) as caught:
        simulate(wanted, "memory-aware-b", **wrong)  # type: ignore[arg-type]
    assert {problem.path for problem in caught.value.problems} == set(wrong)
    with pytest.raises(InputError) as caught:
        simulate(wanted, "memory-aware-a", division="fair", **wrong)  # type: ignore[arg-type]
    assert {problem.path for problem in caught.value.problems} == {"division", *wrong}
    with pytest.raises(InputError, match="backfill: is no option of the policy 'memory-aware-b'"):
        simulate(wanted, "memory-aware-b", backfill=True)


@BOTH
@pytest.mark.parametrize("name", ["A30", "H100", "RTX-PRO-6000"])
def test_other_gpus(policy: str, name: str) -> None:
    gpu = get_gpu(name)
    jobs = tuple(
        Job(f"j{number}", number * 0.5, dict.fromkeys(gpu.sizes, 8.0), memory_gb=gpu.memory_gb * (number % 5 + 0.5) / 6)
        for number in range(30)
    )
    assert run(policy, Trace(jobs, gpu, 2)).unfinished == ()
