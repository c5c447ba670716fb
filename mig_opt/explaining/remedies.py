"""Single changes of a batch that make its target possible."""

from __future__ import annotations

from collections.abc import Iterator

from mig_opt.batch.bounds import best_lower_bound
from mig_opt.explaining.explanation import Remedy
from mig_opt.explaining.oracle import Clock, Kept, Oracle
from mig_opt.explaining.requirements import RequirementKind
from mig_opt.registry import AUTO

_MOST_TASKS = 8
"""Tasks for which it is tried whether leaving them out helps, those with the most work first."""

_MOST_GPUS = 64
"""GPUs that are added at most."""

_MOST_RUNS = 2000
"""Tasks times GPUs up to which an exact method is worth its model."""

_SHARE = 4
"""One question may take this part of the time that is left."""


def remedies(oracle: Oracle, core: Kept, seconds: float) -> Iterator[Remedy]:
    """Yield changes with which a schedule of the whole batch was found in time.

    Only what is in the conflict can help: the conflict stays with whatever else is changed.

    Parameters
    ----------
    oracle : Oracle
        Answers for the batch.
    core : frozenset of Requirement
        The conflict.
    seconds : float
        For all of them together.
    """
    requirements = oracle.requirements
    clock = Clock(seconds)
    if requirements.gpus in core:
        yield from _more_gpus(oracle, clock)
    rest = [entry for entry in core if entry.kind not in (RequirementKind.GPUS, RequirementKind.TASK)]
    tasks = sorted((entry for entry in core if entry.kind is RequirementKind.TASK), key=requirements.work)
    for requirement in (*requirements.ordered(rest), *tasks[: -_MOST_TASKS - 1 : -1]):
        if not clock.remaining:
            return
        kept = requirements.all - requirements.with_implied([requirement])
        answer = oracle.decide(kept, clock.remaining / _SHARE)
        if answer.possible:
            makespan = None if answer.schedule is None else answer.schedule.makespan
            yield Remedy(requirement.path, requirement.dropped, makespan)


def _more_gpus(oracle: Oracle, clock: Clock) -> Iterator[Remedy]:
    """Yield a number of GPUs with which a schedule in time is found, if there is one: seldom more than needed."""
    batch, target = oracle.requirements.batch, oracle.requirements.target
    most = batch.gpus + min(_MOST_GPUS, len(batch.tasks))
    low, high = batch.gpus + 1, most
    while low < high:  # the least number that no bound rules out
        middle = (low + high) // 2
        if best_lower_bound(batch.replace(gpus=middle)) > target:
            low = middle + 1
        else:
            high = middle
    for gpus in range(low, most + 1):
        if not clock.remaining:
            return
        larger = batch.replace(gpus=gpus)
        exact = gpus * len(batch.tasks) <= _MOST_RUNS
        answer = oracle.answer(larger, clock.remaining / _SHARE, method=AUTO if exact else "far")
        if answer.possible and answer.schedule is not None:
            yield Remedy("gpus", f"{gpus} x {batch.gpu.name}", answer.schedule.makespan)
            return
