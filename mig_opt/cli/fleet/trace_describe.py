"""The command trace describe."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from mig_opt.cli import options
from mig_opt.cli.answers import Answer
from mig_opt.cli.figures import bounds_table, seconds
from mig_opt.cli.inputs import load_trace
from mig_opt.method.report import Part, Report, Table
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.fleet.bounds import TraceBounds
    from mig_opt.fleet.description import TraceSummary
    from mig_opt.fleet.trace import Trace


def trace_describe(
    trace: options.TraceArgument,
    *,
    gpu: options.TraceGpu = None,
    gpus: options.TraceGpus = None,
    bounds: Annotated[bool, "Show what no schedule can fall below."] = False,
) -> Answer:
    """Show what a trace asks of its fleet.

    Examples
    --------
    mig-opt trace describe trace.json --bounds
    """
    from mig_opt.fleet.bounds import trace_bounds
    from mig_opt.fleet.description import describe_trace

    found = load_trace(trace, gpu, gpus)
    return Answer(_report(found, describe_trace(found), trace_bounds(found) if bounds else None))


def _report(trace: Trace, summary: TraceSummary, limits: TraceBounds | None) -> Report:
    span = summary.last_arrival - summary.first_arrival
    pcie = f"{summary.pcie_bound:.1%} of the jobs, with {summary.pcie_demand:.1%} of a GPU's limit each"
    facts = [
        ("trace", f"{trace.name} ({plural(summary.jobs, 'job')})"),
        ("GPU", f"{summary.gpus} x {summary.gpu}"),
        ("arrivals", f"over {seconds(span)} s, from second {seconds(summary.first_arrival)}"),
        ("area", f"{summary.area:.6g} compute slices x seconds, each job where that is least"),
        ("load", "all arrive at once" if summary.load is None else f"{summary.load:.1%} of the compute slices"),
        ("PCIe", pcie if summary.pcie_bound else "no job"),
        ("memory", f"known of {summary.memory_known:.1%} of the jobs, grows in {summary.memory_growing:.1%}"),
    ]
    parts: list[Part] = [_quantile_table(summary), _histogram(summary)]
    data = dataclasses.asdict(summary)
    if limits is not None:
        data["bounds"] = {
            "makespan": list(map(dataclasses.asdict, limits.makespan)),
            "completion": list(map(dataclasses.asdict, limits.completion)),
            "mean_completion": limits.mean_completion,
        }
        parts += [
            bounds_table(limits.makespan, "Makespan:"),
            bounds_table(limits.completion, "Sum of completion times:"),
            f"Mean flow time (arrival to completion): at least {seconds(limits.mean_completion)} s.",
        ]
    return Report(facts, parts, data=data)


def _quantile_table(summary: TraceSummary) -> Table:
    from mig_opt.fleet.description import QUANTILES

    heads = {0.0: "least", 0.5: "median", 1.0: "most"}
    figures = {"gap s": summary.gaps, "work s": summary.work, "memory GB": summary.memory}
    rows = [[label, *map(seconds, values)] for label, values in figures.items() if values]
    return Table(["", *(f">{heads.get(share, f'{share:.0%}')}" for share in QUANTILES)], rows)


def _histogram(summary: TraceSummary) -> Table:
    most = max(summary.profiles.values())
    rows = [
        [name, str(count), f"{100 * count / summary.jobs:.1f}", "#" * round(30 * count / most)]
        for name, count in summary.profiles.items()
    ]
    return Table(["profile", ">jobs", ">share %", ""], rows)
