"""Search for assignments with low loads: large neighbourhoods, kicks, and several threads.

Each thread has an assignment of its own. In each cycle it is shaken (some rounds of the neighbourhood search may make
it worse), improved again, and kept if it is about as good as before. That changes which placements are in use, where
improvement alone gets stuck. A thread that gains nothing any more goes back to the best assignment of all, and the
next time starts afresh (see also :mod:`mig_opt.loads.combining`): few tasks have several sets of placements that are
about as good, and no shake leads from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.bounds import slice_dual_prices
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.kernels import NEVER
from mig_opt.loads.neighbourhood import improve, spread
from mig_opt.loads.reach import reach
from mig_opt.loads.state import SPLIT, Costs, shape_of
from mig_opt.loads.tables import fixed_cost, making_room, ticks_of
from mig_opt.loads.tree import LoadTree

_FREE = (7, 12)
"""Tasks that move at a time: from the first number to one less than the second."""

_BIG, _BIG_ROUNDS, _EVERY = 13, 6, 6
"""In every sixth cycle so many tasks move at a time, in fewer rounds; that is slow, but gets where others do not."""

_SHAKES, _WORST = 3, (0.002, 0.012)
"""Rounds that may make it worse, and by which share of the height."""

_MANY = 40
"""With more tasks on a GPU each of them matters less, and so does a shake."""

_ROUNDS = 60
"""Rounds of improvement after that."""

_PATIENCE = 60
"""Cycles without gain, after which a thread starts from elsewhere."""

_FRESH = 0.1
"""How much more than the least a task costs in the place where it starts afresh, on the average."""

_CHEAP, _CHEAP_ROUNDS = 1.002, 100
"""What costs at most so many times as much is as good: prices are not exact. Rounds in which tasks move there alone."""

_CLOSE = 1.003
"""An assignment is kept if it is no worse than before, or within this factor of the best."""

_MEETING, _MEETING_SHARE = 0.4, 0.1
"""Work of each of several threads before they tell each other what they found, and the share of that so far that it is
at most: cycles take unlike times, and a thread that is done waits for the others."""

_SECONDS_PER_SET = 2.5e-8
"""Of tasks that move, in a round, at most."""


class Start(NamedTuple):
    """Where a thread goes on from.

    Attributes
    ----------
    places : array of int64, shape (tasks,)
        The place of each task.
    work : float
        About the seconds that it takes to find it.
    """

    places: npt.NDArray[np.int64]
    work: float


Draw = Callable[[np.random.Generator, npt.NDArray[np.bool_], Callable[[], bool]], Start]
"""Draws a start from where each task may run, shape (tasks, places), and from whether there is no time left."""


class LoadSearch:
    """A search for assignments of tasks to places with low loads.

    Parameters
    ----------
    batch : IntegerBatch
        The batch in ticks.
    places : sequence of int
        The place of each task to start from.
    seed : int
        For the choices.
    workers : int
        Threads.

    Attributes
    ----------
    height : int
        Ticks of the highest way through the load tree in the best assignment, every destruction included.
    places : list of int
        The best assignment.
    draw : Draw or None
        Draws fresh starts; if None, they have each task in one of its cheap places.
    """

    def __init__(self, batch: IntegerBatch, places: Sequence[int], seed: int, workers: int) -> None:
        tree = LoadTree(batch)
        count = len(batch.batch.tasks)
        self._tree, self._shape = tree, shape_of(batch, tree)
        ticks = np.stack([ticks_of(place, count) for place in batch.places], axis=1)
        self._reach = reach(tree, self._shape, ticks)
        fixed = np.array([fixed_cost(place) for place in batch.places])
        on_slice = slice_dual_prices(batch.batch)
        prices = np.array([sum(on_slice[at] for at in place.placement.footprint) for place in batch.places])
        self._costs = Costs(
            ticks=ticks,
            fixed=fixed,
            room=np.array([making_room(place) for place in batch.places]),
            price=ticks * prices,
            rent=fixed * prices,
        )
        splits = int(np.sum(self._shape.kind == SPLIT)) / len(tree.roots) * min(2, len(tree.roots))
        self._tables = splits + 1
        self.small = count <= _MANY * batch.batch.gpus
        starts = [np.array(places, np.int64)]
        # With few tasks the cycles find as much, and would have to wait for it.
        if not self.small and all(place.free is None for place in batch.places):
            starts.append(self._cheap())
        self.height, best = min((self.run(start, 1, 0, 0, 0, 0), at) for at, start in enumerate(starts))
        self.places: list[int] = starts[best].tolist()
        self.draw: Draw | None = None
        self._threads = [_Thread(self, np.random.default_rng([seed, number])) for number in range(workers)]
        # A shake should cost about as much as a few tasks in the wrong place.
        self.worst = np.array(_WORST) * min(1.0, _MANY * batch.batch.gpus / count)

    def forbid(self, forbidden: npt.NDArray[np.bool_]) -> None:
        """Leave out some places, shape (tasks, places), from now on; what runs there moves to one of its cheap places.

        Nothing is done if that leaves no place to a task.
        """
        ticks = np.where(forbidden, np.int32(NEVER), self._costs.ticks)
        if not (ticks < NEVER).any(axis=1).all():
            return
        self._costs = self._costs._replace(ticks=ticks, price=np.where(ticks < NEVER, self._costs.price, np.inf))
        self._reach = reach(self._tree, self._shape, ticks)
        for thread in self._threads:
            thread.move(forbidden)
        best = min(self._threads, key=lambda thread: thread.height)
        self.height, self.places = best.height, best.places.tolist()

    @property
    def seconds_per_cycle(self) -> float:
        """About what a cycle takes."""
        return self.seconds(_FREE[1] - 1, _ROUNDS + _SHAKES)

    def seconds(self, free: int, rounds: int) -> float:
        """Return about what some rounds take in which so many tasks move."""
        count = len(self.places)
        return rounds * _SECONDS_PER_SET * (self._tables * 2.0 ** min(count, free) + count)

    def cycles(
        self, target: int, over: Callable[[], bool] = lambda: False
    ) -> Generator[list[tuple[int, list[int]]], None, None]:
        """Yield, for ever, the heights and assignments that the threads come to in their next cycles.

        A single thread does one cycle at a time, several do some each: about as much work.

        Parameters
        ----------
        target : int
            Ticks that no height can be below.
        over : callable, optional
            Whether the threads should not begin another cycle before they meet.
        """
        work = 0.0
        with ThreadPoolExecutor(len(self._threads)) as pool:
            while True:
                share = min(_MEETING, _MEETING_SHARE * work) if len(self._threads) > 1 else 0.0
                work += share or self.seconds_per_cycle
                running = [pool.submit(thread.cycles, target, share, over) for thread in self._threads]
                found = [result for each in running for result in each.result()]
                self.height, self.places = min([(self.height, self.places), *found], key=lambda result: result[0])
                yield found

    def _cheap(self) -> npt.NDArray[np.int64]:
        """Return an assignment of low height of each task to one of its cheapest places."""
        price = np.where(self._costs.ticks < NEVER, self._costs.price, np.inf)
        cheap = price <= price.min(axis=1, keepdims=True) * _CHEAP
        costs = self._costs._replace(ticks=np.where(cheap, self._costs.ticks, np.int32(NEVER)))
        places: npt.NDArray[np.int64] = spread(costs, self._shape)
        # What a task adds at least in all places is no more than what it adds in these: the sets are right.
        improve(costs, self._shape, self._reach, places, _FREE[1] - 1, _CHEAP_ROUNDS, 0, 0, 0)
        return places

    @property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Where each task may run, shape (tasks, places)."""
        possible: npt.NDArray[np.bool_] = self._costs.ticks < NEVER
        return possible

    def fresh(self, rng: np.random.Generator, tasks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return one of the cheap places of each of some tasks, drawn."""
        price = self._costs.price[tasks]
        most = price.min(axis=1) * (1 + rng.exponential(_FRESH, len(price)))
        return np.array([rng.choice(np.nonzero(row <= limit)[0]) for row, limit in zip(price, most, strict=True)])

    def run(self, places: npt.NDArray[np.int64], free: int, rounds: int, seed: int, target: int, slack: int) -> int:
        """Run some rounds of the neighbourhood search on ``places``; return the height."""
        return int(improve(self._costs, self._shape, self._reach, places, free, rounds, seed, target, slack))


class _Thread:
    """What one thread works on."""

    def __init__(self, search: LoadSearch, rng: np.random.Generator) -> None:
        self._search = search
        self._rng = rng
        self._cycle = 0
        self._idle = 0
        self._starts = 0
        self._settled = False
        self.places = np.array(search.places, np.int64)
        self.height = self._lowest = search.height

    def cycles(self, target: int, work: float, over: Callable[[], bool]) -> list[tuple[int, list[int]]]:
        """Return the heights and assignments after each of some cycles: one, and more up to about so much work."""
        found: list[tuple[int, list[int]]] = []
        while not found or (work > 0 and self.height > target and not over()):
            work -= self._run_cycle(target, over)
            found.append((self.height, self.places.tolist()))
        return found

    def _run_cycle(self, target: int, over: Callable[[], bool]) -> float:
        """Shake and improve, or once in a while improve by large steps; return about the seconds that it takes."""
        self._cycle += 1
        rng, search, best = self._rng, self._search, self._search.height
        work = self._start(over) if self._idle >= _PATIENCE else 0.0
        places = self.places.copy()
        free, rounds = int(rng.integers(*_FREE)), _ROUNDS
        if self._settled and self._cycle % _EVERY == 0:
            free, rounds = _BIG, _BIG_ROUNDS
        elif self._settled:
            slack = int(best * rng.uniform(*search.worst))
            search.run(places, free, _SHAKES, int(rng.integers(2**31)), 0, slack)
        height = search.run(places, free, rounds, int(rng.integers(2**31)), target, 0)
        # At first there is much to gain without kicks.
        self._settled = self._settled or height > self.height * 0.9999
        self._idle = 0 if height < self._lowest else self._idle + 1
        self._lowest = min(height, self._lowest)
        if height <= self.height or height < best * _CLOSE:
            self.places, self.height = places, height
        return work + search.seconds(free, rounds)

    def _start(self, over: Callable[[], bool]) -> float:
        """Start from the best of all assignments or, every other time, from a fresh one; return about the seconds."""
        search, work = self._search, 0.0
        self._starts += 1
        self._idle = 0
        self.places, self.height = np.array(search.places, np.int64), search.height
        if self._starts % 2 and search.draw is not None:
            possible = search.possible
            self.places, work = search.draw(self._rng, possible, over)
            self.move(~possible)
            self._measure()
        elif self._starts % 2 and search.small:
            self._replace(np.arange(len(self.places)))
        self._lowest = self.height
        return work

    def move(self, forbidden: npt.NDArray[np.bool_]) -> None:
        """Move what runs where it must not."""
        tasks = np.nonzero(forbidden[np.arange(len(self.places)), self.places])[0]
        if len(tasks):
            self._replace(tasks)
            self._lowest = self.height

    def _replace(self, tasks: npt.NDArray[np.int64]) -> None:
        """Let some tasks start afresh."""
        self.places[tasks] = self._search.fresh(self._rng, tasks)
        self._measure()

    def _measure(self) -> None:
        """Look at an assignment that comes from elsewhere."""
        self.height, self._settled = self._search.run(self.places, 0, 0, 0, 0, 0), False
