"""The figure of the study of PCIe-aware scheduling."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.figures import COLOURS, MARKERS, panels


def reductions(
    shares: Sequence[float],
    small: Sequence[Sequence[float]],
    large: Sequence[Sequence[float]],
    more: Mapping[tuple[float, int], tuple[Sequence[float], Sequence[float]]],
    thresholds: Mapping[tuple[float, float | None, float | None], float],
) -> Figure:
    """Return a figure of reductions in percent.

    Parameters
    ----------
    shares : sequence of float
        Shares of PCIe-bound jobs.
    small, large : sequence of sequence of float
        For each share the reductions with 4 and with 60 GPUs.
    more : mapping
        By share and instances per GPU the reductions where arrivals grow with the instances, and where not.
    thresholds : mapping
        Mean reductions by share, wait threshold and delay threshold.
    """
    figure, (left, middle, right) = panels(("Shares", "Instances", "Thresholds"), (11.5, 3.9))
    for index, (name, values) in enumerate((("4 GPUs", small), ("60 GPUs", large))):
        places = [100 * share + 1.6 * (index - 0.5) for share in shares]
        _points(left, places, values, index, name)
    left.plot([60, 60], [18, 17], "k_", markersize=16, label="printed: 18 and 17")
    left.set_xlabel("PCIe-bound jobs in %")
    left.set_ylabel("mean flow time lower by %")
    counts = sorted({count for _, count in more})
    for index, share in enumerate(sorted({share for share, _ in more})):
        for which, dashes in enumerate(("-", ":")):
            means = [statistics.mean(more[share, count][which]) for count in counts]
            label = f"{share:.0%} PCIe-bound" if not which else None
            middle.plot(
                counts, means, dashes, color=COLOURS[1 + index], marker=MARKERS[index], markersize=4, label=label
            )
    middle.axhline(20, color="black", linewidth=0.8, linestyle="--", label="printed: up to 20")
    middle.plot([], [], ":", color="grey", label="arrivals as for 7")
    middle.set_xlabel("instances on each of 4 GPUs")
    delays = list(dict.fromkeys(delay for _, _, delay in thresholds))
    for index, wait in enumerate(dict.fromkeys(wait for _, wait, _ in thresholds)):
        label = "wait threshold: none" if wait is None else f"wait threshold: {wait:g} s"
        means = [thresholds[0.6, wait, delay] for delay in delays]
        right.plot(
            range(len(delays)), means, color=COLOURS[1 + index], marker=MARKERS[index], markersize=4, label=label
        )
    right.set_xticks(range(len(delays)), ["none" if delay is None else f"{delay:g}" for delay in delays])
    right.set_xlabel("delay threshold (60 % PCIe-bound, 4 GPUs)")
    for axis in (left, middle, right):
        axis.legend(fontsize=7.5)
    return figure


def _look(index: int) -> dict[str, Any]:
    return {"color": COLOURS[1 + index], "marker": MARKERS[index], "markersize": 4}


def _points(axis: Axes, places: Sequence[float], values: Sequence[Sequence[float]], index: int, label: str) -> None:
    means = [statistics.mean(one) for one in values]
    below = [mean - min(one) for mean, one in zip(means, values, strict=True)]
    above = [max(one) - mean for mean, one in zip(means, values, strict=True)]
    look = {"linewidth": 1.2, "capsize": 2.5, **_look(index)}
    axis.errorbar(places, means, yerr=(below, above), label=f"{label}, mean and range", **look)
