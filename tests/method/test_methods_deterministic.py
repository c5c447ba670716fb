"""Deterministic runs of any method are the same on every run, whatever the clock says."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import types

import pytest
from method_suite import HARD, NAMES, options_of

from mig_opt import ScheduleResult, Status, generate_batch, solve


def told(result: ScheduleResult) -> tuple[object, ...]:
    points = [(point.makespan, point.lower_bound) for point in result.trajectory]
    return result.status, result.schedule, result.lower_bound, points


@pytest.mark.deep
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
    batch = generate_batch(25)
    short, long = (solve(batch, time_limit=limit, deterministic=True) for limit in (0.05, 0.5))
    assert short.makespan is not None
    assert long.makespan is not None
    assert long.makespan < short.makespan


@pytest.mark.parametrize("method", NAMES)
def test_deterministic_runs_do_not_look_at_the_clock(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> ScheduleResult:
        return solve(HARD, method, time_limit=0.05, deterministic=True, **options_of(method, HARD))

    usual = run()
    # Whoever asks for the time is told that an hour has gone by since the last time.
    with monkeypatch.context() as patch:
        hours = itertools.count(step=3600)
        patch.setattr("mig_opt.method.control.time", types.SimpleNamespace(monotonic=lambda: float(next(hours))))
        assert told(run()) == told(usual)


IN_A_PROCESS = """
import sys
from mig_opt import generate_batch, solve

partition = "4+2+1" if sys.argv[1] == "fixpart" else None
result = solve(generate_batch(20, seed=6), sys.argv[1], time_limit=0.1, deterministic=True, partition=partition)
print(result.schedule, result.lower_bound, [(point.makespan, point.lower_bound) for point in result.trajectory])
"""


@pytest.mark.deep
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
