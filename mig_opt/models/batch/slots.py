"""Lifetimes of instances that the block models decide about, and the schedule that follows from such decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import networkx as nx

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, nested_schedule, timed_schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockForm:
    """Choice of the schedules that a block model has.

    Attributes
    ----------
    at_least, at_most : int
        Ticks between which the makespan is sought.
    relaxed : bool
        True if placements may be created more often than ``copies``.
    copies : mapping of int to int
        Creations with a place in time, by index of place; one where nothing is given.
    """

    at_least: int = 0
    at_most: int
    relaxed: bool
    copies: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slot:
    """One lifetime of an instance.

    Attributes
    ----------
    place : int
        Index of its place.
    initial : bool
        True if it exists at the start; otherwise it has to be created.
    """

    place: int
    initial: bool


class Slots:
    """All lifetimes that a model knows.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.
    copies : mapping of int to int
        Creations by index of place; one where nothing is given.

    Attributes
    ----------
    lifetimes : list of Slot
        Those of one place follow each other, a live instance first.
    of_place : list of list of int
        The lifetimes of each place, by index.
    """

    def __init__(self, problem: IntegerBatch, copies: Mapping[int, int]) -> None:
        self._problem = problem
        self.lifetimes: list[Slot] = []
        self.of_place: list[list[int]] = []
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
        order: nx.DiGraph[tuple[OperationKind, int]] = nx.DiGraph()
        # By begin and length: of operations that begin together, only the last one can take time.
        key: dict[tuple[OperationKind, int], tuple[int, int]] = {}
        for slot, begin in creations.items():
            key["create", slot] = begin, places[self.lifetimes[slot].place].create
        for one, two in before:
            key["destroy", one] = destructions[one], places[self.lifetimes[one].place].destroy
            order.add_edge(("destroy", one), ("create", two))
            if ("create", one) in key:
                order.add_edge(("create", one), ("destroy", one))
        order.add_nodes_from(key)
        try:
            operations = list(nx.lexicographical_topological_sort(order, key=key.__getitem__))
        except nx.NetworkXUnfeasible:
            # Lifetimes that are shorter than the model can tell from nothing may follow each other in a circle.
            return nested_schedule(
                batch,
                [(places[at].gpu, places[at].placement) for at in (self.lifetimes[slot].place for slot in chosen)],
            )
        return timed_schedule(batch, instances, operations)
