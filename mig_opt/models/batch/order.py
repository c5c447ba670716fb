"""Order in time of the mixed-integer program: of the lifetimes, and of the operations of each driver."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from mig_opt.batch.integer_batch import IntegerBatch, Place
from mig_opt.batch.schedule import OperationKind
from mig_opt.models.batch.slots import BlockFormulation, Slots
from mig_opt.models.solvers.linear import LinearProgram, Term, Terms, Variable

_IMPLIED: tuple[tuple[tuple[OperationKind, OperationKind], tuple[OperationKind, OperationKind]], ...] = (
    (("destroy", "create"), ("create", "create")),
    (("destroy", "create"), ("destroy", "destroy")),
    (("create", "create"), ("create", "destroy")),
    (("destroy", "destroy"), ("create", "destroy")),
)
"""If the first operation of one lifetime is before the second one of another (left), so are those on the right."""


class _Operation(NamedTuple):
    """Operation that may happen."""

    kind: OperationKind  # ``create`` or ``destroy``
    begin: Variable  # begin in units
    length: Terms  # units, 0 if it does not happen
    ticks: int  # ticks if it happens


class OrderedFormulation(BlockFormulation):
    """Block formulation in rows, with the order in time of its lifetimes.

    A lifetime without a place in time begins at 0, and one that is not destroyed "is destroyed" at the horizon; all
    that happens ends until then. So no row needs to know whether an operation happens at all, but for its length.

    Attributes
    ----------
    problem : IntegerBatch
        The batch in ticks.
    linear : LinearProgram
        Its objective is the makespan in units.
    unit : Fraction
        Ticks in one unit of the program's time.
    """

    def __init__(self, problem: IntegerBatch, slots: Slots, unit: Fraction, horizon: Fraction, at_least: int) -> None:
        super().__init__()
        self.problem, self.slots, self.unit = problem, slots, unit
        self.linear = LinearProgram("makespan")
        self._latest = self._units(horizon)
        self._slot_names = list(self._name_slots())
        self._makespan = self._time("makespan", at_least)
        self._load: list[list[Term]] = []
        self._destroyed: list[Variable] = []

    def _name_slots(self) -> Iterator[str]:
        count: dict[int, int] = {}
        for lifetime in self.slots.lifetimes:
            place = self.problem.places[lifetime.place]
            profile = re.sub(r"\W", "_", place.placement.profile.name)
            name = f"{f'gpu{place.gpu}_' if self.problem.batch.gpus > 1 else ''}{profile}_at_{place.placement.start}"
            if lifetime.initial:
                yield f"{name}_live"
                continue
            count[lifetime.place] = count.get(lifetime.place, 0) + 1
            yield name if count[lifetime.place] == 1 else f"{name}_lifetime{count[lifetime.place]}"

    def _units(self, ticks: Fraction | int) -> float:
        return float(ticks / self.unit)

    def _time(self, name: str, at_least: int = 0) -> Variable:
        return self.linear.continuous(name, self._units(at_least), self._latest)

    def _place(self, slot: int) -> Place:
        return self.problem.places[self.slots.lifetimes[slot].place]

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
        """Add the variables and rows of the order in time."""
        count = len(self.slots.lifetimes)
        for slot in range(count):
            self._live(slot)
        apart = set(itertools.combinations(range(count), 2))
        for one, two, possible in self.slots.exclusions():
            apart.discard((one, two))
            self._exclude(one, two, possible)
        for slot in range(count):
            followers = [(choice, -1) for (one, _), choice in self.before.items() if one == slot]
            name = f"destroy_{self._slot_names[slot]}_followed"
            self.linear.at_most(name, [(self._destroyed[slot], 1), *followers], 0)
        if not self.problem.batch.parallel_operations:
            for one, two in sorted(apart):
                if self._place(one).gpu == self._place(two).gpu:
                    self._share_driver(one, two)

    def _live(self, slot: int) -> None:
        """Let the tasks of a lifetime run after its creation, and before its destruction."""
        place, name = self._place(slot), self._slot_names[slot]
        used, load = self.used[slot], self._load[slot]
        destruction = self.destruction[slot] = self._time(f"begin_destroy_{name}")
        destroyed = self.linear.choice(f"destroy_{name}")
        self._destroyed.append(destroyed)
        begin: list[Term]
        if self._initial(slot):
            free = self._units(place.free or 0)
            begin, ready = [(used, free)], [(destroyed, free)]
        else:
            creation = self.creation[slot] = self._time(f"begin_create_{name}")
            begin = ready = [(creation, 1.0), (used, self._units(place.create))]
        self.linear.at_most(f"finish_{name}", [*begin, *load, (self._makespan, -1)], 0)
        self.linear.at_most(f"destroy_{name}_finished", [*ready, *load, (destruction, -1)], 0)

    def _exclude(self, one: int, two: int, possible: Sequence[tuple[int, int]]) -> None:
        """Let two lifetimes follow each other in one of the possible orders, if both have a place in time."""
        orders = [self._put_before(*pair) for pair in possible]
        name = f"{self._slot_names[one]}_or_{self._slot_names[two]}"
        exist = [*self._in_time(one), *self._in_time(two)]
        left_out = self._initial(one) + self._initial(two)
        self.linear.at_most(f"order_{name}", [*exist, *((order, -1) for order in orders)], 1 - left_out)
        if len(orders) > 1:
            self.linear.at_most(f"one_order_{name}", [(order, 1) for order in orders], 1)

    def _put_before(self, one: int, two: int) -> Variable:
        """Return a choice that puts the whole lifetime of ``one`` before the creation of ``two``."""
        name = f"first_{self._slot_names[one]}_then_{self._slot_names[two]}"
        before = self.before[one, two] = self.linear.choice(name)
        for slot in (one, two):
            exists = [(variable, -factor) for variable, factor in self._in_time(slot)]
            self.linear.at_most(
                f"{name}_has_{self._slot_names[slot]}", [(before, 1), *exists], int(self._initial(slot))
            )
        self.linear.implies(f"{name}_destroyed", before, self._destroyed[one])
        length = [(before, self._units(self._place(one).destroy))]
        self._precede(f"{name}_time", self.destruction[one], length, self.creation[two], before)
        return before

    def _precede(self, name: str, first: Variable, length: Terms, second: Variable, chosen: Variable) -> None:
        """Let ``second`` begin when ``first`` has ended after its length, if ``chosen``."""
        self.linear.at_most(name, [(first, 1), *length, (second, -1), (chosen, self._latest)], self._latest)

    def _operations(self, slot: int) -> list[_Operation]:
        place = self._place(slot)
        destroy = self._units(place.destroy)
        found = [_Operation("destroy", self.destruction[slot], [(self._destroyed[slot], destroy)], place.destroy)]
        if slot in self.creation:
            create = self._units(place.create)
            length = [(variable, factor * create) for variable, factor in self._in_time(slot)]
            found.append(_Operation("create", self.creation[slot], length, place.create))
        return found

    def _share_driver(self, one: int, two: int) -> None:
        """Let no operations overlap of two lifetimes that may exist together."""
        orders: dict[tuple[OperationKind, OperationKind], Variable] = {}
        for first, second in itertools.product(self._operations(one), self._operations(two)):
            if not first.ticks and not second.ticks:
                continue
            name = f"{first.kind}_{self._slot_names[one]}_before_{second.kind}_{self._slot_names[two]}"
            order = orders[first.kind, second.kind] = self.linear.choice(name)
            self._precede(f"{name}_time", first.begin, first.length, second.begin, order)
            otherwise = [(second.begin, 1.0), *second.length, (first.begin, -1.0), (order, -self._latest)]
            self.linear.at_most(f"{name}_not", otherwise, 0)
        # What is before a creation is before that instance's destruction too.
        for sooner, later in _IMPLIED:
            if sooner in orders and later in orders:
                name = f"{orders[sooner].name}_implies_{later[0]}_{later[1]}"
                self.linear.implies(name, orders[sooner], orders[later])
