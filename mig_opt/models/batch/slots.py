"""The lives of instances that the block models decide about, and the way from such decisions to a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, nested_schedule, timed_schedule


@dataclass(frozen=True, slots=True)
class Slot:
    """One life of an instance.

    Attributes
    ----------
    place : int
        Index of its place.
    initial : bool
        Whether it exists at the start; otherwise it has to be created.
    """

    place: int
    initial: bool


class Slots:
    """Every life that a model knows.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.
    copies : mapping of int to int
        Creations by index of place; one where nothing is given.

    Attributes
    ----------
    lives : list of Slot
        The lives of one place follow each other, a live instance first.
    of_place : list of list of int
        The lives of each place, by index.
    """

    def __init__(self, problem: IntegerBatch, copies: Mapping[int, int]) -> None:
        self._problem = problem
        self.lives: list[Slot] = []
        self.of_place: list[list[int]] = []
        for at, place in enumerate(problem.places):
            lives = [Slot(at, initial=True)] if place.free is not None else []
            lives += [Slot(at, initial=False)] * copies.get(at, 1)
            self.of_place.append(list(range(len(self.lives), len(self.lives) + len(lives))))
            self.lives += lives

    def created(self, at: int) -> list[int]:
        """Return the lives at a place that begin with a creation, by index."""
        return [slot for slot in self.of_place[at] if not self.lives[slot].initial]

    def choices(self, task: int, at_most: int) -> list[int]:
        """Return the lives in which ``task`` can run within ``at_most`` ticks, by index."""
        places = self._problem.places
        return [
            slot
            for slot, life in enumerate(self.lives)
            if places[life.place].durations.get(task, at_most + 1) <= at_most
        ]

    def exclusions(self) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Yield each pair of lives that exclude each other, with the orders in which they can follow each other."""
        places = self._problem.places
        for one, life in enumerate(self.lives):
            for two in range(one + 1, len(self.lives)):
                other = self.lives[two]
                if life.place != other.place and not places[life.place].conflicts(places[other.place]):
                    continue
                orders = []
                if not other.initial:
                    orders.append((one, two))
                # The slots of one place are in the order of time; a live instance is before all others.
                if not life.initial and life.place != other.place:
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
            The life in which each task runs.
        creations : mapping of int to int
            Ticks at which lives begin to be created.
        destructions : mapping of int to int
            Ticks at which lives begin to be destroyed.
        before : iterable of (int, int)
            Lives of which the first is destroyed before the second is created.
        """
        places, batch = self._problem.places, self._problem.batch
        instances = []
        for life in self.lives:
            placement, free = places[life.place].placement, None
            if life.initial:
                live = self._problem.live[life.place]
                placement, free = batch.gpu.placement(live.profile, live.start), live.free
            instances.append(PlannedInstance(places[life.place].gpu, placement, free=free))
        for task, slot in zip(batch.tasks, chosen, strict=True):
            instances[slot].tasks.append(task)
        order: nx.DiGraph[tuple[OperationKind, int]] = nx.DiGraph()
        # By begin and length: of operations that begin together, only the last one can take time.
        key: dict[tuple[OperationKind, int], tuple[int, int]] = {}
        for slot, begin in creations.items():
            key["create", slot] = begin, places[self.lives[slot].place].create
        for one, two in before:
            key["destroy", one] = destructions[one], places[self.lives[one].place].destroy
            order.add_edge(("destroy", one), ("create", two))
            if ("create", one) in key:
                order.add_edge(("create", one), ("destroy", one))
        order.add_nodes_from(key)
        try:
            operations = list(nx.lexicographical_topological_sort(order, key=key.__getitem__))
        except nx.NetworkXUnfeasible:
            # Lives that are shorter than the model can tell from nothing may follow each other in a circle.
            return nested_schedule(
                batch, [(places[at].gpu, places[at].placement) for at in (self.lives[slot].place for slot in chosen)]
            )
        return timed_schedule(batch, instances, operations)
