"""Gaps of the heuristics to the proven optimum, or to the best bound where no optimum is known.

Run: python -m bench.batch.gap_study, which does what is missing of the studies in gaps/, as mig-opt bench would, and
draws its results; or with --cut, which takes seconds. The studies name the batches, the exact method and heuristics;
every other heuristic that mig_opt has is run as well.
"""

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bench.figures import COLOURS, DASHES, MARKERS, panels, save_figure
from bench.report import Page, completed, markdown, missing_rows, resumable, some_of, start
from mig_opt.method.registry import get_method, methods
from mig_opt.studies import GeneratedBatches, MethodSettings, Study, StudyRows, read_study
from mig_opt.studies.summary import Figures, Judged, grouped

STUDIES = Path(__file__).with_name("gaps")
PARTS = {"small": "6 to 15 tasks", "medium": "20 to 50 tasks", "large": "100 and 1000 tasks"}


def planned(part: str, *, cut: bool = False) -> Study:
    """Return one of :data:`PARTS` with every heuristic that needs no arguments of its own.

    A cut has the least n only, with one seed and brief limits.
    """
    study = read_study(STUDIES / f"{part}.toml")
    listed = {settings.method: settings for settings in study.methods}
    limit = next(settings.time_limit for name, settings in listed.items() if get_method(name).kind == "heuristic")
    known = [method.name for method in methods()]
    simple = (method.name for method in methods() if method.kind == "heuristic" and not method.options)
    others = tuple(MethodSettings(name, time_limit=limit, label=name) for name in simple if name not in listed)
    ordered = sorted(study.methods + others, key=lambda settings: known.index(str(settings.method)))
    study = dataclasses.replace(study, methods=tuple(ordered))
    return _cut(study) if cut else study


def _cut(study: Study) -> Study:
    batches = tuple(
        dataclasses.replace(source, n=source.n[:1], seeds=(0,)) if isinstance(source, GeneratedBatches) else source
        for source in study.batches
    )
    brief = tuple(
        dataclasses.replace(settings, time_limit=(0.2 if get_method(settings.method).kind == "exact" else 0.1,))
        for settings in study.methods
    )
    return dataclasses.replace(study, batches=batches, methods=brief)


def by_n(found: StudyRows) -> dict[str, list[Judged]]:
    """Return the runs with a schedule by number of tasks, each beside the best bound and schedule for its batch."""
    known = (judged for judged in found.judged() if judged.gap is not None)
    return grouped(known, lambda judged: f"n = {judged.run.source['n']}")


def gaps(runs: Sequence[Judged]) -> dict[str, list[float]]:
    """Return the gaps in percent by method."""
    by_method = grouped(runs, lambda run: run.run.column)
    return {method: [100 * (run.gap or 0.0) for run in own] for method, own in by_method.items()}


def section(part: str, found: StudyRows) -> list[str]:
    """Return the tables of a part of the study."""
    groups = by_n(found)
    optima = {run.run.batch_key for runs in groups.values() for run in runs if run.outcome.status == "optimal"}
    batches = {run.run.batch_key for runs in groups.values() for run in runs}
    lines = [f"## {PARTS[part].capitalize()}", "", *missing_rows(found), *mixed_sources(found)]
    lines += [f"Optima are proven for {len(optima)} of {len(batches)} batches.", ""]
    for title, cell in (
        ("mean gap in %, and the worst", _gap_cell),
        ("runs that found the best known makespan", _best_cell),
        ("mean seconds", lambda runs: f"{statistics.fmean(run.outcome.seconds for run in runs):.3f}"),
    ):
        lines += [*_table(title, groups, cell), ""]
    return lines


def mixed_sources(found: StudyRows) -> list[str]:
    """Return a remark if some rows were made with other sources or versions than most of them."""
    counts = Counter(row.fingerprint for row in found.rows)
    few = sum(counts.values()) - max(counts.values(), default=0)
    return [f"**{few} of these runs were made with other sources or versions than the others.**", ""] if few else []


def _table(title: str, groups: Mapping[str, Sequence[Judged]], cell: Callable[[Sequence[Judged]], str]) -> list[str]:
    names = dict.fromkeys(run.run.column for runs in groups.values() for run in runs)
    rows = []
    for name in names:
        of = ([run for run in runs if run.run.column == name] for runs in groups.values())
        rows.append([f"`{name}`", *(cell(runs) if runs else "" for runs in of)])
    return markdown([title, *groups], rows)


def _best_cell(runs: Sequence[Judged]) -> str:
    return f"{sum(run.above_best == 0 for run in runs)} of {len(runs)}"


def _gap_cell(runs: Sequence[Judged]) -> str:
    figures = Figures.of(run.gap for run in runs)
    return "" if figures is None else f"{figures.mean:.2%} ({figures.worst:.1%})".replace("%", "")


_LINEAR = 0.1  # percent up to which axes of gaps are linear; logarithmic beyond
_TICKS = (0.0, 0.1, 1.0, 10.0, 100.0)
Gaps = Mapping[str, Sequence[float]]  # gaps in percent, by method


def box_plots(groups: Mapping[str, Gaps], label: str) -> Figure:
    """Return a figure with a panel for each group of batches, and in it a box for each method.

    All groups have the same methods; ``label`` says what the gaps are.
    """
    methods = list(next(iter(groups.values())))
    figure, axes = panels(groups, (1.6 + 2.1 * len(groups), 1.2 + 0.36 * len(methods)), grid="x")
    for axis, gaps in zip(axes, groups.values(), strict=True):
        look: Any = {"orientation": "horizontal", "widths": 0.62, "whis": (0, 100), "patch_artist": True}
        look |= {name: {"color": "#444444"} for name in ("whiskerprops", "capprops")}
        look["medianprops"] = {"color": "black", "linewidth": 1.6}
        boxes = axis.boxplot([gaps[method] for method in methods], **look)
        for index, box in enumerate(boxes["boxes"]):
            box.set(facecolor=COLOURS[index % 8], alpha=0.55, edgecolor="#444444")
        means = [sum(gaps[method]) / len(gaps[method]) for method in methods]
        axis.plot(means, range(1, len(methods) + 1), "D", color="white", markeredgecolor="black", markersize=4.5)
        axis.set_yticks(range(1, len(methods) + 1), methods)
        _percent_axis(axis, max(max(values) for values in gaps.values()))
    axes[0].invert_yaxis()
    figure.supxlabel(f"{label}; line: median, diamond: mean, whiskers: least and greatest", fontsize=9)
    return figure


def profiles(groups: Mapping[str, Gaps], label: str) -> Figure:
    """Return a figure with the share of batches on which each method has at most a certain gap.

    All groups have the same methods; ``label`` says what the gaps are.
    """
    methods = list(next(iter(groups.values())))
    figure, axes = panels(groups, (1.6 + 3.0 * len(groups), 3.6), grid="both")
    for axis, gaps in zip(axes, groups.values(), strict=True):
        most = max(max(values) for values in gaps.values())
        for index, method in enumerate(methods):
            ordered = sorted(gaps[method])
            shares = [100 * (at + 1) / len(ordered) for at in range(len(ordered))]
            look: Any = {"color": COLOURS[index % 8], "linestyle": DASHES[index % 4], "marker": MARKERS[index % 8]}
            look |= {"markersize": 5, "markevery": (0.04 + 0.11 * index / len(methods), 0.24), "linewidth": 1.7}
            points = [0.0, *ordered, most * 2], [0.0, *shares, 100.0]
            axis.plot(*points, drawstyle="steps-post", label=method, **look)
        axis.set_ylim(0, 103)
        _percent_axis(axis, most)
    axes[0].set_ylabel("batches in %")
    figure.supxlabel(f"{label}, at most", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", handlelength=3.6, fontsize=9)
    return figure


def _percent_axis(axis: Axes, most: float) -> None:
    """Let the axis go from 0 to a bit beyond ``most`` percent, with ticks that do not meet."""
    axis.set_xscale("symlog", linthresh=_LINEAR, linscale=0.6)
    axis.set_xlim(-0.012, max(1.3 * most, 1.0))
    axis.xaxis.set_major_locator(FixedLocator([tick for tick in _TICKS if tick <= max(1.3 * most, 1.0)]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


@start
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is missing, write the tables and figures; return 1 if a run failed or results contradict each other."""
    parser = resumable(__doc__, "rows, tables and figures", "the least n of each part, one seed, brief limits")
    parser.add_argument("--only", type=some_of(PARTS), default=tuple(PARTS), help=f"some of {','.join(PARTS)}")
    options = parser.parse_args(arguments)
    page = Page("gaps", "Gaps to the optimum", "mig-opt", "ortools", folder=options.results)
    page.add("""The gap is (makespan - best bound) / makespan, to the greatest lower bound that any method found; where
        an optimum is proven, that is the true distance to it. One thread each, A100, `p_sup` 0.5.""")
    wrong: list[str] = []
    parts: dict[str, dict[str, list[float]]] = {}
    for part, title in PARTS.items():
        study, rows = planned(part, cut=options.cut), options.results / f"gaps_{part}.jsonl"
        found = completed(study, rows, options, part, run=part in options.only)
        if not found.rows:
            continue
        wrong += [*found.contradictions, *found.failures]
        page.lines += section(part, found)
        groups = by_n(found)
        parts[title] = gaps([run for runs in groups.values() for run in runs])
        boxes = box_plots({n: gaps(runs) for n, runs in groups.items()}, "gap in %")
        save_figure(boxes, options.results / f"gaps_{part}.svg")
    if parts:
        save_figure(profiles(parts, "gap in %"), options.results / "gaps_profiles.svg")
    page.wrong(wrong)
    page.save()
    return 1 if wrong else 0
