"""Minimal sets of requirements that cannot be met in time, found by a deletion filter with growing chunks.

An oracle decides whether some requirements can be met together. Those of an impossible set are dropped in chunks; what
is still impossible without a chunk stays without it. A requirement is *needed* once the rest of the set was met in time
(a transition constraint): it remains needed while the set shrinks further. A set in which every requirement is needed
is minimal, a minimal unsatisfiable subset (Marques-Silva: "Minimal Unsatisfiability: Models, Algorithms and
Applications", ISMVL 2010).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mig_opt.api.explain.requirements import Requirement, RequirementKind, Requirements
from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch
from mig_opt.batch.integer_batch import Ticks
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import DECIMALS
from mig_opt.method.control import Limits
from mig_opt.method.registry import AUTO
from mig_opt.method.result import TrajectoryPoint
from mig_opt.rules.decimals import as_fraction

Kept = frozenset[Requirement]

LEAST_SECONDS = 0.01
"""Time of a call at the very end: bounds and the first schedule take no longer on small batches."""

_MOST = 0.7  # the part of the time that is left which all of the shrinking may take

_SHARE = 8
"""One question may take this part of the time that is left: some may stay open, and still the others are asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Knowledge about a set of requirements."""

    possible: bool | None  # whether there is a schedule in time; None if that is not known
    # The best one that was found. It may run further tasks, and with any number of GPUs it lacks those that run on GPUs
    # of their own.
    schedule: Schedule | None = None
    lower_bound: float = 0.0  # seconds; no schedule of the batch that was solved for the answer takes less


class Oracle:
    """Answers whether a set of requirements can be met by the target, all answers together within limits.

    The requirements are of a batch in which each task can run somewhere.
    """

    def __init__(self, requirements: Requirements, limits: Limits) -> None:
        self.requirements, self.limits = requirements, limits
        self._possible: dict[Kept, Schedule | None] = {}
        self._impossible: dict[Kept, float] = {}

    def rule_out(self, kept: Kept, lower_bound: float) -> None:
        """Remember a proof that ``kept`` takes ``lower_bound`` seconds, more than the target."""
        self._impossible[kept] = max(lower_bound, self._impossible.get(kept, 0.0))

    def lower_bound(self, kept: Kept) -> float:
        """Return what is known of the least makespan under ``kept``: never less than under some of it."""
        return max((bound for other, bound in self._impossible.items() if other <= kept), default=0.0)

    def decide(self, kept: Kept, seconds: float = math.inf) -> Answer:
        """Return whether ``kept`` can be met in time, after at most ``seconds`` of the time that is left."""
        for other, schedule in self._possible.items():
            if kept <= other:
                return Answer(possible=True, schedule=schedule)
        if any(other <= kept for other in self._impossible):
            return Answer(possible=False)
        batch = self.requirements.relaxed(kept)
        if batch is None:
            return Answer(possible=True)
        answer = self.answer(batch, seconds)
        if answer.possible:
            self._possible[kept] = answer.schedule
        elif answer.possible is False:
            self.rule_out(kept, self.requirements.least(kept, answer.lower_bound))
        return answer

    def answer(self, batch: Batch, seconds: float = math.inf, *, method: str = AUTO) -> Answer:
        """Return whether a batch can be done by the target, after at most ``seconds`` of the time that is left.

        Ctrl-C is passed on as KeyboardInterrupt.
        """
        ticks = Ticks.of(batch)

        def decided(point: TrajectoryPoint) -> bool:
            return self._verdict(ticks, point.makespan, point.lower_bound) is not None

        limits = self.limits.inner(most=seconds, least=LEAST_SECONDS)
        result = solve(batch, method, **limits, stop=decided).uninterrupted()
        possible = self._verdict(ticks, result.makespan, result.lower_bound)
        return Answer(possible, result.schedule, result.lower_bound)

    def _verdict(self, ticks: Ticks, makespan: float | None, lower_bound: float) -> bool | None:
        target = self.requirements.target
        if makespan is not None and in_time(ticks, makespan, target):
            return True
        return False if lower_bound > target else None


def in_time(ticks: Ticks, makespan: float, target: float) -> bool:
    """Return True if a makespan is at most the target, both in seconds.

    Makespans are sums of floating-point numbers: where ticks are exact, the ticks that they stand for are compared.
    They are rounded to nanoseconds, and shorter ticks cannot be counted in them.
    """
    if not ticks.exact or ticks.decimals > DECIMALS:
        return makespan <= target
    return ticks.of_sum(makespan) * ticks.length <= as_fraction(target)


class Shrinker:
    """A set of requirements that cannot be met in time, on its way to a minimal one.

    :meth:`run` may be interrupted at any moment: the set is impossible all along.
    """

    def __init__(self, oracle: Oracle, core: Kept) -> None:
        self.core = core  # impossible, as has been proven
        self.needed: set[Requirement] = set()  # without these the core would be possible, as schedules have shown
        self._oracle, self._all = oracle, oracle.requirements
        self._end = oracle.limits.end_of(_MOST)

    @property
    def _left(self) -> float:
        return self._oracle.limits.left_until(self._end)

    def run(self) -> None:
        """Drop what can be dropped.

        What concerns the batch as a whole goes first: the rest says more if it holds for any number of GPUs, or without
        the time that operations take. Tasks of little work go before others, so that few remain.
        """
        self._drop_singly([self._all.gpus, *self._all.operations])
        self._drop_most(sorted(self._all.tasks, key=self._all.work))
        self._drop_singly(self._all.live)
        details = [detail for detail in self._all.details if detail in self.core]
        if details and self._possible_without(details) is not False:
            self._drop_most(details)

    def _drop_singly(self, requirements: Iterable[Requirement]) -> None:
        for requirement in requirements:
            if requirement in self.core:
                self._possible_without([requirement])

    def _drop_most(self, requirements: Sequence[Requirement]) -> None:
        """Drop from the front, in chunks that grow as long as all goes well."""
        pending, size, growing = list(requirements), 1, True
        while pending and self._left:
            chunk = pending[:size]
            possible = self._possible_without(chunk)
            if possible is False:
                pending, size = pending[size:], 2 * size if growing else size
            elif len(chunk) > 1:
                growing, size = False, len(chunk) // 2
            elif possible or len(pending) == 1:
                growing, pending = False, pending[1:]
            else:
                growing, pending = False, self._beyond_open(pending)
            left = self.core - self.needed
            pending = [entry for entry in pending if entry in left]

    def _beyond_open(self, pending: list[Requirement]) -> list[Requirement]:
        """Return what is worth a try after the first of ``pending`` stayed open.

        The heavier a task, the easier it is to do without it. If the one in the middle stays open as well, those
        before it hardly deserve the time.
        """
        middle = len(pending) // 2
        if self._possible_without([pending[middle]]) is None:
            return pending[middle + 1 :]
        return pending[1:]

    def _possible_without(self, chunk: Sequence[Requirement]) -> bool | None:
        """Drop a chunk if the rest is impossible; return whether the rest is possible."""
        smaller = self.core - self._all.with_implied(chunk)
        answer = self._oracle.decide(smaller, self._left / _SHARE)
        if answer.possible is False:
            self.core = smaller
        elif answer.possible and len(chunk) == 1:
            self.needed.add(chunk[0])
            if answer.schedule is not None:
                self._exchange(chunk[0], answer.schedule)
        return answer.possible

    def _exchange(self, absent: Requirement, schedule: Schedule) -> None:
        """Note every task as needed that the absent task can stand in for in a schedule without it (model rotation).

        Where it takes no longer than the other, the schedule remains one, of all tasks but that other.
        """
        if absent.kind is not RequirementKind.TASK:
            return
        substitute = self._all.kept_task(absent, self.core)
        places = {run.task: self._all.batch.placement(run).profile for run in schedule.runs}
        for requirement in (self.core - self.needed).intersection(self._all.tasks):
            task = self._all.kept_task(requirement, self.core)
            if task.name in places:
                seconds, most = substitute.time_on(places[task.name]), task.time_on(places[task.name])
                if seconds is not None and most is not None and seconds <= most:
                    self.needed.add(requirement)
