"""Simulations that tell whether deployments keep a promise to the requests."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mig_opt.serving.arrivals import ArrivalKind
from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.deployment import Deployment
from mig_opt.simulation.serving.capacity import Promise
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.simulation.serving.requests import simulate_requests

_LEAST_REQUESTS, _MOST_REQUESTS, _LEAST_SECONDS = 100_000, 5_000_000, 30.0
"""Requests of the rarest service in the simulation of a deployment, requests of all, and its seconds."""
_LEAST_BURSTS = 120
"""Bursts of such a simulation at least, where requests come in bursts: late requests come with a few of them."""
_SURE, _HOPELESS, _LONGER = 0.2, 3.0, 10
"""Services that have more and less of the late requests that are allowed than so many times are simulated again, for so
many times as long: most are far from the limit, and those that are near it differ from one short run to the next."""
_STEP, _SMALLEST_STEP, _STEEPNESS = 0.995, 0.9, 0.1
"""Where a simulation says that capacities are too large they are multiplied by the ratio of the share that may be late
to the one that is, to the power of the third figure, within the first two."""
_VALIDATION, _REPORT = 1_000_003, 2_000_003
"""Added to the seed of the simulations that decide, and of those that are shown."""


class PromiseTrials:
    """Simulations of deployments, with other random numbers than those that capacities are found with.

    Parameters
    ----------
    promise : Promise
        What is promised.
    seed : int
        Seed of the run.
    """

    def __init__(self, promise: Promise, seed: int) -> None:
        self._promise, self._seed = promise, seed

    def late(self, demand: Demand, deployment: Deployment) -> dict[str, float]:
        """Return the late share of each service that breaks the promise, at rates that are higher by its reserve."""
        allowed, reserve = self._promise.allowed, self._promise.reserve
        first = {one.name: one.late_share for one in self._simulated(demand, deployment, reserve).services}
        if max(first.values()) < _HOPELESS * allowed:
            near = [one for one in demand.services if first[one.name] > _SURE * allowed]
            longer = (
                self._simulated(demand, deployment, reserve, services=near, longer=_LONGER).services if near else ()
            )
            first = {one.name: one.late_share for one in longer}
        return {name: share for name, share in first.items() if share > allowed + 1e-12}

    def factor(self, late_share: float) -> float:
        """Return what to multiply capacities by with which so large a share of the requests is late."""
        step = math.pow(self._promise.allowed / late_share, _STEEPNESS)
        return min(max(step, _SMALLEST_STEP), _STEP)

    def shown(self, demand: Demand, deployment: Deployment) -> RequestSimulation:
        """Return a simulation at the rates of the services, for the result."""
        bursty = self._promise.arrivals.kind == ArrivalKind.BURSTY
        return self._simulated(demand, deployment, 0.0, longer=_LONGER if bursty else 1, seed=_REPORT)

    def _simulated(
        self,
        demand: Demand,
        deployment: Deployment,
        reserve: float,
        *,
        services: Sequence[Service] = (),
        longer: int = 1,
        seed: int = _VALIDATION,
    ) -> RequestSimulation:
        """Simulate a deployment, all or some services, at rates that are higher by a reserve."""
        services = services or demand.services
        rates = [service.rate for service in services]
        arrivals = self._promise.arrivals
        bursty = arrivals.kind == ArrivalKind.BURSTY
        least = _LEAST_BURSTS * arrivals.burst_seconds / arrivals.burst_share if bursty else 0.0
        seconds = max(_LEAST_REQUESTS / min(rates), _LEAST_SECONDS)
        return simulate_requests(
            demand.replace(services=tuple(services)).with_headroom(reserve),
            deployment,
            arrivals=arrivals,
            router=self._promise.router,
            batching=self._promise.batching,
            seconds=max(min(seconds, _MOST_REQUESTS / sum(rates)), _LEAST_SECONDS, least) * longer,
            seed=self._seed + seed,
        )
