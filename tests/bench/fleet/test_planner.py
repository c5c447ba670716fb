"""The study of the planner: some parts can be measured again while the others stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import BENCH

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

from bench.fleet import planner as online_planner


def test_parts_that_are_not_measured_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_planner, "measured", lambda part, _cut: [f"| {part} |"])
    online_planner.main(["--results", str(tmp_path)])
    page = tmp_path / "online_planner.md"
    before = online_planner.parts_of(page.read_text(encoding="utf-8"))
    assert list(before) == list(online_planner.SECTIONS)
    monkeypatch.setattr(online_planner, "measured", lambda _part, _cut: ["| again |"])
    online_planner.main(["--only", "small", "--results", str(tmp_path)])
    after = online_planner.parts_of(page.read_text(encoding="utf-8"))
    assert "| again |" in after.pop("small")
    assert {name: text.rstrip() for name, text in after.items()} == {
        name: text.rstrip() for name, text in before.items() if name != "small"
    }


def test_the_stored_page_has_all_parts() -> None:
    page = (BENCH / "results" / "online_planner.md").read_text(encoding="utf-8")
    assert list(online_planner.parts_of(page)) == list(online_planner.SECTIONS)


@pytest.mark.deep
def test_a_cut_of_the_small_traces(tmp_path: Path) -> None:
    online_planner.main(["--cut", "--only", "small", "--results", str(tmp_path)])
    assert "planner |" in (tmp_path / "online_planner.md").read_text(encoding="utf-8")
