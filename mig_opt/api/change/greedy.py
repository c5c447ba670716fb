"""Randomised multi-start list scheduling of the moves of a change.

The drivers of all GPUs are simulated, with a queue of the ends of moves. Each driver starts the move of highest
priority that it may start: creations wherever memory slices are free, then destructions and switches after which no
service lacks throughput. Only if every driver waits is a segment interrupted, by the creation or switch for which the
fewest interruptions are enough. Runs differ by random priorities and by whether needless destructions are put off.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from random import Random

from mig_opt.serving.change_problem import ChangeProblem, Timetable
from mig_opt.serving.deployment import Segment

_MOST_RUNS = 64
_MOST_MOVES = 40_000  # moves of all runs together: a second or two of work


def greedy(problem: ChangeProblem, gpus: Sequence[int], most_runs: int = _MOST_RUNS) -> Timetable:
    """Return the best of several plans for the GPUs of a part: of fewest interruptions, then of least duration.

    Runs alternate between two rules. One destroys as soon as it may; the other puts off destructions that make room for
    no creation until all others of the service are done, since a service can spare only a part at a time. The first
    two runs give moves priority by number, the others at random.
    """
    moves = sum(len(problem.by_gpu[gpu]) for gpu in gpus)
    least = problem.inevitable(gpus), problem.least_ticks(gpus)
    random = Random(0)
    best: Timetable | None = None
    for number in range(min(most_runs, max(_MOST_MOVES // moves, 2))):
        priorities = list(range(len(problem.moves)))
        if number >= 2:
            random.shuffle(priorities)
        plan = _DriverSimulation(problem, gpus, priorities, deferring=number % 2 == 1).run()
        if best is None or plan.cost < best.cost:
            best = plan
        if best.cost == least:
            break
    assert best is not None  # there are two runs at least
    return best


class _DriverSimulation:
    """One run: a simulation of the drivers of all GPUs."""

    def __init__(
        self, problem: ChangeProblem, gpus: Sequence[int], priorities: Sequence[int], *, deferring: bool
    ) -> None:
        self._problem, self._gpus, self._priorities, self._deferring = problem, gpus, priorities, deferring
        self._gpu_priorities = {gpu: priorities[problem.by_gpu[gpu][0]] for gpu in gpus}
        self._now = 0
        self._begins: list[tuple[int, int]] = []
        self._live = {service: need.kept + sum(need.ending.values()) for service, need in problem.needs.items()}

        def lacking(segment: Segment | None) -> str:
            """Return the service of a segment, if that can lack throughput; else nothing."""
            return segment.service if segment is not None and segment.service in self._live else ""

        self._ending = [lacking(move.ends) for move in problem.moves]
        self._beginning = [lacking(move.begins) for move in problem.moves]
        self._pending = {gpu: set(problem.by_gpu[gpu]) for gpu in gpus}
        self._running: list[tuple[int, int]] = []
        self._busy: set[int] = set()
        self._destroyed: set[int] = set()
        # For each service the GPUs that wait until it has more throughput, with the units that one of their moves would
        # take away; and those that put off a destruction until the service has ended what blocks creations.
        self._starved: dict[str, dict[int, int]] = defaultdict(dict)
        self._deferred: dict[str, set[int]] = defaultdict(set)
        self._limit = {index: limit for limit in problem.limits for index in limit.creates}
        self._unblocks: dict[int, list[int]] = defaultdict(list)
        for gpu in gpus:
            for index in problem.by_gpu[gpu]:
                rivals = self._limit[index].destroys if index in self._limit else ()
                for other in {*problem.moves[index].after, *rivals}:
                    self._unblocks[other].append(index)
        self._left = Counter(self._ending[index] for gpu in gpus for index in problem.by_gpu[gpu])
        self._blocking = Counter(self._ending[index] for index in self._unblocks)

    def run(self) -> Timetable:
        """Return the plan."""
        self._start_all(self._gpus)
        while True:
            if not self._running:
                # Somebody who was affected may have left to others what it was affected for.
                self._start_all(gpu for gpu in self._gpus if self._pending[gpu])
            if self._running:
                self._start_all(self._finish())
            elif any(self._pending.values()):
                self._start_all(self._interrupt_one())
            else:
                break
        return self._problem.timed(self._begins)

    # Starting and ending moves

    def _start_all(self, gpus: Iterable[int]) -> None:
        """Let drivers start the moves that they may start; destructions that unblock nothing come last."""
        first, last = deque(self._by_priority(gpus)), deque[int]()
        while first or last:
            cleanup = not first
            gpu = (first or last).popleft()
            if gpu in self._busy:
                continue
            index = self._choice(gpu, cleanup=cleanup)
            if index is not None:
                first.extend(self._by_priority({gpu} | self._start(index)))
            elif not cleanup:
                last.append(gpu)

    def _choice(self, gpu: int, *, cleanup: bool) -> int | None:
        """Return the next move of a driver; None if there is none that it may start."""
        moves, pending = self._problem.moves, sorted(self._pending[gpu], key=self._priorities.__getitem__)
        creations = [index for index in pending if moves[index].kind == "create" and not self._awaited(index)]
        ends = [index for index in pending if moves[index].ends is not None]
        safe = [index for index in ends if self._safe(index)]
        for index in set(ends) - set(safe):
            self._starved[self._ending[index]][gpu] = self._units(index)
        switches = [index for index in safe if moves[index].kind == "switch"]
        if switches:
            return switches[0]
        if creations:
            return max(creations, key=self._urgency)
        useful = [index for index in safe if index in self._unblocks]
        if useful:
            # that which comes closest to a creation: the fewest instances are in the way of it
            return min(useful, key=lambda index: min(len(self._awaited(other)) for other in self._unblocks[index]))
        for index in safe if cleanup else ():
            if not self._deferring or not self._blocking[self._ending[index]]:
                return index
            self._deferred[self._ending[index]].add(gpu)
        return None

    def _start(self, index: int) -> set[int]:
        """Start a move now; return the GPUs for which that may change something."""
        move, service = self._problem.moves[index], self._ending[index]
        self._pending[move.gpu].remove(index)
        self._begins.append((index, self._now))
        self._left[service] -= 1
        affected: set[int] = set()
        if index in self._unblocks:
            self._blocking[service] -= 1
            affected = self._deferred.pop(service, affected)
        if service:
            self._live[service] -= self._problem.needs[service].ending[index]
        if move.kind == "switch":
            return affected | self._serve(index)
        self._busy.add(move.gpu)
        heapq.heappush(self._running, (self._now + move.ticks, index))
        return affected

    def _serve(self, index: int) -> set[int]:
        """Count the segment that begins; return the waiting GPUs that its service can afford to let go on."""
        service = self._beginning[index]
        if not service:
            return set()
        self._live[service] += self._problem.needs[service].beginning[index]
        spare = self._live[service] - self._problem.needs[service].least
        waiting = self._starved[service]
        affected = set()
        for gpu in self._by_priority(waiting):
            # A busy driver chooses anew when its move ends.
            if gpu not in self._busy and waiting[gpu] > spare:
                continue
            units = waiting.pop(gpu)
            if gpu not in self._busy:
                affected.add(gpu)
                spare -= units
        return affected

    def _finish(self) -> set[int]:
        """Wait for the next moves to end; return the GPUs for which that may change something."""
        self._now = self._running[0][0]
        affected: set[int] = set()
        while self._running and self._running[0][0] == self._now:
            _, index = heapq.heappop(self._running)
            move = self._problem.moves[index]
            self._busy.remove(move.gpu)
            affected |= {move.gpu} | self._serve(index)
            if move.kind == "destroy":
                self._destroyed.add(index)
        return affected

    # When every driver waits

    def _interrupt_one(self) -> set[int]:
        """Interrupt a segment, and return the GPUs for which that may change something."""
        moves = self._problem.moves
        left = [index for gpu in self._gpus for index in self._pending[gpu]]
        choices = [
            ((len(ends), -self._urgency(index), self._priorities[index]), ends[0])
            for index in left
            if (ends := [index] if moves[index].kind == "switch" else self._awaited(index))
        ]
        # Without a choice only ends are left, of services that get less than they need: small ones first.
        chosen = min(choices)[1] if choices else min(left, key=lambda index: (self._units(index), index))
        return {moves[chosen].gpu} | self._start(chosen)

    # Properties of moves

    def _by_priority(self, gpus: Iterable[int]) -> list[int]:
        return sorted(gpus, key=self._gpu_priorities.__getitem__)

    def _units(self, index: int) -> int:
        service = self._ending[index]
        return self._problem.needs[service].ending[index] if service else 0

    def _safe(self, index: int) -> bool:
        """Return True if the service of the segment that ends still has what it needs."""
        service = self._ending[index]
        return not service or self._live[service] - self._units(index) >= self._problem.needs[service].least

    def _awaited(self, index: int) -> list[int]:
        """Return the destructions that a creation waits for: those on its slices, else one that makes room for it."""
        after = [other for other in self._problem.moves[index].after if other not in self._destroyed]
        limit = self._limit.get(index)
        if after or limit is None:
            return after
        begun = sum(other not in self._pending[self._problem.moves[other].gpu] for other in limit.creates)
        left = [other for other in limit.destroys if other not in self._destroyed]
        return [] if begun < limit.free + len(limit.destroys) - len(left) else left[:1]

    def _urgency(self, index: int) -> int:
        """Return how many segments may end once this one has begun."""
        service = self._beginning[index]
        return self._left[service] if service else 0
