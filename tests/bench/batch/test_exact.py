"""The study of exactness: a tiny cut of every section, and what its records and tables promise."""

import argparse
import dataclasses
import importlib.util
import itertools
import json
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bench import report
from bench.batch import exact, exact_plan, runs
from bench.batch.exact_plan import Goal, Group
from bench.batch.runs import Instance, Row, Run
from mig_opt.studies.rows import Outcome, packed

Command = Callable[..., int]
RUN = Run(Instance(6), time_limit=60)


@pytest.fixture
def study(tmp_path):
    """Runs the study with short limits and one batch of each kind."""
    cut = ["--seeds", "1", "--scalings", "MixedScaling", "--limit-scale", "0.02", "--results", str(tmp_path)]
    return lambda *arguments: exact.main([*cut, *arguments])


def options(*arguments: str) -> argparse.Namespace:
    return exact.parser().parse_args(arguments)


def lines_of(tmp_path: Path) -> list[str]:
    """The rows: in the compressed file after a study that ended, in the plain one after one that was stopped."""
    path = tmp_path / "exact.jsonl"
    text = path.read_bytes() if path.exists() else lzma.decompress(packed(path).read_bytes())
    return text.decode().splitlines()


CUTS = {"small": "6", "medium": "30", "gpus": "60", "2-gpus": "20", "8-gpus": "200", "handover": "6", "real": "8"}
CUTS |= {"limits": "10,100", "methods": "2", "pyjobshop": "8"} | {n: n for n in ("15", "20", "25", "1000", "10000")}


@pytest.mark.deep
@pytest.mark.parametrize("name", CUTS)
def test_a_tiny_cut_of_a_section(name, study, tmp_path):
    if name == "pyjobshop":
        pytest.importorskip("pyjobshop")
    scale = ["--limit-scale", "0.001" if name == "10000" else "0.02"]
    assert study("--only", name, "--sizes", CUTS[name], *scale) == 0
    found = [json.loads(line)["outcome"] for line in lines_of(tmp_path)]
    assert found
    assert all(outcome["makespan"] or outcome["status"] == "infeasible" for outcome in found)
    if name in ("1000", "10000"):
        assert all(outcome["peak_bytes"] > 2**24 for outcome in found)
    if name == "limits":
        assert [outcome["status"] for outcome in found] == ["infeasible", "feasible", "interrupted"]
    text = (tmp_path / "exact.md").read_text(encoding="utf-8")
    assert f"## {exact_plan.SECTIONS[name][0]}\n" in text
    assert f"{len(found)} runs" in text


def test_pyjobshop_is_optional(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert exact_plan.plan(options(), ["pyjobshop"]) == {"pyjobshop": []}


def test_the_whole_plan_has_no_run_twice():
    groups = [group for groups in exact_plan.plan(options(), ()).values() for group in groups]
    keys = [run.key for group in groups for run in group.runs]
    assert len(set(keys)) == len(keys)
    assert all(Run.read(json.loads(run.key)) == run for run in groups[0].runs)


@pytest.mark.parametrize(("until", "gaps"), [("0", {0.0}), ("goal", {0.001}), ("0.01", {0.01})])
def test_runs_may_end_at_a_gap(until, gaps):
    chosen = exact_plan.plan(options("--until", until), ["medium", "gpus"])
    runs = [run for groups in chosen.values() for group in groups for run in group.runs]
    assert {run.gap for run in runs if run.instance.gpus > 1} == gaps
    assert {run.gap for run in runs if run.instance.gpus == 1} == {0.0}  # those of 50 and 100 tasks are to be proven


def test_the_table_says_that_rows_are_foreign(study, tmp_path, monkeypatch):
    cut = ("--only", "small", "--sizes", "6")
    study(*cut)
    monkeypatch.setattr(exact, "fingerprint", lambda: "changed")
    study(*cut, "--table")
    assert "runs, measured" not in (tmp_path / "exact.md").read_text(encoding="utf-8")
    study(*cut, "--table", "--keep")
    assert "**1 of these runs were made with other sources" in (tmp_path / "exact.md").read_text(encoding="utf-8")


def test_sources_that_change_on_the_way_end_the_study(study, monkeypatch):
    prints = iter(["one", "one", "two"])
    monkeypatch.setattr(exact, "fingerprint", lambda: next(prints))
    main = partial(study, "--only", "small", "--sizes", "6")
    main.__module__ = "__main__"
    with pytest.raises(SystemExit, match="sources have changed"):
        report.start(main)


def test_contradictions_are_loud(study, tmp_path, monkeypatch):
    outcomes = (Outcome("optimal", 1.0, float(makespan), float(makespan)) for makespan in itertools.count(5))
    monkeypatch.setattr(exact, "perform", lambda run: next(outcomes))
    assert study("--only", "methods", "--sizes", "2") == 1
    assert "**Something is wrong" in (tmp_path / "exact.md").read_text(encoding="utf-8")


def test_ctrl_c_is_no_measurement(monkeypatch):
    monkeypatch.setattr(runs, "perform_here", lambda run: Outcome("interrupted", 1.0))
    with pytest.raises(KeyboardInterrupt):
        runs.perform(RUN)


def timed(seconds: float, status: str = "optimal", run: Run = RUN) -> Row:
    return Row(run, Outcome(status, seconds, 5.0, 4.9))


def test_goals_count_what_reaches_them():
    rows = [timed(0.1), timed(0.2), timed(6.0), timed(0.9, "feasible")]
    goal = Goal(optimal=1, median_s=0.5, worst_s=5, gap=0.01)
    assert goal.misses(rows) == ["all `optimal`: 3 of 4", "worst < 5 s: 3 of 4", "gap <= 1 %: 0 of 4"]
    assert Goal(optimal=0.75, worst_s=7, gap=0.021).misses(rows) == []
    assert Goal(median_s=0.15).misses(rows) == ["median < 0.15 s: 1 of 4"]


def test_ratios_of_runs_without_a_proof_are_marked():
    ours, theirs = dataclasses.replace(RUN, method="auto"), dataclasses.replace(RUN, method="pyjobshop")
    given = {ours.key: timed(0.5, run=ours), theirs.key: timed(60.0, "feasible", theirs)}
    table = exact.table("pyjobshop", [Group("6", (ours, theirs))], lambda run: given.get(run.key))
    assert len(table) == 3
    assert "| > 120.0 |" in table[2]
    assert "| > 60.00 |" in table[2]
