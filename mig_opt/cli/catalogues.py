"""The commands that list what there is: gpus, methods and versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from mig_opt import GpuModel, OperationCosts, Profile, catalogue, get_gpu
from mig_opt.cli.answers import Answer
from mig_opt.cli.checks import options_named
from mig_opt.cli.gpus import named_gpu
from mig_opt.cli.options import argument
from mig_opt.gpu.catalogue import DRIVER, CostTable, cost_tables
from mig_opt.method.registry import AUTO, get_deploy_method, get_method
from mig_opt.method.registry import methods as known_methods
from mig_opt.method.report import Report, Table, data_of
from mig_opt.method.result import versions_with
from mig_opt.rules import hints_of


def gpus(
    name: Annotated[str | None, argument("NAME", "Show everything about this one, or the one of a file.")] = None,
) -> Answer:
    """List the GPUs with their slices, sizes and partitions.

    Examples
    --------
    mig-opt gpus
    mig-opt gpus A100
    """
    if name is not None:
        with options_named({"gpu": "NAME"}):
            return Answer(_gpu(get_gpu(named_gpu(name))))
    table = Table.of(
        catalogue(),
        {
            "GPU": lambda model: model.name,
            "~aliases": lambda model: ", ".join(model.aliases),
            ">slices": lambda model: f"{model.compute_slices} / {model.memory_slices}",
            "sizes": lambda model: " ".join(map(str, model.sizes)),
            ">partitions": lambda model: f"{len(model.maximal_partitions())} / {len(model.partition_multisets())}",
            "costs": lambda model: "assumed" if model.operation_costs.assumed else "measured",
        },
        [
            "slices: compute / memory. sizes: compute slices of an instance.",
            "partitions: maximal ones, placed / distinct.",
            "costs: whether the seconds of creations and destructions were measured.",
        ],
    )
    return Answer(Report(parts=[table], data={"gpus": list(map(_gpu_data, catalogue()))}))


def _gpu_data(model: GpuModel) -> dict[str, Any]:
    costs = model.operation_costs
    tables = [(name, table.on(model)) for name, table in cost_tables().items()]
    return {
        **data_of(model, "name", "aliases", "label", "memory_gb", "compute_slices", "memory_slices", "sizes"),
        "profiles": [data_of(profile, *hints_of(Profile)) for profile in model.profiles],
        "maximal_partitions": [list(map(str, state)) for state in model.maximal_partitions()],
        "distinct_partitions": list(map(list, model.partition_multisets())),
        "operations": _costs(costs),
        "operations_assumed": costs.assumed,
        "operations_source": costs.source,
        "costs": {name: {**_costs(table), "source": table.source} for name, table in tables},
        **data_of(model, "profiles_status", "placements_status", "sources", "notes"),
    }


def _costs(costs: OperationCosts) -> dict[str, dict[str, float]]:
    tables = {"create": costs.create, "destroy": costs.destroy}
    return {kind: {str(size): seconds for size, seconds in table.items()} for kind, table in tables.items()}


def _gpu(model: GpuModel) -> Report:
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
    profiles = Table.of(
        model.profiles,
        {
            "profile": lambda profile: profile.name,
            ">id": lambda profile: str(profile.id),
            ">slices": lambda profile: f"{profile.compute_slices} / {profile.memory_slices}",
            ">GB": lambda profile: f"{profile.memory_gb:g}",
            ">MiB": lambda profile: str(profile.usable_mib or "-"),
            ">SMs": lambda profile: str(profile.sm_count or "-"),
            ">max": lambda profile: str(profile.max_count),
            "starts": lambda profile: " ".join(map(str, profile.starts)),
            ">create": lambda profile: f"{costs.of('create', profile):.2f}",
            ">destroy": lambda profile: f"{costs.of('destroy', profile):.2f}",
        },
        ["slices: compute / memory. create, destroy: seconds that NVML takes."],
    )
    states = enumerate(model.maximal_partitions(), 1)
    tables = [
        profiles,
        Table(["--costs", ">create s", ">destroy s", "~source"], [_cost_row(model, t) for t in cost_tables().values()]),
        Table(
            [">", f"~maximal partitions ({distinct} distinct)"],
            [[str(number), " + ".join(map(str, state))] for number, state in states],
        ),
    ]
    sources = ["Sources", *(f" - {source}" for source in model.sources)] if model.sources else []
    return Report(facts, tables, sources, _gpu_data(model))


def _cost_row(model: GpuModel, table: CostTable) -> list[str]:
    costs = table.on(model)
    least = [(min(figures.values()), max(figures.values())) for figures in (costs.create, costs.destroy)]
    spans = [f"{low:.2f}" if low == high else f"{low:.2f}-{high:.2f}" for low, high in least]
    return [table.name, *spans, f"{table.by}: {costs.source}" if table.name == DRIVER else costs.source]


def methods() -> Answer:
    """List the methods of solve, deploy and simulate.

    Examples
    --------
    mig-opt methods
    """
    from mig_opt.simulation.fleet.options import policy_options

    auto, deploy_auto = get_method(AUTO).name, get_deploy_method(AUTO).name
    known: dict[str, list[dict[str, Any]]] = {
        "solve": [data_of(entry, "name", "kind", "summary", "source") for entry in known_methods()],
        "deploy": [data_of(entry, "name", "kind", "summary", "source") for entry in known_methods("deploy")],
        "simulate": [
            {**data_of(policy, "name"), "options": [*policy_options(policy)], **data_of(policy, "summary", "source")}
            for policy in known_methods("simulate")
        ],
    }

    def table(command: str, *columns: str, notes: Sequence[str] = ()) -> Table:
        cells = ([entry[column.lstrip("~")] for column in ("name", *columns)] for entry in known[command])
        rows = [[cell if isinstance(cell, str) else ", ".join(cell) for cell in row] for row in cells]
        return Table([command, *columns], rows, notes)

    notes = [
        f"{AUTO}, the default, stands for {auto} with mig-opt solve, for {deploy_auto} with deploy.",
        "Exact methods end with a proof if they have the time for it.",
    ]
    tables = [
        *(table(name, *columns) for name in ("solve", "deploy") for columns in (("kind", "~summary"), ("~source",))),
        *(table("simulate", column) for column in ("~summary", "~options")),
        table("simulate", "~source", notes=notes),
    ]
    data: dict[str, Any] = {"auto": auto, "methods": known["solve"]}
    data |= {"deploy_auto": deploy_auto, "deploy_methods": known["deploy"], "policies": known["simulate"]}
    return Answer(Report(parts=tables, data=data))


_PACKAGES = (
    *("ortools", "pulp", "highspy", "networkx", "numpy", "pydantic", "typer", "rich"),
    *("matplotlib", "bokeh", "dask"),
)


def versions() -> Answer:
    """Show the versions of mig-opt and of what it runs on.

    Examples
    --------
    mig-opt versions --json
    """
    installed = versions_with(_PACKAGES)
    found = {package: installed.get(package) for package in ("mig-opt", "python", *_PACKAGES)}
    return Answer(Report([(package, version or "not installed") for package, version in found.items()], data=found))
