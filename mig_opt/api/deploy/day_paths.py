"""A first plan for a day: the cheapest path through deployments that are good for some steps in a row.

For each step, and for the greatest rates of several steps in a row, there is a deployment of least cost. Each of them
may be used in every step whose rates it serves. The path through the steps that costs least in GPUs and new segments,
by their numbers alone, is found by dynamic programming.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mig_opt.models.serving.day_counts import Counts, DayProblem
from mig_opt.serving.covers import assembled
from mig_opt.serving.demand import ENOUGH, Demand
from mig_opt.serving.deployment import Deployment

_LENGTHS = (2, 3, 4, 6, 8, 12, 16, 24)  # steps in a row


def counts_of(problem: DayProblem, deployment: Deployment) -> Counts:
    """Return the numbers of segments of a deployment by service and kind."""
    kinds = {
        (service, problem.pools[option.pool].kind.name, option.profile.name): kind
        for service, ways in problem.ways.items()
        for kind, option in ways
    }
    names = [deployment.model(segment.gpu).name for segment in deployment.segments]
    return Counter(
        (segment.service, kinds[segment.service, name, segment.profile])
        for segment, name in zip(deployment.segments, names, strict=True)
    )


def packed(problem: DayProblem, counts: Counts) -> Deployment:
    """Return a deployment with given numbers of segments of each service and kind, packed on few GPUs."""
    kinds = range(problem.kinds.count)
    rows = [[counts.get((service.name, kind), 0) for kind in kinds] for service in problem.peak.services]
    return assembled(problem.peak, problem.kinds, np.array(rows, dtype=np.int64))


class Pool:
    """Numbers of segments of deployments, each with the cost of its GPUs; first of all none on none."""

    def __init__(self, problem: DayProblem) -> None:
        self._problem = problem
        self._keys = sorted(problem.most)
        self._costs = {(0,) * len(self._keys): 0.0}

    def add(self, deployment: Deployment) -> None:
        """Add the numbers of segments of a deployment, and what its GPUs cost."""
        counts = counts_of(self._problem, deployment)
        row = tuple(counts.get(key, 0) for key in self._keys)
        cost = deployment.cost(self._problem.peak)
        self._costs[row] = min(self._costs.get(row, cost), cost)

    def add_longer(self, fewest: Callable[[Demand], Deployment | None], *, enough: Callable[[], bool]) -> None:
        """Add deployments for several steps in a row, until that is ``enough``.

        Longer and longer rows are tried, as long as they cost no more than their steps do.
        """
        steps = self._problem.day.steps
        for begin in range(steps):
            for length in _LENGTHS:
                row = range(begin, begin + length)
                if row.stop > steps or enough():
                    break
                demand = self._problem.day.peak(row)
                found = None if demand is None else fewest(demand)
                most = float(max(self._problem.least[step] for step in row))
                if found is None or found.cost(self._problem.peak) > most:
                    break
                self.add(found)

    def path(self) -> list[Counts]:
        """Return the numbers of segments for each step that cost least together."""
        problem, keys = self._problem, self._keys
        rows = np.array(list(self._costs), dtype=np.int64).reshape(len(self._costs), len(keys))
        costs = np.array(list(self._costs.values()), dtype=float)
        created = np.maximum(rows[None] - rows[:, None], 0).sum(axis=2) * float(problem.creation_price)
        cost = np.zeros(len(rows))
        back: list[npt.NDArray[np.int64]] = []
        for step in range(problem.day.steps):
            if step:
                together = cost[:, None] + created
                back.append(together.argmin(axis=0))
                cost = together.min(axis=0)
            cost = cost + np.where(self._serves(rows, step), costs * float(problem.day.hours[step]), np.inf)
        chosen = [int(cost.argmin())]
        for best in reversed(back):
            chosen.append(int(best[chosen[-1]]))
        return [
            {key: int(number) for key, number in zip(keys, rows[at], strict=True) if number} for at in reversed(chosen)
        ]

    def _serves(self, rows: npt.NDArray[np.int64], step: int) -> npt.NDArray[np.bool_]:
        """Return which rows serve a step, and no service without requests."""
        good = np.ones(len(rows), dtype=bool)
        services = {service.name: service for service in self._problem.services(step)}
        for name, ways in self._problem.ways.items():
            columns = [at for at, (service, _) in enumerate(self._keys) if service == name]
            own, service = rows[:, columns], services.get(name)
            if service is None:
                good &= ~own.any(axis=1)
                continue
            throughputs = dict(ways)
            each = np.array([throughputs[self._keys[at][1]].point.throughput for at in columns])
            good &= own @ each >= service.rate * ENOUGH
            good &= own.sum(axis=1) >= service.min_replicas
        return good
