"""Compilation of all loops before they are needed, within a limit of time."""

from __future__ import annotations

import functools
import math
import threading
import time

import numpy as np

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.control import Limits
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.loads.branches import branches_of
from mig_opt.loads.local_search import LoadSearch
from mig_opt.loads.pricing import PricingProblem
from mig_opt.loads.tables import Assignments, LoadTables


def compiled(control: Limits, patience: float = math.inf) -> bool:
    """Wait until the loops are compiled; return True if they are.

    They are compiled when first used on a machine, which takes some ten seconds, and are kept for later processes. If
    the wait is over before, compilation goes on in the background.

    Parameters
    ----------
    control : Limits
        At most half of the time that is left is spent on waiting; in a deterministic run the clock does not count.
    patience : float
        Seconds to wait at most.
    """
    thread = _compiling()
    if control.deterministic:
        thread.join()
    elif control.remaining is not None:
        patience = min(patience, control.remaining / 2)
    end = time.monotonic() + patience
    while thread.is_alive() and time.monotonic() < end and not control.done:
        thread.join(0.02)
    return not thread.is_alive()


@functools.cache
def _compiling() -> threading.Thread:
    thread = threading.Thread(target=_compile, name="mig-opt-compile", daemon=True)
    thread.start()
    return thread


def _compile() -> None:
    """Use every loop on a batch of one task."""
    problem = IntegerBatch(Batch((Task("a", {1: 3.0, 2: 2.0, 4: 1.0}),), get_gpu("A30")))
    most = 10 * max(problem.places[0].durations.values())
    tables = LoadTables(problem, most)
    tables.fill(1, lambda: False)
    next(Assignments(problem, tables).within(most))
    LoadSearch(problem, [0], 0, 1).cheap_assignment()
    branches = branches_of(problem)
    pricing = PricingProblem(problem, branches, before=most, grain=most // 100)
    pricing.set_dual_prices(np.ones(1))
    pricing.pattern(branches.orders[-1], most - 1)
