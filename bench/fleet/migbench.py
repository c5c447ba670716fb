"""The planner on MIGBench: beside its published results, and beside the best of the simple schedulers.

Run: python -m bench.fleet.migbench TRACE SUMMARY, with the files of MIGBench (docs/reference/traces.md), which
takes a minute; or with --cut, which takes seconds and makes traces of that shape.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bench.fleet.regret import SIMPLE, bounds_of, saturated
from bench.report import Page, parser_of, start, timed
from mig_opt import Trace, simulate
from mig_opt.files.fleet.migbench import PublishedResult, import_migbench, read_published


def figures(trace: Trace) -> dict[str, Any]:
    """Return makespan, mean flow time and wait of the planner and of each simple scheduler, and the bounds."""
    found: dict[str, Any] = {"bounds": bounds_of(trace)}
    for name, options in (*SIMPLE.items(), ("planner", {})):
        done, seconds = timed(functools.partial(simulate, trace, name, **options))
        if not done.unfinished:
            metrics = done.metrics
            found[name] = [metrics.makespan, metrics.completion.mean, metrics.wait.mean, metrics.wait.p95, seconds]
    return found


def comparison(page: Page, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Add a table with the planner as a multiple of the best simple scheduler, for each measure."""
    table = []
    for name, row in rows.items():
        cells = [name]
        for at in (0, 1):
            least, who = min((row[rival][at], rival) for rival in SIMPLE if rival in row)
            cells += [f"{row['planner'][at] / least:.3f}", f"`{who}`"]
        table.append([*cells, f"{row['planner'][2]:,.0f}", f"{row['planner'][0]:,.0f}", f"{row['planner'][4]:.1f}"])
    heads = ["trace", "makespan", "beside", "flow time", "beside", "wait s", "makespan s", "processor s"]
    page.table(heads, table, texts=(0, 2, 4))


def published_table(page: Page, rows: Mapping[str, Mapping[str, Any]], published: Sequence[PublishedResult]) -> None:
    """Add MIGBench's published figures beside those of our schedulers on the real geometry."""
    table = []
    for run in published:
        values = run.makespan, run.mean_wait, run.p95_wait
        table.append([f"published: {run.scheduler}", "", *(f"{value:,.0f}" for value in values)])
    for name, row in rows.items():
        sizes = name.partition(", ")[2]
        for who in ("first-fit", "fragmentation-aware", "planner"):
            makespan, _, wait, p95, _ = row[who]
            table.append([f"`{who}`", sizes, f"{makespan:,.0f}", f"{wait:,.0f}", f"{p95:,.0f}"])
        table.append(["lower bound", sizes, f"{row['bounds'][0]:,.0f}", "", ""])
    page.table(["scheduler", "sizes", "makespan s", "mean wait s", "p95 wait s"], table, texts=(0, 1))


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "online_migbench.md", "few jobs")
    parser.add_argument("files", nargs="*", metavar="FILE", help="TRACE and SUMMARY of MIGBench")
    options = parser.parse_args(arguments)
    if len(options.files) != (0 if options.cut else 2):
        parser.error("give TRACE and SUMMARY, or --cut")
    both: tuple[Literal["smallest", "any"], ...] = ("smallest", "any")
    published: Sequence[PublishedResult] = ()
    if options.cut:
        traces = [saturated(1, free=sizes == "any", jobs=60) for sizes in both]
    else:
        traces = [import_migbench(options.files[0], sizes=sizes) for sizes in both]
        published = read_published(options.files[1])
    rows = {f"MIGBench, {sizes}": figures(trace) for sizes, trace in zip(both, traces, strict=True)}
    page = Page("online_migbench", "The planner on MIGBench", "mig-opt", folder=options.results)
    page.add("500 jobs on 8 H100s (docs/reference/traces.md); ours on the real geometry.")
    published_table(page, rows, published)
    page.section("Beside the best simple scheduler")
    page.add("""Makespan and mean flow time of `planner` as multiples of the best of seven simple schedulers, for each
        measure another one: `memory-aware-a`, `memory-aware-b`, `pcie-aware`, and with `backfill=True` and
        `patience=None` `first-fit`, `best-fit`, `load-balancing`, `fragmentation-aware`. Seconds of the processor are
        those of the whole simulation of `planner`.""")
    comparison(page, rows)
    page.save()
