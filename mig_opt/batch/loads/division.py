"""Division of tasks among instances of the same size: to the tick, if they are many.

What some of the tasks can take in all are their subset sums (Bellman, 1957). A dozen tasks have thousands of them,
thirty have more than a schedule has ticks, so nearly every load is the sum of some of them. Of hundreds of tasks the
first ones are taken as they come, until a few of those that follow fill what is left of an instance.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

_LENGTHS = (0.8, 1.2)
"""Factors of the lengths of tasks by which they are put in order."""

_MAX_MEMBERS = 64
"""Tasks at a time whose sums are looked at, at most: half of them have more than ticks."""


def bits_of_division(ticks: Sequence[int], room: int) -> int:
    """Return the number of sums, each of some first tasks, that are looked at for an instance, about at most."""
    count = min(len(ticks), _MAX_MEMBERS)
    return count * min(room, count * max(ticks, default=0))


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
    for instance, whole in enumerate(room[:-1]):
        if min(whole, spare) < 0:
            return None
        first, most = _as_they_come([ticks[task] for task in left], whole)
        for task in left[:first]:
            found[task] = instance
        some = left[first : first + _MAX_MEMBERS]
        # The bits of each number are the sums of the first tasks.
        sums, within = [1], (1 << most + 1) - 1
        for task in some:
            sums.append((sums[-1] | sums[-1] << ticks[task]) & within)
        load = sums.pop().bit_length() - 1
        spare -= most - load
        others = []
        for task, before in zip(reversed(some), reversed(sums), strict=True):
            if before >> load & 1:
                others.append(task)
            else:
                found[task], load = instance, load - ticks[task]
        left = others[::-1] + left[first + _MAX_MEMBERS :]
    return found if spare >= 0 else None


def _as_they_come(ticks: Sequence[int], room: int) -> tuple[int, int]:
    """Return how many of the first tasks an instance gets in any case, and the room that they leave."""
    first, following = 0, sum(ticks[:_MAX_MEMBERS])
    # About half of the tasks that follow are to fill the rest.
    while first + _MAX_MEMBERS < len(ticks) and ticks[first] + following // 2 <= room:
        following += ticks[first + _MAX_MEMBERS] - ticks[first]
        room -= ticks[first]
        first += 1
    return first, room
