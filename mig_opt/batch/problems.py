"""Problems of batches, traces and states: what their values have to do with each other that is wrong.

Values are checked before they are made into objects of the domain: None stands for one that could not be read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

from mig_opt.batch.kinds import kinds_named, own_table, times_on
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.catalogue import KnownName, with_mig
from mig_opt.gpu.model import GpuModel, OperationCosts, Placement
from mig_opt.gpu.pools import Pool, pool_problems
from mig_opt.gpu.problems import operation_problems, wrong_size
from mig_opt.rules.vocabulary import MOST_GPUS

NO_COUNT = 'is missing; add how many GPUs there are, for example "count": 2'
"""Message that a pool of a batch has no number of GPUs."""

NO_GPU = 'is missing; add it, for example "gpu": "A100-40GB", or several kinds of GPUs as "pools"'
"""Message that a batch names no GPU."""

LONGEST_TOTAL = 1e300
"""Seconds that the times of a batch may add up to: sums and areas of schedules are then numbers that computers have."""


def gpus_problems(gpu: GpuModel | None, gpus: int | None, pools: Sequence[Pool | None]) -> Iterator[Problem]:
    """Yield what is wrong with the GPUs of a batch or a trace: one kind and a number, or pools, but not both."""
    if gpu and pools:
        yield Problem("pools", 'name the GPUs, and so does "gpu"; keep one of them')
    total = sum((pool and pool.count) or 0 for pool in pools)
    if pools and all(pool and pool.count for pool in pools) and gpus not in (None, 1, total):
        yield Problem("gpus", f"is {gpus}, but the pools have {total}; leave it out")
    if total > MOST_GPUS:
        yield Problem("pools", f"have {total} GPUs; there may be {MOST_GPUS}")
    yield from pool_problems(pools)


def costs_problems(kinds: Sequence[GpuModel], costs: OperationCosts | None) -> Iterator[Problem]:
    """Yield what is wrong with the costs of operations of a batch or a trace; none are those of the GPU.

    With several kinds of GPUs they are by kind, but for those without MIG.
    """
    if costs is None or not (costs.create or costs.destroy):
        return
    tables: dict[str, Any] = {"create": costs.create or {}, "destroy": costs.destroy or {}}
    if all(isinstance(name, int) for table in tables.values() for name in table) and len(kinds) == 1:
        yield from operation_problems(kinds[0], costs)
        return
    for key, table in tables.items():
        if any(isinstance(name, int) for name in table):
            message = f'do not say for which kind of GPU; give them by kind: {{"{kinds[0].name}": {{...}}, ...}}'
            yield Problem(f"operations.{key}", message)
        else:
            yield from other_kinds(f"operations.{key}", table, kinds)
    for gpu in kinds if all(isinstance(name, str) for table in tables.values() for name in table) else ():
        own = {key: own_table(table, gpu) for key, table in tables.items()}
        for key, found in own.items():
            if not found and gpu.mig:
                yield Problem(f"operations.{key}", f"has no seconds for {gpu.name}; add them")
        if all(own.values()):
            yield from (problem.below("operations") for problem in operation_problems(gpu, SimpleNamespace(**own), ""))


def other_kinds(path: str, table: Mapping[Any, Any], kinds: Sequence[GpuModel]) -> Iterator[Problem]:
    """Yield a problem for each name of a kind of GPU that is not there."""
    for name, own in table.items():
        if own is not None and not kinds_named(name, kinds):  # None has been reported
            known = dict.fromkeys(known for gpu in kinds for known in (with_mig(gpu).name, gpu.name))
            other = f"there is no such GPU, only {', '.join(known)}; add a pool, or leave it out"
            yield Problem(f"{path}.{name}", KnownName().wrong(name) or other)


def total_problems(
    tasks: Sequence[Any], operations: OperationCosts | None, initial: Sequence[Any]
) -> Iterator[Problem]:
    """Yield a problem for the first time that is too long, with those before it, to be added up."""
    times = [
        (f"tasks[{index}].times{path}", seconds)
        for index, task in enumerate(tasks)
        if task is not None and task.times
        for path, seconds in [_longest(task.times)]
    ]
    times += [(f"initial[{index}].free", live.free) for index, live in enumerate(initial) if live is not None]
    tables = (operations.create, operations.destroy) if operations else ()
    each = sum(_longest(costs)[1] if costs else 0.0 for costs in tables)
    times += [("operations", (len(tasks) + len(initial)) * each)]
    total = 0.0
    for path, seconds in times:
        total += seconds or 0.0
        if LONGEST_TOTAL < total < math.inf:
            message = f"{seconds:g} s makes all times add up to more than {LONGEST_TOTAL:g} s; give shorter ones"
            yield Problem(path, f"{message}, and leave out the sizes on which a task is not to run")
            return


def _longest(table: Mapping[Any, Any]) -> tuple[str, float]:
    """Return the largest figure of a table by size, or by kind and size, with the end of its path."""
    if next(iter(table)).__class__ is str:
        found = ((f".{kind}{path}", figure) for kind, own in table.items() if own for path, figure in [_longest(own)])
        return max(found, key=lambda entry: entry[1], default=("", 0.0))
    size, figure = max(table.items(), key=lambda entry: entry[1] or 0.0)
    return f".{size}", figure or 0.0


def repeated_names(key: str, entries: Sequence[Any]) -> Iterator[Problem]:
    """Yield a problem for each entry of the list ``key`` that is called like an earlier one; None is one not read."""
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry is None or entry.name is None:
            continue
        other = first.setdefault(entry.name, index)
        if other != index:
            message = f"{entry.name!r} is the name of {key}[{other}] already; give each {key[:-1]} its own"
            yield Problem(f"{key}[{index}].name", message)


def task_problems(kinds: Sequence[GpuModel], task: Any, path: str) -> Iterator[Problem]:
    """Yield what is wrong with the times and the memory of a task on some kinds of GPUs."""
    times: Mapping[Any, Any] = task.times or {}
    yield from times_problems(kinds, times, f"{path}.times")
    yield from _memory_problems(kinds, task, path)


def times_problems(kinds: Sequence[GpuModel], times: Mapping[Any, Any], path: str) -> Iterator[Problem]:
    """Yield what is wrong with times on some kinds of GPUs."""
    if next(iter(times), 0).__class__ is str:
        yield from _kinds_problems(kinds, times, path)
    elif len(kinds) > 1 and times:
        example = f'{{"{kinds[0].name}": {{...}}, "{kinds[1].name}": {{...}}}}'
        yield Problem(path, f"do not say on which kind of GPU; give them by kind: {example}")
    elif not times.keys() <= set(kinds[0].sizes):
        for size in times:
            yield from wrong_size(f"{path}.{size}", with_mig(kinds[0]), size)
    if len(kinds) == 1 and not kinds[0].mig and times and not times_on(times, kinds[0]):
        yield Problem(path, f"have none for size {kinds[0].sizes[-1]}: with MIG off there is only the whole GPU")


def _kinds_problems(kinds: Sequence[GpuModel], times: Mapping[Any, Any], path: str) -> Iterator[Problem]:
    named = [(name, gpu, own or {}) for name, own in times.items() for gpu in kinds_named(name, kinds)]
    if times.keys() - [name for name, _, _ in named]:
        yield from other_kinds(path, times, kinds)
    for name, gpu, own in named:
        if not own.keys() <= set(gpu.sizes):
            yield from times_problems((with_mig(gpu),), own, f"{path}.{name}")
    if len(kinds) > 1 and named and not any(gpu.mig or gpu.sizes[-1] in own for _, gpu, own in named):
        whole = " or ".join(dict.fromkeys(str(gpu.sizes[-1]) for _, gpu, _ in named))
        yield Problem(path, f"have none for size {whole}: with MIG off there is only the whole GPU")


def _memory_problems(kinds: Sequence[GpuModel], task: Any, path: str) -> Iterator[Problem]:
    if task.memory_gb is not None:
        most = max(profile.memory_gb for gpu in kinds for profile in gpu.profiles)
        if task.memory_gb > most:
            name = kinds[0].name if len(kinds) == 1 else "any of the GPUs"
            message = f"{task.memory_gb:g} GB is more than any profile of {name} has (at most {most:g} GB)"
            yield Problem(f"{path}.memory_gb", message)


class Located(Protocol):
    """An instance, or an entry of a plan, that has a place on a GPU."""

    @property
    def gpu(self) -> int:
        """Index of the GPU."""

    @property
    def profile(self) -> str:
        """Profile name."""

    @property
    def start(self) -> int:
        """Start slice."""


def instance_problems(
    kinds: Mapping[GpuModel, range], key: str, instances: Sequence[Located | None]
) -> Iterator[Problem]:
    """Yield the problems that keep instances from existing together on GPUs; None is one that is not known.

    ``kinds`` are those of the GPUs with the numbers of these, ``key`` is the name of the list of instances in paths.
    """
    gpus = max(numbers.stop for numbers in kinds.values())
    placed: dict[int, dict[Placement, int]] = defaultdict(dict)
    for index, live in enumerate(instances):
        if live is None:
            continue
        path = f"{key}[{index}]"
        if live.gpu is not None and not 0 <= live.gpu < gpus:
            yield Problem(f"{path}.gpu", f"must be from 0 to {gpus - 1}, is {live.gpu}")
        if live.profile is None or live.start is None:
            continue
        kind = next((kind for kind, numbers in kinds.items() if live.gpu in numbers), next(iter(kinds)))
        try:
            placement = kind.placement(live.profile, live.start)
        except InputError as error:
            yield from (problem.below(path) for problem in error.problems)
            continue
        if live.gpu is None:
            continue
        here = placed[live.gpu]
        obstacles = placement.obstacles(here)
        for other in filter(placement.conflicts, obstacles):
            yield Problem(path, f"{placement} overlaps {other} of {key}[{here[other]}] on GPU {live.gpu}")
        if obstacles and not placement.conflicts(obstacles[0]):
            yield Problem(path, f"GPU {live.gpu} can have at most {placement.profile.max_count} of {live.profile}")
        here.setdefault(placement, index)
