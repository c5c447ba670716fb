"""The catalogue of MIG-capable GPUs, read from ``gpus.json``, and the way to find one by its name."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from mig_opt.errors import Problem, UnknownGpuError, nearest
from mig_opt.gpu.model import GpuModel, OperationCosts, Profile


@cache
def catalogue() -> tuple[GpuModel, ...]:
    """Return every GPU that the package knows."""
    data = json.loads(resources.files("mig_opt.gpu").joinpath("gpus.json").read_text(encoding="utf-8"))
    costs = {
        name: OperationCosts(
            {int(size): seconds for size, seconds in entry["create"].items()},
            {int(size): seconds for size, seconds in entry["destroy"].items()},
            entry["source"],
        )
        for name, entry in data["operation_costs"].items()
    }
    models = []
    for entry in data["gpus"]:
        profiles = tuple(
            Profile(**{**profile, "starts": tuple(profile["starts"]), "attributes": tuple(profile["attributes"])})
            for profile in entry["profiles"]
        )
        sizes = {profile.compute_slices for profile in profiles}
        models.append(
            GpuModel(
                **{key: entry[key] for key in ("name", "label", "memory_gb", "memory_slices", "compute_slices")},
                profiles=profiles,
                operation_costs=(
                    costs[entry["operation_costs"]]
                    if entry["operation_costs"]
                    else _assumed(costs["H100"], sizes, entry["name"])
                ),
                aliases=tuple(entry["aliases"]),
                profiles_status=entry["profiles_status"],
                placements_status=entry["placements_status"],
                sources=tuple(entry["sources"]),
                notes=entry["notes"],
            )
        )
    return tuple(models)


def gpu_noting(gpu: str | GpuModel, problems: list[Problem]) -> GpuModel | None:
    """Return a GPU or the one of that name; if there is none, note that among the problems and return None."""
    if isinstance(gpu, GpuModel):
        return gpu
    try:
        return get_gpu(gpu)
    except UnknownGpuError as error:
        problems += error.problems
        return None


def _assumed(costs: OperationCosts, sizes: set[int], gpu: str) -> OperationCosts:
    return OperationCosts(
        {size: seconds for size, seconds in costs.create.items() if size in sizes},
        {size: seconds for size, seconds in costs.destroy.items() if size in sizes},
        f"{costs.source}; assumed for {gpu}, which nobody has measured",
        assumed=True,
    )


@cache
def _names() -> dict[str, GpuModel]:
    return {name.casefold(): model for model in catalogue() for name in (model.name, *model.aliases)}


def get_gpu(name: str) -> GpuModel:
    """Return the GPU of the catalogue with that name or alias (case does not matter).

    Raises
    ------
    UnknownGpuError
        If there is none; the message offers the nearest names.

    Examples
    --------
    >>> get_gpu("h100").name
    'H100-80GB'
    """
    try:
        return _names()[name.casefold()]
    except KeyError:
        known = [name for model in catalogue() for name in (model.name, *model.aliases)]
        raise UnknownGpuError([Problem("gpu", f"unknown GPU {name!r}; {nearest(name, known)}")]) from None
