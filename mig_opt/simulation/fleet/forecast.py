"""Forecasts: copies of a fleet from the present moment on, in which a scheduler can try what others would do."""

from __future__ import annotations

import dataclasses
from array import array

from mig_opt.simulation.fleet.cluster import OVERRUN_SHARE, Cluster
from mig_opt.simulation.fleet.event_queue import MOVE


class Forecast(Cluster):
    """A fleet as its scheduler expects it to go on: all by declared times, and nothing of what it cannot know.

    Jobs that have a place run on, jobs that wait are there at once, and no others arrive. No job crashes or runs out of
    memory by growth, and GPUs that have left do not return. A job that has run for longer than was declared is expected
    to run for half as long again. The jobs keep their numbers; log, wake-ups and events of the fleet itself are no part
    of it. What is done to the forecast is not done to the fleet.

    Parameters
    ----------
    cluster : Cluster
        The fleet at the present moment.

    Examples
    --------
    While a runs, a scheduler finds out when b would end if first-fit went on from here.

    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> from mig_opt.heuristics.fleet.queues import FirstFit
    >>> from mig_opt.simulation.fleet.course import Course
    >>> class Curious(FirstFit):
    ...     def arrived(self, cluster, job):
    ...         super().arrived(cluster, job)
    ...         forecast = Forecast(cluster)
    ...         Course(forecast).run(FirstFit())
    ...         print(cluster.trace.jobs[job].name, round(forecast.log.finished[job], 2))
    >>> jobs = (Job("a", 0.0, {4: 10.0}, declared={4: 8.0}), Job("b", 3.0, {4: 5.0}))
    >>> done = simulate(Trace(jobs, get_gpu("A30")), Curious())
    a 8.13
    b 13.13
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.trace, cluster.geometry)
        self.now = cluster.now
        self.waiting, self.coming = dict(cluster.waiting), len(self.trace.jobs)
        self.log.scheduled = array("d", cluster.log.scheduled)
        self._needed_gb = dict(cluster._needed_gb)
        self._driver = list(cluster._driver)
        self._ready = dict(cluster._ready)
        self.states[:] = cluster.states
        for run in cluster._runs.values():
            seconds, done = cluster._declared_seconds(run), cluster._declared_share(run)
            if done > 1:
                seconds, done = seconds * done * (1 + OVERRUN_SHARE), 1 / (1 + OVERRUN_SHARE)
            since = max(run.since, self.now)
            limit = self._limit(run.job, run.placement)
            copy = dataclasses.replace(run, seconds=seconds, limit=limit, since=since, done=done, slowdown=1.0)
            copy.version = 0
            self._launch(copy)
            if run.target is not None:
                self.events.push(self._ready[run.target], MOVE, copy)

    def _limit(self, job: int, placement: int) -> float:
        return 1.0 if self._jobs[job].memory_growth else super()._limit(job, placement)
