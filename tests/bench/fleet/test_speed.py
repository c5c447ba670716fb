"""The study of the simulator's speed, on a cut so small that its figures mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.fleet import speed as online_speed


def test_a_tiny_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_speed, "in_a_process_of_its_own", lambda *case: online_speed.measure(*case[:4]))
    online_speed.main(["--cut", "2000", "--results", str(tmp_path)])
    text = (tmp_path / "online_speed.md").read_text(encoding="utf-8")
    assert "| 10,000 | 500 | `memory-aware-a` |" in text
    assert "| 100 | 5 | `planner` |" in text
    assert text.count("| `first-fit` |") == 5


@pytest.mark.deep
def test_one_measurement() -> None:
    found = online_speed.in_a_process_of_its_own(50, 2, "first-fit", 0.5)
    assert found["events"] >= 100
    assert found["unfinished"] == 0
