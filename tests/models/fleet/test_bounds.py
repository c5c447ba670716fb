"""Lower bounds of traces, and small traces solved exactly."""

import dataclasses
import math
from typing import Any

import arrival_search
import pytest
from documents import refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from online_worlds import Chaos

from mig_opt import Job, OperationCosts, Pool, Schedule, generate_trace, get_gpu, methods, simulate
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.fleet.description import describe_trace
from mig_opt.fleet.trace import Trace, batch_of
from mig_opt.gpu.catalogue import add_gpu
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.fleet.arrivals import TraceGoal, best_schedule, seconds_of
from mig_opt.models.fleet.optimum import trace_optimum
from mig_opt.validation import validate

A30, A100 = get_gpu("A30"), get_gpu("A100")
GOALS: tuple[TraceGoal, ...] = ("makespan", "completion")
tenths = st.integers(1, 90).map(lambda n: n / 10)


@st.composite
def traces(draw: st.DrawFn, most: int) -> Trace:
    jobs = []
    for index in range(draw(st.integers(1, most))):
        times = draw(st.dictionaries(st.sampled_from(A30.sizes), tenths, min_size=1))
        profile = draw(
            st.none() | st.sampled_from([p for p in A30.profiles_of("base") if p.compute_slices in times] or [None])
        )
        jobs.append(Job(f"j{index}", draw(st.integers(0, 60)) / 10, times, profile and profile.name))
    cost = st.sampled_from([0.0, 0.5, 1.0])
    costs = OperationCosts({s: draw(cost) for s in A30.sizes}, {s: draw(cost) for s in A30.sizes})
    return Trace(tuple(jobs), A30, draw(st.integers(1, 2)) if most < 3 else 1, costs)


def without_bounds(trace: Trace, goal: TraceGoal, time_limit: float | None = None) -> Control[Schedule]:
    """The best schedule as the model finds it alone."""
    options = RunOptions(time_limit=time_limit, workers=1)
    control = Control[Schedule](options, judge=lambda schedule: (seconds_of(goal, schedule),))
    best_schedule(trace, goal, control)
    return control


def check(trace: Trace, goal: TraceGoal, found: Control[Schedule]) -> None:
    assert found.proven
    assert validate(batch_of(trace), found.plan).violations == ()
    jobs = {job.name: job for job in trace.jobs}
    for run in found.plan.runs:
        assert run.begin >= jobs[run.task].arrival
        assert run.profile == (jobs[run.task].profile or run.profile)
    ends = [run.end for run in found.plan.runs]
    assert found.objective == pytest.approx(max(ends) if goal == "makespan" else sum(ends))
    assert found.lower_bound == pytest.approx(found.objective, rel=1e-6)


@pytest.mark.parametrize("goal", GOALS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(trace=traces(2) | traces(3))
def test_the_exact_model_finds_what_search_through_everything_finds(goal: TraceGoal, trace: Trace) -> None:
    found = without_bounds(trace, goal)
    check(trace, goal, found)
    assert found.objective == pytest.approx(arrival_search.least(trace, goal))


def test_profiles_with_attributes_are_plain_where_there_are_no_others() -> None:
    media = dataclasses.replace(A30.profile("1g.6gb"), name="1g.6gb+me", attributes=("me",))
    odd = add_gpu(dataclasses.replace(A30, name="media", aliases=(), profiles=(media, *A30.profiles[2:])))
    trace = Trace((Job("a", 0.0, {1: 1.0, 4: 9.0}), Job("b", 0.0, {1: 1.0})), odd, 2)
    assert trace_optimum(trace, workers=1).value == pytest.approx(1.11)


@pytest.mark.deep
@pytest.mark.parametrize("goal", GOALS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(trace=traces(5))
def test_no_bound_is_above_the_optimum(goal: TraceGoal, trace: Trace) -> None:
    least = without_bounds(trace, goal, time_limit=5).objective or 0.0
    for bound in getattr(trace_bounds(trace), goal):
        assert bound.value <= least
        assert bound.reason
        assert bound.name


def test_memory_slices_count_where_compute_slices_do_not() -> None:
    jobs = tuple(Job(f"j{i}", 0.0, {3: 7.0}, "3g.20gb") for i in range(4))
    makespan = {bound.name: bound.value for bound in trace_bounds(Trace(jobs, A100)).makespan}
    # Two fit on a GPU, whose driver creates the second instance after the first one.
    create = A100.operation_costs.create[3]
    assert makespan["area of memory slices"] == pytest.approx(1.5 * create + 4 * 7 / 2)
    assert makespan["area of compute slices"] == pytest.approx(1.5 * create + 4 * 7 / 2)
    assert makespan["weighted area"] >= makespan["area of memory slices"] * (1 - 1e-4)


@pytest.mark.parametrize("table", [{4: 5.0}, {"A30 without MIG": {4: 5.0}}], ids=["sizes", "kinds"])
def test_gpus_without_mig_have_no_operations(table: dict[Any, Any]) -> None:
    """Nor do costs count that somebody states for them."""
    jobs = tuple(Job(name, 0.0, {4: 3.0}) for name in "ab")
    trace = Trace(jobs, pools=(Pool(A30, 1, mig=False),), operations=OperationCosts(table, table))
    assert simulate(trace, "first-fit").metrics.makespan == 6.0
    assert max(bound.value for bound in trace_bounds(trace).makespan) == pytest.approx(6.0)
    check(trace, "makespan", without_bounds(trace, "makespan"))
    assert trace_optimum(trace, workers=1).value == 6.0


@pytest.mark.parametrize("seconds", [1.4e-10, 1.5e-9, 3.0])
def test_times_are_not_rounded_away(seconds: float) -> None:
    trace = Trace((Job("a", 0.0, {4: seconds}),), A30, operations=OperationCosts.zero(A30))
    found = trace_optimum(trace, workers=1)
    assert (found.value, found.proven) == (seconds, ("makespan",))


def test_a_job_that_can_run_nowhere() -> None:
    """On an A100 a job may have 5 or 10 GB on one slice, and 40 GB on seven."""
    grown = (({1: 10.0}, 11.0), ({1: 10.0, 7: 5.0}, 41.0))
    hopeless = [Job("a", 0.0, times, memory_growth=((0.0, 4.0), (0.5, peak))) for times, peak in grown]
    for job in (Job("a", 0.0, {1: 2.0}, memory_gb=1000.0), *hopeless):
        trace = Trace((job, Job("b", 0.0, {1: 2.0})), A100)
        for ask in (trace_bounds, trace_optimum, describe_trace):
            assert refused(ask, trace, match="job 'a' can run nowhere") == ["jobs[0]"]
    said = "goal: must be makespan or completion, is 'mean'"
    refused(trace_optimum, Trace((Job("b", 0.0, {1: 2.0}),), A100), "mean", match=said)


def test_an_optimum_of_rounded_times_is_not_one_of_the_true_times() -> None:
    jobs = tuple(Job(name, 0.0, {1: 1e12, 2: 30.0, 4: 0.1}) for name in "ab")
    for goal, shorter in (("makespan", 31.0), ("completion", 61.0)):
        found = trace_optimum(Trace(jobs, A30), goal, workers=1)
        assert found.lower_bound <= shorter
        assert (found.value <= shorter) or not found.proven


def test_without_time_there_is_no_schedule_but_a_bound() -> None:
    trace = generate_trace("far-stream", batches=2, tasks=5)
    found = trace_optimum(trace, time_limit=1e-9)
    assert (found.schedule, found.proven, found.value) == (None, (), math.inf)
    assert found.lower_bound == trace_bounds(trace).makespan[0].value


def test_the_link_of_one_gpu_is_used_up_by_two_jobs() -> None:
    """Two jobs of 10 s that ask for the whole link: 20 s, side by side or one after the other; on two GPUs 10 s."""
    jobs = tuple(Job(name, 0.0, {1: 10.0}, pcie_gbps=30.0, sensitivity=1.0) for name in "ab")
    for gpus in (1, 2):
        trace = Trace(jobs, A30, gpus, OperationCosts.zero(A30), 30.0)
        best = trace_bounds(trace).makespan[0]
        assert best.value == pytest.approx(20 / gpus)
        assert simulate(trace, "planner").metrics.makespan == pytest.approx(20 / gpus)
        assert ("PCIe links" in best.name) == (gpus == 1)


@st.composite
def mixed_traces(draw: st.DrawFn) -> Trace:
    """Jobs of all kinds: with profiles or without, PCIe-bound, of growing memory; operations of any length."""
    gpu = draw(st.sampled_from([A30, A100]))
    jobs = []
    for index in range(draw(st.integers(1, 12))):
        times = draw(st.dictionaries(st.sampled_from(gpu.sizes), tenths, min_size=1))
        own = [profile for profile in gpu.profiles_of("base") if profile.compute_slices in times]
        profile = draw(st.none() | st.sampled_from(own))
        most = max(each.memory_gb for each in own)
        if profile is not None:  # a scheduler may give it more than it asks for, and no less
            times = {size: seconds for size, seconds in times.items() if size >= profile.compute_slices}
        growth: tuple[tuple[float, float], ...] = ()
        if profile is None and draw(st.booleans()):
            shares = draw(st.lists(st.integers(1, 9), max_size=3, unique=True))
            sizes = sorted(draw(st.floats(0.1, 0.99)) for _ in range(len(shares) + 1))
            growth = tuple(
                zip((0.0, *(each / 10 for each in sorted(shares))), (most * size for size in sizes), strict=True)
            )
        pcie = draw(st.sampled_from([0.0, 0.0, 5.0, 20.0, 40.0]))
        arrival = draw(st.just(0) | st.integers(0, 100)) / 10
        name, slower = profile and profile.name, draw(st.sampled_from([0.5, 1.5]))
        jobs.append(Job(f"j{index}", arrival, times, name, None, growth, pcie_gbps=pcie, sensitivity=slower))
    cost = st.sampled_from([0.0, 0.3, 2.0])
    costs = OperationCosts({s: draw(cost) for s in gpu.sizes}, {s: draw(cost) for s in gpu.sizes})
    return Trace(tuple(jobs), gpu, draw(st.integers(1, 3)), costs, 30.0)


SOME = ("first-fit", "load-balancing", "fragmentation-aware", "pcie-aware", "planner")
ALL = pytest.param([entry.name for entry in methods("simulate")], marks=pytest.mark.deep)


@pytest.mark.parametrize("names", [SOME, ALL])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(trace=mixed_traces(), seed=st.integers(0, 10**6))
def test_no_scheduler_beats_the_bounds(names: list[str], trace: Trace, seed: int) -> None:
    options = {"planner": {"rounds": 20}, "pcie-aware": {"wait_threshold": 0.0}}
    runs = [(trace_bounds(trace), simulate(trace, Chaos(seed)))]
    bounds = trace_bounds(trace, resizing=False)
    runs += [(bounds, simulate(trace, name, **options.get(name, {}))) for name in names]
    for bounds, done in runs:
        if not done.unfinished:
            assert done.metrics.makespan >= bounds.makespan[0].value
            assert math.fsum(done.log.finished) >= bounds.completion[0].value


def test_a_scheduler_may_give_a_larger_instance_than_asked_for() -> None:
    """whole-gpu runs the job on 7g, where it takes 2 s and not 10 s."""
    trace = Trace((Job("a", 0.0, {1: 10.0, 7: 2.0}, "1g.5gb"),), A100, 1, OperationCosts.zero(A100))
    assert trace_bounds(trace).makespan[0].value == pytest.approx(2)
    assert simulate(trace, "whole-gpu").metrics.makespan == pytest.approx(2)


def test_without_migration_to_another_size_memory_is_enough_from_the_start() -> None:
    """Half of the work needs 10 GB only, but where the other half is done there are 20 GB: two jobs fit on a GPU."""
    job = Job("a", 0.0, {1: 60.0, 3: 60.0}, memory_gb=15.0, memory_growth=((0.0, 4.0), (0.5, 15.0)))
    jobs = tuple(dataclasses.replace(job, name=name) for name in "abcd")
    trace = Trace(jobs, A100, 1, OperationCosts.zero(A100))
    least, fixed = (trace_bounds(trace, resizing=resizing).makespan[0].value for resizing in (True, False))
    assert least < 100
    assert fixed == pytest.approx(120)
    assert simulate(trace, "first-fit").metrics.makespan == pytest.approx(120)


def test_jobs_that_only_one_instance_suits_wait_for_each_other() -> None:
    """Three jobs of 10 s on the one 4g of an A100: 10, 20 and 30 s; on slices alone two would run at once."""
    trace = Trace(tuple(Job(name, 0.0, {4: 10.0}, "4g.20gb") for name in "abc"), A100, 1, OperationCosts.zero(A100))
    bounds = trace_bounds(trace)
    assert bounds.makespan[0].value == pytest.approx(30)
    assert bounds.completion[0].value == pytest.approx(60)
    assert bounds.completion[0].name in {"mean busy times", "shared machine", "ends in order"}
