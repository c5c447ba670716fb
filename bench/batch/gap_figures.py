"""The figures of the study of gaps: box plots, and performance profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

_COLOURS = ("#000000", "#0072B2", "#56B4E9", "#D55E00", "#CC79A7", "#009E73", "#E69F00", "#7F7F7F")
"""After Okabe and Ito, without the yellow that is hard to see on white: told apart by colour-blind readers, too."""
_DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
_MARKERS = "osD^vPX*"
_LINEAR = 0.1
"""Percent up to which axes of gaps are linear; logarithmic beyond."""
_TICKS = (0.0, 0.1, 1.0, 10.0, 100.0)

Gaps = Mapping[str, Sequence[float]]
"""Gaps in percent, by method."""


def box_plots(panels: Mapping[str, Gaps], label: str) -> Figure:
    """Return a figure with a panel for each group of batches, and in it a box for each method.

    Parameters
    ----------
    panels : mapping of str to Gaps
        The groups by their titles; all with the same methods.
    label : str
        What the gaps are.
    """
    methods = list(next(iter(panels.values())))
    figure = Figure(figsize=(1.6 + 2.1 * len(panels), 1.2 + 0.36 * len(methods)), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, gaps) in zip(axes, panels.items(), strict=True):
        boxes = axis.boxplot(
            [gaps[method] for method in methods],
            orientation="horizontal",
            widths=0.62,
            whis=(0, 100),
            patch_artist=True,
            medianprops={"color": "black", "linewidth": 1.6},
            whiskerprops={"color": "#444444"},
            capprops={"color": "#444444"},
        )
        for index, box in enumerate(boxes["boxes"]):
            box.set(facecolor=_colour(index), alpha=0.55, edgecolor="#444444")
        means = [sum(gaps[method]) / len(gaps[method]) for method in methods]
        axis.plot(means, range(1, len(methods) + 1), "D", color="white", markeredgecolor="black", markersize=4.5)
        axis.set_title(title, fontsize=10)
        axis.set_yticks(range(1, len(methods) + 1), methods)
        _percent_axis(axis, max(max(values) for values in gaps.values()))
    axes[0].invert_yaxis()
    figure.supxlabel(f"{label}; line: median, diamond: mean, whiskers: least and greatest", fontsize=9)
    return figure


def profiles(panels: Mapping[str, Gaps], label: str) -> Figure:
    """Return a figure with the share of batches on which each method has at most a certain gap.

    Parameters
    ----------
    panels : mapping of str to Gaps
        The groups by their titles; all with the same methods.
    label : str
        What the gaps are.
    """
    methods = list(next(iter(panels.values())))
    figure = Figure(figsize=(1.6 + 3.0 * len(panels), 3.6), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, gaps) in zip(axes, panels.items(), strict=True):
        most = max(max(values) for values in gaps.values())
        for index, method in enumerate(methods):
            ordered = sorted(gaps[method])
            shares = [100 * (at + 1) / len(ordered) for at in range(len(ordered))]
            axis.plot(
                [0.0, *ordered, most * 2],
                [0.0, *shares, 100.0],
                drawstyle="steps-post",
                color=_colour(index),
                linestyle=_DASHES[index % len(_DASHES)],
                marker=_MARKERS[index % len(_MARKERS)],
                markersize=5,
                markevery=(0.04 + 0.11 * index / len(methods), 0.24),
                linewidth=1.7,
                label=method,
                clip_on=True,
            )
        axis.set_title(title, fontsize=10)
        axis.set_ylim(0, 103)
        _percent_axis(axis, most)
        axis.grid(visible=True, axis="y", color="#dddddd")
    axes[0].set_ylabel("batches in %")
    figure.supxlabel(f"{label}, at most", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", handlelength=3.6, fontsize=9)
    return figure


def _colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def _percent_axis(axis: Axes, most: float) -> None:
    """Let the axis go from 0 to a bit beyond ``most`` percent, with ticks that do not meet."""
    axis.set_xscale("symlog", linthresh=_LINEAR, linscale=0.6)
    axis.set_xlim(-0.012, max(1.3 * most, 1.0))
    axis.xaxis.set_major_locator(FixedLocator([tick for tick in _TICKS if tick <= max(1.3 * most, 1.0)]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.grid(visible=True, axis="x", color="#dddddd")
    axis.set_axisbelow(True)
