"""The method ``exact`` of :func:`mig_opt.deploy`: proven costs and numbers of GPUs by integer programming.

Only three things matter: the number of GPUs with each pattern of instances (the multisets of maximal partitions), the
number of segments of each kind for each service, and that there are enough instances for the segments. This is the
cutting-stock problem, and its program has hardly more rows than there are services. The goals are met one after the
other, each with those before it as rows: least cost, fewest GPUs (where that is not the same), fewest compute slices,
fewest changes to what is running.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from mig_opt.method.control import Control, Goals
from mig_opt.method.result import Status
from mig_opt.models.serving.fewest_changes import fewest_changes
from mig_opt.models.serving.fleet_rows import FleetRows, FleetWays
from mig_opt.models.solvers.backend import Backend, ProgramOutcome, Values, solve_program
from mig_opt.models.solvers.highs import Highs, highs_or_cbc
from mig_opt.models.solvers.linear import LinearProgram, Term
from mig_opt.rules.decimals import as_fraction
from mig_opt.serving.bounds import Relaxation, shortage
from mig_opt.serving.costs import Costs, plain
from mig_opt.serving.covers import filled
from mig_opt.serving.demand import ENOUGH, Demand
from mig_opt.serving.deployment import Deployment

_MOST_NUMBERS, _FEW = 100_000, 50
"""Numbers of the GPUs but the cheapest that are gone through at most, and sums of costs that get a program each."""

_LOOSE = 1e-6
"""The tolerance with which HiGHS is asked again where it found nothing."""


def exact(
    demand: Demand,
    control: Control[Deployment],
    *,
    relaxation: Relaxation | None = None,
    running: Deployment | None = None,
) -> None:
    """Search until the least cost and the fewest GPUs, slices and changes are proven, or the time is up.

    Every service of the demand has an option; ``relaxation`` is that of the demand, if it is known already. The control
    may hold a deployment to start from, and counts changes from what is ``running``.
    """
    backend = highs_or_cbc()
    relaxation = relaxation or Relaxation(demand)
    if not _least_cost(demand, relaxation, control, backend):
        return
    if not demand.costs.counted:
        control.prove("cost")
    for at, goal in ((1, "gpus"), (2, "compute slices")):
        same = at == 1 and len(set(demand.costs.each)) == 1 and demand.costs.largest in demand.costs.each
        if not (same or _fewest(at, demand, relaxation, control, backend)):
            return
        control.prove(goal)
    if running is not None and fewest_changes(demand, relaxation, running, control, backend):
        control.prove("changes")


def _least_cost(demand: Demand, relaxation: Relaxation, control: Control[Deployment], backend: Backend) -> bool:
    """Find a deployment of least cost; return whether it is proven that none costs less.

    The first deployment is only believed to be the best once the program for less has no better one: solvers err less
    where they look for less.
    """
    costs = demand.costs
    while control.goals is None or control.goals[0] > control.lower_bound:
        before = control.goals
        program = FleetProgram(demand, relaxation)
        least = costs.limit(control.lower_bound, -costs.noise)
        program.linear.at_least("as_costly_as_the_bound", program.costs, least)
        program.linear.minimise_sum(program.costs)
        if before is None:
            if program.solve(control, backend).status is Status.INFEASIBLE:
                control.report_infeasible(_too_few(demand, relaxation))
            if control.goals is None:
                return False
            continue
        less = costs.limit(before[0], -costs.unit / 2)
        program.linear.at_most("less_costly", program.costs, less)
        raised = partial(_raise_bound, costs, control, before[0])
        if program.solve(control, backend, raised).status is Status.INFEASIBLE:
            raised(less)
        if _nothing_between(before, demand, relaxation, control, backend):
            raised(math.inf)
        elif control.goals == before and before[0] > control.lower_bound:
            return False
    return True


def _nothing_between(
    goals: Goals, demand: Demand, relaxation: Relaxation, control: Control[Deployment], backend: Backend
) -> bool:
    """Return True if no deployment is between the bound and the cost, which has still to be that of the ``goals``.

    Solvers do not tell costs apart that differ by their tolerances, but numbers of GPUs of each cost.
    """
    if control.goals != goals or control.expired:
        return False
    costs = sorted({demand.costs.each[pool] for pool in relaxation.kinds.pools} - {Fraction(0)}, reverse=True)
    if math.prod(as_fraction(goals[0]) // cost + 1 for cost in costs[:-1]) > _MOST_NUMBERS:
        return False
    between = list(itertools.islice(_sums(costs, control.lower_bound, goals[0]), _FEW + 1))
    if len(between) > _FEW:
        return False
    for counts in between:
        program = FleetProgram(demand, relaxation)
        for at, (cost, count) in enumerate(zip(costs, counts, strict=True)):
            alike = (terms for pool, terms in program.of_pool.items() if demand.costs.each[pool] == cost)
            program.linear.equal(f"gpus_{at}", itertools.chain(*alike), count)
        program.linear.minimise_sum(program.costs)
        if program.solve(control, backend).status is not Status.INFEASIBLE:
            return False
    return True


def _sums(costs: list[Fraction], low: float, high: float) -> Iterator[tuple[int, ...]]:
    """Yield numbers of GPUs of each cost, the last of which is the least, that cost ``low`` or more, below ``high``."""
    for counts in itertools.product(*(range(as_fraction(high) // cost + 2) for cost in costs[:-1])):
        known = sum(map(operator.mul, costs, counts), Fraction(0))
        # One more on either side: a cost may be a rounded sum.
        first, last = (math.ceil((as_fraction(end) - known) / costs[-1]) for end in (low, high))
        for count in range(max(first - 1, 0), last + 2):
            if low <= plain(known + count * costs[-1]) < high:
                yield *counts, count


def _raise_bound(costs: Costs, control: Control[Deployment], found: float, bound: float) -> None:
    """Report a bound of the program for less than what was ``found``: above that it means nothing."""
    if bound > 0:
        more = "take fewer GPUs" if costs.counted else "cost less"
        least = found if bound == math.inf else costs.raised(Fraction(bound) / costs.scale, costs.noise)
        control.raise_bound(min(least, found), f"no whole numbers of partitions and segments {more}")


def _too_few(demand: Demand, relaxation: Relaxation) -> str:
    """Return why there is no deployment although each service can be served."""
    pools = ", ".join(
        f"{'any number of' if pool.count is None else pool.count} {pool.kind.name}" for pool in demand.pools
    )
    found = shortage(demand, relaxation.bounds[0])
    return found or f"no whole numbers of partitions and segments serve everything with {pools}"


def _fewest(at: int, demand: Demand, relaxation: Relaxation, control: Control[Deployment], backend: Backend) -> bool:
    """Find a deployment that is best in a goal among those as good in the goals before; return whether it is proven."""
    assert control.goals is not None
    program = FleetProgram(demand, relaxation)
    goals = [program.costs, program.gpus, program.slices]
    known = [demand.costs.limit(control.goals[0], demand.costs.noise), *control.goals[1:]]
    for before in range(at):
        program.linear.at_most(f"as_good_{before}", goals[before], known[before])
    program.linear.at_most("better", goals[at], known[at] - 1)
    program.linear.minimise_sum(goals[at])
    outcome = program.solve(control, backend)
    return outcome.proves(control.goals[at])


class FleetProgram:
    """Program for the number of GPUs of each pattern, and of segments of each kind for each service.

    Its objective is a sum, not a variable for that: HiGHS 1.14 was seen to "prove" optima of 251 GPUs then, where 6 do.
    """

    def __init__(self, demand: Demand, relaxation: Relaxation) -> None:
        self._demand, self._relaxation = demand, relaxation
        self.linear = LinearProgram("fleet")  # without an objective
        ways = FleetWays(demand, relaxation.kinds)
        self._rows = FleetRows(self.linear, "", ways, demand.services)
        self._rows.offer_instances()
        # the cost and the number of GPUs, and of the compute slices of all segments
        self.costs, self.gpus, self.of_pool = self._rows.costs, self._rows.gpus, self._rows.of_pool
        self.slices: list[Term] = [
            (self._rows.segments[name, kind], option.profile.compute_slices)
            for name, options in ways.options.items()
            for kind, option in options
        ]

    def solve(
        self, control: Control[Deployment], backend: Backend, on_bound: Callable[[float], None] | None = None
    ) -> ProgramOutcome:
        """Look for solutions and report what they are as deployments.

        That there are none is believed only if a second look with other tolerances finds none either: with those that
        make its bounds tight, HiGHS 1.14 was seen to err.
        """

        def report(values: Values) -> None:
            counts = np.zeros((len(self._demand.services), self._relaxation.kinds.count), dtype=np.int64)
            rows = {service.name: row for row, service in enumerate(self._demand.services)}
            for (name, kind), variable in self._rows.segments.items():
                counts[rows[name], kind] = round(values[variable.name])
            packed = [
                (packer.gpu.name, packer.placed(pattern))
                for packer, _, pattern, variable in self._rows.patterns
                for _ in range(round(values[variable.name]))
            ]
            # What a solver lets pass within its tolerance may not be enough.
            if (self._relaxation.covers.given(counts) >= ENOUGH).all():
                control.report_plan(filled(self._demand, self._relaxation.kinds, counts, packed))

        outcome = solve_program(self.linear.program, backend, control, on_solution=report, on_bound=on_bound)
        if outcome.status is not Status.INFEASIBLE or not isinstance(backend, Highs):
            return outcome
        known = control.goals
        second = solve_program(self.linear.program, Highs(_LOOSE), control, on_solution=report)
        if control.goals != known:
            return replace(second, status=Status.FEASIBLE, bound=-math.inf)
        done = second.status in (Status.INFEASIBLE, Status.OPTIMAL)
        return outcome if done else replace(second, bound=-math.inf)
