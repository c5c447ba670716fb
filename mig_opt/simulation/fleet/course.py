"""Course of a simulation, event by event: a generator that stops wherever a scheduler decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from mig_opt.fleet.log import RunOutcome
from mig_opt.simulation.fleet.cluster import Cluster, Policy
from mig_opt.simulation.fleet.event_queue import ARRIVAL, END, LEAVE, MOVE, RETURN, WAKE, Event
from mig_opt.simulation.fleet.router import Arrivals, Router

Observer = Callable[[Cluster], None]

IDLE_WAKES = 1000
"""Wake-ups in a row without an action, in an empty fleet with jobs waiting, after which a simulation ends."""


EventName = Literal[
    "begin", "arrived", "finished", "failed", "gave_up", "gpu_left", "gpu_returned", "woken", "rejected", "withdrawn"
]


class Decision(NamedTuple):
    """Moment at which a scheduler may act, and what it learns then.

    The event is the method of :class:`~mig_opt.simulation.Policy` that hears of it, with its arguments after the
    cluster. Where there are several kinds of GPUs, ``part`` is the index of that which it is about.
    """

    event: EventName
    arguments: tuple[Any, ...] = ()
    part: int = 0

    def tell(self, policy: Policy, cluster: Cluster) -> None:
        """Let a policy decide.

        One that has never heard of GPUs that leave does what :class:`~mig_opt.simulation.Policy` does.
        """
        event = "rejected" if self.event == "withdrawn" and not hasattr(policy, "withdrawn") else self.event
        method = getattr(policy, event, None) or partial(getattr(Policy, event), policy)
        method(cluster, *self.arguments)


@dataclass(slots=True)
class Course:
    """Simulation under way on a cluster, from the moment of the cluster on.

    Attributes
    ----------
    cluster : Cluster
        The fleet. Whoever goes through :meth:`decisions` acts on it between two of them. Where there are several kinds
        of GPUs, those of the first kind.
    failure_limit : int
        A job that has run out of memory so often is given up.
    observer : callable, optional
        Called with the cluster after each event.
    reject : bool
        Jobs that have no place in the moment in which they arrive are turned away.
    router : Arrivals, optional
        Lets jobs arrive; where there are several kinds, the router that gives them one, and has the cluster of each.
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
    router: Arrivals = None  # type: ignore[assignment]  # made for one kind if it is not given
    events: int = field(default=0, init=False)
    _idle_wakes: int = field(default=0, init=False)  # in a row

    def __post_init__(self) -> None:
        self.router = self.router or Arrivals(self.cluster)

    def decisions(self) -> Iterator[Decision]:
        """Go from event to event, and yield where a scheduler may act; it learns first of the jobs that wait already.

        Each event at which one hears of anything is one decision, and one more for each job that is turned away.
        """
        cluster, router, clusters = self.cluster, self.router, self.router.clusters
        for part in range(len(clusters)):
            yield Decision("begin", part=part)
        waiting = list(cluster.waiting)
        cluster.waiting.clear()
        for job in waiting:
            cluster.waiting[job] = None
            cluster.more_to_come = job != waiting[-1]
            yield Decision("arrived", (job,))
        while self._idle_wakes < IDLE_WAKES and (step := self._step()):
            cluster, decision = step
            if decision is not None:
                actions = cluster.actions
                yield decision
                if decision.event == "woken":
                    cluster.wake_over()
                    acts = cluster.actions > actions or any(each.awaits_others or each.running for each in clusters)
                    self._idle_wakes = 0 if acts else self._idle_wakes + 1
            if self.reject or len(clusters) > 1:
                yield from (self._turn_away if self.reject else self._offer)(cluster.now)
            if self.observer is not None:
                self.observer(cluster)
            if router.arrival == math.inf and not any(each.running or each.waiting for each in clusters):
                break
        now = max(each.now for each in clusters)
        for cluster in clusters:
            cluster.now = now
            cluster.end()

    def run(self, policy: Policy) -> None:
        """Let a policy decide until nothing more happens."""
        for decision in self.decisions():
            decision.tell(policy, self.cluster)

    def _step(self) -> tuple[Cluster, Decision | None] | None:
        """Let the next event happen, an arrival or another: return its cluster and decision; None if there is none."""
        router = self.router
        part, event = _next_event(router.clusters)
        arrival = router.arrival
        if event is None and arrival == math.inf:
            return None
        self.events += 1
        if event is None or arrival < event.time or (arrival == event.time and event.kind > ARRIVAL):
            part, job = router.arrive()
            cluster = router.clusters[part]
            cluster.now = arrival
            cluster.waiting[job] = None
            decision: Decision | None = Decision("arrived", (job,), part)
        else:
            cluster = router.clusters[part]
            cluster.now = event.time
            decision = self._process(part, cluster.events.pop())
        cluster.more_to_come = router.more_to_come(part, cluster.now)
        return cluster, decision

    def _turn_away(self, now: float) -> Iterator[Decision]:
        """Send jobs without a place to another kind, or away, the first one first: those behind may have its turn."""
        router, clusters = self.router, self.router.clusters
        while full := [at for at, each in enumerate(clusters) if each.waiting and not router.more_to_come(at, now)]:
            part = full[0]
            cluster = clusters[part]
            job = next(iter(cluster.waiting))
            other = router.elsewhere(part, job)
            if other is None:
                cluster.turn_away(job)
            else:
                cluster.offer(job, clusters[other[0]], other[1])
                del cluster.waiting[job]
                clusters[other[0]].more_to_come = router.more_to_come(other[0], now)
            yield Decision("rejected", (job,), part)
            if other is not None:
                yield Decision("arrived", other[1:], other[0])

    def _offer(self, now: float) -> Iterator[Decision]:
        """Let jobs that wait begin on other kinds if the schedulers there start them; the others wait where they are.

        That is done when all else has happened in a moment.
        """
        router, clusters = self.router, self.router.clusters
        assert isinstance(router, Router)
        event = _next_event(clusters)[1]
        if router.arrival == now or (event is not None and event.time == now):
            return
        for cluster in clusters:
            cluster.now = now
        for part, job, other, number in router.offers():
            target = clusters[other]
            clusters[part].offer(job, target, number)
            target.more_to_come = False
            yield Decision("arrived", (number,), other)
            if number in target.waiting:
                del target.waiting[number]
                yield Decision("withdrawn", (number,), other)
            else:
                del clusters[part].waiting[job]
                yield Decision("withdrawn", (job,), part)

    def _process(self, part: int, event: Event) -> Decision | None:
        """Let an event happen, and return the decision that it leads to, if any."""
        cluster, run = self.router.clusters[part], event.run
        if event.kind == WAKE:
            return Decision("woken", (cluster.wake_up(event.number),), part)
        if event.kind == LEAVE:
            return Decision("gpu_left", cluster.leave(event.number), part)
        if event.kind == RETURN:
            return Decision("gpu_returned", (cluster.come_back(event.number),), part)
        assert run is not None
        if event.kind != END:
            if event.kind == MOVE:
                cluster.move(run)
            else:
                cluster.events.join(run, cluster.now)
            return None
        job = run.job
        learns: EventName = "finished"
        if run.limit >= 1:
            place = cluster.close(run, RunOutcome.FINISHED)
            cluster.log.finished[job] = cluster.now
        else:
            place = cluster.fail(run)
            learns = "gave_up"
            if cluster.failures[job] < self.failure_limit:
                cluster.waiting[job] = None
                return Decision("failed", (job, *place, cluster.known_need(job)), part)
        self.router.gone(part, job)
        return Decision(learns, (job, *place), part)


def _next_event(clusters: Sequence[Cluster]) -> tuple[int, Event | None]:
    """Return the next event, and the kind of GPU that it is of; of those of one moment and sort the first kind's."""
    first, found = 0, clusters[0].events.peek()
    for part in range(1, len(clusters)):
        event = clusters[part].events.peek()
        if found is None or (event is not None and event[:2] < found[:2]):
            first, found = part, event
    return first, found
