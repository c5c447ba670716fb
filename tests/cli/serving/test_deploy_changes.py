"""The command deploy with what is running: changes, their steps, and who is interrupted."""

from __future__ import annotations

import _thread
import time

import pytest
from services_file import CHAT, PROFILES, SEARCH, fleet, services

from mig_opt.api.change.greedy import greedy
from mig_opt.files.serving.deployments import DEPLOYMENT


@pytest.fixture
def services_file(tmp_path):
    return services(tmp_path)


def test_ctrl_c_while_the_steps_are_planned_keeps_the_deployment(run, tmp_path, monkeypatch):
    def interrupted(*problem):
        _thread.interrupt_main()
        time.sleep(0.2)  # Ctrl-C arrives meanwhile
        return greedy(*problem)

    monkeypatch.setattr("mig_opt.api.change.plans.greedy", interrupted)
    path = services(tmp_path, services=[{**CHAT, "rate": 11.0}, {**SEARCH, "rate": 190.0}])
    outcome = run("deploy", path, "--from", fleet(tmp_path), "-o", tmp_path / "new.json")
    assert outcome.code == 130
    assert "Interrupted while the steps were planned" in outcome.out
    assert DEPLOYMENT.read(tmp_path / "new.json").segments


def test_services_that_are_interrupted_are_named(run, tmp_path):
    segments = [{"service": "search", "gpu": 0, "profile": "4g.24gb", "start": 0, "batch": 8, "processes": 3}]
    old = fleet(tmp_path, gpus=["A30"], segments=segments)
    pools = [{"gpu": "A30", "count": 1}]
    path = services(tmp_path, gpu=None, pools=pools, profiles=[{**table, "gpu": "A30"} for table in PROFILES])
    outcome = run("deploy", path, "--from", old)
    assert "interrupted  search\n" in outcome.out
    assert run("deploy", path, "--from", old, "--json").json["change"]["interrupted"] == ["search"]
    assert "interrupts search" in outcome.out
