"""mig-opt deploy --rates: a deployment for each step of a table of rates."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from command_line import Command

SERVICES = """{"schema": "mig-opt/services/1", "gpu": "A30", "services": [{"name": "a", "slo": 1, "rate": 1},
{"name": "b", "slo": 1, "rate": 1}], "profiles": [
{"model": "a", "points": [{"size": 1, "batch": 8, "processes": 1, "throughput": 100, "latency": 0.1},
{"size": 2, "batch": 8, "processes": 1, "throughput": 210, "latency": 0.1}]},
{"model": "b", "points": [{"size": 1, "batch": 8, "processes": 1, "throughput": 100, "latency": 0.1},
{"size": 2, "batch": 8, "processes": 1, "throughput": 210, "latency": 0.1}]}]}"""
RATES = "time,a,b\n0:00,90,200\n8:30,400,200\n9:00,90,200\n10:00,,\n"


@pytest.fixture
def deploy(narrow: Command) -> Command:
    Path("s.json").write_text(SERVICES)
    Path("rates.csv").write_text(RATES)
    return functools.partial(narrow, "deploy", "s.json", "--time-limit", 20)


def test_a_time_that_cannot_be_served_is_named(deploy: Command) -> None:
    Path("s.json").write_text(SERVICES.replace('"gpu": "A30"', '"pools": [{"gpu": "A30", "count": 1}]'))
    code, _, err = deploy("--rates", "rates.csv")
    assert code == 1
    assert "at 8:30: " in err


def test_ctrl_c_is_not_called_a_lack_of_time(deploy: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*rest: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mig_opt.api.deploy.days.serving_alone", press)
    code, out, err = deploy("--rates", "rates.csv", "-o", "day")
    assert (code, err) == (130, "")
    assert "status    interrupted" in out
    assert "There is no plan to write to day." in out


def test_headroom_raises_the_rates_of_all_steps(deploy: Command) -> None:
    raised = deploy("--rates", "rates.csv", "--headroom", "20%", "--json").json
    assert [step["fewest_gpus"] for step in raised["steps"]] == [2, 2, 2]
    both = deploy("--rates", "rates.csv", "--margin", "2%", "--headroom", "2.9412%", "-q")
    assert "margin       5.0" in both.out
