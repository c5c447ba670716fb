"""Fewest GPUs with which a promise to the requests is kept: :func:`deploy_with_promise`.

Every way to serve a service gets a capacity, the rate at which it keeps the promise, in place of its throughput. The
methods of :func:`mig_opt.deploy` work with these. What they find is simulated. The capacities are those of equal
segments; where a mixture keeps the promise at another rate, the capacities of that service are corrected, and the
method runs again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mig_opt.api.deploy.capacities import CapacityTables
from mig_opt.api.deploy.deployment import check_size, deploy, usable, why_too_many, wrong_deployments
from mig_opt.api.deploy.trials import PromiseTrials, refusal, unpromised
from mig_opt.errors import problems_of
from mig_opt.method.control import Control, run
from mig_opt.method.options import RunOptions, run_options
from mig_opt.method.registry import AUTO, DEPLOY_METHODS, Method, get_deploy_method
from mig_opt.method.report import Facts
from mig_opt.method.result import Status
from mig_opt.rules import entries_of, is_listed
from mig_opt.serving.bounds import fleet_bounds
from mig_opt.serving.costs import plain
from mig_opt.serving.demand import Demand, wrong_demand
from mig_opt.serving.deployment import Deployment, DeploymentResult
from mig_opt.simulation.serving.capacity import Capacity, Promise, as_promise
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.texts import plural
from mig_opt.validation import validate_deployment

_ROUNDS = 12  # times that capacities are corrected at most
_STEPS_OF_HEADROOM, _MOST_STEPS = 50, 150
"""Steps of headroom for 100 %, and most of them: rates are raised by 2 % to 300 %."""
_LEAST_STEP = 0.5
"""Least factor by which a correction lowers capacities: where segments hold little, one more may hold far more."""


@dataclass(frozen=True, slots=True)
class PromiseResult(DeploymentResult):
    """Outcome of :func:`mig_opt.deploy_with_promise`.

    The lower bound, and the status ``optimal``, hold under the capacities: GPUs that cost less do not have instances
    whose capacities add up to every rate. That the deployment keeps the promise is not proven but simulated.

    Attributes
    ----------
    promise : Promise or None
        What was promised.
    simulation : RequestSimulation or None
        Simulation of the deployment, with other random numbers than those it was found with. A deployment that does
        not keep the promise in it is not taken.
    capacities : tuple of Capacity
        Rate up to which each way to serve a service keeps the promise.
    headroom : float or None
        For a heuristic: share by which rates were raised for it, if that cost less than capacities.
    """

    promise: Promise | None = None
    simulation: RequestSimulation | None = None
    capacities: tuple[Capacity, ...] = ()
    headroom: float | None = None

    @property
    def claim(self) -> str:
        """Sentence about what is proven and what was simulated; empty without a deployment."""
        if self.simulation is None or self.promise is None:
            return ""
        counted = self.demand is None or self.demand.costs.counted
        cost = "" if counted else f" at a cost of {self.objective:.10g}"
        kept = f"{plural(self.gpus or 0, 'GPU')}{cost}, p{100 * self.promise.share:.12g} kept in simulation"
        if self.lower_bound == self.objective and not counted:
            return f"{kept}; proven least under the capacities"
        if self.lower_bound == self.gpus and self.lower_bound > 1 and counted:
            return f"{kept}; {self.lower_bound - 1} proven too few under the capacities"
        least = "at least" if counted else "a cost of at least"
        return f"{kept}; {least} {self.lower_bound:.10g} under the capacities"

    def figures(self) -> Facts:
        """Return the figures of the deployment, what was promised, how late requests were, and what is claimed."""
        tried, headroom = self.simulation, self.headroom
        simulated = None if tried is None else f"{100 * tried.late_share:.4f} % late, {tried.requests:,} requests"
        return [
            *DeploymentResult.figures(self),
            ("promise", None if self.promise is None else str(self.promise)),
            ("server", None if self.promise is None else self.promise.server),
            ("simulated", simulated),
            ("worst", None if tried is None else f"{tried.worst.name}: {tried.worst.lateness}"),
            ("claim", self.claim or None),
            ("raised rates", None if headroom is None else f"by {100 * headroom:.0f} %"),
        ]


def deploy_with_promise(
    demand: Demand,
    promise: Promise | float = 0.99,
    method: str = AUTO,
    *,
    running: Deployment | None = None,
    incumbents: Iterable[Deployment] = (),
    time_limit: float | None = None,
    seed: int = 0,
) -> PromiseResult:
    """Find a deployment of least cost with which a share of the requests of every service is in time.

    Parameters
    ----------
    demand, running
        As for :func:`mig_opt.deploy`. Latencies stay within the rule of the demand.
    promise : Promise or float
        The share, with the arrivals and how batches are formed; a number stands for Poisson arrivals.
    method : str
        One of :func:`mig_opt.methods`, or ``auto``. A heuristic works with the capacities, and with raised rates
        in place of them; the least cost at which the promise is kept counts. ``exact`` never costs more.
    incumbents : iterable of Deployment
        Deployments that may be enough, from wherever they are: one that costs less is taken if it keeps the promise.
    time_limit : float, optional
        Seconds, the simulations included as far as they can be cut short; by default there is no limit.
    seed : int
        Seed for whatever is random.

    Returns
    -------
    PromiseResult
        Also after Ctrl-C, with the best deployment until then. Its deployment has the throughputs of the profiles, so
        the validator accepts it for the demand as well.

    Raises
    ------
    InputError
        If an argument is wrong, or a demand needs too many segments.

    Examples
    --------
    >>> from mig_opt import deploy_with_promise, load
    >>> result = deploy_with_promise(load("parvagpu-s1"), 0.99)
    >>> result.claim
    '2 GPUs, p99 kept in simulation; 1 proven too few under the capacities'
    """
    problems = [*wrong_demand(demand), *problems_of(as_promise, promise)]
    problems += [*wrong_deployments(running=running), *unpromised(demand)]
    incumbents = tuple(incumbents) if is_listed(incumbents) else incumbents
    problems += problems_of(entries_of, "incumbents", incumbents, Deployment, "a Deployment")
    options = run_options(DEPLOY_METHODS, method, also=problems, time_limit=time_limit, seed=seed)
    chosen, promise = get_deploy_method(method), as_promise(promise)
    trials = PromiseTrials(promise, options.seed)
    search = _Search(demand, promise, chosen, trials=trials, options=options, running=running)

    def make_result(*, status: Status, plan: Deployment | None, lower_bound: float, **known: Any) -> PromiseResult:
        least = "gpus" if demand.costs.counted else "cost"
        known["proven"] = (least,) if status is Status.OPTIMAL else ()
        return PromiseResult(
            status=status,
            plan=plan,
            cost=search.control.objective,
            lower_bound=plain(lower_bound),
            demand=demand,
            promise=promise,
            simulation=None if plan is None else trials.shown(demand, plan),
            capacities=() if search.tables is None else search.tables.entries(),
            headroom=search.headroom,
            **known,
        )

    return run(
        search.control,
        demand,
        chosen,
        lambda: search.run(tuple(incumbents)),
        violations=lambda deployment: validate_deployment(demand, deployment).violations,
        make_result=make_result,
    )


class _Search:
    """One run: capacities, corrections of them, and the best deployment so far."""

    def __init__(
        self,
        demand: Demand,
        promise: Promise,
        method: Method,
        *,
        trials: PromiseTrials,
        options: RunOptions,
        running: Deployment | None,
        less_than: float = math.inf,
    ) -> None:
        self._demand, self._promise, self._method, self._running = demand, promise, method, running
        self._trials, self._less_than = trials, less_than
        self.control = Control[Deployment](options, judge=lambda deployment: deployment.goals(demand, running))
        self.tables: CapacityTables | None = None
        self.headroom: float | None = None  # with which the best deployment was found
        self._last: DeploymentResult | None = None
        self._floor = 0.0

    def run(self, incumbents: Sequence[Deployment]) -> None:
        """Search, and report what is known in the end, also after Ctrl-C."""
        if refused := refusal(self._demand, self._promise, self._method.name):
            self.control.infeasible, self.control.reason = refused
            return
        check_size(self._demand)
        reason = ""
        try:
            reason = self.search(incumbents)
        finally:
            last = self._last
            bound = max(self._floor, 0 if last is None else last.lower_bound)
            self.control.raise_bound(min(bound, self._best_cost))
            if self.control.plan is not None:
                reason = "" if last is None else last.reason
            self.control.infeasible = last is None or last.status is Status.INFEASIBLE
            self.control.reason = reason

    def _deployed(self, demand: Demand) -> DeploymentResult:
        """Return what the method finds in half of the time that is left: that is corrected, and others are tried."""
        return deploy(demand, self._method.name, running=self._running, **self.control.inner(0.5)).uninterrupted()

    @property
    def _done(self) -> bool:
        """True if none costs less even for the throughputs."""
        return self._best_cost <= self._floor

    def search(self, incumbents: Sequence[Deployment] = ()) -> str:
        """Search; return why nothing was found, if that is so."""
        self.tables = tables = CapacityTables(usable(self._demand, self._method.name), self._promise)
        self._floor = fleet_bounds(self._demand)[0].cost
        if too_many := why_too_many(tables.demand()):
            return f"with the capacities of the promise: {too_many}"
        reason = self._with_capacities(tables)
        exact = self._method.kind == "exact"
        if exact:
            self._raise_capacities(tables)
        for incumbent in incumbents:
            valid = validate_deployment(self._demand, incumbent).valid
            if valid and incumbent.cost(self._demand) < self._best_cost:
                self._try(incumbent)
        if exact:
            self._try_rivals()
        elif not (self._done or self.control.expired):
            most = self._with_headroom()
            reason = f"{reason}; nor is the promise kept with rates raised by {most:.0%}"
        if exact and self._last is not None and self._best_cost < self._last.lower_bound:
            # With capacities with which that deployment is enough there may be a better one still.
            self._raise_capacities(tables)
        return reason

    def _try_rivals(self) -> None:
        """Take what a heuristic finds under the same promise, if it costs less; others are not simulated."""
        for rival in (method for method in DEPLOY_METHODS.entries if method.kind == "heuristic"):
            if self._done or self.control.expired:
                return
            if refusal(self._demand, self._promise, rival.name):
                continue
            search = _Search(
                self._demand,
                self._promise,
                rival,
                trials=self._trials,
                options=RunOptions(**self.control.inner(0.5)),
                running=self._running,
                less_than=self._best_cost,
            )
            search.search()
            if search.control.plan is not None:
                self._keep(search.control.plan, search.headroom)

    @property
    def _best_cost(self) -> float:
        """Cost of the best deployment, or the one that it has to be below if there is none."""
        return self._less_than if self.control.objective is None else self.control.objective

    def _keep(self, deployment: Deployment, headroom: float | None = None) -> None:
        """Take a deployment that keeps the promise, if it is valid and the best so far."""
        if validate_deployment(self._demand, deployment).valid and self.control.report_plan(deployment):
            self.headroom = headroom

    def _with_capacities(self, tables: CapacityTables) -> str:
        """Let the method work with capacities, which are corrected until the promise is kept; return why it is not."""
        broken: list[str] = []
        for _ in range(_ROUNDS):
            if self._last is not None and self.control.expired:
                return "the time was over before the promise was kept"
            demand = tables.demand()
            if too_many := why_too_many(demand):
                return f"with the capacities of the promise: {too_many}"
            self._last = result = self._deployed(demand)
            if result.deployment is None:
                reason = result.reason or "the method found no deployment"
                return "; ".join([f"with the capacities of the promise: {reason}", *tables.why_little()])
            if result.deployment.cost(self._demand) >= self._best_cost:
                return ""
            deployment = tables.with_throughputs(result.deployment)
            late = self._trials.late(self._demand, deployment)
            if not late:
                self._keep(deployment)
                return ""
            broken = list(late)
            for service in self._demand.services:
                if service.name in late:
                    lowered = partial(_lowered, self._trials.factor(late[service.name]))
                    tables.correct(service, deployment, lowered, kept=False)
        return f"the promise was not kept by {', '.join(broken)} after {_ROUNDS} corrections of the capacities"

    def _raise_capacities(self, tables: CapacityTables) -> None:
        """Look for less cost with capacities that are higher where the best deployment keeps the promise beyond.

        It is enough for them itself, so they prove no more than it costs.
        """
        if (deployment := self.control.plan) is None or self._done or self.control.expired:
            return
        for service in self._demand.services:
            tables.correct(service, deployment, max)
        before = dict(tables.corrections), self._last
        self._with_capacities(tables)
        if self._last is not None and self._last.deployment is None:
            tables.corrections, self._last = before

    def _with_headroom(self) -> float:
        """Let a heuristic work with raised rates: the least headroom that is enough; return the greatest tried."""
        low, high = -1, 0
        while not self._enough(high):
            if high == _MOST_STEPS or self.control.expired:
                return high / _STEPS_OF_HEADROOM
            low, high = high, min(2 * high + 1, _MOST_STEPS)
        most = high / _STEPS_OF_HEADROOM
        while high - low > 1 and not self.control.expired:
            middle = (low + high) // 2
            low, high = (low, middle) if self._enough(middle) else (middle, high)
        return most

    def _enough(self, steps: int) -> bool:
        """Return True if the promise is kept with some headroom, or nothing is found that costs less than is known."""
        share = steps / _STEPS_OF_HEADROOM
        raised = self._demand.with_headroom(share)
        if why_too_many(raised):
            return True
        found = self._deployed(raised).deployment
        return found is None or found.cost(self._demand) >= self._best_cost or self._try(found, share)

    def _try(self, deployment: Deployment, headroom: float | None = None) -> bool:
        """Keep a deployment if its simulation keeps the promise; return whether it does."""
        kept = not self._trials.late(self._demand, deployment)
        if kept:
            self._keep(deployment, headroom)
        return kept


def _lowered(factor: float, old: float, new: float) -> float:
    """Return the correction of a capacity that is too large."""
    return max(min(old * factor, new), old * _LEAST_STEP)
