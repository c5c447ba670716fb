"""Figures of the benchmarks: how they look, and files that are small, and the same for the same results."""

import io
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = (
    *("#000000", "#0072B2", "#56B4E9", "#D55E00", "#CC79A7", "#009E73", "#E69F00", "#7F7F7F"),
    *("#882255", "#DDCC77", "#117733", "#AA4499"),
)
"""After Okabe and Ito, without the yellow that is hard to see on white: told apart by colour-blind readers, too."""
MARKERS = "osD^vPX*"
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
_SAVING: dict[Any, Any] = {
    "svg.hashsalt": "mig-opt",
    "svg.fonttype": "none",  # texts as texts, a third of the file that outlines of letters make
    "font.family": ["DejaVu Sans", "Verdana", "sans-serif"],  # of the widest first, so that texts have room
}
_COORDINATES = re.compile(r'(?<= )(?:d|x|y|points)="[^"]*"|translate\([^)]*\)')
_COMMENT = re.compile(r"<!-- .*? -->|<metadata>.*?</metadata>", re.DOTALL)
_STYLE = re.compile(r' style="[^"]*"')
_NUMBER = re.compile(r"-?\d+\.\d{2,}")


def panels(
    titles: Collection[str], size: tuple[float, float], grid: Any = "y", **more: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side, which share their vertical axis unless more is said."""
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(1, len(titles), squeeze=False, **({"sharey": True} | more))[0])
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=10)
        axis.grid(visible=True, axis=grid, color="#dddddd")
        axis.set_axisbelow(True)
    return figure, axes


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure; equal figures are equal files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_SAVING):
        if path.suffix != ".svg":
            figure.savefig(path, dpi=150, metadata={"Software": None})
            return
        data = io.StringIO()
        figure.savefig(data, format="svg", metadata={"Creator": None, "Date": None})
    path.write_text(compact(data.getvalue()), encoding="utf-8")


def compact(svg: str) -> str:
    r"""Return a picture with coordinates in tenths of a point, without comments, names and blanks that nobody needs.

    Examples
    --------
    >>> compact('<path id="a" d="M 1.23456 -0.001 \nL 2 3.5 \n" style="opacity: 0.12345"/>')
    '<path d="M1.2 0L2 3.5" style="opacity:0.12345"/>'
    """
    svg = _COORDINATES.sub(lambda found: _NUMBER.sub(_rounded, _joined(found[0])), _COMMENT.sub("", svg))
    used = set(re.findall(r"#([\w-]+)", svg))
    svg = re.sub(r' id="([\w-]+)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = _STYLE.sub(lambda found: re.sub(r"([:;,])\s+", r"\1", found[0]), svg)
    return re.sub(r"\n\s*(?=<)", "\n", svg)


def _joined(attribute: str) -> str:
    return re.sub(r"\s*\n\s*|(?<=[A-Za-z]) (?=[-0-9])", "", attribute)


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.1f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
