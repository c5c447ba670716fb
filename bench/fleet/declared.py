"""The planner where run times are declared wrong, for classes of jobs only, or not at all.

Run: python -m bench.fleet.declared, which does what is missing and writes the tables; --cut takes seconds.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bench.fleet.rivals import BETTER, saturated
from bench.report import Kept, Page, parser_of, start
from mig_opt import Trace, declare_times, generate_trace, simulate

KNOWLEDGE: tuple[float | str, ...] = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, "classes", "one")
"""Times that the planner is told: true ones, errors by their sigma, means of classes, one time for all."""

SEEDS = (1, 2, 3)
_ERRORS_FROM = 1000
"""Difference of the seed of the errors from that of the trace: equal seeds would draw errors that go with the times."""

JOBS = 150


def _family(name: str, **settings: Any) -> Callable[[int, bool], Trace]:
    return lambda seed, cut: generate_trace(name, seed=seed, gpus=None, **(settings if cut else {}))


KINDS: dict[str, Callable[[int, bool], Trace]] = {
    "saturated, smallest sizes": lambda seed, cut: saturated(seed, False, jobs=70 if cut else JOBS),
    "saturated, any size": lambda seed, cut: saturated(seed, True, jobs=70 if cut else JOBS),
    "`far-stream`": _family("far-stream", batches=1, tasks=8),
    "`migm-ml1`": _family("migm-ml1"),
    "`long-25`": _family("long-25", jobs=20),
    "`pcie-4`": _family("pcie-4", jobs=20),
}
"""Traces of each kind, by seed and whether they are cut."""


def measured(trace: Trace, seed: int) -> dict[str, Any]:
    """Return mean flow time and makespan of each simple scheduler, and of the planner for each knowledge."""
    found = {}
    for name, options in BETTER.items():
        metrics = simulate(trace, name, **options).metrics
        found[name] = [metrics.completion.mean, metrics.makespan]
    for knowledge in KNOWLEDGE:
        metrics = simulate(declare_times(trace, knowledge, seed=_ERRORS_FROM + seed), "planner").metrics
        found[f"planner, {knowledge}"] = [metrics.completion.mean, metrics.makespan]
    return found


def table(page: Page, rows: Mapping[str, Mapping[str, Any]], measure: int) -> None:
    """Add a table with the planner as a multiple of the best simple scheduler, on the mean of a kind's traces."""
    told = ["true times", *(f"sigma {own}" for own in KNOWLEDGE[1:-2]), "classes", "one for all"]
    table, worst = [], (0.0, "")
    for kind in KINDS:
        own = {name: row for name, row in rows.items() if name.startswith(f"{kind}, seed")}
        cells = [kind]
        for knowledge, words in zip(KNOWLEDGE, told, strict=True):
            ratios = {
                name: row[f"planner, {knowledge}"][measure] / min(row[rival][measure] for rival in BETTER)
                for name, row in own.items()
            }
            cells += [f"{statistics.fmean(ratios.values()):.2f}"] if ratios else []
            worst = max([worst, *((ratio, f"{name}, {words}") for name, ratio in ratios.items())])
        table += [cells] if own else []
    page.table(["kind of jobs", *told], table)
    page.add(f"The worst of single traces: {worst[0]:.2f} ({worst[1]}).")


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is missing, and write the tables."""
    parser = parser_of(__doc__, "online_declared.md", "one seed, few jobs")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="SEED", help="these traces only, not 1 to 3")
    options = parser.parse_args(arguments)
    kept = Kept(options.results / "online_declared.jsonl")
    for seed, kind in itertools.product(options.seeds or SEEDS[: 1 if options.cut else None], KINDS):
        trace = KINDS[kind](seed, options.cut)
        kept.get(f"{kind}, seed {seed}", partial(measured, trace, seed))
    simple = ", ".join(f"`{name}`" for name in BETTER)
    seeds = sorted({name.rpartition(" ")[2] for name in kept.known})
    page = Page("online_declared", "The planner without exact run times", "mig-opt", folder=options.results)
    page.add(f"""`planner` where schedulers are told declared run times: exact ones; wrong ones, by a lognormal factor
        of some sigma; the mean of all jobs that ask for the same; or one time for all. Multiples of the best of
        {simple} (`backfill=True`, `patience=None`), which do not look at run times; below 1 the planner is ahead. Means
        of traces with the seeds {", ".join(seeds)}; a saturated trace has {JOBS} jobs on 8 H100s, the families have
        their usual sizes on A100s.""")
    for measure, heading in enumerate(("Mean flow time", "Makespan")):
        page.section(heading)
        table(page, kept.known, measure)
    page.save()


if __name__ == "__main__":
    start(main)
