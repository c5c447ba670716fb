"""Block model of one layout whose loads are divided at will: in which order its operations take least time.

The paths of a layout tell what operations take at least. When they wait for the driver, and whether the last instance
on a path is an outer or an inner one, depends on their order. Where tasks are many, this is all that makes one
assignment longer than another (:mod:`mig_opt.models.batch.layout_relaxation`). So the block model
(:mod:`mig_opt.models.batch.block_model`) gets a load for each placement in place of the choices of tasks: a hundred
tasks are a dozen blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from ortools.sat.python import cp_model

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.subsets import Integers
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_model import BlockModel


class DividedBlocks(BlockModel):
    """Strict block model of a layout.

    Parameters
    ----------
    problem : IntegerBatch
        With the places of the layout only, each of which is used.
    at_least, at_most : int
        Ticks between which the makespan is sought.
    divide : callable
        Adds the loads to a model, and returns for each place variables that sum to its own, in ticks.
    """

    def __init__(
        self,
        problem: IntegerBatch,
        at_least: int,
        at_most: int,
        divide: Callable[[cp_model.CpModel], Sequence[Sequence[cp_model.IntVar]]],
    ) -> None:
        self._divide = divide
        super().__init__(problem, BlockForm(at_least=at_least, at_most=at_most, relaxed=False))

    def _assign(self, at_most: int) -> None:
        del at_most
        self._load = [[(part, 1) for part in parts] for parts in self._divide(self.model)]
        self.used = self._place_used = [self.model.new_constant(1)] * len(self._load)

    def _break_symmetry(self) -> None:
        """Leave places that can be exchanged as they are: their tasks are not known."""

    @property
    def makespan(self) -> cp_model.IntVar:
        """The makespan in ticks, which is minimised."""
        longest: cp_model.IntVar = self._makespan
        return longest

    def widen(self, makespan: int, room: cp_model.IntVar) -> None:
        """From now on, seek the most room in schedules of some length, rather than the shortest one."""
        self.model.add(self._makespan <= makespan)
        self.model.minimize(-room)

    def operations_of(self, values: Sequence[int], cover: npt.NDArray[np.bool_]) -> Integers:
        """Return the ticks on each path in a solution that are no load: operations, and what they wait for.

        ``cover`` tells which places each path covers, shape (paths, places).
        """
        loads = np.array([sum(values[part.index] for part, _ in parts) for parts in self._load])
        begin = np.array([values[self.creation[at].index] for at in range(len(loads))])
        ends = begin + [place.create for place in self.problem.places] + loads
        operations: Integers = np.where(cover, ends, 0).max(axis=1) - cover @ loads
        return operations
