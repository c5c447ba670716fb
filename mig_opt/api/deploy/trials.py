"""Simulations that tell whether deployments keep a promise to the requests."""

from __future__ import annotations

import math
from functools import cache

from mig_opt.serving.arrivals import ArrivalKind
from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.deployment import Deployment
from mig_opt.simulation.serving.capacity import Promise, late_share
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.simulation.serving.requests import simulate_requests, workers_of

_LEAST_REQUESTS, _LEAST_SECONDS = 400_000, 30.0
"""Requests of each service in the simulation of a deployment, and its seconds."""
_LEAST_BURSTS = 120
"""Bursts of such a simulation at least, where requests come in bursts: late requests come with a few of them."""
_SURE, _HOPELESS, _LONGER = 0.2, 3.0, 10
"""Least and greatest multiple of the allowed late share with which a service is simulated again, and how many times as
long: most are far from the limit, and those near it differ from one short run to the next."""
_STEP, _SMALLEST_STEP, _STEEPNESS = 0.995, 0.9, 0.1
"""Greatest and least factor for capacities that a simulation shows to be too large, and the power to which the ratio of
the share that may be late to the one that is gives the factor."""
_MOST_SHOWN = 5_000_000, 50_000_000
"""Requests of all services in the simulation that is shown, and where they come in bursts."""
_MOST_REQUESTS = 100_000_000
"""Requests of any simulation: at millions a second it takes fewer seconds, and fewer bursts."""
_VALIDATION, _REPORT = 1_000_003, 2_000_003
"""Numbers that are added to the seed of the simulations that decide, and of those that are shown."""


class PromiseTrials:
    """Simulations of deployments, with other random numbers than those that capacities are found with.

    Services do not depend on each other, so each is simulated by itself, and once for all deployments in which it has
    the same segments.
    """

    def __init__(self, promise: Promise, seed: int) -> None:
        self._promise, self._seed = promise, seed
        self.shown = cache(self._simulated)  # made once
        bursty = promise.arrivals.kind == ArrivalKind.BURSTY
        self._bursts_seconds = promise.arrivals.burst_seconds / promise.arrivals.burst_share if bursty else 0.0

    def late(self, demand: Demand, deployment: Deployment) -> dict[str, float]:
        """Return the late share of each service that breaks the promise, at rates that are higher by its reserve.

        Where none does, those that break it in the simulation that is shown.
        """
        allowed = self._promise.allowed
        found = {one.name: self._late_share(demand, deployment, one) for one in demand.services}
        if max(found.values()) < _HOPELESS * allowed:
            near = [one for one in demand.services if found[one.name] > _SURE * allowed]
            found = {one.name: self._late_share(demand, deployment, one, longer=_LONGER) for one in near}
        if max(found.values(), default=0.0) <= allowed + 1e-12:
            found = {one.name: one.late_share for one in self.shown(demand, deployment).services}
        return {name: share for name, share in found.items() if share > allowed + 1e-12}

    def factor(self, late_share: float) -> float:
        """Return the factor for capacities with which a share of the requests is late."""
        step = math.pow(self._promise.allowed / late_share, _STEEPNESS)
        return min(max(step, _SMALLEST_STEP), _STEP)

    def _simulated(self, demand: Demand, deployment: Deployment) -> RequestSimulation:
        """Return a simulation at the rates of the services, for the result."""
        rates = [service.rate for service in demand.services]
        bursts, total = _LEAST_BURSTS * self._bursts_seconds, sum(rates)
        most = _MOST_SHOWN[bursts > 0] / total
        seconds = max(min(max(_LEAST_REQUESTS / min(rates), _LONGER * bursts), most), _LEAST_SECONDS, bursts)
        return simulate_requests(
            demand,
            deployment,
            arrivals=self._promise.arrivals,
            router=self._promise.router,
            batching=self._promise.batching,
            seconds=min(seconds, _MOST_REQUESTS / total),
            seed=self._seed + _REPORT,
        )

    def _late_share(self, demand: Demand, deployment: Deployment, service: Service, *, longer: int = 1) -> float:
        """Return the late share of a service in a deployment, at a rate that is higher by the reserve."""
        rate = service.rate * (1 + self._promise.reserve)
        own = (segment for segment in deployment.segments if segment.service == service.name)
        seconds = max(_LEAST_REQUESTS / rate, _LEAST_SECONDS, _LEAST_BURSTS * self._bursts_seconds) * longer
        workers = [one for each in own for one in workers_of(demand, service, deployment, each, self._promise.batching)]
        length = min(seconds, _MOST_REQUESTS / rate), self._seed + _VALIDATION
        return late_share(workers, service.slo, rate, self._promise, length)
