"""The picture of the page "Which scheduler for my cluster?", and its table: all schedulers, with a queue and without.

Run: python -m bench.fleet.which_scheduler, after online_policies.py and admission.py, whose stored results it reads.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.figures import COLOURS, MARKERS, panels, save_figure
from bench.fleet import admission
from bench.fleet.policies import FOLDER, PolicyResult, planned
from bench.report import RESULTS, Page, parser_of, start
from mig_opt.studies import study_rows
from mig_opt.studies.summary import grouped

_FARTHEST = 6.0  # multiples beyond which a point stands at the edge
Figures = Mapping[str, Mapping[str, float]]  # by regime or group, then by scheduler


def queues(results: Sequence[PolicyResult]) -> tuple[Figures, Figures]:
    """Return by regime and scheduler the mean wait as a multiple of that of first fit, and makespan / bound.

    Who leaves jobs waiting for ever has no figures, nor has a regime in which nobody waits.
    """
    waits: dict[str, dict[str, float]] = {}
    makespans: dict[str, dict[str, float]] = {}
    for regime, own in grouped(results, lambda result: result.regime).items():
        by_policy = grouped(own, lambda result: result.policy)
        done = {name: found for name, found in by_policy.items() if all(each.ratios for each in found)}
        wait = {name: statistics.fmean(each.wait for each in found) for name, found in done.items()}
        base = wait.get("first-fit", 0.0)
        waits[regime] = {name: value / base for name, value in wait.items()} if base else {}
        ratios = {name: [each.ratios["makespan"] for each in found] for name, found in done.items()}
        makespans[regime] = {name: statistics.fmean(found) for name, found in ratios.items()}
    return waits, makespans


def acceptance(found: Sequence[admission.Ratios]) -> Figures:
    """Return by group and scheduler the accepted jobs as a share of the upper bound of all schedulers."""
    shares: dict[str, dict[str, float]] = {}
    for group, own in grouped(found, lambda each: each.group).items():
        by_policy = grouped(own, lambda each: each.policy)
        mean = {name: statistics.fmean(each.jobs for each in runs) for name, runs in by_policy.items()}
        bound = mean["upper bound"]
        shares[group] = {name: ratio / bound for name, ratio in mean.items() if " " not in name and ":" not in name}
    return shares


def picture(names: Sequence[str], measures: Sequence[tuple[str, str, Figures]]) -> Figure:
    """Return a figure with a panel for each measure: a point for each regime, a line at the mean of all of them."""
    titles = [title for title, _, _ in measures]
    figure, line = panels(titles, (11.5, 1.9 + 0.3 * len(names)), grid="both")
    for axes, (_, unit, figures) in zip(line, measures, strict=True):
        _panel(axes, names, figures)
        axes.set_xlabel(unit, fontsize=9)
    line[0].set_yticks(range(len(names)), names, fontsize=9)
    line[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def _panel(axes: Axes, names: Sequence[str], figures: Figures) -> None:
    for number, (regime, values) in enumerate(figures.items()):
        shown = [(min(values[name], _FARTHEST), at) for at, name in enumerate(names) if name in values]
        look: dict[str, Any] = {"color": COLOURS[1 + number], "marker": MARKERS[number % 8], "markerfacecolor": "none"}
        axes.plot([x for x, _ in shown], [y for _, y in shown], linestyle="none", markersize=6, label=regime, **look)
    for at, name in enumerate(names):
        if (mean := mean_of(figures, name)) is not None:
            mean = min(mean, _FARTHEST)
            axes.plot([mean, mean], [at - 0.32, at + 0.32], color="black", linewidth=2.2)
    axes.axvline(1.0, color="#888888", linewidth=1.0, zorder=0)
    axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False)


def mean_of(figures: Figures, name: str) -> float | None:
    """Return the mean of a scheduler over all regimes that have figures; None where it lacks one."""
    known = [values.get(name) for values in figures.values() if values]
    there = [value for value in known if value is not None]
    return statistics.fmean(there) if len(there) == len(known) else None


def rows_of(names: Sequence[str], measures: Sequence[tuple[str, str, Figures]]) -> Iterator[list[str]]:
    """Yield the means of the picture, a row for each scheduler."""
    for name in names:
        means = (mean_of(figures, name) for _, _, figures in measures)
        yield [f"`{name}`", *("" if mean is None else f"{mean:.2f}" for mean in means)]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture, and write the table."""
    options = parser_of(__doc__, "the picture and the table").parse_args(arguments)
    rows = study_rows(planned(), RESULTS / "online_policies.jsonl", folder=FOLDER, keep=True).rows
    waits, makespans = queues([PolicyResult.of(row) for row in rows])
    accepted = acceptance(admission.read(RESULTS))
    names = list(dict.fromkeys(name for figures in (*waits.values(), *accepted.values()) for name in figures))
    measures = (
        ("Mean wait, with a queue", "multiple of that of first fit", waits),
        ("Makespan, with a queue", "multiple of the lower bound", makespans),
        ("Accepted jobs, without a queue", "share of the upper bound", accepted),
    )
    save_figure(picture(names, measures), options.results / "which_scheduler.svg")
    page = Page("which_scheduler", "Schedulers with a queue and without", folder=options.results)
    page.add("""Means over the regimes of [online_policies.md](online_policies.md) and the groups of
        [admission.md](admission.md); empty where jobs were left waiting for ever, or where a scheduler has no part.""")
    page.table(["scheduler", *(f"{title}, {unit}" for title, unit, _ in measures)], rows_of(names, measures))
    page.save()
