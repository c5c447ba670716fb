"""Every scheduler on every family of traces: distances to the lower bounds, and who is best where.

Run: python -m bench.fleet.policies, which does what is missing of the study online/policies.toml, as mig-opt bench
would, and writes its tables and its figure; or with --cut, which takes seconds. The study names traces; whatever
schedulers and families of traces mig_opt has beside those that it names are run as well, as they usually are.
"""

import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.figures import save_figure
from bench.report import Page, completed, foreign_rows, missing_rows, resumable, start
from mig_opt import methods
from mig_opt.instances.fleet.registry import trace_families
from mig_opt.studies import GeneratedTraces, PolicySettings, Study, read_study
from mig_opt.studies.rows import Row
from mig_opt.studies.runs import StudyRun
from mig_opt.studies.summary import GOALS, Goal, best, grouped


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """A simulation; without values and ratios if jobs were left waiting for ever, or the run failed."""

    regime: str
    family: str
    trace: str  # tells it from all others
    draw: str  # the seed or the file
    policy: str
    values: Mapping[Goal, float]  # seconds by goal
    ratios: Mapping[Goal, float]  # the same as multiples of the lower bound
    wait: float  # from arrival to start, in the mean
    seconds: float  # of the simulation

    @classmethod
    def of(cls, row: Row[StudyRun]) -> Self:
        """Return what a row says."""
        run, figures, source = row.run, row.outcome.figures, row.run.source
        values: dict[Goal, float] = {}
        if not row.outcome.error and not figures["unfinished"]:
            values = {"mean_completion": figures["completion"]["mean"], "makespan": figures["makespan"]}
        ratios = {goal: value / figures["lower_bounds"][goal] for goal, value in values.items()}
        wait, draw = figures["wait"]["mean"] if values else 0.0, str(source.get("seed", source.get("file")))
        trace = run.cell, source.get("family", "openb"), run.batch_key, draw
        return cls(*trace, run.column, values, ratios, wait, row.outcome.seconds)


def winning(results: Iterable[PolicyResult], goal: Goal) -> tuple[str, ...]:
    """Return who is best on some traces, and who ties with it."""
    by_policy = grouped(results, lambda result: result.policy)
    return best({name: {run.trace: run.values[goal] for run in own if run.values} for name, own in by_policy.items()})


def ratio(results: Sequence[PolicyResult], goal: Goal) -> tuple[float, float] | None:
    """Return the mean multiple of the lower bound, and how it spreads over the draws; None if a job was left.

    The spread is the standard deviation of the means of the draws: of all traces with the same seed, or of a file.
    """
    if not all(result.ratios for result in results):
        return None
    draws = grouped(results, lambda result: result.draw).values()
    means = [statistics.fmean(result.ratios[goal] for result in own) for own in draws]
    mean = statistics.fmean(result.ratios[goal] for result in results)
    return mean, statistics.stdev(means) if len(means) > 1 else 0.0


FOLDER = Path(__file__).with_name("online")
_OTHER_SEEDS = (0, 1, 2, 3)
_CUT_TRACE = {"jobs": (6,)}
_CUT_STREAM = {"batches": (2,), "tasks": (4,)}
_NOTES = {
    "language models": "The fragmentation-aware scheduler's workloads: `normal-*` and `long-*`, 60 jobs on 4 GPUs.",
    "PCIe-bound jobs": "The PCIe-aware scheduler's: `pcie-4` with 20, 60 and 100 % PCIe-bound jobs, and `pcie-60` on 20"
    " GPUs.",
    "memory mixes": "The memory-aware scheduler's mixes of jobs whose memory is known, on one GPU.",
    "growing memory": "Its language models, whose memory grows beyond 10 GB, on one GPU; two of them are a single job.",
    "FAR streams": "Five batches of 15 tasks with times for every size, one after the other, on one GPU.",
    "openb days": "Six days of Alibaba's trace, 150 to 199 jobs each, most of them for a whole GPU, on 8 GPUs.",
}


def planned(*, cut: bool = False) -> Study:
    """Return the study with every scheduler, in the order of the registry, and every family of traces.

    Schedulers that the file does not name have their usual options; families join the group of those whose names begin
    alike (``migm-``), with four seeds.
    """
    study = read_study(FOLDER / "policies.toml")
    names = [entry.name for entry in methods("simulate")]
    listed = {settings.policy for settings in study.policies}
    others = tuple(PolicySettings(name) for name in names if name not in listed)
    ordered = sorted(study.policies + others, key=lambda settings: names.index(settings.policy))
    study = dataclasses.replace(study, policies=tuple(ordered), traces=(*study.traces, *_other_families(study)))
    return dataclasses.replace(study, traces=tuple(_cut(study))) if cut else study


def _other_families(study: Study) -> Iterator[GeneratedTraces]:
    groups: dict[str, str] = {}
    listed = {}
    for source in study.traces:
        for family in source.family if isinstance(source, GeneratedTraces) else ():
            listed[family] = groups.setdefault(family.partition("-")[0], source.group)
    for name in (family.name for family in trace_families()):
        if name not in listed:
            yield GeneratedTraces((name,), _OTHER_SEEDS, group=groups.get(name.partition("-")[0], "other families"))


def _cut(study: Study) -> Iterator[GeneratedTraces]:
    """Yield the generated traces with one seed and few jobs."""
    for source in study.traces:
        if isinstance(source, GeneratedTraces):
            lists = {name: values[:1] for name, values in source.parameters.items()}
            fewer = _CUT_STREAM if "far-stream" in source.family else _CUT_TRACE
            yield dataclasses.replace(source, seeds=source.seeds[:1], parameters={**lists, **fewer})


def write(page: Page, results: Sequence[PolicyResult]) -> None:
    """Add the winners, a table for each regime, and one by families for each goal."""
    regimes = grouped(results, lambda result: result.regime)
    heads = [f"shortest {title}" if goal == "makespan" else f"least {title}" for goal, title in GOALS.items()]
    page.section("Winners", "Those that tie with the first one stand behind it.")
    rows = (
        [name, len({run.trace for run in own}), *(_names(winning(own, goal), own) for goal in GOALS)]
        for name, own in regimes.items()
    )
    page.table(["regime", "traces", *heads], rows, texts=(0, 2, 3))
    for name, own in regimes.items():
        page.section(f"{name[0].upper()}{name[1:]}", _NOTES.get(name, ""))
        head = ["policy", "all jobs done", "flow time / bound", "wait s", "makespan / bound", "seconds of a simulation"]
        page.table(head, regime_rows(own))
    page.section("By family")
    results = [result for own in regimes.values() for result in own]
    names = list(dict.fromkeys(result.policy for result in results))
    for goal, title in GOALS.items():
        means = f"Mean {title}, as a multiple of the lower bound"
        page.add(f"{means}; bold: the best and those that tie with it, unless all do; empty: jobs were left.")
        families = grouped(results, lambda result: result.family)
        cells = (family_row(names, family, own, goal) for family, own in families.items())
        page.table(["family", *(f"`{name}`" for name in names)], cells)


def regime_rows(results: Sequence[PolicyResult]) -> Iterator[list[str]]:
    """Yield a row for each scheduler, with its means on the traces of a regime."""
    won = {goal: winning(results, goal) for goal in GOALS}
    for policy, own in grouped(results, lambda result: result.policy).items():
        done = [result for result in own if result.values]
        yield [
            f"`{policy}`",
            f"{len(done)} of {len(own)}",
            _ratio_cell(own, "mean_completion", policy in won["mean_completion"]),
            f"{statistics.fmean(result.wait for result in done):.1f}" if len(done) == len(own) else "",
            _ratio_cell(own, "makespan", policy in won["makespan"]),
            f"{statistics.fmean(result.seconds for result in own):.3f}",
        ]


def family_row(names: Sequence[str], family: str, results: Sequence[PolicyResult], goal: Goal) -> list[str]:
    """Return the row of a family, with a column for each scheduler."""
    by_policy = grouped(results, lambda result: result.policy)
    won = winning(results, goal)
    bold = won if len(won) < len(by_policy) else ()
    cells = (_ratio_cell(by_policy.get(name, []), goal, name in bold, spread=False) for name in names)
    return [f"`{family}`", *cells]


def _ratio_cell(results: Sequence[PolicyResult], goal: Goal, bold: bool, *, spread: bool = True) -> str:
    found = ratio(results, goal) if results else None
    if found is None:
        return ""
    text = f"{found[0]:.3f}" + (f" ± {found[1]:.3f}" if spread else "")
    return f"**{text}**" if bold else text


def _names(names: Sequence[str], results: Iterable[PolicyResult]) -> str:
    if len(names) == len({result.policy for result in results}):
        return "all alike"
    if not names:
        return "none"
    return ", ".join([f"**`{names[0]}`**", *(f"`{name}`" for name in names[1:])])


_BEST, _OTHER = "#0072B2", "#888888"
"""After Okabe and Ito; winners are filled as well, so that nobody has to tell the colours apart."""
_WIDEST = 3.0
"""Multiple of the median distance from the bound beyond which, and beyond all bars of others, there is no point."""


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
    label = "multiple of the lower bound (line); bars: spread over seeds; filled: the best, and those that tie with it"
    figure.supxlabel(label, fontsize=9)
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
            colour, fill = (_BEST, _BEST) if name in best else (_OTHER, "white")
            look: dict[str, Any] = {"markersize": 6, "capsize": 2.5, "linewidth": 1.2, "color": colour}
            axis.errorbar(figures[0], at, xerr=figures[1], fmt="o", markerfacecolor=fill, **look)


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


@start
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is missing, write the tables and the figure; return 1 if a run failed or contradicts a bound."""
    parser = resumable(__doc__, "rows, tables and figure", "one seed, six jobs, no files")
    parser.add_argument("--jobs", type=int, help="runs at the same time")
    options = parser.parse_args(arguments)
    study, rows = planned(cut=options.cut), options.results / "online_policies.jsonl"
    found = completed(study, rows, options, "simulations", folder=FOLDER, jobs=options.jobs)
    title = "Schedulers on every family of traces"
    page = Page("online_policies", title, "mig-opt", "ortools", folder=options.results)
    page.add("""Every scheduler of `mig_opt.methods("simulate")`, with its usual options, on the traces of
        [online/policies.toml](../fleet/online/policies.toml), A100. Flow time is the mean of the seconds from arrival
        to completion; it and the makespan are multiples of the lower bounds of the trace that no scheduler beats
        (docs/reference/traces.md), the means of the traces, ± the standard deviation over seeds or days. A scheduler
        ties with the best one, the one of the least geometric mean, if their ratio, trace by trace, could be 1 on the
        average for all that its spread says (95 %, Student's t, paired). Where a scheduler leaves jobs waiting for ever
        it has no figures.""")
    page.lines += [*missing_rows(found), *foreign_rows(found.foreign)]
    wrong = page.wrong([*found.contradictions, *found.failures])
    if found.rows:
        results = [PolicyResult.of(row) for row in found.rows]
        write(page, results)
        save_figure(side_by_side(results), options.results / "online_policies.svg")
    page.save()
    return int(wrong)
