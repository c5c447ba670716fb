"""Tasks that fit nowhere: why, and what would mend it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mig_opt.batch.batch import Batch, Task
from mig_opt.explaining.explanation import Conflict, Remedy
from mig_opt.explaining.requirements import Requirement, Requirements
from mig_opt.gpu.model import GpuModel, Profile, catalogue


def misfit_conflicts(batch: Batch) -> tuple[Conflict, ...]:
    """Return for each task that fits nowhere what together keeps it from running."""
    requirements = Requirements(batch, math.inf)
    return tuple(Conflict(_needed(requirements, index), (), None, math.inf, None) for index in batch.unplaceable())


def misfit_remedies(batch: Batch) -> tuple[Remedy, ...]:
    """Return for each task that fits nowhere the least changes with which it fits."""
    return tuple(remedy for index in batch.unplaceable() for remedy in _remedies(batch.gpu, index, batch.tasks[index]))


def _needed(requirements: Requirements, index: int) -> tuple[Requirement, ...]:
    must_run, *details = requirements.of_task(index)
    gpu = requirements.batch.gpu
    kept = frozenset((must_run, *details))
    for detail in details:
        if not _fits(gpu, requirements.kept_task(must_run, kept - {detail})):
            kept -= {detail}
    return requirements.ordered(kept)


def _remedies(gpu: GpuModel, index: int, task: Task) -> Iterator[Remedy]:
    assert task.memory_gb is not None, "only memory keeps a task from the sizes that it has a time for"
    profiles = gpu.profiles_of("double-memory")
    most = max(profile.memory_gb for profile in profiles if profile.compute_slices in task.times)
    yield Remedy(f"tasks[{index}].memory_gb", f"task {task.name!r} with at most {most:.12g} GB", None)
    enough = [profile for profile in profiles if profile.memory_gb >= task.memory_gb]
    if enough:
        least = min(enough, key=_smallness)
        slices = f"{least.compute_slices} slice{'s' * (least.compute_slices > 1)}"
        text = f"a time for task {task.name!r} on {slices}: {least.name} has {least.memory_gb:.12g} GB"
        yield Remedy(f"tasks[{index}].times.{least.compute_slices}", text, None)
    larger = [
        (model.memory_gb, model.name, profile)
        for model in catalogue()
        for profile in model.profiles_of("double-memory")
        if task.time_on(profile) is not None
    ]
    if larger:
        _, name, profile = min(larger, key=lambda entry: (entry[0], _smallness(entry[2]), entry[1]))
        yield Remedy("gpu", f"the GPU {name}, where task {task.name!r} fits into {profile.name}", None)


def _smallness(profile: Profile) -> tuple[int, float]:
    return profile.compute_slices, profile.memory_gb


def _fits(gpu: GpuModel, task: Task) -> bool:
    return any(task.time_on(profile) is not None for profile in gpu.profiles_of("double-memory"))
