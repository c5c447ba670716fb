"""The commands of mig-opt trace: families, generate, import, describe."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from mig_opt.cli.inputs import JsonOption, SeedOption, TraceGpusOption, check_output, load_trace
from mig_opt.cli.outcome import Checks, as_options, guarded, options_named, print_json, say
from mig_opt.errors import InputError, Problem
from mig_opt.fleet.trace import Trace
from mig_opt.texts import plural, printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from mig_opt.fleet.describing import TraceSummary
    from mig_opt.instances.fleet import TraceFamily
    from mig_opt.models.fleet.bounds import TraceBounds

app = typer.Typer(
    help="Make and describe traces: jobs that arrive over time.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to a .json or .csv file, not to standard output."),
]
_GpuOption = Annotated[str, typer.Option(metavar="GPU", help="One of: mig-opt gpus.")]


def families(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show everything about this one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the families of traces that can be generated; with NAME its parameters and what is assumed."""
    from mig_opt.cli import screens
    from mig_opt.files.documents import rendered
    from mig_opt.instances.fleet import get_trace_family, trace_families

    with options_named({"family": "NAME"}):
        found = trace_families() if name is None else (get_trace_family(name),)
    if as_json:
        documents = [_family_document(family) for family in found]
        print_json(rendered(documents[0] if name else {"families": documents}))
    elif name is None:
        columns: screens.Columns = [("family", "name"), ("GPUs", "number"), ("what", "text")]
        screens.show(screens.table(columns, ([f.name, str(f.gpus), f.description] for f in found)))
    else:
        _show_family(found[0])


def _family_document(family: TraceFamily) -> dict[str, object]:
    return {
        "name": family.name,
        "description": family.description,
        "source": family.source,
        "gpus": family.gpus,
        "parameters": [dataclasses.asdict(parameter) for parameter in family.parameters],
        "assumptions": list(family.assumptions),
    }


def _show_family(family: TraceFamily) -> None:
    from mig_opt.cli import screens

    rows: list[tuple[str, str | Text]] = [
        ("family", family.name),
        ("what", family.description),
        ("source", family.source),
        ("GPUs", str(family.gpus)),
    ]
    columns: screens.Columns = [("parameter", "name"), ("default", "number"), ("what", "text")]
    table = screens.table(columns, ([p.name, str(p.default), p.description] for p in family.parameters))
    screens.show(screens.card(rows), "", table, "", "Assumed:", screens.bullets(family.assumptions))


def generate(
    family: Annotated[
        str, typer.Argument(metavar="FAMILY", help="One of: mig-opt trace families.", show_default=False)
    ],
    *,
    jobs: Annotated[int | None, typer.Option("-n", metavar="N", help="Number of jobs; short for --set jobs=N.")] = None,
    gpu: _GpuOption = "A100",
    gpus: Annotated[int | None, typer.Option(metavar="N", help="How many; default: those of the family.")] = None,
    seed: SeedOption = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter of the family; may be repeated."),
    ] = None,
    output: _OutputOption = None,
) -> None:
    """Make a trace after the workload of a paper."""
    from mig_opt.instances.fleet import generate_trace

    checks = Checks()
    trace: Trace | None = None
    values: dict[str, float | int | str] = {}
    with checks.step():
        _read_settings(family, settings or [], jobs, values)
    with checks.step():
        names = {"family": "FAMILY", **as_options("gpu", "gpus", "seed"), **{name: f"--set {name}" for name in values}}
        names |= {"jobs": "-n"} if jobs is not None else {}
        with options_named(names):
            trace = generate_trace(family, gpu=gpu, gpus=gpus, seed=seed, **values)
    _write(trace, output, checks)


def _read_settings(family: str, settings: list[str], jobs: int | None, values: dict[str, float | int | str]) -> None:
    """Put the parameters that ``NAME=VALUE`` and ``-n`` stand for into ``values``, those that can be read."""
    from mig_opt.instances.fleet import trace_families

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
            values[name] = value if name in texts else _value(value)
    if problems:
        raise InputError(problems)


def _value(text: str) -> float | int | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def import_(
    pods: Annotated[Path, typer.Argument(metavar="PODS", help="openb_pod_list_*.csv.", show_default=False)],
    *,
    gpu: _GpuOption = "A100",
    gpus: Annotated[int | None, typer.Option(metavar="N", help="How many; default: those of --nodes, or 1.")] = None,
    nodes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="openb_node_list_gpu_node.csv, for the number of GPUs.")
    ] = None,
    cover: Annotated[
        str, typer.Option(metavar="NAME", help="What the smallest profile covers of a fraction: compute or both.")
    ] = "compute",
    first_s: Annotated[float, typer.Option(metavar="S", help="Leave out pods that arrive before.")] = 0.0,
    last_s: Annotated[
        float, typer.Option(metavar="S", help="Leave out pods that arrive later.", show_default="no limit")
    ] = math.inf,
    output: _OutputOption = None,
) -> None:
    """Make a trace of a list of pods in the layout of Alibaba's openb traces.

    A fraction of a GPU becomes the smallest profile that covers it; a pod with several GPUs becomes several jobs. What
    is left out is said on standard error.
    """
    from mig_opt.files import import_trace
    from mig_opt.files.fleet.openb import Cover

    checks = Checks()
    trace: Trace | None = None
    with checks.step(), options_named(as_options("gpu", "gpus", "cover", "first_s", "last_s")):
        # The function refuses other names.
        found = import_trace(
            pods, gpu=gpu, gpus=gpus, nodes=nodes, cover=cast(Cover, cover), first_s=first_s, last_s=last_s
        )
        trace = found.trace
    _write(trace, output, checks, pods, *([nodes] if nodes else []))
    say(f"note: {found.pods} pods became {len(found.trace.jobs)} jobs, {found.several} of them parts of larger pods")
    for reason, count in found.left_out.items():
        say(f"note: left out {count} that {'are ' if reason.startswith('outside') else ''}{reason}")


def _write(trace: Trace | None, output: Path | None, checks: Checks, *inputs: Path) -> None:
    """Write a trace to a file or to standard output, if nothing was wrong."""
    from mig_opt.files import trace_to_json, write_trace

    if output is not None:
        with checks.step():
            check_output(output, *inputs)
    checks.finish()
    assert trace is not None
    if output is None:
        print_json(trace_to_json(trace))
    else:
        write_trace(trace, output)
        typer.echo(f"Trace written to {printable(str(output))}.")


def describe(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="JSON or CSV file, or -.", show_default=False)],
    *,
    gpu: Annotated[
        str | None, typer.Option(metavar="GPU", help="In place of the GPU that TRACE names; CSV files need it.")
    ] = None,
    gpus: TraceGpusOption = None,
    bounds: Annotated[bool, typer.Option("--bounds", help="Show what no schedule can fall below.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a trace asks of its fleet."""
    from mig_opt.cli import screens
    from mig_opt.files.documents import rendered
    from mig_opt.fleet.describing import describe_trace
    from mig_opt.models.fleet.bounds import trace_bounds

    found = load_trace(trace, gpu, gpus)
    summary = describe_trace(found)
    limits = trace_bounds(found) if bounds else None
    if as_json:
        document = dataclasses.asdict(summary)
        if limits:
            document["bounds"] = {
                **{
                    goal: [dataclasses.asdict(bound) for bound in getattr(limits, goal)]
                    for goal in ("makespan", "completion")
                },
                "mean_completion": limits.mean_completion,
            }
        print_json(rendered(document))
        return
    screens.show(_card(found, summary), "", _quantile_table(summary), "", _histogram(summary))
    if limits:
        _show_bounds(limits)


def _card(trace: Trace, summary: TraceSummary) -> Table:
    from mig_opt.cli import screens

    span = summary.last_arrival - summary.first_arrival
    rows: list[tuple[str, str | Text]] = [
        ("trace", f"{trace.name} ({plural(summary.jobs, 'job')})"),
        ("GPU", f"{summary.gpus} x {summary.gpu}"),
        ("arrivals", f"over {screens.seconds(span)} s, from second {screens.seconds(summary.first_arrival)}"),
        ("area", f"{summary.area:.6g} compute slices x seconds, each job where that is least"),
        ("load", "all arrive at once" if summary.load is None else f"{summary.load:.1%} of the compute slices"),
        ("PCIe", "no job" if not summary.pcie_bound else f"{summary.pcie_bound:.1%} of the jobs, with "
         f"{summary.pcie_demand:.1%} of a GPU's limit each"),
        ("memory", f"known of {summary.memory_known:.1%} of the jobs, grows in {summary.memory_growing:.1%}"),
    ]  # fmt: skip
    return screens.card(rows)


def _quantile_table(summary: TraceSummary) -> Table:
    from mig_opt.cli import screens
    from mig_opt.fleet.describing import QUANTILES

    heads = {0.0: "least", 0.5: "median", 1.0: "most"}
    columns: screens.Columns = [
        ("", "name"),
        *((heads.get(share, f"{share:.0%}"), "number") for share in QUANTILES),
    ]
    rows = [
        [label, *map(screens.seconds, values)]
        for label, values in (("gap s", summary.gaps), ("work s", summary.work), ("memory GB", summary.memory))
        if values
    ]
    return screens.table(columns, rows)


def _histogram(summary: TraceSummary) -> Table:
    from mig_opt.cli import screens

    most = max(summary.profiles.values())
    columns: screens.Columns = [("profile", "name"), ("jobs", "number"), ("share %", "number"), ("", "name")]
    return screens.table(
        columns,
        (
            [name, str(count), f"{100 * count / summary.jobs:.1f}", "#" * round(30 * count / most)]
            for name, count in summary.profiles.items()
        ),
    )


def _show_bounds(limits: TraceBounds) -> None:
    from mig_opt.cli import screens

    for label, bounds in (("Makespan:", limits.makespan), ("Sum of all ends:", limits.completion)):
        screens.show("", label, screens.bounds_table(bounds))
    screens.show("", f"Mean seconds from arrival to end: at least {screens.seconds(limits.mean_completion)}.")


for command, name, example in (
    (families, "families", "mig-opt trace families normal-25"),
    (generate, "generate", "mig-opt trace generate pcie-4 --set pcie_share=0.4 --seed 7 -o trace.json"),
    (import_, "import", "mig-opt trace import openb_pod_list_default.csv --gpus 100 -o openb.json"),
    (describe, "describe", "mig-opt trace describe trace.json --bounds"),
):
    app.command(name, epilog=f"Example: {example}")(guarded(command))
