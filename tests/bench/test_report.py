"""Parts that benchmarks share: pages of results, and figures that are not measured again."""

import argparse
from pathlib import Path

import pytest

from bench import report
from bench.report import Kept, Page


def test_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = Page("speed", "Speed", "mig-opt", folder=tmp_path / "new")
    page.add("Seconds of\n    the processor.")
    page.section("Small", "Ten jobs.")
    page.table(["n", "s"], ([f"{n}", 2 * n] for n in (1, 2)))
    assert not page.wrong([])
    page.save()
    shown = capsys.readouterr()
    assert shown.err.splitlines() == ["1 2", "2 4"]
    title, _, made, *rest = (tmp_path / "new" / "speed.md").read_text(encoding="utf-8").splitlines()
    assert (title, made) == ("# Speed", report.describe("mig-opt"))
    assert rest == ["", "Seconds of the processor.", "", "## Small", "", "Ten jobs.", "", *rest[7:]]
    assert rest[7:] == ["| n | s |", "| --- | ---: |", "| 1 | 2 |", "| 2 | 4 |"]
    later = Page("speed", "Speed", folder=tmp_path / "new")
    assert later.earlier("Small") == [*rest[5:], ""]
    assert later.earlier("Large") == []
    assert later.earlier_rows(1)["2",] == ["2", "4"]
    assert later.wrong(["a bound above a schedule"])
    assert "* a bound above a schedule" in later.lines


def test_what_is_known_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.jsonl"
    assert Kept(path).get("a", lambda: [1, 2.5]) == [1, 2.5]
    again = Kept(path)
    assert again.get("a", lambda: [0.0]) == [1, 2.5]
    assert again.get("b", lambda: [3.0]) == [3.0]
    assert Kept(path).known == {"a": [1, 2.5], "b": [3.0]}


def test_some_of_the_known_names() -> None:
    split = report.some_of(("a", "b"))
    assert split("b,a") == ("b", "a")
    with pytest.raises(argparse.ArgumentTypeError, match="there is no c; there are a, b"):
        split("a,c")


def test_a_study_that_is_stopped_says_how_it_goes_on() -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    assert report.start(stopped) is stopped
    stopped.__module__ = "__main__"
    with pytest.raises(SystemExit, match="the same command goes on"):
        report.start(stopped)
