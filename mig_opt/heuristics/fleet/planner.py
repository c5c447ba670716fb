"""The toolkit's own scheduler: rolling plans for the jobs that wait, made by ``solve`` and a local search."""

from __future__ import annotations

import heapq
import math

from mig_opt.arguments import wrong_integer, wrong_number, wrong_share
from mig_opt.errors import Problem
from mig_opt.gpu.geometry import GpuState
from mig_opt.heuristics.fleet.planning.choosing import Choice, Effort, Order
from mig_opt.heuristics.fleet.planning.plans import Plan
from mig_opt.heuristics.fleet.planning.sequencing import Aim
from mig_opt.heuristics.fleet.planning.situation import Situation, Wish, profiles_for
from mig_opt.registry import get_method, run_problems
from mig_opt.simulation.cluster import Cluster, Policy

_MOST_GPUS = 64
"""On larger fleets only those GPUs are looked at that have room or are free first."""

_BEST_FITTING = 8
"""How many GPUs with room, for each profile."""

_MOST_EAGER = 400
"""Jobs x GPUs up to which each end of a run is a reason to plan anew: another search may find something better."""

_MOST_WEIGHT = 1e6
"""Seconds may be as short as numbers can be."""

_LEAST = math.ulp(0.0)
"""The product of numbers that small would be 0."""

_MOST_EXPECTED = 1e6
"""Jobs; the first gaps may be as short as numbers can be."""

_ALL = 1 << 30
"""More than any rank of a GPU."""

_OFF = 0.02
"""A run that takes longer or less long than was foreseen when it began, by this share, is a reason to plan anew."""


class Planner(Policy):
    """Plans the jobs that wait for the fleet as it is, and carries the plan out until something new is known.

    It reads in the trace how long jobs run, what they ask for and what PCIe does to them, but nothing of jobs that have
    not arrived. A plan is made when jobs arrive (those of one moment together), when a run ends (where many jobs wait
    for many GPUs, only if its end was not foreseen), and when less than half of a plan for a part of the queue is left.
    The best of these is chosen; while all goes as planned, the plan that is being carried out is one of them:

    * the schedule of :func:`mig_opt.solve` for the jobs as a batch, with the live instances and their expected ends as
      initial state, short jobs first on each instance;
    * the best plan of a local search on the order and the profiles of the jobs, which starts from that schedule, from
      the plan before, and from the jobs by length and by arrival (:mod:`mig_opt.heuristics.fleet.planning.sequencing`).

    Parameters
    ----------
    method : str
        Of :func:`mig_opt.solve`. Asked only for batches without PCIe-bound jobs, of which it knows nothing, and with up
        to 400 jobs x GPUs.
    balance : float
        Between the mean completion (0) and the last end of a plan (1). The last end counts the less the more jobs are
        expected to arrive until then: the share is ``balance / (1 + expected)``.
    window : float
        Seconds from an arrival until it is planned, together with what arrives until then. Meanwhile what was planned
        before is carried out.
    most : int
        Jobs that are planned at a time: those that are shortest for their weight.
    patience : float
        A job that has waited so many times its shortest run counts double, and so on; so none waits for ever.
    rounds : int
        Steps of each local search, at most.
    work : float
        Seconds of counted work (``deterministic``) that the method may take for a plan.
    seed : int
        For both.

    Raises
    ------
    InputError
        With every problem of the options.

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

    def __init__(
        self,
        *,
        method: str = "search",
        balance: float = 0.5,
        window: float = 0.0,
        most: int = 48,
        patience: float = 10.0,
        rounds: int = 3000,
        work: float = 0.05,
        seed: int = 0,
    ) -> None:
        problems, error = run_problems(method, get_method, None, seed)
        if not problems and get_method(method).options:
            problems.append(Problem("method", f"must work without a {get_method(method).options[0]}, is {method!r}"))
        problems += wrong_share("balance", balance)
        problems += wrong_number("window", window, "a finite number of seconds >= 0", at_least=0)
        problems += wrong_integer("most", most, 1, 10_000)
        problems += wrong_number("patience", patience, "a finite number > 0", above=0)
        problems += wrong_integer("rounds", rounds, 0, 10**9)
        problems += wrong_number("work", work, "a finite number of seconds > 0", above=0)
        if problems:
            raise error(problems)
        self.balance = float(balance)
        self.window = float(window)
        self.most = most
        self.patience = float(patience)
        self.effort = Effort(method, float(work), rounds, seed)

    def begin(self, cluster: Cluster) -> None:
        """Start without a plan."""
        self._plan = Plan(cluster)
        self._order = Order()
        self._options: dict[int, tuple[tuple[int, float], ...]] = {}
        self._needs: dict[int, float] = {}
        self._foreseen: dict[int, tuple[float, float]] = {}
        self._first = cluster.trace.jobs[0].arrival  # counts from that moment on only
        self._later_arrivals = 0
        self._window_ends = -math.inf
        self._large = cluster.trace.gpus > _MOST_GPUS
        self._ranking = cluster.ranking(_free_slices) if self._large else None
        self._ends: list[tuple[float, int, int]] = []

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Plan anew, once all jobs of this moment have arrived and the window is over."""
        jobs = cluster.trace.jobs
        self._later_arrivals += jobs[job].arrival > self._first
        if job + 1 < len(jobs) and jobs[job + 1].arrival == cluster.now:
            return
        if not self.window:
            self._plan_anew(cluster)
        elif self._window_ends < cluster.now:
            self._window_ends = max(cluster.now + self.window, math.nextafter(cluster.now, math.inf))
            cluster.wake(self._window_ends)

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Plan anew: the window is over."""
        self._plan_anew(cluster)

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Go on with the plan, or plan anew if it did not foresee this."""
        begin, end = self._foreseen.pop(job)
        off = abs(cluster.now - end) > _OFF * (end - begin)
        if not cluster.waiting:
            return
        self._carry_out(cluster, [gpu])
        small = len(cluster.waiting) * cluster.trace.gpus <= _MOST_EAGER
        if off or small or not cluster.running or self._nearly_done(cluster):
            self._plan_anew(cluster, None if off or not cluster.running else self._plan)

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Plan anew, the job on instances with as much memory as it needed."""
        self._needs[job] = max(needed_gb, self._needs.get(job, 0.0))
        self._options.pop(job, None)
        self._plan_anew(cluster)

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Plan anew."""
        self._plan_anew(cluster)

    def _plan_anew(self, cluster: Cluster, current: Plan | None = None) -> None:
        """Plan, and go on as long as half of a plan can begin at once; keep the current plan if it is as good."""
        actions = -1
        while cluster.actions > actions and (wishes := self._wishes(cluster)):
            actions = cluster.actions
            situation = Situation(cluster, wishes, self._gpus(cluster, wishes))
            expected, others = self._expected(situation), len(cluster.waiting) - len(wishes)
            # On the average, half of an area is still to be taken when a job arrives.
            aim = Aim(self.balance / (1 + expected + others), expected / 2 + others)
            self._plan, self._order = Choice(situation, aim, self.effort).best(self._order, current)
            self._carry_out(cluster, self._plan.gpus)
            if not self._nearly_done(cluster):
                break

    def _carry_out(self, cluster: Cluster, gpus: list[int]) -> None:
        self._plan.advance(gpus)
        for job, gpu in self._plan.started:
            self._foreseen[job] = cluster.now, cluster.expected_end(job)
            if self._large:
                heapq.heappush(self._ends, (cluster.expected_end(job), job, gpu))
        self._plan.started.clear()

    def _nearly_done(self, cluster: Cluster) -> bool:
        """Whether jobs wait that are not planned, and half of those that are have begun."""
        planned = sum(job in self._plan.placed for job in cluster.waiting)
        return planned < self.most / 2 and any(
            job not in self._plan.placed and self._options_of(cluster, job) for job in cluster.waiting
        )

    def _wishes(self, cluster: Cluster) -> list[Wish]:
        """Return the jobs to be planned, those first that are short for their weight."""
        found = []
        for job in cluster.waiting:
            options = self._options_of(cluster, job)
            if options:
                shortest = min(seconds for _, seconds in options)
                waited = cluster.now - cluster.trace.jobs[job].arrival
                double = max(self.patience * shortest, _LEAST)
                found.append(Wish(job, options, min(1 + waited / double, _MOST_WEIGHT)))
        return heapq.nsmallest(self.most, found, key=lambda wish: (wish.shortest / wish.weight, wish.job))

    def _options_of(self, cluster: Cluster, job: int) -> tuple[tuple[int, float], ...]:
        options = self._options.get(job)
        if options is None:
            wanted = cluster.trace.jobs[job]
            profiles = profiles_for(cluster.trace, wanted, self._needs.get(job, 0.0))
            number = cluster.geometry.profile_index
            options = tuple((number(profile), wanted.times[profile.compute_slices]) for profile in profiles)
            self._options[job] = options
        return options

    def _expected(self, situation: Situation) -> float:
        """Return how many jobs arrive until what is planned is done, if they go on to arrive as they did so far."""
        work, elapsed = situation.work, situation.now - self._first
        if elapsed <= 0:
            return 0.0
        ends = work.offsets[1:]
        areas = sum(float(work.area[first:end].min()) for first, end in zip(work.offsets, ends, strict=False))
        expected = self._later_arrivals / elapsed * (areas + float(situation.ground.until.mean()))
        return min(expected, _MOST_EXPECTED)

    def _gpus(self, cluster: Cluster, wishes: list[Wish]) -> list[int]:
        """Return the GPUs to be looked at: all, or those with room, and those that are free first."""
        if self._ranking is None:
            return list(range(cluster.trace.gpus))
        found: set[int] = set()
        profiles = sorted({profile for wish in wishes for profile, _ in wish.options})
        self._add_with_room(found, profiles, _BEST_FITTING)
        popped = []
        while self._ends and len(found) < _MOST_GPUS:
            _, job, gpu = heapq.heappop(self._ends)
            if cluster.place(job) is not None:
                popped.append((cluster.expected_end(job), job, gpu))
                found.add(gpu)
        for entry in popped:
            heapq.heappush(self._ends, entry)
        if len(found) < _MOST_GPUS:
            self._add_with_room(found, profiles, _MOST_GPUS)
        return sorted(found)

    def _add_with_room(self, found: set[int], profiles: list[int], count: int) -> None:
        """Add for each profile the GPUs with room that have the fewest free slices."""
        assert self._ranking is not None
        for profile in profiles:
            self._ranking.first(profile, _Collected(found, count), below=_ALL)


class _Collected:
    """Takes what it is shown until it has seen enough."""

    def __init__(self, found: set[int], count: int) -> None:
        self._found = found
        self._left = count

    def __call__(self, gpu: int) -> bool:
        self._found.add(gpu)
        self._left -= 1
        return not self._left


def _free_slices(state: GpuState, profile: int) -> int | None:
    """Return how many compute slices are free, if there is room."""
    if not state.options(profile):
        return None
    return state.geometry.gpu.compute_slices - state.occupancy.used_compute
