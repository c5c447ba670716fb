"""The method ``cp``: proven optima by CP-SAT on the block model.

:mod:`mig_opt.models.search` has the steps, :mod:`mig_opt.models.blocks` the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mig_opt.batch import Batch
from mig_opt.control import Control
from mig_opt.models.blocks import BlockModel, seconds_to_build
from mig_opt.models.cpsat import run
from mig_opt.models.search import Outcome, Search
from mig_opt.ticked import TickedBatch


def cp(batch: Batch, control: Control) -> None:
    """Search until the best schedule is proven optimal or the time is up.

    A batch whose model is too large, or cannot be built in the time that is left, keeps what is known already.

    Parameters
    ----------
    batch : Batch
        Every task has a placement.
    control : Control
        May hold a schedule to start from.
    """
    search = Search(batch, control, _CpSat())
    if search.can_begin:
        search.run()


class _CpSat:
    """CP-SAT as the solver of a search."""

    name = "CP-SAT"

    def seconds_to_build(self, problem: TickedBatch) -> float:
        return seconds_to_build(problem)

    def build(
        self,
        problem: TickedBatch,
        *,
        at_least: int,
        at_most: int,
        relaxed: bool,
        copies: Mapping[int, int] | None,
    ) -> BlockModel:
        return BlockModel(problem, at_least=at_least, at_most=at_most, relaxed=relaxed, copies=copies)

    def improve(
        self,
        model: BlockModel,
        control: Control,
        *,
        at_least: int,
        share: float,
        for_proof: bool,
        on_solution: Callable[[Sequence[int]], None],
        on_bound: Callable[[int], None] | None,
    ) -> Outcome:
        return run(
            model.model,
            control,
            at_least=at_least,
            share=share,
            for_proof=for_proof,
            on_solution=on_solution,
            on_bound=on_bound,
        )

    def complete(self, model: BlockModel, places: Sequence[int], control: Control, *, share: float) -> Outcome:
        return run(model.fixed(places), control, at_least=0, share=share, workers=1)
