"""The planner beside the other schedulers, the clairvoyant optimum and the lower bounds.

Run: python -m bench.fleet.planner. It takes about a quarter of an hour on two shared cores; with --cut some seconds.
With --only some of its parts are measured, and the others stay as they are.
"""

import functools
import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bench.fleet.regret import BETTER, bounds_of
from bench.report import Page, describe, parser_of, some_of, start, timed
from mig_opt import Job, Simulation, Trace, generate_trace, get_gpu, simulate
from mig_opt.models.fleet.arrivals import TraceGoal
from mig_opt.models.fleet.optimum import trace_optimum

POLICIES: Mapping[str, Mapping[str, Any]] = {"planner": {}, "fragmentation-aware": BETTER["first-fit"], **BETTER}
"""The planner and its rivals."""
_MIXES = ("hm1", "hm4", "ht1", "ht2", "ht3", "ml1", "ml2", "ml3", "flan-t5-train", "flan-t5")
_OTHERS = ("normal-25", "long-25", "long-50", "pcie-4", "far-stream")
FAMILIES: Mapping[str, int] = dict.fromkeys((*_OTHERS, *(f"migm-{mix}" for mix in _MIXES)), 3) | {"pcie-60": 1}
"""Families with the number of seeds."""
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "balance 0": {"balance": 0.0},
    "balance 1": {"balance": 1.0},
    "no local search": {"rounds": 0},
    "method list": {"method": "list"},
    "method cp": {"method": "cp"},
    "20 jobs at a time": {"most": 20},
    "window 10 s": {"window": 10.0},
}
VARIED = ("migm-ht1", "migm-ml1", "far-stream")
GOALS: tuple[TraceGoal, ...] = ("makespan", "completion")
EXACT_SECONDS = 10.0


def small_trace(seed: int, moldable: bool) -> Trace:
    """Return 8 jobs on an A30 (moldable) or 10 on an A100 (each with a profile) that arrive within a minute."""
    draw = random.Random(f"{seed} {moldable}")
    now, jobs = 0.0, []
    for number in range(8 if moldable else 10):
        seconds = float(draw.randint(10, 60))
        if moldable:
            scaling = draw.uniform(0.5, 1.0)
            times = {size: round(seconds / size**scaling, 1) for size in (1, 2, 4)}
            jobs.append(Job(f"j{number}", now, times))
        else:
            size, profile = draw.choice([(1, "1g.5gb"), (2, "2g.10gb"), (3, "3g.20gb"), (4, "4g.20gb")])
            jobs.append(Job(f"j{number}", now, {size: seconds}, profile))
        now += float(draw.choice([0, 0, 3, 8, 15]))
    return Trace(tuple(jobs), get_gpu("A30" if moldable else "A100"))


def in_both(done: Simulation) -> tuple[float, float]:
    """Return makespan and mean flow time; infinite if a job was never done."""
    if done.unfinished:
        return math.inf, math.inf
    return done.metrics.makespan, done.metrics.completion.mean


def small(seeds: int, seconds: float) -> Iterator[list[str]]:
    """Compare on small traces with what somebody could have done who knew all arrivals."""
    for moldable, label in ((False, "10 jobs that ask for a profile, A100"), (True, "8 jobs with free sizes, A30")):
        found: dict[str, list[tuple[float, float]]] = {}
        proven = [0, 0]
        for seed in range(seeds):
            trace = small_trace(seed, moldable)
            arrivals = math.fsum(job.arrival for job in trace.jobs)
            best = []
            for at, goal in enumerate(GOALS):
                optimum = trace_optimum(trace, goal, time_limit=seconds)
                proven[at] += bool(optimum.proven)
                best.append(optimum.value)
            for name, options in POLICIES.items():
                makespan, completion = in_both(simulate(trace, name, **options))
                means = (best[1] - arrivals) / len(trace.jobs)
                found.setdefault(name, []).append((makespan / best[0], completion / means))
        shown = f"{label}; proven: {proven[0]} and {proven[1]} of {seeds}"
        for name, ratios in found.items():
            yield [shown, name, *(f"{mean:.3f}" for mean in means_of(ratios))]
            shown = ""


def means_of(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Return the means of both figures."""
    return [statistics.fmean(column) for column in zip(*pairs, strict=True)]


def over_bounds(trace: Trace, done: Simulation) -> tuple[float, float]:
    """Return makespan and mean flow time as multiples of the lower bounds."""
    makespan, completion = (value / bound for value, bound in zip(in_both(done), bounds_of(trace), strict=True))
    return makespan, completion


def large(families: Mapping[str, int], parameters: Mapping[str, Any]) -> Iterator[list[str]]:
    """Compare on the families with the lower bounds; the least figures are bold."""
    for family, seeds in families.items():
        ratios: dict[str, list[tuple[float, float]]] = {name: [] for name in POLICIES}
        seconds = 0.0
        for seed, (name, options) in itertools.product(range(seeds), POLICIES.items()):
            trace = generate_trace(family, seed=seed, **parameters)
            done, taken = timed(functools.partial(simulate, trace, name, **options))
            seconds += taken if name == "planner" else 0.0
            ratios[name].append(over_bounds(trace, done))
        means = {name: means_of(found) for name, found in ratios.items()}
        least = [min(each[at] for each in means.values()) for at in (0, 1)]
        cells = []
        for each in means.values():
            pairs = zip(each, least, strict=True)
            texts = (f"**{value:.3f}**" if value <= low + 5e-4 else f"{value:.3f}" for value, low in pairs)
            cells.append(" / ".join(texts))
        yield [family, f"{seeds}", *cells, f"{seconds / seeds:.1f}"]


def variants(families: Sequence[str], seeds: int, parameters: Mapping[str, Any]) -> Iterator[list[str]]:
    """Compare the options of the planner."""
    traces = {family: [generate_trace(family, seed=seed, **parameters) for seed in range(seeds)] for family in families}
    for label, options in VARIANTS.items():
        cells = []
        for own in traces.values():
            pairs = [over_bounds(trace, simulate(trace, "planner", **options)) for trace in own]
            cells.append(" / ".join(f"{mean:.3f}" for mean in means_of(pairs)))
        yield [label, *cells]


Rows = Iterator[list[str]]
SECTIONS: Mapping[str, tuple[str, str, Sequence[str], Callable[[bool], Rows]]] = {
    "small": (
        "Small traces, beside somebody who knows all arrivals",
        f"""`trace_optimum` for both goals, {EXACT_SECONDS:g} s each; where that is not proven, the best it found, which
        a policy may fall below. It neither migrates nor preempts; `fragmentation-aware` migrates.""",
        ["traces", "policy", "makespan / optimum", "mean flow time / best known"],
        lambda cut: small(1, 2.0) if cut else small(6, EXACT_SECONDS),
    ),
    "families": (
        "Families, beside the lower bounds",
        """Each cell: makespan / lower bound, and mean flow time / lower bound (`trace_bounds`). The least are bold. The
        bounds count PCIe in part, so nobody can reach 1 on `pcie`. Seconds of the processor are those of the planner,
        for one trace. A policy that never runs some job to its end has `inf`.""",
        ["family", "seeds", *POLICIES, "seconds"],
        lambda cut: large({"migm-ht1": 1, "normal-25": 1}, {"jobs": 8}) if cut else large(FAMILIES, {}),
    ),
    "options": (
        "Options of the planner",
        "The same ratios, over 2 seeds.",
        ["option", *VARIED],
        lambda cut: variants(VARIED[:1], 1, {"jobs": 5}) if cut else variants(VARIED, 2, {}),
    ),
}
"""Heading, remark, columns and rows of each part of the page, in its order."""


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "online_planner.md", "a few small traces only")
    parser.add_argument("--only", type=some_of(SECTIONS), default=tuple(SECTIONS), help="some parts; others stay")
    options = parser.parse_args(arguments)
    page = Page("online_planner", "The planner and the others", folder=options.results)
    page.add("""All rivals with `backfill=True` and `patience=None`, which is their better form. Lower is better; means
        over the seeds.""")
    for name, (heading, remark, head, rows) in SECTIONS.items():
        if name in options.only:
            page.section(heading, remark, f"{describe('mig-opt', 'ortools')}.")
            found = list(rows(options.cut))
            page.table(head[: len(found[0])], found, range(len(head)))
        else:
            page.keep(heading)
    page.save()
