"""Greedy rounds: every GPU does what it may do next, and only if none may do anything a segment is interrupted.

The driver of each GPU is simulated. Creations come first wherever memory slices are free; then destructions and
switches after which no service lacks throughput. If every driver waits, the creation or switch that costs the fewest
interruptions gets its way.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from random import Random

from mig_opt.serving.change_problem import ChangeProblem, Timetable

_MOST_RUNS = 64
_MOST_MOVES = 40_000
"""Moves of all runs together: a second or two of work."""


def greedy(problem: ChangeProblem, gpus: Sequence[int]) -> Timetable:
    """Return the best of several plans for the GPUs of a part.

    There are two ways to go about it. One destroys as soon as it may; the other spares what is in nobody's way until
    all that is in the way is gone, since a service can afford only so much at a time. Who comes first where several
    could is decided by number at first, and then by lot, again and again.
    """
    moves = sum(len(problem.by_gpu[gpu]) for gpu in gpus)
    least = problem.inevitable(gpus), problem.least_ticks(gpus)
    random = Random(0)
    best: Timetable | None = None
    for number in range(min(_MOST_RUNS, max(_MOST_MOVES // moves, 2))):
        turns = list(range(len(problem.moves)))
        if number >= 2:
            random.shuffle(turns)
        plan = _Rounds(problem, gpus, turns, sparing=number % 2 == 1).run()
        if best is None or plan.cost < best.cost:
            best = plan
        if best.cost == least:
            break
    assert best is not None  # there are two runs at least
    return best


class _Rounds:
    """A simulation of the drivers."""

    def __init__(self, problem: ChangeProblem, gpus: Sequence[int], turns: Sequence[int], *, sparing: bool) -> None:
        self._problem = problem
        self._gpus = gpus
        self._turns = turns
        self._gpu_turns = {gpu: turns[problem.by_gpu[gpu][0]] for gpu in gpus}
        self._sparing = sparing
        self._now = 0
        self._begins: list[tuple[int, int]] = []
        self._live = {service: need.kept + sum(need.ending.values()) for service, need in problem.needs.items()}
        self._ended = [
            move.ends.service if move.ends is not None and move.ends.service in self._live else ""
            for move in problem.moves
        ]
        self._pending = {gpu: set(problem.by_gpu[gpu]) for gpu in gpus}
        self._running: list[tuple[int, int]] = []
        self._busy: set[int] = set()
        self._freed: set[int] = set()
        # GPUs that wait until a service gets more, with the units that one of their moves would take away; and those
        # that spare it until it has ended what is in the way.
        self._lacking: dict[str, dict[int, int]] = defaultdict(dict)
        self._sparers: dict[str, set[int]] = defaultdict(set)
        self._opens: dict[int, list[int]] = defaultdict(list)
        for gpu in gpus:
            for index in problem.by_gpu[gpu]:
                for other in problem.moves[index].after:
                    self._opens[other].append(index)
        self._left = Counter(self._ending(index) for gpu in gpus for index in problem.by_gpu[gpu])
        self._obstacles = Counter(self._ending(index) for index in self._opens)

    def run(self) -> Timetable:
        """Return the plan that the drivers make."""
        self._start_all(self._gpus)
        while True:
            if not self._running:
                # Somebody who was woken may have left to others what it was woken for.
                self._start_all(gpu for gpu in self._gpus if self._pending[gpu])
            if self._running:
                self._start_all(self._finish())
            elif any(self._pending.values()):
                self._start_all(self._force())
            else:
                break
        moves = self._problem.moves
        ends = (begin + moves[index].ticks for index, begin in self._begins)
        order = sorted(self._begins, key=lambda entry: entry[1] + moves[entry[0]].delay)
        return Timetable(tuple(order), len(self._problem.interrupted(i for i, _ in order)), max(ends, default=0))

    # One round

    def _start_all(self, gpus: Iterable[int]) -> None:
        """Let drivers start what they may; what has nobody's way to clear comes last."""
        first, last = deque(self._in_turn(gpus)), deque[int]()
        while first or last:
            cleanup = not first
            gpu = (first or last).popleft()
            if gpu in self._busy:
                continue
            index = self._choice(gpu, cleanup=cleanup)
            if index is not None:
                first.extend(self._in_turn({gpu} | self._start(index)))
            elif not cleanup:
                last.append(gpu)

    def _choice(self, gpu: int, *, cleanup: bool) -> int | None:
        """Return what a driver does next, None if there is nothing that it may do."""
        moves, pending = self._problem.moves, sorted(self._pending[gpu], key=self._turns.__getitem__)
        creations = [i for i in pending if moves[i].kind == "create" and self._freed.issuperset(moves[i].after)]
        ends = [index for index in pending if moves[index].ends is not None]
        safe = [index for index in ends if self._safe(index)]
        for index in set(ends) - set(safe):
            self._lacking[self._ending(index)][gpu] = self._units(index)
        switches = [index for index in safe if moves[index].kind == "switch"]
        if switches:
            return switches[0]
        if creations:
            return max(creations, key=self._urgency)
        useful = [index for index in safe if index in self._opens]
        if useful:
            return min(useful, key=self._distance)
        for index in safe if cleanup else ():
            if not self._sparing or not self._obstacles[self._ending(index)]:
                return index
            self._sparers[self._ending(index)].add(gpu)
        return None

    def _start(self, index: int) -> set[int]:
        """Start a move now; return the GPUs for which that may change something."""
        move, service = self._problem.moves[index], self._ending(index)
        self._pending[move.gpu].remove(index)
        self._begins.append((index, self._now))
        self._left[service] -= 1
        woken: set[int] = set()
        if index in self._opens:
            self._obstacles[service] -= 1
            woken = self._sparers.pop(service, woken)
        if service:
            self._live[service] -= self._problem.needs[service].ending[index]
        if move.kind == "switch":
            return woken | self._serve(index)
        self._busy.add(move.gpu)
        heapq.heappush(self._running, (self._now + move.ticks, index))
        return woken

    def _serve(self, index: int) -> set[int]:
        """Count the segment that begins; return as many GPUs that waited for it as the service can afford."""
        service = self._beginning(index)
        if not service:
            return set()
        self._live[service] += self._problem.needs[service].beginning[index]
        spare = self._live[service] - self._problem.needs[service].least
        waiting = self._lacking[service]
        woken = set()
        for gpu in self._in_turn(waiting):
            # Who is busy looks again anyway.
            if gpu not in self._busy and waiting[gpu] > spare:
                continue
            units = waiting.pop(gpu)
            if gpu not in self._busy:
                woken.add(gpu)
                spare -= units
        return woken

    def _finish(self) -> set[int]:
        """Wait for the next moves to end; return the GPUs for which that may change something."""
        self._now = self._running[0][0]
        woken: set[int] = set()
        while self._running and self._running[0][0] == self._now:
            _, index = heapq.heappop(self._running)
            move = self._problem.moves[index]
            self._busy.remove(move.gpu)
            woken |= {move.gpu} | self._serve(index)
            if move.kind == "destroy":
                self._freed.add(index)
        return woken

    # Where every driver waits

    def _force(self) -> set[int]:
        """Interrupt a segment, and return the GPUs for which that may change something."""
        moves = self._problem.moves
        choices: list[tuple[tuple[int, int, int], int]] = []
        for gpu in self._gpus:
            for index in self._pending[gpu]:
                ends = (
                    [index]
                    if moves[index].kind == "switch"
                    else [i for i in moves[index].after if i not in self._freed]
                )
                if ends:
                    choices.append(((len(ends), -self._urgency(index), self._turns[index]), ends[0]))
        if choices:
            chosen = min(choices)[1]
        else:
            # Only ends are left, of services that get less than they need: small ones first keep it together longest.
            left = [index for gpu in self._gpus for index in self._pending[gpu]]
            chosen = min(left, key=lambda index: (self._units(index), index))
        return {moves[chosen].gpu} | self._start(chosen)

    # What is known about a move

    def _in_turn(self, gpus: Iterable[int]) -> list[int]:
        return sorted(gpus, key=self._gpu_turns.__getitem__)

    def _ending(self, index: int) -> str:
        """Return the service of the segment that ends, if that can lack throughput; else nothing."""
        return self._ended[index]

    def _beginning(self, index: int) -> str:
        begins = self._problem.moves[index].begins
        return begins.service if begins is not None and begins.service in self._live else ""

    def _units(self, index: int) -> int:
        service = self._ending(index)
        return self._problem.needs[service].ending[index] if service else 0

    def _safe(self, index: int) -> bool:
        """Whether the service of the segment that ends still has what it needs."""
        service = self._ending(index)
        return not service or self._live[service] - self._units(index) >= self._problem.needs[service].least

    def _distance(self, index: int) -> int:
        """Return how many instances are in the way of the creation that this destruction comes closest to."""
        return min(sum(i not in self._freed for i in self._problem.moves[other].after) for other in self._opens[index])

    def _urgency(self, index: int) -> int:
        """Return how many segments may end once this one has begun."""
        service = self._beginning(index)
        return self._left[service] if service else 0
