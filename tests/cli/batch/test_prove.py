"""The commands prove and check: what they print, what they write, and how they end."""

import json
import signal
from typing import Any

import pytest
import tiny

import mig_opt.api.prove.prover as prover_module
from mig_opt import Batch, ScheduleResult, solve
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.certificates import CERTIFICATE
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.method.result import TrajectoryPoint


@pytest.fixture
def run(narrow):
    """In a folder with the tiny batch, its best schedule, and that of FAR without the refinement."""
    BATCH.write(tiny.BATCH, "batch.json")
    SCHEDULE.write(tiny.BEST, "best.json")
    SCHEDULE.write(solve(tiny.BATCH, "far-unrefined").schedule, "far.json")
    return narrow


def test_open(run):
    code, out, _ = run("prove", "batch.json", "best.json", "--time-limit", 1e-6, "-o", "c.json")
    assert code == 1
    assert "answer       open\n" in out
    assert "Stopped after 1e-06 s; --time-limit S allows for more.\n" in out
    assert run("check", "batch.json", "best.json", "c.json")[0] == 0
    code, out, _ = run("check", "batch.json", "far.json", "c.json", "--json")
    assert code == 1
    assert {entry["path"] for entry in json.loads(out)["mismatches"]} == {"schedule", "makespan"}


def test_a_method_that_can_tell_no_more(run, monkeypatch):
    monkeypatch.setattr(prover_module, "solve", lambda batch, *rest, **options: solve(batch, "far"))
    code, out, _ = run("prove", "batch.json", "best.json")
    assert code == 1
    assert (
        "milp can tell no more: 0.99 s are left. Another --method may, or --within S if so little does not matter."
    ) in " ".join(out.split())


def test_ctrl_c(run, monkeypatch):
    def interrupted(batch: Batch, method: str, **options: Any) -> ScheduleResult:
        def press(point: TrajectoryPoint) -> bool:
            signal.raise_signal(signal.SIGINT)
            return False

        return solve(batch, method, stop=press)

    monkeypatch.setattr(prover_module, "solve", interrupted)
    code, out, _ = run("prove", "batch.json", "best.json", "-o", "c.json")
    assert code == 130
    assert "answer       open, interrupted\n" in out
    assert CERTIFICATE.read("c.json").interrupted
    assert CERTIFICATE.read("c.json").lower_bound >= 4.36
