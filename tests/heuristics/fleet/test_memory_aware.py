"""The rules that both memory-aware schedulers share, each on a trace made for it, with the arithmetic."""

import pytest
from memory_jobs import BOTH, free, full, growing, half, places, sized, small
from online_worlds import A100, NO_COSTS, PLAIN_COSTS, TABLES, job, operations, place, rows, run, trace

from mig_opt import Job
from mig_opt.heuristics.fleet.partition_manager import PartitionManager
from mig_opt.simulation import Cluster

# The partition manager (section 4.2)


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


def test_an_idle_instance_that_fits_tightly_is_used() -> None:
    """c comes when a's 1g@6 is idle."""
    wanted = free(small("a", 2), small("b", 9), small("c", 1, 3.0), costs=PLAIN_COSTS)
    done = run("memory-aware-b", wanted)
    # Created from 0 to 1 and from 1 to 2; a runs from 1 to 3 and leaves 1g@6 to c at once.
    assert rows(done.log)[:2] == [("a", 0, "1g.5gb@6", 1, 3, "FINISHED"), ("c", 0, "1g.5gb@6", 3, 4, "FINISHED")]
    assert done.metrics.creations == 2


def test_fusion() -> None:
    """a holds 4g@0; b, c and d leave three 1g idle on the right. e wants 3g: all three are fused."""
    times = {4: 50.0}
    jobs = [sized("a", 16.0, times), *(small(name, 2, 1.0) for name in "bcd"), half("e", 5, 10.0)]
    done = run("memory-aware-b", free(*jobs, costs=PLAIN_COSTS))
    gone = [("destroy", 0, f"1g.5gb@{4 + at}", 10 + at / 2, 10.5 + at / 2) for at in range(3)]
    assert operations(done.log)[4:] == [*gone, ("create", 0, "3g.20gb@4", 11.5, 12.5)]
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
    for gpu, name in enumerate(("7g.40gb@0", "4g.20gb@0", "1g.5gb@2")):
        cluster.create(gpu, place(name))
    cluster.waiting[0] = None
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
    assert rows(folded.log) == [("b", 0, "4g.20gb@0", 0, 4, "FINISHED"), ("a", 0, "3g.20gb@4", 0, 6, "FINISHED")]
    alone = run("memory-aware-b", free(*jobs), folding=False)
    assert rows(alone.log) == [("a", 0, "4g.20gb@0", 0, 4, "FINISHED"), ("b", 0, "4g.20gb@0", 4, 8, "FINISHED")]


def test_a_limit_on_the_slowdown() -> None:
    """The paper's example: 120 SMs of work take two steps on 100, and two on 60 as well, but not on fewer.

    Here 4g takes the two steps of 7g, 2g takes four and 1g eight. At 1.0 the job is folded from 7g to 4g, at 2.0 to 2g.
    """
    wanted = free(sized("a", 4.0, {1: 8.0, 2: 4.0, 4: 2.0, 7: 2.0}))
    found = {limit: places(run("memory-aware-b", wanted, slowdown_limit=limit))["a"] for limit in (1.0, 2.0, None)}
    assert found == {1.0: "0:4g.20gb@0", 2.0: "0:2g.10gb@0", None: "0:1g.5gb@6"}


# Warps (section 4.3)


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
    small_gpu = run("whole-gpu", free(sized("a", 50.0, {7: 3.0}), small("b", 2)))
    assert (small_gpu.unfinished, [row[0] for row in rows(small_gpu.log)][-1]) == (("a",), "b")
    two = run("whole-gpu", trace(*(small(name, 3) for name in "abc"), gpus=2, costs=NO_COSTS))
    assert [(row[1], *row[3:5]) for row in rows(two.log)] == [(0, 0, 3), (1, 0, 3), (0, 3, 6)]
