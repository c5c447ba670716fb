"""Days, with a deployment for each step of a table of rates: :func:`deploy_day` and :func:`deploy_day_with_promise`.

For a promise, capacities, the rates at which it is kept, stand in place of throughputs, as for one deployment
(:mod:`mig_opt.api.deploy.promises`). The day is planned with them, and the deployment of every step is simulated. Where
a service misses its promise, its rate in that step is raised for the plan, and the day is planned again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from mig_opt.api.deploy.capacities import CapacityTables
from mig_opt.api.deploy.day_changes import Changes
from mig_opt.api.deploy.day_search import DaySearch, run_method, serving_alone
from mig_opt.api.deploy.deployment import check_size, usable, why_too_many
from mig_opt.api.deploy.trials import PromiseTrials, refusal, unpromised
from mig_opt.errors import problems_of
from mig_opt.method.control import Control, Limits, run
from mig_opt.method.options import RunKeywords, run_options
from mig_opt.method.registry import AUTO, DEPLOY_METHODS, Method, get_deploy_method
from mig_opt.method.report import Facts, data_of
from mig_opt.method.result import Status
from mig_opt.rules import wrong_flag
from mig_opt.serving.day import Day, DayPlan, DayResult
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, DeploymentResult
from mig_opt.serving.rates import RateTable
from mig_opt.simulation.serving.capacity import Promise, as_promise
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.validation.serving.days import validate_day

_ROUNDS = 8  # times that a day is planned at most
_LOOKAHEAD = Method(
    "exact",
    "exact",
    "numbers of segments by integer programming, places by constraint programming, for many steps at once",
    "this package, docs/how-to/plan-a-day.md",
    "mig_opt.api.deploy.day_search:DaySearch",
    packages=("highspy", "ortools", "pulp", "numpy"),
)


def deploy_day(
    demand: Demand,
    rates: RateTable,
    method: str = AUTO,
    *,
    margin: float = 0.0,
    creation_price: float = 0.01,
    interruption_price: float = 1.0,
    lookahead: bool = True,
    time_limit: float | None = 60.0,
    **options: Unpack[RunKeywords],
) -> DayResult:
    """Find a deployment for each step of a day, and plan the changes between them, at the least cost.

    The cost is that of the GPUs, GPU-hours if each costs 1, and a price for each segment that a change creates or
    interrupts. A deployment answers the rates of its step; in each change no service gets less than it needs, which is
    what it has before the change but at most its rate afterwards, unless an interruption cannot be avoided: that has
    its price, too.

    Parameters
    ----------
    demand : Demand
        Services, what their models achieve, and the GPUs that there are. The rates come from the table.
    rates : RateTable
        Rates of the services, step by step, see :func:`mig_opt.read`.
    method : str
        ``exact``, or ``auto``, plans with lookahead. Any other of :func:`mig_opt.methods` plans each step for
        itself, and as much as possible stays where it is.
    margin : float
        Forecast error: every rate may be higher by this share.
    creation_price, interruption_price : float
        Prices of a segment that is created and of one that is interrupted, in hours of a GPU that costs 1.
    lookahead : bool
        False to plan each step for itself also with ``exact``: least cost, fewest GPUs, then fewest compute slices,
        then fewest changes.
    time_limit : float, optional
        Seconds; None for as long as it takes.
    **options
        The other :class:`~mig_opt.method.options.RunOptions`, as for :func:`mig_opt.solve`. The objective is the cost.

    Returns
    -------
    DayResult
        Also after Ctrl-C, with the best plan until then. The status is ``optimal`` if no plan costs less.

    Raises
    ------
    InputError
        If an argument is wrong, or a step needs too many segments.
    SolverError
        If a method breaks its contract.

    Examples
    --------
    >>> from mig_opt import RateTable, deploy_day, load
    >>> demand = load("parvagpu-s1")
    >>> rows = {service.name: (service.rate, 3 * service.rate, service.rate) for service in demand.services}
    >>> result = deploy_day(demand, RateTable((0, 3600, 7200, 10800), rows), margin=0.1)
    >>> result.plan.gpus, result.gpu_hours_bound
    ((2, 4, 2), 8.0)
    >>> print(result.plan)
    8 GPU-hours, 2 changes, 3 created, 0 interrupted
    """
    given = demand, rates, margin, creation_price, interruption_price
    problems = [*wrong_flag("lookahead", lookahead), *problems_of(Day, *given)]
    settings = run_options(DEPLOY_METHODS, method, also=problems, time_limit=time_limit, **options)
    day, chosen = Day(*given), day_method(method, lookahead=lookahead)
    if day.at_peak is not None and not day.at_peak.unservable():
        check_size(day.at_peak)
    control = Control[DayPlan](settings, judge=lambda plan: (day.cost(plan),))
    alone: list[DeploymentResult | None] = []

    def work() -> None:
        alone.extend(serving_alone(day, control) or ())
        if not alone:
            return
        what = "the fewest GPUs" if demand.costs.counted else "the least cost"
        control.raise_bound(day.over_hours(_least(day, alone)), f"{what} of each step times its hours")
        if chosen is _LOOKAHEAD and day.at_peak is not None:
            DaySearch(day, control, alone).run()
        else:
            found = _one_by_one(day, chosen.name, control)
            if found is not None:
                control.report_plan(Changes(day, control).plan(found))

    def make_result(**known: Any) -> DayResult:
        return DayResult(day=day, least_costs=_least(day, alone), **known)

    return run(
        control,
        day,
        chosen,
        work,
        violations=lambda plan: validate_day(day, plan).violations,
        same=lambda bound, cost: math.isclose(bound, cost, rel_tol=1e-9),
        make_result=make_result,
    )


def day_method(method: str, *, lookahead: bool) -> Method:
    """Return what plans a day: the method for each step, or in place of ``exact`` the search with lookahead."""
    chosen = get_deploy_method(method)
    return _LOOKAHEAD if lookahead and chosen.name == "exact" else chosen


def _least(day: Day, alone: Sequence[DeploymentResult | None]) -> tuple[float, ...]:
    """Return for each step the cost of GPUs that is proven to be needed."""
    found = [0 if result is None else result.lower_bound for result in alone]
    return tuple(found or [0] * day.steps)


def _one_by_one(day: Day, method: str, control: Control[DayPlan]) -> list[Deployment] | None:
    """Return a deployment for each step, each found from the one before without regard for those to come.

    None if the method finds none for some step.
    """
    found: list[Deployment] = []
    for demand in day.demands:
        running = found[-1] if found else None
        if demand is None:
            found.append(Deployment(() if running is None else running.gpus, ()))
            continue
        best = run_method(demand, method, control, running=running).deployment
        if best is None:
            return None
        found.append(best)
    return found


# Days on which a promise to the requests is kept


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

    def figures(self) -> Facts:
        """Return the figures of a day, what was promised, and the worst service of all steps."""
        worst = None
        if self.worst is not None and self.day is not None:
            step, service = self.worst
            worst = f"{service.name} at {self.day.clock(step)} is worst: {service.lateness}"
        promise = None if self.promise is None or self.plan is None else str(self.promise)
        return [*DayResult.figures(self), ("promise", promise), ("simulated", worst)]


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
    demand, rates, method, margin, creation_price, interruption_price, lookahead
        As for :func:`mig_opt.deploy_day`.
    promise, seed
        As for :func:`mig_opt.deploy_with_promise`.
    time_limit : float, optional
        Seconds for all plans of the day; capacities that were not simulated before come on top. None for as long as it
        takes.

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
    given = demand, rates, margin, creation_price, interruption_price
    problems = [*problems_of(Day, *given), *problems_of(as_promise, promise)]
    problems += [*wrong_flag("lookahead", lookahead), *unpromised(demand)]
    options = run_options(DEPLOY_METHODS, method, also=problems, time_limit=time_limit, seed=seed)
    day, promise, chosen = Day(*given), as_promise(promise), day_method(method, lookahead=lookahead)
    control = Control[DayPlan](options, judge=lambda plan: (day.cost(plan),))
    search = _PromiseSearch(day, promise, method, control, lookahead=lookahead)

    def make_result(*, plan: DayPlan | None, **known: Any) -> DayPromiseResult:
        steps = () if plan is None else zip(day.demands, plan.deployments, strict=True)
        simulations = tuple(None if asked is None else search.trials.shown(asked, own) for asked, own in steps)
        least = (0,) * day.steps if search.first is None else search.first.least_costs
        return DayPromiseResult(
            plan=plan, day=day, least_costs=least, promise=promise, simulations=simulations, **known
        )

    return run(
        control,
        day,
        chosen,
        search.run,
        violations=lambda plan: validate_day(day, plan).violations,
        optimal=lambda: control.objective is not None and control.objective <= control.lower_bound * (1 + 1e-9),
        same=lambda bound, cost: bound > cost,  # the bound holds under the capacities only
        make_result=make_result,
    )


class _PromiseSearch:
    """One run: rates that are raised where the promise is missed, until it is kept."""

    def __init__(self, day: Day, promise: Promise, method: str, control: Control[DayPlan], *, lookahead: bool) -> None:
        self._day, self._promise, self._method = day, promise, get_deploy_method(method).name
        self._lookahead, self._control, self._limits = lookahead, control, Limits(control.options)
        self.trials = PromiseTrials(promise, control.seed)
        self.first: DayResult | None = None  # the plan with the rates of the day

    def run(self) -> None:
        """Search, and report the plan or why there is none."""
        day, peak, control = self._day, self._day.at_peak, self._control
        if peak is None:
            self._report(self._planned(day.demand, day.rates.rates))
            return
        if refused := refusal(peak, self._promise, self._method):
            control.infeasible, control.reason = refused
            return
        asked = usable(peak, self._method)
        check_size(asked)
        tables = CapacityTables(asked, self._promise)
        if too_many := why_too_many(tables.demand()):
            control.report_infeasible(f"with the capacities of the promise: {too_many}")
            return
        limits = self._limits = Limits(control.options)  # from now on: capacities may have taken long to simulate
        services = {service.name: service for service in peak.services}
        rows = {name: list(day.rates.rates[name]) for name in services}
        for _ in range(_ROUNDS):
            if self.first is not None and limits.expired:
                return
            found = self._planned(tables.demand(), {name: tuple(row) for name, row in rows.items()})
            raised, self.first = self.first is not None, self.first or found
            control.raise_bound(self.first.lower_bound)
            if found.plan is None:
                # Raised rates prove nothing: other segments may keep the promise with fewer GPUs.
                control.infeasible = found.status is Status.INFEASIBLE and not raised
                reason = f"with the capacities of the promise: {found.reason}"
                control.reason = "; ".join([reason, *tables.why_little()])
                found.uninterrupted()
                return
            deployments = [tables.with_throughputs(deployment) for deployment in found.plan.deployments]
            late = self._late(deployments)
            if not late:
                self._report(found, Changes(day, limits).plan(deployments))
                return
            missed = ", ".join(f"{name} at {day.clock(step)}" for step, name in late)
            control.reason = f"the promise was not kept in time by {missed}"
            found.uninterrupted()
            for (step, name), share in late.items():
                # To more than the capacities of these segments: they would be taken for enough again.
                total = tables.total(services[name], deployments[step])
                rows[name][step] = max(rows[name][step] / self.trials.factor(share), total * (1 + 1e-6))

    def _report(self, found: DayResult, plan: DayPlan | None = None) -> None:
        """Report what is planned, and pass Ctrl-C on."""
        if (plan := plan or found.plan) is not None:
            self._control.report_plan(plan)
        self._control.reason = found.reason
        found.uninterrupted()

    def _planned(self, demand: Demand, rows: Mapping[str, tuple[float, ...]]) -> DayResult:
        """Return the plan of a day with these rates."""
        table = RateTable(self._day.rates.times, rows)
        prices = data_of(self._day, "margin", "creation_price", "interruption_price")
        limits = self._limits.inner(0.5)  # rates may have to be raised
        return deploy_day(demand, table, self._method, lookahead=self._lookahead, **prices, **limits)

    def _late(self, deployments: list[Deployment]) -> dict[tuple[int, str], float]:
        """Return the late share of each service that breaks the promise, with its step."""
        found: dict[tuple[int, str], float] = {}
        for step, (demand, deployment) in enumerate(zip(self._day.demands, deployments, strict=True)):
            if demand is not None:
                late = self.trials.late(demand, deployment)
                found |= {(step, name): share for name, share in late.items()}
        return found
