"""The figures of the study of the fragmentation-aware scheduler: its ablation, and instances over time."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

_COLOURS = ("#56B4E9", "#0072B2", "#D55E00")
_HATCHES = ("", "///", "")
_PRINTED = (0.65, 0.87)


def ablation(workloads: Sequence[str], panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> Figure:
    """Return a figure with the shares of the baseline that are left with more and more techniques.

    Parameters
    ----------
    workloads : sequence of str
        Their names.
    panels : mapping
        For each panel the techniques, and of each the shares by workload and seed.
    """
    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    several = figure.subplots(1, len(panels), sharey=True)
    for axes, (heading, techniques) in zip(several, panels.items(), strict=True):
        axes.axhspan(*_PRINTED, color="#e8e8e8", zorder=0, label="printed, all three")
        axes.axhline(1.0, color="black", linewidth=0.8)
        width = 0.8 / len(techniques)
        for index, (name, by_workload) in enumerate(techniques.items()):
            places = [at - 0.4 + (index + 0.5) * width for at in range(len(workloads))]
            means = [statistics.fmean(seeds) for seeds in by_workload]
            deviations = [statistics.stdev(seeds) if len(seeds) > 1 else 0.0 for seeds in by_workload]
            axes.bar(
                places, means, width, yerr=deviations, color=_COLOURS[index], hatch=_HATCHES[index], edgecolor="white",
                error_kw={"elinewidth": 0.8, "capsize": 2}, label=name, zorder=2,
            )  # fmt: skip
        axes.set_xticks(range(len(workloads)), workloads)
        axes.set_title(heading, fontsize=10)
        axes.grid(visible=True, axis="y", color="#dddddd")
        axes.set_axisbelow(True)
    several[0].set_ylabel("wait + execution, share of the baseline")
    several[0].set_ylim(0, 1.45)
    several[0].legend(fontsize=8, loc="upper left", ncols=2)
    return figure


def instance_figure(counts: Mapping[str, Sequence[tuple[float, int, int]]]) -> Figure:
    """Return a figure with the desired and the actual number of instances of each profile over time (Figure 6).

    Parameters
    ----------
    counts : mapping
        For each profile the seconds at which something changes, with both numbers from then on.
    """
    figure = Figure(figsize=(10.5, 5.6), layout="constrained")
    several = figure.subplots(len(counts), 1, sharex=True, squeeze=False)[:, 0]
    end = max(points[-1][0] for points in counts.values())
    for axes, (profile, points) in zip(several, sorted(counts.items()), strict=True):
        seconds, desired, actual = zip((0.0, 0, 0), *points, (end, *points[-1][1:]), strict=True)
        axes.fill_between(seconds, actual, step="post", color=_COLOURS[0], linewidth=0, label="instances")
        axes.step(seconds, desired, where="post", color=_COLOURS[2], linewidth=1.2, label="jobs that want or have one")
        axes.set_ylabel(profile, rotation=0, ha="right", va="center")
        axes.set_ylim(0, max(*desired, *actual) + 1)
        axes.grid(visible=True, axis="y", color="#dddddd")
        axes.set_axisbelow(True)
    several[0].legend(fontsize=8, loc="upper right", ncols=2)
    several[-1].set_xlabel("seconds")
    return figure
