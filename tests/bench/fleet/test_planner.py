"""The study of the planner: some parts can be measured again while the others stay."""

from pathlib import Path

import pytest
from places import BENCH

from bench.fleet import planner
from bench.report import Page


def test_parts_that_are_not_measured_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "small", lambda *_: iter([["a", "b", "c", "again"]]))
    stored = (BENCH / "results" / "online_planner.md").read_text(encoding="utf-8")
    (tmp_path / "online_planner.md").write_text(stored, encoding="utf-8")
    before, after = (Page("online_planner", "", folder=folder) for folder in (BENCH / "results", tmp_path))
    planner.main(["--only", "small", "--results", str(tmp_path)])
    assert "| a | b | c | again |" in after.earlier(planner.SECTIONS["small"][0])
    for heading, *_ in list(planner.SECTIONS.values())[1:]:
        assert before.earlier(heading) == after.earlier(heading) != []
