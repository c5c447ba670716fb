"""Parts that benchmarks share: pages, figures that are not measured again or are drawn; and how they are imported."""

import argparse
import ast
import doctest
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest
from matplotlib.figure import Figure
from places import BENCH

from bench import figures, report
from bench.report import Kept, Page


def test_a_page(tmp_path, capsys):
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


def test_what_is_known_is_not_measured_again(tmp_path):
    path = tmp_path / "new" / "rows.jsonl"
    assert Kept(path).get("a", lambda: [1, 2.5]) == [1, 2.5]
    again = Kept(path)
    assert again.get("a", lambda: [0.0]) == [1, 2.5]
    assert again.get("b", lambda: [3.0]) == [3.0]
    assert Kept(path).known == {"a": [1, 2.5], "b": [3.0]}


def test_some_of_the_known_names():
    split = report.some_of(("a", "b"))
    assert split("b,a") == ("b", "a")
    with pytest.raises(argparse.ArgumentTypeError, match="there is no c; there are a, b"):
        split("a,c")


def test_a_study_that_is_stopped_says_how_it_goes_on():
    def stopped() -> None:
        raise KeyboardInterrupt

    assert report.start(stopped) is stopped
    stopped.__module__ = "__main__"
    with pytest.raises(SystemExit, match="the same command goes on"):
        report.start(stopped)


def drawn() -> Figure:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0.0, 1 / 3, 2 / 3], [1.0, 2 / 7, 3.0], marker="o", label="a <line>")
    axes.legend()
    return figure


def test_equal_figures_are_equal_files(tmp_path):
    for name in ("a.svg", "b.svg", "a.png"):
        figures.save_figure(drawn(), tmp_path / "new" / name)
    one, other, png = ((tmp_path / "new" / name).read_bytes() for name in ("a.svg", "b.svg", "a.png"))
    assert one == other
    assert png.startswith(b"\x89PNG")


def test_a_small_file_has_every_mark_and_text(tmp_path):
    figures.save_figure(drawn(), tmp_path / "small.svg")
    drawn().savefig(tmp_path / "whole.svg", metadata={"Date": None})
    small, whole = ((tmp_path / name).read_text(encoding="utf-8") for name in ("small.svg", "whole.svg"))
    assert len(small) < 0.7 * len(whole)
    root = ET.fromstring(small)
    texts = [element.text for element in root.iter() if element.tag.endswith("}text")]
    assert "a <line>" in texts
    used = {value.lstrip("#") for element in root.iter() for key, value in element.items() if key.endswith("}href")}
    assert used <= {element.get("id") for element in root.iter()}
    assert figures.compact(small) == small


def test_examples():
    assert doctest.testmod(figures).failed == 0


@pytest.mark.parametrize("path", sorted((BENCH / "results").glob("*.svg")), ids=lambda path: path.name)
def test_committed_figures_are_small_and_whole(path):
    text = path.read_text(encoding="utf-8")
    assert figures.compact(text) == text, "it was written by another function"
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def imports() -> Iterator[tuple[str, str]]:
    """Each module with each of those that it imports, also within functions."""
    for path in sorted(Path(BENCH).rglob("*.py")):
        module = ".".join(path.relative_to(BENCH.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from ((module, other) for name in names for other in (f"{base}{name}", base.rstrip(".")) if other)


def test_no_scripts_import_each_other_in_a_circle():
    circles = nx.strongly_connected_components(nx.DiGraph(list(imports())))
    assert [sorted(circle) for circle in circles if len(circle) > 1] == []
