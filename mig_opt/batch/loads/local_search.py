"""Local search for assignments with short paths: iterated large-neighbourhood search by several threads.

Each thread has an assignment of its own, its incumbent. Each cycle is one step of an iterated local search (Lourenco,
Martin and Stuetzle, 2003): a perturbation (some rounds of the neighbourhood search may make the assignment worse),
improvement, and acceptance if the result is about as good as the incumbent. That changes which placements are in use,
where improvement alone gets stuck. A thread that gains nothing any more goes back to the best assignment of all, and
the next time starts afresh (see also :mod:`mig_opt.batch.loads.starts`): with few tasks several sets of placements are
about as good, and no perturbation leads from one to the other.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.bounds import slice_dual_prices
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.neighbourhood import Costs, flat_tree, greedy_assignment, improve, least_loads, operations_of
from mig_opt.batch.loads.subsets import NEVER, Integers
from mig_opt.batch.loads.tree import KINDS, LoadTree, clearing_ticks, task_ticks, used_ticks
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Control

Possible = npt.NDArray[np.bool_]
"""True where each task may run, shape (tasks, places)."""

_MAX_CHOICES = 4 * 10**6
"""Choices of a place for a task above which the search gets nowhere."""

_FREE = (7, 12)
"""Tasks that move at a time: from the first number to one less than the second."""

_MANY_FREE, _MANY_FREE_ROUNDS, _MANY_FREE_CYCLE = 13, 6, 6
"""Tasks that move at a time, and rounds, in every sixth cycle: that is slow, but gets where others do not."""

_PERTURBATION_ROUNDS, _PERTURBATION = 3, (0.002, 0.012)
"""Rounds that may make it worse, and by which share of the longest path."""

_MAX_TASKS_PERTURBED = 40
"""Number of tasks on a GPU above which each of them matters less, and so does a perturbation."""

_ROUNDS = 60
"""Rounds of improvement after that."""

_IDLE_CYCLES = 60
"""Cycles without gain, after which a thread starts from elsewhere."""

_FRESH = 0.1
"""Additional weighted cost of a task in the place where it starts afresh, on average, as a share of its least."""

_CHEAP, _CHEAP_ROUNDS = 1.002, 100
"""Factor up to which places that cost more are as good, since dual prices are not exact; rounds in which tasks move
among these alone."""

_CLOSE = 1.003
"""An assignment is accepted if it is no worse than the incumbent, or within this factor of the best."""

_REPORT, _REPORT_SHARE = 0.2, 0.1
"""Work of each of several threads before it tells the others what it found, and the share of its work so far that this
is at most."""

_SECONDS_PER_SET = 1.3e-8
"""Seconds for each set of tasks that move, in a round, at most."""


class Start(NamedTuple):
    """Assignment from which a thread goes on."""

    places: Integers  # the place of each task
    work: float  # approximate seconds that it takes to find it


Found = list[tuple[int, list[int]]]
"""Assignments, the place of each task, each after the ticks of its longest path."""

Draw = Callable[[np.random.Generator, Possible, Callable[[], bool]], Start]
"""Draws a start, given the source of random choices, where each task may run, shape (tasks, places), and a function
that is true once no time is left."""


class LoadSearch:
    """Search by several threads for assignments of tasks to places with short paths, from the place of each task."""

    def __init__(self, batch: IntegerBatch, places: Sequence[int], seed: int, workers: int) -> None:
        tree = LoadTree(batch)
        count = len(batch.batch.tasks)
        self._load_tree, self._tree = tree, flat_tree(batch, tree)
        ticks = task_ticks(batch, batch.places)
        self._least = least_loads(tree, self._tree, ticks)
        used = np.array([used_ticks(place) for place in batch.places])
        prices = slice_dual_prices(batch.batch)
        on_slice = {gpu: prices[batch.batch.kind(gpu)] for gpu in batch.gpus}
        self._operations = operations_of(batch)
        weights = np.array([sum(on_slice[place.gpu][at] for at in place.placement.footprint) for place in batch.places])
        self._costs = Costs(
            ticks=ticks,
            used=used,
            spared=np.array([place.destroy for place in batch.places]),
            clearing=np.array([clearing_ticks(place) for place in batch.places]),
            weighted=np.where(ticks < NEVER, ticks * weights, np.inf),  # a weight may be 0
            weighted_used=used * weights,
        )
        splits = int(np.sum(self._tree.kind == KINDS.index("split"))) / len(tree.roots) * min(2, len(tree.roots))
        self._tables = splits + 1
        self.small = count <= _MAX_TASKS_PERTURBED * len(batch.gpus)
        starts = [np.array(places, np.int64)]
        # With few tasks the cycles find as much, and would have to wait for it.
        if not self.small and all(place.free is None for place in batch.places):
            starts.append(self.cheap_assignment())
        # ticks of the longest path in the best assignment, every destruction included, and the place of each task
        self.best: tuple[int, list[int]] = min((self.run(start, 1, 0, 0, 0, 0), start.tolist()) for start in starts)
        self.draw: Draw | None = None  # if None, fresh starts have each task in one of its cheap places
        self.active = workers  # number of threads that search
        self._threads = [_Thread(self, np.random.default_rng([seed, number])) for number in range(workers)]
        self._running: dict[Future[Found], _Thread] = {}
        self._done: queue.SimpleQueue[Future[Found]] = queue.SimpleQueue()  # of these; Ctrl-C cannot break it
        self._kept: Found = []  # found, and not told yet
        self._pausing = False
        # A perturbation should cost about as much as a few tasks in the wrong place.
        self.perturbation = np.array(_PERTURBATION) * min(1.0, _MAX_TASKS_PERTURBED * len(batch.gpus) / count)

    @property
    def length(self) -> int:
        """Ticks of the longest path in the best assignment."""
        return self.best[0]

    @property
    def places(self) -> list[int]:
        """The best assignment: the place of each task."""
        return self.best[1]

    def forbid(self, forbidden: Possible) -> None:
        """Leave out some places, shape (tasks, places), from now on; tasks there move to one of their cheap places.

        It waits until no thread searches. Nothing is done if that leaves no place to a task.
        """
        ticks = np.where(forbidden, np.int32(NEVER), self._costs.ticks)
        if not (ticks < NEVER).any(axis=1).all():
            return
        # No thread may search meanwhile.
        self._pausing = True
        found = self.collected()
        self._pausing = False
        weighted = np.where(ticks < NEVER, self._costs.weighted, np.inf)
        self._costs = self._costs._replace(ticks=ticks, weighted=weighted)
        self._least = least_loads(self._load_tree, self._tree, ticks)
        for thread in self._threads:
            thread.move(forbidden)
        self._kept += [(length, places) for length, places in found if not forbidden[range(len(places)), places].any()]
        self.best = min([*self._kept, *((thread.length, thread.places.tolist()) for thread in self._threads)])

    def start_from(self, draw: Draw, *, at_once: bool = False) -> None:
        """Let fresh starts come from ``draw``, the first of each thread at once if wanted."""
        self.draw = draw
        for thread in self._threads if at_once else ():
            thread.leave()

    def go_on_from(self, places: Sequence[int]) -> None:
        """Let all threads go on from an assignment, if that is better than the best one and may be."""
        start = np.array(places, np.int64)
        if self.possible[np.arange(len(start)), start].all():
            length = self.run(start, 1, 0, 0, 0, 0)
            if length < self.length:
                self.best = length, list(places)
                for thread in self._threads:
                    thread.leave(afresh=False)

    @property
    def seconds_of_draws(self) -> float:
        """Approximate seconds that all draws of fresh starts have taken."""
        return sum(thread.seconds_of_draws for thread in self._threads)

    @property
    def seconds_per_cycle(self) -> float:
        """Approximate seconds of a cycle."""
        return self.seconds(_FREE[1] - 1, _ROUNDS + _PERTURBATION_ROUNDS)

    def seconds(self, free: int, rounds: int) -> float:
        """Return the approximate seconds of some rounds in which ``free`` tasks move."""
        count = len(self.places)
        return rounds * _SECONDS_PER_SET * (self._tables * 2.0 ** min(count, free) + count)

    def cycles(self, target: int, over: Callable[[], bool] = lambda: False) -> Generator[Found, None, None]:
        """Yield, for ever, the lengths and assignments that threads come to in their next cycles.

        A single thread does one cycle at a time, each of several does some and goes on meanwhile. No length is below
        ``target``; once ``over`` is true, the threads begin no other cycle.
        """
        closed = threading.Event()

        def stopped() -> bool:
            return closed.is_set() or over()

        with ThreadPoolExecutor(len(self._threads)) as pool:
            try:
                while True:
                    self._begin(pool, target, stopped)
                    found, self._kept = self._kept + self._taken(1), []
                    if len(self._threads) > 1:
                        self._begin(pool, target, stopped)
                    yield found
            finally:
                closed.set()

    def collected(self) -> Found:
        """Wait for the threads that search, and return what they have found and not told yet."""
        found, self._kept = self._kept + self._taken(len(self._running)), []
        return found

    def _taken(self, least: int) -> Found:
        """Return what threads have found that are done, of ``least`` at least; what one raised is raised here."""
        done = [self._done.get() for _ in range(max(least, self._done.qsize()))]
        self._running = {each: thread for each, thread in self._running.items() if each not in done}
        found = [result for each in done for result in each.result()]
        self.best = min([self.best, *found], key=lambda result: result[0])
        return found

    def _begin(self, pool: ThreadPoolExecutor, target: int, stopped: Callable[[], bool]) -> None:
        """Let the threads search that do not."""
        for thread in self._threads[: self.active]:
            if thread not in self._running.values():
                share = min(_REPORT, _REPORT_SHARE * thread.work) if len(self._threads) > 1 else 0.0
                begun = pool.submit(thread.cycles, target, share, stopped, lambda: self._pausing or stopped())
                self._running[begun] = thread
                begun.add_done_callback(self._done.put)

    def cheap_assignment(self) -> Integers:
        """Return an assignment with short paths of each task to one of its cheapest places."""
        cheap = self._costs.weighted <= self._costs.weighted.min(axis=1, keepdims=True) * _CHEAP
        costs = self._costs._replace(ticks=np.where(cheap, self._costs.ticks, np.int32(NEVER)))
        places: Integers = greedy_assignment(costs, self._tree)
        # The least load of a task over all places is no more than that over these: the bounds on subsets hold.
        improve(costs, self._tree, self._least, self._operations, places, _FREE[1] - 1, _CHEAP_ROUNDS, 0, 0, 0)
        return places

    @property
    def possible(self) -> Possible:
        """True where each task may run, shape (tasks, places)."""
        possible: Possible = self._costs.ticks < NEVER
        return possible

    def fresh(self, rng: np.random.Generator, tasks: Integers) -> Integers:
        """Return one of the cheap places of each of some tasks, drawn."""
        weighted = self._costs.weighted[tasks]
        most = weighted.min(axis=1) * (1 + rng.exponential(_FRESH, len(weighted)))
        return np.array([rng.choice(np.nonzero(row <= limit)[0]) for row, limit in zip(weighted, most, strict=True)])

    def run(self, places: Integers, free: int, rounds: int, seed: int, target: int, slack: int) -> int:
        """Run some rounds of the neighbourhood search on ``places``; return the length of the longest path."""
        return int(
            improve(self._costs, self._tree, self._least, self._operations, places, free, rounds, seed, target, slack)
        )


class _Thread:
    """One thread of a search, with its incumbent."""

    def __init__(self, search: LoadSearch, rng: np.random.Generator) -> None:
        self._search = search
        self._rng = rng
        self._cycle = 0
        self._idle = 0
        self._starts = 0
        self._settled = False
        self._leaving = 0  # in the next cycle: 1 starts afresh, 2 starts from the best assignment, 0 goes on
        self.work = self.seconds_of_draws = 0.0
        self.places = np.array(search.places, np.int64)
        self.length = self._shortest = search.length

    def cycles(self, target: int, work: float, over: Callable[[], bool], pauses: Callable[[], bool]) -> Found:
        """Return the lengths and assignments after each of some cycles: one, and more up to about that work."""
        found: Found = []
        end = self.work + work
        while not found or (self.work < end and self.length > target and not pauses()):
            self.work += self._run_cycle(target, over)
            found.append((self.length, self.places.tolist()))
        return found

    def _run_cycle(self, target: int, over: Callable[[], bool]) -> float:
        """Perturb and improve, or once in a while improve by large steps; return the approximate seconds."""
        self._cycle += 1
        rng, search, best = self._rng, self._search, self._search.length
        if self._leaving:
            self._idle, self._starts, self._leaving = _IDLE_CYCLES, self._leaving - 1, 0
        work = self._start(over) if self._idle >= _IDLE_CYCLES else 0.0
        places = self.places.copy()
        free, rounds = int(rng.integers(*_FREE)), _ROUNDS
        if self._settled and self._cycle % _MANY_FREE_CYCLE == 0:
            free, rounds = _MANY_FREE, _MANY_FREE_ROUNDS
        elif self._settled:
            slack = int(best * rng.uniform(*search.perturbation))
            search.run(places, free, _PERTURBATION_ROUNDS, int(rng.integers(2**31)), 0, slack)
        length = search.run(places, free, rounds, int(rng.integers(2**31)), target, 0)
        # At first there is much to gain without perturbations.
        self._settled = self._settled or length > self.length * 0.9999
        self._idle = 0 if length < self._shortest else self._idle + 1
        self._shortest = min(length, self._shortest)
        if length <= self.length or length < best * _CLOSE:
            self.places, self.length = places, length
        return work + search.seconds(free, rounds)

    def leave(self, *, afresh: bool = True) -> None:
        """Start in the next cycle: afresh, or from the best of all assignments."""
        self._leaving = 1 if afresh else 2

    def _start(self, over: Callable[[], bool]) -> float:
        """Start from the best of all assignments or, every other time, afresh; return the approximate seconds."""
        search, work = self._search, 0.0
        self._starts += 1
        self._idle = 0
        self.length, places = search.best
        self.places = np.array(places, np.int64)
        if self._starts % 2 and search.draw is not None:
            possible = search.possible
            self.places, work = search.draw(self._rng, possible, over)
            self.seconds_of_draws += work
            self.move(~possible)
            self._evaluate()
        elif self._starts % 2 and search.small:
            self._reassign(np.arange(len(self.places)))
        self._shortest = self.length
        return work

    def move(self, forbidden: Possible) -> None:
        """Move the tasks that run where they must not."""
        tasks = np.nonzero(forbidden[np.arange(len(self.places)), self.places])[0]
        if len(tasks):
            self._reassign(tasks)
            self._shortest = self.length

    def _reassign(self, tasks: Integers) -> None:
        """Let some tasks start afresh."""
        self.places[tasks] = self._search.fresh(self._rng, tasks)
        self._evaluate()

    def _evaluate(self) -> None:
        """Find the longest path of an assignment that comes from elsewhere."""
        self.length, self._settled = self._search.run(self.places, 0, 0, 0, 0, 0), False


class Incumbent(NamedTuple):
    """Access of a local search to the best schedule of a method and to its lower bound."""

    # return the ticks of the lower bound and of the best schedule
    lower: Callable[[], int]
    upper: Callable[[], int]
    # Turns an assignment, the place of each task, into a schedule and keeps it if it is better; returns False if the
    # assignment is left for later. The second argument are the seconds of the search so far.
    time: Callable[[Sequence[int], float], bool]
    # Length of an assignment, relative to the best schedule, up to which it is timed: another order of operations may
    # make it shorter.
    near: float = 1.0015


class TimedSearch:
    """Local search on the loads that turns its assignments into schedules, and goes on where it stopped.

    It starts from the schedule of the control.
    """

    def __init__(self, problem: IntegerBatch, control: Control[Schedule], incumbent: Incumbent) -> None:
        assert control.plan is not None
        self._problem = problem
        self._control = control
        self._incumbent = incumbent
        self._loads = LoadSearch(problem, problem.places_of(control.plan), control.seed, control.workers)
        ready = np.array([problem.first_use(place) for place in problem.places])
        self._ends = task_ticks(problem, problem.places) + ready
        self._within = NEVER
        self._seen: set[tuple[int, ...]] = set()
        self._searched = 0.0
        self._try(self._loads.length, self._loads.places)

    @staticmethod
    def possible(problem: IntegerBatch, control: Control[Schedule]) -> bool:
        """Return True if the batch is small enough, and there is time for the search."""
        return problem.choices <= _MAX_CHOICES and not control.expired

    def start_from(self, draw: Draw, *, at_once: bool = False) -> None:
        """Let fresh starts come from ``draw``, the first of them at once if wanted."""
        self._loads.start_from(draw, at_once=at_once)

    def use(self, threads: int) -> None:
        """Let only as many threads as that search from now on; others end what they do."""
        self._loads.active = threads

    def run(
        self,
        idle_cycles: float = math.inf,
        *,
        goes_on: Callable[[], bool] = lambda: True,
        between: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Go on until as many cycles as that bring nothing, the time is up, or ``goes_on`` returns False.

        After each report of threads ``between`` is called with the seconds until it came.
        """
        lower, upper = self._incumbent.lower, self._incumbent.upper
        idle = 0.0
        self._forbid()
        assert self._control.plan is not None
        if upper() < self._loads.length:
            self._loads.go_on_from(self._problem.places_of(self._control.plan))
        cycles = self._loads.cycles(lower(), lambda: self._control.expired)
        try:
            while idle < idle_cycles and lower() < upper() and not self._control.expired and goes_on():
                self._forbid()
                before, clock = (self._loads.length, upper()), self._control.clock
                draws = self._loads.seconds_of_draws
                results = next(cycles)
                number = len(results) / self._control.workers
                draws = (self._loads.seconds_of_draws - draws) / self._control.workers
                self._control.spend(number * self._loads.seconds_per_cycle + draws)
                seconds = self._control.clock - clock
                self._searched += seconds
                for length, places in sorted(results):
                    self._try(length, places)
                idle = 0.0 if (self._loads.length, upper()) < before else idle + number
                between(seconds)
        finally:
            cycles.close()
        for length, places in sorted(self._loads.collected()):
            self._try(length, places)

    def _forbid(self) -> None:
        """Leave out places in which a task alone ends when the best schedule does: no better one has it there.

        Local changes do not get away from such a task by themselves, as all that is near takes longer at first.
        """
        upper = self._incumbent.upper()
        late = self._ends >= upper
        if (late & (self._ends < self._within)).any():
            self._loads.forbid(late)
        self._within = upper

    def _try(self, length: int, places: Sequence[int]) -> None:
        """Time an assignment, if it is new and may be better than the best schedule."""
        near = 1.0 if self._control.expired else self._incumbent.near
        if length > near * self._incumbent.upper():
            return
        key = tuple(self._problem.symmetry_reduced(places))
        if key not in self._seen and self._incumbent.time(key, self._searched):
            self._seen.add(key)
