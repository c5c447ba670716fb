"""Commands that list what there is: instances, gpus, methods, versions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mig_opt.cli.inputs import JsonOption
from mig_opt.cli.outcome import options_named, print_json
from mig_opt.gpu.catalogue import catalogue, get_gpu
from mig_opt.gpu.model import GpuModel
from mig_opt.registry import AUTO, Method, deploy_methods, get_deploy_method, get_method
from mig_opt.registry import methods as known_methods
from mig_opt.solving import versions_with

if TYPE_CHECKING:
    from mig_opt.instances import Finding, InstanceInfo

_PACKAGES = (
    *("ortools", "pulp", "highspy", "networkx", "numpy", "numba", "pydantic", "typer", "rich"),
    *("matplotlib", "dask"),
)

_NO_FINDINGS: list[tuple[str, Finding | None]] = [("", None), ("", None)]


def instances(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show everything about this one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the bundled batches and demands, and the best that is known."""
    from mig_opt.instances import instance_info, instance_names

    if name is None:
        infos = [instance_info(known) for kind in ("batch", "demand") for known in instance_names(kind)]
    else:
        with options_named({"name": "NAME"}):
            infos = [instance_info(name)]
    if as_json:
        _print(dataclasses.asdict(infos[0]) if name else {"instances": [dataclasses.asdict(info) for info in infos]})
    elif name is None:
        _list_instances(infos)
    else:
        _show_instance(infos[0])


def _list_instances(infos: list[InstanceInfo]) -> None:
    from mig_opt.cli import screens

    screens.show(
        screens.table(
            [
                ("instance", "name"),
                ("what", "name"),
                ("n", "number"),
                ("GPU", "name"),
                ("best", "number"),
                ("bound", "number"),
            ],
            ([info.name, info.kind, str(info.n), info.gpu, *_best_known(info)] for info in infos),
        ),
        "",
        screens.note("batch: n tasks, for mig-opt solve; best and bound are seconds."),
        screens.note("demand: n services, for mig-opt deploy; best and bound are GPUs."),
        "",
        screens.table(
            [("instance", "name"), ("source", "text"), ("licence", "name")],
            ([info.name, info.source, info.licence.partition(",")[0]] for info in infos),
        ),
    )


def _best_known(info: InstanceInfo) -> list[str]:
    return [_shown(info, finding) for _, finding in _findings(info)]


def _findings(info: InstanceInfo) -> list[tuple[str, Finding | None]]:
    """Return the best value and the best bound of an instance, each with what it is."""
    if info.kind == "demand":
        fewest = info.fewest_gpus
        return [("GPUs", fewest.gpus), ("lower bound", fewest.lower_bound)] if fewest else _NO_FINDINGS
    best = info.best_known
    return [("makespan", best.makespan), ("lower bound", best.lower_bound)] if best else _NO_FINDINGS


def _shown(info: InstanceInfo, finding: Finding | None) -> str:
    from mig_opt.cli.screens import seconds

    value = finding.value if finding else None
    return f"{value:g}" if value is not None and info.kind == "demand" else seconds(value)


def _show_instance(info: InstanceInfo) -> None:
    from mig_opt.cli import screens

    rows: list[tuple[str, str | Any]] = [
        ("instance", info.name),
        ("title", info.title),
        ("what", f"{info.kind}, for mig-opt {'solve' if info.kind == 'batch' else 'deploy'}"),
        ("tasks" if info.kind == "batch" else "services", str(info.n)),
        ("GPU", info.gpu),
    ]
    best = info.best_known or info.fewest_gpus
    rows.append(("best known", best.status.value.replace("_", " ") if best else "nothing on record"))
    for label, finding in _findings(info):
        if finding:
            origin = f"{finding.method}, {finding.found_by}, {finding.date}, {finding.versions}"
            unit = " s" if info.kind == "batch" else ""
            rows.append((label, f"{_shown(info, finding)}{unit} ({origin}): {finding.proof}"))
    rows += [("source", info.source), ("url", info.url or "-"), ("licence", info.licence)]
    rows += [("derivation", info.derivation)]
    screens.show(screens.card(rows))
    if info.notes:
        screens.show("", screens.bullets(info.notes))


def gpus(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show everything about this one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the GPUs with their slices, sizes and partitions."""
    if name is None:
        models = list(catalogue())
    else:
        with options_named({"gpu": "NAME"}):
            models = [get_gpu(name)]
    if as_json:
        _print(_described(models[0]) if name else {"gpus": [_described(model) for model in models]})
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
        "operations": {
            "create": {str(size): seconds for size, seconds in costs.create.items()},
            "destroy": {str(size): seconds for size, seconds in costs.destroy.items()},
        },
        "operations_assumed": costs.assumed,
        "operations_source": costs.source,
        "profiles_status": model.profiles_status,
        "placements_status": model.placements_status,
        "sources": list(model.sources),
        "notes": model.notes,
    }


def _list_gpus(models: list[GpuModel]) -> None:
    from mig_opt.cli import screens

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
    screens.show(
        screens.table(
            [
                ("GPU", "name"),
                ("aliases", "text"),
                ("slices", "number"),
                ("sizes", "name"),
                ("partitions", "number"),
                ("costs", "name"),
            ],
            rows,
        ),
        "",
        screens.note("slices: compute / memory. sizes: compute slices of an instance."),
        screens.note("partitions: maximal ones, placed / distinct."),
        screens.note("costs: whether the seconds of creations and destructions were measured."),
    )


def _show_gpu(model: GpuModel) -> None:
    from mig_opt.cli import screens

    costs, placed = model.operation_costs, model.maximal_partitions()
    rows = [
        ("GPU", model.name),
        ("board", model.label),
        ("aliases", ", ".join(model.aliases)),
        ("memory", f"{model.memory_gb:g} GB"),
        ("slices", f"{model.compute_slices} compute, {model.memory_slices} memory"),
        ("profile data", model.profiles_status),
        ("start data", model.placements_status),
        ("costs", f"{'assumed' if costs.assumed else 'measured'}: {costs.source}"),
        ("notes", model.notes),
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
    columns = ("id", "slices", "GB", "MiB", "SMs", "max")
    screens.show(
        screens.card((label, value) for label, value in rows if value),
        "",
        screens.table(
            [
                ("profile", "name"),
                *((column, "number") for column in columns),
                ("starts", "name"),
                ("create", "number"),
                ("destroy", "number"),
            ],
            profiles,
        ),
        "",
        screens.note("slices: compute / memory. create, destroy: seconds."),
        "",
        screens.table(
            [("", "number"), (f"maximal partitions ({len(model.partition_multisets())} distinct)", "text")],
            ([str(number), " + ".join(map(str, state))] for number, state in enumerate(placed, start=1)),
        ),
        "",
        "Sources",
        *(f" - {source}" for source in model.sources),
    )


def methods(as_json: JsonOption = False) -> None:
    """List the methods of `mig-opt solve` and `mig-opt deploy`, and the policies of `mig-opt simulate`."""
    from mig_opt.simulation.registry import policies

    for_batches, for_services = known_methods(), deploy_methods()
    auto, deploy_auto = get_method(AUTO).name, get_deploy_method(AUTO).name
    if as_json:
        entries, deploy_entries = (list(map(_method, known)) for known in (for_batches, for_services))
        known_policies = [
            {"name": p.name, "options": list(p.options()), "summary": p.summary, "source": p.source} for p in policies()
        ]
        _print(
            {
                "auto": auto,
                "methods": entries,
                "deploy_auto": deploy_auto,
                "deploy_methods": deploy_entries,
                "policies": known_policies,
            }
        )
        return
    from mig_opt.cli import screens

    for command, known in (("solve", for_batches), ("deploy", for_services)):
        screens.show(
            screens.table(
                [(command, "name"), ("kind", "name"), ("summary", "text")],
                ([method.name, method.kind, method.summary] for method in known),
            ),
            "",
            screens.table([(command, "name"), ("source", "text")], ([method.name, method.source] for method in known)),
            "",
        )
    screens.show(
        screens.table([("simulate", "name"), ("summary", "text")], ([p.name, p.summary] for p in policies())),
        "",
        screens.table(
            [("simulate", "name"), ("options", "text")], ([p.name, ", ".join(p.options())] for p in policies())
        ),
        "",
        screens.table([("simulate", "name"), ("source", "text")], ([p.name, p.source] for p in policies())),
        "",
        screens.note(f"{AUTO}, the default, stands for {auto} with mig-opt solve, for {deploy_auto} with deploy."),
        screens.note("Exact methods end with a proof if they have the time for it."),
    )


def _method(method: Method) -> dict[str, str]:
    return {"name": method.name, "kind": method.kind, "summary": method.summary, "source": method.source}


def versions(as_json: JsonOption = False) -> None:
    """Show the versions of mig-opt and of what it runs on."""
    installed = versions_with(_PACKAGES)
    found = {package: installed.get(package) for package in ("mig-opt", "python", *_PACKAGES)}
    if as_json:
        _print(found)
        return
    from mig_opt.cli import screens

    screens.show(screens.card((package, version or "not installed") for package, version in found.items()))


def _print(document: Mapping[str, Any]) -> None:
    from mig_opt.files.documents import rendered

    print_json(rendered(document))
