"""Defragmentation of a fleet with several kinds of GPUs: each is planned apart, and the plans are joined.

Unless jobs may move to other kinds (:mod:`mig_opt.api.defragment.crossing`), kinds have nothing in common but the
goal. Where that is the same anywhere - room for a profile that several kinds have, a number of migrations, a mean
fragmentation - each kind is planned for every part of it that it may get, and the best parts that make up the whole are
taken.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mig_opt.fleet.migration_plan import DefragmentationResult
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.gpu.model import GpuModel
from mig_opt.method.result import Status
from mig_opt.texts import plural

_MOST_CHOICES = 20_000
"""Ways to share a goal among the kinds beyond which not all are tried."""
_MOST_PARTS = 24
"""Parts of a goal for which a kind is planned; with more only the first ones and the whole are."""

Plan = Callable[..., DefragmentationResult]
"""Plans the defragmentation of GPUs of one kind, for some room and within a number of migrations."""


@dataclass(frozen=True, slots=True)
class KindsPlan:
    """Plans of all kinds, in the order of the parts of their state."""

    results: tuple[DefragmentationResult, ...]  # empty if there are none
    exact: bool  # true if nothing is better, given what each of them proves
    infeasible: str = ""  # why there is no plan, if that is proven
    least: float = 0.0  # mean fragmentation, or number of GPUs or nodes in use, that no plan falls below


@dataclass(frozen=True, slots=True)
class KindsGoal:
    """Goals of all kinds together: room, or a mean fragmentation, or else the least of that or of what is in use."""

    room: Counter[str]
    fragmentation: float | None
    free: Literal["gpus", "nodes"] | None
    most_migrations: int | None
    gpus: int  # of all kinds
    expired: Callable[[], bool] = lambda: False  # whether the time is over

    def after(self, begun: int) -> KindsGoal:
        """Return what is left of the goals after a number of migrations."""
        most = self.most_migrations
        return self if most is None else dataclasses.replace(self, most_migrations=most - begun)

    def cost(self, result: DefragmentationResult) -> float:
        """Return what a plan of one kind adds to the cost of the whole."""
        assert result.plan is not None
        return -float(len(result.free)) if self.free else result.plan.fragmentation * result.state.gpus / self.gpus


def planned_apart(parts: Sequence[FleetState], goal: KindsGoal, plan: Plan) -> KindsPlan:
    """Return the best plans of the parts of a state, each of one kind of GPU.

    ``plan`` takes a state and the keywords ``room`` and ``most_migrations``; without room it plans for the least cost.
    Once the time has expired no more ways to share the goal are planned.
    """
    if goal.room:
        return _with_room(parts, goal, plan)
    limit = goal.most_migrations
    whole = [plan(part, most_migrations=limit) for part in parts]
    if any(result.plan is None for result in whole):
        return KindsPlan((), exact=False)
    least = math.fsum(result.least_fragmentation * result.state.gpus for result in whole) / goal.gpus
    exact = all(result.status is Status.OPTIMAL for result in whole)
    if goal.fragmentation is None and (limit is None or _moves(whole) <= limit):
        return KindsPlan(tuple(whole), exact, least=least)
    if goal.fragmentation is not None and least > goal.fragmentation + 1e-9:
        reason = "no arrangement of these instances on GPUs of their kinds has as little fragmentation"
        return KindsPlan((), exact=exact, infeasible=reason if exact else "")
    # The best plans of each kind with 0, 1, ... migrations, up to those of the best one.
    choices = []
    for part, result in zip(parts, whole, strict=True):
        numbers = itertools.takewhile(lambda _: not goal.expired(), range(min(_moves([result]), _MOST_PARTS)))
        fewer = (plan(part, most_migrations=number) for number in numbers)
        choices.append([*(found for found in fewer if found.plan is not None), result])
    best: tuple[tuple[float, ...], tuple[DefragmentationResult, ...]] | None = None
    for chosen in itertools.islice(itertools.product(*choices), _MOST_CHOICES):
        cost = round(math.fsum(map(goal.cost, chosen)), 12)  # the same for all plans as good
        enough = goal.fragmentation is None or cost <= goal.fragmentation + 1e-9
        if not enough or (limit is not None and _moves(chosen) > limit):
            continue
        weight = float(sum(result.objective or 0 for result in chosen))
        rank = (weight, cost) if goal.fragmentation is not None else (cost, weight)
        if best is None or rank < best[0]:
            best = rank, chosen
    tried = all(len(own) > _moves(own[-1:]) for own in choices) and math.prod(map(len, choices)) <= _MOST_CHOICES
    plain = all(held.weight == 1 for part in parts for held in part.instances)
    exact &= tried and (plain or goal.fragmentation is None)
    exact &= all(result.status is Status.OPTIMAL for own in choices for result in own)
    if best is None:
        reason = f"no {limit} migrations within the kinds are enough"
        return KindsPlan((), exact=exact, infeasible=reason if exact else "")
    return KindsPlan(best[1], exact, least=least)


def _moves(results: Sequence[DefragmentationResult]) -> int:
    return sum(len(result.migrations or ()) for result in results)


def _with_room(parts: Sequence[FleetState], goal: KindsGoal, plan: Plan) -> KindsPlan:
    """Return plans with which there is room for all instances, shared among the kinds in the best way."""
    offers: list[list[tuple[Counter[str], DefragmentationResult | None]]] = []
    exact, tried, limit = True, True, goal.most_migrations
    weighed = limit is not None and any(held.weight != 1 for part in parts for held in part.instances)
    for part in parts:
        assert part.gpu is not None
        own: list[tuple[Counter[str], DefragmentationResult | None]] = []
        shares = list(itertools.islice(_shares(goal.room, part.gpu), _MOST_PARTS + 1))
        tried &= len(shares) <= _MOST_PARTS
        for share in shares[:_MOST_PARTS]:
            if not share:
                own.append((share, None))
                continue
            if goal.expired():
                tried = False
                continue
            results = [plan(part, room=share, most_migrations=limit)]
            if weighed:  # fewer migrations may weigh more, and leave enough for the other kinds
                numbers = itertools.takewhile(lambda _: not goal.expired(), range(min(_moves(results), _MOST_PARTS)))
                results += [plan(part, room=share, most_migrations=number) for number in numbers]
                tried &= len(results) > _moves(results[:1])
            own += [(share, result) for result in results if result.plan is not None]
            exact &= all(result.status in (Status.OPTIMAL, Status.INFEASIBLE) for result in results)
        offers.append(own)
    best: tuple[int, tuple[DefragmentationResult | None, ...]] | None = None
    for chosen in itertools.islice(itertools.product(*offers), _MOST_CHOICES):
        planned = [result for _, result in chosen if result]
        enough = limit is None or _moves(planned) <= limit
        if not enough or sum((share for share, _ in chosen), Counter[str]()) != goal.room:
            continue
        weight = sum(result.objective or 0 for result in planned)
        if best is None or weight < best[0]:
            best = weight, tuple(result for _, result in chosen)
    exact &= tried and math.prod(map(len, offers)) <= _MOST_CHOICES
    if best is None:
        within = "" if limit is None else f" with at most {plural(limit, 'migration')}"
        reason = f"no arrangement of these instances on GPUs of their kinds{within} has that room"
        return KindsPlan((), exact, infeasible=reason if exact else "")
    # A kind without a share stays as it is.
    found = (result or plan(part, most_migrations=0) for part, result in zip(parts, best[1], strict=True))
    return KindsPlan(tuple(found), exact)


def _shares(room: Counter[str], gpu: GpuModel) -> Iterator[Counter[str]]:
    """Yield the parts of the room that a kind of GPU may get, the largest first."""
    names = {profile.name for profile in gpu.profiles}
    counts = [range(number if name in names else 0, -1, -1) for name, number in room.items()]
    for numbers in itertools.product(*counts):
        yield Counter({name: number for name, number in zip(room, numbers, strict=True) if number})


def joined_migrations(plans: Iterable[Sequence[Migration] | None], gpus: Iterable[Sequence[int]]) -> list[Migration]:
    """Return the migrations of all kinds, with the numbers that GPUs have in the whole state."""
    return [
        dataclasses.replace(step, gpu=own[step.gpu], to_gpu=own[step.to_gpu])
        for steps, own in zip(plans, gpus, strict=True)
        for step in steps or ()
    ]
