"""Commands that list what there is: instances, gpus, methods, versions."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from mig_opt.cli import options
from mig_opt.cli.outcome import options_named, print_json
from mig_opt.cli.screens import bullets, card, note, seconds, show, table
from mig_opt.gpu.catalogue import catalogue, get_gpu
from mig_opt.gpu.costs import DRIVER, CostTable, cost_tables
from mig_opt.gpu.model import GpuModel, OperationCosts
from mig_opt.method.registry import AUTO, Method, get_deploy_method, get_method
from mig_opt.method.registry import methods as known_methods
from mig_opt.method.result import versions_with

if TYPE_CHECKING:
    from mig_opt.instances.bundled import Finding, InstanceInfo

_PACKAGES = (
    *("ortools", "pulp", "highspy", "networkx", "numpy", "pydantic", "typer", "rich"),
    *("matplotlib", "bokeh", "dask"),
)

_NO_FINDINGS: list[tuple[str, Finding | None]] = [("", None), ("", None)]


def instances(name: options.ListedArgument = None, as_json: options.Json = False) -> None:
    """List the bundled batches and demands, with the best known plans."""
    from mig_opt.instances.bundled import instance_info, instance_names

    names = [*instance_names("batch"), *instance_names("demand")] if name is None else [name]
    infos = [instance_info(known) for known in names]
    if as_json:
        print_json(dataclasses.asdict(infos[0]) if name else {"instances": list(map(dataclasses.asdict, infos))})
    elif name is None:
        _list_instances(infos)
    else:
        _show_instance(infos[0])


def _list_instances(infos: list[InstanceInfo]) -> None:
    rows = (
        [info.name, info.kind, str(info.n), info.gpu, *(_shown(info, best) for _, best in _findings(info))]
        for info in infos
    )
    sources = ([info.name, info.source, info.licence.partition(",")[0]] for info in infos)
    show(
        table(["instance", "what", ">n", "GPU", ">best", ">bound"], rows),
        "",
        note("batch: n tasks, for mig-opt solve; best and bound are seconds."),
        note("demand: n services, for mig-opt deploy; best and bound are GPUs."),
        "",
        table(["instance", "~source", "licence"], sources),
    )


def _findings(info: InstanceInfo) -> list[tuple[str, Finding | None]]:
    """Return the best value and the best bound of an instance, each with what it is."""
    if info.kind == "demand":
        fewest = info.fewest_gpus
        return [("GPUs", fewest.gpus), ("lower bound", fewest.lower_bound)] if fewest else _NO_FINDINGS
    best = info.best_known
    return [("makespan", best.makespan), ("lower bound", best.lower_bound)] if best else _NO_FINDINGS


def _shown(info: InstanceInfo, finding: Finding | None) -> str:
    value = finding.value if finding else None
    return f"{value:g}" if value is not None and info.kind == "demand" else seconds(value)


def _show_instance(info: InstanceInfo) -> None:
    is_batch = info.kind == "batch"
    best = info.best_known or info.fewest_gpus
    rows = [
        ("instance", info.name),
        ("title", info.title),
        ("what", f"{info.kind}, for mig-opt {'solve' if is_batch else 'deploy'}"),
        ("tasks" if is_batch else "services", str(info.n)),
        ("GPU", info.gpu),
        ("best known", best.status.value.replace("_", " ") if best else "nothing on record"),
    ]
    for label, finding in _findings(info):
        if finding:
            origin = f"{finding.method}, {finding.found_by}, {finding.date}, {finding.versions}"
            rows.append((label, f"{_shown(info, finding)}{' s' if is_batch else ''} ({origin}): {finding.proof}"))
    rows += [("source", info.source), ("url", info.url or "-"), ("licence", info.licence)]
    show(card([*rows, ("derivation", info.derivation)]))
    if info.notes:
        show("", bullets(info.notes))


def gpus(name: options.ListedArgument = None, as_json: options.Json = False) -> None:
    """List the GPUs with their slices, sizes and partitions."""
    with options_named({"gpu": "NAME"}):
        models = list(catalogue()) if name is None else [get_gpu(name)]
    if as_json:
        print_json(_described(models[0]) if name else {"gpus": list(map(_described, models))})
    elif name is None:
        _list_gpus(models)
    else:
        _show_gpu(models[0])


def _described(model: GpuModel) -> dict[str, Any]:
    costs = model.operation_costs
    return {
        "name": model.name,
        "aliases": list(model.aliases),
        "label": model.label,
        "memory_gb": model.memory_gb,
        "compute_slices": model.compute_slices,
        "memory_slices": model.memory_slices,
        "sizes": list(model.sizes),
        "profiles": [dataclasses.asdict(profile) for profile in model.profiles],
        "maximal_partitions": [[str(placement) for placement in state] for state in model.maximal_partitions()],
        "distinct_partitions": [list(names) for names in model.partition_multisets()],
        "operations": _costs(costs),
        "operations_assumed": costs.assumed,
        "operations_source": costs.source,
        "costs": {
            name: {**_costs(table.on(model)), "source": table.on(model).source} for name, table in cost_tables().items()
        },
        "profiles_status": model.profiles_status,
        "placements_status": model.placements_status,
        "sources": list(model.sources),
        "notes": model.notes,
    }


def _costs(costs: OperationCosts) -> dict[str, dict[str, float]]:
    tables = {"create": costs.create, "destroy": costs.destroy}
    return {kind: {str(size): seconds for size, seconds in table.items()} for kind, table in tables.items()}


def _cost_row(model: GpuModel, table: CostTable) -> list[str]:
    costs = table.on(model)
    least = [(min(figures.values()), max(figures.values())) for figures in (costs.create, costs.destroy)]
    spans = [f"{low:.2f}" if low == high else f"{low:.2f}-{high:.2f}" for low, high in least]
    return [table.name, *spans, f"{table.by}: {costs.source}" if table.name == DRIVER else costs.source]


def _list_gpus(models: list[GpuModel]) -> None:
    rows = (
        [
            model.name,
            ", ".join(model.aliases),
            f"{model.compute_slices} / {model.memory_slices}",
            " ".join(map(str, model.sizes)),
            f"{len(model.maximal_partitions())} / {len(model.partition_multisets())}",
            "assumed" if model.operation_costs.assumed else "measured",
        ]
        for model in models
    )
    show(
        table(["GPU", "~aliases", ">slices", "sizes", ">partitions", "costs"], rows),
        "",
        note("slices: compute / memory. sizes: compute slices of an instance."),
        note("partitions: maximal ones, placed / distinct."),
        note("costs: whether the seconds of creations and destructions were measured."),
    )


def _show_gpu(model: GpuModel) -> None:
    costs, distinct = model.operation_costs, len(model.partition_multisets())
    partitions = (
        [str(number), " + ".join(map(str, state))] for number, state in enumerate(model.maximal_partitions(), 1)
    )
    rows = [
        ("GPU", model.name),
        ("board", model.label),
        ("aliases", ", ".join(model.aliases) or None),
        ("memory", f"{model.memory_gb:g} GB"),
        ("slices", f"{model.compute_slices} compute, {model.memory_slices} memory"),
        ("profile data", model.profiles_status),
        ("start data", model.placements_status),
        ("notes", model.notes or None),
    ]
    profiles = (
        [
            profile.name,
            str(profile.id),
            f"{profile.compute_slices} / {profile.memory_slices}",
            f"{profile.memory_gb:g}",
            str(profile.usable_mib or "-"),
            str(profile.sm_count or "-"),
            str(profile.max_count),
            " ".join(map(str, profile.starts)),
            f"{costs.of('create', profile):.2f}",
            f"{costs.of('destroy', profile):.2f}",
        ]
        for profile in model.profiles
    )
    columns = ["profile", ">id", ">slices", ">GB", ">MiB", ">SMs", ">max", "starts", ">create", ">destroy"]
    show(
        card(rows),
        "",
        table(columns, profiles),
        "",
        note("slices: compute / memory. create, destroy: seconds that NVML takes."),
        "",
        table(
            ["--costs", ">create s", ">destroy s", "~source"], map(partial(_cost_row, model), cost_tables().values())
        ),
        "",
        table([">", f"~maximal partitions ({distinct} distinct)"], partitions),
        "",
        "Sources",
        *(f" - {source}" for source in model.sources),
    )


def methods(as_json: options.Json = False) -> None:
    """List the methods of solve and deploy, the policies of simulate."""
    from mig_opt.simulation.fleet.options import policy_options

    policies = known_methods("simulate")
    known = {"solve": known_methods(), "deploy": known_methods("deploy")}
    auto, deploy_auto = get_method(AUTO).name, get_deploy_method(AUTO).name
    if as_json:
        print_json(
            {
                "auto": auto,
                "methods": list(map(_method, known["solve"])),
                "deploy_auto": deploy_auto,
                "deploy_methods": list(map(_method, known["deploy"])),
                "policies": [
                    {"name": p.name, "options": list(policy_options(p)), "summary": p.summary, "source": p.source}
                    for p in policies
                ],
            }
        )
        return
    for command, entries in known.items():
        show(table([command, "kind", "~summary"], ([entry.name, entry.kind, entry.summary] for entry in entries)), "")
        show(table([command, "~source"], ([entry.name, entry.source] for entry in entries)), "")
    show(table(["simulate", "~summary"], ([policy.name, policy.summary] for policy in policies)), "")
    show(
        table(
            ["simulate", "~options"],
            ([policy.name, ", ".join(policy_options(policy))] for policy in policies),
        ),
        "",
    )
    show(table(["simulate", "~source"], ([policy.name, policy.source] for policy in policies)), "")
    show(
        note(f"{AUTO}, the default, stands for {auto} with mig-opt solve, for {deploy_auto} with deploy."),
        note("Exact methods end with a proof if they have the time for it."),
    )


def _method(method: Method) -> dict[str, str]:
    return {"name": method.name, "kind": method.kind, "summary": method.summary, "source": method.source}


def versions(as_json: options.Json = False) -> None:
    """Show the versions of mig-opt and of what it runs on."""
    installed = versions_with(_PACKAGES)
    found = {package: installed.get(package) for package in ("mig-opt", "python", *_PACKAGES)}
    if as_json:
        print_json(found)
    else:
        show(card([(package, version or "not installed") for package, version in found.items()]))
