"""Days on which a promise to the requests is kept: :func:`deploy_day_with_promise`.

Capacities, the rates at which the promise is kept, stand in place of throughputs, as for one deployment
(:mod:`mig_opt.api.deploy.promises`). The day is planned with them, and the deployment of every step is simulated. Where
a service misses its promise, its rate in that step is raised for the plan, and the day is planned again.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mig_opt.api.deploy.capacities import CapacityTables, usable
from mig_opt.api.deploy.day_changes import Changes
from mig_opt.api.deploy.days import deploy_day
from mig_opt.api.deploy.deployment import check_size, why_too_many
from mig_opt.api.deploy.trials import PromiseTrials
from mig_opt.api.deploy.unkept import refusal
from mig_opt.errors import InputError, Problem, SolverError
from mig_opt.method.control import Limits
from mig_opt.method.options import RunOptions, run_options
from mig_opt.method.registry import AUTO, DEPLOY_METHODS, get_deploy_method
from mig_opt.method.result import Rows, Status
from mig_opt.rules import wrong_flag
from mig_opt.serving.day import Day, DayPlan, DayResult
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.serving.rates import RateTable
from mig_opt.simulation.serving.capacity import Promise
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.validation.serving.days import validate_day

_ROUNDS = 8
"""Times that a day is planned at most."""


@dataclass(frozen=True, slots=True)
class DayPromiseResult(DayResult):
    """Outcome of :func:`mig_opt.deploy_day_with_promise`.

    The lower bounds hold under the capacities of all services at their greatest rates. That the deployments keep the
    promise is not proven but simulated, step by step; in the seconds of a change services have what they need in
    throughput.

    Attributes
    ----------
    promise : Promise or None
        What was promised.
    simulations : tuple of RequestSimulation or None
        Simulation of the deployment of each step, with other random numbers than those it was found with, in which it
        keeps the promise, too; None for a step without requests.
    """

    promise: Promise | None = None
    simulations: tuple[RequestSimulation | None, ...] = ()

    @property
    def worst(self) -> tuple[int, ServiceLatencies] | None:
        """Step and service with the greatest share of late requests; None without a plan or requests."""
        found = [(step, one.worst) for step, one in enumerate(self.simulations) if one is not None]
        return max(found, key=lambda entry: entry[1].late_share, default=None)

    def rows(self) -> Rows:
        """Return the rows of a day, and the worst service of all steps."""
        found = self.worst
        text = "-"
        if found is not None and self.day is not None:
            text = f"{found[1].name} at {self.day.clock(found[0])}: {found[1].late_share:.3%} late"
        return [*DayResult.rows(self), ("worst", text)]


def deploy_day_with_promise(
    demand: Demand,
    rates: RateTable,
    promise: Promise | float = 0.99,
    method: str = AUTO,
    *,
    margin: float = 0.0,
    creation_price: float = 0.01,
    interruption_price: float = 1.0,
    lookahead: bool = True,
    time_limit: float | None = 60.0,
    seed: int = 0,
) -> DayPromiseResult:
    """Plan a day with which a share of the requests of every service is in time in each step.

    Parameters
    ----------
    demand : Demand
        Services, what their models achieve, and the GPUs that there are. The rates come from the table.
    rates : RateTable
        Rates of the services, step by step.
    promise : Promise or float
        The share, with the arrivals and how batches are formed; a number stands for Poisson arrivals.
    method, margin, creation_price, interruption_price, lookahead
        As for :func:`mig_opt.deploy_day`.
    time_limit : float, optional
        Seconds for all plans of the day; capacities that were not simulated before come on top. None for as long as it
        takes.
    seed : int
        Seed for whatever is random.

    Returns
    -------
    DayPromiseResult
        Its deployments have the throughputs of the profiles, so the validator accepts the plan for the day as well.

    Raises
    ------
    InputError
        If an argument is wrong, or a step needs too many segments.

    Examples
    --------
    >>> from mig_opt import RateTable, deploy_day_with_promise, load
    >>> demand = load("parvagpu-s1")
    >>> rows = {service.name: (service.rate, 2 * service.rate) for service in demand.services}
    >>> result = deploy_day_with_promise(demand, RateTable((0, 1800, 3600), rows), 0.99)
    >>> result.plan.gpus, all(simulation.keeps(0.99) for simulation in result.simulations)
    ((2, 3), True)
    """
    problems: list[Problem] = []
    day: Day | None = None
    try:
        day = Day(demand, rates, margin, creation_price, interruption_price)
    except InputError as error:
        problems += error.problems
    if not isinstance(promise, Promise):
        try:
            promise = Promise(promise)
        except InputError as error:
            problems += error.problems
    problems += wrong_flag("lookahead", lookahead)
    run_options(DEPLOY_METHODS, method, time_limit=time_limit, seed=seed, also=problems)
    assert day is not None
    assert isinstance(promise, Promise)
    return _Search(day, promise, method, lookahead=lookahead, time_limit=time_limit, seed=seed).run()


class _Search:
    """One run: rates that are raised where the promise is missed, until it is kept."""

    def __init__(
        self, day: Day, promise: Promise, method: str, *, lookahead: bool, time_limit: float | None, seed: int
    ) -> None:
        self._day, self._promise, self._method = day, promise, method
        self._lookahead, self._limits = lookahead, Limits(RunOptions(time_limit=time_limit, seed=seed))
        self._trials = PromiseTrials(promise, seed)
        self._begun = time.monotonic()
        self._first: DayResult | None = None

    def run(self) -> DayPromiseResult:
        day, peak = self._day, self._day.at_peak
        if peak is None:
            plain = self._planned(day.demand, day.rates.rates)
            return self._result(plain.status, plain.plan, plain.reason)
        method = get_deploy_method(self._method).name
        if refused := refusal(peak, self._promise, method):
            status, reason = refused
            return self._result(status, None, reason)
        asked = usable(peak, method)
        check_size(asked)
        tables = CapacityTables(asked, self._promise)
        if too_many := why_too_many(tables.demand()):
            return self._result(Status.INFEASIBLE, None, f"with the capacities of the promise: {too_many}")
        self._limits.begin()
        services = {service.name: service for service in peak.services}
        rows = {name: list(day.rates.rates[name]) for name in services}
        late: dict[tuple[int, str], float] = {}
        for _ in range(_ROUNDS):
            if self._first is not None and self._limits.expired:
                break
            found = self._planned(tables.demand(), {name: tuple(row) for name, row in rows.items()})
            raised, self._first = self._first is not None, self._first or found
            if found.plan is None:
                # Raised rates prove nothing: other segments may keep the promise with fewer GPUs.
                infeasible = found.status is Status.INFEASIBLE
                status = Status.NO_SOLUTION if raised and infeasible else found.status
                reason = f"with the capacities of the promise: {found.reason}"
                return self._result(status, None, "; ".join([reason, *tables.why_little()]))
            deployments = [tables.with_throughputs(deployment) for deployment in found.plan.deployments]
            late = self._late(deployments)
            if not late:
                plan = Changes(day, self._limits).plan(deployments)
                return self._result(found.status, plan, found.reason)
            if found.status is Status.INTERRUPTED:
                break
            for (step, name), share in late.items():
                # To more than the capacities of these segments: they would be taken for enough again.
                total = tables.total(services[name], deployments[step])
                rows[name][step] = max(rows[name][step] / self._trials.factor(share), total * (1 + 1e-6))
        missed = ", ".join(f"{name} at {day.clock(step)}" for step, name in late)
        return self._result(Status.NO_SOLUTION, None, f"the promise was not kept in time by {missed}")

    def _planned(self, demand: Demand, rows: Mapping[str, tuple[float, ...]]) -> DayResult:
        """Return the plan of a day with these rates."""
        day, remaining = self._day, self._limits.remaining
        return deploy_day(
            demand,
            RateTable(day.rates.times, rows),
            self._method,
            margin=day.margin,
            creation_price=day.creation_price,
            interruption_price=day.interruption_price,
            lookahead=self._lookahead,
            # Half of it: rates may have to be raised.
            time_limit=None if remaining is None else max(remaining / 2, 0.1),
            seed=self._limits.seed,
        )

    def _late(self, deployments: list[Deployment]) -> dict[tuple[int, str], float]:
        """Return the late share of each service that breaks the promise, with its step."""
        known: dict[tuple[Demand, Deployment], dict[str, float]] = {}
        found: dict[tuple[int, str], float] = {}
        for step, (demand, deployment) in enumerate(zip(self._day.demands, deployments, strict=True)):
            if demand is not None:
                key = demand, deployment
                if key not in known:
                    known[key] = self._trials.late(demand, deployment)
                found |= {(step, name): share for name, share in known[key].items()}
        return found

    def _result(self, status: Status, plan: DayPlan | None, reason: str) -> DayPromiseResult:
        day, first = self._day, self._first
        simulations: tuple[RequestSimulation | None, ...] = ()
        if plan is not None:
            for violation in validate_day(day, plan).violations:
                raise SolverError(f"the plan of a day with a promise is not valid: {violation}")
            steps = zip(day.demands, plan.deployments, strict=True)
            simulations = tuple(None if asked is None else self._trials.shown(asked, own) for asked, own in steps)
        bound = 0.0 if first is None else first.lower_bound
        if plan is not None and status is not Status.INTERRUPTED:
            status = Status.OPTIMAL if day.cost(plan) <= bound * (1 + 1e-9) else Status.FEASIBLE
        known: dict[str, Any] = {
            "status": status,
            "method": get_deploy_method(self._method).name,
            "plan": plan,
            "lower_bound": bound if plan is None else min(bound, day.cost(plan)),
            "runtime_s": time.monotonic() - self._begun,
            "seed": self._limits.seed,
            "reason": reason,
            "day": day,
            "fewest_gpus": (0,) * day.steps if first is None else first.fewest_gpus,
        }
        if first is not None:
            known |= {field.name: getattr(first, field.name) for field in dataclasses.fields(first)} | known
        return DayPromiseResult(**known, promise=self._promise, simulations=simulations)
