"""Course of a simulation, event by event: a generator that stops wherever a scheduler decides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from mig_opt.fleet.log import RunOutcome
from mig_opt.simulation.fleet.cluster import Cluster, Policy
from mig_opt.simulation.fleet.event_queue import ARRIVAL, BEGIN, END, LEAVE, MOVE, RETURN, WAKE, ActiveRun, Event

Observer = Callable[[Cluster], None]

IDLE_WAKES = 1000
"""Wake-ups in a row without an action, in an empty fleet with jobs waiting, after which a simulation ends."""


class Decision(NamedTuple):
    """Moment at which a scheduler may act, and what it learns then.

    The event is the method of :class:`~mig_opt.simulation.Policy` that hears of it, with its arguments after the
    cluster.
    """

    event: Literal["begin", "arrived", "finished", "failed", "gave_up", "gpu_left", "gpu_returned", "woken", "rejected"]
    arguments: tuple[Any, ...] = ()

    def tell(self, policy: Policy, cluster: Cluster) -> None:
        """Let a policy decide.

        One that has never heard of GPUs that leave does what :class:`~mig_opt.simulation.Policy` does.
        """
        method = getattr(policy, self.event, None) or partial(getattr(Policy, self.event), policy)
        method(cluster, *self.arguments)


@dataclass(slots=True)
class Course:
    """Simulation under way on a cluster, from the moment of the cluster on.

    Attributes
    ----------
    cluster : Cluster
        The fleet. Whoever goes through :meth:`decisions` acts on it between two of them.
    failure_limit : int
        A job that has run out of memory so often is given up.
    observer : callable, optional
        Called with the cluster after each event.
    reject : bool
        Jobs that have no place in the moment in which they arrive are turned away.
    events : int
        Number of events so far.

    Examples
    --------
    Whoever decides can be a loop; here it puts each job on the first place that is free.

    >>> from mig_opt import Job, Trace, get_gpu
    >>> from mig_opt.gpu.geometry import geometry_of
    >>> trace = Trace((Job("a", 0.0, {4: 10.0}), Job("b", 3.0, {4: 5.0})), get_gpu("A30"))
    >>> cluster = Cluster(trace, geometry_of(trace.gpu))
    >>> for decision in Course(cluster).decisions():
    ...     print(f"{cluster.now:g} s: {decision.event}")
    ...     for job in list(cluster.waiting):
    ...         if not cluster.states[0].busy:
    ...             cluster.start(job, gpu=0, placement=0)
    0 s: begin
    0 s: arrived
    3 s: arrived
    10.13 s: finished
    15.13 s: finished
    """

    cluster: Cluster
    failure_limit: int = 100
    observer: Observer | None = None
    reject: bool = False
    events: int = field(default=0, init=False)
    _failures: Counter[int] = field(default_factory=Counter, init=False)  # of each job
    _idle_wakes: int = field(default=0, init=False)  # in a row

    def decisions(self) -> Iterator[Decision]:
        """Go from event to event, and yield where a scheduler may act; it learns first of the jobs that wait already.

        Each event at which one hears of anything is one decision, and one more for each job that is turned away.
        """
        cluster, observer, jobs = self.cluster, self.observer, self.cluster.trace.jobs
        queue, count = cluster.events, len(jobs)
        yield Decision("begin")
        waiting = list(cluster.waiting)
        cluster.waiting.clear()
        for job in waiting:
            cluster.waiting[job] = None
            cluster.more_to_come = job != waiting[-1]
            yield Decision("arrived", (job,))
        while self._idle_wakes < IDLE_WAKES:
            event = queue.peek()
            arrival = jobs[cluster.coming].arrival if cluster.coming < count else math.inf
            if event is None and cluster.coming == count:
                break
            self.events += 1
            if event is None or arrival < event.time or (arrival == event.time and event.kind > ARRIVAL):
                cluster.now = arrival
                cluster.waiting[cluster.coming] = None
                decision: Decision | None = Decision("arrived", (cluster.coming,))
                cluster.coming += 1
            else:
                cluster.now = event.time
                decision = self._process(queue.pop())
            cluster.more_to_come = cluster.coming < count and jobs[cluster.coming].arrival == cluster.now
            if decision is not None:
                actions = cluster.actions
                yield decision
                if decision.event == "woken":
                    self._woken(acted=cluster.actions > actions)
            # Jobs without a place are sent away, the first one first: those behind it may have its turn.
            while self.reject and cluster.waiting and not cluster.more_to_come:
                job = next(iter(cluster.waiting))
                cluster.turn_away(job)
                yield Decision("rejected", (job,))
            if observer is not None:
                observer(cluster)
            if cluster.coming == count and not cluster.running and not cluster.waiting:
                break
        cluster.end()

    def run(self, policy: Policy) -> None:
        """Let a policy decide until nothing more happens."""
        for decision in self.decisions():
            decision.tell(policy, self.cluster)

    def _process(self, event: Event) -> Decision | None:
        """Let an event happen, and return the decision that it leads to, if any."""
        cluster, run = self.cluster, event.run
        if event.kind == WAKE:
            return Decision("woken", (cluster.wake_up(event.number),))
        if event.kind == LEAVE:
            return Decision("gpu_left", cluster.leave(event.number))
        if event.kind == RETURN:
            return Decision("gpu_returned", (cluster.come_back(event.number),))
        assert run is not None
        if event.kind == END:
            return self._end(run)
        if event.kind == MOVE:
            cluster.move(run)
        elif event.kind == BEGIN:
            cluster.events.join(run, cluster.now)
        return None

    def _end(self, run: ActiveRun) -> Decision:
        """End a run where its job is done, or fails."""
        cluster, job = self.cluster, run.job
        if run.limit >= 1:
            place = cluster.close(run, RunOutcome.FINISHED)
            cluster.log.finished[job] = cluster.now
            return Decision("finished", (job, *place))
        outcome, place = cluster.fail(run)
        self._failures[job] += outcome is RunOutcome.OUT_OF_MEMORY
        if self._failures[job] >= self.failure_limit:
            return Decision("gave_up", (job, *place))
        cluster.waiting[job] = None
        return Decision("failed", (job, *place, cluster.known_need(job)))

    def _woken(self, *, acted: bool) -> None:
        """End a wake-up, and count those that change nothing where nothing else is to come."""
        self.cluster.wake_over()
        idle = not (self.cluster.awaits_others or self.cluster.running or acted)
        self._idle_wakes = self._idle_wakes + 1 if idle else 0
