"""The study of the goals of `search`: a small cut, and when it says that a goal is met."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

import pytest
from places import BENCH

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

from bench.batch import search_goals
from bench.batch.search_goals import PARTS, Cell, Part, verdict
from mig_opt.studies.batch import BatchRun
from mig_opt.studies.rows import Outcome, Row
from mig_opt.studies.summary import Judged, judge


def lines_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines() if line.startswith("| ")]


@pytest.mark.deep
def test_a_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_goals, "_CUT", {"small": 10, "real": 8})
    cut = ["--cut", "--results", str(tmp_path)]
    assert search_goals.main(cut) == 0
    text = (tmp_path / "search_goals.md").read_text(encoding="utf-8")
    assert text.strip() == capsys.readouterr().out.strip()
    table = lines_of(text)
    assert [line[:2] for line in table if line[1].endswith(" of 6")] == [["| 10", "6 of 6"]]
    assert sum(line[3] == "1 of 1" for line in table) == 6
    assert [line[0] for line in table if "a" in line[0] and line[0] != "| instance"] == [
        f"| {name}" for name in search_goals.REAL
    ]
    rows = (tmp_path / "search_goals.jsonl.xz").read_bytes()
    assert search_goals.main(cut) == 0
    assert search_goals.main([*cut, "--table"]) == 0
    assert (tmp_path / "search_goals.jsonl.xz").read_bytes() == rows


@pytest.mark.deep
def test_fewer_seeds_are_a_part_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brief = Part("Brief", (6,), limit=0.02, gap=1.0, reference_limit=0.5)
    monkeypatch.setattr(search_goals, "PARTS", {"brief": brief})
    monkeypatch.setattr(search_goals, "SEEDS", 4)
    results = ["--results", str(tmp_path)]
    assert search_goals.main(["--seeds", "1", *results]) == 0
    text = (tmp_path / "search_goals.md").read_text(encoding="utf-8")
    assert next(line[1] for line in lines_of(text) if line[0] == "| 6") == "6 of 24"
    assert text.count("| 1 of 4 |") == 6
    rows = lzma.decompress((tmp_path / "search_goals.jsonl.xz").read_bytes())
    assert search_goals.main(["--seeds", "2", *results]) == 0
    assert lzma.decompress((tmp_path / "search_goals.jsonl.xz").read_bytes()).startswith(rows)
    assert "12 of 24" in (tmp_path / "search_goals.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("argument", "message"),
    [("--only=small,samll", "there is no samll; there are small, 100"), ("--seeds=31", "must be from 1 to 30")],
)
def test_wrong_arguments(argument: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        search_goals.main([argument])
    assert caught.value.code == 2
    assert message in re.sub(r"\s+", " ", capsys.readouterr().err)


def test_the_goals() -> None:
    goals = {n: (part.limit, part.gap) for part in PARTS.values() for n in part.sizes}
    assert goals == {
        **dict.fromkeys((10, 15, 20, 25, 30, 35), (0.2, 0.005)),
        100: (1, 0.002),
        1000: (2, 0.001),
        10_000: (20, 0.001),
    }


def row(batch: str, method: str, outcome: Outcome) -> Row[BatchRun]:
    return Row(BatchRun({"name": batch}, {}, "", method), outcome)


def judged(batch: str, ours: float, bound: float, far: float, best: float, seconds: float = 1.0) -> list[Judged]:
    outcomes = {
        "cp": Outcome("optimal" if best == bound else "feasible", 1.0, best, bound, 0.0005),
        "far": Outcome("feasible", 0.1, far, 1.0, 0.0005),
        "search": Outcome("feasible", seconds, ours, 1.0, 0.0005),
    }
    return judge([row(batch, method, outcome) for method, outcome in outcomes.items()])


def test_a_cell_sums_up_its_batches() -> None:
    cell = Cell.of([*judged("a", 10.0, 10.0, 12.0, 10.0, 1.1), *judged("b", 10.0, 9.8, 10.0, 9.9, 0.9)])
    assert (cell.proven, cell.worse) == (1, 0)
    assert cell.overrun(1.0) == pytest.approx(0.1)
    assert verdict([cell], 0.011) == "met"
    assert verdict([cell], 0.009) == "met, to the best known"
    assert verdict([cell], 0.005) == "**missed**: too far"
    assert verdict([cell, cell], 0.005) == "**missed**: 2 of 2 cells"


def test_batches_without_all_methods_do_not_count() -> None:
    runs = [*judged("a", 10.0, 10.0, 12.0, 10.0), *judged("b", 10.0, 9.0, 9.0, 9.0)[:-1]]
    assert len(Cell.of(runs).search) == 1


@pytest.mark.parametrize(("far", "worse"), [(9.9996, 0), (9.9994, 1)])
def test_worse_than_far_is_a_miss(far: float, worse: int) -> None:
    cell = Cell.of(judged("a", 10.0, 9.99, far, 9.99))
    assert cell.worse == worse
    assert verdict([cell], 0.01) == ("**missed**: worse than FAR on 1" if worse else "met")


def test_a_run_without_a_schedule_is_a_miss() -> None:
    runs = judged("a", 10.0, 10.0, 12.0, 10.0)[:2]
    crashed = row("a", "search", Outcome("crashed", 1.0, error="boom"))
    failed = judge([*(Row(run.run, run.outcome) for run in runs), crashed])
    assert verdict([Cell.of(failed)], 0.01) == "**missed**: too far; worse than FAR on 1"
