"""The changes of a day: their plans, and GPUs that are exchanged so that no change interrupts a segment."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mig_opt.api.change import plan_change
from mig_opt.api.change.greedy import greedy
from mig_opt.method.control import Limits
from mig_opt.serving.change_plan import ChangePlan, operation_costs
from mig_opt.serving.change_problem import ChangeProblem
from mig_opt.serving.day import Day, DayPlan
from mig_opt.serving.deployment import Deployment, Segment

_SECONDS = 2.0  # time to plan a change: greedy rounds settle nearly all of them at once

_NO_SHORTER = 1e-9
"""Gap with which the plan of a change ends once none has fewer interruptions, before shorter ones are looked for."""

_QUICK_RUNS = 4  # runs of the list scheduling where a change is only tried


class Changes:
    """Plans the changes of a day, each only once."""

    def __init__(self, day: Day, limits: Limits) -> None:
        self._day, self._limits = day, limits
        self._known: dict[tuple[int, Deployment, Deployment], ChangePlan] = {}
        self._quick: dict[tuple[int, Deployment, Deployment], list[Segment]] = {}

    def plan(self, deployments: Sequence[Deployment]) -> DayPlan:
        """Return the plan of a day with these deployments.

        Where a change interrupts a segment, GPUs are exchanged for idle ones from that step on: what is on an idle GPU
        can begin before anything ends.
        """
        day = _same_fleet(deployments)
        for step in range(1, len(day)):
            while interrupted := self._interrupted(step, day[step - 1], day[step]):
                better = self._with_idle_gpu(day, step, interrupted)
                if better is None:
                    break
                day = better
        changes = [self._change(step, day[step - 1], day[step]) for step in range(1, len(day))]
        return DayPlan(self._day.rates.times, tuple(day), tuple(changes))

    def _interrupted(self, step: int, before: Deployment, after: Deployment) -> list[Segment]:
        """Return the segments that a quick plan of a change interrupts."""
        if before.segments == after.segments:
            return []
        key = step, before, after
        if key in self._known:
            return list(self._known[key].interrupted)
        if key not in self._quick:
            problem = ChangeProblem.of(before, after, self._day.demands[step], operation_costs(after.gpus))
            order = [index for gpus in problem.parts for index, _ in greedy(problem, gpus, _QUICK_RUNS).moves]
            ends = [problem.moves[index].ends for index in problem.interrupted(order)]
            self._quick[key] = [segment for segment in ends if segment is not None]
        return self._quick[key]

    def _change(self, step: int, running: Deployment, deployment: Deployment) -> ChangePlan:
        key = step, running, deployment
        if key not in self._known:
            demand, limits = self._day.demands[step], self._limits.inner(most=_SECONDS, least=_SECONDS)
            found = plan_change(running, deployment, demand=demand, gap=_NO_SHORTER, **limits).uninterrupted()
            self._limits.spend(found.runtime_s if not self._limits.deterministic else 0.05)
            self._known[key] = found.plan
        return self._known[key]

    def _with_idle_gpu(
        self, day: Sequence[Deployment], step: int, interrupted: Sequence[Segment]
    ) -> list[Deployment] | None:
        """Return the day with a GPU exchanged for an idle one so that the change interrupts less; None if none is."""
        before, after = day[step - 1], day[step]
        services = {segment.service for segment in interrupted}
        there = {segment.identity for segment in before.segments}
        new = [one.gpu for one in after.segments if one.service in services and one.identity not in there]
        best: tuple[tuple[int, int], list[Deployment]] | None = None
        for gpu in dict.fromkeys([*new, *(segment.gpu for segment in interrupted)]):
            idle = self._idle(before, after, before.gpus[gpu])
            if idle is None or all(segment.gpu != gpu for segment in after.segments):
                continue
            kind = before.gpus[gpu]
            moved = _same_fleet([*day[:step], *(_exchanged(later, gpu, idle, kind) for later in day[step:])])
            found = self._interrupted(step, moved[step - 1], moved[step])
            cost = len(found), moved[step - 1].changes_to(moved[step])
            if cost[0] < len(interrupted) and (best is None or cost < best[0]):
                best = cost, moved
        return None if best is None else best[1]

    def _idle(self, before: Deployment, after: Deployment, name: str) -> int | None:
        """Return a GPU of a kind that neither deployment uses, new if the pool allows it; None if there is none."""
        used = {segment.gpu for deployment in (before, after) for segment in deployment.segments}
        alike = [gpu for gpu, kind in enumerate(before.gpus) if kind == name]
        idle = next((gpu for gpu in alike if gpu not in used), None)
        if idle is not None:
            return idle
        count = next(pool.count for pool in self._day.demand.pools if pool.kind.name == name)
        return len(before.gpus) if count is None or len(alike) < count else None


def _exchanged(deployment: Deployment, one: int, two: int, name: str) -> Deployment:
    """Return a deployment in which two GPUs of a kind have exchanged what is on them; the second one may be new."""
    gpus = deployment.gpus if two < len(deployment.gpus) else (*deployment.gpus, name)
    number = {one: two, two: one}
    segments = (
        dataclasses.replace(segment, gpu=number.get(segment.gpu, segment.gpu)) for segment in deployment.segments
    )
    return deployment.replace(gpus=gpus, segments=segments)


def _same_fleet(deployments: Sequence[Deployment]) -> list[Deployment]:
    """Return the deployments with the GPUs of all of them, each of which begins with those of the shorter ones."""
    longest = max((deployment.gpus for deployment in deployments), key=len)
    return [
        deployment if deployment.gpus == longest else deployment.replace(gpus=longest) for deployment in deployments
    ]
