"""Division of tasks among instances of the same size: to the tick, if they are many.

What some of the tasks can take in all are their subset sums (Bellman, 1957). A dozen tasks have thousands of them,
thirty have more than a schedule has ticks, so nearly every load is the sum of some of them. Of hundreds of tasks the
first ones are taken as they come, until a few of those that follow fill what is left of an instance.

Where the last instances have only some two dozen tasks, or an instance has room for few, all sets of tasks that fill it
are looked at, and for each of these the sets that fill the next one. Sums of one half of the tasks are joined to those
of the other half (Horowitz and Sahni, 1974), so that sets that do not fill it cost nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mig_opt.batch.loads.subsets import Integers

_LENGTHS, _ROOMS = (0.8, 1.2), (0.9, 1.1)
"""Factors of the lengths of tasks, and of the room of instances, by which they are put in order."""

_MAX_MEMBERS = 64
"""Tasks at a time whose sums are looked at, at most: half of them have more than ticks."""

_MAX_JOINED, _LAST_INSTANCES = 30, 4
"""Tasks that are left, up to which all sets that fill the next instance are looked at; and instances, if one division
of many is sought."""

_FEW = 4
"""Tasks of mean length for which an instance has room, up to which all sets are looked at that fill it."""

_MAX_SUMS, _MAX_FILLING = 2**17, 1000
"""Sets of half of the tasks, and sets that fill an instance, at most: else some are left out."""

_MAX_STEPS, _STEPS_OF_MANY = 3000, 200
"""Sets that fill instances, at most: about a millisecond for each; and those of one division of many."""

_TRIES, _MAX_DRAWINGS, _MAX_LISTED = 20, 10, 40
"""Random orders of tasks and instances where these are too many for all sets, how often they are drawn, and tasks up to
which all sets are looked at then."""


class Division(NamedTuple):
    """Division of tasks among instances, if one was found."""

    instances: list[int] | None  # instance of each task
    complete: bool = True  # false if there may be one though none was found


def bits_of_division(ticks: Sequence[int], room: int) -> int:
    """Return the number of sums, each of some first tasks, that are looked at for an instance, about at most."""
    count = min(len(ticks), _MAX_MEMBERS)
    return count * min(room, count * max(ticks, default=0))


def divide(ticks: Sequence[int], room: Sequence[int], draw: random.Random) -> list[int] | None:
    """Return for each task which of some instances it is divided to, so that each has no more ticks than room for.

    The instances are filled one after the other, each as far as possible, with long tasks rather than short ones: the
    more tasks are left for the last instances, the more sums these have. So those with most room come last. How long a
    task counts is random by a fifth, and how much room by a tenth.
    Returned is None if too little is left for the last ones.

    Examples
    --------
    >>> divide([3, 5, 2, 4], [7, 7], random.Random(1)) in ([1, 0, 0, 1], [0, 1, 1, 0])
    True
    """
    spare = sum(room) - sum(ticks)
    order = sorted(range(len(room)), key=lambda at: room[at] * draw.uniform(*_ROOMS))
    left = sorted(range(len(ticks)), key=lambda task: -ticks[task] * draw.uniform(*_LENGTHS))
    found = [order[-1]] * len(ticks)
    for number, instance in enumerate(order[:-1]):
        whole = room[instance]
        if min(whole, spare) < 0:
            return None
        if len(room) - number <= _LAST_INSTANCES and len(left) <= _MAX_JOINED:
            rest = [ticks[task] for task in left]
            last = _Exactly(draw, _STEPS_OF_MANY).divide(rest, [room[at] for at in order[number:]]).instances
            for task, at in zip(left, last or (), strict=last is not None):
                found[task] = order[number + at]
            return None if last is None else found
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


def divide_exactly(
    ticks: Sequence[int],
    room: Sequence[int],
    draw: random.Random,
    *,
    effort: int = 1,
    expired: Callable[[], bool] = lambda: False,
) -> Division:
    """Divide tasks, at most 62, as :func:`divide` does, but tell whether that is possible, as far as all sets are seen.

    With more ``effort`` more of them are, by that factor; once ``expired``, no more.

    Examples
    --------
    >>> divide_exactly([3, 5, 2, 4], [7, 7], random.Random(1)).instances in ([1, 0, 0, 1], [0, 1, 1, 0])
    True
    >>> divide_exactly([3, 5, 2, 5], [8, 7], random.Random(1)).instances in ([0, 0, 1, 1], [0, 1, 1, 0])
    True
    >>> divide_exactly([3, 5, 3, 5], [9, 7], random.Random(1))
    Division(instances=None, complete=True)
    """
    return _Exactly(draw, effort * _MAX_STEPS, expired).divide(ticks, room)


class _Exactly:
    """Division with all sets that fill an instance, as long as they are few."""

    def __init__(self, draw: random.Random, steps: int, expired: Callable[[], bool] = lambda: False) -> None:
        self._draw, self._steps_left, self._expired = draw, steps, expired
        self._drawings_left = _MAX_DRAWINGS

    def divide(self, ticks: Sequence[int], room: Sequence[int]) -> Division:
        """Divide tasks among instances: first to the one that has least room."""
        spare = sum(room) - sum(ticks)
        if min(spare, *room) < 0 or len(room) == 1:
            return Division([0] * len(ticks) if spare >= 0 and len(room) == 1 else None)
        least = min(room)
        if len(ticks) > _MAX_JOINED and least * len(ticks) > _FEW * sum(ticks):
            found = self._drawn(ticks, room)
            if found.instances is not None or len(ticks) > _MAX_LISTED:
                return found
        first = room.index(least)
        filling, complete = _filling(ticks, least - spare, least)
        for chosen in filling:
            if self._steps_left <= 0 or self._expired():
                return Division(None, complete=False)
            self._steps_left -= 1
            rest = [own for own, here in zip(ticks, chosen, strict=True) if not here]
            others = self.divide(rest, [*room[:first], *room[first + 1 :]])
            if others.instances is not None:
                after = iter(at + (at >= first) for at in others.instances)
                return Division([first if here else next(after) for here in chosen])
            complete &= others.complete
        return Division(None, complete)

    def _drawn(self, ticks: Sequence[int], room: Sequence[int]) -> Division:
        """Divide tasks in random orders, a few times in all."""
        self._drawings_left -= 1
        for _ in range(_TRIES if self._drawings_left >= 0 else 0):
            found = divide(ticks, room, self._draw)
            if found is not None:
                return Division(found)
        return Division(None, complete=False)


def _filling(ticks: Sequence[int], at_least: int, at_most: int) -> tuple[list[list[int]], bool]:
    """Return sets of tasks whose ticks are within some limits, 1 for each task in it; and whether these are all."""
    half = len(ticks) // 2
    (one, sets), (other, other_sets) = _sums(ticks[:half], at_most), _sums(ticks[half:], at_most)
    first, second, complete = joined(one, other, at_least, at_most, _MAX_FILLING)
    complete &= max(len(one), len(other)) < _MAX_SUMS
    found = sets[first] | other_sets[second] << half
    return (found[:, np.newaxis] >> np.arange(len(ticks)) & 1).tolist(), complete


def joined(one: Integers, other: Integers, at_least: int, at_most: int, most: int) -> tuple[Integers, Integers, bool]:
    """Return the rows of pairs, one of each, whose sum is within some limits; and whether these are all.

    If they are more than ``most``, some are left out.
    """
    order = np.argsort(other)
    first = np.searchsorted(other, at_least - one, "left", order)
    after = np.cumsum(np.searchsorted(other, at_most - one, "right", order) - first)
    complete = bool(after[-1] <= most)
    after = np.minimum(after, most)
    counts = np.diff(after, prepend=0)
    rows = np.repeat(np.arange(len(one)), counts)
    return rows, order[np.arange(len(rows)) + (first - after + counts)[rows]], complete


def _sums(ticks: Sequence[int], at_most: int) -> tuple[Integers, Integers]:
    """Return the ticks of the sets of tasks that are within a limit, and the sets: a bit for each task."""
    sums, sets = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for task, own in enumerate(ticks):
        more = sums + own <= at_most
        sums = np.concatenate([sums, sums[more] + own])[:_MAX_SUMS]
        sets = np.concatenate([sets, sets[more] | 1 << task])[:_MAX_SUMS]
    return sums, sets


def _as_they_come(ticks: Sequence[int], room: int) -> tuple[int, int]:
    """Return how many of the first tasks an instance gets in any case, and the room that they leave."""
    first, following = 0, sum(ticks[:_MAX_MEMBERS])
    # About half of the tasks that follow are to fill the rest.
    while first + _MAX_MEMBERS < len(ticks) and ticks[first] + following // 2 <= room:
        following += ticks[first + _MAX_MEMBERS] - ticks[first]
        room -= ticks[first]
        first += 1
    return first, room
