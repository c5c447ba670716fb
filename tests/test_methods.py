"""The contract of every method, exact or heuristic: one suite, run for each of them."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import types
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import tiny_batches

import mig_opt.registry
from mig_opt import (
    Batch,
    Callbacks,
    InputError,
    Method,
    Result,
    Schedule,
    SolverError,
    Status,
    Task,
    TrajectoryPoint,
    UnknownMethodError,
    generate_batch,
    get_gpu,
    load_instance,
    methods,
    solve,
    validate,
)
from mig_opt.control import Control
from mig_opt.heuristics.fixed_partition import suitable_partitions
from mig_opt.registry import get_method
from mig_opt.result import relative_gap

NAMES = [method.name for method in methods()]
EXACT = [method.name for method in methods() if method.kind == "exact"]
FIXED = ("fixpart", "fixpart-best")
SLOW = ("milp", "milp-highs", "milp-cbc")
# As the tiny batch, but ``big`` runs on smaller instances too, so that a fixed partition has one for every task.
FITS = tiny.BATCH.replace(tasks=(Task("big", {1: 8.0, 2: 4.0, 4: 2.0}), *tiny.BATCH.tasks[1:]))
NOWHERE = Batch((Task("big", {1: 3.0}, memory_gb=20), Task("small", {1: 2.0})), get_gpu("A30"))


class Diary(Callbacks):
    """Writes down what happens."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.makespans: list[float] = []
        self.bounds: list[float] = []

    def on_start(self, batch: Batch, method: str) -> None:
        self.events.append(f"start {method}")

    def on_incumbent(self, seconds: float, schedule: Schedule, lower_bound: float) -> None:
        self.events.append("incumbent")
        self.makespans.append(schedule.makespan)

    def on_bound(self, seconds: float, makespan: float | None, lower_bound: float) -> None:
        self.events.append("bound")
        self.bounds.append(lower_bound)

    def on_end(self, result: Result) -> None:
        self.events.append(f"end {result.status}")


def options_of(method: str, batch: Batch) -> dict[str, Any]:
    """What a method needs beside its name."""
    if "partition" not in get_method(method).options:
        return {}
    # One that all tasks can run on; without one, it must not matter which.
    return {"partition": next(suitable_partitions(batch), batch.gpu.maximal_partitions()[0])}


@pytest.mark.parametrize("method", NAMES)
def test_schedules_are_valid_and_bounds_are_bounds(method: str) -> None:
    @settings(max_examples=8 if method in SLOW else 25)
    @given(tiny_batches)
    def check(batch: Batch) -> None:
        keeps_its_word(method, batch)

    check()


def keeps_its_word(method: str, batch: Batch) -> None:
    best = solve(batch, "brute-force", time_limit=20)
    if method in FIXED and best.status is not Status.INFEASIBLE and not list(suitable_partitions(batch)):
        if method == "fixpart":
            with pytest.raises(InputError, match="no partition has one for every task"):
                solve(batch, method, **options_of(method, batch))
        else:
            assert solve(batch, method).status is Status.NO_SOLUTION
        return
    result = solve(batch, method, workers=1, time_limit=20, **options_of(method, batch))
    assert result.method == method
    if best.status is Status.INFEASIBLE:
        assert result.status is Status.INFEASIBLE
        assert result.schedule is None
        assert result.lower_bound == math.inf
        return
    assert result.schedule is not None
    assert best.makespan is not None
    assert validate(batch, result.schedule).valid
    assert result.makespan >= best.lower_bound - 1e-6 * max(1, best.makespan)
    assert result.lower_bound <= best.makespan + 1e-9


@pytest.mark.parametrize("method", EXACT)
def test_exact_methods_prove_the_optimum(method: str) -> None:
    result = solve(tiny.BATCH, method)
    assert result.status is Status.OPTIMAL
    assert result.makespan == pytest.approx(tiny.BEST.makespan)
    assert result.lower_bound == pytest.approx(tiny.BEST.makespan)
    assert result.gap == 0


@pytest.mark.parametrize("method", NAMES)
def test_progress_is_told_in_order_and_only_gets_better(method: str) -> None:
    diary = Diary()
    result = solve(FITS, method, callbacks=diary, **options_of(method, FITS))
    assert diary.events[0] == f"start {method}"
    assert diary.events[-1] == f"end {result.status}"
    assert all(better < worse for worse, better in pairwise(diary.makespans))
    assert all(better > worse for worse, better in pairwise(diary.bounds))
    assert diary.makespans[-1] == result.makespan
    points = result.trajectory
    assert [point.makespan for point in points][-1] == result.makespan
    assert all(one.seconds <= two.seconds for one, two in pairwise(points))


@pytest.mark.parametrize("method", NAMES)
def test_same_seed_same_schedule_with_one_worker(method: str) -> None:
    first, second = (solve(FITS, method, seed=3, workers=1, **options_of(method, FITS)) for _ in range(2))
    assert first.schedule == second.schedule
    assert first.seed == 3


@pytest.mark.parametrize("method", NAMES)
def test_no_schedule_where_a_task_fits_nowhere(method: str) -> None:
    result = solve(NOWHERE, method, **options_of(method, NOWHERE))
    assert result.status is Status.INFEASIBLE
    assert result.schedule is None
    assert result.makespan is None
    assert result.gap is None


INTERRUPTED = """
import os, signal, sys, threading
from mig_opt import Callbacks, generate_batch, load_instance, solve, validate

method = sys.argv[1]


class Stop(Callbacks):
    makespans, sent, ended = [], False, None

    def on_incumbent(self, seconds, schedule, lower_bound):
        self.makespans.append(schedule.makespan)
        self.stop()

    def on_bound(self, seconds, makespan, lower_bound):
        if makespan is not None:
            self.stop()

    def stop(self):
        # Once: in the solver's thread, where there is one.
        if not self.sent and (threading.current_thread() is not threading.main_thread() or method == "far"):
            self.sent = True
            os.kill(os.getpid(), signal.SIGINT)

    def on_end(self, result):
        self.ended = result.status


# Whoever runs the tests in the background may have switched it off.
signal.signal(signal.SIGINT, signal.default_int_handler)
stop = Stop()
batch = load_instance("miso-a100-32") if method in ("cp", "far") else generate_batch(9, seed=1)
result = solve(batch, method, callbacks=stop)
assert stop.sent
assert result.status == stop.ended == "interrupted", result.status
assert result.makespan == stop.makespans[-1]
assert validate(batch, result.schedule).valid
assert not [thread.name for thread in threading.enumerate() if thread.name == "mig-opt"]
"""


@pytest.mark.parametrize("method", ["cp", "far", "milp-highs"])
def test_interrupt_keeps_the_best_schedule(method: str) -> None:
    # In a process of its own: Ctrl-C strikes the main thread, which need not be the one that runs the tests.
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, method], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# When a run ends

HARD = generate_batch(20, seed=6)


@pytest.mark.parametrize("method", NAMES)
def test_a_gap_of_everything_is_closed_by_the_first_schedule(method: str) -> None:
    result = solve(HARD, method, gap=1.0, **options_of(method, HARD))
    assert result.status is Status.FEASIBLE
    assert [point.makespan for point in result.trajectory if point.makespan is not None] == [result.makespan]


@pytest.mark.parametrize("method", NAMES)
def test_the_run_ends_with_the_improvement_that_closes_the_gap(method: str) -> None:
    every = solve(HARD, method, gap=0.05, deterministic=True, time_limit=1.0, **options_of(method, HARD))
    gaps = [relative_gap(point.makespan, point.lower_bound) for point in every.trajectory if point.makespan]
    assert all(gap > 0.05 for gap in gaps[:-1])
    assert gaps[-1] == every.gap
    assert every.gap is not None
    assert every.gap <= 0.05 or method != "cp"  # not everyone gets there


@pytest.mark.parametrize("method", NAMES)
def test_a_wanted_gap_does_not_hide_a_proof(method: str) -> None:
    batch = Batch((Task("a", {4: 3.0}),), get_gpu("A30"))
    assert solve(batch, method, gap=0.5, **options_of(method, batch)).status is Status.OPTIMAL


@pytest.mark.parametrize("method", NAMES)
def test_stop_is_asked_after_each_improvement_and_ends_the_run(method: str) -> None:
    asked: list[TrajectoryPoint] = []

    def stop(point: TrajectoryPoint) -> bool:
        asked.append(point)
        return point.makespan is not None

    diary = Diary()
    result = solve(HARD, method, stop=stop, callbacks=diary, **options_of(method, HARD))
    assert result.status is Status.FEASIBLE
    assert tuple(asked) == result.trajectory
    assert diary.makespans == [result.makespan]
    assert diary.events[-2:] == ["incumbent", "end feasible"]


@pytest.mark.parametrize("method", NAMES)
def test_stop_may_say_so_before_there_is_a_schedule(method: str) -> None:
    result = solve(HARD, method, stop=lambda point: point.lower_bound > 0, **options_of(method, HARD))
    assert result.status is Status.NO_SOLUTION
    assert [point.makespan for point in result.trajectory] == [None]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("which", ["schedule", "bound"])
def test_stop_reaches_the_solver(which: str, workers: int) -> None:
    batch = load_instance("miso-a100-32")  # its bound rises within a tenth of a second
    first = solve(batch, "far").trajectory[-1]
    assert first.makespan is not None

    def stop(point: TrajectoryPoint) -> bool:
        if which == "bound":
            return point.lower_bound > first.lower_bound
        return point.makespan is not None and point.makespan < first.makespan

    result = solve(batch, "cp", stop=stop, workers=workers)
    assert result.status is Status.FEASIBLE
    assert [stop(point) for point in result.trajectory].index(True) == len(result.trajectory) - 1


class MineError(Exception):
    """Not an exception of anybody else."""


@pytest.mark.parametrize("kind", ["stop", "on_incumbent", "on_bound"])
@pytest.mark.parametrize("method", NAMES)
def test_what_the_caller_raises_ends_the_run_and_arrives(method: str, kind: str) -> None:
    error = MineError()

    def fail(*arguments: object) -> bool:
        raise error

    listener = Callbacks()
    setattr(listener, kind, fail)
    with pytest.raises(MineError) as caught:
        solve(HARD, method, callbacks=listener, stop=fail if kind == "stop" else None, **options_of(method, HARD))
    assert caught.value is error


# The same on every run


def told(result: Result) -> tuple[object, ...]:
    points = [(point.makespan, point.lower_bound) for point in result.trajectory]
    return result.status, result.schedule, result.lower_bound, points


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("limit", [0.05, 0.5])
def test_deterministic_runs_are_the_same_though_the_limit_cuts_them(method: str, limit: float) -> None:
    batch = generate_batch(20, seed=6)
    options = options_of(method, batch)
    runs = [
        solve(batch, method, time_limit=limit, deterministic=True, seed=2, workers=workers, **options)
        for workers in (1, 1, 3)
    ]
    assert runs[0].status is Status.FEASIBLE
    assert told(runs[0]) == told(runs[1]) == told(runs[2])


def test_deterministic_runs_go_further_with_more_time() -> None:
    batch = generate_batch(20, seed=6)
    short, long = (solve(batch, time_limit=limit, deterministic=True) for limit in (0.05, 0.5))
    assert short.makespan is not None
    assert long.makespan is not None
    assert long.makespan < short.makespan


@pytest.mark.parametrize("method", NAMES)
def test_deterministic_runs_do_not_look_at_the_clock(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Result:
        return solve(HARD, method, time_limit=0.05, deterministic=True, **options_of(method, HARD))

    usual = run()
    # Whoever asks for the time is told that an hour has gone by since the last time.
    with monkeypatch.context() as patch:
        hours = itertools.count(step=3600)
        patch.setattr("mig_opt.control.time", types.SimpleNamespace(monotonic=lambda: float(next(hours))))
        assert told(run()) == told(usual)


IN_A_PROCESS = """
import sys
from mig_opt import generate_batch, solve

partition = "4+2+1" if sys.argv[1] == "fixpart" else None
result = solve(generate_batch(20, seed=6), sys.argv[1], time_limit=0.1, deterministic=True, partition=partition)
print(result.schedule, result.lower_bound, [(point.makespan, point.lower_bound) for point in result.trajectory])
"""


@pytest.mark.parametrize("method", NAMES)
def test_deterministic_runs_are_the_same_in_every_process(method: str) -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", IN_A_PROCESS, method],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


# Arguments


def test_time_limit_gives_a_schedule_with_an_honest_gap() -> None:
    result = solve(load_instance("miso-a100-32"), time_limit=0.5)
    assert result.status is Status.FEASIBLE
    assert result.makespan is not None
    assert result.lower_bound < 2506.85 + 1e-6 < result.makespan + 2e-6
    assert result.gap == pytest.approx((result.makespan - result.lower_bound) / result.makespan)


def test_presolve_defect_of_the_solver_is_out_of_reach(batch_that_lost_solutions: Batch) -> None:
    result = solve(batch_that_lost_solutions)
    assert result.status is Status.OPTIMAL
    assert result.makespan == pytest.approx(22.85)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"time_limit": 0}, "time_limit"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"time_limit": math.nan}, "time_limit"),
        ({"time_limit": math.inf}, "time_limit"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**31}, "seed"),
        ({"workers": 0}, "workers"),
        ({"time_limit": "60"}, "time_limit"),
        ({"time_limit": True}, "time_limit"),
        ({"seed": 1.5}, "seed"),
        ({"seed": None}, "seed"),
        ({"workers": "2"}, "workers"),
        ({"workers": 2.0}, "workers"),
        ({"workers": True}, "workers"),
        ({"gap": -1}, "gap"),
        ({"gap": 1.5}, "gap"),
        ({"gap": math.nan}, "gap"),
        ({"gap": "1%"}, "gap"),
        ({"gap": None}, "gap"),
        ({"stop": True}, "stop"),
        ({"deterministic": 1}, "deterministic"),
        ({"callbacks": Callbacks}, "callbacks"),
        ({"callbacks": "far"}, "callbacks"),
        ({"callbacks": [Callbacks(), Callbacks]}, "callbacks[1]"),
        ({"method": 7}, "method"),
        ({"partition": "4"}, "partition"),
        ({"method": "far", "partition": ""}, "partition"),
        ({"method": "fixpart"}, "partition"),
        ({"method": "fixpart", "partition": 4}, "partition"),
        ({"method": "fixpart", "partition": "4+4"}, "partition"),
        ({"method": "fixpart", "partition": "1+1+1+1"}, "partition"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        solve(tiny.BATCH, **arguments)
    assert [problem.path for problem in caught.value.problems] == [path]


def test_unknown_method_offers_the_nearest() -> None:
    with pytest.raises(UnknownMethodError, match="did you mean far"):
        solve(tiny.BATCH, "fra")


@pytest.mark.parametrize("integer", [np.int64, np.int8])
def test_numbers_of_numpy_are_numbers(integer: type[np.integer[Any]]) -> None:
    result = solve(tiny.BATCH, seed=integer(3), workers=integer(1), time_limit=np.float64(20), gap=np.float32(0))
    assert result.status is Status.OPTIMAL
    assert type(result.seed) is int


def test_auto_is_exact() -> None:
    assert solve(tiny.BATCH).status is Status.OPTIMAL


@pytest.mark.parametrize("method", methods(), ids=NAMES)
def test_results_name_what_produced_them(method: Method) -> None:
    result = solve(FITS, method.name, **options_of(method.name, FITS))
    assert {"mig-opt", "python", *method.packages} == set(result.versions)
    assert str(result.status.value) in str(result)


def cheat_with_schedule(batch: Batch, control: Control) -> None:
    control.offer(Schedule(tiny.BEST.runs[1:], tiny.BEST.operations))


def cheat_with_bound(batch: Batch, control: Control) -> None:
    control.offer(tiny.BEST)
    control.raise_bound(tiny.BEST.makespan + 0.01)


@pytest.mark.parametrize(
    ("cheat", "message"), [("cheat_with_schedule", "invalid schedule"), ("cheat_with_bound", "above its schedule")]
)
def test_a_method_that_cheats_is_caught(cheat: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Method("fake", "heuristic", "cheats", "nowhere", f"{__name__}:{cheat}")
    monkeypatch.setattr(mig_opt.registry, "_METHODS", (*methods(), fake))
    with pytest.raises(SolverError, match=message):
        solve(tiny.BATCH, "fake")


@given(st.sampled_from(NAMES))
def test_methods_describe_themselves(name: str) -> None:
    method = next(entry for entry in methods() if entry.name == name)
    assert method.summary
    assert method.source
    assert callable(method.load())
