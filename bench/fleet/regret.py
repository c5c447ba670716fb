"""The planner's goals beside the best simple scheduler of each of sixty traces, with known and unknown run times.

Run: python -m bench.fleet.regret, which does what is missing and writes tables and picture; with --cut in seconds.
Ratios are of simulated seconds, so a busy machine does not matter.
"""

import dataclasses
import functools
import itertools
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from bench.figures import COLOURS, MARKERS, save_figure
from bench.report import Kept, Page, parser_of, start, timed
from mig_opt import Job, Trace, declare_times, generate_trace, get_gpu, simulate
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.instances.fleet.registry import trace_families

BETTER: Mapping[str, Mapping[str, Any]] = {
    name: {"backfill": True, "patience": None}
    for name in ("first-fit", "best-fit", "load-balancing", "fragmentation-aware")
}
"""Simple schedulers that do not look at run times, in their better form: with backfilling without a limit."""
SIMPLE = {"memory-aware-a": {}, "memory-aware-b": {}, "pcie-aware": {}, **BETTER}
"""The simple schedulers, with their options."""
GOALS = ("makespan", "balanced", "flow")
KNOWLEDGE: Mapping[float | str, str] = {0.5: "sigma 0.5", 1.0: "sigma 1", 2.0: "sigma 2", "one": "nothing"}
"""Knowledge of run times where they are not known: errors by their sigma, or nothing at all."""
MEASURES = ("makespan", "mean flow time")
WITHIN = 1.04  # multiple of the best simple scheduler's figure that the planner is to keep within
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "smallest sizes": {"free": False},
    "any sizes": {},
    "sub-linear": {"scaling": 0.7},
    "heavy": {"scaling": 0.7, "sigma": 1.2, "mean_s": 400.0},
}
"""Jobs ask for the smallest profile that has their memory; or run on any size: as fast as it is large, or less (seconds
fall with the power ``scaling`` of the size), and with lengths that differ more."""
SEEDS = range(101, 121)
_ONE_SEED = ("pcie-60", "migm-hm1", "migm-nw", "migm-llama3")
"""Families of which another seed is the same, or takes minutes."""
_ERRORS_FROM = 1000
"""Difference of the seed of the errors from that of the trace: equal seeds would draw errors that go with the times."""
PROFILES = {"1g.10gb": (14, 35), "2g.20gb": (28, 25), "3g.40gb": (42, 25), "7g.80gb": (100, 5)}
"""Percent of a GPU, and weight, of each profile of a saturated trace."""
NO_STARVATION, SMALLEST = "pcie-aware, nobody starves", "pcie-aware, smallest sizes only"


def saturated(
    seed: int | str, *, free: bool = True, scaling: float = 1, sigma: float = 0.8, mean_s: float = 600, jobs: int = 500
) -> Trace:
    """Return a trace of the shape of MIGBench's: 56 small jobs at once, then one every 15 s, on 8 H100s for hours."""
    draw, gpu = random.Random(seed), get_gpu("H100-80GB")
    now, made = 0.0, []
    for number in range(jobs):
        name = "1g.10gb"
        if number >= 56:
            now += draw.expovariate(1 / 15)
            name = draw.choices(list(PROFILES), [weight for _, weight in PROFILES.values()])[0]
        seconds, own = draw.lognormvariate(0.0, sigma) * mean_s, gpu.profile(name)
        times = {
            gpu.profile(other).compute_slices: seconds * (PROFILES[name][0] / percent) ** scaling
            for other, (percent, _) in PROFILES.items()
            if gpu.profile(other).memory_gb >= own.memory_gb
        }
        smallest = {own.compute_slices: times[own.compute_slices]}
        job = Job(f"j{number}", now, times, memory_gb=own.memory_gb) if free else Job(f"j{number}", now, smallest, name)
        made.append(job)
    return Trace(tuple(made), gpu, 8)


def bounds_of(trace: Trace, *, resizing: bool = True) -> list[float]:
    """Return the lower bounds of makespan and mean flow time."""
    bounds = trace_bounds(trace, resizing=resizing)
    return [bounds.makespan[0].value, bounds.mean_completion]


def planned(cut: bool) -> Iterator[tuple[str, Callable[[], Trace]]]:
    """Yield the name of each trace, its kind before the comma, and a function that makes it."""
    for seed, (kind, settings) in zip(SEEDS[: 2 if cut else None], itertools.cycle(SHAPES.items())):
        make = functools.partial(saturated, f"regret {seed}", **{"mean_s": 700.0, **settings}, jobs=60 if cut else 500)
        yield f"{kind}, {seed}", make
    for family in trace_families():
        few: dict[str, Any] = {"jobs": 6} if cut and any(own.name == "jobs" for own in family.parameters) else {}
        for seed in (0,) if cut or family.name in _ONE_SEED else (0, 1):
            yield f"{family.name}, {seed}", functools.partial(generate_trace, family.name, seed=seed, **few)


def figures(trace: Trace, policy: str, **options: Any) -> list[float] | None:
    """Return makespan, mean flow time, mean slowdown and seconds of the processor; None if a job was never done."""
    done, seconds = timed(functools.partial(simulate, trace, policy, **options))
    if done.unfinished:
        return None
    flows = zip(trace.jobs, done.log.finished, strict=True)
    slowdown = statistics.fmean((end - job.arrival) / min(job.times.values()) for job, end in flows)
    return [done.metrics.makespan, done.metrics.completion.mean, slowdown, seconds]


Rows = Mapping[str, Mapping[str, list[float]]]  # figures by trace, then by scheduler


def measure(kept: Kept, name: str, trace: Trace) -> None:
    """Do what is missing of a trace."""
    runs: dict[str, Callable[[], Any]] = {"bounds": lambda: bounds_of(trace)}
    runs |= {own: functools.partial(figures, trace, own, **options) for own, options in SIMPLE.items()}
    runs |= {f"goal={own}": functools.partial(figures, trace, "planner", goal=own) for own in GOALS}
    if kind_of(name) in SHAPES:
        runs[NO_STARVATION] = functools.partial(figures, trace, "pcie-aware", wait_threshold=None)
        runs[SMALLEST] = functools.partial(figures, _smallest(trace), "pcie-aware")
    seed = _ERRORS_FROM + int(name.rpartition(" ")[2])
    for own, words in KNOWLEDGE.items():
        runs[words] = functools.partial(lambda own: figures(declare_times(trace, own, seed=seed), "planner"), own)
    for own, run in runs.items():
        kept.get(f"{name}; {own}", run)


def rows_of(kept: Kept, names: Sequence[str]) -> Rows:
    """Return what is known of traces of which the figures of all simple schedulers are known."""
    rows: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    for key, values in kept.known.items():
        name, _, own = key.partition("; ")
        if values is not None and name in rows:
            rows[name][own] = values
    last = list(SIMPLE)[-1]
    return {name: row for name, row in rows.items() if f"{name}; {last}" in kept.known}


def _smallest(trace: Trace) -> Trace:
    """Return a trace whose jobs ask for the smallest profile that they can run on."""
    asked = ((job, trace.profiles(job)[0]) for job in trace.jobs)
    jobs = (
        dataclasses.replace(job, times={own.compute_slices: job.times[own.compute_slices]}, profile=own.name)
        for job, own in asked
    )
    return trace.replace(jobs=tuple(jobs))


def regret(row: Mapping[str, list[float]], scheduler: str, measure: int) -> float:
    """Return a figure of a scheduler as a multiple of that of the best simple scheduler of the trace."""
    return row[scheduler][measure] / min(row[own][measure] for own in SIMPLE if own in row)


def kind_of(name: str) -> str:
    """Return the kind of a trace by its name."""
    return name.rpartition(", ")[0]


def summary(rows: Rows, schedulers: Sequence[str]) -> Iterator[list[str]]:
    """Yield mean and worst of each scheduler in both measures: on the saturated traces, and on the families."""
    for heading, inside in (("shape of MIGBench's", True), ("families", False)):
        own = {name: row for name, row in rows.items() if (kind_of(name) in SHAPES) == inside}
        for scheduler in schedulers:
            known = {name: row for name, row in own.items() if scheduler in row}
            cells = [heading, scheduler, f"{len(known)}"]
            for measure in (0, 1) if known else ():
                found = {name: regret(row, scheduler, measure) for name, row in known.items()}
                worst = max(found, key=found.__getitem__)
                cells += [f"{statistics.fmean(found.values()):.3f}", f"{found[worst]:.3f}", worst]
            yield from [cells] if known else []


def within(rows: Rows) -> Iterator[list[str]]:
    """Yield on how many traces the planner, or one simple scheduler chosen in hindsight, is close to the best."""
    names = KNOWLEDGE.values()
    found = {name: [[regret(row, name, at) for at in (0, 1)] for row in rows.values() if name in row] for name in names}
    found["best simple scheduler"] = [
        min(([regret(row, own, at) for at in (0, 1)] for own in SIMPLE if own in row), key=max) for row in rows.values()
    ]
    for name, pairs in filter(lambda entry: entry[1], found.items()):
        counts = [sum(pair[at] <= WITHIN for pair in pairs) for at in (0, 1)]
        cells = [f"{len(pairs)}", *map(str, counts), f"{sum(max(pair) <= WITHIN for pair in pairs)}"]
        for column in zip(*pairs, strict=True):
            cells += [f"{statistics.fmean(column):.3f}", f"{max(column):.3f}"]
        yield [name, *cells]


def every_trace(rows: Rows, schedulers: Sequence[str]) -> Iterator[list[str]]:
    """Yield both measures of each scheduler on each trace."""
    for name, row in rows.items():
        best = [min((row[own][measure], own) for own in SIMPLE if own in row)[1] for measure in (0, 1)]
        cells = [f"{regret(row, own, 0):.3f} / {regret(row, own, 1):.3f}" if own in row else "" for own in schedulers]
        yield [name, *(f"`{own}`" for own in best), *cells]


def starvation(rows: Rows) -> Iterator[list[str]]:
    """Yield makespans of `pcie-aware`, and of two that lack something of it, as multiples of those of first-fit."""
    for kind in SHAPES:
        own = [row for name, row in rows.items() if kind_of(name) == kind and SMALLEST in row]
        cells = []
        for scheduler in ("pcie-aware", NO_STARVATION, SMALLEST):
            ratios = [row[scheduler][0] / row["first-fit"][0] for row in own]
            ahead = sum(ratio < 1 for ratio in ratios)
            cells += [f"{statistics.fmean(ratios):.3f}", f"{ahead} of {len(ratios)}"] if ratios else ["", ""]
        yield [kind, *cells]


def picture(rows: Rows) -> Figure:
    """Return makespan against mean flow time, each by its lower bound: a panel for each kind of traces."""
    kinds = list(dict.fromkeys(kind_of(name) for name, row in rows.items() if f"goal={GOALS[-1]}" in row))
    columns = min(5, len(kinds))
    figure = Figure(figsize=(2.7 * columns, 2.4 * -(-len(kinds) // columns) + 0.6), layout="constrained")
    axes = list(figure.subplots(-(-len(kinds) // columns), columns, squeeze=False).flat)
    looks: dict[str, dict[str, Any]] = {
        own: {"color": "#888888", "marker": MARKERS[at], "markerfacecolor": "none"} for at, own in enumerate(SIMPLE)
    } | {
        f"goal={own}": {"color": colour, "marker": "o", "zorder": 3}
        for own, colour in zip(GOALS, (COLOURS[3], COLOURS[1], COLOURS[5]), strict=True)
    }
    for panel, kind in zip(axes, kinds, strict=False):
        own = [row for name, row in rows.items() if kind_of(name) == kind and f"goal={GOALS[-1]}" in row]
        points = {
            scheduler: [statistics.fmean(row[scheduler][at] / row["bounds"][at] for row in own) for at in (0, 1)]
            for scheduler in looks
            if all(scheduler in row for row in own)
        }
        front = sorted(
            point
            for point in points.values()
            if not any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in points.values())
        )
        panel.step(*zip(*front, strict=True), where="post", color="#cccccc", linewidth=1.2, zorder=1)
        for scheduler, (x, y) in points.items():
            panel.plot([x], [y], linestyle="none", markersize=5, label=scheduler, **looks[scheduler])
        panel.set_title(kind, fontsize=9)
        panel.tick_params(labelsize=7)
        panel.locator_params(nbins=4)
        panel.ticklabel_format(useOffset=False)
        panel.margins(0.12)
    for panel in axes[len(kinds) :]:
        panel.axis("off")
    figure.supxlabel("makespan / lower bound", fontsize=9)
    figure.supylabel("mean flow time / lower bound", fontsize=9)
    pairs = (zip(*panel.get_legend_handles_labels(), strict=True) for panel in axes)
    handles = {label: handle for handle, label in itertools.chain(*pairs)}
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=5, fontsize=8, frameon=False)
    return figure


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is missing, and write tables and picture."""
    parser = parser_of(__doc__, "online_regret.md and .svg", "two seeds of one shape, few jobs")
    parser.add_argument("--table", action="store_true", help="run nothing, only write the results again")
    options = parser.parse_args(arguments)
    kept = Kept(options.results / "online_regret.jsonl")
    traces = dict(planned(options.cut))
    for name, make in () if options.table else traces.items():
        measure(kept, name, make())
    rows = rows_of(kept, list(traces))
    title = "The planner's goals beside the best simple scheduler"
    page = Page("online_regret", title, "mig-opt", folder=options.results)
    page.add(f"""Makespan and mean flow time as multiples of those of the best simple scheduler of each trace, for each
        measure another one: `{"`, `".join(SIMPLE)}`, those with a queue with `backfill=True` and `patience=None`.
        {len(rows)} traces: the shape of MIGBench's, 500 jobs on 8 H100s, with new seeds; and all families on A100s.""")
    more = [f"{measure}{words}" for measure in MEASURES for words in (", mean", ", worst", " on")]
    more_heads = [f"{measure}, {words}" for measure in MEASURES for words in ("mean", "worst")]
    columns = {"Known": [f"goal={own}" for own in GOALS], "Unknown": list(KNOWLEDGE.values())}
    remarks = {"Unknown": "`goal=balanced`; run times are declared with a lognormal error, or are all alike."}
    for part, schedulers in columns.items():
        page.section(f"{part} run times", *([remarks[part]] if part in remarks else []))
        page.table(["traces", "planner", "number", *more], summary(rows, schedulers), texts=(0, 1, 5, 8))
    page.section("Within 4 %")
    page.add("""Unknown run times: on how many traces each measure, and both, are at most 4 % above those of the best
        simple scheduler, which is another one for each. Last: if somebody who knows all ends chose one simple scheduler
        for each trace, that with the least larger multiple of the two.""")
    heads = ["run times", "traces", "makespan", "flow time", "both", *more_heads]
    page.table(heads, within(rows))
    for part, schedulers in columns.items():
        page.section(f"Every trace, {part.lower()} run times", "Makespan / mean flow time.")
        heads = ["trace", "best makespan", "best flow", *schedulers]
        page.table(heads, every_trace(rows, schedulers), texts=(0, 1, 2))
    page.section("Why pcie-aware sometimes ends first")
    page.add("""Makespans as multiples of that of `first-fit`: `pcie-aware` as it is; with `wait_threshold=None`, so
        that no job starves; and where jobs ask for their smallest size, so that none that starves runs on a larger
        one.""")
    heads = [f"{own}{words}" for own in ("as it is", "nobody starves", "smallest") for words in ("", ", ahead")]
    page.table(["jobs", *heads], starvation(rows))
    save_figure(picture(rows), options.results / "online_regret.svg")
    kept.pack()
    page.save()
