"""Where instances should be after a defragmentation, as an integer program.

What a GPU looks like before and what it could look like after is a *column*: how many instances come to it, its
fragmentation cost afterwards, and for what it has room. GPUs that look alike are a group, and the program says how many
of a group take which column. Instances of one profile are as good as each other, so all that ties the GPUs together is
that of each profile there are as many after as before, and the goal. Hence the program has one row for each group and
each profile, however many states a GPU can have.

The instances that come to GPUs are the migrations, if there is an order in which they can be done; there may be none
without detours, so the optimum is a lower bound for the migrations. Of programs with equally many it takes those with
fewer *blocked* arrivals: places that are free only once another instance has left.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mig_opt.control import Limits
from mig_opt.models.solvers.backend import Values, solve_program
from mig_opt.models.solvers.highs import highs_or_cbc
from mig_opt.models.solvers.linear import LinearProgram, Term
from mig_opt.result import Status

_NOISE = 1e-4
"""By how much a solver's tolerances may move a bound."""
_MOST_WEIGHED = 2000
"""Instances up to which blocked arrivals break ties: with more, the factors of the objective would be too far apart."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a GPU of a group could look like.

    Attributes
    ----------
    group : int
        Which group.
    target : int
        What it looks like, as whoever made the column numbers it.
    counts : tuple of int
        Instances of each profile.
    moves : int
        Migrations that end on it.
    blocked : int
        Those whose place is not free at the start.
    cost : int
        Its fragmentation cost in whole units.
    room : tuple of int
        For how many instances of each wanted profile it has room at once.
    """

    group: int
    target: int
    counts: tuple[int, ...]
    moves: int
    blocked: int
    cost: int
    room: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked of a choice of columns.

    Attributes
    ----------
    sizes : tuple of int
        GPUs of each group.
    totals : tuple of int
        Instances of each profile; empty if every column of a group has those of the group.
    wanted : tuple of int
        For how many instances of each wanted profile there has to be room.
    most_cost, most_moves : int or None
        Limits on the sums of costs and of migrations.
    """

    sizes: tuple[int, ...]
    totals: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()
    most_cost: int | None = None
    most_moves: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of columns.

    Attributes
    ----------
    status : Status
        ``optimal``, ``feasible``, ``infeasible`` or ``no_solution``.
    counts : dict of Column to int
        How many GPUs take which column; empty without a solution.
    bound : int or None
        No choice has a smaller sum; None if nothing is known.
    """

    status: Status
    counts: dict[Column, int]
    bound: int | None

    @property
    def cost(self) -> int:
        """The sum of the costs."""
        return sum(column.cost * count for column, count in self.counts.items())

    @property
    def moves(self) -> int:
        """The sum of the migrations."""
        return sum(column.moves * count for column, count in self.counts.items())


def choose(
    columns: Sequence[Column],
    task: Task,
    limits: Limits,
    goal: Literal["cost", "moves"],
    without: Iterable[dict[Column, int]] = (),
) -> Choice:
    """Choose columns of least cost or fewest moves.

    Parameters
    ----------
    columns : sequence of Column
        Each group has one at least.
    task : Task
        What the choice has to keep.
    limits : Limits
        Time and seed.
    goal : str
        Which sum is to be least.
    without : iterable of dict
        Columns that must not be taken as often as that all together.
    """
    program = _Program(columns, task, without)
    weight = program.aim_at(goal)
    outcome = solve_program(program.linear.program, highs_or_cbc(), limits)
    counts = {} if outcome.values is None else program.counts(outcome.values)
    bound = None
    if math.isfinite(outcome.bound):
        least = math.ceil(outcome.bound - _NOISE)
        # The blocked arrivals of a choice are fewer than its weight.
        bound = least * program.unit if goal == "cost" else math.ceil((least - weight + 1) / weight)
    return Choice(outcome.status, counts, bound)


class _Program:
    """The program of a task without its objective.

    Attributes
    ----------
    linear : LinearProgram
        Itself.
    unit : int
        Costs are counted in multiples of it.
    """

    def __init__(self, columns: Sequence[Column], task: Task, without: Iterable[dict[Column, int]]) -> None:
        self.linear = linear = LinearProgram("defragmentation")
        self.unit = math.gcd(*(column.cost for column in columns)) or 1
        self._instances = sum(task.totals)
        self._taken = taken = [
            (column, linear.number(f"x{number}", task.sizes[column.group])) for number, column in enumerate(columns)
        ]
        groups: dict[int, list[Term]] = defaultdict(list)
        for column, variable in taken:
            groups[column.group].append((variable, 1))
        for group, size in enumerate(task.sizes):
            linear.equal(f"group{group}", groups[group], size)
        for profile, total in enumerate(task.totals):
            linear.equal(f"profile{profile}", [(variable, column.counts[profile]) for column, variable in taken], total)
        for number, count in enumerate(task.wanted):
            linear.at_least(f"room{number}", [(variable, column.room[number]) for column, variable in taken], count)
        if task.most_cost is not None:
            linear.at_most("cost", self._costs(), task.most_cost // self.unit)
        if task.most_moves is not None:
            linear.at_most("moves", [(variable, column.moves) for column, variable in taken], task.most_moves)
        for number, cut in enumerate(without):
            terms = [(variable, 1) for column, variable in taken if column in cut]
            linear.at_most(f"without{number}", terms, sum(cut.values()) - 1)

    def _costs(self) -> list[Term]:
        return [(variable, column.cost // self.unit) for column, variable in self._taken]

    def aim_at(self, goal: Literal["cost", "moves"]) -> int:
        """Set the objective; return what a migration counts in it."""
        weight, terms = 1, self._costs()
        if goal == "moves":
            weight = self._instances + 1 if self._instances <= _MOST_WEIGHED else 1
            tie = int(weight > 1)
            terms = [(variable, weight * column.moves + tie * column.blocked) for column, variable in self._taken]
        self.linear.minimise_sum((variable, factor) for variable, factor in terms if factor)
        return weight

    def counts(self, values: Values) -> dict[Column, int]:
        """Return how many GPUs take which column in a solution."""
        numbers = ((column, round(values[variable.name])) for column, variable in self._taken)
        return {column: number for column, number in numbers if number}
