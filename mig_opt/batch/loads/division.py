"""Division of tasks among instances of the same size: to the tick, if they are many.

What some of the tasks can take in all are their subset sums (Bellman, 1957). A dozen tasks have thousands of them,
thirty have more than a schedule has ticks, so nearly every load is the sum of some of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

_LENGTHS = (0.8, 1.2)
"""Factors of the lengths of tasks by which they are put in order."""


def divide(ticks: Sequence[int], room: Sequence[int], draw: random.Random) -> list[int] | None:
    """Return for each task which of some instances it is divided to, so that each has no more ticks than room for.

    The instances are filled one after the other, each as far as possible, with long tasks rather than short ones: the
    more tasks are left for the last instances, the more sums these have. How long a task counts is random by a fifth.
    Returned is None if too little is left for the last ones.

    Examples
    --------
    >>> divide([3, 5, 2, 4], [7, 7], random.Random(1)) in ([1, 0, 0, 1], [0, 1, 1, 0])
    True
    """
    spare = sum(room) - sum(ticks)
    left = sorted(range(len(ticks)), key=lambda task: -ticks[task] * draw.uniform(*_LENGTHS))
    found = [len(room) - 1] * len(ticks)
    for instance, most in enumerate(room[:-1]):
        if min(most, spare) < 0:
            return None
        # The bits of each number are the sums of the first tasks.
        sums, within = [1], (1 << most + 1) - 1
        for task in left:
            sums.append((sums[-1] | sums[-1] << ticks[task]) & within)
        load = sums.pop().bit_length() - 1
        spare -= most - load
        others = []
        for task, before in zip(reversed(left), reversed(sums), strict=True):
            if before >> load & 1:
                others.append(task)
            else:
                found[task], load = instance, load - ticks[task]
        left = others[::-1]
    return found if spare >= 0 else None
