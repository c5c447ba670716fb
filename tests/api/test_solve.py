"""Duties of ``solve`` beside the methods': arguments, limits, interruptions, listeners, and the last check."""

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tiny
from documents import refused
from hypothesis import given, settings
from listening import Recorder, presses_ctrl_c
from strategies import A30, batches

from mig_opt import Batch, Callbacks, InputError, Method, Result, Schedule, Status, Task, get_gpu, load, methods, solve
from mig_opt.method.control import Control
from mig_opt.method.registry import METHODS
from mig_opt.models.batch import portfolio
from mig_opt.validation import validate

HARD = load("miso-a100-32")


@pytest.fixture
def method(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[..., Result]]:
    """Registers a function as a method, and returns what solves the tiny batch with it."""

    def register(runner: Callable[[Batch, Control[Schedule]], None], **more: Any) -> Callable[..., Result]:
        fake = Method("fake", "heuristic", "for a test", "nowhere", "", **more)
        monkeypatch.setattr(Method, "load", lambda self: runner if self.name == "fake" else load(self))
        monkeypatch.setattr(METHODS, "entries", (*methods(), fake))
        return lambda **arguments: solve(tiny.BATCH, "fake", **arguments)

    load = Method.load
    return register


def test_nothing_found_is_no_solution(method: Callable[..., Callable[..., Result]]) -> None:
    result = method(lambda batch, control: None)()
    assert (result.status, result.schedule, result.gap) == (Status.NO_SOLUTION, None, None)
    assert result.lower_bound == tiny.BOUNDS["slice load"]


@pytest.mark.parametrize(
    ("bound", "status", "proven"),
    [(0.0, Status.FEASIBLE, 4.36), (6.335, Status.OPTIMAL, 6.34)],  # every makespan is a multiple of 0.01 s
)
@pytest.mark.parametrize("interrupted", [False, True])
def test_statuses_of_a_schedule(method, bound: float, status: Status, proven: float, interrupted: bool) -> None:
    def runner(batch: Batch, control: Control[Schedule]) -> None:
        control.report_plan(tiny.BEST)
        control.raise_bound(bound)
        if interrupted:
            raise KeyboardInterrupt

    result = method(runner)()
    assert result.status is (Status.INTERRUPTED if interrupted and status is Status.FEASIBLE else status)
    assert result.lower_bound == proven
    assert result.gap == pytest.approx((6.34 - proven) / 6.34)


def test_a_warm_start_comes_first_and_is_known(method: Callable[..., Callable[..., Result]]) -> None:
    known: list[float | None] = []
    result = method(lambda batch, control: known.append(control.objective), warm_start=True)()
    assert known == [tiny.OPTIMUM]
    assert result.makespan == tiny.OPTIMUM
    assert [point.makespan for point in result.trajectory][-2:] == [tiny.FAR, tiny.OPTIMUM]


def test_nothing_runs_once_the_warm_start_meets_the_bound() -> None:
    # FAR puts the only task on the whole GPU; the bound of the critical task is as high.
    batch = Batch((Task("a", {4: 3.0}),), A30)
    assert solve(batch).status is Status.OPTIMAL
    assert [(p.makespan, p.lower_bound) for p in solve(batch).trajectory] == [(None, 3.13), (3.13, 3.13)]


def raises(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


MOMENTS = [("start", 1), ("bound", 1), ("incumbent", 1), ("bound", 2), ("incumbent", 3)]


def test_what_a_listener_raises_in_the_end_arrives_too() -> None:
    with pytest.raises(ZeroDivisionError):
        solve(tiny.BATCH, callbacks=Recorder("end", 1, raises(ZeroDivisionError())))


@pytest.mark.deep
@pytest.mark.parametrize(("kind", "turn"), MOMENTS)
@pytest.mark.parametrize("act", [raises(KeyboardInterrupt()), presses_ctrl_c], ids=["raise", "signal"])
def test_ctrl_c_at_any_moment_keeps_the_best_schedule(kind: str, turn: int, act: Callable[[], None]) -> None:
    listener = Recorder(kind, turn, act)
    result = solve(HARD, workers=2, callbacks=listener)
    assert result.status is Status.INTERRUPTED
    assert listener.calls[-1] == ("end", (result,))
    offered = [told[1].makespan for name, told in listener.calls if name == "incumbent"]
    assert result.makespan == (offered[-1] if offered else None)
    if result.schedule is not None:
        assert validate(HARD, result.schedule).valid
        assert result.lower_bound < 2506.86


def test_ctrl_c_before_the_solver_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    original = portfolio.run

    def interrupted(*args: Any, **arguments: Any) -> Any:
        presses_ctrl_c()  # takes effect at once in the main thread
        return original(*args, **arguments)

    monkeypatch.setattr(portfolio, "run", interrupted)
    before = set(threading.enumerate())  # other tests of the same process may have left threads of libraries
    result = solve(HARD)
    assert result.status is Status.INTERRUPTED
    assert result.makespan is not None
    assert not [thread for thread in threading.enumerate() if thread not in before]


def test_solve_in_another_thread_and_in_several_at_once() -> None:
    results: list[Result] = []
    threads = [threading.Thread(target=lambda: results.append(solve(tiny.BATCH, workers=1))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(result.status, result.makespan) for result in results] == [(Status.OPTIMAL, tiny.OPTIMUM)] * 4


@given(batches(max_tasks=4, max_gpus=1))
@settings(max_examples=15)
def test_gpus_that_nobody_needs_change_nothing(batch: Batch) -> None:
    enough = batch.replace(gpus=len(batch.tasks) + 1)
    many = batch.replace(gpus=40)
    one, two = solve(enough, workers=1), solve(many, workers=1)
    assert one.status is two.status is Status.OPTIMAL
    assert one.makespan == pytest.approx(two.makespan, rel=1e-6)
    assert validate(many, two.schedule).valid


@pytest.mark.deep
def test_the_import_of_a_method_is_not_in_its_time() -> None:
    program = (
        "import sys, mig_opt\n"
        "batch = mig_opt.generate_batch(6, seed=1)\n"
        "for _ in range(2):\n"
        "    begun = 'mig_opt.models.batch.portfolio' in sys.modules\n"
        "    result = mig_opt.solve(batch, 'cp', time_limit=1e-9)\n"
        "    print(begun, result.loading_s > 0, result.trajectory[0].seconds <= result.runtime_s)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True", "True", "True", "True", "True"]


@pytest.mark.parametrize("method", ["far", "list"])
def test_times_that_no_method_can_add_up_are_refused(method: str) -> None:
    """They are no defect of the method; a size on which no task has to run does no harm."""
    with pytest.raises(InputError, match=r"tasks: have times too far apart.*task .b. takes 2\.5 s"):
        solve(Batch((Task("a", {4: 1e17}), Task("b", {4: 2.5})), get_gpu("A30")), method)
    assert solve(Batch((Task("a", {1: 1e17, 4: 3.0}), Task("b", {4: 2.5})), get_gpu("A30")), method).makespan < 6


@pytest.mark.parametrize("partition", ["", None, 4, "4+4", "1+1+1+1"])
def test_only_fixpart_takes_a_partition_on_which_all_tasks_can_run(partition: object) -> None:
    method = "far" if partition == "" else "fixpart"
    assert refused(solve, tiny.BATCH, method, partition=partition) == ["partition"]


def test_what_is_no_method_and_what_is_no_callback_is_named() -> None:
    assert refused(solve, tiny.BATCH, 7, callbacks=[Callbacks(), Callbacks]) == ["method", "callbacks[1]"]


@pytest.mark.parametrize("integer", [np.int64, np.int8])
def test_numbers_of_numpy_are_numbers(integer: type[np.integer[Any]]) -> None:
    result = solve(tiny.BATCH, seed=integer(3), workers=integer(1), time_limit=np.float64(20), gap=np.float32(0))
    assert result.status is Status.OPTIMAL
    assert type(result.seed) is int
