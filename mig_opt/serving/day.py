"""A day: services whose rates change over time, and a deployment for each step with the changes between them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated

from mig_opt.errors import Problem
from mig_opt.method.report import Facts, good, spelled_gap, unclear
from mig_opt.method.result import Result
from mig_opt.rules import Checked
from mig_opt.rules.decimals import as_fraction
from mig_opt.rules.vocabulary import Number, OfType
from mig_opt.serving.change_plan import ChangePlan
from mig_opt.serving.demand import DEMAND_WANTED, Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.serving.rates import RateTable, wrong_services
from mig_opt.texts import plural

_SECONDS = 3600
_MARGIN = Number(at_least=0, at_most=100, words="a share of the rates from 0 to 100 (0.1 is 10 %)")
_PRICE = Number(at_least=0, at_most=1e6, words="GPU-hours from 0 to 1e+06")


@dataclass(frozen=True)
class Day(Checked):
    """Services with rates that change over time, and the price of changes.

    Attributes
    ----------
    demand : Demand
        Services, what their models achieve, and the GPUs that there are. Its rates do not count.
    rates : RateTable
        Rates of just these services, step by step. A service with rate 0 gets no segment.
    margin : float
        Share by which rates may be higher than the table says: each step is planned for rates raised by it.
    creation_price : float
        Price of a segment that begins in a change, in hours of a GPU that costs 1. A segment that is already there
        costs nothing.
    interruption_price : float
        Price of an interrupted segment, in hours of such a GPU.

    Raises
    ------
    InputError
        With every problem: other services than those of the demand, a margin or a price out of range.

    Examples
    --------
    >>> from mig_opt import load
    >>> demand = load("parvagpu-s1")
    >>> rates = {service.name: (service.rate, 0.0, service.rate) for service in demand.services}
    >>> day = Day(demand, RateTable((0, 3600, 7200, 9000), rates), margin=0.1)
    >>> day.hours
    (Fraction(1, 1), Fraction(1, 1), Fraction(1, 2))
    >>> [None if step is None else round(step.services[0].rate, 1) for step in day.demands]
    [20.9, None, 20.9]
    """

    demand: Annotated[Demand, OfType(Demand, DEMAND_WANTED)]
    rates: Annotated[RateTable, OfType(RateTable, "a RateTable, for example read(RateTable, 'rates.csv')")]
    margin: Annotated[float, _MARGIN] = 0.0
    creation_price: Annotated[float, _PRICE] = 0.01
    interruption_price: Annotated[float, _PRICE] = 1.0

    def _problems(self) -> Iterator[Problem]:
        if self.demand and self.rates:
            yield from wrong_services(self.demand, list(self.rates.rates), "rates")

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.rates.steps

    @cached_property
    def hours(self) -> tuple[Fraction, ...]:
        """Hours of each step, exactly; times count as the shortest decimals that stand for them."""
        times = [as_fraction(time) for time in self.rates.times]
        return tuple((end - begin) / _SECONDS for begin, end in itertools.pairwise(times))

    @cached_property
    def demands(self) -> tuple[Demand | None, ...]:
        """For each step the services with requests, at raised rates; None where there are none."""
        rows = self.rates.rates.items()
        return tuple(
            self._at({name: row[step] * (1 + self.margin) for name, row in rows}) for step in range(self.steps)
        )

    @cached_property
    def at_peak(self) -> Demand | None:
        """The services that have requests at some time, each at its greatest rate; None if there are none."""
        return self.peak(range(self.steps))

    def peak(self, steps: Iterable[int]) -> Demand | None:
        """Return the services that have requests in some of the steps, each at its greatest rate there."""
        peaks: dict[str, float] = {}
        for demand in filter(None, (self.demands[step] for step in steps)):
            for service in demand.services:
                peaks[service.name] = max(peaks.get(service.name, 0.0), service.rate)
        return self._at(peaks)

    def _at(self, rates: Mapping[str, float]) -> Demand | None:
        """Return the services that have requests at some rates; None if none has."""
        services = tuple(
            dataclasses.replace(service, rate=rates[service.name])
            for service in self.demand.services
            if rates.get(service.name, 0.0) > 0
        )
        return self.demand.replace(services=services) if services else None

    def cost(self, plan: DayPlan) -> float:
        """Return the cost of a plan, GPU-hours if each GPU costs 1, with the price of what it creates and interrupts.

        It is exact but for the last rounding, so that a cost can meet a bound.
        """
        created = plan.created * as_fraction(self.creation_price)
        interrupted = plan.interrupted * as_fraction(self.interruption_price)
        return float(self._over_hours(self.costs(plan)) + created + interrupted)

    def costs(self, plan: DayPlan) -> tuple[float, ...]:
        """Return what the GPUs of each step of a plan cost in an hour."""
        return tuple(deployment.cost(self.demand) for deployment in plan.deployments)

    def over_hours(self, costs: Iterable[float]) -> float:
        """Return the sum of the costs of all steps, each times its hours."""
        return float(self._over_hours(costs))

    def _over_hours(self, costs: Iterable[float]) -> Fraction:
        spans = zip(costs, self.hours, strict=True)
        return sum((as_fraction(cost) * hours for cost, hours in spans), Fraction(0))

    def clock(self, step: int) -> str:
        """Return the time at which a step begins, such as ``8:30``."""
        return clock_text(self.rates.times[step])


def clock_text(seconds: float) -> str:
    """Return a time in seconds as hours and minutes, with seconds where they are not 0.

    Examples
    --------
    >>> clock_text(30600), clock_text(90.5), clock_text(59.9996), clock_text(-5)
    ('8:30', '0:01:30.5', '0:01', '-0:00:05')
    """
    minutes, rest = divmod(abs(round(seconds, 3)), 60)
    text = f"{'-' * (round(seconds, 3) < 0)}{int(minutes) // 60}:{int(minutes) % 60:02}"
    return text if not rest else f"{text}:{'0' * (rest < 10)}{round(rest, 3):g}"


@dataclass(frozen=True, slots=True)
class DayPlan:
    """A deployment for each step of a day, and the changes between them.

    Attributes
    ----------
    times : tuple of float
        Seconds at which the steps begin, and after them the end.
    deployments : tuple of Deployment
        One for each step; GPUs have the same numbers in all of them.
    changes : tuple of ChangePlan
        What is done at the begin of each step but the first.
    """

    times: tuple[float, ...]
    deployments: tuple[Deployment, ...]
    changes: tuple[ChangePlan, ...]

    @property
    def gpus(self) -> tuple[int, ...]:
        """GPUs with a segment in each step."""
        return tuple(deployment.used_gpus for deployment in self.deployments)

    @property
    def gpu_hours(self) -> float:
        """GPUs with a segment times the hours of the step, over all steps."""
        spans = zip(self.gpus, self.times, self.times[1:], strict=False)
        return math.fsum(gpus * (end - begin) for gpus, begin, end in spans) / _SECONDS

    @property
    def created(self) -> int:
        """Segments that begin in the changes; the first deployment is there already."""
        return sum(step.begins is not None for change in self.changes for step in change.steps)

    @property
    def interrupted(self) -> int:
        """Segments that are interrupted in the changes."""
        return sum(len(change.interrupted) for change in self.changes)

    @property
    def changed(self) -> tuple[int, ...]:
        """Steps, counted from 0, at whose begin something changes."""
        return tuple(at for at, change in enumerate(self.changes, start=1) if change.steps)

    def __str__(self) -> str:
        return (
            f"{self.gpu_hours:.6g} GPU-hours, {plural(len(self.changed), 'change')}, {self.created} created, "
            f"{self.interrupted} interrupted"
        )


@dataclass(frozen=True, slots=True)
class DayResult(Result[DayPlan]):
    """Outcome of :func:`mig_opt.deploy_day`: its plan is a ``DayPlan``, its objective the cost.

    That is in GPU-hours if each GPU costs 1. The cost has the price of all segments that are created and interrupted in
    it, and so does the lower bound.

    Attributes
    ----------
    day : Day or None
        What was planned.
    least_costs : tuple of float
        For each step what the GPUs of no deployment cost less than: a number of GPUs if each costs 1.
    """

    day: Day | None = None
    least_costs: tuple[float, ...] = ()

    @property
    def objective(self) -> float | None:
        """Cost of the plan; None without a plan."""
        return None if self.plan is None or self.day is None else self.day.cost(self.plan)

    @property
    def counted(self) -> bool:
        """True if each GPU costs 1, so that costs are GPU-hours."""
        return self.day is None or self.day.demand.costs.counted

    @property
    def fewest_gpus(self) -> tuple[int, ...] | None:
        """For each step a number of GPUs that no deployment falls below; None where GPUs do not cost 1 each."""
        return tuple(map(int, self.least_costs)) if self.counted else None

    @property
    def gpu_hours_bound(self) -> float | None:
        """GPU-hours that no plan falls below, whatever its changes; None where GPUs do not cost 1 each."""
        return self.hours_bound if self.counted else None

    @property
    def hours_bound(self) -> float:
        """Cost that no plan falls below, whatever its changes: the least of each step times its hours."""
        return 0.0 if self.day is None else self.day.over_hours(self.least_costs)

    def figures(self) -> Facts:
        """Return method, GPUs and GPU-hours, changes, cost and its lower bound."""
        plan, gap = self.plan, self.gap
        if plan is None or gap is None or self.day is None:
            return [("method", self.method)]
        counted, spent = self.counted, self.day.over_hours(self.day.costs(plan))
        unit, what = (" GPU-hours", "fewest GPUs") if counted else ("", "least cost")
        least = f"at least {self.hours_bound:.6g} ({what} of each step)"
        return [
            ("method", self.method),
            ("GPUs", f"{min(plan.gpus)} to {max(plan.gpus)}"),
            ("GPU-hours", f"{plan.gpu_hours:.6g}{f'; {least}' * counted}"),
            ("cost of GPUs", None if counted else f"{spent:.6g}; {least}"),
            ("changes", f"{len(plan.changed)}, in which {plural(plan.created, 'segment')} begin"),
            ("interrupted", unclear(plural(plan.interrupted, "segment")) if plan.interrupted else good("none")),
            ("cost", f"{self.objective:.6g}{unit} with the price of changes"),
            ("lower bound", f"{self.lower_bound:.6g}{unit}: {self.reason}; gap {spelled_gap(gap)}"),
        ]
