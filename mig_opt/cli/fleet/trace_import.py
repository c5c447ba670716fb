"""The command trace import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from mig_opt.cli import options
from mig_opt.cli.answers import Call, Product, made
from mig_opt.cli.checks import refuse
from mig_opt.cli.figures import seconds
from mig_opt.fleet.trace import Trace

_LAYOUTS = ("openb", "migbench")


def trace_import(
    call: Call,
    file: Annotated[Path, options.needed("FILE", "openb_pod_list_*.csv or *-trace.jsonl.")],
    *,
    layout: Annotated[
        str | None, "NAME", "--format", "openb or migbench; default: migbench if FILE ends in .jsonl."
    ] = None,
    gpu: Annotated[str | None, "GPU", "Default: A100 for openb, H100 for migbench."] = None,
    gpus: Annotated[int | None, "N", "How many; default: those of --nodes or 1 for openb, 8 for migbench."] = None,
    nodes: Annotated[Path | None, "openb: openb_node_list_gpu_node.csv, for the number of GPUs."] = None,
    cover: Annotated[
        str | None, "NAME", "openb: what the smallest profile covers of a fraction, compute (default) or both."
    ] = None,
    first_s: Annotated[float | None, "S", "openb: leave out pods that arrive before."] = None,
    last_s: Annotated[float | None, "S", "openb: leave out pods that arrive later."] = None,
    sizes: Annotated[
        str | None, "NAME", "migbench: the smallest profile with the memory of a job (default), or any."
    ] = None,
    published: Annotated[Path | None, "migbench: *-summary.csv, shown on standard error."] = None,
    output: options.TraceOutput = None,
) -> Product:
    """Make a trace of a list of pods in the layout of Alibaba's openb traces, or of a trace of MIGBench.

    openb: a fraction of a GPU becomes the smallest profile that covers it, a pod with several GPUs several jobs.
    migbench: a job has work and memory; the percents of the benchmark make seconds of the work. What is left out, and
    the published results, are told on standard error.

    Examples
    --------
    mig-opt trace import openb_pod_list_default.csv --gpus 100 -o openb.json
    """
    from mig_opt.files.fleet.traces import trace_to_json

    chosen = layout or ("migbench" if file.suffix.lower() == ".jsonl" else "openb")
    if chosen not in _LAYOUTS:
        refuse("--format", f"must be openb or migbench, is {chosen!r:.60}")
    given = {"--nodes": nodes, "--cover": cover, "--first-s": first_s, "--last-s": last_s}
    for_others = given if chosen == "migbench" else {"--sizes": sizes, "--published": published}
    (other,) = {*_LAYOUTS} - {chosen}
    for option, value in for_others.items():
        call.require(value is None, option, f"is for --format {other}; the format is {chosen}")
    if chosen == "migbench":
        trace, notes = _from_migbench(call, file, published, gpu=gpu, gpus=gpus, sizes=sizes)
    else:
        openb = {"gpu": gpu, "gpus": gpus, "nodes": nodes, "cover": cover, "first_s": first_s, "last_s": last_s}
        trace, notes = _from_openb(call, file, openb)
    call.begin(trace=output)
    answer = made("trace", trace, output, trace_to_json)
    return Product(files=answer.files, text=answer.text, said=[f"note: {note}" for note in notes])


def _from_openb(call: Call, pods: Path, values: dict[str, Any]) -> tuple[Trace | None, list[str]]:
    """Return the trace, None if something is wrong, and notes."""
    from mig_opt.files.fleet.openb import import_trace

    found = call.attempt(import_trace, pods, **{name: value for name, value in values.items() if value is not None})
    if found is None:
        return None, []
    notes = [f"{found.pods} pods became {len(found.trace.jobs)} jobs, {found.several} of them parts of larger pods"]
    for reason, count in found.left_out.items():
        notes.append(f"left out {count} that {'are ' if reason.startswith('outside') else ''}{reason}")
    return found.trace, notes


def _from_migbench(call: Call, path: Path, published: Path | None, **values: Any) -> tuple[Trace | None, list[str]]:
    """Return the trace, None if something is wrong, and notes."""
    from mig_opt.files.fleet.migbench import import_migbench, read_published

    given = {name: value for name, value in values.items() if value is not None}
    trace = call.attempt(import_migbench, path, **given)
    results = () if published is None else call.attempt(read_published, published)
    notes = []
    for result in results or ():
        waits = f"wait {seconds(result.mean_wait)} s on the mean, {seconds(result.p95_wait)} s at 95 %"
        notes.append(f"published: {result.scheduler}: makespan {seconds(result.makespan)} s, {waits}")
        if trace is not None and result.jobs != len(trace.jobs):
            notes.append(f"these are results of {result.jobs} jobs, the trace has {len(trace.jobs)}")
    return trace, notes
