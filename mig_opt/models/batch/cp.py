"""The method ``cp``: proven optima, from the loads of the slices and by CP-SAT on the block model.

1. A local search on the loads finds assignments of tasks to placements, and the block model times them
   (:mod:`mig_opt.models.batch.improving`). Batches of a dozen tasks do not need it.
2. Up to some twenty tasks, dynamic programming over subsets leaves few assignments that may be better, mostly none
   (:mod:`mig_opt.models.batch.subsets`). Otherwise the loads still give bounds
   (:mod:`mig_opt.models.batch.load_program`, :mod:`mig_opt.models.batch.price_bound`).
3. What is open then is left to the block model as a whole (:mod:`mig_opt.models.batch.search`), or to more of the local
   search where that has no chance of a proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mig_opt.batch.batch import Batch
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import Schedule
from mig_opt.control import Control
from mig_opt.loads.compiling import compiled
from mig_opt.loads.tables import MOST_TASKS
from mig_opt.models.batch.block_model import BlockModel, seconds_to_build
from mig_opt.models.batch.improving import Improvement
from mig_opt.models.batch.load_program import raise_bound_by_loads
from mig_opt.models.batch.price_bound import prices_tell_of, raise_bound_by_prices
from mig_opt.models.batch.search import Search
from mig_opt.models.batch.solver import Form
from mig_opt.models.batch.subsets import prove_by_subsets
from mig_opt.models.solvers.backend import IntegerOutcome, Request
from mig_opt.models.solvers.cpsat import run

_FEW = 12
"""Up to so many tasks, dynamic programming is done before a local search has begun."""

_QUICK = 0.5
"""Seconds that a few tasks wait for the loops to be compiled: the block model proves them in little more."""

_SOME, _MANY = 25, 35
"""With more tasks than the first, the block model as a whole proves nothing in a minute unless bound and schedule are
close; with more than the second, nothing in minutes."""

_PATIENCE, _LONG_PATIENCE = 20, 200
"""Cycles of the local search without gain, before something else is tried."""

_PROOF_SHARE = 0.4
"""Of the time may go to the block model as a whole, where it is not likely to prove anything."""

_CLOSE = 0.0015
"""Gap at which the schedule has little to gain, and the bound of the loads leaves little to prove."""

_BOUND_SHARE = 0.3
"""Of the time may go to the load program, and then to prices."""

_CROWDED = 40
"""With more tasks on a GPU, the load program tells more than prices in the same time."""


def cp(batch: Batch, control: Control[Schedule]) -> None:
    """Search until the best schedule is proven optimal or the time is up.

    A batch whose model is too large, or cannot be built in the time that is left, keeps what is known already.

    Parameters
    ----------
    batch : Batch
        Every task has a placement.
    control : Control
        May hold a schedule to start from.
    """
    search = Search(batch, control, CpSat())
    few, many = len(batch.tasks) <= _FEW, len(batch.tasks) > _MANY
    improvement = None
    if search.open and compiled(control, _QUICK if few else math.inf):
        if not few and Improvement.possible(search.problem, control):
            improvement = Improvement(search)
            improvement.run(_PATIENCE)
        prove_by_subsets(search)
    if search.open and improvement is not None:
        # Where whole tasks hardly fill the slices, prices tell more, and whole placements little on several GPUs.
        priced = len(batch.tasks) <= _CROWDED * batch.gpus and prices_tell_of(search.problem)
        raise_bound_by_loads(search, share=_BOUND_SHARE, whole=not priced or batch.gpus == 1)
        if priced:
            improvement.combine(raise_bound_by_prices(search, share=_BOUND_SHARE))
        improvement.run(math.inf if many and control.remaining is not None else _LONG_PATIENCE)
    # Beyond the reach of the tables a proof is possible, but better schedules are likelier if there can be any.
    likely = improvement is None or control.remaining is None or len(batch.tasks) <= MOST_TASKS or _close(search)
    while search.open and improvement is not None and not likely and len(batch.tasks) > _SOME:
        improvement.run(_LONG_PATIENCE)
        likely = _close(search)
    if search.open and search.can_begin:
        search.run(1.0 if likely else _PROOF_SHARE)
    if search.open and improvement is not None and control.remaining is not None:
        improvement.run(math.inf)


def _close(search: Search[BlockModel]) -> bool:
    """Whether there is little left between bound and schedule."""
    return search.upper - search.lower <= _CLOSE * search.upper


class CpSat:
    """CP-SAT as the solver of a search."""

    name = "CP-SAT"

    def seconds_to_build(self, problem: IntegerBatch) -> float:
        """Return about how long it takes to build a model."""
        return seconds_to_build(problem)

    def build(self, problem: IntegerBatch, form: Form) -> BlockModel:
        """Return a model."""
        return BlockModel(problem, form)

    def improve(self, model: BlockModel, control: Control[Schedule], request: Request) -> IntegerOutcome:
        """Minimise, and report on the way."""
        return run(model.model, control, request)

    def complete(
        self, model: BlockModel, places: Sequence[int], control: Control[Schedule], *, share: float
    ) -> IntegerOutcome:
        """Find the best solution with each task at its given place."""
        return run(model.fixed(places), control, Request(share=share), workers=1)
