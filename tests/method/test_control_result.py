"""The control that running methods report to, its result, and functions as methods."""

import copy
import functools
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from listening import Recorder

from mig_opt import Batch, Run, Schedule, ScheduleResult, Task, get_gpu, solve
from mig_opt.method import control as control_module
from mig_opt.method.control import Callbacks, Control, interruptibly
from mig_opt.method.functions import planned_by
from mig_opt.method.options import RunOptions
from mig_opt.method.result import Status, TrajectoryPoint


def ending(seconds: float) -> Schedule:
    return Schedule((Run("a", 0, "4g.24gb", 0, 0.0, seconds),), ())


class Clock:
    """Time that passes when told to."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(control_module, "time", clock)
    return clock


def test_only_improvements_are_kept_and_told(clock: Clock) -> None:
    recorder = Recorder()
    control = Control[Schedule](RunOptions(callbacks=(recorder,)))
    clock.now += 1
    control.raise_bound(3.0)
    assert control.objective is None
    clock.now += 1
    first, better = ending(9.0), ending(7.0)
    assert control.report_plan(first)
    assert not control.report_plan(ending(9.0))  # as good is no improvement: the first one stays
    assert control.plan is first
    control.raise_bound(3.0)
    control.raise_bound(2.0)
    clock.now += 1
    assert control.report_plan(better)
    assert not control.report_plan(ending(8.0))
    control.raise_bound(4.0)
    assert (control.plan, control.objective, control.lower_bound) == (better, 7.0, 4.0)
    expected = [(1.0, None, 3.0), (2.0, 9.0, 3.0), (3.0, 7.0, 3.0), (3.0, 7.0, 4.0)]
    assert control.trajectory == [TrajectoryPoint(*point) for point in expected]
    told = [(kind, seconds, getattr(plan, "makespan", plan), bound) for kind, (seconds, plan, bound) in recorder.calls]
    kinds = "bound", "incumbent", "incumbent", "bound"
    assert told == [(kind, *point) for kind, point in zip(kinds, expected, strict=True)]


def test_a_listener_sees_the_new_state_and_may_report_itself() -> None:
    seen: list[float | None] = []

    class Reporter(Callbacks):
        def on_incumbent(self, seconds: float, schedule: Schedule, lower_bound: float) -> None:
            seen.append(control.objective)
            control.raise_bound(2.0)

    control = Control[Schedule](RunOptions(callbacks=(Reporter(),)))
    control.report_plan(ending(5.0))
    assert seen == [5.0]
    assert control.lower_bound == 2.0


def test_a_deterministic_run_counts_work_and_no_time(clock: Clock) -> None:
    control = Control[Schedule](RunOptions(time_limit=2.0, workers=8, deterministic=True))
    clock.now += 1e9
    assert (control.seconds, control.remaining, control.expired) == (1e9, 2.0, False)
    control.spend(1.5)
    assert (control.remaining, control.expired) == (0.5, False)
    control.spend(1.5)
    assert (control.remaining, control.expired) == (0.0, True)
    assert control.workers == 1


def test_a_part_of_a_run_has_a_share_of_its_time(clock: Clock) -> None:
    control = Control[Schedule](RunOptions(time_limit=10.0))
    control.begin()
    clock.now += 2.0
    with control.within(0.5), control.within(0.25):
        assert control.left == pytest.approx(1.0)
        clock.now += 1.0
        assert control.expired
    assert control.left == pytest.approx(7.0)
    with Control[Schedule](RunOptions()).within(0.1):
        assert not control.expired


def test_stop_is_asked_last_and_only_as_long_as_it_says_no() -> None:
    events: list[object] = []

    def stop(point: TrajectoryPoint) -> bool:
        events.append((point.makespan, point.lower_bound))
        return point.lower_bound > 3

    class Told(Callbacks):
        def on_bound(self, seconds: float, makespan: float | None, lower_bound: float) -> None:
            events.append(lower_bound)

    control = Control[Schedule](RunOptions(callbacks=[Told()], stop=stop))
    control.report_plan(ending(9.0))
    control.report_plan(ending(9.0))  # no improvement
    control.raise_bound(4.0)
    control.report_plan(ending(8.0))
    control.raise_bound(5.0)
    assert events == [(9.0, 0.0), 4.0, (9.0, 4.0)]
    assert control.objective == 9.0


def test_many_threads_keep_the_best_and_a_monotone_trajectory() -> None:
    control = Control[Schedule]()
    start = threading.Barrier(8)

    def work(worker: int) -> None:
        start.wait()
        for step in range(300):
            control.report_plan(ending(1000.0 - step - worker / 10))
            control.raise_bound(step + worker / 10)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert control.objective == 1000.0 - 299 - 0.7
    assert control.lower_bound == 299.7
    makespans = [point.makespan for point in control.trajectory if point.makespan is not None]
    bounds = [point.lower_bound for point in control.trajectory]
    assert makespans == sorted(makespans, reverse=True)
    assert bounds == sorted(bounds)


def test_results_survive_pickle_and_copy_and_can_be_hashed() -> None:
    result = ScheduleResult(
        Status.OPTIMAL, "cp", ending(8.0), 8.0, 0.5, (TrajectoryPoint(0.1, 8.0, 8.0),), 3, {"mig-opt": "1"}
    )
    twins = pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)
    assert {result, *twins} == {result}
    assert ScheduleResult(Status.OPTIMAL, "cp", None, 8.0, 0.5).versions == {}


def test_ctrl_c_at_any_step_is_itself_and_ends_the_work() -> None:
    """Python takes it where a function begins, here also at each line: also inside of what the waiting is made of."""
    steps = pressed_at = 0

    def press(frame: Any, event: str, _: Any) -> Any:
        nonlocal steps
        steps += event in ("call", "line")
        if steps == pressed_at:
            steps += 1
            raise KeyboardInterrupt
        return press if frame.f_code is interruptibly.__code__ else None

    def work() -> str:
        running.append(True)
        while not told and time.monotonic() < end:
            time.sleep(0.001)
        running.clear()
        return "done"

    found = "interrupted"
    while found == "interrupted":
        steps, pressed_at, end = 0, pressed_at + 1, time.monotonic() + 0.12
        running, told = list[bool](), list[bool]()
        before = sys.gettrace()
        sys.settrace(press)
        try:
            found = interruptibly(work, lambda told=told: told.append(True))
        except KeyboardInterrupt:
            found = "interrupted"
        finally:
            sys.settrace(before)
        assert not running
    assert (found, pressed_at > 10) == ("done", True)


def test_ctrl_c_that_breaks_a_lock_keeps_the_best_schedule() -> None:
    batch = Batch(tuple(Task(name, {2: 3.0}) for name in "abc"), get_gpu("A30"))

    def method(batch: Batch) -> Schedule | None:
        lock = threading.Lock()
        with lock:
            lock.release()
            raise KeyboardInterrupt

    result = solve(batch, method, initial=solve(batch, "lpt").schedule)
    assert (result.status, result.makespan) == (Status.INTERRUPTED, 6.12)

    def fails(batch: Batch) -> Schedule | None:
        raise RuntimeError("of its own")

    with pytest.raises(RuntimeError, match="of its own"):
        solve(batch, fails)


def with_more(problem: object, *, seed: int = 0, **more: Any) -> list[Any]:
    return [problem, seed, more]


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda problem: [problem], ["b"]),
        (lambda problem, seconds: [problem, seconds], ["b", 7.0]),
        (lambda problem, *, seconds=1.0: [problem, seconds], ["b", 7.0]),
        (lambda problem, alpha=0.5: [problem, alpha], ["b", 0.5]),
        (lambda problem, alpha=0.5, seconds=1.0: [problem, alpha, seconds], ["b", 0.5, 7.0]),
        (with_more, ["b", 0, {}]),
        (functools.partial(with_more, seed=3), ["b", 3, {}]),
    ],
)
def test_options_keep_their_defaults(function: Any, given: list[Any]) -> None:
    assert planned_by(function, "b", 7.0) == given
