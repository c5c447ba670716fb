"""Outlook: an order of all jobs that wait, long and short, and when the last of them would end by it.

Short jobs first is best for the mean flow time, long jobs first for the makespan. In between are orders in which short
jobs go first, and a long one when it has to begin to end by a target: *just in time*, or earlier by some margin.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mig_opt.heuristics.fleet.plans.list_decoder import (
    DecoderProblem,
    Floats,
    Integers,
    JobList,
    Objective,
    PlanSums,
    Workspace,
    decode_each,
)

AREA_WEIGHTS = (1.0, 0.5, 0.0)
"""Weights of areas in the simple lists."""

_MARGINS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.6)  # shares of the target by which long jobs begin earlier than just in time
_ANY_S = 1e300  # seconds after every end


@dataclass(frozen=True, slots=True)
class Coming:
    """Knowledge and expectations beside the jobs that are looked at."""

    horizon: float  # seconds before which what runs and what waits cannot be done
    arrivals: float  # jobs expected to arrive until then
    further: float  # seconds for which jobs that are yet to arrive are expected to keep the whole fleet busy
    others: float = 0.0  # jobs that wait and are not looked at


@dataclass(frozen=True, slots=True)
class Stakes:
    """Worth of ends to somebody, in seconds of one job of the mean weight that ends later."""

    last: float  # a second by which the last job of all ends later
    beyond: float  # besides, a second by which it ends after the target
    tolerance: float  # share by which the target is later than the earliest last end that was found
    tardiness: float  # seconds of the mean end that a second of the mean tardiness counts
    balance: float | None = None  # in place of ``last`` and ``beyond``: weight of the last end, 1 less that of the mean

    def objective(self, jobs: int, coming: Coming, others: float, horizon: float) -> Objective:
        """Return the objective of a plan for some jobs, beside others that wait."""
        later = coming.arrivals / 2 + others
        # Later jobs fill the gaps at the end of a plan.
        share = 1 + coming.arrivals + others
        if self.balance is not None:
            balance = self.balance / share
            beyond = max(0.0, min(1.0, 2 / jobs) * self.balance - balance)
        else:
            balance = self.last / share / (self.last / share + jobs)
            beyond = (1 - balance) * self.beyond / jobs
        return Objective(balance, later, horizon, beyond, self.tardiness)


def simple_lists(arrays: DecoderProblem, arrival: Integers) -> list[JobList]:
    """Return the jobs as they are (short ones first), in the order of arrival, and long ones first."""
    offsets, area = arrays.jobs.offsets, arrays.jobs.area
    short = np.arange(len(arrival))
    free = np.full(len(arrival), -1)
    smallest = np.array([area[begin:end].argmin() for begin, end in itertools.pairwise(offsets.tolist())])
    return [
        JobList(order, modes, weight)
        for order in (short, arrival, short[::-1].copy())
        for modes, weight in (*((free, weight) for weight in AREA_WEIGHTS), (smallest, 1.0))
    ]


class Outlook:
    """Orders of all jobs that wait, decoded to their ends.

    The first ``urgent`` jobs stay first; the others are given by length for their weight. ``earliest`` is the least
    seconds until the last end in any of the orders.
    """

    def __init__(
        self, arrays: DecoderProblem, urgent: int, arrival: Integers, further: float, workspace: Workspace
    ) -> None:
        jobs = arrays.jobs
        self._urgent, count = urgent, len(arrival)
        self._free = np.full(count, -1)
        begins = jobs.offsets[:-1]
        fastest = np.minimum.reduceat(jobs.seconds, begins)
        best = np.minimum.reduceat(jobs.area, begins)
        # Seconds on the size that takes least of the fleet, of equals on the fastest.
        ample = np.where(jobs.area <= np.repeat(best, np.diff(jobs.offsets)) * (1 + 1e-9), jobs.seconds, _ANY_S)
        lengths = (fastest, np.minimum.reduceat(ample, begins))
        short = JobList(np.arange(count), self._free, 1.0)
        found = decode_each(arrays, [short], workspace)
        turns = np.empty(count)
        turns[short.order] = workspace.begin[:count]
        lists = [self._list(arrival.astype(float), 1.0)]
        lists += [self._list(-length, weight) for length in lengths for weight in AREA_WEIGHTS]
        found += decode_each(arrays, lists, workspace)
        self.earliest = min(sums.last for sums in found)
        known = self.earliest if self.earliest < np.inf else arrays.objective.horizon
        target = known + further
        timely = [
            self._list(np.minimum(turns, target * (1 - margin) - length), 1.0)
            for margin in _MARGINS
            for length in lengths
        ]
        found += decode_each(arrays, timely, workspace)
        self.earliest = min(self.earliest, *(sums.last for sums in found))
        self.lists: list[tuple[JobList, PlanSums]] = list(zip([short, *lists, *timely], found, strict=True))

    def _list(self, keys: Floats, area_weight: float) -> JobList:
        keys[: self._urgent] = -np.inf
        return JobList(np.argsort(keys, kind="stable"), self._free, area_weight)
