"""The planner beside the best of the simple schedulers: on saturated fleets, on every family, and on MIGBench.

Run: python -m bench.fleet.rivals [--migbench TRACE SUMMARY], which does what is missing and writes the tables; or with
--cut, which takes seconds. TRACE and SUMMARY are the files of MIGBench (docs/reference/traces.md).
"""

import functools
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from bench.report import Kept, Page, describe, parser_of, start, timed
from mig_opt import Job, Trace, generate_trace, get_gpu, simulate
from mig_opt.files.fleet.migbench import import_migbench, read_published
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.instances.fleet.family import TraceFamily
from mig_opt.instances.fleet.registry import trace_families
from mig_opt.studies.summary import grouped

BETTER: Mapping[str, Mapping[str, Any]] = {
    name: {"backfill": True, "patience": None}
    for name in ("first-fit", "best-fit", "load-balancing", "fragmentation-aware")
}
"""Simple schedulers that do not look at run times, in their better form: with backfilling without a limit."""
SIMPLE = {"memory-aware-a": {}, "memory-aware-b": {}, "pcie-aware": {}, **BETTER}
"""The simple schedulers, with their options."""
SEEDS = range(1, 11)
FAMILY_SEEDS = (0, 1)
PROFILES = {"1g.10gb": (14, 35), "2g.20gb": (28, 25), "3g.40gb": (42, 25), "7g.80gb": (100, 5)}
"""Percent of a GPU, and weight, of each profile of a saturated trace."""


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


def figures(trace: Trace) -> dict[str, Any]:
    """Return makespan, mean flow time and wait of the planner and of each simple scheduler, and the bounds."""
    found: dict[str, Any] = {"bounds": bounds_of(trace)}
    for name, options in (*SIMPLE.items(), ("planner", {})):
        done, seconds = timed(functools.partial(simulate, trace, name, **options))
        if not done.unfinished:
            metrics = done.metrics
            found[name] = [metrics.makespan, metrics.completion.mean, metrics.wait.mean, metrics.wait.p95, seconds]
    return found


def of_family(family: TraceFamily, seed: int, *, cut: bool) -> Callable[[], Trace]:
    """Return a function that makes a trace of a family, with six jobs in a cut."""
    few: dict[str, Any] = {"jobs": 6} if cut and any(own.name == "jobs" for own in family.parameters) else {}
    return functools.partial(generate_trace, family.name, seed=seed, **few)


def planned(cut: bool, migbench: Sequence[str] | None) -> Iterator[tuple[str, Callable[[], Trace]]]:
    """Yield the name of each trace, and a function that makes it."""
    both: tuple[Literal["smallest", "any"], ...] = ("smallest", "any")
    for sizes in both:
        if migbench:
            yield f"MIGBench, {sizes}", functools.partial(import_migbench, migbench[0], sizes=sizes)
    for family, seed in itertools.product(trace_families(), FAMILY_SEEDS[: 1 if cut else None]):
        yield f"{family.name}, {seed}", of_family(family, seed, cut=cut)
    for seed, sizes in itertools.product(SEEDS[: 1 if cut else None], both):
        own = functools.partial(saturated, seed, free=sizes == "any", jobs=60 if cut else 500)
        yield f"saturated {seed}, {sizes}", own


SECTIONS = {
    "MIGBench": ("MIGBench", "500 jobs on 8 H100s (docs/reference/traces.md); ours on the real geometry."),
    "saturated": ("Traces of that shape", "500 jobs on 8 H100s; the number is the seed."),
    "families": ("Families", "Their usual sizes on A100s; the number is the seed."),
}
"""Heading and remark of each part of the page."""


def part_of(name: str) -> str:
    """Return the part of the page that a trace belongs to."""
    return next((part for part in SECTIONS if name.startswith(part)), "families")


def comparison(page: Page, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Add a table with the planner as a multiple of the best simple scheduler, for each measure."""
    table, worst = [], [0.0, 0.0]
    for name, row in rows.items():
        cells = [name]
        for at in (0, 1):
            least, who = min((row[rival][at], rival) for rival in SIMPLE if rival in row)
            ratio = row["planner"][at] / least
            worst[at] = max(worst[at], ratio)
            cells += [f"{ratio:.3f}", f"`{who}`"]
        table.append([*cells, f"{row['planner'][2]:,.0f}", f"{row['planner'][0]:,.0f}", f"{row['planner'][4]:.1f}"])
    heads = ["trace", "makespan", "beside", "flow time", "beside", "wait s", "makespan s", "processor s"]
    page.table(heads, table, texts=(0, 2, 4))
    page.add(f"The worst of {len(rows)} traces: makespan {worst[0]:.3f}, flow time {worst[1]:.3f}.")


def published_table(page: Page, rows: Mapping[str, Mapping[str, Any]], published: Sequence[Sequence[Any]]) -> None:
    """Add MIGBench's published figures beside those of our schedulers on the real geometry."""
    table = [[f"published: {who}", "", *(f"{value:,.0f}" for value in values)] for who, *values in published]
    for name, row in rows.items():
        sizes = name.partition(", ")[2]
        for who in ("first-fit", "fragmentation-aware", "planner"):
            makespan, _, wait, p95, _ = row[who]
            table.append([f"`{who}`", sizes, f"{makespan:,.0f}", f"{wait:,.0f}", f"{p95:,.0f}"])
        table.append(["lower bound", sizes, f"{row['bounds'][0]:,.0f}", "", ""])
    page.table(["scheduler", "sizes", "makespan s", "mean wait s", "p95 wait s"], table, texts=(0, 1))


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is missing, and write the tables."""
    parser = parser_of(__doc__, "online_rivals.md", "one seed, few jobs")
    parser.add_argument("--migbench", nargs=2, metavar=("TRACE", "SUMMARY"), help="files of MIGBench")
    options = parser.parse_args(arguments)
    kept = Kept(options.results / "online_rivals.jsonl")
    for name, make in planned(options.cut, options.migbench):
        kept.get(name, functools.partial(lambda make: figures(make()), make))
    published = kept.known.get("published", [])
    if options.migbench and not published:
        results = read_published(options.migbench[1])
        published = kept.get("published", lambda: [[r.scheduler, r.makespan, r.mean_wait, r.p95_wait] for r in results])
    parts = grouped((name for name in kept.known if name != "published"), part_of)
    page = Page("online_rivals", "The planner beside the best simple scheduler", folder=options.results)
    page.add("""Makespan and mean flow time of `planner` as multiples of the best of seven simple schedulers, for each
        measure another one: `memory-aware-a`, `memory-aware-b`, `pcie-aware`, and with `backfill=True` and
        `patience=None` `first-fit`, `best-fit`, `load-balancing`, `fragmentation-aware`. Seconds of the processor are
        those of the whole simulation of `planner`.""")
    for part, (heading, remark) in SECTIONS.items():
        if part in parts:
            rows = {name: kept.known[name] for name in parts[part]}
            page.section(heading, remark, f"{describe('mig-opt')}.")
            if part == "MIGBench":
                published_table(page, rows, published)
            comparison(page, rows)
        else:
            page.keep(heading)
    page.save()
