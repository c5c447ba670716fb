"""The planner where run times are declared wrong, for classes of jobs only, or not at all.

Run: python -m bench.fleet.declared, which does what is missing and writes the tables; --cut takes seconds.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.fleet.rivals import saturated
from bench.report import describe, markdown, parser_of, save
from mig_opt import Trace, declare_times, generate_trace, simulate

KNOWLEDGE: tuple[float | str, ...] = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, "classes", "one")
"""What the planner is told: true times, errors by their sigma, means of classes, one time for all."""

SIMPLE = ("first-fit", "best-fit", "load-balancing", "fragmentation-aware")
"""Schedulers that do not look at run times; all with backfilling without a limit, their better form."""

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
    for name in SIMPLE:
        metrics = simulate(trace, name, backfill=True, patience=None).metrics
        found[name] = [metrics.completion.mean, metrics.makespan]
    for knowledge in KNOWLEDGE:
        metrics = simulate(declare_times(trace, knowledge, seed=_ERRORS_FROM + seed), "planner").metrics
        found[f"planner, {knowledge}"] = [metrics.completion.mean, metrics.makespan]
    return found


def table(rows: Sequence[Mapping[str, Any]], measure: int) -> list[str]:
    """Return a table with the planner as a multiple of the best simple scheduler, on the mean of a kind's traces."""
    lines = []
    told = ["true times", *(f"sigma {own}" for own in KNOWLEDGE[1:-2]), "classes", "one for all"]
    worst = (0.0, "")
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        if own:
            cells = [kind]
            for knowledge, words in zip(KNOWLEDGE, told, strict=True):
                ratios = [
                    row[f"planner, {knowledge}"][measure] / min(row[name][measure] for name in SIMPLE) for row in own
                ]
                cells.append(f"{sum(ratios) / len(ratios):.2f}")
                most = max(ratios)
                worst = max(worst, (most, f"{kind}, seed {own[ratios.index(most)]['seed']}, {words}"))
            lines.append(cells)
    heads = ["kind of jobs", *told]
    return [*markdown(heads, lines), "", f"The worst of single traces: {worst[0]:.2f} ({worst[1]}).", ""]


def main(arguments: Sequence[str]) -> None:
    """Do what is missing, and write the tables."""
    parser = parser_of(__doc__, "online_declared.md", "one seed, few jobs")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no further trace after so many seconds")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="SEED", help="these traces only, not 1 to 3")
    options = parser.parse_args(arguments)
    path = Path(options.results) / "online_declared.jsonl"
    rows: list[dict[str, Any]] = []
    if path.exists():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    done = {(row["kind"], row["seed"]) for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    for seed in options.seeds or SEEDS[: 1 if options.cut else None]:
        for kind, make in KINDS.items():
            if (kind, seed) in done or time.monotonic() > begin + options.seconds:
                continue
            row = {"kind": kind, "seed": seed, **measured(make(seed, options.cut), seed)}
            rows.append(row)
            with path.open("a", encoding="utf-8") as file:
                print(json.dumps(row), file=file)
            print(kind, seed, flush=True)
    lines = ["# The planner without exact run times", "", describe("mig-opt"), ""]
    simple = ", ".join(f"`{name}`" for name in SIMPLE)
    seeds = sorted({str(row["seed"]) for row in rows})
    traces = f"Traces with seed {seeds[0]}" if len(seeds) == 1 else f"Means of traces with the seeds {', '.join(seeds)}"
    lines += [
        "`planner` where schedulers are told declared run times: exact ones; wrong ones, by a lognormal factor of some"
        " sigma; the mean of all jobs that ask for the same; or one time for all. Multiples of the best of"
        f" {simple} (`backfill=True`, `patience=None`), which do not look at run times; below 1 the planner is ahead."
        f" {traces}; a saturated trace has {JOBS} jobs on 8 H100s, the families have their"
        " usual sizes on A100s.",
        "",
        "## Mean flow time",
        "",
        *table(rows, 0),
        "## Makespan",
        "",
        *table(rows, 1),
    ]
    save("online_declared", "\n".join(lines), options.results)


if __name__ == "__main__":
    main(sys.argv[1:])
