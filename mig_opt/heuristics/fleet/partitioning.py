"""Partitions of a fleet that stay as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mig_opt.arguments import wrong_type
from mig_opt.errors import InputError, Problem
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.model import Placement
from mig_opt.gpu.partitions import find_partition


def fleet_partitions(trace: Trace, partition: str | Sequence[str] | None = None) -> list[tuple[Placement, ...]]:
    """Return the instances that each GPU is to have.

    Parameters
    ----------
    trace : Trace
        What arrives, and the fleet.
    partition : str or sequence of str, optional
        A maximal partition for all GPUs, or one for each. By default the numbers of instances follow the seconds of
        work that the jobs ask for on each profile (those that ask for none: on their smallest): GPU after GPU gets
        the partition of the highest quotients of d'Hondt, which divides seats among parties.

    Raises
    ------
    InputError
        If there is no such partition, or not one for each GPU.

    Examples
    --------
    >>> from mig_opt import Job, get_gpu
    >>> jobs = (Job("a", 0.0, {4: 60.0}, "4g.20gb"), Job("b", 0.0, {3: 50.0}, "3g.20gb"))
    >>> [" + ".join(map(str, placed)) for placed in fleet_partitions(Trace(jobs, get_gpu("A100"), gpus=2))]
    ['4g.20gb@0 + 3g.20gb@4', '4g.20gb@0 + 3g.20gb@4']
    """
    if partition is None:
        return _by_demand(trace)
    if isinstance(partition, str):
        return [find_partition(trace.gpu, partition, "double-memory")] * trace.gpus
    if not isinstance(partition, Sequence):
        raise InputError([wrong_type("partition", partition, "a text such as '4+2+1', or a sequence of such texts")])
    found, problems = {}, []
    for index, text in enumerate(partition):
        try:
            found[index] = find_partition(trace.gpu, text, "double-memory")
        except InputError as error:
            problems += [Problem(f"partition[{index}]", problem.message) for problem in error.problems]
    if len(partition) != trace.gpus:
        problems.append(Problem("partition", f"must be one for all GPUs or one for each, has {len(partition)}"))
    if problems:
        raise InputError(problems)
    return list(found.values())


def _by_demand(trace: Trace) -> list[tuple[Placement, ...]]:
    demand: Counter[str] = Counter()
    for job in trace.jobs:
        for profile in trace.profiles(job)[:1]:
            demand[profile.name] += job.times[profile.compute_slices]  # type: ignore[assignment]  # counts seconds
    kinds: dict[tuple[str, ...], tuple[Placement, ...]] = {}
    for partition in trace.gpu.maximal_partitions("double-memory"):
        kinds.setdefault(tuple(sorted(placement.profile.name for placement in partition)), partition)
    given: Counter[str] = Counter()
    chosen = []
    for _ in range(trace.gpus):
        best = max(kinds, key=lambda names: _quotients(names, demand, given))
        given.update(best)
        chosen.append(kinds[best])
    return chosen


def _quotients(names: Sequence[str], demand: Counter[str], given: Counter[str]) -> float:
    new: Counter[str] = Counter()
    total = 0.0
    for name in names:
        new[name] += 1
        total += demand[name] / (given[name] + new[name])
    return total
