"""The best plan for a situation: what :func:`mig_opt.solve` says, and orders that a local search improves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.heuristics.fleet.planning.plans import Placed, Plan, plan_by_schedule, plan_in_order
from mig_opt.heuristics.fleet.planning.sequencing import Aim, Ground, Integers, Put, improve, sequence
from mig_opt.heuristics.fleet.planning.situation import Situation
from mig_opt.result import Status
from mig_opt.solving import solve

_PRICES = (1.0, 0.5, 0.0)
"""How much what later jobs lose counts when a job takes its place."""

_STARTS = 2
"""Orders from which the local search starts: the best ones."""

_MOST_LOOKS = 1_000_000
"""Looks at a place in one local search; with many jobs and GPUs there are fewer rounds."""

_SAME = 1e-6
"""Seconds that are no reason to change a plan."""

_STEADY = 1.0
"""If more jobs are expected and some are PCIe-bound, simple orders do: what a plan says of the link is too coarse."""

_MOST_SOLVED = 400
"""Jobs x GPUs up to which ``solve`` is asked."""


@dataclass(frozen=True, slots=True)
class Order:
    """Jobs in an order, those that are tied to an option, and how much an area counts.

    Attributes
    ----------
    jobs : list of int
        Indices in the trace.
    tied : dict of int to int
        For some of them the profile that they take.
    price : float
        See :func:`mig_opt.heuristics.fleet.planning.sequencing.sequence`.
    """

    jobs: list[int] = field(default_factory=list)
    tied: dict[int, int] = field(default_factory=dict)
    price: float = 1.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How plans are made.

    Attributes
    ----------
    method : str
        Of :func:`mig_opt.solve`.
    work : float
        Seconds of counted work that it may take for a plan.
    rounds : int
        Of each local search.
    seed : int
        For both.
    """

    method: str
    work: float
    rounds: int
    seed: int


class Choice:
    """The search for the best plan.

    Parameters
    ----------
    situation : Situation
        At least one job, and a place for each.
    aim : Aim
        What is least.
    effort : Effort
        How long to search.
    """

    def __init__(self, situation: Situation, aim: Aim, effort: Effort) -> None:
        self._situation = situation
        self._aim = aim
        self._effort = effort
        self._work = situation.work
        self._count = len(situation.wishes)
        self._thorough = aim.later < _STEADY or not situation.work.slope.any()
        self._scratch = Ground(**{name: column.copy() for name, column in situation.ground._asdict().items()})
        count = self._count
        self._put = Put(
            gpu=np.empty(count, np.int64),
            place=np.empty(count, np.int64),
            option=np.empty(count, np.int64),
            begin=np.empty(count),
            end=np.empty(count),
        )

    def best(self, before: Order, current: Plan | None) -> tuple[Plan, Order]:
        """Return the best plan, and its order for the next time.

        Parameters
        ----------
        before : Order
            That of the last time.
        current : Plan, optional
            What is being carried out, if all goes as planned. It is kept unless there is a better one.
        """
        solved = self._solved()
        starts = [*self._simple_orders(), *self._order_again(before)]
        if solved is not None:
            starts += self._orders_of(*solved)
        # Equal values are often the same plan: the first is enough.
        known: dict[float, tuple[Integers, Integers, float]] = {}
        for order, tied, price in starts:
            known.setdefault(self._sequence(order, tied, price), (order, tied, price))
        best, chosen = np.inf, starts[0]
        for value in sorted(known)[: _STARTS if self._thorough else 1]:
            order, tied, price = known[value][0].copy(), known[value][1].copy(), known[value][2]
            found = self._improve(order, tied, price) if self._thorough else value
            if found < best:
                best, chosen = found, (order, tied, price)
        advised = None if solved is None else plan_by_schedule(self._situation, *solved)
        by_advice = np.inf if advised is None else self._value(advised.placed.values())
        if current is not None and self._promise(current) <= min(best, by_advice) + _SAME:
            return current, before
        self._sequence(*chosen)
        order, tied, price = chosen
        wishes = self._situation.wishes
        kept = {wishes[at].job: self._profile(at, int(tied[at])) for at in order if tied[at] >= 0}
        again = Order([wishes[at].job for at in order], kept, price)
        if advised is not None and by_advice < best:
            return advised, again
        return plan_in_order(self._situation, self._placed(order)), again

    def _promise(self, plan: Plan) -> float:
        """Return the value of what a plan promises for these jobs; infinite if it is not for all of them."""
        jobs = [wish.job for wish in self._situation.wishes]
        return self._value(plan.placed[job] for job in jobs) if plan.placed.keys() >= set(jobs) else np.inf

    def _solved(self) -> tuple[Batch, Schedule] | None:
        """Return what ``solve`` says, unless it knows too little or would take too long."""
        situation, effort = self._situation, self._effort
        if not self._thorough or self._count * len(situation.gpus) > _MOST_SOLVED or self._work.slope.any():
            return None
        batch = situation.batch()
        result = solve(batch, effort.method, time_limit=effort.work, seed=effort.seed, deterministic=True)
        if result.status is Status.INTERRUPTED:  # Solvers keep Ctrl-C to themselves; it is for the whole simulation.
            raise KeyboardInterrupt
        return None if result.schedule is None else (batch, result.schedule)

    def _simple_orders(self) -> Iterator[tuple[Integers, Integers, float]]:
        """Yield the jobs as they are, short ones first, in the order of arrival, and long ones first."""
        wishes, offsets, area = self._situation.wishes, self._work.offsets, self._work.area
        short = np.arange(self._count)
        arrived = np.array(sorted(range(self._count), key=lambda at: wishes[at].job))
        least = np.array([int(np.argmin(area[offsets[at] : offsets[at + 1]])) for at in range(self._count)])
        for order in (short, arrived, short[::-1].copy()):
            for price in _PRICES:
                yield order, np.full(self._count, -1, np.int64), price
            yield order, least, 1.0

    def _order_again(self, before: Order) -> Iterator[tuple[Integers, Integers, float]]:
        """Yield the order of the last time, new jobs last."""
        at = {wish.job: number for number, wish in enumerate(self._situation.wishes)}
        order = [at.pop(job) for job in before.jobs if job in at]
        if not order:
            return
        numbers = {wish.job: number for number, wish in enumerate(self._situation.wishes)}
        tied = np.full(self._count, -1, np.int64)
        for job, profile in before.tied.items():
            if job in numbers:
                tied[numbers[job]] = self._option(numbers[job], profile)
        yield np.array([*order, *at.values()]), tied, before.price

    def _orders_of(self, batch: Batch, schedule: Schedule) -> Iterator[tuple[Integers, Integers, float]]:
        """Yield the jobs in the order of a schedule, and short ones first, on the sizes that they have there."""
        wishes, geometry = self._situation.wishes, self._situation.cluster.geometry
        tied = np.full(self._count, -1, np.int64)
        numbers = []
        for run in sorted(schedule.runs, key=lambda run: (run.begin, run.gpu, run.start)):
            size = batch.gpu.profile(run.profile).compute_slices
            number = int(run.task)
            sizes = [geometry.profiles[profile].compute_slices for profile, _ in wishes[number].options]
            tied[number] = sizes.index(size)
            numbers.append(number)
        yield np.array(numbers), tied, 1.0
        short = sorted(numbers, key=lambda at: wishes[at].options[tied[at]][1] / wishes[at].weight)
        yield np.array(short), tied, 1.0

    def _option(self, number: int, profile: int) -> int:
        profiles = [known for known, _ in self._situation.wishes[number].options]
        return profiles.index(profile) if profile in profiles else -1

    def _profile(self, number: int, option: int) -> int:
        return self._situation.wishes[number].options[option][0]

    def _sequence(self, order: Integers, tied: Integers, price: float) -> float:
        shape, ground = self._situation.shape, self._situation.ground
        return sequence(shape, ground, self._work, self._aim, order, tied, price, np.inf, self._scratch, self._put)

    def _improve(self, order: Integers, tied: Integers, price: float) -> float:
        shape, ground, geometry = self._situation.shape, self._situation.ground, self._situation.cluster.geometry
        places = sum(
            len(geometry.placements_of[profile]) for wish in self._situation.wishes for profile, _ in wish.options
        )
        rounds = min(self._effort.rounds, _MOST_LOOKS // (places * len(self._situation.gpus)))
        problem = shape, ground, self._work, self._aim
        return improve(*problem, order, tied, price, rounds, self._effort.seed, self._scratch, self._put)

    def _placed(self, order: Integers) -> list[Placed]:
        situation, put = self._situation, self._put
        return [
            Placed(
                situation.wishes[number].job,
                situation.gpus[int(put.gpu[at])],
                int(put.place[at]),
                situation.now + float(put.begin[at]),
                situation.now + float(put.end[at]),
            )
            for at, number in enumerate(order)
        ]

    def _value(self, placed: Iterable[Placed]) -> float:
        """Return the value of a plan, as :func:`sequence` does."""
        situation, aim, work = self._situation, self._aim, self._work
        numbers = {wish.job: number for number, wish in enumerate(situation.wishes)}
        profile_of = situation.cluster.geometry.profile_of
        total = ends = areas = last = 0.0
        for entry in placed:
            number = numbers[entry.job]
            option = int(work.offsets[number]) + self._option(number, profile_of[entry.placement])
            total += float(work.weight[number])
            ends += float(work.weight[number]) * (entry.end - situation.now)
            areas += float(work.area[option])
            last = max(last, entry.end - situation.now)
        return (1 - aim.balance) * (ends + aim.later * areas) / total + aim.balance * last
