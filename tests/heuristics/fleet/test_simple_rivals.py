"""The simple rivals: those that serve one queue, two baskets of GPUs, and least growth of fragmentation."""

import itertools

import online_worlds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import A100, NO_COSTS, SIZES, TABLES, arrivals, first_places, job, rows, run, trace, traces

from mig_opt import Job, OperationCosts, Simulation, Trace, catalogue, generate_trace, simulate
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.gpu.geometry import geometry_of, members
from mig_opt.heuristics.fleet.baskets import Baskets
from mig_opt.heuristics.fleet.fragmentation_growth import blocked_slices
from mig_opt.heuristics.fleet.partitions import fleet_partitions
from mig_opt.simulation import Cluster


def test_best_fit_takes_the_least_room() -> None:
    """c does not fit beside a and b with slice 3 lost, nor does d; for e both have 2 compute slices."""
    wanted = trace(*arrivals("3g.20gb", "2g.10gb", "3g.20gb", "2g.10gb", "1g.5gb"), gpus=3)
    places = "0:3g.20gb@0", "0:2g.10gb@4", "1:3g.20gb@0", "1:2g.10gb@4", "0:1g.5gb@6"
    assert first_places(run("best-fit", wanted)) == dict(zip("abcde", places, strict=True))
    spread = trace(*arrivals("4g.20gb", "4g.20gb", "1g.5gb", "1g.5gb"), gpus=3)
    # The fuller GPU: c on GPU 0 (3 free each, least index), d beside it (2 free against 3).
    assert [first_places(run("best-fit", spread))[name][0] for name in "abcd"] == ["0", "1", "0", "0"]


QUEUES = ("first-fit", "best-fit", "load-balancing", "static", "fragmentation-aware")


def waited(done: Simulation, name: str) -> float:
    """Seconds from the arrival of a job to its place."""
    number = [job.name for job in done.trace.jobs].index(name)
    return done.log.scheduled[number] - done.trace.jobs[number].arrival


@pytest.mark.parametrize("policy", [name for name in QUEUES if name != "static"])
def test_a_large_job_does_not_starve_under_a_stream_of_small_ones(policy: str) -> None:
    """A 1g job of 65 s comes every 10 s, so six or seven of them always run; the 7g job needs the whole GPU."""
    stream = [job(f"s{number}", 10.0 * number, "1g.5gb", 65.0) for number in range(120)]
    wanted = trace(*stream, job("large", 20.0, "7g.40gb", 30.0))
    endless = simulate(wanted, policy, backfill=True, patience=None)
    assert waited(endless, "large") > 1200, "it begins when the stream has ended"
    for patience in (0.0, 60.0, 600.0):
        done = run(policy, wanted, backfill=True, patience=patience)
        assert patience < waited(done, "large") <= patience + 65 + 10, "what runs then ends within 65 s"
        assert not done.unfinished
    assert waited(simulate(wanted, policy, backfill=True), "large") == waited(done, "large"), "600 s is the default"


def test_a_job_that_crashed_waits_anew() -> None:
    """It crashes after 701 s, more than the patience, and is overtaken by one that arrives 19 s later."""
    small = job("s", 1.0, "1g.5gb", 65.0), job("t", 720.0, "1g.5gb", 1.0)
    jobs = job("large", 0.0, "7g.40gb", 1400.0, crashes=(0.5,)), *small
    assert waited(run("first-fit", trace(*jobs), backfill=True), "t") == 0


@st.composite
def queues(draw: st.DrawFn) -> Trace:
    """Jobs that ask for a profile, many of them at once."""
    jobs = [
        job(f"j{number}", draw(st.integers(0, 30)), draw(st.sampled_from(sorted(SIZES))), draw(st.integers(1, 20)))
        for number in range(draw(st.integers(1, 16)))
    ]
    return trace(*jobs, gpus=draw(st.integers(1, 2)))


@settings(max_examples=40, deadline=None)
@given(queues(), st.sampled_from(QUEUES), st.sampled_from([0.0, 3.0, 10.0]))
def test_no_job_is_overtaken_beyond_the_patience(wanted: Trace, policy: str, patience: float) -> None:
    options: dict[str, object] = {"backfill": True, "patience": patience}
    if policy == "static":
        options["partition"] = "4+2+1"
    done = run(policy, wanted, **options)
    never = {"1g.10gb", "3g.20gb", "7g.40gb"} if policy == "static" else set()
    assert set(done.unfinished) == {job.name for job in wanted.jobs if job.profile in never}, "all others have a turn"
    for number, first in enumerate(wanted.jobs):
        if first.profile not in never:
            later = [at for at in done.log.scheduled[number + 1 :] if at < done.log.scheduled[number]]
            assert all(at <= first.arrival + patience for at in later)


def test_the_smallest_size_is_the_default_and_memory_lets_it_grow() -> None:
    growth = ((0.0, 3.0), (0.5, 8.0))
    wanted = trace(Job("a", 0.0, {1: 8.0, 2: 4.0, 4: 2.0}, memory_growth=growth), costs=NO_COSTS)
    done = run("first-fit", wanted)
    assert rows(done.log) == [("a", 0, "1g.5gb@0", 0, 4, "OUT_OF_MEMORY"), ("a", 0, "2g.10gb@0", 4, 8, "FINISHED")]
    only = trace(Job("a", 0.0, {1: 8.0}, memory_growth=growth), costs=NO_COSTS)
    assert rows(run("first-fit", only).log)[1:] == [("a", 0, "1g.10gb@0", 4, 12, "FINISHED")], "more memory, same size"
    too_much = trace(job("a", 0, "1g.5gb", 8, memory_growth=growth), job("b", 1, "7g.40gb", 3), costs=NO_COSTS)
    done = run("first-fit", too_much)
    assert done.unfinished == ("a",), "it asks for 1g.5gb and nothing else"
    assert rows(done.log)[-1] == ("b", 0, "7g.40gb@0", 4, 7, "FINISHED")


def test_partitions_by_demand() -> None:
    def names(gpus: int, **seconds: float) -> list[str]:
        profiles = {f"g{size}": profile for profile, size in SIZES.items() if profile != "1g.10gb"}
        jobs = [job(size, 0, profiles[size], time) for size, time in seconds.items()]
        found = fleet_partitions(trace(*jobs, gpus=gpus))
        return ["+".join(str(there.profile.compute_slices) for there in placed) for placed in found]

    # Demand for one size only.
    assert names(2, g7=10) == ["7", "7"]
    assert names(1, g1=10) == ["1+1+1+1+1+1+1"]
    # 3g: 30 s, 4g: 70 s. 4+3 is 30 + 70, 3+3 is 30 + 15.
    assert names(2, g3=30, g4=70) == ["4+3", "4+3"]
    # 7g at 20 s against seven 1g at 10 s: 10 (1 + 1/2 + ... + 1/7) = 25.9 first, then 10 (1/8 + ... + 1/14) = 6.6.
    assert names(2, g7=20, g1=10) == ["1+1+1+1+1+1+1", "7"]


def test_a_refusal_defragments_the_worst_gpu() -> None:
    """b on 2g@2 is in the way of 4g@0 once a has ended; 4 slices are free, and 2g@4 is one of them."""
    jobs = [job("a", 0.0, "2g.10gb", 5.0), job("b", 1.0, "2g.10gb", 50.0), job("c", 6.0, "4g.20gb", 9.0)]
    for defragmentation, rejected in ((True, ()), (False, ("c",))):
        done = simulate(trace(*jobs), "baskets", defragmentation=defragmentation, reject=True)
        assert done.rejected == rejected
        assert done.metrics.migrations == (1 if defragmentation else 0)


def test_consolidation_empties_gpus() -> None:
    """a and b keep GPU 0 full until 5 s; c and d then share a GPU, and e finds the other one."""
    jobs = [job("a", 0.0, "4g.20gb", 5.0), job("b", 0.0, "3g.20gb", 90.0), job("c", 1.0, "4g.20gb", 90.0)]
    jobs.append(job("e", 20.0, "7g.40gb", 5.0))
    for seconds, rejected in ((10.0, ()), (None, ("e",))):
        done = simulate(trace(*jobs, gpus=2), "baskets", consolidate_s=seconds, quota=1.0, reject=True)
        assert done.rejected == rejected


@pytest.mark.parametrize(("late", "seconds", "most"), [(1.7e9, 10.0, 20), (1e300, 10.0, 20), (90.0, 1e-9, 10_000)])
def test_consolidation_does_not_look_at_a_fleet_again_in_which_nothing_happens(
    late: float, seconds: float, most: int
) -> None:
    """Arrivals may be seconds since 1970, jobs may run for years, and nobody looks again and again within a moment."""
    jobs = [job("a", late, "4g.20gb", 5.0), job("b", 0.0, "3g.20gb", late), job("c", 1.0, "4g.20gb", 90.0)]
    costs = OperationCosts(*[dict.fromkeys(A100.sizes, 0.01)] * 2)
    done = simulate(trace(*jobs, gpus=2, costs=costs), "baskets", consolidate_s=seconds)
    assert (done.unfinished, done.events < most) == ((), True)


def test_jobs_that_run_at_the_start_count_for_the_quotas() -> None:
    state = FleetState(A100, 2, (HeldInstance(0, "7g.40gb", 0, "x"),))
    wanted = trace(job("a", 1.0, "7g.40gb", 5.0), gpus=2, costs=NO_COSTS)
    assert list(simulate(wanted, "baskets", quota=0.5, state=state, busy_until=9.0).log.finished) == [9.0, 14.0]


class Watched(Baskets):
    """Notes the most GPUs that each kind had at once."""

    def __init__(self, **options: float) -> None:
        super().__init__(**options)
        self.most = [0, 0]

    def look(self, cluster: Cluster) -> None:
        places = cluster.geometry.placements
        there = [{places[at].profile.compute_slices for at in members(state.busy)} for state in cluster.states]
        assert all(sizes == {7} or 7 not in sizes for sizes in there)
        kinds = [7 in sizes for sizes in there if sizes]
        self.most = [max(most, kinds.count(kind)) for most, kind in zip(self.most, (False, True), strict=True)]


@pytest.mark.deep
@settings(max_examples=30, deadline=None)
@given(traces(max_gpus=4), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([0.3, 0.7, 1.0]), st.booleans())
def test_quotas_are_kept(trace: Trace, quota: float, small_quota: float, reject: bool) -> None:
    policy = Watched(quota=quota, small_quota=small_quota, consolidate_s=3.0)
    done = simulate(trace, policy, observer=policy.look, reject=reject, failure_limit=5)
    online_worlds.assert_sound(done.log)
    small, large = (max(int(share * trace.gpus + 0.5), 1) for share in (small_quota, quota))
    assert policy.most[0] <= small
    assert policy.most[1] <= large


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([model.name for model in catalogue()]), st.data())
def test_blocked_slices_from_the_definition(name: str, data: st.DataObject) -> None:
    gpu = next(model for model in catalogue() if model.name == name)
    state = data.draw(st.sampled_from(sorted(gpu.placed_states("double-memory"), key=str)))
    tables = geometry_of(gpu)
    mask = tables.mask(tables.index(there.profile.name, there.start) for there in state)
    free = gpu.memory_slices - sum(there.profile.memory_slices for there in state)
    assert blocked_slices(tables, mask) == sum(
        placement.profile.memory_slices
        for placement in gpu.placements("double-memory")
        if placement.profile.memory_slices <= free and any(placement.excludes(there) for there in state)
    )


@pytest.mark.parametrize("metric", ["blocked", "unavailable"])
def test_no_other_place_grows_less(metric: str) -> None:
    def fragmentation(busy: int) -> int:
        return blocked_slices(TABLES, busy) if metric == "blocked" else TABLES.usage(busy).cost

    wanted = generate_trace("normal-25", jobs=60, gpus=3, seed=2)
    done = simulate(wanted, "fragmentation-growth", metric=metric, reject=True)
    runs = sorted(done.log.runs(), key=lambda run: done.log.scheduled[run.job])
    moments = {run.job: (done.log.scheduled[run.job], done.log.finished[run.job]) for run in runs}
    for own in runs:
        now = moments[own.job][0]
        busy = [
            TABLES.mask(
                TABLES.index(other.placement.profile.name, other.placement.start)
                for other in runs
                if other.gpu == gpu and moments[other.job][0] < now < moments[other.job][1]
            )
            for gpu in range(3)
        ]
        chosen = TABLES.index(own.placement.profile.name, own.placement.start)
        growths = {
            (gpu, where): fragmentation(busy[gpu] | 1 << where) - fragmentation(busy[gpu])
            for gpu, where in itertools.product(range(3), TABLES.placements_of[TABLES.profile_of[chosen]])
            if not TABLES.conflicts[where] & busy[gpu]
        }
        assert min(growths, key=lambda each: (growths[each], each)) == (own.gpu, chosen)
