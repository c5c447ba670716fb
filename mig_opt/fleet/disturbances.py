"""Harder traces: jobs that crash or end early, GPUs that leave and return, bursts, unknown run times.

Disturbances and the errors of declared run times, which schedulers are told where nobody knows how long jobs run, are
drawn at random.
"""

from __future__ import annotations

import dataclasses
import random
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Annotated

from mig_opt.errors import InputError, Problem, nearest, raise_any
from mig_opt.fleet.job import Job, profiles_on, with_each_time, work_of
from mig_opt.fleet.trace import Outage, Trace
from mig_opt.rules import Checked, wrong_class, wrong_integer, wrong_number
from mig_opt.rules.vocabulary import Number, Seconds, Share, TimesByKind, Whole

MOST_OUTAGES = 100_000
"""Number of outages that are drawn at most; more are taken for a slip of the pen."""

NAMED_KNOWLEDGE = ("classes", "one")
"""Kinds of knowledge that have names; the others are errors of some sigma."""

MOST_SIGMA = 5.0
"""Largest standard deviation of the logarithm of an error: one job in six is declared 150 times too long then."""

_WANTED = f"a number from 0 to {MOST_SIGMA:g}, or one of {', '.join(NAMED_KNOWLEDGE)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbances(Checked):
    """Disturbances of each kind, by default none.

    Attributes
    ----------
    crashes : float
        Share of the attempts that crash, each after a share of its work that is drawn evenly; below 1.
    early : float
        Share of the jobs that end early: what they take is an evenly drawn share of what is declared, which is what
        they declared before or took.
    uptime : float, optional
        Mean seconds from the start, or the return of a GPU, until it leaves (exponential). By default none leaves.
    downtime : float
        Mean seconds until it returns (exponential).
    burst : int
        Number of successive jobs that arrive together, when the first of them does.

    Raises
    ------
    InputError
        With every figure that is wrong.

    Examples
    --------
    >>> from mig_opt import generate_trace
    >>> trace = Disturbances(crashes=0.5, uptime=100, burst=2).applied_to(generate_trace("normal-25", jobs=4), seed=3)
    >>> [(job.arrival, len(job.crashes)) for job in trace.jobs]
    [(16.998, 2), (16.998, 2), (42.983, 0), (42.983, 0)]
    >>> [outage.gpu for outage in trace.outages]
    [0, 1, 2, 3]
    """

    crashes: Annotated[float, Number(at_least=0, below=1, words="a share from 0 to below 1")] = 0.0
    early: Share = 0.0
    uptime: Seconds | None = None
    downtime: Seconds = 600.0
    burst: Annotated[int, Whole(1, 10**9)] = 1

    def applied_to(self, trace: Trace, *, seed: int = 0) -> Trace:
        """Return a trace with these disturbances beside those that it has.

        Outages begin until twice the time that the work would take if the GPUs ran one job each. They take the place of
        those of the trace.

        Raises
        ------
        InputError
            If the seed is wrong, or there would be too many outages.
        """
        raise_any(wrong_integer("seed", seed, 0, 2**63 - 1))
        draw = random.Random(seed)
        jobs = [self._disturbed(job, draw) for job in trace.jobs]
        if self.burst > 1:
            firsts = (jobs[index - index % self.burst].arrival for index in range(len(jobs)))
            jobs = [dataclasses.replace(job, arrival=arrival) for job, arrival in zip(jobs, firsts, strict=True)]
        outages = trace.outages if self.uptime is None else tuple(self._outages(trace, self.uptime, draw))
        return trace.replace(jobs=tuple(jobs), outages=outages)

    def _disturbed(self, job: Job, draw: random.Random) -> Job:
        crashes = list(job.crashes)
        while draw.random() < self.crashes:
            crashes.append(min(max(draw.random(), 1e-6), 1 - 1e-6))
        if draw.random() >= self.early:
            return dataclasses.replace(job, crashes=tuple(crashes))
        share, declared = max(draw.random(), 1e-3), job.declared or job.times
        times = with_each_time(declared, lambda seconds: seconds * share)
        return dataclasses.replace(job, times=times, declared=declared, crashes=tuple(crashes))

    def _outages(self, trace: Trace, uptime: float, draw: random.Random) -> Iterator[Outage]:
        until = trace.jobs[-1].arrival + 2 * sum(job.work for job in trace.jobs) / trace.gpus
        expected = trace.gpus * until / (uptime + self.downtime)
        if expected > MOST_OUTAGES:
            raise InputError([Problem("uptime", f"is too short: about {expected:.0f} outages, {MOST_OUTAGES} at most")])
        for gpu in range(trace.gpus):
            begin = draw.expovariate(1 / uptime)
            while begin < until:
                end = begin + draw.expovariate(1 / self.downtime)
                if end > begin:
                    yield Outage(gpu, begin, end)
                begin = end + draw.expovariate(1 / uptime)


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
