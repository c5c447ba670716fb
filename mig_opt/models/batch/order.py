"""The order in time of the mixed-integer program: which lifetime comes before which, and what the driver does when."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mig_opt.batch.integer_batch import IntegerBatch, Place
from mig_opt.batch.schedule import OperationKind
from mig_opt.models.batch.slots import Slots
from mig_opt.models.solvers.linear import LinearProgram, Term, Terms, Variable

_IMPLIED: tuple[tuple[tuple[OperationKind, OperationKind], tuple[OperationKind, OperationKind]], ...] = (
    (("destroy", "create"), ("create", "create")),
    (("destroy", "create"), ("destroy", "destroy")),
    (("create", "create"), ("create", "destroy")),
    (("destroy", "destroy"), ("create", "destroy")),
)
"""If the first operation of one lifetime is before the second one of another (left), so are those on the right."""


class _Operation(NamedTuple):
    """An operation that may happen.

    Attributes
    ----------
    kind : str
        ``create`` or ``destroy``.
    begin : pulp.LpVariable
        When.
    length : terms
        Units, 0 if it does not happen.
    ticks : int
        Ticks if it happens.
    """

    kind: OperationKind
    begin: Variable
    length: Terms
    ticks: int


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """What the rest of the program says about each lifetime.

    Attributes
    ----------
    problem : IntegerBatch
        The batch in ticks.
    layout : Slots
        The lifetimes.
    names : sequence of str
        Their names.
    used : sequence of pulp.LpVariable
        1 for each lifetime that runs something, else 0.
    load : sequence of terms
        Units that its tasks take.
    loose : dict of int to pulp.LpVariable
        1 for each place, by index, that is loose.
    """

    problem: IntegerBatch
    layout: Slots
    names: Sequence[str]
    used: Sequence[Variable]
    load: Sequence[Sequence[Term]]
    loose: dict[int, Variable]

    def place(self, slot: int) -> Place:
        """Return the place of a lifetime."""
        return self.problem.places[self.layout.lifetimes[slot].place]

    def initial(self, slot: int) -> bool:
        """Whether a lifetime exists at the start."""
        return self.layout.lifetimes[slot].initial

    def in_time(self, slot: int) -> list[Term]:
        """Return terms whose sum is 1 if a lifetime has a place in time: it exists, and its place is not loose.

        A live instance exists anyway; its 1 is left out.
        """
        at = self.layout.lifetimes[slot].place
        terms: list[Term] = [] if self.initial(slot) else [(self.used[slot], 1)]
        # Of a loose place only the first created lifetime is used.
        if at in self.loose and (self.initial(slot) or slot == self.layout.created(at)[0]):
            terms.append((self.loose[at], -1))
        return terms


class Order:
    """Adds the order in time to a program.

    A lifetime without a place in time begins at 0, and one that is not destroyed "is destroyed" at the horizon; all
    that happens ends until then. So no row needs to know whether an operation happens at all, but for its length.

    Parameters
    ----------
    linear : LinearProgram
        The program.
    lifetimes : Lifetimes
        What can be ordered.
    makespan : pulp.LpVariable
        No lifetime ends later.
    unit : Fraction
        Ticks in one unit of the program's time.
    horizon : Fraction
        Ticks within which everything happens.

    Attributes
    ----------
    creation, destruction : dict of int to pulp.LpVariable
        Begins of the operations of each lifetime, by index.
    before : dict of (int, int) to pulp.LpVariable
        1 if the first lifetime is destroyed before the second one is created.
    """

    def __init__(
        self, linear: LinearProgram, lifetimes: Lifetimes, makespan: Variable, unit: Fraction, horizon: Fraction
    ) -> None:
        self._linear = linear
        self._lives = lifetimes
        self._makespan = makespan
        self._unit = unit
        self._horizon = horizon
        self._all = self._units(horizon)
        self.creation: dict[int, Variable] = {}
        self.destruction: dict[int, Variable] = {}
        self.before: dict[tuple[int, int], Variable] = {}
        self._destroyed: list[Variable] = []

    def constrain(self) -> None:
        """Add variables and rows."""
        count = len(self._lives.layout.lifetimes)
        for slot in range(count):
            self._live(slot)
        apart = set(itertools.combinations(range(count), 2))
        for one, two, possible in self._lives.layout.exclusions():
            apart.discard((one, two))
            self._exclude(one, two, possible)
        for slot in range(count):
            followers = [(choice, -1) for (one, _), choice in self.before.items() if one == slot]
            name = f"destroy_{self._lives.names[slot]}_followed"
            self._linear.at_most(name, [(self._destroyed[slot], 1), *followers], 0)
        if not self._lives.problem.batch.parallel_operations:
            for one, two in sorted(apart):
                if self._lives.place(one).gpu == self._lives.place(two).gpu:
                    self._share_driver(one, two)

    def _units(self, ticks: Fraction | int) -> float:
        return float(ticks / self._unit)

    def _time(self, name: str) -> Variable:
        return self._linear.continuous(name, 0, self._all)

    def _live(self, slot: int) -> None:
        """Let the tasks of a lifetime run after its creation, and before its destruction."""
        place, name = self._lives.place(slot), self._lives.names[slot]
        used, load = self._lives.used[slot], self._lives.load[slot]
        destruction = self.destruction[slot] = self._time(f"begin_destroy_{name}")
        destroyed = self._linear.choice(f"destroy_{name}")
        self._destroyed.append(destroyed)
        begin: list[Term]
        if self._lives.initial(slot):
            free = place.free or 0
            if free > self._horizon:
                # A solver is spared numbers far above all others.
                destroyed.upBound = used.upBound = free = 0
            begin, ready = [(used, self._units(free))], [(destroyed, self._units(free))]
        else:
            creation = self.creation[slot] = self._time(f"begin_create_{name}")
            begin = ready = [(creation, 1.0), (used, self._units(place.create))]
        self._linear.at_most(f"finish_{name}", [*begin, *load, (self._makespan, -1)], 0)
        self._linear.at_most(f"destroy_{name}_finished", [*ready, *load, (destruction, -1)], 0)

    def _exclude(self, one: int, two: int, possible: Sequence[tuple[int, int]]) -> None:
        """Let two lifetimes follow each other in one of the possible orders, if both have a place in time."""
        orders = [self._put_before(*pair) for pair in possible]
        name = f"{self._lives.names[one]}_or_{self._lives.names[two]}"
        exist = [*self._lives.in_time(one), *self._lives.in_time(two)]
        left_out = self._lives.initial(one) + self._lives.initial(two)
        self._linear.at_most(f"order_{name}", [*exist, *((order, -1) for order in orders)], 1 - left_out)
        if len(orders) > 1:
            self._linear.at_most(f"one_order_{name}", [(order, 1) for order in orders], 1)

    def _put_before(self, one: int, two: int) -> Variable:
        """Return a choice that puts the whole lifetime of ``one`` before the creation of ``two``."""
        lifetimes = self._lives
        name = f"first_{lifetimes.names[one]}_then_{lifetimes.names[two]}"
        before = self.before[one, two] = self._linear.choice(name)
        for slot in (one, two):
            exists = [(variable, -factor) for variable, factor in lifetimes.in_time(slot)]
            self._linear.at_most(
                f"{name}_has_{lifetimes.names[slot]}", [(before, 1), *exists], int(lifetimes.initial(slot))
            )
        self._linear.at_most(f"{name}_destroyed", [(before, 1), (self._destroyed[one], -1)], 0)
        length = [(before, self._units(lifetimes.place(one).destroy))]
        self._precede(f"{name}_time", self.destruction[one], length, self.creation[two], before)
        return before

    def _precede(self, name: str, first: Variable, length: Terms, second: Variable, chosen: Variable) -> None:
        """Let ``second`` begin when ``first`` has ended after its length, if ``chosen``."""
        self._linear.at_most(name, [(first, 1), *length, (second, -1), (chosen, self._all)], self._all)

    def _operations(self, slot: int) -> list[_Operation]:
        place = self._lives.place(slot)
        destroy = self._units(place.destroy)
        found = [_Operation("destroy", self.destruction[slot], [(self._destroyed[slot], destroy)], place.destroy)]
        if slot in self.creation:
            create = self._units(place.create)
            length = [(variable, factor * create) for variable, factor in self._lives.in_time(slot)]
            found.append(_Operation("create", self.creation[slot], length, place.create))
        return found

    def _share_driver(self, one: int, two: int) -> None:
        """Let no operations overlap of two lifetimes that may exist together."""
        orders: dict[tuple[OperationKind, OperationKind], Variable] = {}
        for first, second in itertools.product(self._operations(one), self._operations(two)):
            if not first.ticks and not second.ticks:
                continue
            name = f"{first.kind}_{self._lives.names[one]}_before_{second.kind}_{self._lives.names[two]}"
            order = orders[first.kind, second.kind] = self._linear.choice(name)
            self._precede(f"{name}_time", first.begin, first.length, second.begin, order)
            otherwise = [(second.begin, 1.0), *second.length, (first.begin, -1.0), (order, -self._all)]
            self._linear.at_most(f"{name}_not", otherwise, 0)
        # What is before a creation is before that instance's destruction too.
        for sooner, later in _IMPLIED:
            if sooner in orders and later in orders:
                name = f"{orders[sooner].name}_implies_{later[0]}_{later[1]}"
                self._linear.at_most(name, [(orders[sooner], 1), (orders[later], -1)], 0)
