"""The interface between a policy and the simulator: the fleet that it sees, and the events that it is told of."""

# ruff: noqa: ARG002  # a policy need not use all that it is told
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from mig_opt.errors import PolicyError
from mig_opt.fleet.log import RunOutcome
from mig_opt.fleet.trace import Trace, pcie_slowdown
from mig_opt.gpu.geometry import Geometry, GpuState, NumberedPlace, members
from mig_opt.simulation.fleet.event_queue import LEAVE, MOVE, RETURN, WAKE, ActiveRun, EventQueue
from mig_opt.simulation.fleet.instances import FleetInstances

OVERRUN_SHARE = 0.5
"""Share of the time so far for which a job is expected to run on, once it has run for longer than was declared."""

# Seconds within which a wake-up is due that is asked for in another, and the most of these in a row: more never end.
_BRIEF_S, _MOST_BRIEF = 1e-6, 10_000


class Policy(Protocol):
    """A scheduler. Jobs are indices in ``cluster.trace.jobs``, placements those of ``cluster.geometry.placements``.

    Methods that it does not define do nothing. It knows of a job what it reads in the trace; one that models a
    scheduler with less knowledge must not look. All that it remembers belongs to one simulation and is made in
    :meth:`begin`. On fleets of several kinds of GPUs there is one for each kind. If it has a method
    ``withdrawn(cluster, job)``, or else ``rejected``, jobs that wait are offered to other kinds, where they arrive. Of
    one that begins there its old policy learns by this method that it waits no more; so does the new one of a job that
    does not begin at once.
    """

    def begin(self, cluster: Cluster) -> None:
        """Start afresh; nothing has arrived. Instances may be created already."""
        return

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Learn that a job waits."""
        return

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Learn that a job is done; its instance is idle."""
        return

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Learn that a job crashed or ran out of memory; it waits again, its instance is idle.

        It is known to need ``needed_gb``: 0 if it has never run out of memory.
        """
        return

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Learn that a job ran out of memory too often and is given up; its instance is idle."""
        return

    def gpu_left(self, cluster: Cluster, gpu: int, lost: Sequence[tuple[int, int]]) -> None:
        """Learn that a GPU has left with its instances, and that the jobs it had wait again.

        By default they arrive once more. ``lost`` has each of them with the placement that it had.
        """
        for job, _ in lost:
            self.arrived(cluster, job)

    def gpu_returned(self, cluster: Cluster, gpu: int) -> None:
        """Learn that a GPU is there again, without instances."""
        return

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Act at a time for which the policy asked by ``cluster.wake``."""
        return


class RejectingPolicy(Policy, Protocol):
    """A scheduler that can work without a queue, on fleets that turn jobs away."""

    def rejected(self, cluster: Cluster, job: int) -> None:
        """Learn that a job was turned away, and forget it: it waits no more. Others that wait may have its turn."""


class Cluster(FleetInstances):
    """The fleet and its jobs at one moment of a simulation.

    A policy reads the state and acts by :meth:`start`, :meth:`migrate`, :meth:`stop`, :meth:`create`, :meth:`destroy`
    and :meth:`wake`. What it decides counts at once: the state of a GPU shows instances that are still being created,
    and a migrating job in its new place. An action that is impossible raises :class:`~mig_opt.PolicyError`.

    Attributes
    ----------
    trace : Trace
        The jobs and the fleet as schedulers know them: with declared times, where jobs have such.
    geometry : Geometry
        The placements of each GPU.
    now : float
        Seconds after the start of the trace.
    waiting : dict of int to None
        Jobs that have arrived and have no place, in the order in which they began to wait.
    coming : int
        The first job of the trace that has not arrived; the number of jobs once all have.
    more_to_come : bool
        True if other jobs arrive in this moment, after the one of which the scheduler learns now.
    possible : int
        Mask of the placements that there may ever be; all, unless a policy whose partitions never change says which.
    planned_end : callable
        Gives the second at which a job that waits is planned to end, None if it is not planned; a policy that plans may
        set it.
    states : list of GpuState
        The state of each GPU, to be read only.
    log : Log
        Runs and operations so far.
    """

    def __init__(self, trace: Trace, geometry: Geometry) -> None:
        super().__init__(trace, geometry)
        self.trace = trace.as_declared()
        self.waiting: dict[int, None] = {}
        self.coming = 0
        self.more_to_come = False
        self.possible = -1
        self.planned_end: Callable[[int], float | None] = lambda _: None
        self._jobs = trace.jobs
        self.events = EventQueue(trace)
        self._runs: dict[int, ActiveRun] = {}
        self._places: dict[NumberedPlace, ActiveRun] = {}
        self._tags: dict[int, tuple[int, int]] = {}
        self._needed_gb: dict[int, float] = {}  # of jobs that ran out of memory
        self.failures: Counter[int] = Counter()  # how often each job ran out of memory so far
        self._crashes: Counter[int] = Counter()  # of each job so far
        self._outages = {
            self.events.push(moment, kind): outage.gpu
            for outage in trace.outages
            for moment, kind in ((outage.begin, LEAVE), (outage.end, RETURN))
        }
        self._brief = 0
        self._sizes = tuple(placement.profile.compute_slices for placement in geometry.placements)
        self._memory = tuple(placement.profile.memory_gb for placement in geometry.placements)

    def state(self, gpu: int) -> GpuState:
        """Return the state of a GPU."""
        return self.states[gpu]

    def load(self, gpu: int) -> float:
        """Return the share of a GPU's compute slices that jobs have (0 to 1)."""
        return self.states[gpu].usage.used_compute / self.geometry.gpu.compute_slices

    def place(self, job: int) -> NumberedPlace | None:
        """Return GPU and placement that a job has, those of its replica if it migrates; None if it has none."""
        run = self._runs.get(job)
        return None if run is None else run.place

    def job_at(self, gpu: int, placement: int) -> int | None:
        """Return the job that has an instance, or None."""
        run = self._places.get((gpu, placement))
        return None if run is None else run.job

    def movable(self, job: int) -> bool:
        """Return True if a job runs and does not migrate already."""
        run = self._runs.get(job)
        return run is not None and run.target is None and run.begin <= self.now

    def progress(self, job: int) -> float:
        """Return the share of its work that a job has done (0 to 1); 0 if it waits."""
        run = self._runs.get(job)
        return 0.0 if run is None else run.progress(self.now)

    def memory_used(self, job: int) -> float:
        """Return the GB that a job uses now, what can be observed; 0 if it has not begun."""
        run = self._runs.get(job)
        return 0.0 if run is None or run.begin > self.now else self._jobs[job].memory_at(run.progress(self.now))

    def expected_end(self, job: int, factor: float = 1.0) -> float:
        """Return the second at which a job with a place ends if its neighbours stay and its memory is enough.

        It follows from the times that schedulers know, times a factor by which these may be corrected. A job that has
        run for longer is expected to run for half as long again.
        """
        run = self._runs[job]
        seconds, done = self._declared_seconds(run) * factor, self._declared_share(run) / factor
        left = 1 - done if done <= 1 else OVERRUN_SHARE * done
        return max(self.now, run.since) + left * seconds * run.slowdown

    def overruns(self, job: int, factor: float = 1.0) -> bool:
        """Return True if a job with a place has run for longer than schedulers were told, times a factor."""
        return self._declared_share(self._runs[job]) > factor

    def seconds_taken(self, job: int, placement: int) -> float:
        """Return for how long a job that is done ran on a placement, less what other jobs on the link slowed it."""
        if math.isnan(self.log.finished[job]):
            raise PolicyError(f"for how long {self._job_name(job)} runs was asked for, but it is not done")
        return self._seconds(job, placement)

    def known_need(self, job: int) -> float:
        """Return the most GB that a job needed when it ran out of memory or was stopped, 0 if it never did."""
        return self._needed_gb.get(job, 0.0)

    def jobs_on(self, gpu: int) -> list[int]:
        """Return the jobs that have a place on a GPU, by placement."""
        return [self._places[gpu, place].job for place in members(self.states[gpu].busy)]

    def bound_on(self, gpu: int) -> int:
        """Return how many PCIe-bound jobs have a place on a GPU."""
        return sum(self._jobs[job].pcie_gbps > 0 for job in self.jobs_on(gpu))

    def slowdown(self, job: int, gpu: int) -> float:
        """Return by how much a job would be slower than alone beside the jobs that have a place on a GPU."""
        if self._jobs[job].pcie_gbps <= 0:
            return 1.0
        there = self.place(job)
        itself = there is None or there[0] != gpu
        return pcie_slowdown(self.trace, self._jobs[job], self.bound_on(gpu) + itself)

    # Actions, besides those of FleetInstances

    def start(self, job: int, gpu: int, placement: int) -> None:
        """Give a waiting job an instance. One that is there is used; else it is created, after idle ones in the way."""
        if job not in self.waiting:
            raise PolicyError(f"{self._job_name(job)} was started, but does not wait")
        self._check_place(gpu, placement)
        seconds = self._seconds(job, placement)
        begin = self._claim(gpu, placement)
        del self.waiting[job]
        self.actions += 1
        if math.isnan(self.log.scheduled[job]):
            self.log.scheduled[job] = self.now
        bound = self._jobs[job].pcie_gbps > 0
        self._launch(ActiveRun(job, gpu, placement, begin, seconds, self._limit(job, placement), bound, since=begin))

    def migrate(self, job: int, gpu: int, placement: int) -> None:
        """Move a running job: it goes on until a replica is ready and is there from that moment on."""
        if not self.movable(job):
            raise PolicyError(f"{self._job_name(job)} was to migrate, but does not run or migrates already")
        self._check_place(gpu, placement)
        self._seconds(job, placement)
        run = self._runs[job]
        ready = self._claim(gpu, placement)
        self._release(run.gpu, run.placement, ready)
        self.actions += 1
        del self._places[run.gpu, run.placement]
        self._places[gpu, placement] = run
        run.target = (gpu, placement)
        if ready <= self.now:
            self.move(run)
        else:
            self.events.push(ready, MOVE, run)

    def stop(self, job: int, needed_gb: float = 0.0) -> None:
        """Take its place from a job; it waits again and will start from zero, and may be known to need some memory."""
        run = self._runs.get(job)
        if run is None:
            raise PolicyError(f"{self._job_name(job)} was stopped, but has no place")
        self.actions += 1
        self._needed_gb[job] = max(self.known_need(job), needed_gb)
        self.close(run, RunOutcome.STOPPED)
        self.waiting[job] = None

    def wake(self, time: float, tag: int = 0) -> None:
        """Ask to be woken at a later second, with a tag to know why."""
        if not time > self.now:
            raise PolicyError(f"to be woken at {time:g} s was asked for at {self.now:g} s; it must be later")
        brief = self._brief + 1 if time - self.now < _BRIEF_S else 0
        if brief > _MOST_BRIEF:
            raise PolicyError(
                f"to be woken within {_BRIEF_S:g} s was asked for {brief} times in a row, at {self.now:g} s"
            )
        self._tags[self.events.push(time, WAKE)] = (tag, brief)

    # For the simulator

    def turn_away(self, job: int) -> None:
        """Send a waiting job away for good."""
        del self.waiting[job]
        self.log.rejected[job] = self.now

    def offer(self, job: int, other: Cluster, number: int) -> None:
        """Let a waiting job wait for GPUs of another kind, too, where it has another number."""
        other.now, other.waiting[number] = self.now, None
        other._crashes[number], other.failures[number] = self._crashes[job], self.failures[job]
        other._needed_gb[number] = self.known_need(job)

    def work_left(self) -> float:
        """Return the compute slices x seconds that jobs with a place are expected to have them yet."""
        runs = self._runs.values()
        return sum((self.expected_end(run.job) - self.now) * self._sizes[run.place[1]] for run in runs)

    @property
    def running(self) -> int:
        """Number of jobs that have a place."""
        return len(self._runs)

    @property
    def changes(self) -> tuple[int, int, int]:
        """Numbers that are others once jobs begin, move or end, instances come or go, or GPUs leave or return."""
        return self.actions, len(self._runs), len(self._outages)

    @property
    def awaits_others(self) -> bool:
        """True if jobs are to arrive, or GPUs to leave or return."""
        return self.coming < len(self._jobs) or bool(self._outages)

    @property
    def expects_events(self) -> bool:
        """True if jobs are to arrive, or anything else happens without the scheduler."""
        return self.coming < len(self._jobs) or self.events.peek() is not None

    def wake_up(self, number: int) -> int:
        """Begin a wake-up that is due, and return its tag."""
        tag, self._brief = self._tags.pop(number)
        return tag

    def wake_over(self) -> None:
        """End it: what is asked for later has nothing to do with it."""
        self._brief = 0

    def move(self, run: ActiveRun) -> None:
        """Let a job go on in its replica, which is ready."""
        assert run.target is not None
        if run.begin < self.now:
            self.log.add_run(run.job, (run.gpu, run.placement), run.begin, self.now, RunOutcome.MIGRATED)
        placement = run.target[1]
        self.events.move(run, self._seconds(run.job, placement), self._limit(run.job, placement), self.now)

    def close(self, run: ActiveRun, outcome: RunOutcome) -> NumberedPlace:
        """End a run, and return which instance is idle now."""
        if run.begin <= self.now:
            self.log.add_run(run.job, (run.gpu, run.placement), run.begin, self.now, outcome)
        self.events.drop(run, self.now)
        gpu, placement = run.place
        del self._runs[run.job]
        del self._places[gpu, placement]
        self._release(gpu, placement, self.now)
        return gpu, placement

    def fail(self, run: ActiveRun) -> NumberedPlace:
        """End a run that comes to its limit before its work is done, and return which instance is idle now."""
        job = self._jobs[run.job]
        if run.limit == self._crash(run.job) and job.share_within(self._memory[run.placement]) >= run.limit:
            self._crashes[run.job] += 1
            return self.close(run, RunOutcome.CRASHED)
        self.failures[run.job] += 1
        self._needed_gb[run.job] = max(self.known_need(run.job), job.memory_at(run.limit))
        return self.close(run, RunOutcome.OUT_OF_MEMORY)

    def leave(self, number: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Let a GPU leave as an event says; return it, and the jobs that had it with their placements."""
        gpu = self._outages.pop(number)
        lost = tuple((run, run.place) for run in self._runs.values() if gpu in (run.gpu, run.place[0]))
        for run, _ in lost:
            self.close(run, RunOutcome.GPU_LEFT)
            self.waiting[run.job] = None
        self._vanish(gpu)
        return gpu, tuple((run.job, placement) for run, (_, placement) in lost)

    def end(self) -> None:
        """End the simulation: what drivers still have to do they do only while their GPUs are there."""
        for outage in self.log.trace.outages:
            if outage.begin >= self.now:
                self.log.cut_operations(outage.gpu, outage.begin)

    def come_back(self, number: int) -> int:
        """Let a GPU return as an event says, and return it."""
        gpu = self._outages.pop(number)
        self._driver[gpu] = self.now
        self._become(gpu, 0, self._at_first(gpu))
        return gpu

    def _launch(self, run: ActiveRun) -> None:
        """Let a run have its place, and queue what comes next of it."""
        self._runs[run.job] = self._places[run.place] = run
        self.events.launch(run, self.now)

    def _limit(self, job: int, placement: int) -> float:
        """Return the share of a job's work at which it crashes, or needs more memory than a placement has; else 1."""
        return min(self._jobs[job].share_within(self._memory[placement]), self._crash(job))

    def _crash(self, job: int) -> float:
        """Return the share of its work at which a job crashes next; 1 if it does not."""
        crashes = self._jobs[job].crashes
        return crashes[self._crashes[job]] if crashes and self._crashes[job] < len(crashes) else 1.0

    def _seconds(self, job: int, placement: int) -> float:
        seconds: float | None = self._jobs[job].times.get(self._sizes[placement])
        if seconds is None:
            where = self.geometry.placements[placement]
            raise PolicyError(f"{self._job_name(job)} was put on {where}, but has no time for its size")
        return seconds

    def _declared_seconds(self, run: ActiveRun) -> float:
        """Return the seconds that schedulers think all of a run's work takes where it runs."""
        seconds: float = self.trace.jobs[run.job].times[self._sizes[run.placement]]
        return seconds

    def _declared_share(self, run: ActiveRun) -> float:
        """Return how much of its declared time a run has used, as a share; above 1 if it overruns."""
        # The quotient is exactly 1 where what is declared is true, so that nothing is rounded differently.
        return run.progress(self.now) * (run.seconds / self._declared_seconds(run))

    def _job_name(self, job: int) -> str:
        return f"job {self._jobs[job].name!r}" if 0 <= job < len(self._jobs) else f"job number {job}"
