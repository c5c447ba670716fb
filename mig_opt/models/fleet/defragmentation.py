"""Integer program for the layouts of the GPUs after a defragmentation.

A *column* is a layout that a GPU could have afterwards, with the instances that come to the GPU, its fragmentation cost
and its room. GPUs that are alike form a group, and the program says how many of a group take which column. Instances of
one profile are interchangeable, so the GPUs are tied together only by the goal and by the number of instances of each
profile, which stays. Hence the program has one row for each group and each profile, however many layouts there are.

Where whole nodes are to be empty, a variable of each says whether it is used.

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

from mig_opt.method.control import Limits
from mig_opt.method.result import Status
from mig_opt.models.solvers.backend import solve_program
from mig_opt.models.solvers.highs import highs_or_cbc
from mig_opt.models.solvers.linear import LinearProgram, Term, Variable

_NOISE = 1e-4  # most by which a solver's tolerances may move a bound
# Instances up to which blocked arrivals break ties: with more, the factors of the objective would be too far apart.
_MAX_INSTANCES_WEIGHED = 2000


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
    weight: int = 0  # weight of its migrations: their number unless some count more


@dataclass(frozen=True, slots=True)
class TargetProblem:
    """Constraints on a choice of columns."""

    sizes: tuple[int, ...]  # GPUs of each group
    totals: tuple[int, ...] = ()  # instances of each profile; empty if every column of a group has those of the group
    wanted: tuple[int, ...] = ()  # number of instances of each wanted profile for which there has to be room
    # GPUs of each node by group, if the costs are the nodes that are not empty
    nodes: tuple[tuple[tuple[int, int], ...], ...] = ()
    # limits on the sums of costs and of migrations
    most_cost: int | None = None
    most_moves: int | None = None


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """A choice of columns."""

    status: Status  # ``optimal``, ``feasible``, ``infeasible`` or ``no_solution``
    counts: dict[TargetColumn, int]  # number of GPUs that take each column; empty without a solution
    bound: int | None  # no choice has a smaller sum; None if nothing is known
    used: tuple[bool, ...] = ()  # the nodes that are not empty, if they are the costs

    @property
    def cost(self) -> int:
        """Sum of the costs."""
        if self.used:
            return sum(self.used)
        return sum(column.cost * count for column, count in self.counts.items())

    @property
    def moves(self) -> int:
        """Sum of the migrations."""
        return sum(column.moves * count for column, count in self.counts.items())


def choose_targets(
    columns: Sequence[TargetColumn],
    problem: TargetProblem,
    limits: Limits,
    objective: Literal["cost", "weight"],
    without: Iterable[dict[TargetColumn, int]] = (),
    *,
    share: float = 1.0,
) -> TargetChoice:
    """Choose columns, of which each group has one at least, of least cost or weight; return a bound as well.

    No solution takes each column of an entry of ``without`` as many times as that says. ``share`` is that of the time
    which is left.
    """
    linear = LinearProgram("defragmentation")
    # Costs are counted in multiples of the unit.
    unit = 1 if problem.nodes else math.gcd(*(column.cost for column in columns)) or 1
    # Number of GPUs that take each column.
    taken = [(one, linear.number(f"x{number}", problem.sizes[one.group])) for number, one in enumerate(columns)]
    costs: list[Term] = [(variable, column.cost // unit) for column, variable in taken]
    if problem.nodes:
        costs = [(variable, 1) for variable in _used_nodes(linear, taken, problem)]
    _constrain(linear, taken, problem, costs, unit)
    for number, cut in enumerate(without):
        terms: list[Term] = [(variable, 1) for column, variable in taken if column in cut]
        linear.at_most(f"without{number}", terms, sum(cut.values()) - 1)

    # A migration counts more than all blocked arrivals together.
    instances = sum(problem.totals)
    weight = instances + 1 if objective == "weight" and instances <= _MAX_INSTANCES_WEIGHED else 1
    goal = costs
    if objective == "weight":
        goal = [(variable, weight * column.weight + (weight > 1) * column.blocked) for column, variable in taken]
    linear.minimise_sum((variable, factor) for variable, factor in goal if factor)

    outcome = solve_program(linear.program, highs_or_cbc(), limits, share=share)
    counts: dict[TargetColumn, int] = {}
    used: tuple[bool, ...] = ()
    if outcome.values is not None:
        values = outcome.values
        used = tuple(round(values[variable.name]) > 0 for variable, _ in costs) if problem.nodes else ()
        numbers = ((column, round(values[variable.name])) for column, variable in taken)
        counts = {column: number for column, number in numbers if number}
    bound = None
    if math.isfinite(outcome.bound):
        least = math.ceil(outcome.bound - _NOISE)
        bound = least * unit if objective == "cost" else math.ceil((least - weight + 1) / weight)
    return TargetChoice(outcome.status, counts, bound, used)


_Taken = Sequence[tuple[TargetColumn, Variable]]
"""Columns, each with the number of GPUs that take it."""


def _used_nodes(linear: LinearProgram, taken: _Taken, problem: TargetProblem) -> list[Variable]:
    """Return a variable for each node, which is 1 unless all of its GPUs are empty.

    GPUs of a group are interchangeable, so it is enough that as many of them are empty as unused nodes have.
    """
    used = [linear.number(f"node{node}", 1) for node in range(len(problem.nodes))]
    terms: dict[int, list[Term]] = defaultdict(list)
    for column, variable in taken:
        if not column.target:
            terms[column.group].append((variable, 1))
    for variable, groups in zip(used, problem.nodes, strict=True):
        for group, gpus in groups:
            terms[group].append((variable, gpus))
    for group, size in enumerate(problem.sizes):
        linear.at_least(f"empty{group}", terms[group], size)
    return used


def _constrain(linear: LinearProgram, taken: _Taken, problem: TargetProblem, costs: Sequence[Term], unit: int) -> None:
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
        linear.at_most("cost", costs, problem.most_cost // unit)
    if problem.most_moves is not None:
        linear.at_most("moves", [(variable, column.moves) for column, variable in taken], problem.most_moves)
