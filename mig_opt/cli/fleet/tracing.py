"""The commands of mig-opt trace: families, generate, import, describe."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mig_opt.cli import options
from mig_opt.cli.inputs import check_outputs, load_trace
from mig_opt.cli.outcome import Checks, options_named, print_json, print_text, say
from mig_opt.cli.screens import Part, bounds_table, bullets, card, seconds, show, show_written, table
from mig_opt.errors import InputError, Problem
from mig_opt.fleet.trace import Trace
from mig_opt.texts import number_in, plural

if TYPE_CHECKING:
    from mig_opt.fleet.description import TraceSummary
    from mig_opt.instances.fleet.family import TraceFamily

_OutputOption = Annotated[Path | None, options.output("Write to a .json or .csv file, not to standard output.")]
_GpuOption = Annotated[str, Option(metavar="GPU", help="One of: mig-opt gpus.")]


def families(name: options.ListedArgument = None, as_json: options.Json = False) -> None:
    """List the families of traces that can be generated; with NAME its parameters and what is assumed."""
    from mig_opt.instances.fleet.registry import get_trace_family, trace_families

    with options_named({"family": "NAME"}):
        found = trace_families() if name is None else (get_trace_family(name),)
    if as_json:
        documents = [_family_document(family) for family in found]
        print_json(documents[0] if name else {"families": documents})
    elif name is None:
        show(table(["family", ">GPUs", "~what"], ([f.name, str(f.gpus), f.description] for f in found)))
    else:
        _show_family(found[0])


def _family_document(family: TraceFamily) -> dict[str, Any]:
    return {
        "name": family.name,
        "description": family.description,
        "source": family.source,
        "gpus": family.gpus,
        "parameters": [dataclasses.asdict(parameter) for parameter in family.parameters],
        "assumptions": list(family.assumptions),
    }


def _show_family(family: TraceFamily) -> None:
    values = (family.name, family.description, family.source, str(family.gpus))
    parameters = ([p.name, str(p.default), p.description] for p in family.parameters)
    show(card(list(zip(("family", "what", "source", "GPUs"), values, strict=True))), "")
    show(table(["parameter", ">default", "~what"], parameters), "", "Assumed:", bullets(family.assumptions))


def generate(
    family: Annotated[str, Argument(metavar="FAMILY", help="One of: mig-opt trace families.", show_default=False)],
    *,
    jobs: Annotated[int | None, Option("-n", metavar="N", help="Number of jobs; short for --set jobs=N.")] = None,
    gpu: _GpuOption = "A100",
    gpus: Annotated[int | None, Option(metavar="N", help="How many; default: those of the family.")] = None,
    seed: options.Seed = 0,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Change a parameter of the family; may be repeated."),
    ] = None,
    output: _OutputOption = None,
) -> None:
    """Make a trace after the workload of a paper."""
    from mig_opt.instances.fleet.registry import generate_trace

    checks = Checks()
    values: dict[str, float | int | str] = {}
    checks.attempt(_read_settings, family, settings or [], jobs, values)
    with checks.step():
        names = {name: f"--set {name}" for name in values}
        with options_named(names if jobs is None else names | {"jobs": "-n"}):
            trace = generate_trace(family, gpu=gpu, gpus=gpus, seed=seed, **values)
    checks.attempt(check_outputs, [], trace=output)
    checks.finish()
    _write(trace, output)


def _read_settings(family: str, settings: list[str], jobs: int | None, values: dict[str, float | int | str]) -> None:
    """Put the parameters that ``NAME=VALUE`` and ``-n`` stand for into ``values``, those that can be read."""
    from mig_opt.instances.fleet.registry import trace_families

    texts = {
        parameter.name
        for known in trace_families()
        for parameter in known.parameters
        if known.name == family and parameter.kind == "text"
    }
    problems = []
    if jobs is not None:
        values["jobs"] = jobs
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not re.fullmatch(r"[a-z_0-9]+", name):
            problems.append(Problem("--set", f"must be NAME=VALUE, like jobs=50, is {setting!r:.60}"))
        elif name in values:
            also = " (by -n, too)" if name == "jobs" and jobs is not None else ""
            problems.append(Problem("--set", f"{name} is set more than once{also}; keep one"))
        elif name in ("family", "gpu", "gpus", "seed"):
            problems.append(Problem("--set", f"{name} is no parameter of a family; use its own argument or option"))
        else:
            values[name] = value if name in texts else number_in(value.strip())
    if problems:
        raise InputError(problems)


def import_(
    file: Annotated[Path, Argument(metavar="FILE", help="openb_pod_list_*.csv or *-trace.jsonl.", show_default=False)],
    *,
    layout: Annotated[
        str | None,
        Option("--format", metavar="NAME", help="openb or migbench; default: migbench if FILE ends in .jsonl."),
    ] = None,
    gpu: Annotated[str | None, Option(metavar="GPU", help="Default: A100 for openb, H100 for migbench.")] = None,
    gpus: Annotated[
        int | None, Option(metavar="N", help="How many; default: those of --nodes or 1 for openb, 8 for migbench.")
    ] = None,
    nodes: Annotated[
        Path | None, Option(metavar="FILE", help="openb: openb_node_list_gpu_node.csv, for the number of GPUs.")
    ] = None,
    cover: Annotated[
        str | None,
        Option(
            metavar="NAME", help="openb: what the smallest profile covers of a fraction, compute (default) or both."
        ),
    ] = None,
    first_s: Annotated[float | None, Option(metavar="S", help="openb: leave out pods that arrive before.")] = None,
    last_s: Annotated[float | None, Option(metavar="S", help="openb: leave out pods that arrive later.")] = None,
    sizes: Annotated[
        str | None,
        Option(metavar="NAME", help="migbench: the smallest profile with the memory of a job (default), or any."),
    ] = None,
    published: Annotated[
        Path | None, Option(metavar="FILE", help="migbench: *-summary.csv, shown on standard error.")
    ] = None,
    output: _OutputOption = None,
) -> None:
    """Make a trace of a list of pods in the layout of Alibaba's openb traces, or of a trace of MIGBench.

    openb: a fraction of a GPU becomes the smallest profile that covers it, a pod with several GPUs several jobs.
    migbench: a job has work and memory; the percents of the benchmark make seconds of the work. What is left out, and
    the published results, are told on standard error.
    """
    chosen = layout or ("migbench" if file.suffix.lower() == ".jsonl" else "openb")
    if chosen not in _LAYOUTS:
        raise InputError([Problem("--format", f"must be openb or migbench, is {chosen!r:.60}")])
    given = {"--nodes": nodes, "--cover": cover, "--first-s": first_s, "--last-s": last_s}
    for_others = given if chosen == "migbench" else {"--sizes": sizes, "--published": published}
    checks = Checks()
    for option, value in for_others.items():
        other = next(name for name in _LAYOUTS if name != chosen)
        checks.require(value is None, option, f"is for --format {other}; the format is {chosen}")
    if chosen == "migbench":
        inputs, trace, notes = _from_migbench(checks, file, published, gpu=gpu, gpus=gpus, sizes=sizes)
    else:
        openb = {"gpu": gpu, "gpus": gpus, "nodes": nodes, "cover": cover, "first_s": first_s, "last_s": last_s}
        inputs, trace, notes = _from_openb(checks, file, openb)
    checks.attempt(check_outputs, inputs, trace=output)
    checks.finish()
    assert trace is not None
    _write(trace, output)
    for note in notes:
        say(f"note: {note}")


_LAYOUTS = ("openb", "migbench")


def _from_openb(checks: Checks, pods: Path, values: dict[str, Any]) -> tuple[list[Path], Trace | None, list[str]]:
    """Return the files that are read, the trace (None if something is wrong), and notes."""
    from mig_opt.files.fleet.openb import import_trace

    inputs = [pods, *([values["nodes"]] if values["nodes"] else [])]
    found = checks.attempt(import_trace, pods, **{name: value for name, value in values.items() if value is not None})
    if found is None:
        return inputs, None, []
    notes = [f"{found.pods} pods became {len(found.trace.jobs)} jobs, {found.several} of them parts of larger pods"]
    for reason, count in found.left_out.items():
        notes.append(f"left out {count} that {'are ' if reason.startswith('outside') else ''}{reason}")
    return inputs, found.trace, notes


def _from_migbench(
    checks: Checks, path: Path, published: Path | None, **values: Any
) -> tuple[list[Path], Trace | None, list[str]]:
    """Return the files that are read, the trace (None if something is wrong), and notes."""
    from mig_opt.files.fleet.migbench import import_migbench, read_published

    given = {name: value for name, value in values.items() if value is not None}
    trace = checks.attempt(import_migbench, path, **given)
    results = () if published is None else checks.attempt(read_published, published)
    notes = []
    for result in results or ():
        waits = f"wait {seconds(result.mean_wait)} s on the mean, {seconds(result.p95_wait)} s at 95 %"
        notes.append(f"published: {result.scheduler}: makespan {seconds(result.makespan)} s, {waits}")
        if trace is not None and result.jobs != len(trace.jobs):
            notes.append(f"these are results of {result.jobs} jobs, the trace has {len(trace.jobs)}")
    return [path, *([published] if published else [])], trace, notes


def _write(trace: Trace, output: Path | None) -> None:
    """Write a trace to a file or to standard output."""
    from mig_opt.files.fleet.traces import trace_to_json, write_trace

    if output is None:
        print_text(trace_to_json(trace))
    else:
        write_trace(trace, output)
        show_written("Trace", output)


def describe(
    trace: options.TraceArgument,
    *,
    gpu: options.TraceGpu = None,
    gpus: options.TraceGpus = None,
    bounds: Annotated[bool, Option("--bounds", help="Show what no schedule can fall below.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show what a trace asks of its fleet."""
    from mig_opt.fleet.bounds import trace_bounds
    from mig_opt.fleet.description import describe_trace

    found = load_trace(trace, gpu, gpus)
    summary = describe_trace(found)
    limits = trace_bounds(found) if bounds else None
    if as_json:
        document = dataclasses.asdict(summary)
        if limits:
            goals = {"makespan": limits.makespan, "completion": limits.completion}
            document["bounds"] = {
                **{goal: list(map(dataclasses.asdict, found)) for goal, found in goals.items()},
                "mean_completion": limits.mean_completion,
            }
        print_json(document)
        return
    show(_summary_card(found, summary), "", _quantile_table(summary), "", _histogram(summary))
    if limits:
        show(
            "",
            "Makespan:",
            bounds_table(limits.makespan),
            "",
            "Sum of completion times:",
            bounds_table(limits.completion),
        )
        show("", f"Mean flow time (arrival to completion): at least {seconds(limits.mean_completion)} s.")


def _summary_card(trace: Trace, summary: TraceSummary) -> Part:
    span = summary.last_arrival - summary.first_arrival
    pcie = f"{summary.pcie_bound:.1%} of the jobs, with {summary.pcie_demand:.1%} of a GPU's limit each"
    return card(
        [
            ("trace", f"{trace.name} ({plural(summary.jobs, 'job')})"),
            ("GPU", f"{summary.gpus} x {summary.gpu}"),
            ("arrivals", f"over {seconds(span)} s, from second {seconds(summary.first_arrival)}"),
            ("area", f"{summary.area:.6g} compute slices x seconds, each job where that is least"),
            ("load", "all arrive at once" if summary.load is None else f"{summary.load:.1%} of the compute slices"),
            ("PCIe", pcie if summary.pcie_bound else "no job"),
            ("memory", f"known of {summary.memory_known:.1%} of the jobs, grows in {summary.memory_growing:.1%}"),
        ]
    )


def _quantile_table(summary: TraceSummary) -> Part:
    from mig_opt.fleet.description import QUANTILES

    heads = {0.0: "least", 0.5: "median", 1.0: "most"}
    figures = {"gap s": summary.gaps, "work s": summary.work, "memory GB": summary.memory}
    rows = [[label, *map(seconds, values)] for label, values in figures.items() if values]
    return table(["", *(f">{heads.get(share, f'{share:.0%}')}" for share in QUANTILES)], rows)


def _histogram(summary: TraceSummary) -> Part:
    most = max(summary.profiles.values())
    rows = (
        [name, str(count), f"{100 * count / summary.jobs:.1f}", "#" * round(30 * count / most)]
        for name, count in summary.profiles.items()
    )
    return table(["profile", ">jobs", ">share %", ""], rows)
