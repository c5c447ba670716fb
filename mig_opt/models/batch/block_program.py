"""The block model (:mod:`mig_opt.models.batch.block_formulation`) as a mixed-integer program, for any solver of such.

It says the same as :mod:`mig_opt.models.batch.block_model`, with these differences of form:

* Every integer is 0 or 1. To count tasks that take the same time everywhere would be shorter, but CBC 2.10.3 was seen
  to "prove" wrong optima of such programs.
* "If" becomes a large constant only where two things may come in either order: lifetimes that exclude each other, and
  operations of one GPU that such lifetimes do not order already. A lifetime that has no place in time begins at 0, and
  one that is not destroyed "is destroyed" at the horizon; all that happens ends until then. So no other row needs to
  know whether an operation happens at all, but for its length.
* The choice of the last instance on a slice is continuous: between the choices, the best one is always whole.

Time is measured in units in which the horizon is a number with three digits, or in seconds for a file.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import OperationKind
from mig_opt.models.batch.block_formulation import BlockForm, BlockFormulation
from mig_opt.models.solvers.linear import LinearProgram, Term, Terms, Variable

_IMPLIED: tuple[tuple[tuple[OperationKind, OperationKind], tuple[OperationKind, OperationKind]], ...] = (
    (("destroy", "create"), ("create", "create")),
    (("destroy", "create"), ("destroy", "destroy")),
    (("create", "create"), ("create", "destroy")),
    (("destroy", "destroy"), ("create", "destroy")),
)
"""Pairs of operations: if one of a lifetime is before one of another (left), so are those on the right."""


class _Operation(NamedTuple):
    """Operation that may happen."""

    kind: OperationKind  # ``create`` or ``destroy``
    begin: Variable  # begin in units
    length: Terms  # units, 0 if it does not happen
    ticks: int  # ticks if it happens


def seconds_to_build(problem: IntegerBatch) -> float:
    """Return about how long it takes to build a block program on a typical machine."""
    return 60e-6 * problem.choices + 20e-6 * len(problem.places) ** 2


class BlockProgram(BlockFormulation):
    """A mixed-integer program of a batch.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.
    form : BlockForm
        Choice of the schedules that it has.
    unit : Fraction, optional
        Ticks in one unit of the program's time. By default the program is made for a solver with tolerances: in units
        that suit them, and with a horizon that is a little later.

    Attributes
    ----------
    linear : LinearProgram
        Its objective is the makespan in units.
    start : dict of str to float, or None
        Values by name for the solver to start from.
    """

    def __init__(self, problem: IntegerBatch, form: BlockForm, *, unit: Fraction | None = None) -> None:
        horizon = Fraction(form.at_most)
        if unit is None:
            unit = Fraction(10) ** (len(str(form.at_most)) - 3)
            # A solver's tolerance must not cut off what is just as long as allowed. Half a tick more changes nothing.
            horizon += max(Fraction(1, 2), form.at_most * Fraction(2, 10**6))
        self.unit, self.linear = unit, LinearProgram("makespan")
        self.start: dict[str, float] | None = None
        super().__init__(problem, form, self.linear, lambda ticks: float(ticks / unit))
        self._latest = float(horizon / unit)
        self._makespan = self.linear.continuous("makespan", self.amount(form.at_least), self._latest)
        self._build(form)
        self.linear.minimise(self._makespan)

    def _use(self, choices: Sequence[Sequence[Variable]]) -> list[Variable]:
        used = [self.linear.choice(f"use_{name}") for name in self._names]
        for name, use, own in zip(self._names, used, choices, strict=True):
            for choice in own:
                self.linear.implies(f"{choice.name}_in_use", choice, use)
            self.linear.requires(f"idle_{name}", use, own)
        return used

    # The order in time

    def _initial(self, slot: int) -> bool:
        return self.slots.lifetimes[slot].initial

    def _in_time(self, slot: int) -> list[Term]:
        """Return terms whose sum is 1 if a lifetime has a place in time: it exists, and its place is not loose.

        A live instance exists anyway; its 1 is left out.
        """
        at = self.slots.lifetimes[slot].place
        terms: list[Term] = [] if self._initial(slot) else [(self.used[slot], 1)]
        # Of a loose place only the first created lifetime is used.
        if at in self.loose and (self._initial(slot) or slot == self.slots.created(at)[0]):
            terms.append((self.loose[at], -1))
        return terms

    def _order(self) -> None:
        count = len(self.slots.lifetimes)
        self._destroyed: list[Variable] = []
        for slot in range(count):
            self._live(slot)
        self._follow()
        if not self.problem.batch.parallel_operations:
            ordered = {(one, two) for one, two, _ in self.slots.exclusions()}
            for one, two in sorted({*itertools.combinations(range(count), 2)} - ordered):
                if self._place(one).gpu == self._place(two).gpu:
                    self._share_driver(one, two)

    def _live(self, slot: int) -> None:
        """Let the tasks of a lifetime run after its creation, and before its destruction."""
        place, name = self._place(slot), self._names[slot]
        used, load = self.used[slot], self._load[slot]
        destruction = self.destruction[slot] = self.linear.continuous(f"begin_destroy_{name}", 0.0, self._latest)
        destroyed = self.linear.choice(f"destroy_{name}")
        self._destroyed.append(destroyed)
        begin: list[Term]
        if self._initial(slot):
            free = self.amount(place.free or 0)
            begin, ready = [(used, free)], [(destroyed, free)]
        else:
            creation = self.creation[slot] = self.linear.continuous(f"begin_create_{name}", 0.0, self._latest)
            begin = ready = [(creation, 1.0), (used, self.amount(place.create))]
        self.linear.at_most(f"finish_{name}", [*begin, *load, (self._makespan, -1)], 0)
        self.linear.at_most(f"destroy_{name}_finished", [*ready, *load, (destruction, -1)], 0)

    def _exclude(self, one: int, two: int, orders: Sequence[Variable]) -> None:
        name = f"{self._names[one]}_or_{self._names[two]}"
        exist = [*self._in_time(one), *self._in_time(two)]
        left_out = self._initial(one) + self._initial(two)
        self.linear.at_most(f"order_{name}", [*exist, *((order, -1) for order in orders)], 1 - left_out)
        if len(orders) > 1:
            self.linear.at_most(f"one_order_{name}", [(order, 1) for order in orders], 1)

    def _put_before(self, one: int, two: int) -> Variable:
        name = f"first_{self._names[one]}_then_{self._names[two]}"
        before = self.before[one, two] = self.linear.choice(name)
        for slot in (one, two):
            exists = [(variable, -factor) for variable, factor in self._in_time(slot)]
            self.linear.at_most(f"{name}_has_{self._names[slot]}", [(before, 1), *exists], int(self._initial(slot)))
        self.linear.implies(f"{name}_destroyed", before, self._destroyed[one])
        length = [(before, self.amount(self._place(one).destroy))]
        self._precede(f"{name}_time", self.destruction[one], length, self.creation[two], before)
        return before

    def _precede(self, name: str, first: Variable, length: Terms, second: Variable, chosen: Variable) -> None:
        """Let ``second`` begin when ``first`` has ended after its length, if ``chosen``."""
        self.linear.at_most(name, [(first, 1), *length, (second, -1), (chosen, self._latest)], self._latest)

    def _operations(self, slot: int) -> list[_Operation]:
        place = self._place(slot)
        destroy = self.amount(place.destroy)
        found = [_Operation("destroy", self.destruction[slot], [(self._destroyed[slot], destroy)], place.destroy)]
        if slot in self.creation:
            create = self.amount(place.create)
            length = [(variable, factor * create) for variable, factor in self._in_time(slot)]
            found.append(_Operation("create", self.creation[slot], length, place.create))
        return found

    def _share_driver(self, one: int, two: int) -> None:
        """Let no operations overlap of two lifetimes that may exist together."""
        orders: dict[tuple[OperationKind, OperationKind], Variable] = {}
        for first, second in itertools.product(self._operations(one), self._operations(two)):
            if not first.ticks and not second.ticks:
                continue
            name = f"{first.kind}_{self._names[one]}_before_{second.kind}_{self._names[two]}"
            order = orders[first.kind, second.kind] = self.linear.choice(name)
            self._precede(f"{name}_time", first.begin, first.length, second.begin, order)
            otherwise = [(second.begin, 1.0), *second.length, (first.begin, -1.0), (order, -self._latest)]
            self.linear.at_most(f"{name}_not", otherwise, 0)
        # What is before a creation is before that instance's destruction too.
        for sooner, later in _IMPLIED:
            if sooner in orders and later in orders:
                name = f"{orders[sooner].name}_implies_{later[0]}_{later[1]}"
                self.linear.implies(name, orders[sooner], orders[later])

    # Solutions

    def ticks(self, units: float) -> Fraction:
        """Return the ticks of a time in the program, which is finite."""
        return Fraction(units) * self.unit

    def whole(self, values: Mapping[str, float]) -> list[int]:
        """Return a solution, given by name, as whole numbers: choices, and times in ticks."""
        return [
            round(values[variable.name] * (1 if variable.isInteger() else self.unit))
            for variable in self.linear.variables
        ]

    def hint(self, values: Sequence[int]) -> None:
        """Keep a complete solution for the solver to start from."""
        self.start = {
            variable.name: value if variable.isInteger() else self.amount(value)
            for variable, value in zip(self.linear.variables, values, strict=True)
        }

    def fixed(self, places: Sequence[int]) -> contextlib.AbstractContextManager[None]:
        """Put each task at its given place for a while (first created lifetime, or the live one)."""
        values = {
            choice: float(slot == self.slots.of_place[at][0])
            for at, choices in zip(places, self.assigned, strict=True)
            for slot, choice in choices.items()
        }
        return self.linear.fixed(values)

    def _at(self, variable: Variable) -> int:
        return self._index[variable.name]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {variable.name: at for at, variable in enumerate(self.linear.variables)}
