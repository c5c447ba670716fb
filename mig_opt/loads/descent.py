"""The local search on the loads with a schedule for what it finds, however the assignments are timed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import Schedule
from mig_opt.control import Control
from mig_opt.loads.combining import Combination
from mig_opt.loads.kernels import NEVER
from mig_opt.loads.local_search import LoadSearch
from mig_opt.loads.tables import ticks_of

_MOST_CHOICES = 4 * 10**6
"""Choices of a place for a task, with which the search still gets somewhere."""


class Descent(ABC):
    """A search that goes on where it stopped.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.
    control : Control
        Has a schedule to start from.
    """

    def __init__(self, problem: IntegerBatch, control: Control[Schedule]) -> None:
        assert control.plan is not None
        self._problem = problem
        self._control = control
        self._loads = LoadSearch(problem, problem.places_of(control.plan), control.seed, control.workers)
        self._longest_destruction = max(place.destroy for place in problem.places)
        ready = np.array([problem.first_use(place, self.upper) for place in problem.places])
        durations = np.stack([ticks_of(place, len(problem.batch.tasks)) for place in problem.places], axis=1)
        self._ends = durations + ready
        self._within = NEVER
        self._seen: set[tuple[int, ...]] = set()
        self._searched = 0.0
        self._try(self._loads.height, self._loads.places)

    @property
    def searched(self) -> float:
        """Seconds that the cycles took by the clock of the control."""
        return self._searched

    @staticmethod
    def possible(problem: IntegerBatch, control: Control[Schedule]) -> bool:
        """Whether the batch is small enough and there is time for it."""
        return problem.choices <= _MOST_CHOICES and not control.expired

    @property
    @abstractmethod
    def lower(self) -> int:
        """Ticks that every schedule takes."""

    @property
    @abstractmethod
    def upper(self) -> int:
        """Ticks of the best schedule."""

    @abstractmethod
    def time(self, places: Sequence[int]) -> bool:
        """Keep the schedule of an assignment, if it is better; return False to leave the assignment for later."""

    def combine(self, contents: Sequence[Sequence[int]]) -> None:
        """Let fresh starts have contents of a GPU, each given as its tasks, on some of several GPUs."""
        if contents:
            self._loads.draw = Combination(self._problem, contents).draw

    def run(self, patience: float) -> None:
        """Go on until so many cycles bring nothing, or the time is up."""
        idle = 0.0
        cycles = self._loads.cycles(self.lower, lambda: self._control.expired)
        try:
            while idle < patience and self.lower < self.upper and not self._control.expired:
                self._forbid()
                before, clock = (self._loads.height, self.upper), self._control.clock
                results = next(cycles)
                number = len(results) / self._control.workers
                self._control.spend(number * self._loads.seconds_per_cycle)
                self._searched += self._control.clock - clock
                for height, places in sorted(results):
                    self._try(height, places)
                idle = 0.0 if (self._loads.height, self.upper) < before else idle + number
        finally:
            cycles.close()

    def _forbid(self) -> None:
        """Leave out places in which a task alone ends when the best schedule does: no better one has it there.

        Local changes do not get away from such a task by themselves, as all that is near takes longer at first.
        """
        late = self._ends >= self.upper
        if (late & (self._ends < self._within)).any():
            self._loads.forbid(late)
        self._within = self.upper

    def _try(self, height: int, places: Sequence[int]) -> None:
        """Time an assignment, if it is new and may be better than the best schedule."""
        if height - self._longest_destruction >= self.upper:
            return
        key = tuple(self._problem.canonical(places))
        if key not in self._seen and self.time(key):
            self._seen.add(key)
