"""Compiling the loops before they are needed, without losing sight of the clock."""

from __future__ import annotations

import functools
import math
import threading
import time

import numpy as np

from mig_opt.batch.schedule import Schedule
from mig_opt.control import Control
from mig_opt.loads.contents import fill, line_up, read_off, stack
from mig_opt.loads.kernels import Neighbours, add_tasks, add_up, split_heights
from mig_opt.loads.neighbourhood import improve, spread
from mig_opt.loads.reach import Reach, sets_within
from mig_opt.loads.state import Costs, Shape


def compiled(control: Control[Schedule], patience: float = math.inf) -> bool:
    """Wait until the loops are compiled; return whether they are.

    They are compiled when first used on a machine, which takes some ten seconds, and are kept for later processes. If
    the wait is over before, compiling goes on behind the scenes.

    Parameters
    ----------
    control : Control
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
    """Use every loop on an instance of one task and one place."""
    whole, one = np.array([0, 1], np.int32), np.ones(1, np.int32)
    table = add_up(one)
    add_tasks(table, one, 1)
    split_heights(table, table.copy(), whole, Neighbours(True, False, False, 0, 0), 1, table)
    number = np.zeros(1, np.int64)
    sets_within(number, number, number, (0, 0, 0))
    costs = Costs(one[None, :].copy(), number, number, np.ones((1, 1)), np.ones(1))
    nodes, nothing = np.array([0, 1]), np.zeros(2, np.int64)
    shape = Shape(
        *(nodes, nodes, nodes - 1, nodes - 1, nothing - 1, nodes - 1, nodes < 0),
        *(number, number + 1, number, nothing, nothing, nodes),
    )
    least = np.ones((2, 1), np.int64)
    contents = np.zeros((2, 2), np.int32)
    fill(one[None, :], one, contents)
    read_off(one[None, :], one, contents, 1)
    line_up(contents, number, 1, whole.copy())
    stack(contents[0], contents[1], 1, whole.copy())
    improve(costs, shape, Reach(nodes, least, least, least), spread(costs, shape), 1, 1, 0, 0, 0)
