"""Rollouts: what simple schedulers, and the plan itself, would come to from the present moment on.

A rollout lets a scheduler go on alone in a copy of the fleet (:class:`~mig_opt.simulation.fleet.forecast.Forecast`).
Whoever follows at each decision the scheduler whose rollout is best ends no worse than any of them from then on, for
the jobs that are known (rollout algorithms: Bertsekas, Tsitsiklis and Wu, Journal of Heuristics 3, 1997).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial

from mig_opt.heuristics.fleet.fragmentation_aware import FragmentationAware
from mig_opt.heuristics.fleet.plans.list_decoder import Objective, PlanSums, plan_value
from mig_opt.heuristics.fleet.plans.plan import Plan
from mig_opt.heuristics.fleet.plans.problem import WaitingJob, area
from mig_opt.heuristics.fleet.queues import BestFit, FirstFit, LoadBalancing, QueueingPolicy
from mig_opt.simulation.fleet.cluster import Cluster, Policy
from mig_opt.simulation.fleet.course import Course
from mig_opt.simulation.fleet.forecast import Forecast

# Makers of simple schedulers, each in its better form.
_SIMPLE: tuple[Callable[[], QueueingPolicy], ...] = tuple(
    partial(kind, backfill=True, patience=None) for kind in (FragmentationAware, FirstFit, BestFit, LoadBalancing)
)


class Rollouts:
    """Simple schedulers on the cluster of a simulation, each ready to decide in the planner's place."""

    def __init__(self, cluster: Cluster) -> None:
        self._policies = [make() for make in _SIMPLE]
        for policy in self._policies:
            policy.begin(cluster)

    def best(self, cluster: Cluster, jobs: Sequence[WaitingJob], objective: Objective) -> tuple[int, float]:
        """Return the number of the simple scheduler whose rollout is best, and its value."""
        values = [value_of(make(), cluster, jobs, objective) for make in _SIMPLE]
        return values.index(min(values)), min(values)

    def follow(self, cluster: Cluster, number: int, gpu: int | None) -> None:
        """Let a simple scheduler decide, after the end of a run on a GPU if there was one."""
        policy = self._policies[number]
        for job in cluster.waiting:
            policy.enqueue(cluster, job)
        policy.serve(cluster)
        if isinstance(policy, FragmentationAware) and gpu is not None and policy.migrate_to_repair(cluster, gpu):
            policy.serve(cluster)
        for job in cluster.waiting:
            policy.dequeue(job)


class CarriedOut(Policy):
    """A plan as a scheduler: it is carried out, and nothing else happens."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def begin(self, cluster: Cluster) -> None:
        """Take the plan to this cluster."""
        self._here = copy.deepcopy(self._plan, {id(self._plan.cluster): cluster})
        self._here.advance()

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float = 0.0) -> None:
        """Go on with the plan."""
        self._here.advance([gpu])

    failed = gave_up = finished


def value_of(policy: Policy, cluster: Cluster, jobs: Sequence[WaitingJob], objective: Objective) -> float:
    """Return the value of what a scheduler comes to alone; infinite if it does not end all of the jobs.

    Jobs that run count as well: they may be moved, or slowed down on the link.
    """
    forecast, trace = Forecast(cluster), cluster.trace
    running = [job for gpu in range(trace.gpus) for job in cluster.jobs_on(gpu)]
    weights = {waiting.job: waiting.weight for waiting in jobs} | {job: trace.jobs[job].weight for job in running}
    Course(forecast).run(policy)
    finished, now = forecast.log.finished, cluster.now
    if any(math.isnan(finished[job]) for job in weights):
        return math.inf
    ends = {job: finished[job] - now for job in weights}
    dues = {waiting.job: waiting.due - now for waiting in jobs}
    areas = sum(area(trace, run.placement.profile, run.end - run.begin) for run in forecast.log.runs())
    late = sum(weights[job] * max(0.0, ends[job] - due) for job, due in dues.items())
    total = sum(weight * ends[job] for job, weight in weights.items())
    return plan_value(objective, PlanSums(sum(weights.values()), total, areas, late, max(ends.values())))
