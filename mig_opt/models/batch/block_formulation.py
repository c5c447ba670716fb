"""The block model: tasks are assigned to placements, and each placement becomes one block of time.

Tasks on the same instance can follow each other in any order, so only the *load* of an instance matters, the sum of
its tasks' seconds. The model has a choice for each task and placement, and for each placement one optional creation,
one block as long as its load, and one optional destruction; blocks of conflicting placements exclude each other from
creation to destruction, and the operations of a GPU do not overlap.

In its *strict* form the model allows each placement at most ``copies`` creations: what it finds is a schedule, but its
bound holds for such schedules only. In its *relaxed* form a placement may be created more often than that. Such a
*loose* placement pays for one creation and one destruction more on every slice that it covers, but is otherwise free
of any order in time. Every schedule, whatever it re-creates, satisfies the relaxed model, so its bound holds for
every schedule; and where its optimum has nothing loose, the two forms agree.

Every form contains the slice loads: on each memory slice the creations, runs and destructions of the instances that
cover it follow each other, and all but the last instance are destroyed before the makespan.

All but the order in time is written here, in rows that each solver has: :mod:`mig_opt.models.batch.block_model` is the
model for CP-SAT, :mod:`mig_opt.models.batch.block_program` that for solvers of mixed-integer programs.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from mig_opt.batch.horizon import Place
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, live_by_shape, timed_schedule

if TYPE_CHECKING:
    from mig_opt.models.solvers.cpsat import CpRows  # loads OR-Tools
    from mig_opt.models.solvers.linear import LinearProgram, Term, Variable  # loads PuLP

_LONGEST_NAME = 30
"""Characters of a task's name in names of variables; PuLP writes no LP file with names of more than 100."""

Operation = tuple[OperationKind, int]
"""Creation or destruction of a slot, by its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockForm:
    """Choice of the schedules that a block model has."""

    # ticks between which the makespan is sought
    at_least: int = 0
    at_most: int
    relaxed: bool  # true if placements may be created more often than ``copies``
    # creations with a place in time, by index of place; one where nothing is given
    copies: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slot:
    """One lifetime of an instance."""

    place: int  # index of its place
    initial: bool  # true if it exists at the start; otherwise it has to be created


class Slots:
    """All lifetimes that a model knows: as many creations of each place as ``copies`` has by index, one by default."""

    def __init__(self, problem: IntegerBatch, copies: Mapping[int, int]) -> None:
        self._problem = problem
        self.lifetimes: list[Slot] = []  # those of one place follow each other, a live instance first
        self.of_place: list[list[int]] = []  # the lifetimes of each place, by index
        for at, place in enumerate(problem.places):
            lifetimes = [Slot(at, initial=True)] if place.free is not None else []
            lifetimes += [Slot(at, initial=False)] * copies.get(at, 1)
            self.of_place.append(list(range(len(self.lifetimes), len(self.lifetimes) + len(lifetimes))))
            self.lifetimes += lifetimes

    def created(self, at: int) -> list[int]:
        """Return the lifetimes at a place that begin with a creation, by index."""
        return [slot for slot in self.of_place[at] if not self.lifetimes[slot].initial]

    def names(self) -> Iterator[str]:
        """Yield a name for each lifetime."""
        count: Counter[int] = Counter()
        for lifetime in self.lifetimes:
            place = self._problem.places[lifetime.place]
            profile = re.sub(r"\W", "_", place.placement.profile.name)
            name = f"{f'gpu{place.gpu}_' if self._problem.batch.gpus > 1 else ''}{profile}_at_{place.placement.start}"
            if lifetime.initial:
                yield f"{name}_live"
                continue
            count[lifetime.place] += 1
            yield name if count[lifetime.place] == 1 else f"{name}_lifetime{count[lifetime.place]}"

    def exclusions(self) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Yield each pair of lifetimes that exclude each other, with the orders in which they can follow each other."""
        places = self._problem.places
        for one, lifetime in enumerate(self.lifetimes):
            for two in range(one + 1, len(self.lifetimes)):
                other = self.lifetimes[two]
                if lifetime.place != other.place and not places[lifetime.place].conflicts(places[other.place]):
                    continue
                orders = []
                if not other.initial:
                    orders.append((one, two))
                # The slots of one place are in the order of time; a live instance is before all others.
                if not lifetime.initial and lifetime.place != other.place:
                    orders.append((two, one))
                yield one, two, orders


def _sorted(order: TopologicalSorter[Operation], key: Mapping[Operation, tuple[int, int]]) -> Iterator[Operation]:
    """Yield operations in an order that keeps to their precedence, of those that can come next the one of least key."""
    number = {operation: at for at, operation in enumerate(key)}
    waiting: list[tuple[tuple[int, int], int, Operation]] = []
    order.prepare()
    while order.is_active():
        for operation in order.get_ready():
            heappush(waiting, (key[operation], number[operation], operation))
        operation = heappop(waiting)[2]
        yield operation
        order.done(operation)


def distinct_names(names: Iterable[str], longest: int) -> list[str]:
    """Return names for use in a program: letters, digits and underscores, none twice, not much longer than that."""
    taken: set[str] = set()
    result = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", name)[:longest].strip("_") or "unnamed"
        candidate, number = plain, 2
        while candidate.casefold() in taken:
            candidate, number = f"{plain}_{number}", number + 1
        taken.add(candidate.casefold())
        result.append(candidate)
    return result


class BlockFormulation(ABC):
    """Block model for some solver: its rows, and the reading of its solutions.

    ``rows`` gets the variables and rows; ``amount`` returns ticks in their unit of time.
    """

    used: Sequence[Variable]  # 1 for each slot that runs something
    _load: list[list[Term]]  # of each slot
    _makespan: Variable
    _destroyed: Sequence[Variable]  # 1 for each slot that is destroyed

    def __init__(
        self, problem: IntegerBatch, form: BlockForm, rows: CpRows | LinearProgram, amount: Callable[[int], float]
    ) -> None:
        self.problem, self.rows, self.amount, self.slots = problem, rows, amount, Slots(problem, form.copies)
        self._names = list(self.slots.names())
        self.assigned: list[dict[int, Variable]] = []  # for each task its choices of slots, by index
        self.loose: dict[int, Variable] = {}  # 1 for each place, by index, that may be created more often
        # begin of the operations of each slot
        self.creation: dict[int, Variable] = {}
        self.destruction: dict[int, Variable] = {}
        self.before: dict[tuple[int, int], Variable] = {}  # 1 if the first slot is gone before the second is created

    def _build(self, form: BlockForm) -> None:
        """Write all rows."""
        self._assign(form.at_most)
        if form.relaxed and not self.problem.operations_take_no_time:
            self._loosen()
        self._bound_slices()
        if not self.problem.operations_take_no_time:
            self._order()
        self._break_symmetry()

    # What runs where

    def _place(self, slot: int) -> Place[int]:
        return self.problem.places[self.slots.lifetimes[slot].place]

    def _assign(self, at_most: int) -> None:
        load: list[list[tuple[Variable, int]]] = [[] for _ in self.slots.lifetimes]
        for task, name in enumerate(distinct_names((task.name for task in self.problem.batch.tasks), _LONGEST_NAME)):
            choices = {
                slot: self.rows.choice(f"run_{name}_on_{self._names[slot]}")
                for slot in range(len(load))
                if self._place(slot).durations.get(task, at_most + 1) <= at_most
            }
            for slot, choice in choices.items():
                load[slot].append((choice, self._place(slot).durations[task]))
            self.rows.exactly_one(f"once_{name}", list(choices.values()))
            self.assigned.append(choices)
        self._load = [[(choice, self.amount(ticks)) for choice, ticks in entries] for entries in load]
        self.used = self._use([[choice for choice, _ in entries] for entries in load])
        self._place_used = [
            self.rows.any(f"use_any_{self._names[slots[0]]}", [self.used[slot] for slot in slots])
            for slots in self.slots.of_place
        ]
        for at in range(len(self.problem.places)):
            for earlier, later in itertools.pairwise(self.slots.created(at)):
                self.rows.implies(f"later_{self._names[later]}", self.used[later], self.used[earlier])

    def _conflicting(self, at: int) -> list[Variable]:
        """Return which of the places that exclude a place are used."""
        places = self.problem.places
        return [self._place_used[to] for to, other in enumerate(places) if places[at].conflicts(other)]

    def _loosen(self) -> None:
        """Let places be created once more than they have slots, or oftener.

        That makes sense only if a conflicting instance exists in between. The lifetime in which a task of a loose place
        runs does not matter: all tasks are booked on the first created one.
        """
        for at in range(len(self.problem.places)):
            created = self.slots.created(at)
            first, name = created[0], self._names[created[0]]
            loose = self.loose[at] = self.rows.choice(f"loose_{name}")
            self.rows.implies(f"loose_{name}_used", loose, self.used[first])
            for slot in self.slots.of_place[at]:
                if slot != first:
                    self.rows.at_most_one(f"loose_{name}_not_{self._names[slot]}", [loose, self.used[slot]])
            # Each lifetime runs something: without that, one lifetime less would do.
            runs = [choice for choice, _ in self._load[first]]
            self.rows.requires(f"loose_{name}_tasks", loose, runs, len(created) + 1)
            self.rows.requires(f"loose_{name}_between", loose, self._conflicting(at))

    # The slice loads

    def _bound_slices(self) -> None:
        gone = {slot: self._gone(slot) for slot, lifetime in enumerate(self.slots.lifetimes) if lifetime.initial}
        for number, covering in enumerate(self.problem.slices()):
            terms: list[Term] = [(self._makespan, -1)]
            lasts = []
            for at in covering:
                place, slots = self.problem.places[at], self.slots.of_place[at]
                both = place.create + place.destroy
                if at in self.loose:
                    terms.append((self.loose[at], self.amount(len(self.slots.created(at)) * both)))
                for slot in slots:
                    name = f"last_{self._names[slot]}_of_slice{number}"
                    last = self.rows.share(name)
                    lasts.append(last)
                    terms += self._load[slot]
                    if slot in gone:
                        terms += self._live_terms(slot, gone[slot], last, f"{self._names[slot]}_slice{number}")
                        continue
                    self.rows.implies(f"{name}_used", last, self.used[slot])
                    terms += [(self.used[slot], self.amount(both)), (last, -self.amount(place.destroy))]
            self.rows.at_most_one(f"one_last_of_slice{number}", lasts)
            self.rows.at_most(f"load_of_slice{number}", terms, 0)

    def _gone(self, slot: int) -> Variable:
        """Return a variable that is 1 if a live instance has to make room."""
        at = self.slots.lifetimes[slot].place
        others = [self.used[other] for other in self.slots.of_place[at] if other != slot]
        return self.rows.caused(f"gone_{self._names[slot]}", self._conflicting(at) + others)

    def _live_terms(self, slot: int, gone: Variable, last: Variable, name: str) -> list[Term]:
        """Return what a live instance takes on one slice.

        It holds the slice until it is free, if it runs something or makes room for something here.
        """
        holds, leaves = self.rows.share(f"hold_{name}"), self.rows.share(f"leave_{name}")
        self.rows.requires(f"leave_or_last_{name}", gone, [last, leaves])
        self.rows.implies(f"leave_held_{name}", leaves, holds)
        self.rows.implies(f"use_held_{name}", self.used[slot], holds)
        place = self._place(slot)
        return [(holds, self.amount(place.free or 0)), (leaves, self.amount(place.destroy))]

    # The order in time

    @abstractmethod
    def _use(self, choices: Sequence[Sequence[Variable]]) -> list[Variable]:
        """Return for each slot a variable that is 1 if a task has chosen it, and else 0."""

    @abstractmethod
    def _order(self) -> None:
        """Add the order in time."""

    @abstractmethod
    def _put_before(self, one: int, two: int) -> Variable:
        """Return a choice that puts the whole lifetime of one slot before the creation of another."""

    @abstractmethod
    def _exclude(self, one: int, two: int, orders: Sequence[Variable]) -> None:
        """Demand one of the orders, if both slots have a place in time."""

    def _follow(self) -> None:
        """Let conflicting lifetimes follow each other, destruction before creation; destroy only what is followed."""
        for one, two, possible in self.slots.exclusions():
            self._exclude(one, two, [self._put_before(*pair) for pair in possible])
        followers: list[list[Variable]] = [[] for _ in self.slots.lifetimes]
        for (one, _), before in self.before.items():
            followers[one].append(before)
        for name, destroyed, after in zip(self._names, self._destroyed, followers, strict=True):
            self.rows.requires(f"destroy_{name}_followed", destroyed, after)

    # Symmetry

    def _break_symmetry(self) -> None:
        """Order interchangeable sets of places by the area that they run, and identical tasks by their slots."""
        for tasks in self.problem.identical:
            for one, two in itertools.pairwise(tasks):
                sooner = [(choice, slot) for slot, choice in self.assigned[one].items()]
                later = [(choice, -slot) for slot, choice in self.assigned[two].items()]
                self.rows.at_most(f"alike_{one}_{two}", [*sooner, *later], 0)
        places = self.problem.places
        for number, group in enumerate(self.problem.interchangeable):
            areas = [
                [
                    (choice, places[at].placement.profile.memory_slices * amount)
                    for at in members
                    for slot in self.slots.of_place[at]
                    for choice, amount in self._load[slot]
                ]
                for members in group
            ]
            for at, (more, less) in enumerate(itertools.pairwise(areas)):
                self.rows.at_most(f"less_area_{number}_{at}", [*less, *((choice, -area) for choice, area in more)], 0)

    # Solutions

    @abstractmethod
    def _at(self, variable: Variable) -> int:
        """Return the index of a variable in the values of a solution."""

    @abstractmethod
    def hint(self, values: Sequence[int]) -> None:
        """Let the solver start from a complete solution: the value of every variable."""

    def _chosen(self, values: Sequence[int]) -> list[int]:
        """Return the slot in which each task runs."""
        return [next(slot for slot, choice in row.items() if values[self._at(choice)]) for row in self.assigned]

    def places_of(self, values: Sequence[int]) -> list[int]:
        """Return the place of each task in a solution."""
        return [self.slots.lifetimes[slot].place for slot in self._chosen(values)]

    def loose_places(self, values: Sequence[int]) -> list[int]:
        """Return the places that are loose in a solution."""
        return [place for place, loose in self.loose.items() if values[self._at(loose)]]

    def schedule(self, values: Sequence[int]) -> Schedule:
        """Return the schedule of a solution without loose places, with the true times."""
        batch, chosen = self.problem.batch, self._chosen(values)
        live = live_by_shape(batch)
        instances = []
        for slot, lifetime in enumerate(self.slots.lifetimes):
            gpu, placement = self._place(slot).gpu, self._place(slot).placement
            instances.append(live[gpu, placement.shape] if lifetime.initial else PlannedInstance(gpu, placement))
        for task, slot in zip(batch.tasks, chosen, strict=True):
            instances[slot].tasks.append(task)
        order: TopologicalSorter[Operation] = TopologicalSorter()
        # By begin and length: of operations that begin together, only the last one can take time.
        key: dict[Operation, tuple[int, int]] = {}
        for slot, begin in self.creation.items():
            if values[self._at(self.used[slot])]:
                key["create", slot] = values[self._at(begin)], self._place(slot).create
        for (one, two), choice in self.before.items():
            if values[self._at(choice)]:
                key["destroy", one] = values[self._at(self.destruction[one])], self._place(one).destroy
                order.add(("create", two), ("destroy", one))
                if ("create", one) in key:
                    order.add(("destroy", one), ("create", one))
        for operation in key:
            order.add(operation)
        try:
            operations = list(_sorted(order, key))
        except CycleError:
            # Lifetimes that are shorter than the model can tell from nothing may follow each other in a circle.
            return self.problem.nested(self.places_of(values))
        return timed_schedule(batch, instances, operations)
