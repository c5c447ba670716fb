"""Bound from the loads of the slices alone, as a mixed-integer program.

It forgets the order in time: only which placements are used, how often tasks run in them, and what that adds up to on
each memory slice. Which placements are used is decided in whole numbers, since each of them costs a creation and a
destruction; tasks may be divided, which costs little once there are some dozens of them, and saves nearly all of the
time. Its optimum is a bound for every schedule, with any re-creations.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.tree import LoadTree
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.solvers.backend import solve_program
from mig_opt.models.solvers.highs import Highs

if TYPE_CHECKING:
    from mig_opt.models.solvers.linear import Term, Variable  # loads PuLP

_MAX_CHOICES = 5000
"""Choices of a place for a task above which operations hardly count, and it takes long."""

_RELAXED_SHARE = 0.02
"""Largest share of the time for one program without whole numbers."""

_SLACK = 1.05
"""Largest makespan in the program with whole numbers, relative to the best schedule."""


def raise_bound_by_loads(search: BlockSearch[M], share: float) -> None:
    """Report the bound of the load program to a search; the better its schedule, the tighter the program.

    Most of the share of the time goes to the last program, in which whole numbers decide on the placements in use.
    """
    problem = search.problem
    backend = Highs(presolve=False)
    if problem.choices > _MAX_CHOICES or search.control.deterministic or backend.missing():
        return
    # A schedule takes as long as a mark, or it runs nothing where that alone ends so late. With the latter the program
    # tells more, above all where the longest tasks are nearly as long as the schedule.
    marks = _marks(search)
    few, many = 0, len(marks)
    while few < many and not search.control.expired:
        at = (few + many) // 2
        raised = _raise(search, marks[at], backend, share=_RELAXED_SHARE, relaxed=True)
        few, many = (at + 1, many) if raised else (few, at)
    if few < len(marks):
        _raise(search, marks[few], backend, share=share, relaxed=False)


def _marks(search: BlockSearch[M]) -> list[int]:
    """Return the ticks between bound and best schedule at which a task can end at the earliest in some place, in order.

    The last one is the makespan of the best schedule.
    """
    problem, best = search.problem, search.upper
    ends = (problem.first_use(place) + duration for place in problem.places for duration in place.durations.values())
    return [*sorted({end for end in ends if search.lower < end < best}), best]


def _raise(search: BlockSearch[M], mark: int, backend: Highs, *, share: float, relaxed: bool) -> bool:
    """Raise the bound to what the program says of schedules shorter than a mark, or to the mark if that is less.

    Returned is True if it is the mark. That a program has no solution is not believed without a bound.
    """
    # Longer than the best schedule, so that mostly there is a solution, and its length a bound.
    horizon = int(search.upper * (2 if relaxed else _SLACK))
    program = LoadProgram(search.problem, at_least=search.lower, at_most=horizon, below=mark, relaxed=relaxed)
    if program.homeless:
        search.raise_lower(mark)
    else:
        solve_program(
            program.linear.program,
            backend,
            search.control,
            share=share,
            on_bound=lambda units: search.raise_lower(min(program.bound(units, backend.tolerance), mark)),
        )
    return search.lower >= mark


class LoadProgram:
    """Load program of a batch, for makespans of ``at_least`` to ``at_most`` ticks.

    No task runs where it cannot end before the tick ``below``, by default any after ``at_most``. In the ``relaxed``
    form placements may be used in part, too.
    """

    def __init__(
        self, batch: IntegerBatch, *, at_least: int, at_most: int, below: int | None = None, relaxed: bool = False
    ) -> None:
        self._batch = batch
        self.unit = Fraction(10) ** max(0, len(str(at_most)) - 3)  # ticks in one unit of the program's time
        from mig_opt.models.solvers.linear import LinearProgram

        self.linear = LinearProgram("loads")  # its objective is the makespan in units
        # A little later than the limit, so that a solver's tolerance does not cut off what is just as long.
        self._horizon = self._units(at_most) * (1 + 1e-6)
        self._makespan = self.linear.continuous("makespan", self._units(at_least), self._horizon)
        self.homeless = False  # true if a task can end nowhere in time, so that there is no such makespan
        self._ready = [batch.first_use(place) for place in batch.places]
        self._used = [self.linear.choice(f"use_{at}") for at in range(len(batch.places))]
        self._load = self._divide(at_most + 1 if below is None else below)
        waits = self._wait_for_neighbours()
        for number, covering in enumerate(batch.slices()):
            self._bound_slice(number, covering, waits)
        self._leave_time_to_create()
        self._order_gpus()
        self.linear.minimise(self._makespan)
        if relaxed:
            self.linear.relax()

    def _units(self, ticks: int) -> float:
        return float(ticks / self.unit)

    def _divide(self, below: int) -> list[list[Term]]:
        """Divide the tasks among the places, and return the load of each."""
        load: list[list[Term]] = [[] for _ in self._batch.places]
        for task in range(len(self._batch.batch.tasks)):
            shares: list[Term] = []
            for at, place in enumerate(self._batch.places):
                if self._ready[at] + place.durations.get(task, below) < below:
                    share = self.linear.share(f"run_{task}_on_{at}")
                    shares.append((share, 1))
                    load[at].append((share, self._units(place.durations[task])))
                    # Much tighter than a limit on their sum.
                    self.linear.implies(f"in_use_{task}_on_{at}", share, self._used[at])
            if shares:
                self.linear.equal(f"once_{task}", shares, 1)
            else:
                self.homeless = True
        return load

    def _wait_for_neighbours(self) -> list[tuple[frozenset[int], Variable, float]]:
        """Let one side of a split wait for the first creation on the other, if both run something.

        Returned are the places on each side, whether that side waits, and how long.
        """
        tree = LoadTree(self._batch)
        waits: list[tuple[frozenset[int], Variable, float]] = []
        for number, node in enumerate(tree.nodes):
            if not (node.wait_one and node.wait_two):
                continue
            terms: list[Term] = []
            for side, wait in ((node.one, node.wait_one), (node.two, node.wait_two)):
                places = frozenset(tree.places_below(side))
                busy, late = (
                    self.linear.share(f"busy_{side}_of_{number}"),
                    self.linear.choice(f"late_{side}_of_{number}"),
                )
                for at in places:
                    self.linear.implies(f"busy_{side}_by_{at}_of_{number}", self._used[at], busy)
                waits.append((places, late, self._units(wait)))
                terms += [(busy, 1), (late, -1)]
            self.linear.at_most(f"one_waits_{number}", terms, 1)
        return waits

    def _bound_slice(
        self, number: int, covering: list[int], waits: Sequence[tuple[frozenset[int], Variable, float]]
    ) -> None:
        """Add up what covers a slice: all of it comes one after the other, and the last instance may stay."""
        terms: list[Term] = [(self._makespan, -1)]
        terms += [(late, wait) for places, late, wait in waits if not places.isdisjoint(covering)]
        lasts: list[Variable] = []
        for at in covering:
            place = self._batch.places[at]
            terms += self._load[at]
            if place.free is not None:
                terms += self._live_terms(number, at, covering)
                continue
            last = self.linear.share(f"last_{at}_of_{number}")
            lasts.append(last)
            self.linear.implies(f"last_used_{at}_of_{number}", last, self._used[at])
            terms += [(self._used[at], self._units(place.create + place.destroy)), (last, -self._units(place.destroy))]
        self.linear.at_most_one(f"one_last_of_{number}", lasts)
        self.linear.at_most(f"load_of_{number}", terms, 0)

    def _live_terms(self, number: int, at: int, covering: Sequence[int]) -> list[Term]:
        """Return what a live instance takes on a slice: it is first there, and goes if anything else comes."""
        place = self._batch.places[at]
        held, gone = self.linear.share(f"held_{at}_of_{number}"), self.linear.share(f"gone_{at}_of_{number}")
        for other in covering:
            self.linear.implies(f"held_{at}_by_{other}_of_{number}", self._used[other], held)
            if other != at:
                self.linear.implies(f"gone_{at}_for_{other}_of_{number}", self._used[other], gone)
        return [(held, self._units(place.free or 0)), (gone, self._units(place.destroy))]

    def _leave_time_to_create(self) -> None:
        """Let a place be used only for what it can run before the horizon, after its creation and what goes before."""
        for at, ready in enumerate(self._ready):
            limit = max(0.0, self._horizon - self._units(ready))
            self.linear.at_most(f"time_of_{at}", [*self._load[at], (self._used[at], -limit)], 0)

    def _order_gpus(self) -> None:
        """Order interchangeable places by the number of those in use: they can be exchanged."""
        for number, group in enumerate(self._batch.interchangeable):
            for at, (more, less) in enumerate(itertools.pairwise(group)):
                terms = [*((self._used[place], 1) for place in less), *((self._used[place], -1) for place in more)]
                self.linear.at_most(f"fewer_{number}_{at}", terms, 0)

    def bound(self, units: float, tolerance: float) -> int:
        """Return the ticks that a solver's bound, with its tolerance, stands for."""
        return -int(-(Fraction(units - self.linear.leeway(tolerance)) * self.unit) // 1)
