"""Figures of the studies in files: small, whole, and the same each time."""

import doctest
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from places import BENCH

from bench import figures


def drawn() -> Figure:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0.0, 1 / 3, 2 / 3], [1.0, 2 / 7, 3.0], marker="o", label="a <line>")
    axes.legend()
    return figure


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg", "a.png"):
        figures.save_figure(drawn(), tmp_path / "new" / name)
    one, other, png = ((tmp_path / "new" / name).read_bytes() for name in ("a.svg", "b.svg", "a.png"))
    assert one == other
    assert png.startswith(b"\x89PNG")


def test_a_small_file_has_every_mark_and_text(tmp_path: Path) -> None:
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


def test_examples() -> None:
    assert doctest.testmod(figures).failed == 0


@pytest.mark.parametrize("path", sorted((BENCH / "results").glob("*.svg")), ids=lambda path: path.name)
def test_committed_figures_are_small_and_whole(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert figures.compact(text) == text, "it was written by another function"
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
