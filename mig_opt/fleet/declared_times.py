"""Declared run times that are wrong or coarse: what schedulers are told where nobody knows how long jobs run."""

from __future__ import annotations

import dataclasses
import random
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from statistics import fmean, median

from mig_opt.errors import Problem, nearest, raise_any
from mig_opt.fleet.job import Job, profiles_on, with_each_time, work_of
from mig_opt.fleet.trace import Trace
from mig_opt.rules import wrong_class, wrong_integer, wrong_number
from mig_opt.rules.vocabulary import TimesByKind

NAMED_KNOWLEDGE = ("classes", "one")
"""InstanceTypes of knowledge that have names; the others are errors of some sigma."""

MOST_SIGMA = 5.0
"""Largest standard deviation of the logarithm of an error: one job in six is declared 150 times too long then."""

_WANTED = f"a number from 0 to {MOST_SIGMA:g}, or one of {', '.join(NAMED_KNOWLEDGE)}"


def declare_times(trace: Trace, knowledge: float | str, *, seed: int = 0) -> Trace:
    """Return a trace of the same jobs, of whose run times schedulers know less.

    Parameters
    ----------
    trace : Trace
        The jobs; what they declared before is replaced.
    knowledge : float or {"classes", "one"}
        A number is the standard deviation (0 to 5) of the logarithm of an error: the times of a job are wrong by a
        random factor with median 1, the same for all sizes. With 0 they are exact, with 1 one job in two is wrong by a
        factor of 2 or more. ``classes``: for each size the mean of all jobs of the same class; these may run on the
        same profiles and use PCIe alike. ``one``: the same seconds for all jobs and all sizes, the mean of the jobs on
        the smallest size of each.
    seed : int
        Seed of the errors.

    Returns
    -------
    Trace
        With ``declared`` times for all jobs, for :func:`mig_opt.simulate`.

    Raises
    ------
    InputError
        With every problem of the arguments.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu
    >>> jobs = (Job("a", 0.0, {1: 60.0}), Job("b", 3.0, {1: 20.0}), Job("c", 5.0, {1: 10.0, 2: 6.0}))
    >>> trace = Trace(jobs, get_gpu("A30"))
    >>> [job.declared for job in declare_times(trace, "classes").jobs]
    [{1: 40.0}, {1: 40.0}, {1: 10.0, 2: 6.0}]
    >>> [job.declared for job in declare_times(trace, "one").jobs]
    [{1: 30.0}, {1: 30.0}, {1: 30.0, 2: 30.0}]
    """
    problems = [*wrong_class("trace", trace, Trace), *_knowledge_problems(knowledge)]
    raise_any([*problems, *wrong_integer("seed", seed, 0, 2**63 - 1)])
    if isinstance(knowledge, str):
        mean = fmean(job.work for job in trace.jobs)
        one = [with_each_time(job.times, lambda _: mean) for job in trace.jobs]
        declared = _means(trace) if knowledge == "classes" else one
    else:
        draw = random.Random(seed)
        factors = [draw.lognormvariate(0.0, knowledge) for _ in trace.jobs]
        declared = [with_each_time(job.times, own.__mul__) for job, own in zip(trace.jobs, factors, strict=True)]
    jobs = (dataclasses.replace(job, declared=told) for job, told in zip(trace.jobs, declared, strict=True))
    return trace.replace(jobs=tuple(jobs))


def declared_error(trace: Trace) -> float | None:
    """Return the median factor by which declared times are too long or too short; None if no job has any.

    Jobs without declared times count as exact. Of each job it is the error on the smallest size.
    """
    if all(job.declared is None for job in trace.jobs):
        return None
    factors = (1.0 if job.declared is None else work_of(job.declared) / job.work for job in trace.jobs)
    return median(max(factor, 1 / factor) for factor in factors)


def _knowledge_problems(knowledge: float | str) -> Iterator[Problem]:
    if not isinstance(knowledge, str):
        wrong = list(wrong_number("knowledge", knowledge, _WANTED, at_least=0))
        yield from wrong
        if not wrong and knowledge > MOST_SIGMA:
            yield Problem("knowledge", f"must be {_WANTED}, is {knowledge:g}")
    elif knowledge not in NAMED_KNOWLEDGE:
        yield Problem("knowledge", f"must be {_WANTED}, is {knowledge!r:.60}; {nearest(knowledge, NAMED_KNOWLEDGE)}")


def _means(trace: Trace) -> list[TimesByKind]:
    members: dict[Hashable, list[Job]] = defaultdict(list)
    for job in trace.jobs:
        members[_class_of(trace, job)].append(job)
    means = {own: _mean([job.times for job in jobs]) for own, jobs in members.items()}
    return [means[_class_of(trace, job)] for job in trace.jobs]


def _class_of(trace: Trace, job: Job) -> Hashable:
    """Return what can be seen of a job before it runs: sizes, profiles with enough memory, its use of PCIe."""
    known = [(kind.name, tuple(own.times), profiles_on(kind, own)) for kind in trace.kinds if (own := job.on(kind))]
    return tuple(known), job.pcie_gbps, job.sensitivity


def _mean(tables: Sequence[TimesByKind]) -> TimesByKind:
    first = tables[0]
    return {
        key: _mean(column) if isinstance(column[0], Mapping) else fmean(column)
        for key in first
        for column in [[table[key] for table in tables]]
    }
