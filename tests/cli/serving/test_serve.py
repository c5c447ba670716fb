"""mig-opt serve."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command, called, refuses

from mig_opt import simulate_requests
from mig_opt.files.serving.deployments import read_deployment
from mig_opt.instances.bundled import load_demand


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mig_opt import deploy
    from mig_opt.files.serving.deployments import write_deployment

    path = tmp_path_factory.mktemp("fleet") / "fleet.json"
    deployment = deploy(load_demand("parvagpu-s3")).deployment
    assert deployment is not None
    write_deployment(deployment, path)
    return path


@pytest.fixture
def serve(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fleet: Path, tmp_path: Path) -> Command:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: called(capsys, "serve", fleet, "--services", "parvagpu-s3", *arguments)


def test_services_and_segments_are_shown(serve: Command) -> None:
    code, out, err = serve("--seconds", 5)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for text in ("late %", "p99.9 s", "resnet101", "3g.40gb@4", "busy %", "router    least-work"):
        assert text in out


def test_json_has_the_figures_of_the_library(serve: Command, fleet: Path) -> None:
    document = serve("--seconds", 5, "--seed", 3, "--arrivals", "bursty", "--json").json
    demand = load_demand("parvagpu-s3")
    expected = simulate_requests(demand, read_deployment(fleet, demand=demand), arrivals="bursty", seconds=5, seed=3)
    assert document["late_share"] == expected.late_share
    first = document["services"][0]
    keys = ("name", "requests", "late", "late_share", "late_share_interval", "p50_s", "p95_s", "p99_s", "p999_s")
    assert set(keys) <= set(first)
    assert first["p99_s"] == expected.services[0].p99_s
    assert [segment["service"] for segment in document["segments"]] == [s.service for s in expected.segments]
    assert document["segments"][0]["utilisation"] == expected.segments[0].utilisation


def test_a_promise_decides_the_exit_code(serve: Command) -> None:
    kept, broken = serve("--seconds", 5, "--promise", "40%"), serve("--seconds", 20, "--promise", "99.9%")
    assert (kept.code, broken.code) == (0, 1)
    assert "promise   kept: 40 % of the requests of each service in time" in kept.out
    assert "promise   broken by" in broken.out
    document = serve("--seconds", 20, "--promise", "0.999", "--json")
    assert (document.code, document.json["kept"], document.json["promise"]) == (1, False, 0.999)


def test_a_chart_is_drawn(serve: Command) -> None:
    assert "Chart written to latencies.svg." in serve("--seconds", 2, "--plot", "latencies.svg").out
    assert Path("latencies.svg").read_text().startswith("<?xml")


def test_rates_and_recorded_requests_from_files(serve: Command) -> None:
    names = [service.name for service in load_demand("parvagpu-s3").services]
    Path("rates.csv").write_text(f"time,{','.join(names)}\n0,{','.join('5' * len(names))}\n4{',' * len(names)}\n")
    found = serve("--rates", "rates.csv", "--arrivals", "even", "--json").json
    assert (found["seconds"], found["requests"]) == (4.0, 4 * 5 * len(names))
    Path("trace.csv").write_text("time,service\n" + "".join(f"0.5,{name}\n" for name in names))
    assert serve("--recorded", "trace.csv", "--json").json["requests"] == len(names)


def test_everything_that_is_wrong_is_said_at_once(serve: Command) -> None:
    wrong = ("--arrivals", "often", "--burst", "3", "--patience", 2, "--router", "x", "--seconds", -1, "--seed", -1)
    refuses(
        serve(*wrong, "--promise", "100%", "--plot", "x.gif"),
        "--arrivals: unknown arrivals 'often'",
        "--burst: must be three figures such as 2,10%,0.1",
        "--patience: must be a share",
        "--router: unknown router 'x'",
        "--seconds: must be a finite number of seconds > 0, is -1",
        "--seed: must be from 0",
        "--promise: must be above 0 and below 100%",
        "charts are written as .png, .pdf, .svg or .html",
    )


@pytest.mark.parametrize("promise", ["0", "0%", "100%", "1", "nan", "-5%"])
def test_no_promises(serve: Command, promise: str) -> None:
    refuses(serve("--promise", promise), "--promise: must be")


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--rates", "time,resnet50\n0,-5\n9,\n", "line 2, resnet50: must be a number of requests per second >= 0"),
        ("--rates", "time,resnet50\n5,5\n1,\n", "line 3, time: times must ascend"),
        ("--rates", "time,resnet50\n0,5\n", "line 2: the rates of the last row have no end"),
        ("--rates", "time,nobody\n0,5\n9,\n", "the demand has no service 'nobody'"),
        ("--recorded", "time,service\n0,resnet50\ninf,resnet50\n", "line 3, time: must be seconds >= 0 with an end"),
    ],
)
def test_wrong_files_are_refused_with_their_place(serve: Command, option: str, text: str, said: str) -> None:
    Path("in.csv").write_text(text)
    refuses(serve(option, "in.csv"), "in.csv", said)


def test_a_deployment_of_other_services_is_refused(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    document = json.loads(fleet.read_text())
    document["segments"] = [s for s in document["segments"] if s["service"] != "bert"]
    fleet.with_name("less.json").write_text(json.dumps(document))
    outcome = called(capsys, "serve", fleet.with_name("less.json"), "--services", "parvagpu-s3")
    refuses(outcome, "less.json", "services[0]: no segment of the deployment serves 'bert'")
