"""Profile tables that are measured: the command services import, and ``mig-opt profile --triton``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from mig_opt.cli.answers import NOTHING, Answer, Call, File, Product, code_of, made
from mig_opt.cli.checks import options_named, refuse
from mig_opt.cli.figures import MOST_ROWS, first_of, rate
from mig_opt.cli.inputs import parsed_share
from mig_opt.cli.options import argument
from mig_opt.method.report import Points, Report, Table
from mig_opt.texts import plural, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mig_opt import ProfileTable
    from mig_opt.files.serving.benchmarks import Format
    from mig_opt.operations.execute.profiles import ProfilePlan

_OPTIONS = {name: f"--{name}" for name in ("gpu", "format", "names", "size", "batch", "processes", "quantile")}


def services_import(
    call: Call,
    source: Annotated[list[Path], argument("SOURCE", "Files of benchmarks.")],
    *,
    gpu: Annotated[str, "NAME", "The kind of GPU that was measured: mig-opt gpus."],
    names: Annotated[str | None, "PATTERN", "How the files are called, e.g. '{model}/{profile}-b{batch}.csv'."] = None,
    model: Annotated[str | None, "NAME", "The model.  [default: as in the file, or its name]"] = None,
    size: Annotated[int | None, "N", "Compute slices of the instances, if names do not tell."] = None,
    batch: Annotated[int | None, "N", "Requests that a process answers together, if nothing tells."] = None,
    processes: Annotated[int | None, "N", "Processes that share an instance, if nothing tells.  [default: 1]"] = None,
    quantile: Annotated[str, "Q", "Which latencies count, e.g. 95%, or mean."] = "99%",
    memory_gb: Annotated[float | None, "GB", "Memory that the models need."] = None,
    form: Annotated[
        str | None, "NAME", "--format", "perf-analyzer, model-analyzer, vllm or genai-perf.  [default: guessed]"
    ] = None,
    output: Annotated[Path | None, "Write the profiles to a file, not to standard output."] = None,
) -> Product:
    """Make profile tables of benchmarks of inference servers.

    SOURCE is what perf_analyzer -f writes, Model Analyzer's metrics-model-inference.csv, or the JSON of vLLM's serving
    benchmark, genai-perf or aiperf. Runs of several sizes, batch sizes, concurrencies and processes become one table.

    Examples
    --------
    mig-opt services import metrics.csv --gpu A100 --size 2 -o profiles.json
    mig-opt services import *.json --gpu H100 --names '{profile}-*.json'
    """
    from mig_opt.files.serving.measurements import import_benchmarks
    from mig_opt.files.serving.profiles import PROFILES

    share = None if quantile == "mean" else call.attempt(parsed_share, "--quantile", quantile)
    call.begin(profiles=output)
    with options_named({**_OPTIONS, "memory_gb": "--memory-gb", "paths": "SOURCE"}):
        tables = import_benchmarks(
            *source,
            format=cast("Format | None", form),
            gpu=gpu,
            names=names,
            model=model,
            size=size,
            batch=batch,
            processes=processes,
            quantile=share,
            memory_gb=memory_gb,
        )
    return made("profiles", tables, output, PROFILES.to_json, profiles_report(tables))


def profiled_server(
    call: Call,
    address: str,
    plan: ProfilePlan,
    output: Path,
    *,
    models: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    seconds: float,
) -> Answer:
    """Return the profiles of the models of a running Triton, joined with those that are in the output already."""
    from mig_opt.files.serving.profiles import PROFILES
    from mig_opt.operations.execute.triton_profiles import profile_triton
    from mig_opt.serving.profile_table import joined

    known = {(table.model, table.gpu): table for table in (PROFILES.read(output) if output.exists() else ())}
    for table in known.values():
        if table.quantile and table.gpu == plan.gpu.name and (table.model in models or not models):
            refuse("--output", f"{output} has quantiles of {table.model!r}, and means are measured; name another file")
    options = {"address": "--triton", "sizes": "--sizes", "seconds": "--seconds", "shapes": "--shape"}
    with call.bar("ways") as bar, options_named(options):
        show = partial(bar.show, advance=1)
        found = profile_triton(address, plan, models=models, shapes=shapes, seconds=seconds, observe=show)
    for table in found.tables:
        known[table.model, table.gpu] = joined(known.get((table.model, table.gpu), table), table)
    report = profiles_report(found.tables) if found.tables else Report()
    troubles = [f"{way}: {reason}" for way, reason in found.left_out.items()]
    parts = [*report.parts, Points([*found.notes, *troubles])]
    points = {table.model: len(table.points) for table in found.tables}
    data = {"points": points, "left_out": found.left_out, "notes": found.notes}
    file = File("profiles", output, tuple(known.values()) if found.tables else None, absent=NOTHING)
    return Answer(Report(report.facts, parts, data=data), code_of(good=bool(found.tables) and not found.failed), [file])


def profiles_report(tables: Sequence[ProfileTable]) -> Report:
    """Return the points of profile tables."""
    points = [(table, point) for table in tables for point in table.points]
    quantiles = dict.fromkeys("means" if t.quantile is None else f"p{100 * t.quantile:g}" for t in tables)
    facts = [
        ("profiles", f"{plural(len(tables), 'model')} on {tables[0].gpu}, {plural(len(points), 'point')}"),
        ("latencies", ", ".join(quantiles)),
    ]
    of_tokens = any(point.ttft is not None or point.itl is not None for _, point in points)
    table = Table.of(
        points[:MOST_ROWS],
        {
            "/model": lambda entry: entry[0].model,
            ">slices": lambda entry: str(entry[1].size),
            ">batch": lambda entry: str(entry[1].batch),
            ">procs": lambda entry: str(entry[1].processes),
            ">req/s": lambda entry: rate(entry[1].throughput),
            ">latency s": lambda entry: seconds(entry[1].latency),
            **(
                {">ttft s": lambda entry: seconds(entry[1].ttft), ">itl s": lambda entry: seconds(entry[1].itl)}
                if of_tokens
                else {}
            ),
        },
        first_of(len(points), "points"),
    )
    return Report(facts, [table])
