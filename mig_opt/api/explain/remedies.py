"""Remedies: single changes of a batch that make its target possible, or let a task that fits nowhere run."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator

from mig_opt.api.explain.conflicts import Kept, Oracle
from mig_opt.api.explain.explanation import Conflict, Remedy
from mig_opt.api.explain.requirements import Requirement, RequirementKind, Requirements
from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.gpu.catalogue import catalogue
from mig_opt.gpu.model import GpuModel, Profile
from mig_opt.method.registry import AUTO

_MOST_TASKS = 8
"""Tasks for which it is tried whether leaving them out helps, those with the most work first."""

_MOST_GPUS = 64
"""GPUs that are added at most."""

_MOST_RUNS = 2000
"""Tasks times GPUs up to which an exact method is worth its model."""

_SHARE = 4
"""One question may take this part of the time that is left."""


def remedies(oracle: Oracle, core: Kept, seconds: float) -> Iterator[Remedy]:
    """Yield changes with which a schedule of the whole batch was found in time, all of them within ``seconds``.

    Only what is in the conflict (``core``) can help: the conflict stays with whatever else is changed.
    """
    requirements = oracle.requirements
    end = oracle.limits.clock + seconds
    if requirements.gpus in core:
        yield from _more_gpus(oracle, end)
    rest = [entry for entry in core if entry.kind not in (RequirementKind.GPUS, RequirementKind.TASK)]
    tasks = sorted((entry for entry in core if entry.kind is RequirementKind.TASK), key=requirements.work)
    for requirement in (*requirements.ordered(rest), *tasks[: -_MOST_TASKS - 1 : -1]):
        if not oracle.limits.left_until(end):
            return
        kept = requirements.all - requirements.with_implied([requirement])
        answer = oracle.decide(kept, oracle.limits.left_until(end) / _SHARE)
        if answer.possible:
            makespan = None if answer.schedule is None else answer.schedule.makespan
            yield Remedy(requirement.path, requirement.dropped, makespan)


def _more_gpus(oracle: Oracle, end: float) -> Iterator[Remedy]:
    """Yield a number of GPUs with which a schedule in time is found, if there is one: seldom more than needed."""
    batch, target = oracle.requirements.batch, oracle.requirements.target
    most = batch.gpus + min(_MOST_GPUS, len(batch.tasks))
    more = range(batch.gpus + 1, most + 1)
    # From the least number on that no bound rules out, or else the last one.
    least = bisect.bisect_left(more[:-1], True, key=lambda gpus: best_lower_bound(batch.replace(gpus=gpus)) <= target)
    for gpus in more[least:]:
        if not oracle.limits.left_until(end):
            return
        larger = batch.replace(gpus=gpus)
        exact = gpus * len(batch.tasks) <= _MOST_RUNS
        answer = oracle.answer(larger, oracle.limits.left_until(end) / _SHARE, method=AUTO if exact else "far")
        if answer.possible and answer.schedule is not None:
            yield Remedy("gpus", f"{gpus} x {batch.gpu.name}", answer.schedule.makespan)
            return


def misfit_conflicts(batch: Batch) -> tuple[Conflict, ...]:
    """Return for each task that fits nowhere what together keeps it from running."""
    requirements = Requirements(batch, math.inf)
    profiles = batch.gpu.profiles_of("double-memory")

    def needed(index: int) -> tuple[Requirement, ...]:
        must_run, *details = requirements.of_task(index)
        kept = frozenset((must_run, *details))
        for detail in details:
            task = requirements.kept_task(must_run, kept - {detail})
            if all(task.time_on(profile) is None for profile in profiles):
                kept -= {detail}
        return requirements.ordered(kept)

    return tuple(Conflict(needed(index), (), None, math.inf, None) for index in batch.unplaceable())


def misfit_remedies(batch: Batch) -> tuple[Remedy, ...]:
    """Return for each task that fits nowhere the least changes with which it fits."""
    return tuple(remedy for index in batch.unplaceable() for remedy in _remedies(batch.gpu, index, batch.tasks[index]))


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
