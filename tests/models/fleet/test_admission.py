"""The most that a fleet without a queue can accept: proofs, bounds, and nobody accepts more."""

import pytest
from admission_search import Replay, most_on_one_place, most_with_migration
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, RejectingChaos
from online_worlds import traces as any_traces

from mig_opt import InputError, Job, OperationCosts, Status, Trace, generate_trace, get_gpu, methods, simulate
from mig_opt.fleet.admission import AdmissionGoal, admission_weights
from mig_opt.models.fleet import admission
from mig_opt.models.fleet.admission import AdmissionOptimum, acceptance_bound, admission_bound, admission_optimum
from mig_opt.models.fleet.admission_programs import AdmissionProblem
from mig_opt.validation.fleet.admissions import check_admission

A30, A100 = get_gpu("A30"), get_gpu("A100")
GOALS: tuple[AdmissionGoal, ...] = ("jobs", "slices", "slice-seconds")
NAMES = [policy.name for policy in methods("simulate") if policy.name != "planner"]
halves = st.integers(1, 16).map(lambda n: n / 2)


@st.composite
def small_traces(draw: st.DrawFn, most: int = 5) -> Trace:
    """A few jobs on one or two A30, with ends and arrivals that coincide."""
    jobs = []
    for index in range(draw(st.integers(1, most))):
        sizes = draw(st.lists(st.sampled_from(A30.sizes), min_size=1, max_size=2, unique=True))
        asked = draw(st.none() | st.sampled_from([p for p in A30.profiles_of("base") if p.compute_slices in sizes]))
        times = {size: draw(halves) for size in sizes if asked is None or size == asked.compute_slices}
        memory = draw(st.sampled_from([None, None, 10.0])) if max(times) > 1 else None
        jobs.append(Job(f"j{index}", draw(st.integers(0, 8)) / 2, times, asked and asked.name, memory))
    return Trace(tuple(jobs), A30, draw(st.integers(1, 2)), OperationCosts.zero(A30))


def proven(trace: Trace, goal: AdmissionGoal, *, migration: bool = False) -> AdmissionOptimum:
    return admission_optimum(trace, goal, migration=migration, workers=1)


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(small_traces(), st.sampled_from(GOALS))
def test_the_optimum_is_that_of_trying_everything(trace: Trace, goal: AdmissionGoal) -> None:
    best = proven(trace, goal)
    assert best.status is Status.OPTIMAL
    assert best.accepted == best.upper_bound == pytest.approx(most_on_one_place(trace, goal))
    assert best.admission.weight(trace, goal) == pytest.approx(best.accepted)


@pytest.mark.deep
@settings(max_examples=40, deadline=None)
@given(small_traces(), st.sampled_from(GOALS))
def test_bounds_with_migration_are_in_the_right_order(trace: Trace, goal: AdmissionGoal) -> None:
    bounded = proven(trace, goal, migration=True)
    most = most_with_migration(trace, goal)
    assert most_on_one_place(trace, goal) <= most + 1e-9
    assert admission_bound(trace, goal) >= bounded.upper_bound - 1e-9
    if all(job.memory_gb is None for job in trace.jobs):
        # The integer program bounds exactly what fits in each moment; jobs that may run out of memory may be anywhere.
        assert bounded.upper_bound == pytest.approx(most)
    else:
        assert bounded.upper_bound >= most - 1e-9


@pytest.mark.deep
@settings(max_examples=20, deadline=None)
@given(small_traces(most=6), st.sampled_from(GOALS))
def test_an_admission_can_be_carried_out(trace: Trace, goal: AdmissionGoal) -> None:
    best = proven(trace, goal)
    done = simulate(trace, Replay(best.admission), reject=True)
    names = {entry.job for entry in best.admission.accepted}
    assert set(done.rejected) == {job.name for job in trace.jobs} - names
    weights = admission_weights(trace, goal)
    ratio = {"jobs": "jobs", "slices": "slices", "slice-seconds": "slice_seconds"}[goal]
    assert getattr(done.metrics.acceptance, ratio) == pytest.approx(best.accepted / sum(weights))


@pytest.mark.deep
@settings(max_examples=20, deadline=None)
@given(any_traces(max_jobs=8, max_gpus=2), st.integers(0, 10**6), st.sampled_from(GOALS))
def test_no_scheduler_accepts_more(trace: Trace, seed: int, goal: AdmissionGoal) -> None:
    """Whatever it does: migrate, stop, resize, try jobs where memory will not do, or not give what they ask for."""
    possible = [job for job in trace.jobs if trace.whole_run_profiles(job)]
    if not possible:
        return
    trace = trace.replace(jobs=tuple(possible))
    staying, moving = (admission_optimum(trace, goal, migration=m, workers=1).upper_bound for m in (False, True))
    largest = admission_bound(trace, goal, as_asked=False)
    assert staying <= moving <= admission_bound(trace, goal) + 1e-9 <= largest + 2e-9
    weights = dict(zip((job.name for job in trace.jobs), admission_weights(trace, goal), strict=True))
    for policy in (RejectingChaos(seed), *NAMES):
        done = simulate(trace, policy, reject=True, failure_limit=5)
        left = {*done.rejected, *done.unfinished}
        accepted = sum(weight for name, weight in weights.items() if name not in left)
        moved = done.metrics.migrations + done.metrics.failures + done.metrics.stops
        # Chaos gives jobs other sizes than they are to have.
        as_asked = moving if moved or policy not in NAMES else staying
        assert accepted <= (as_asked if done.log.as_asked() else largest) + 1e-6, policy


def test_two_sevenths_are_worth_less_than_one_whole() -> None:
    """Both 1g jobs hold slice 0 or another of the whole GPU; the 7g job has more slices and seconds."""
    jobs = (Job("a", 0.0, {1: 9.0}), Job("b", 1.0, {1: 9.0}), Job("c", 2.0, {7: 5.0}))
    trace = Trace(jobs, A100, 1, NO_COSTS)
    assert [proven(trace, goal).accepted for goal in GOALS] == [2.0, 7.0, 35.0]
    best = proven(trace, "slices")
    assert "slices" in str(best)
    assert [entry.job for entry in best.admission.accepted if best.admission] == ["c"]


def test_parts_of_a_long_trace_and_few_moments_bound_too(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = generate_trace("normal-25", jobs=60, gpus=1, seed=3)
    whole = {goal: admission_bound(trace, goal) for goal in GOALS}
    monkeypatch.setattr(admission, "_MIN_JOBS_IN_PART", 7)
    monkeypatch.setattr(admission, "_JOBS_IN_PART_PER_GPU", 1)
    parts = {goal: admission_bound(trace, goal) for goal in GOALS}
    monkeypatch.setattr(admission, "_MAX_TERMS", 20)
    few = {goal: admission_bound(trace, goal) for goal in GOALS}
    for goal in GOALS:
        assert whole[goal] <= parts[goal] <= few[goal] <= sum(admission_weights(trace, goal)) + 1e-6
    assert whole["slices"] < few["slices"]


def test_without_time_everything_may_be_accepted() -> None:
    trace = generate_trace("normal-25", jobs=30, gpus=1, seed=3)
    assert admission_bound(trace, time_limit=1e-9) == 30
    assert acceptance_bound(trace).jobs == admission_bound(trace) / 30


def test_wrong_arguments_are_told_at_once() -> None:
    with pytest.raises(InputError, match="goal: unknown 'job'; did you mean jobs") as wrong:
        admission_optimum(generate_trace("normal-25", jobs=2), "job", migration=1, gap=2)
    assert len(wrong.value.problems) == 3
    refused(admission_bound, None, match="trace: must be a Trace")
    refused(admission_bound, Trace((Job("a", 0.0, {1: 1.0}, memory_gb=99.0),), A30), match="can run nowhere")


def test_what_finds_no_gpu_is_left_out() -> None:
    """Three jobs that keep one placement in turn need two GPUs where there is one."""
    jobs = (Job("a", 0.0, {4: 5.0}), Job("b", 1.0, {4: 5.0}))
    problem = AdmissionProblem(Trace(jobs, A30, 1, OperationCosts.zero(A30)), "jobs")
    found = problem.accept(problem.choices)
    assert [entry.job for entry in found.accepted] == ["a"]
    assert check_admission(problem.trace, found) == []
