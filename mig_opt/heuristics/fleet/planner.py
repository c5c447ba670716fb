"""The toolkit's own scheduler: rolling plans for the jobs that wait, found by simulated annealing."""

from __future__ import annotations

import dataclasses
import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from mig_opt.gpu.geometry import GpuState
from mig_opt.heuristics.fleet.plans.calibration import Calibration
from mig_opt.heuristics.fleet.plans.choice import Backfilling, Choice, Fairness, JobChooser
from mig_opt.heuristics.fleet.plans.list_decoder import Objective
from mig_opt.heuristics.fleet.plans.plan import Plan
from mig_opt.heuristics.fleet.plans.problem import PlanningProblem, WaitingJob, placement_arrays
from mig_opt.heuristics.fleet.plans.rollouts import CarriedOut, Rollouts, value_of
from mig_opt.heuristics.fleet.plans.search import Coming, Effort, PlanSearch, PriorityList, Stakes
from mig_opt.method.options import run_options
from mig_opt.method.registry import METHODS, needs_more
from mig_opt.rules.vocabulary import Moment, Number, Seconds, Share, Whole
from mig_opt.simulation.fleet.cluster import Cluster
from mig_opt.simulation.fleet.options import ConfigurablePolicy

_MAX_GPUS = 64  # number of GPUs that a plan uses at most: some that have room, and those that are free first
_ROOMY_GPUS = 8  # number of GPUs with room for each profile, on larger fleets
# Jobs x GPUs up to which each end of a run is a reason to plan anew: another search may find something better.
_MAX_JOBS_X_GPUS = 400
_MAX_EXPECTED_JOBS = 1e6  # largest number of expected jobs: the first gaps may be as short as numbers can be
_PAUSE_GAPS = 2.0  # multiple of the longest gap between arrivals after which plans keep no room for more of them
_UNEXPECTED_SHARE = 0.02  # share by which a run has to be longer or shorter than expected to be a reason to plan anew
_MIN_ALARM_S = 1e-3  # least seconds from one look at a run that should have ended to the next
_MAX_LISTED = 8000  # jobs x GPUs up to which all that wait are looked at, to find out which are planned first
_FURTHER_SHARE = 0.5  # share of the jobs that have come so far that are expected to come yet, while jobs arrive
_HYSTERESIS = 0.002  # share by which a simple scheduler has to be better than the plan to be followed
_WINDOW = -1  # tag of the wake-up at the end of a window; other tags are jobs that should have ended

# What ends are worth by the goal, for one job in the system on the mean.
_GOALS = {
    "flow": Stakes(last=0.0, beyond=0.0, tolerance=0.0, tardiness=1.0),
    "makespan": Stakes(last=10.0, beyond=100.0, tolerance=0.0, tardiness=1.0),
    "balanced": Stakes(last=0.5, beyond=5.0, tolerance=0.01, tardiness=1.0),
    "tardiness": Stakes(last=0.0, beyond=0.0, tolerance=0.0, tardiness=100.0),
    "slowdown": Stakes(last=0.0, beyond=0.0, tolerance=0.0, tardiness=1.0),
}


@dataclass(kw_only=True, eq=False)
class Planner(ConfigurablePolicy):
    """Plans the jobs that wait for the fleet as it is, and carries the plan out until something new is known.

    It reads in the trace how long jobs run, what they ask for and what PCIe does to them, but nothing of jobs that have
    not arrived. A plan is made when jobs arrive (those of one moment together), when a run ends (where many jobs wait
    for many GPUs, only if its end was not expected), and when less than half of a plan for a part of the queue is left.
    Orders of all jobs that wait (up to 8000 jobs x GPUs) say which are planned first, and when all can have ended
    (:func:`mig_opt.heuristics.fleet.plans.search.outlook_of`). The plan is the best that simulated annealing finds over
    order and profiles of these jobs (:mod:`mig_opt.heuristics.fleet.plans.list_decoder`). While all goes as planned,
    only a better plan replaces the one that is being carried out; and where what a simple scheduler would come to is
    better, that one is followed (:mod:`mig_opt.heuristics.fleet.plans.rollouts`). Where jobs have declared times it
    learns how far these are from the true ones, and where they say too little, each job begins as soon as there is room
    for it (:class:`mig_opt.heuristics.fleet.plans.choice.Backfilling`).

    Parameters
    ----------
    goal : {"balanced", "flow", "makespan", "tardiness", "slowdown"}
        What is to be least for all jobs of the trace: the mean flow time; the makespan; ``balanced``: the mean flow
        time, of plans that end hardly later than the earliest last end that is known; the mean tardiness; the mean of
        flow time / shortest run.
    balance : float, optional
        In place of the goal, weight of the last end of a plan (1) against the mean completion time (0).
    tardiness : float
        Weight of the mean tardiness beside that of the completion time, where jobs have due dates. Both are weighted by
        the weights of the jobs.
    overtaken, overtaken_s : float
        Wait, in multiples of its shortest run and in seconds, from which on a job is overtaken no more, once both have
        passed: nothing begins then that would delay it, but jobs for which that holds for longer.
    think : float, optional
        Seconds for each decision; plans then depend on the speed of the machine. By default work is counted, and the
        same seed gives the same log.
    method : str, optional
        Method of :func:`mig_opt.solve` whose schedule is another plan to begin with. Asked only for batches without
        PCIe-bound jobs, of which it knows nothing, and with up to 400 jobs x GPUs.
    window : float
        Seconds from an arrival until it is planned, together with what arrives until then. Meanwhile what was planned
        before is carried out.
    most : int
        Jobs that are planned at a time: those that are shortest for their weight, and some that have to begin soon.
    patience : float
        Wait, in multiples of its shortest run, after which a job counts double, and so on.
    rounds : int
        Moves of each annealing, at most.
    work : float
        Seconds of counted work (``deterministic``) that the method may take for a plan.
    seed : int
        Seed of both.

    Examples
    --------
    A short job on the whole GPU, then both of the others at once; each of them alone would be quicker on 4 slices.

    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> times = {1: 24.0, 2: 12.0, 4: 10.0}
    >>> jobs = (Job("a", 0.0, times), Job("b", 0.0, times), Job("c", 0.0, {4: 1.0}))
    >>> done = simulate(Trace(jobs, get_gpu("A30")), "planner")
    >>> [(done.trace.jobs[run.job].name, str(run.placement), round(run.end, 2)) for run in done.log.runs()]
    [('c', '4g.24gb@0', 1.13), ('a', '2g.12gb@0', 13.35), ('b', '2g.12gb@2', 13.47)]
    """

    goal: Literal["flow", "makespan", "balanced", "tardiness", "slowdown"] = "balanced"
    balance: Share | None = None
    tardiness: Annotated[float, Number(at_least=0)] = 1.0
    overtaken: Annotated[float, Number(at_least=0)] = 20.0
    overtaken_s: Moment = 3600.0
    think: Annotated[float, Number("seconds", above=0, hint=", or None")] | None = None
    method: str | None = None
    window: Moment = 0.0
    most: Annotated[int, Whole(1, 10_000)] = 48
    patience: Annotated[float, Number(above=0)] = 10.0
    rounds: Annotated[int, Whole(0, 10**9)] = 1000
    work: Seconds = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        method = "list" if self.method is None else self.method
        run_options(METHODS, method, seed=self.seed, also=[*needs_more(method), *self.option_problems()])

    def begin(self, cluster: Cluster) -> None:
        """Start without a plan."""
        self._placements = placement_arrays(cluster.trace, cluster.geometry)
        self._plan = Plan(cluster)
        cluster.planned_end = lambda job: self._plan.runs[job].end if job in self._plan.runs else None
        self._list = PriorityList()
        self._rollouts = Rollouts(cluster)
        self._followed: int | None = None
        self._calibration = Calibration(cluster.log.trace)
        by_slowdown, by_last_end = self.goal == "slowdown", _GOALS[self.goal].last > 0
        fairness = Fairness(self.patience, self.overtaken, self.overtaken_s, by_slowdown, by_last_end)
        self._chooser = JobChooser(fairness, self._calibration)
        self._next_urgent = math.inf
        self._arrived_area = 0.0
        self._first_arrival = self._last_arrival = self._counted_until = cluster.trace.jobs[0].arrival
        self._job_seconds, self._in_system, self._longest_gap = 0.0, 0, 0.0
        self._listed = max(self.most, _MAX_LISTED // min(cluster.trace.gpus, _MAX_GPUS))
        # With declared times jobs may run for longer.
        self._uncertain = any(job.declared is not None for job in cluster.log.trace.jobs)
        self._effort = Effort(self.method, float(self.work), self.rounds, self.seed, 1 if self._uncertain else 2)
        self._backfilling = Backfilling(cluster, self._chooser, self._calibration) if self._uncertain else None
        self._follows = False
        self._alarms: dict[int, float] = {}
        self._expected_runs: dict[int, tuple[float, float]] = {}
        self._later_arrivals = 0
        self._window_ends = -math.inf
        self._fits = self._stale = False
        self._large = cluster.trace.gpus > _MAX_GPUS
        self._with_room = cluster.ranking(_free_slices)
        self._ends: list[tuple[float, int, int]] = []

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Plan anew, once all jobs of this moment have arrived and the window is over."""
        arrival = cluster.trace.jobs[job].arrival
        self._chooser.forget(job)  # it may have waited for GPUs of another kind
        if arrival > self._first_arrival and arrival == cluster.now:
            self._later_arrivals += 1
            self._arrived_area += self._chooser.known(cluster, job).area
        if self._backfilling is not None:
            self._backfilling.arrived(cluster, job)
        self._longest_gap = max(self._longest_gap, arrival - self._last_arrival)
        self._last_arrival = max(arrival, self._last_arrival)
        self._fits |= any(self._with_room.best(own) is not None for own, _ in self._chooser.known(cluster, job).modes)
        if cluster.more_to_come:
            return
        if not self.window:
            if self._fits:
                self._plan_anew(cluster)
            else:
                self._stale = True  # Nothing of a new plan could begin before the next run ends.
        elif self._window_ends < cluster.now:
            self._window_ends = max(cluster.now + self.window, math.nextafter(cluster.now, math.inf))
            cluster.wake(self._window_ends, _WINDOW)

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Plan anew: the window is over, or a job runs for longer than was declared."""
        if tag == _WINDOW:
            self._plan_anew(cluster)
        elif self._alarms.get(tag) == cluster.now and cluster.place(tag) is not None:
            overruns = cluster.overruns(tag, self._calibration.factor(tag))
            self._watch(cluster, tag)
            if overruns and cluster.waiting:
                self._plan_anew(cluster)

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Go on with the plan, or plan anew if the end was not expected; at last let jobs have what is left."""
        # A job that ran from the start, with the instances of a state, is as unexpected as its end.
        begin, end = self._expected_runs.pop(job, (cluster.now, -math.inf))
        unexpected = abs(cluster.now - end) > _UNEXPECTED_SHARE * (end - begin)
        if self._backfilling is not None:
            size = cluster.geometry.placements[placement].profile.compute_slices
            declared = cluster.trace.jobs[job].times[size]
            self._calibration.learn(job, declared, cluster.seconds_taken(job, placement))
            if not cluster.waiting and self._arrivals_over(cluster.now):
                self._backfilling.grow(cluster)
                return
        if self._follows:
            self._plan_anew(cluster)
            if self._follows and self._backfilling is not None and self._backfilling.repair(cluster, gpu):
                self._plan_anew(cluster)
            return
        if not cluster.waiting:
            if self._followed is not None:
                self._rollouts.follow(cluster, self._followed, gpu)
            return
        if self._stale or cluster.now >= self._next_urgent:
            # Jobs have arrived, or one has become urgent: what was planned before might delay it.
            self._plan_anew(cluster, gpu=gpu)
            return
        for started in self._plan.advance([gpu]):
            self._begun(cluster, started)
        small = len(cluster.waiting) * cluster.trace.gpus <= _MAX_JOBS_X_GPUS
        if unexpected or small or not cluster.running or self._nearly_done(cluster):
            self._plan_anew(cluster, None if unexpected or not cluster.running else self._plan, gpu)

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Plan anew, the job on instances with as much memory as it needed."""
        self._chooser.forget(job)
        self._plan_anew(cluster)

    def gpu_left(self, cluster: Cluster, gpu: int, lost: Sequence[tuple[int, int]]) -> None:
        """Forget the plan, which may have used the GPU, and plan anew."""
        self._plan = Plan(cluster)
        self._plan_anew(cluster)

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Plan anew."""
        self._plan_anew(cluster)

    def gpu_returned(self, cluster: Cluster, gpu: int) -> None:
        """Plan anew."""
        self._plan_anew(cluster)

    def withdrawn(self, cluster: Cluster, job: int) -> None:
        """Take a job that waits no more out of the plan."""
        self._plan.drop(job)
        self._stale = True

    def _plan_anew(self, cluster: Cluster, current: Plan | None = None, gpu: int | None = None) -> None:
        """Plan, and go on as long as half of a plan can begin at once; keep the current plan if it is as good."""
        self._fits = self._stale = False
        self._followed = None
        if self._backfill(cluster):
            return
        effort, actions = self._effort, -1
        if self.think is not None:
            effort = dataclasses.replace(effort, ends=time.perf_counter() + self.think)
        while cluster.actions > actions:
            actions = cluster.actions
            choice = self._chooser.choose(cluster, self._listed, self._further(cluster))
            used = list(filter(cluster.present, self._gpus_to_use(cluster, choice.jobs)))
            if not choice.jobs or not used:
                break
            problem = PlanningProblem(cluster, self._placements, choice.jobs, used, self._calibration)
            search = PlanSearch(problem, self._coming(cluster, problem, choice), self._stakes(cluster), effort)
            self._plan, self._list = search.best(self._list, current, self.most)
            self._next_urgent = choice.next_urgent
            if search.complete and self._follow_simple(cluster, choice, search.objective, gpu):
                break
            for job in self._plan.advance():
                self._begun(cluster, job)
            if not self._nearly_done(cluster):
                break

    def _follow_simple(self, cluster: Cluster, choice: Choice, objective: Objective, gpu: int | None) -> bool:
        """Let a simple scheduler decide, and return True, if its rollout is better than that of the plan.

        While others are to arrive it may be better for those that are known, and still leave less room: then it counts
        for the makespan alone. It does not know of urgent jobs.
        """
        known = self.goal == "makespan" or self._arrivals_over(cluster.now)
        if self._uncertain or not known or any(waiting.urgent for waiting in choice.jobs):
            return False
        best, value = self._rollouts.best(cluster, choice.jobs, objective)
        if value >= value_of(CarriedOut(self._plan), cluster, choice.jobs, objective) * (1 - _HYSTERESIS):
            return False
        self._followed, self._plan = best, Plan(cluster)
        waiting = list(cluster.waiting)
        self._rollouts.follow(cluster, best, gpu)
        for job in waiting:
            if job not in cluster.waiting:
                self._begun(cluster, job)
        return True

    def _backfill(self, cluster: Cluster) -> bool:
        """Start what fits if run times are hardly known, and return True; else return False: plans are of use."""
        if self._backfilling is None:
            return False
        follows = not self._backfilling.plans_are_of_use(cluster)
        if follows != self._follows:
            self._follows, self._plan = follows, Plan(cluster)
        if follows:
            self._backfilling.serve(cluster, self._further(cluster), draining=not self._later_arrivals)
        return follows

    def _coming(self, cluster: Cluster, problem: PlanningProblem, choice: Choice) -> Coming:
        """Return what is expected beside the jobs of a problem."""
        free = problem.available.free
        # The last end of all cannot be earlier.
        horizon = max(float(free.mean()) + choice.work, float(free.max()), choice.longest)
        arrivals = 0.0 if self._arrivals_over(cluster.now) else self._expected_arrivals(problem)
        return Coming(horizon, arrivals, self._further(cluster), choice.waiting - len(problem.jobs))

    def _further(self, cluster: Cluster) -> float:
        """Return for how many seconds jobs that are to come are expected to keep the whole fleet busy."""
        return 0.0 if self._arrivals_over(cluster.now) else _FURTHER_SHARE * self._arrived_area

    def _stakes(self, cluster: Cluster) -> Stakes:
        """Return the worth of ends by the goal.

        By Little's law the sum of all flow times is the mean number of jobs in the system times the makespan: that
        number of seconds of jobs is the same share of it as one second is of the makespan.
        """
        if self.balance is not None:
            return Stakes(0.0, 0.0, 0.0, self.tardiness, self.balance)
        self._job_seconds += self._in_system * (cluster.now - self._counted_until)
        self._in_system, self._counted_until = len(cluster.waiting) + cluster.running, cluster.now
        elapsed = cluster.now - self._first_arrival
        mean = self._job_seconds / elapsed if elapsed > 0 else float(self._in_system)
        goal = _GOALS[self.goal]
        return Stakes(goal.last * mean, goal.beyond * mean, goal.tolerance, self.tardiness * goal.tardiness)

    def _begun(self, cluster: Cluster, job: int) -> None:
        """Note when a job that has its place now is expected to end."""
        place = cluster.place(job)
        assert place is not None
        self._expected_runs[job] = cluster.now, cluster.expected_end(job, self._calibration.factor(job))
        if self._uncertain:
            self._watch(cluster, job)
        if self._large:
            heapq.heappush(self._ends, (cluster.expected_end(job), job, place[0]))

    def _watch(self, cluster: Cluster, job: int) -> None:
        """Ask to be woken soon after the expected end of a run: if it overruns, what is planned behind it is late."""
        end = cluster.expected_end(job, self._calibration.factor(job))
        late = end + _UNEXPECTED_SHARE * (end - cluster.now)
        self._alarms[job] = max(late, cluster.now + _MIN_ALARM_S, math.nextafter(cluster.now, math.inf))
        cluster.wake(self._alarms[job], job)

    def _nearly_done(self, cluster: Cluster) -> bool:
        """Return True if jobs wait that are not planned, and half of those that are have begun."""
        unplanned = [job for job in cluster.waiting if job not in self._plan.runs]
        planned = len(cluster.waiting) - len(unplanned)
        return planned < self.most / 2 and any(self._chooser.known(cluster, job).modes for job in unplanned)

    def _arrivals_over(self, now: float) -> bool:
        """Return True if the last arrival is longer ago than twice the longest gap between two of them."""
        return now - self._last_arrival > _PAUSE_GAPS * self._longest_gap

    def _expected_arrivals(self, problem: PlanningProblem) -> float:
        """Return how many jobs arrive until the plan is carried out, if they go on to arrive as they did so far."""
        elapsed = problem.now - self._first_arrival
        if elapsed <= 0:
            return 0.0
        arrays = problem.job_arrays
        areas: float = sum(np.minimum.reduceat(arrays.area, arrays.offsets[:-1]).tolist())
        expected = self._later_arrivals / elapsed * (areas + float(problem.available.free.mean()))
        return min(expected, _MAX_EXPECTED_JOBS)

    def _gpus_to_use(self, cluster: Cluster, jobs: list[WaitingJob]) -> list[int]:
        """Return the GPUs for a plan: all, or on a large fleet some that have room, and those that are free first."""
        if not self._large:
            return list(range(cluster.trace.gpus))
        profiles = sorted({profile for waiting in jobs for profile, _ in waiting.modes})
        found = self._fullest_with_room(profiles, _ROOMY_GPUS)
        popped = []
        while self._ends and len(found) < _MAX_GPUS:
            _, job, gpu = heapq.heappop(self._ends)
            if cluster.place(job) is not None:
                popped.append((cluster.expected_end(job), job, gpu))
                found.add(gpu)
        for entry in popped:
            heapq.heappush(self._ends, entry)
        if len(found) < _MAX_GPUS:
            found |= self._fullest_with_room(profiles, _MAX_GPUS)
        return sorted(found)

    def _fullest_with_room(self, profiles: list[int], count: int) -> set[int]:
        """Return for each profile ``count`` GPUs with room that have the fewest free slices."""
        found = set[int]()
        for profile in profiles:
            own: list[int] = []

            def enough(gpu: int, own: list[int] = own) -> bool:
                own.append(gpu)
                return len(own) == count

            self._with_room.first(profile, enough)
            found.update(own)
        return found


def _free_slices(state: GpuState, profile: int) -> int | None:
    free = state.geometry.gpu.compute_slices - state.usage.used_compute
    return free if state.options(profile) else None
