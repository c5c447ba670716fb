"""Lifetimes of instances that the block models decide about, and the schedule that follows from such decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Any

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, timed_schedule

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
    """All lifetimes that a model knows.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.
    copies : mapping of int to int
        Creations by index of place; one where nothing is given.
    """

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

    def choices(self, task: int, at_most: int) -> list[int]:
        """Return the lifetimes in which ``task`` can run within ``at_most`` ticks, by index."""
        places = self._problem.places
        return [
            slot
            for slot, lifetime in enumerate(self.lifetimes)
            if places[lifetime.place].durations.get(task, at_most + 1) <= at_most
        ]

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

    def schedule(
        self,
        chosen: Sequence[int],
        creations: Mapping[int, int],
        destructions: Mapping[int, int],
        before: Iterable[tuple[int, int]],
    ) -> Schedule:
        """Return the schedule of some decisions, with the true times.

        Parameters
        ----------
        chosen : sequence of int
            The lifetime in which each task runs.
        creations : mapping of int to int
            Ticks at which lifetimes begin to be created.
        destructions : mapping of int to int
            Ticks at which lifetimes begin to be destroyed.
        before : iterable of (int, int)
            Lifetimes of which the first is destroyed before the second is created.
        """
        places, batch = self._problem.places, self._problem.batch
        instances = []
        for lifetime in self.lifetimes:
            placement, free = places[lifetime.place].placement, None
            if lifetime.initial:
                live = self._problem.live[lifetime.place]
                placement, free = batch.gpu.placement(live.profile, live.start), live.free
            instances.append(PlannedInstance(places[lifetime.place].gpu, placement, free=free))
        for task, slot in zip(batch.tasks, chosen, strict=True):
            instances[slot].tasks.append(task)
        order: TopologicalSorter[Operation] = TopologicalSorter()
        # By begin and length: of operations that begin together, only the last one can take time.
        key: dict[Operation, tuple[int, int]] = {}
        for slot, begin in creations.items():
            key["create", slot] = begin, places[self.lifetimes[slot].place].create
        for one, two in before:
            key["destroy", one] = destructions[one], places[self.lifetimes[one].place].destroy
            order.add(("create", two), ("destroy", one))
            if ("create", one) in key:
                order.add(("destroy", one), ("create", one))
        for operation in key:
            order.add(operation)
        try:
            operations = list(_sorted(order, key))
        except CycleError:
            # Lifetimes that are shorter than the model can tell from nothing may follow each other in a circle.
            return self._problem.nested([self.lifetimes[slot].place for slot in chosen])
        return timed_schedule(batch, instances, operations)


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


class BlockFormulation(ABC):
    """Block model for some solver: its decisions, and the reading of its solutions.

    Attributes
    ----------
    slots : Slots
        Lifetimes to which tasks are assigned.
    assigned : list of dict of int to variable
        For each task its choices of slots, by index.
    used : list of variable
        1 for each slot that runs something.
    loose : dict of int to variable
        1 for each place, by index, that may be created more often.
    creation, destruction : dict of int to variable
        Begin of the operations of each slot.
    before : dict of (int, int) to variable
        1 if the first slot is destroyed before the second one is created.
    """

    slots: Slots
    assigned: list[dict[int, Any]]
    used: Sequence[Any]

    def __init__(self) -> None:
        self.loose: dict[int, Any] = {}
        self.creation: dict[int, Any] = {}
        self.destruction: dict[int, Any] = {}
        self.before: dict[tuple[int, int], Any] = {}

    @abstractmethod
    def _at(self, variable: Any) -> int:
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
        creations = {
            slot: values[self._at(begin)] for slot, begin in self.creation.items() if values[self._at(self.used[slot])]
        }
        destructions = {slot: values[self._at(begin)] for slot, begin in self.destruction.items()}
        before = [pair for pair, choice in self.before.items() if values[self._at(choice)]]
        return self.slots.schedule(self._chosen(values), creations, destructions, before)
