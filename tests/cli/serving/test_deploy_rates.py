"""mig-opt deploy --rates: a deployment for each step of a table of rates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command, called, refuses

SERVICES = """{"schema": "mig-opt/services/1", "gpu": "A30", "services": [{"name": "a", "slo": 1, "rate": 1},
{"name": "b", "slo": 1, "rate": 1}], "profiles": [
{"model": "a", "points": [{"size": 1, "batch": 8, "processes": 1, "throughput": 100, "latency": 0.1},
{"size": 2, "batch": 8, "processes": 1, "throughput": 210, "latency": 0.1}]},
{"model": "b", "points": [{"size": 1, "batch": 8, "processes": 1, "throughput": 100, "latency": 0.1},
{"size": 2, "batch": 8, "processes": 1, "throughput": 210, "latency": 0.1}]}]}"""
RATES = "time,a,b\n0:00,90,200\n8:30,400,200\n9:00,90,200\n10:00,,\n"


@pytest.fixture
def deploy(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(SERVICES)
    Path("rates.csv").write_text(RATES)
    return lambda *arguments: called(capsys, "deploy", "s.json", "--time-limit", 20, *arguments)


def test_the_day_is_shown(deploy: Command) -> None:
    code, out, err = deploy("--rates", "rates.csv", "--plot", "day.png")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for text in (
        "rates        3 steps, 0:00 to 10:00 (10 h)",
        "status       optimal",
        "GPU-hours    10.5; at least 10.5",
        "interrupted  none",
        "8:30  1 -> 2",
        "Chart written to day.png.",
    ):
        assert text in out
    assert Path("day.png").is_file()


def test_json_has_every_step(deploy: Command) -> None:
    found = deploy("--rates", "rates.csv", "--margin", "5%", "--json").json
    assert [step["gpus"] for step in found["steps"]] == [1, 2, 1]
    assert [step["fewest_gpus"] for step in found["steps"]] == [1, 2, 1]
    assert [step["begin_s"] for step in found["steps"]] == [0, 30600, 32400]
    assert found["steps"][0]["change"] is None
    assert found["steps"][1]["change"]["interrupted"] == []
    assert found["gpu_hours"] == found["gpu_hours_bound"] == 10.5
    assert found["lower_bound"] <= found["cost"]


def test_a_folder_gets_the_deployments_of_all_changes(deploy: Command, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = deploy("--rates", "rates.csv", "-o", "day", "-q")
    assert code == 0
    names = sorted(path.name for path in Path("day").iterdir())
    assert names == ["00-00.json", "08-30.json", "09-00.json"]
    assert "3 deployments written to day" in out
    assert called(capsys, "validate", "s.json", "day/08-30.json").code == 0
    assert json.loads(Path("day/08-30.json").read_text())["schema"] == "mig-opt/deployment/1"


def test_scripts_carry_the_changes_out(deploy: Command) -> None:
    assert deploy("--rates", "rates.csv", "-o", "day", "--export", "nvidia-smi", "-q").code == 0
    assert sorted(path.name for path in Path("day").iterdir()) == ["00-00.sh", "08-30.sh", "09-00.sh"]
    assert "Change of a deployment" in Path("day/08-30.sh").read_text()


def test_step_by_step_and_other_methods(deploy: Command) -> None:
    alone = deploy("--rates", "rates.csv", "--step-by-step", "--json").json
    rival = deploy("--rates", "rates.csv", "--method", "first-fit", "--json").json
    ahead = deploy("--rates", "rates.csv", "--json").json
    assert ahead["cost"] <= alone["cost"]
    assert rival["method"] == "first-fit"
    assert ahead["lower_bound"] <= rival["cost"]


def test_a_time_that_cannot_be_served_is_named(deploy: Command) -> None:
    Path("s.json").write_text(SERVICES.replace('"gpu": "A30"', '"pools": [{"gpu": "A30", "count": 1}]'))
    code, _, err = deploy("--rates", "rates.csv")
    assert code == 1
    assert "at 8:30: " in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,a,b\n0:00,-1,2\n1:00,,\n", "line 2, a: must be a number of requests per second >= 0, is -1"),
        ("time,a,b\n1:00,1,2\n0:30,1,2\n2:00,,\n", "line 3, time: times must ascend; 1800 s comes after 3600 s"),
        ("time,a,b,c\n0:00,1,2,3\n1:00,,,\n", "the demand has no service 'c'"),
        ("time,a\n0:00,1\n1:00,\n", "has nothing about 'b'"),
        ("time,a,b\n0:00,1,2\n1:00,1,2\n", "line 3: the rates of the last row have no end"),
    ],
)
def test_wrong_tables(deploy: Command, text: str, message: str) -> None:
    Path("bad.csv").write_text(text)
    outcome = deploy("--rates", "bad.csv")
    refuses(outcome, "bad.csv", message)


def test_wrong_options(deploy: Command) -> None:
    Path("file").write_text("")
    refuses(
        deploy("--rates", "rates.csv", "--margin", "-1%", "--prices", "1", "--promise", "100%", "-o", "file"),
        "--margin: must be a share",
        "--prices: must be two figures such as 0.01,1",
        "--promise: must be above 0 and below 100%",
        "file: is a file; with --rates -o names a folder",
    )
    refuses(deploy("--rates", "rates.csv", "--export", "csv"), "--export: writes a file for each change")
    refuses(deploy("--margin", "5%", "--step-by-step"), "--margin: is for --rates", "--step-by-step: is for --rates")
    refuses(deploy("--rates", "rates.csv", "--prices=-1,1"), "--prices: must be GPU-hours from 0")
    Path("old.json").write_text("{}")
    refuses(deploy("--rates", "rates.csv", "--from", "old.json"), "--from: does not go with --rates")


def test_headroom_raises_the_rates_of_all_steps(deploy: Command) -> None:
    raised = deploy("--rates", "rates.csv", "--headroom", "20%", "--json").json
    assert [step["fewest_gpus"] for step in raised["steps"]] == [2, 2, 2]
    both = deploy("--rates", "rates.csv", "--margin", "2%", "--headroom", "2.9412%", "-q")
    assert "margin       5.0" in both.out


def test_a_promise_is_kept_in_every_step(deploy: Command) -> None:
    """Throughput covers 200 of 210 requests per second, but with an SLO of 0.15 s a queue has no room."""
    Path("s.json").write_text(SERVICES.replace('"slo": 1,', '"slo": 0.2,'))
    plain = deploy("--rates", "rates.csv", "--json").json
    assert [step["gpus"] for step in plain["steps"]] == [1, 2, 1]
    found = deploy("--rates", "rates.csv", "--promise", "99%", "--json").json
    assert (found["promise"], found["arrivals"]) == (0.99, "poisson")
    assert found["gpu_hours"] > plain["gpu_hours"]
    assert [[one["name"] for one in step] for step in found["simulated_steps"]] == [["a", "b"]] * 3
    assert max(one["late_share"] for step in found["simulated_steps"] for one in step) <= 0.01
    code, out, err = deploy("--rates", "rates.csv", "--promise", "99%")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "promise      99 % of the requests of each service in time, poisson" in out
    assert "simulated    " in out
