"""The planner beside the other schedulers, the clairvoyant optimum and the lower bounds.

Run: python -m bench.fleet.planner. It takes about a quarter of an hour on two shared cores; with --cut some seconds.
With --only some of its parts are measured, and the others stay as they are.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.report import describe, parser_of, save, some_of
from mig_opt import Job, Simulation, Trace, generate_trace, get_gpu, simulate
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.models.fleet.arrivals import TraceGoal
from mig_opt.models.fleet.optimum import trace_optimum

RIVALS = ("fragmentation-aware", "first-fit", "best-fit", "load-balancing")
FAMILIES: Mapping[str, int] = {
    **dict.fromkeys(("normal-25", "long-25", "long-50", "pcie-4", "far-stream"), 3),
    **dict.fromkeys((f"migm-{mix}" for mix in ("hm1", "hm4", "ht1", "ht2", "ht3", "ml1", "ml2", "ml3")), 3),
    **dict.fromkeys(("migm-flan-t5-train", "migm-flan-t5"), 3),
    "pcie-60": 1,
}
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
VARIED = ("far-stream", "migm-ml1", "migm-ht1")
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


def drawn(family: str, seed: int, parameters: Mapping[str, int]) -> Trace:
    """Return a trace of a family."""
    return generate_trace(family, gpu="A100", gpus=None, seed=seed, **parameters)


def in_both(done: Simulation) -> tuple[float, float]:
    """Return makespan and mean flow time; infinite if a job was never done."""
    if done.unfinished:
        return math.inf, math.inf
    return done.metrics.makespan, done.metrics.completion.mean


def small(seeds: int, seconds: float) -> list[str]:
    """Compare on small traces with what somebody could have done who knew all arrivals."""
    lines = [
        "| traces | policy | makespan / optimum | mean flow time / best known |",
        "|---|---|---|---|",
    ]
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
            for name, run in runs().items():
                makespan, completion = in_both(run(trace))
                means = (best[1] - arrivals) / len(trace.jobs)
                found.setdefault(name, []).append((makespan / best[0], completion / means))
        shown = f"{label}; proven: {proven[0]} and {proven[1]} of {seeds}"
        for name, ratios in found.items():
            makespan, completion = (statistics.fmean(column) for column in zip(*ratios, strict=True))
            lines.append(f"| {shown} | {name} | {makespan:.3f} | {completion:.3f} |")
            shown = ""
    return lines


def runs() -> dict[str, Callable[[Trace], Simulation]]:
    """Return every policy, rivals in their better form."""

    def rival(name: str) -> Callable[[Trace], Simulation]:
        return lambda trace: simulate(trace, name, backfill=True, patience=None)

    return {"planner": lambda trace: simulate(trace, "planner"), **{name: rival(name) for name in RIVALS}}


def mean_of(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Return the means of both figures."""
    return [statistics.fmean(column) for column in zip(*pairs, strict=True)]


def bold(value: float, least: float) -> str:
    """Return a figure, marked if it is the least as far as it is shown."""
    return f"**{value:.3f}**" if value <= least + 5e-4 else f"{value:.3f}"


def large(families: Mapping[str, int], parameters: Mapping[str, int]) -> list[str]:
    """Compare on the families with the lower bounds."""
    columns = " | ".join(runs())
    lines = [
        f"| family | seeds | {columns} | seconds |",
        f"|---|---|{'---|' * (len(runs()) + 1)}",
    ]
    best = [0, 0]
    for family, seeds in families.items():
        ratios: dict[str, list[tuple[float, float]]] = {name: [] for name in runs()}
        seconds = 0.0
        for seed in range(seeds):
            trace = drawn(family, seed, parameters)
            bounds = trace_bounds(trace)
            for name, run in runs().items():
                begin = time.process_time()
                makespan, completion = in_both(run(trace))
                seconds += time.process_time() - begin if name == "planner" else 0.0
                ratios[name].append((makespan / bounds.makespan[0].value, completion / bounds.mean_completion))
        means = {name: mean_of(found) for name, found in ratios.items()}
        least = [min(each[at] for each in means.values()) for at in (0, 1)]
        cells = []
        for name, each in means.items():
            marked = [bold(value, low) for value, low in zip(each, least, strict=True)]
            cells.append(" / ".join(marked))
            if name == "planner":
                best = [count + text.startswith("**") for count, text in zip(best, marked, strict=True)]
        lines.append(f"| {family} | {seeds} | {' | '.join(cells)} | {seconds / seeds:.1f} |")
        print(lines[-1], flush=True)
    summary = (
        f"Of {len(families)} families the planner has the least makespan on {best[0]} and the least mean flow time "
        f"on {best[1]}."
    )
    return [*lines, "", summary]


def variants(families: Sequence[str], seeds: int, parameters: Mapping[str, int]) -> list[str]:
    """Compare the options of the planner."""
    lines = [f"| option | {' | '.join(families)} |", f"|---|{'---|' * len(families)}"]
    traces = {family: [drawn(family, seed, parameters) for seed in range(seeds)] for family in families}
    for label, options in VARIANTS.items():
        cells = []
        for family in families:
            ratios = []
            for trace in traces[family]:
                bounds = trace_bounds(trace)
                makespan, completion = in_both(simulate(trace, "planner", **options))
                ratios.append((makespan / bounds.makespan[0].value, completion / bounds.mean_completion))
            cells.append(" / ".join(f"{statistics.fmean(column):.3f}" for column in zip(*ratios, strict=True)))
        lines.append(f"| {label} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


SECTIONS: Mapping[str, tuple[str, str]] = {
    "small": (
        "Small traces, beside somebody who knows all arrivals",
        f"`trace_optimum` for both goals, {EXACT_SECONDS:g} s each; where that is not proven, the best it found,\n"
        "which a policy may fall below. It neither migrates nor preempts; `fragmentation-aware` migrates.",
    ),
    "families": (
        "Families, beside the lower bounds",
        "Each cell: makespan / lower bound, and mean flow time / lower bound (`trace_bounds`). The least are bold.\n"
        "The bounds count PCIe in part, so nobody can reach 1 on `pcie`. Seconds of the processor are those of the\n"
        "planner, for one trace. A policy that never runs some job to its end has `inf`.",
    ),
    "options": ("Options of the planner", "The same ratios, over 2 seeds."),
}
"""Heading and remark of each part of the page, in its order."""


def measured(part: str, cut: bool) -> list[str]:
    """Return the lines of a part of the page, without its heading."""
    if part == "small":
        return small(1, 2.0) if cut else small(6, EXACT_SECONDS)
    if part == "families":
        return large({"migm-ht1": 1, "normal-25": 1}, {"jobs": 8}) if cut else large(FAMILIES, {})
    return variants(("migm-ht1",), 1, {"jobs": 5}) if cut else variants(VARIED, 2, {})


def parts_of(text: str) -> dict[str, str]:
    """Return the parts of an earlier page."""
    by_heading = {block.partition("\n")[0]: block for block in text.split("\n## ")[1:]}
    return {name: by_heading[heading] for name, (heading, _) in SECTIONS.items() if heading in by_heading}


def main(arguments: Sequence[str]) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "online_planner.md", "a few small traces only")
    parser.add_argument("--only", type=some_of(SECTIONS), default=tuple(SECTIONS), help="some parts; others stay")
    options = parser.parse_args(arguments)
    before = options.results / "online_planner.md"
    found = parts_of(before.read_text(encoding="utf-8")) if before.is_file() else {}
    for part in options.only:
        heading, remark = SECTIONS[part]
        made = f"{describe('mig-opt', 'ortools')}."
        found[part] = "\n".join([heading, "", remark, "", made, "", *measured(part, options.cut), ""])
    lines = [
        "# The planner and the others",
        "",
        "All rivals with `backfill=True` and `patience=None`, which is their better form."
        " Lower is better; means over the seeds.",
        "",
        *(f"## {found[part].rstrip()}\n" for part in SECTIONS if part in found),
    ]
    save("online_planner", "\n".join(lines), options.results)


if __name__ == "__main__":
    main(sys.argv[1:])
