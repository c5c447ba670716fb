"""Entry point for a day: :func:`deploy_day` plans a deployment for each step of a table of rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

from mig_opt.api.deploy.day_changes import Changes
from mig_opt.api.deploy.day_search import DaySearch, run_method, serving_alone
from mig_opt.api.deploy.deployment import check_size
from mig_opt.errors import problems_of
from mig_opt.method.control import Control, run
from mig_opt.method.options import RunKeywords, run_options
from mig_opt.method.registry import AUTO, DEPLOY_METHODS, Method, get_deploy_method
from mig_opt.rules import wrong_flag
from mig_opt.serving.day import Day, DayPlan, DayResult
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, DeploymentResult
from mig_opt.serving.rates import RateTable
from mig_opt.validation.serving.days import validate_day

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
