"""Streams of batches: joined schedules are valid, never later than the trivial ones, and what was planned stays."""

import dataclasses
import itertools

import pytest
import tiny
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import A30, A100, batches, realistic_batches

import mig_opt.api.stream as streaming
from mig_opt import Pool, SolverError, Status, concatenate, generate_batch, handover, plan_stream, solve
from mig_opt.api.stream import StreamJoin
from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.schedule import Operation, Run, Schedule, ScheduleResult
from mig_opt.gpu.model import OperationCosts
from mig_opt.heuristics.batch.far import best_published
from mig_opt.heuristics.batch.far.concatenation import JOINS, EndState, Join, joined
from mig_opt.heuristics.batch.far.published import PublishedPlan
from mig_opt.heuristics.batch.far.refinement import Refinement
from mig_opt.heuristics.batch.far.repartitioning import AllocationFamily
from mig_opt.method.control import Callbacks, Control
from mig_opt.method.options import RunOptions
from mig_opt.validation import validate

EPS = 5e-9


def schedule_of(batch: Batch, method: str = "far") -> Schedule:
    return solve(batch, method).schedule


def plans(*stream: Batch, method: str = "far") -> list[tuple[Batch, Schedule]]:
    return [(batch, schedule_of(batch, method)) for batch in stream]


def halves(*seconds: float, name: str = "t") -> Batch:
    """Tasks that only run on half of an A30."""
    return Batch(tuple(Task(f"{name}{index}", {2: each}) for index, each in enumerate(seconds)), A30)


@st.composite
def streams(draw: st.DrawFn) -> list[Batch]:
    """Two or three batches for the same GPUs; the first one may have an initial state."""
    kind = st.one_of(batches(max_tasks=6), realistic_batches(max_tasks=8))
    first = draw(kind)
    stream = [first]
    while len(stream) < 3 and (len(stream) < 2 or draw(st.booleans())):
        tasks = draw(batches(st.just(first.gpu), max_tasks=6)).tasks
        stream.append(first.replace(tasks=tasks, initial=()))
    return stream


joins = st.sampled_from(JOINS)


@pytest.mark.parametrize(("join", "end"), [("trivial", 8.0), ("reversed", 6.0), ("moved", 6.0), ("handover", 6.0)])
def test_streams_on_gpus_without_mig(join: StreamJoin, end: float) -> None:
    """Each GPU is one instance that is there all the time: nothing is destroyed between batches."""
    one, two = (
        Batch((Task(f"long-{name}", {4: 3.0}), Task(f"short-{name}", {4: 1.0})), pools=(Pool(A30, 2, mig=False),))
        for name in "ab"
    )
    assert plan_stream([one, one, two], join=join, time_limit=5).ends[-1] <= end + 1
    assert plan_stream([one, two], join=join).ends == (3.0, end - 2)


def test_instances_that_are_live_are_reused() -> None:
    # b was planned for 2g@0, which is busy until 5.12; there is none of its size that is free sooner without a move.
    first, second = halves(5.0, 1.0, name="a"), halves(2.0, name="b")
    plan = concatenate(plans(first, second), join="reversed")
    assert plan.ends == (5.12, 7.12)
    assert plan.schedules[1].operations == ()
    plan = concatenate(plans(first, second), join="moved")
    assert plan.schedules[1].runs == (Run("b0", 0, "2g.12gb", 2, 1.24, 3.24),)
    assert plan.makespan == 5.12


def test_small_instances_come_first_after_small_ones() -> None:
    zero = OperationCosts.zero(A30)
    small, large = Task("small", {1: 3.0}), Task("large", {4: 2.0})
    first = Batch((Task("first", {4: 1.0}), Task("one", {1: 4.0})), A30, operations=zero)
    second = Batch((small, large), A30, operations=zero)
    assert [run.task for run in schedule_of(second).runs] == ["large", "small"]
    plan = concatenate(plans(first, second), join="reversed")
    # one 1-5 on 1g@0; small would follow there until 8, then large until 10. Moved beside it, it ends at 4.
    assert [(run.task, run.begin, run.end) for run in plan.schedules[1].runs] == [("small", 5, 8), ("large", 8, 10)]
    plan = concatenate(plans(first, second), join="moved")
    assert [(run.task, run.begin, run.end) for run in plan.schedules[1].runs] == [("small", 1, 4), ("large", 5, 7)]


def test_the_state_that_is_left() -> None:
    state = EndState.at_start_of(tiny.BATCH).after(tiny.BATCH, tiny.BEST)
    assert state.live == {(0, "1g.6gb", 2): 6.34, (0, "2g.12gb", 0): 5.46}
    assert state.driver_free == {0: 2.46}
    assert state.clear == {(0, position): 2.23 for position in range(4)}
    assert state.makespan == 6.34
    following, seconds = handover(tiny.BATCH, tiny.BEST, halves(1.0))
    assert seconds == 2.46
    assert following.initial == (LiveInstance(0, "1g.6gb", 2, 3.88), LiveInstance(0, "2g.12gb", 0, 3.0))


def test_the_driver_may_serve_what_is_ready_first() -> None:
    # All are ready at once: outer ones come first, then those on the left; usually the one with most work comes first.
    # 2g@2 is there from 0.12 to 1.12 and gone by 1.22; 1g@0 is there from 0.23, 1g@1 from 0.34 and 1g@2 from 1.33.
    tasks = Task("short", {1: 1.0}), Task("long", {1: 5.0}), Task("half", {2: 1.0}), Task("after", {1: 2.0})
    batch = Batch(tasks, A30)
    assigned = {"1g.6gb@0": 0, "1g.6gb@1": 1, "2g.12gb@2": 2, "1g.6gb@2": 3}
    plan = PublishedPlan(batch, AllocationFamily(batch))
    for instance in plan._all:
        at = assigned.get(str(instance.placement))
        instance.tasks = [] if at is None else [(next(iter(tasks[at].times.values())), at)]
    schedule = plan.fifo_driver_schedule()
    assert validate(batch, schedule).valid
    done = [f"{operation.kind} {operation.profile}@{operation.start}" for operation in schedule.operations]
    assert done[:3] == ["create 2g.12gb@2", "create 1g.6gb@0", "create 1g.6gb@1"]
    assert done[3:] == ["destroy 2g.12gb@2", "create 1g.6gb@2"]
    ends = {run.task: run.end for run in schedule.runs}
    assert ends == pytest.approx({"half": 1.12, "short": 1.23, "long": 5.34, "after": 1.22 + 0.11 + 2.0})
    assert Refinement(batch, plan.instances()).schedule().makespan < schedule.makespan


@given(realistic_batches(max_tasks=12))
@settings(max_examples=30)
def test_what_is_ready_first_can_be_served_first(batch: Batch) -> None:
    batch = batch.replace(initial=())
    plan = best_published(batch, Control[Schedule]())
    assert validate(batch, plan.fifo_driver_schedule()).valid


def test_a_schedule_without_operations_gets_some_and_one_may_end_with_a_destruction() -> None:
    (batch, schedule), second = plans(halves(1.0), halves(2.0))
    assert concatenate([(batch, Schedule(schedule.runs)), second]).makespan == pytest.approx(2.24)
    last = Operation("destroy", 0, schedule.runs[0].profile, schedule.runs[0].start, 1.12, 1.22)
    cleared = schedule.replace(operations=(*schedule.operations, last))
    assert [concatenate([(batch, cleared), second], join=join).makespan for join in JOINS] == [3.34] * 3


def test_exact_methods_plan_the_next_batch_from_the_state_that_is_left() -> None:
    stream = [generate_batch(6, gpu="A30", seed=seed) for seed in (1, 2, 3)]
    plan = plan_stream(stream, join="handover", method="cp", workers=1)
    state = EndState()
    for batch, schedule in zip(stream, plan.schedules, strict=True):
        begin = max(state.driver_free.values(), default=0.0)
        assert all(operation.begin >= begin for operation in schedule.operations or ())
        live = tuple(LiveInstance(*where, free=max(0.0, free - begin)) for where, free in state.live.items())
        assert schedule.makespan - begin == pytest.approx(solve(batch.replace(initial=live), "cp").makespan, abs=1e-6)
        state = state.after(batch, schedule)
    following, seconds = handover(stream[0], plan.schedules[0], stream[1])
    assert seconds + (solve(following, "cp").makespan or 0.0) == pytest.approx(plan.ends[1], abs=1e-6)


class Recorder(Callbacks):
    def __init__(self) -> None:
        self.begun: list[Batch] = []
        self.gaps: list[float] = []

    def on_start(self, problem: Batch, method: str) -> None:
        self.begun.append(problem)

    def on_end(self, result: ScheduleResult) -> None:
        self.gaps.append(result.gap or 0.0)


def test_gap_and_stop_end_the_run_of_a_batch_and_not_the_stream() -> None:
    stream = [generate_batch(7, gpu="A30", seed=seed) for seed in (2, 3)]
    proven, close, stopped = Recorder(), Recorder(), Recorder()
    for recorder, options in (
        (proven, {}),
        ([close], {"gap": 0.5}),
        (stopped, {"stop": lambda point: point.objective is not None}),
    ):
        assert len(plan_stream(stream, method="cp", callbacks=recorder, **options).schedules) == 2
    assert proven.gaps == [0.0, 0.0]
    assert all(0.0 < gap <= 0.5 for gap in close.gaps)
    assert all(gap > 0.0 for gap in stopped.gaps)


def test_all_that_is_wrong_is_reported() -> None:
    first = halves(1.0)
    tasks, initial = (Task("t", {1: 1.0}), Task("u", {1: 2.0}, 40)), (LiveInstance(0, "1g.5gb", 0),)
    other = Batch(tasks, A100, gpus=2, initial=initial, parallel_operations=True)
    keys = ("gpu", "gpus", "operations", "parallel_operations", "initial", "tasks[1]")
    every = ["join", *(f"batches[1].{key}" for key in keys), "method", "time_limit"]
    for stream, options, expected in (
        ([first, other], {"join": "turned", "method": "fra", "time_limit": -1.0}, every),
        ([first], {"callbacks": [Callbacks], "gap": 2.0, "stop": 3}, ["gap", "callbacks[0]", "stop"]),
        ([], {}, ["batches"]),
        ([first], {"foresight": 1}, ["foresight"]),
        ([first], {"method": "fixpart"}, ["method"]),
        ([first], {"foresight": True, "method": "cp"}, ["foresight"]),
        ([first], {"foresight": True, "join": "trivial"}, ["foresight"]),
    ):
        assert refused(plan_stream, stream, **options) == expected
    assert refused(concatenate, [], join="handover") == ["join", "plans"]
    ((batch, schedule),) = plans(first)
    assert refused(concatenate, [(batch, schedule), (halves(2.0), schedule)]) == ["plans[1]"]
    assert refused(handover, batch, Schedule(()), batch) == ["schedule"]
    assert refused(handover, batch, schedule, other)[0] == "batches[1].gpu"


def test_a_batch_without_a_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = [generate_batch(9, seed=1)]
    assert refused(plan_stream, stream, stop=lambda point: True) == ["stop"]
    either = Batch((Task("a", {1: 1.0}), Task("b", {4: 1.0})), A30)
    assert refused(plan_stream, [either], method="fixpart-best") == ["method"]

    nothing = ScheduleResult(Status.NO_SOLUTION, "brute-force", None, 0.0, 0.0)
    monkeypatch.setattr(streaming, "solve", lambda *batch, **options: nothing)
    assert refused(plan_stream, stream, method="brute-force", time_limit=1e-9) == ["time_limit"]


def test_ctrl_c_keeps_what_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()

    def interrupted_later(batch: Batch, method: str, **options: object) -> ScheduleResult:
        result = solve(batch, method)
        return dataclasses.replace(result, status=Status.INTERRUPTED) if next(calls) >= 2 else result

    stream = [generate_batch(5, seed=seed) for seed in range(4)]
    monkeypatch.setattr(streaming, "solve", interrupted_later)
    plan = plan_stream(stream)
    assert plan.batches == tuple(stream[:2])
    assert validate(plan.batch, plan.schedule).valid
    with pytest.raises(KeyboardInterrupt):
        plan_stream(stream)


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "joined", lambda batch, plan, state, join: plan)
    with pytest.raises(SolverError, match="do not fit together"):
        concatenate(plans(halves(1.0), halves(2.0)))


@pytest.mark.deep
@given(streams(), st.one_of(joins, st.just("handover")))
def test_streams_are_valid(stream: list[Batch], join: StreamJoin) -> None:
    plan = plan_stream(stream, join=join)
    assert validate(plan.batch, plan.schedule).violations == ()
    assert len(plan.schedule.runs) == sum(len(batch.tasks) for batch in stream)
    assert plan.makespan == plan.schedule.makespan
    for batch, schedule in zip(stream, plan.schedules, strict=True):
        assert sorted(run.task for run in schedule.runs) == sorted(task.name for task in batch.tasks)


@given(streams())
@settings(max_examples=50)
def test_no_join_ends_later_than_the_trivial_one_and_moves_help(stream: list[Batch]) -> None:
    first, second = stream[:2]
    state = EndState.at_start_of(first).after(first, schedule_of(first))
    plan = schedule_of(second)
    ends = [joined(second, plan, state, join).makespan for join in JOINS]
    assert ends[0] >= ends[1] - EPS
    assert ends[1] >= ends[2] - EPS


@given(streams(), joins)
@settings(max_examples=50)
def test_what_is_planned_stays(stream: list[Batch], join: Join) -> None:
    whole, part = plan_stream(stream, join=join), plan_stream(stream[:-1], join=join)
    assert whole.schedules[:-1] == part.schedules


@given(streams(), joins)
@settings(max_examples=40)
def test_the_state_is_that_of_the_whole(stream: list[Batch], join: Join) -> None:
    """The states that pass from batch to batch agree with that after the whole schedule."""
    plan = plan_stream(stream, join=join)
    state = EndState.at_start_of(stream[0])
    for schedule in plan.schedules:
        state = state.after(stream[0], schedule)
    assert state == EndState.at_start_of(stream[0]).after(stream[0], plan.schedule)


def test_a_stream_of_far_also_joins_tasks_that_are_spread_for_the_batch_before() -> None:
    first, second = (generate_batch(10, variant="published-program", shuffle=True, seed=seed) for seed in (15, 16))
    alone = concatenate(plans(first, second)).makespan
    assert plan_stream([first, second]).makespan < 0.96 * alone
    # Other methods are joined as they are.
    for method in ("far-printed", "lpt"):
        same = concatenate(plans(first, second, method=method))
        assert plan_stream([first, second], method=method).makespan == same.makespan


def test_foresight_plans_a_first_batch_that_is_better_to_follow() -> None:
    kind = {"scaling": "PoorScaling", "times": "NarrowTimes", "variant": "published-program", "shuffle": True}
    stream = [generate_batch(10, seed=seed, **kind) for seed in (24, 25)]
    plan, better = plan_stream(stream), plan_stream(stream, foresight=True)
    assert better.ends[0] > plan.ends[0] == schedule_of(stream[0]).makespan
    assert better.makespan < 0.9 * plan.makespan
    recorder = Recorder()
    plan_stream(stream, foresight=True, callbacks=recorder)
    assert recorder.begun == stream, "each batch is solved once"


@given(streams())
@settings(max_examples=25)
def test_with_foresight_no_stream_ends_later(stream: list[Batch]) -> None:
    plan = plan_stream(stream, foresight=True)
    assert validate(plan.batch, plan.schedule).valid
    assert plan.makespan <= plan_stream(stream).makespan + EPS
    assert plan_stream(stream[:1], foresight=True).schedules == plan_stream(stream[:1]).schedules


def test_time_limits_hold_while_tasks_are_moved() -> None:
    first, second = (generate_batch(10, scaling="PoorScaling", seed=seed) for seed in (1, 2))
    state = EndState().after(first, schedule_of(first))
    late = joined(second, schedule_of(second), state, "moved", Control[Schedule](RunOptions(time_limit=1e-9)))
    assert late.makespan == joined(second, schedule_of(second), state, "reversed").makespan
    assert late.makespan > joined(second, schedule_of(second), state, "moved").makespan


def test_batches_that_come_after_ages_are_refused() -> None:
    ages, second = (Batch((Task("a", {4: seconds}),), A30) for seconds in (1e17, 2.5))
    refused(plan_stream, [ages, second], match="tasks: have times too far apart to be added up")
