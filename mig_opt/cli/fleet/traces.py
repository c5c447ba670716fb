"""The commands about traces: families, generate, import and describe."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mig_opt.cli import options
from mig_opt.cli.answers import Answer, Call, Product, made
from mig_opt.cli.checks import file_named, options_named, refuse
from mig_opt.cli.figures import bounds_table
from mig_opt.cli.gpus import named_gpu
from mig_opt.cli.inputs import load_trace
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.method.report import Part, Points, Report, Table, data_of
from mig_opt.texts import number_in, plural, seconds

if TYPE_CHECKING:
    from mig_opt.fleet.bounds import TraceBounds
    from mig_opt.fleet.description import TraceSummary
    from mig_opt.fleet.trace import Trace
    from mig_opt.gpu.pools import Pool


def trace_families(family: options.ListedArgument = None) -> Answer:
    """List the families of traces, or all about one of them.

    Examples
    --------
    mig-opt trace families
    mig-opt trace families normal-25
    """
    from mig_opt.instances.fleet.registry import get_trace_family
    from mig_opt.instances.fleet.registry import trace_families as known_families

    found = known_families() if family is None else (get_trace_family(family),)
    data = [data_of(one, "name", "description", "source", "gpus", "parameters", "assumptions") for one in found]
    if family is None:
        table = Table(["family", ">GPUs", "~what"], [[f.name, str(f.gpus), f.description] for f in found])
        return Answer(Report(parts=[table], data={"families": data}))
    (one,) = found
    facts = [("family", one.name), ("what", one.description), ("source", one.source), ("GPUs", str(one.gpus))]
    rows = [[parameter.name, str(parameter.default), parameter.description] for parameter in one.parameters]
    parts: list[Part] = [Table(["parameter", ">default", "~what"], rows), Points(one.assumptions, "Assumed:")]
    return Answer(Report(facts, parts, data=data[0]))


def trace_generate(
    call: Call,
    family: Annotated[str, options.argument("FAMILY", "One of: mig-opt trace families.")],
    *,
    jobs: Annotated[int | None, "N", "-n", "Number of jobs; short for --set jobs=N."] = None,
    gpu: Annotated[str | None, "GPU", "One of: mig-opt gpus.  [default: A100]"] = None,
    gpus: Annotated[int | None, "N", "How many.  [default: those of the family]"] = None,
    pools: Annotated[
        str | None,
        "KIND=N,...",
        "Several kinds of GPUs, on which times are assumed; or openb:N, like N nodes of that cluster.",
    ] = None,
    seed: options.Seed = 0,
    settings: Annotated[
        list[str] | None, "NAME=VALUE", "--set", "Change a parameter of the family; may be repeated."
    ] = None,
    output: options.TraceOutput = None,
) -> Product:
    """Make a trace after the workload of a paper.

    Examples
    --------
    mig-opt trace generate pcie-4 --set pcie_share=0.4 --seed 7 -o trace.json
    mig-opt trace generate normal-25 --pools "A100=4,A30=2,A30 without MIG=1"
    """
    from mig_opt.files.fleet.traces import TRACE
    from mig_opt.instances.fleet.registry import generate_trace

    values: dict[str, float | int | str] = {}
    call.attempt(_read_settings, family, settings or [], jobs, values)
    kinds = () if pools is None else call.attempt(_read_pools, pools, seed) or ()
    if pools is not None:
        call.none_of(("--gpu", "--gpus"), "is said by the pools; leave it out")
    names = {name: f"--set {name}" for name in values}
    with call.step(), options_named(names if jobs is None else names | {"jobs": "-n"}):
        trace = generate_trace(
            family, gpu=gpu or "A100", gpus=None if kinds else gpus, seed=seed, pools=kinds, **values
        )
    call.begin(trace=output)
    return made("trace", trace, output, TRACE.to_json)


def _read_pools(text: str, seed: int) -> tuple[Pool, ...]:
    """Return the pools that ``A100=4,A30=2`` or ``openb:30`` stands for."""
    from mig_opt.gpu.catalogue import get_gpu, with_mig
    from mig_opt.gpu.pools import Pool, pool_problems
    from mig_opt.instances.fleet.cluster import openb_cluster

    with options_named(dict.fromkeys(("gpu", "count", "nodes", "pools"), "--pools")):
        counts: list[tuple[str, Any]]
        if text.startswith("openb:"):
            nodes: Any = number_in(text.removeprefix("openb:"))
            counts = [*Counter(openb_cluster(nodes, load=0.0, seed=seed).names).items()]
        else:
            parts = [part.rpartition("=") for part in text.split(",")]
            if not all(equals for _, equals, _ in parts):
                raise InputError([Problem("pools", "must be KIND=N, with commas, like A100=4,A30=2, or openb:N")])
            counts = [(name.strip(), number_in(count.strip())) for name, _, count in parts]
        pools: list[Pool] = []
        problems: list[Problem] = []
        for name, count in counts:
            try:
                kind = get_gpu(named_gpu(name))
                pools.append(Pool(with_mig(kind), count, mig=kind.mig))
            except InputError as error:
                problems += (Problem("pools", f"{name}={count}: {problem.message}") for problem in error.problems)
        if problems := [*problems, *pool_problems(pools)]:
            raise InputError(problems)
    return tuple(pools)


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
    raise_any(problems)


def trace_import(
    call: Call,
    file: Annotated[Path, options.argument("FILE", "openb_pod_list_*.csv or *-trace.jsonl.")],
    *,
    layout: Annotated[
        str | None, "NAME", "--format", "openb or migbench.  [default: migbench if FILE ends in .jsonl]"
    ] = None,
    gpu: Annotated[str | None, "GPU", "Kind of GPU.  [default: A100 for openb, H100 for migbench]"] = None,
    gpus: Annotated[int | None, "N", "How many.  [default: those of --nodes or 1 for openb, 8 for migbench]"] = None,
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
    """Make a trace of Alibaba's openb, or of MIGBench.

    openb: a list of pods; a fraction of a GPU becomes the smallest profile that covers it, a pod with several GPUs
    several jobs. migbench: a list of jobs, each with work and memory; the percents of the benchmark make seconds of the
    work. What is left out, and the published results, are told on standard error.

    Examples
    --------
    mig-opt trace import openb_pod_list_default.csv --gpus 100 -o openb.json
    """
    from mig_opt.files.fleet.traces import TRACE

    chosen = layout or ("migbench" if file.suffix.lower() == ".jsonl" else "openb")
    if chosen not in ("openb", "migbench"):
        refuse("--format", f"must be openb or migbench, is {chosen!r:.60}")
    if chosen == "migbench":
        call.none_of(("--nodes", "--cover", "--first-s", "--last-s"), "is for --format openb; the format is migbench")
        trace, notes = _from_migbench(call, file, published, gpu=gpu, gpus=gpus, sizes=sizes)
    else:
        call.none_of(("--sizes", "--published"), "is for --format migbench; the format is openb")
        openb = {"gpu": gpu, "gpus": gpus, "nodes": nodes, "cover": cover, "first_s": first_s, "last_s": last_s}
        trace, notes = _from_openb(call, file, openb)
    call.begin(trace=output)
    return made("trace", trace, output, TRACE.to_json, said=[f"note: {note}" for note in notes])


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
    with file_named(trace):
        return Answer(_report(found, describe_trace(found), trace_bounds(found) if bounds else None))


def _report(trace: Trace, summary: TraceSummary, limits: TraceBounds | None) -> Report:
    span = summary.last_arrival - summary.first_arrival
    pcie = f"{summary.pcie_bound:.1%} of the jobs, with {summary.pcie_demand:.1%} of a GPU's limit each"
    facts = [
        ("trace", f"{trace.name} ({plural(summary.jobs, 'job')})"),
        ("GPU", trace.label),
        ("arrivals", f"over {seconds(span)} s, from second {seconds(summary.first_arrival)}"),
        ("area", f"{summary.area:.6g} compute slices x seconds, each job where that is least"),
        ("load", "all arrive at once" if summary.load is None else f"{summary.load:.1%} of the compute slices"),
        ("PCIe", pcie if summary.pcie_bound else "no job"),
        ("memory", f"known of {summary.memory_known:.1%} of the jobs, grows in {summary.memory_growing:.1%}"),
    ]
    parts: list[Part] = [_quantile_table(summary), _histogram(summary)]
    data = dataclasses.asdict(summary)
    if limits is not None:
        data["bounds"] = data_of(limits, "makespan", "completion", "mean_completion")
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
