"""Integer program for the layouts of the GPUs after a defragmentation.

A *column* is a layout that a GPU could have afterwards, with the instances that come to the GPU, its fragmentation cost
and its room. GPUs that are alike form a group, and the program says how many of a group take which column. Instances of
one profile are interchangeable, so the GPUs are tied together only by the goal and by the number of instances of each
profile, which stays. Hence the program has one row for each group and each profile, however many layouts there are.

The instances that come to GPUs are the migrations, if there is an order in which they can be done; there may be none
without detours, so the optimum is a lower bound for the migrations. Of solutions with equally many it takes one with
fewer *blocked* arrivals: those whose place is free only once another instance has left.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mig_opt.control import Limits
from mig_opt.models.solvers.backend import solve_program
from mig_opt.models.solvers.highs import highs_or_cbc
from mig_opt.models.solvers.linear import LinearProgram, Term, Variable
from mig_opt.result import Status

_NOISE = 1e-4
"""Most by which a solver's tolerances may move a bound."""
_MOST_WEIGHED = 2000
"""Instances up to which blocked arrivals break ties: with more, the factors of the objective would be too far apart."""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A layout that a GPU of a group could have."""

    group: int  # index of the group
    target: int  # the layout, as a mask of placements
    counts: tuple[int, ...]  # instances of each profile
    moves: int  # migrations that end on it
    blocked: int  # those whose place is not free at the start
    cost: int  # its fragmentation cost in whole units
    room: tuple[int, ...] = ()  # number of instances of each wanted profile for which it has room at once


@dataclass(frozen=True, slots=True)
class TargetProblem:
    """Constraints on a choice of columns."""

    sizes: tuple[int, ...]  # GPUs of each group
    totals: tuple[int, ...] = ()  # instances of each profile; empty if every column of a group has those of the group
    wanted: tuple[int, ...] = ()  # number of instances of each wanted profile for which there has to be room
    # limits on the sums of costs and of migrations
    most_cost: int | None = None
    most_moves: int | None = None


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """A choice of columns."""

    status: Status  # ``optimal``, ``feasible``, ``infeasible`` or ``no_solution``
    counts: dict[TargetColumn, int]  # number of GPUs that take each column; empty without a solution
    bound: int | None  # no choice has a smaller sum; None if nothing is known

    @property
    def cost(self) -> int:
        """Sum of the costs."""
        return sum(column.cost * count for column, count in self.counts.items())

    @property
    def moves(self) -> int:
        """Sum of the migrations."""
        return sum(column.moves * count for column, count in self.counts.items())


def choose_targets(
    columns: Sequence[TargetColumn],
    problem: TargetProblem,
    limits: Limits,
    objective: Literal["cost", "moves"],
    without: Iterable[dict[TargetColumn, int]] = (),
) -> TargetChoice:
    """Choose columns, of which each group has one at least, of least cost or fewest migrations; return a bound as well.

    The columns of each entry of ``without`` must not all be taken so many times at once.
    """
    linear = LinearProgram("defragmentation")
    # Costs are counted in multiples of the unit.
    unit = math.gcd(*(column.cost for column in columns)) or 1
    # Number of GPUs that take each column.
    taken = [
        (column, linear.number(f"x{number}", problem.sizes[column.group])) for number, column in enumerate(columns)
    ]
    costs: list[Term] = [(variable, column.cost // unit) for column, variable in taken]
    _constrain(linear, taken, problem, unit)
    for number, cut in enumerate(without):
        terms: list[Term] = [(variable, 1) for column, variable in taken if column in cut]
        linear.at_most(f"without{number}", terms, sum(cut.values()) - 1)

    # A migration counts more than all blocked arrivals together.
    instances = sum(problem.totals)
    weight = instances + 1 if objective == "moves" and instances <= _MOST_WEIGHED else 1
    if objective == "moves":
        costs = [(variable, weight * column.moves + (weight > 1) * column.blocked) for column, variable in taken]
    linear.minimise_sum((variable, factor) for variable, factor in costs if factor)

    outcome = solve_program(linear.program, highs_or_cbc(), limits)
    counts: dict[TargetColumn, int] = {}
    if outcome.values is not None:
        values = outcome.values
        numbers = ((column, round(values[variable.name])) for column, variable in taken)
        counts = {column: number for column, number in numbers if number}
    bound = None
    if math.isfinite(outcome.bound):
        least = math.ceil(outcome.bound - _NOISE)
        bound = least * unit if objective == "cost" else math.ceil((least - weight + 1) / weight)
    return TargetChoice(outcome.status, counts, bound)


def _constrain(
    linear: LinearProgram, taken: Sequence[tuple[TargetColumn, Variable]], problem: TargetProblem, unit: int
) -> None:
    """Add the constraints of a problem; ``taken`` has the number of GPUs that take each column."""
    groups: dict[int, list[Term]] = defaultdict(list)
    for column, variable in taken:
        groups[column.group].append((variable, 1))
    for group, size in enumerate(problem.sizes):
        linear.equal(f"group{group}", groups[group], size)
    for profile, total in enumerate(problem.totals):
        linear.equal(f"profile{profile}", [(variable, column.counts[profile]) for column, variable in taken], total)
    for number, count in enumerate(problem.wanted):
        linear.at_least(f"room{number}", [(variable, column.room[number]) for column, variable in taken], count)
    if problem.most_cost is not None:
        costs = [(variable, column.cost // unit) for column, variable in taken]
        linear.at_most("cost", costs, problem.most_cost // unit)
    if problem.most_moves is not None:
        linear.at_most("moves", [(variable, column.moves) for column, variable in taken], problem.most_moves)
