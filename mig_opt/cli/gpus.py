"""The command gpus."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from mig_opt.cli import options
from mig_opt.cli.answers import Answer
from mig_opt.cli.checks import options_named
from mig_opt.gpu.catalogue import DRIVER, CostTable, catalogue, cost_tables, get_gpu
from mig_opt.gpu.model import GpuModel, OperationCosts
from mig_opt.method.report import Report, Table


def gpus(name: options.ListedArgument = None) -> Answer:
    """List the GPUs with their slices, sizes and partitions.

    Examples
    --------
    mig-opt gpus
    mig-opt gpus A100
    """
    if name is None:
        return Answer(_all())
    with options_named({"gpu": "NAME"}):
        return Answer(_one(get_gpu(name)))


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


def _all() -> Report:
    rows = [
        [
            model.name,
            ", ".join(model.aliases),
            f"{model.compute_slices} / {model.memory_slices}",
            " ".join(map(str, model.sizes)),
            f"{len(model.maximal_partitions())} / {len(model.partition_multisets())}",
            "assumed" if model.operation_costs.assumed else "measured",
        ]
        for model in catalogue()
    ]
    notes = [
        "slices: compute / memory. sizes: compute slices of an instance.",
        "partitions: maximal ones, placed / distinct.",
        "costs: whether the seconds of creations and destructions were measured.",
    ]
    table = Table(["GPU", "~aliases", ">slices", "sizes", ">partitions", "costs"], rows, notes)
    return Report(parts=[table], data={"gpus": list(map(_described, catalogue()))})


def _one(model: GpuModel) -> Report:
    costs, distinct = model.operation_costs, len(model.partition_multisets())
    facts = [
        ("GPU", model.name),
        ("board", model.label),
        ("aliases", ", ".join(model.aliases) or None),
        ("memory", f"{model.memory_gb:g} GB"),
        ("slices", f"{model.compute_slices} compute, {model.memory_slices} memory"),
        ("profile data", model.profiles_status),
        ("start data", model.placements_status),
        ("notes", model.notes or None),
    ]
    profiles = [
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
    ]
    columns = ["profile", ">id", ">slices", ">GB", ">MiB", ">SMs", ">max", "starts", ">create", ">destroy"]
    partitions = [
        [str(number), " + ".join(map(str, state))] for number, state in enumerate(model.maximal_partitions(), 1)
    ]
    cost_rows = list(map(partial(_cost_row, model), cost_tables().values()))
    tables = [
        Table(columns, profiles, ["slices: compute / memory. create, destroy: seconds that NVML takes."]),
        Table(["--costs", ">create s", ">destroy s", "~source"], cost_rows),
        Table([">", f"~maximal partitions ({distinct} distinct)"], partitions),
    ]
    return Report(facts, tables, ["Sources", *(f" - {source}" for source in model.sources)], _described(model))
