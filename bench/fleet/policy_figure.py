"""The figure of the study of schedulers: all of them side by side, for each regime and each goal."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.fleet.policy_results import PolicyResult, ratio, winning
from mig_opt.studies.summary import GOALS, grouped

_BEST, _OTHER = "#0072B2", "#888888"
"""After Okabe and Ito; winners are filled as well, so that nobody has to tell the colours apart."""

_WIDEST = 3.0
"""Whoever is beyond so many times the median distance from the bound, and beyond all bars of others, has no point."""


def side_by_side(results: Iterable[PolicyResult]) -> Figure:
    """Return a figure with a column for each regime and a row for each goal.

    A point is the mean multiple of the lower bound, its bar the spread over the draws; the best and those that tie with
    it are filled. Who left jobs waiting for ever has no point, who is far beyond the others a number at the edge.
    """
    regimes = grouped(results, lambda result: result.regime)
    names = list(dict.fromkeys(run.policy for own in regimes.values() for run in own))
    height = 1.3 + len(GOALS) * (0.5 + 0.24 * len(names))
    figure = Figure(figsize=(1.8 + 2.1 * len(regimes), height), layout="constrained")
    axes = figure.subplots(len(GOALS), len(regimes), sharey=True, squeeze=False)
    for line, (goal, title) in zip(axes, GOALS.items(), strict=True):
        for axis, (regime, own) in zip(line, regimes.items(), strict=True):
            by_policy = grouped(own, lambda result: result.policy)
            found = {name: ratio(by_policy[name], goal) if name in by_policy else None for name in names}
            _points(axis, found, winning(own, goal))
            if goal == next(iter(GOALS)):
                axis.set_title(regime, fontsize=10)
        line[0].set_yticks(range(len(names)), names)
        line[0].set_ylabel(title, fontsize=10)
    figure.supxlabel(
        "multiple of the lower bound (line); bars: spread over seeds; filled: the best, and those that tie with it",
        fontsize=9,
    )
    return figure


def _points(axis: Axes, found: Mapping[str, tuple[float, float] | None], best: Iterable[str]) -> None:
    best, end = set(best), _end(found)
    axis.axvline(1.0, color="black", linewidth=1.0)
    axis.grid(visible=True, axis="x", color="#dddddd")
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8)
    axis.xaxis.set_major_locator(MaxNLocator(4, prune="upper"))
    axis.set_xlim(1 - 0.04 * (end - 1), end)
    axis.set_ylim(len(found) - 0.4, -0.6)
    for at, (name, figures) in enumerate(found.items()):
        if figures is None:
            _remark(axis, at, "jobs left waiting", 0.07, "left")
        elif figures[0] > end:
            axis.plot(0.97, at, ">", color=_OTHER, markersize=5, transform=axis.get_yaxis_transform())
            _remark(axis, at, f"{figures[0]:.2f}", 0.92, "right")
        else:
            axis.errorbar(
                *(figures[0], at),
                xerr=figures[1],
                fmt="o",
                markersize=6,
                capsize=2.5,
                linewidth=1.2,
                color=_BEST if name in best else _OTHER,
                markerfacecolor=_BEST if name in best else "white",
            )


def _remark(axis: Axes, at: int, text: str, where: float, side: str) -> None:
    transform = axis.get_yaxis_transform()
    axis.text(where, at, text, transform=transform, fontsize=7, va="center", ha=side, color="#555555")


def _end(found: Mapping[str, tuple[float, float] | None]) -> float:
    """Return where the axis ends: beyond all bars, but for those of stragglers."""
    known = [figures for figures in found.values() if figures is not None]
    if not known:
        return 2.0
    end, shown = 1 + _WIDEST * statistics.median(mean - 1 for mean, _ in known), 0
    while shown < (count := sum(mean <= end for mean, _ in known)):
        shown = count
        # All bars of those within; the axis that needs may have room for one more.
        end = max(1 + 1.06 * (mean + spread - 1) for mean, spread in known if mean <= end)
    return max(end, 1 + 1e-4)
