"""mig-opt simulate --reject."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command, called, refuses

from mig_opt import Job, Trace, generate_trace, get_gpu, simulate
from mig_opt.files.fleet.traces import write_trace


@pytest.fixture
def mig_opt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_trace(trace(), tmp_path / "t.json")
    return lambda *arguments: called(capsys, "simulate", *arguments)


def trace() -> Trace:
    """Two 1g jobs, then one for the whole GPU that finds no place, and a last one when all others are done."""
    jobs = (
        Job("a", 0.0, {1: 10.0}, "1g.5gb"),
        Job("b", 1.0, {1: 10.0}, "1g.5gb"),
        Job("c", 2.0, {7: 10.0}, "7g.40gb"),
        Job("d", 20.0, {4: 10.0}, "4g.20gb"),
    )
    return Trace(jobs, get_gpu("A100"))


def test_ratios_are_compared_in_a_table(mig_opt: Command) -> None:
    code, out, err = mig_opt("t.json", "--reject")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "1 x A100-40GB, without a queue" in out
    (line,) = (line for line in out.splitlines() if line.startswith("first-fit "))
    assert line.split()[1:4] == ["75.0", "46.2", "46.2"]
    (line,) = (line for line in out.splitlines() if line.startswith("upper bound"))
    assert line.split()[2:] == ["75.0", "84.6", "84.6"]
    assert "lower bound" not in out


def test_json_has_the_metrics_of_the_library_and_their_gaps(mig_opt: Command) -> None:
    document = mig_opt("t.json", "--reject", "--policy", "first-fit", "--optimum", "--json").json
    metrics = simulate(trace(), "first-fit", reject=True).metrics
    (found,) = document["policies"]
    assert document["admission"] == "reject"
    assert (found["rejected"], found["turned_away"], found["unfinished"]) == (1, ["c"], [])
    assert found["acceptance"]["slices"] == metrics.acceptance.slices
    assert found["active_gpus"] == metrics.active_gpus
    assert document["upper_bounds"]["jobs"] == 0.75
    assert found["gaps"]["upper_bound"] == pytest.approx({"jobs": 0.0, "slices": 5 / 11, "slice_seconds": 5 / 11})
    assert found["gaps"]["optimum"] == pytest.approx(found["gaps"]["upper_bound"])
    best = document["optimum"]["slices"]
    assert best["status"] == "optimal"
    assert best["value"] == best["upper_bound"] == pytest.approx(11 / 13)
    assert [entry["job"] for entry in best["accepted"]] == ["c", "d"]


def test_the_optimum_is_a_line_of_the_table(mig_opt: Command) -> None:
    out = mig_opt("t.json", "--reject", "--optimum", "--policy", "static:partition=7").out
    (line,) = (line for line in out.splitlines() if line.startswith("optimum "))
    assert line.split()[1:] == ["75.0", "84.6", "84.6"]
    assert max(map(len, out.splitlines())) <= 80


def test_who_gives_jobs_other_profiles_has_a_bound_of_its_own(mig_opt: Command) -> None:
    """whole-gpu runs a on 4g, where it is done before b comes."""
    jobs = (Job("a", 0.0, {2: 10.0, 4: 1.0}, "2g.12gb"), Job("b", 5.0, {4: 5.0}, "4g.24gb"))
    write_trace(Trace(jobs, get_gpu("A30")), "larger.json")
    called = ("larger.json", "--reject", "--policy", "first-fit", "--policy", "whole-gpu")
    out = " ".join(mig_opt(*called).out.split())
    for words in (
        "upper bound 50.0 66.7 50.0 on any profile 100.0 100.0 100.0",
        "upper bound: of every scheduler that gives jobs the profiles that they ask for,",
        "on any profile: of every scheduler, those that give jobs other profiles included: whole-gpu.",
    ):
        assert words in out
    document = mig_opt(*called, "--json").json
    bounds = [document[name]["jobs"] for name in ("upper_bounds", "upper_bounds_on_any_profile")]
    gaps = [policy["gaps"]["upper_bound"]["jobs"] for policy in document["policies"]]
    assert (bounds, gaps) == ([0.5, 1.0], [0.0, 0.0])
    assert "any profile" not in mig_opt(*called[:-2]).out


def test_nobody_waits_so_all_is_well(mig_opt: Command) -> None:
    """Without --reject the partition of `static` leaves jobs waiting for ever, which is a no."""
    assert mig_opt("t.json", "--policy", "static:partition=7").code == 1
    assert mig_opt("t.json", "--policy", "static:partition=7", "--reject").code == 0


def test_log_and_chart(mig_opt: Command, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = mig_opt("t.json", "--reject", "--policy", "best-fit", "--save-log", "log.jsonl", "--plot", "chart.svg").out
    assert "Chart written to chart.svg" in out
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert entries[0]["admission"] == "reject"
    assert entries[-1] == {"rejected": "c", "at": 2.0}


def test_what_cannot_be_is_refused(mig_opt: Command, tmp_path: Path) -> None:
    write_trace(generate_trace("normal-25", jobs=501), tmp_path / "long.json")
    refuses(
        mig_opt("long.json", "--reject", "--optimum", "--policy", "first-fit"),
        "--optimum: is for traces of up to 500 jobs, this one has 501",
    )
