"""The block model as a mixed-integer program, for any solver of such programs.

It says the same as :mod:`mig_opt.models.batch.block_model`, with these differences of form:

* Every integer is 0 or 1. To count tasks that take the same time everywhere would be shorter, but CBC 2.10.3 was seen
  to "prove" wrong optima of such programs.
* "If" becomes a large constant only where two things may come in either order: lifetimes that exclude each other, and
  operations of one GPU that such lifetimes do not order already. A lifetime that has no place in time begins at 0, and
  one that is not destroyed "is destroyed" when all is over; so no other constraint needs a condition.
* The choice of the last instance on a slice is continuous: between the choices, the best one is always whole.

Time is measured in units in which the horizon is a number with three digits, or in seconds for a file.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.models.batch.order import OrderedFormulation
from mig_opt.models.batch.slots import BlockForm, Slots
from mig_opt.models.solvers.linear import Term, Variable, distinct_names

_LONGEST_NAME = 30
"""Characters of a task's name in names of variables; PuLP writes no LP file with names of more than 100."""


def seconds_to_build(problem: IntegerBatch) -> float:
    """Return about how long it takes to build a block program on a typical machine."""
    return 60e-6 * problem.choices + 20e-6 * len(problem.places) ** 2


class BlockProgram(OrderedFormulation):
    """A mixed-integer program of a problem; the module says what it contains.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.
    form : BlockForm
        Choice of the schedules that it has.
    unit : Fraction, optional
        Ticks in one unit of the program's time. By default the program is made for a solver with tolerances: in units
        that suit them, and with a horizon that is a little later.
    """

    def __init__(self, problem: IntegerBatch, form: BlockForm, *, unit: Fraction | None = None) -> None:
        horizon = Fraction(form.at_most)
        if unit is None:
            unit = Fraction(10) ** (len(str(form.at_most)) - 3)
            # A solver's tolerance must not cut off what is just as long as allowed. Half a tick more changes nothing.
            horizon += max(Fraction(1, 2), form.at_most * Fraction(2, 10**6))
        super().__init__(problem, Slots(problem, form.copies), unit, horizon, form.at_least)
        self.start: dict[str, float] | None = None  # values by name for the solver to start from
        self._assign(form.at_most)
        if form.relaxed and not problem.operations_take_no_time:
            self._loosen()
        self._bound_slices()
        if not problem.operations_take_no_time:
            self._order()
        self._break_symmetry()
        self.linear.minimise(self._makespan)

    # What runs where

    def _assign(self, at_most: int) -> None:
        tasks, places, layout = self.problem.batch.tasks, self.problem.places, self.slots
        names = distinct_names((task.name for task in tasks), _LONGEST_NAME)
        self.assigned = []
        load: list[list[tuple[Variable, int]]] = [[] for _ in layout.lifetimes]
        for task, name in enumerate(names):
            slots = layout.choices(task, at_most)
            choices = {slot: self.linear.choice(f"run_{name}_on_{self._slot_names[slot]}") for slot in slots}
            for slot, choice in choices.items():
                load[slot].append((choice, places[layout.lifetimes[slot].place].durations[task]))
            self.linear.equal(f"once_{name}", [(choice, 1) for choice in choices.values()], 1)
            self.assigned.append(choices)
        self._load = [[(choice, self._units(ticks)) for choice, ticks in entries] for entries in load]
        self.used = [self.linear.choice(f"use_{name}") for name in self._slot_names]
        for slot, name in enumerate(self._slot_names):
            for choice, _ in load[slot]:
                self.linear.implies(f"{choice.name}_in_use", choice, self.used[slot])
            self.linear.at_most(f"idle_{name}", [(self.used[slot], 1), *((choice, -1) for choice, _ in load[slot])], 0)
        self._place_used = [
            self.linear.any([self.used[slot] for slot in slots], f"use_any_{self._slot_names[slots[0]]}")
            for slots in layout.of_place
        ]
        for at in range(len(places)):
            for earlier, later in itertools.pairwise(layout.created(at)):
                name = f"later_{self._slot_names[later]}"
                self.linear.implies(name, self.used[later], self.used[earlier])

    def _loosen(self) -> None:
        """Let places be created once more than they have lifetimes, or oftener; see the constraint model."""
        places, layout = self.problem.places, self.slots
        for at, place in enumerate(places):
            created = layout.created(at)
            first, name = created[0], self._slot_names[created[0]]
            loose = self.loose[at] = self.linear.choice(f"loose_{name}")
            self.linear.implies(f"loose_{name}_used", loose, self.used[first])
            for slot in layout.of_place[at]:
                if slot != first:
                    self.linear.at_most(
                        f"loose_{name}_not_{self._slot_names[slot]}", [(loose, 1), (self.used[slot], 1)], 1
                    )
            runs = [(choice, -1) for choice, _ in self._load[first]]
            self.linear.at_most(f"loose_{name}_tasks", [(loose, len(created) + 1), *runs], 0)
            between = [(self._place_used[to], -1) for to, other in enumerate(places) if place.conflicts(other)]
            self.linear.at_most(f"loose_{name}_between", [(loose, 1), *between], 0)

    # The slice loads

    def _bound_slices(self) -> None:
        places, layout = self.problem.places, self.slots
        gone = {slot: self._gone(slot) for slot, lifetime in enumerate(layout.lifetimes) if lifetime.initial}
        for number, covering in enumerate(self.problem.slices()):
            terms: list[Term] = [(self._makespan, -1)]
            lasts = []
            for at in covering:
                place = places[at]
                both = place.create + place.destroy
                if at in self.loose:
                    terms.append((self.loose[at], self._units(len(layout.created(at)) * both)))
                for slot in layout.of_place[at]:
                    last = self.linear.share(f"last_{self._slot_names[slot]}_of_slice{number}")
                    lasts.append(last)
                    terms += self._load[slot]
                    if slot in gone:
                        terms += self._terms_of_live(slot, gone[slot], last, f"{self._slot_names[slot]}_slice{number}")
                        continue
                    self.linear.implies(f"{last.name}_used", last, self.used[slot])
                    terms += [(self.used[slot], self._units(both)), (last, -self._units(place.destroy))]
            self.linear.at_most(f"one_last_of_slice{number}", ((last, 1) for last in lasts), 1)
            self.linear.at_most(f"load_of_slice{number}", terms, 0)

    def _gone(self, slot: int) -> Variable:
        """Return a variable that is 1 if a live instance has to make room."""
        at, places, name = self.slots.lifetimes[slot].place, self.problem.places, self._slot_names[slot]
        gone = self.linear.share(f"gone_{name}")
        causes = [self._place_used[to] for to, other in enumerate(places) if places[at].conflicts(other)]
        causes += [self.used[other] for other in self.slots.of_place[at] if other != slot]
        for number, cause in enumerate(causes):
            self.linear.implies(f"gone_{name}_for_{number}", cause, gone)
        return gone

    def _terms_of_live(self, slot: int, gone: Variable, last: Variable, name: str) -> list[Term]:
        """Return what a live instance takes on one slice.

        It holds the slice until it is free, if it runs something or makes room for something here.
        """
        place = self.problem.places[self.slots.lifetimes[slot].place]
        holds, leaves = self.linear.share(f"hold_{name}"), self.linear.share(f"leave_{name}")
        self.linear.at_most(f"leave_or_last_{name}", [(gone, 1), (last, -1), (leaves, -1)], 0)
        self.linear.implies(f"leave_held_{name}", leaves, holds)
        self.linear.implies(f"use_held_{name}", self.used[slot], holds)
        return [(holds, self._units(place.free or 0)), (leaves, self._units(place.destroy))]

    # Symmetry

    def _break_symmetry(self) -> None:
        """Order interchangeable sets of places by the area that they run, and identical tasks by their lifetimes."""
        for tasks in self.problem.identical:
            for one, two in itertools.pairwise(tasks):
                sooner = [(choice, slot) for slot, choice in self.assigned[one].items()]
                later = [(choice, -slot) for slot, choice in self.assigned[two].items()]
                self.linear.at_most(f"alike_{one}_{two}", [*sooner, *later], 0)
        places = self.problem.places
        for number, group in enumerate(self.problem.interchangeable):
            areas = [
                [
                    (choice, places[at].placement.profile.memory_slices * seconds)
                    for at in members
                    for slot in self.slots.of_place[at]
                    for choice, seconds in self._load[slot]
                ]
                for members in group
            ]
            for at, (more, less) in enumerate(itertools.pairwise(areas)):
                terms = [*less, *((choice, -area) for choice, area in more)]
                self.linear.at_most(f"less_area_{number}_{at}", terms, 0)

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
            variable.name: value if variable.isInteger() else self._units(value)
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
