"""Memory-aware schedulers and their rival: partitions (section 4.2), warps (4.3), unknown memory (2.3, 3.2), scheme A.

Without stated costs operations take no time. On an A100 1g has 5 GB, 2g 10 GB, 3g and 4g 20 GB, 7g 40 GB.
"""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import A100, NO_COSTS, PLAIN_COSTS, TABLES, job, place, rows, run, trace

from mig_opt import Job, Simulation
from mig_opt.heuristics.fleet.base import LinearFit
from mig_opt.heuristics.fleet.memory_aware import MemoryForecast
from mig_opt.heuristics.fleet.partition_manager import PartitionManager
from mig_opt.simulation import Cluster

STEPS = 20


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


free = partial(trace, costs=NO_COSTS)


def places(done: Simulation) -> dict[str, str]:
    """Instance on which each job ran last."""
    return {str(row[0]): f"{row[1]}:{row[2]}" for row in rows(done.log)}


BOTH = pytest.mark.parametrize("policy", ["memory-aware-a", "memory-aware-b"])


@BOTH
def test_the_placement_that_leaves_most_configurations(policy: str) -> None:
    """1g: 12 on slice 6, then 6 on 4 and on 5. On slice 0, with these, 2 (1+1+2 and 1+1+1+1), as on every other.

    The left four slices have 6 configurations, the right three have 3: 3, 2+1 and 1+1+1.
    """
    wanted = free(*(small(name, 10, number) for number, name in enumerate("abcde")))
    assert places(run(policy, wanted)) == {
        name: f"0:1g.5gb@{at}" for name, at in zip("abcde", (6, 4, 5, 0, 1), strict=True)
    }
    # 3g on the right leaves 6, on the left 3; 4g leaves 3. Then one is left whatever it is: the fastest.
    assert places(run(policy, free(half("a", 9), half("b", 9)))) == {"a": "0:3g.20gb@4", "b": "0:3g.20gb@0"}
    faster = sized("b", 16.0, {3: 9.0, 4: 8.0, 7: 7.0}, 1.0)
    assert places(run(policy, free(sized("a", 16.0, faster.times), faster)))["b"] == "0:4g.20gb@0"


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
    assert manager.place(fit) == (0, place(wanted))


def test_the_gpu_on_which_least_has_to_be_done() -> None:
    """GPU 0 would have to split 7g, GPU 1 has room, GPU 2 has an idle 1g; then GPU 2 has none left, but has room."""
    cluster = Cluster(free(small("a", 3), small("b", 3), gpus=3), TABLES)
    for gpu, name in enumerate(("7g.40gb@0", "4g.20gb@0", "1g.5gb@2")):
        cluster.create(gpu, place(name))
    cluster.waiting[0] = None
    manager = PartitionManager(cluster, folding=True, slowdown_limit=None)
    fit = manager.tight_fit(cluster.trace.jobs[0], 4.0)
    assert manager.place(fit) == (2, place("1g.5gb@2"))
    cluster.start(0, 2, place("1g.5gb@2"))
    assert manager.place(fit) == (1, place("1g.5gb@6"))


def test_a_limit_on_the_slowdown() -> None:
    """The paper's example: 120 SMs of work take two steps on 100, and two on 60 as well, but not on fewer.

    Here 4g takes the two steps of 7g, 2g takes four and 1g eight. At 1.0 the job is folded from 7g to 4g, at 2.0 to 2g.
    """
    wanted = free(sized("a", 4.0, {1: 8.0, 2: 4.0, 4: 2.0, 7: 2.0}))
    found = {limit: places(run("memory-aware-b", wanted, slowdown_limit=limit))["a"] for limit in (1.0, 2.0, None)}
    assert found == {1.0: "0:4g.20gb@0", 2.0: "0:2g.10gb@0", None: "0:1g.5gb@6"}


def wide(name: str, sms: int | None, gb: float = 4.0) -> Job:
    """A job that fills a number of SMs; an A100 has 14 on each compute slice, 98 on 7g."""
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
    small_gpu = run("whole-gpu", free(sized("a", 50.0, {7: 3.0}), small("b", 2)))
    assert (small_gpu.unfinished, [row[0] for row in rows(small_gpu.log)][-1]) == (("a",), "b")
    two = run("whole-gpu", trace(*(small(name, 3) for name in "abc"), gpus=2, costs=NO_COSTS))
    assert [(row[1], *row[3:5]) for row in rows(two.log)] == [(0, 0, 3), (1, 0, 3), (0, 3, 6)]


@BOTH
def test_early_restart(policy: str) -> None:
    """Looked at from second 1 to 6 it has 1.5 to 4 GB: a line to 11 GB at the end, which needs a half."""
    done = run(policy, free(growing("a", 1.0, 10.5)))
    assert rows(done.log) == [("a", 0, "1g.5gb@6", 0, 6, "STOPPED"), ("a", 0, "3g.20gb@0", 6, 26, "FINISHED")]
    seldom = run(policy, free(growing("a", 1.0, 10.5)), sample_s=4.0)
    # Looks are at 4 and 8; at 9 it fails. On 2g they are at 12, 16, 20 and 24, four are too few; at 28 it fails again.
    expected = [(0, 9, "OUT_OF_MEMORY"), (9, 28, "OUT_OF_MEMORY"), (28, 48, "FINISHED")]
    assert [row[3:] for row in rows(seldom.log)] == expected
    # One that will fit is left alone.
    assert rows(run(policy, free(growing("a", 1.0, 4.0))).log) == [("a", 0, "1g.5gb@6", 0, 20, "FINISHED")]


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
    expected = [("c", 0, 3), ("a", 0, 9), ("a", 9, 28), ("a", 28, 48), ("b", 48, 53)]
    assert [(row[0], *row[3:5]) for row in rows(by_size.log)] == expected


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
    jobs = [growing(f"j{at}", first, last, arrival=float(arrival)) for at, (arrival, first, last) in enumerate(wanted)]
    done = run(policy, free(*jobs, gpus=gpus), prediction=prediction, sample_s=0.7)
    assert done.unfinished == ()
    assert prediction or not done.metrics.stops


def test_smaller_jobs_that_come_later_do_not_starve_a_larger_one_of_their_size() -> None:
    """They join the phase in the order of arrival: s00, s01, then large. A new phase sorts those that wait: e, d."""
    stream = [sized(f"s{number:02}", 21.0, {7: 5.0}, 2.0 * number) for number in range(40)]
    done = run("memory-aware-a", free(*stream, sized("large", 39.0, {7: 5.0}, 3.0)))
    assert [row[0] for row in rows(done.log)][:4] == ["s00", "s01", "large", "s02"]
    jobs = [small("a", 5), small("b", 5, 1.0), sized("d", 39.0, {7: 5.0}, 2.0), sized("e", 25.0, {7: 5.0}, 3.0)]
    assert [row[0] for row in rows(run("memory-aware-a", free(*jobs)).log)] == list("abed")


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


def test_a_steady_stream_of_small_jobs_does_not_starve_a_large_one() -> None:
    jobs = [small(f"s{number:02}", 5, number) for number in range(60)]
    done = run("memory-aware-a", free(*jobs, full("large", 5, 2.5)))
    (end,) = [row[4] for row in rows(done.log) if row[0] == "large"]
    # s00 to s02 are there before it and end by 7.
    assert end == 12


def test_jobs_with_the_same_memory_on_other_profiles_have_another_phase() -> None:
    """a can run on 4g alone, b on 3g alone: b, which takes fewer slices, is first, though both would fit."""
    done = run("memory-aware-a", free(sized("a", 16.0, {4: 3.0}), sized("b", 16.0, {3: 5.0})))
    assert [(row[0], *row[3:5]) for row in rows(done.log)] == [("b", 0, 5), ("a", 5, 8)]


Z = 2.5758293035489004
"""Standard deviations within which 99 % of a normal distribution are."""


def seen(forecast: MemoryForecast, *requested: float) -> MemoryForecast:
    for iteration, gb in enumerate(requested, 1):
        forecast.observe(iteration, gb)
    return forecast


def test_a_noisy_line() -> None:
    """Through (1, 1), (2, 3), (3, 2): slope 0.5, mean 2, residuals -0.5, 1, -0.5; 1.5 by one degree of freedom."""
    forecast = seen(MemoryForecast(last=10), 1.0, 3.0, 2.0)
    assert forecast.peak == pytest.approx(2 + 0.5 * (10 - 2) + Z * math.sqrt(1.5))


def test_a_prediction_that_moves_begins_anew() -> None:
    """At the fourth of six values that of 10.5 moves by far more than 5 %."""
    assert not seen(MemoryForecast(last=20), 1.0, 1.5, 2.0, 3.0, 3.0, 3.5).converged


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.1, 40.0), min_size=3, max_size=30), st.floats(0.01, 3.0))
def test_the_fit_is_that_of_least_squares(values: list[float], step: float) -> None:
    fit = LinearFit()
    xs = [step * number for number in range(len(values))]
    for x, y in zip(xs, values, strict=True):
        fit.add(x, y)
    slope, offset = np.polyfit(xs, values, 1)
    residuals = np.array(values) - (slope * np.array(xs) + offset)
    assert fit.at(xs[-1] * 2) == pytest.approx(slope * xs[-1] * 2 + offset, abs=1e-6)
    assert fit.deviation == pytest.approx(math.sqrt((residuals**2).sum() / (len(xs) - 2)), abs=1e-6)
