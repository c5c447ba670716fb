"""Disturbances of a trace, drawn at random: jobs that crash or end early, GPUs that leave and return, bursts."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.fleet.job import Job, with_each_time
from mig_opt.fleet.trace import Outage, Trace
from mig_opt.rules import check_values, wrong_integer
from mig_opt.rules.vocabulary import Number, Seconds, Share, Whole

MOST_OUTAGES = 100_000
"""Number of outages that are drawn at most; more are taken for a slip of the pen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbances:
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

    def __post_init__(self) -> None:
        check_values(self)

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
