"""The figure of the study of fleets: GPUs for each scenario, and for more and more services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

_COLOURS = (
    "#000000",
    "#0072B2",
    "#56B4E9",
    "#D55E00",
    "#CC79A7",
    "#009E73",
    "#E69F00",
    "#999999",
    "#882255",
    "#DDCC77",
    "#117733",
    "#AA4499",
)
_MARKERS = "osD^vPX"
_DASHES = ("-", "--", "-.", ":")


def fleets(
    scenarios: Iterable[str],
    counts: Mapping[str, Sequence[int]],
    multiples: Sequence[int],
    scaled: Mapping[str, Sequence[int]],
) -> Figure:
    """Return a figure with bars for the scenarios, and GPUs beyond the exact count for copies of one of them.

    Parameters
    ----------
    scenarios : iterable of str
        Their short names.
    counts : mapping of str to sequence of int
        GPUs for each scenario, by method.
    multiples : sequence of int
        Numbers of copies.
    scaled : mapping of str to sequence of int
        GPUs for each number of copies, by method; with ``exact``.
    """
    names = list(scenarios)
    figure = Figure(figsize=(10.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.55, 1))
    width = 0.85 / len(counts)
    colours = dict(zip(counts, _COLOURS, strict=False))
    for index, (method, gpus) in enumerate(counts.items()):
        places = [at - 0.425 + (index + 0.5) * width for at in range(len(names))]
        left.bar(places, gpus, width, color=colours[method], edgecolor="white", linewidth=0.4, label=method)
    left.set_xticks(range(len(names)), names)
    left.set_ylabel("GPUs")
    left.set_title("Scenarios", fontsize=10)
    left.legend(fontsize=8, loc="upper left")
    for index, (method, gpus) in enumerate(scaled.items()):
        if method == "exact":
            continue
        more = [100 * (found / best - 1) for found, best in zip(gpus, scaled["exact"], strict=True)]
        right.plot(
            multiples,
            more,
            color=colours[method],
            marker=_MARKERS[index % len(_MARKERS)],
            linestyle=_DASHES[index % len(_DASHES)],
            label=method,
        )
    right.set_xlabel("copies of S5")
    right.set_ylabel("GPUs above the proven optimum in %")
    right.set_title("More services", fontsize=10)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    # Room for the legend above every line.
    right.set_ylim(-0.3, 1.25 * right.get_ylim()[1])
    right.legend(fontsize=8, loc="upper center", ncols=3)
    for axis in (left, right):
        axis.grid(visible=True, axis="y", color="#dddddd")
        axis.set_axisbelow(True)
    return figure
