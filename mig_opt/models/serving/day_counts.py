"""Numbers of segments over a day: a program that knows how many of each kind there are, but not where.

Whatever the places, a step has at least as many new segments of a service and kind as it has more of them than the
step before. So the cost of the best numbers is a lower bound on the cost of a day, and the numbers are what places are
looked for (:mod:`mig_opt.models.serving.day_places`). A program is for some steps that follow each other. The sum over
spans that share their end steps is a bound on the whole day if these count with half of their GPU-hours in either span.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from mig_opt.gpu.packing import Numbers
from mig_opt.method.control import Limits
from mig_opt.models.serving.fleet_rows import FleetRows, FleetWays, Key
from mig_opt.models.solvers.backend import Values, solve_program
from mig_opt.models.solvers.highs import Highs, highs_or_cbc
from mig_opt.models.solvers.linear import LinearProgram, Term, Variable
from mig_opt.rules.decimals import as_fraction, common_divisor
from mig_opt.serving.covers import Covers, InstanceTypes
from mig_opt.serving.day import Day
from mig_opt.serving.demand import NEEDED, Demand, Service

Counts = Mapping[Key, int]
"""Segments of each service and kind; those that are left out are 0."""

_TOLERANCE = 1e-7
"""Tolerance of the solver: far above the rounding of shares, far below the price of anything."""
_FINE = 1e-5
"""Share of a bound, or GPU-hours, below which a unit of costs is too fine for rounding up to it."""
_NOISE = 1e-6
"""Share of a bound, or GPU-hours if it is below 1, by which a solver's bound may be above the optimum."""


class DayProblem:
    """A day, sorted out for the models.

    Some service has requests at some time, and each that has can be served; no deployment of a step costs less than
    ``least`` says.
    """

    def __init__(self, day: Day, least: Sequence[float]) -> None:
        peak = day.at_peak
        assert peak is not None
        self.day, self.peak, self.pools, self.costs = day, peak, peak.pools, peak.costs
        self.least = tuple(as_fraction(cost) for cost in least)
        self.kinds = InstanceTypes.of(peak)
        # Which SLO a service has, and so in which ways it can be served, is the same all day. More of a kind than are
        # enough at the greatest rate are never needed, whatever the changes.
        self.fleet = FleetWays(peak, self.kinds)
        self.ways, self.most = self.fleet.options, self.fleet.most
        # of an instance of each kind, such that no GPU weighs more than 1, see ``Packer.weights``
        self.weights = _weights(self.kinds)
        self.creation_price = as_fraction(day.creation_price)
        # every cost is a multiple of this, without the price of interruptions
        self.unit = common_divisor([*(hours * self.costs.unit for hours in day.hours), self.creation_price])

    def needs_all(self, step: int) -> bool:
        """Return True if a step needs all GPUs that there are, so that its changes may interrupt segments."""
        counts = [pool.count for pool in self.pools]
        return None not in counts and float(self.least[step]) >= self.costs.total([count or 0 for count in counts])

    def services(self, step: int) -> Sequence[Service]:
        """Return the services that have requests in a step, with their rates."""
        demand: Demand | None = self.day.demands[step]
        return () if demand is None else demand.services

    def raised(self, bound: float, *, halves: bool = False) -> Fraction:
        """Return the least possible cost that is not below a bound on it, within a solver's tolerance.

        With ``halves``, hours of some steps count half.
        """
        unit = self.unit / 2 if halves else self.unit
        safe = Fraction(bound) - Fraction(_NOISE * max(1.0, abs(bound)))
        return safe if unit < _FINE * max(1.0, bound) else math.ceil(safe / unit) * unit


def _weights(kinds: InstanceTypes) -> list[Numbers]:
    found = []
    for packer, part in zip(kinds.packers, kinds.parts, strict=True):
        for one, two in itertools.combinations_with_replacement(packer.weights, 2):
            weights = np.zeros(kinds.count)
            weights[part] = (one + two) / 2
            found.append(weights)
    return found


def best_counts(
    problem: DayProblem,
    steps: range,
    control: Limits,
    *,
    before: Counts | None = None,
    after: Counts | None = None,
    weights: Sequence[Fraction] | None = None,
    known: Sequence[Counts] = (),
    share: float = 1.0,
) -> tuple[tuple[Counts, ...] | None, float]:
    """Return numbers of segments for each of some steps, None if none were found in time, and a bound on their cost.

    ``before`` and ``after`` are the numbers in the step before them and in the step after them; without ``before`` the
    first segments cost nothing. ``weights`` are the hours of a GPU in each of the steps, by default those of the step.
    The solver may take a ``share`` of the time that is left, and starts from the ``known`` numbers of these steps, if
    there are some.
    """
    program = _CountProgram(problem, steps, weights or [problem.day.hours[step] for step in steps])
    program.compare(before, after)
    backend = highs_or_cbc()
    if isinstance(backend, Highs):
        backend = Highs(_TOLERANCE)
    start = program.values(known, before, after) if known else None
    outcome = solve_program(program.linear.program, backend, control, share=share, start=start)
    counts = None if outcome.values is None else program.counts(outcome.values)
    return counts, outcome.bound if math.isfinite(outcome.bound) else 0.0


class _CountProgram:
    """The program for some steps."""

    def __init__(self, problem: DayProblem, steps: range, weights: Sequence[Fraction]) -> None:
        self._problem, self._steps = problem, steps
        self.linear = LinearProgram("day")
        self._fleets: list[FleetRows] = []
        self._created: list[dict[Key, Variable]] = []
        self._objective: list[Term] = []
        for step, weight in zip(steps, weights, strict=True):
            fleet = FleetRows(self.linear, f"{step}_", problem.fleet, problem.services(step))
            self._cut(step, fleet)
            fleet.offer_instances()
            if problem.least[step]:
                least = problem.costs.limit(float(problem.least[step]), -problem.costs.noise)
                self.linear.at_least(f"least_{step}", fleet.costs, least)
            hours = float(weight / problem.costs.scale)
            self._objective += [(variable, hours * cost) for variable, cost in fleet.costs]
            self._fleets.append(fleet)

    def _cut(self, step: int, fleet: FleetRows) -> None:
        """Tell what the segments of a service weigh at least: the solver does not see it from the rates."""
        problem, demand = self._problem, self._problem.day.demands[step]
        if demand is None:
            return
        covers = Covers.of(demand, problem.kinds)
        for at, weights in enumerate(problem.weights):
            least = covers.least(weights)
            for row, service in enumerate(demand.services):
                terms = [
                    (fleet.segments[service.name, kind], float(weights[kind]))
                    for kind, _ in problem.ways[service.name]
                    if weights[kind] > 0
                ]
                if terms and least[row] > 0:
                    self.linear.at_least(f"weight_{step}_{row}_{at}", terms, float(least[row]) * NEEDED)

    def compare(self, before: Counts | None, after: Counts | None) -> None:
        """Count the new segments, and make all costs the objective."""
        price = float(self._problem.creation_price)
        for at, fleet in enumerate(self._fleets if price else ()):
            own: dict[Key, Variable] = {}
            for row, (key, variable) in enumerate(fleet.segments.items() if at or before is not None else ()):
                created = own[key] = self._new(f"{self._steps[at]}_{row}", key, price)
                terms: list[Term] = [(variable, 1), (created, -1)]
                earlier = self._fleets[at - 1].segments.get(key) if at else None
                if earlier is not None:
                    terms.append((earlier, -1))
                self.linear.at_most(f"new_{created.name}", terms, 0 if at else (before or {}).get(key, 0))
            self._created.append(own)
        if price and after is not None:
            own = {}
            for row, (key, number) in enumerate(after.items()):
                created = own[key] = self._new(f"{self._steps.stop}_{row}", key, price)
                last = self._fleets[-1].segments.get(key)
                terms = [(created, 1), *([] if last is None else [(last, 1)])]
                self.linear.at_least(f"new_{created.name}", terms, number)
            self._created.append(own)
        self.linear.minimise_sum(self._objective)

    def _new(self, name: str, key: Key, price: float) -> Variable:
        created = self.linear.continuous(f"created_{name}", 0, self._problem.most[key])
        self._objective.append((created, price))
        return created

    def values(self, known: Sequence[Counts], before: Counts | None, after: Counts | None) -> Values:
        """Return the values of all variables for known numbers of segments."""
        found: dict[str, float] = {}
        for fleet, counts in zip(self._fleets, known, strict=True):
            found |= {variable.name: counts.get(key, 0) for key, variable in fleet.segments.items()}
            found |= _patterns_for(fleet, counts)
        steps = [*known, *([] if after is None else [after])]
        earlier = [before or {}, *known]
        for counts, old, created in zip(steps, earlier, self._created, strict=False):
            found |= {variable.name: max(counts.get(key, 0) - old.get(key, 0), 0) for key, variable in created.items()}
        return found

    def counts(self, values: Values) -> tuple[Counts, ...]:
        """Return the numbers of segments in a solution, without those that are 0."""
        return tuple(
            {key: number for key, variable in fleet.segments.items() if (number := round(values[variable.name]))}
            for fleet in self._fleets
        )


def _patterns_for(fleet: FleetRows, counts: Counts) -> dict[str, float]:
    """Return how many GPUs get each pattern so that there are instances for numbers of segments."""
    found = {variable.name: 0.0 for variable, _ in fleet.gpus}
    for packer, part in {id(packer): (packer, part) for packer, part, *_ in fleet.patterns}.values():
        asked = tuple(
            sum(number for (_, of), number in counts.items() if of == kind) for kind in range(part.start, part.stop)
        )
        for placements in packer.pack(asked):
            held = [sum(one.profile == profile for one in placements) for profile in packer.profiles]
            variable = next(
                variable
                for other, _, pattern, variable in fleet.patterns
                if other is packer and all(more >= less for more, less in zip(pattern, held, strict=True))
            )
            found[variable.name] += 1
    return found
