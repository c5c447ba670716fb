"""Schedulers for which only GPUs without jobs get other instances."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mig_opt.arguments import wrong_number
from mig_opt.errors import InputError, Problem
from mig_opt.fleet.trace import Job
from mig_opt.gpu.geometry import Geometry, GpuState
from mig_opt.heuristics.fleet.dividing import Divider, smallest_instances
from mig_opt.heuristics.fleet.draining import Draining
from mig_opt.heuristics.fleet.estimates import Estimates, predicted
from mig_opt.heuristics.fleet.partitioning import fleet_partitions
from mig_opt.heuristics.fleet.queueing import profile_for
from mig_opt.heuristics.fleet.waiting import Kind, Waiting, WaitingJobs
from mig_opt.simulation.cluster import Cluster, Policy
from mig_opt.simulation.instances import Ranking


class View(NamedTuple):
    """What the choice of a GPU depends on.

    Attributes
    ----------
    state : GpuState
        Its instances.
    bound : int
        PCIe-bound jobs on it.
    marked : bool
        Whether it takes no new jobs because it is to be reconfigured.
    """

    state: GpuState
    bound: int
    marked: bool


class ReconfiguringPolicy(Policy):
    """Jobs use the instances that there are; only a GPU on which nothing runs gets others.

    The stages are those of the PCIe-aware paper (section 4.2). On each arrival and each end the records are brought up
    to date (stage 1). Then marked GPUs on which nothing runs any more are divided anew (stage 2), and each waiting job,
    the first one first, looks for an idle instance of its profile (stage 3) and runs or is skipped (stage 4); both
    again until nothing changes. What the paper leaves open is decided so:

    * A job is *unmatched* if no GPU that is not marked has an idle instance of its profile. It marks a GPU: of those
      that could have more instances of the profile than they have an idle one, else the one of the least estimated
      end, then the least index. One GPU is marked for a profile at a time; the mark moves if another gets idle first,
      and goes when no job waits for the profile.
    * GPUs are marked when all waiting jobs have had their turn, so that none misses an instance that is there.
    * An idle marked GPU is divided so that the most unmatched jobs find an instance. If some of them starve, the
      first of these gets one in any case. Of equal ways one is taken that uses the most instances that are there; what
      is left is filled with the smallest instances.
    * A marked GPU is the second choice, for jobs that are expected to end no later than those that run there. That may
      let a job pass one of its kind that takes longer.
    * An unmatched job that starves takes the smallest larger instance that is idle, if the trace has a time for it.
    * Estimated ends follow from the times in the trace and the predicted slowdowns; progress is not looked at.
    * A job that ran out of memory waits again, last in the queue, for its smallest profile with as much memory as it
      needed.

    Parameters
    ----------
    wait_threshold : float, optional
        Seconds; a job that has waited longer starves. None: no job does.
    partition : str or sequence of str, optional
        Instances at the start, such as ``4+2+1``, of all GPUs or of each. By default as many of the smallest as there
        can be.

    Raises
    ------
    InputError
        With every problem of the options.
    """

    delay_threshold: float | None = None
    """Largest predicted slowdown with which a job starts that does not starve; None: any."""

    def __init__(self, *, wait_threshold: float | None = 60.0, partition: str | Sequence[str] | None = None) -> None:
        problems = list(wrong_threshold("wait_threshold", wait_threshold, "seconds", 0.0))
        if problems:
            raise InputError(problems)
        self.wait_threshold = wait_threshold
        self.partition = partition

    @abstractmethod
    def factor(self, cluster: Cluster, job: Job) -> float | None:
        """Return the slowdown of a job for each PCIe-bound job on its GPU; None if it is not PCIe-bound."""

    @abstractmethod
    def order(self, view: View, free: int) -> int:
        """Return how good a GPU is for a job that ``free`` other PCIe-bound jobs do not slow down, least first."""

    # What is heard

    def begin(self, cluster: Cluster) -> None:
        """Divide the GPUs."""
        geometry, gpus = cluster.geometry, cluster.trace.gpus
        self._numbers = {profile.name: number for number, profile in enumerate(geometry.profiles)}
        self._divider = Divider(geometry)
        self._larger = tuple(self._larger_than(geometry, profile) for profile in range(len(geometry.profiles)))
        self._all_of = tuple(map(geometry.mask, geometry.placements_of))
        # On a GPU with room there are fewer others than that.
        self._most = max(self._divider.most)
        self._idle_lane = self._most * len(geometry.profiles)
        self._kinds: dict[tuple[int, float | None], Kind] = {}
        self._queue = WaitingJobs()
        self._estimates = Estimates(gpus)
        self._marks: dict[int, int] = {}
        self._marked: set[int] = set()
        self._draining = Draining(gpus)
        self._views = [View(state, 0, False) for state in cluster.states]
        self._ranking = Ranking(self._views, self._key)
        if self.partition is None:
            smallest = smallest_instances(geometry.gpu)
            partitions = [[geometry.index(profile.name, start) for profile, start in smallest]] * gpus
        else:
            partitions = [
                [geometry.index(placement.profile.name, placement.start) for placement in placements]
                for placements in fleet_partitions(cluster.trace, self.partition)
            ]
        for gpu, places in enumerate(partitions):
            self._create(cluster, gpu, places)

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Queue the job, and place what can be placed."""
        self._admit(cluster, job, 0.0)
        self._activate(cluster)

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Place what can be placed."""
        self._estimates.remove(gpu, job, cluster.now)
        self._look(cluster, gpu)
        self._activate(cluster)

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Queue the job again, and place what can be placed."""
        self._admit(cluster, job, needed_gb)
        self.finished(cluster, job, gpu, placement)

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Place what can be placed."""
        self.finished(cluster, job, gpu, placement)

    def _admit(self, cluster: Cluster, job: int, least_gb: float) -> None:
        wanted = cluster.trace.jobs[job]
        profile = profile_for(cluster.trace, wanted, least_gb)
        if profile is not None:
            factor = self.factor(cluster, wanted)
            kind = self._kind(self._numbers[profile.name], factor)
            self._queue.add(kind, job, cluster.now, factor, wanted.times[profile.compute_slices])

    def _kind(self, profile: int, factor: float | None) -> Kind:
        found = self._kinds.get((profile, factor))
        if found is None:
            slowdowns = [predicted(factor, others + 1) for others in range(self._most)]
            free = sum(slowdown <= 1 for slowdown in slowdowns)
            most = sum(self.delay_threshold is None or slowdown <= self.delay_threshold for slowdown in slowdowns)
            # Slowdowns rise with the number of others. Alone no job is skipped: nothing better can come.
            found = self._kinds[profile, factor] = Kind(profile, max(0, free - 1), max(0, most - 1))
        return found

    # Stages 2 to 4, until nothing changes

    def _activate(self, cluster: Cluster) -> None:
        changed = True
        while changed:
            self._reconfigure(cluster)
            changed = self._serve(cluster)

    def _reconfigure(self, cluster: Cluster) -> None:
        """Divide marked GPUs on which nothing runs any more (stage 2)."""
        for profile, gpu in list(self._marks.items()):
            counts = self._queue.counts()
            idle = not cluster.states[gpu].busy
            if profile in counts and not idle:
                continue
            unmatched = {wanted: count for wanted, count in counts.items() if not self._matched(wanted)}
            self._unmark(cluster, profile)
            if profile in counts and unmatched:
                first = self._first_starving(cluster, unmatched)
                self._create(cluster, gpu, self._divider.divide(cluster.states[gpu].idle, unmatched, first))

    def _first_starving(self, cluster: Cluster, unmatched: Mapping[int, int]) -> int | None:
        """Return the profile of the first of the unmatched jobs that starve."""
        heads = self._queue.heads()
        for kind in sorted(heads, key=heads.__getitem__):
            if kind.profile in unmatched and self._starves(cluster, self._queue.head(kind)[1]):
                return kind.profile
        return None

    def _serve(self, cluster: Cluster) -> bool:
        """Place what can be placed (stages 3 and 4), mark GPUs for the others, and say if another round can help."""
        changed = False
        left: list[int] = []
        heads = self._queue.heads()
        while heads:
            kind = min(heads, key=heads.__getitem__)
            if not self._place(cluster, kind):
                left.append(kind.profile)
                del heads[kind]
                continue
            changed = True
            if kind in self._queue:
                heads[kind] = self._queue.head(kind)[1].ticket
            else:
                del heads[kind]
        # Not before all have had their turn: an idle GPU may have instances for those further back.
        for profile in left:
            changed |= self._mark(cluster, profile)
        return changed

    def _place(self, cluster: Cluster, kind: Kind) -> bool:
        """Start a job of a kind: the first one, or on a marked GPU the first that is short enough."""
        job, waiting = self._queue.head(kind)
        starving = self._starves(cluster, waiting)
        gpu = self._best(kind.profile, kind.free)
        if gpu is not None and (starving or self._views[gpu].bound <= kind.most):
            self._start(cluster, kind, job, gpu, kind.profile)
            return True
        for marked, begin, end in self._marked_with(cluster, kind.profile, kind.free):
            bound = self._views[marked].bound
            for short, patient in self._queue.short(kind, end - begin):
                fits = begin + patient.seconds * predicted(patient.factor, bound + 1) <= end
                if fits and (bound <= kind.most or self._starves(cluster, patient)):
                    self._start(cluster, kind, short, marked, kind.profile)
                    return True
        return gpu is None and starving and self._place_on_larger(cluster, kind, job, waiting.factor)

    def _place_on_larger(self, cluster: Cluster, kind: Kind, job: int, factor: float | None) -> bool:
        """Start a job that starves on the smallest larger instance."""
        times = cluster.trace.jobs[job].times
        for profile, size in self._larger[kind.profile]:
            if size not in times:
                continue
            gpu = self._best(profile, kind.free)
            if gpu is None:
                for marked, begin, end in self._marked_with(cluster, profile, kind.free):
                    if begin + times[size] * predicted(factor, self._views[marked].bound + 1) <= end:
                        gpu = marked
                        break
            if gpu is not None:
                self._start(cluster, kind, job, gpu, profile)
                return True
        return False

    def _marked_with(self, cluster: Cluster, profile: int, free: int) -> list[tuple[int, float, float]]:
        """Return the marked GPUs with an idle instance, the best first: when a job would begin, and when they end."""
        found = []
        for gpu in self._marked:
            if cluster.states[gpu].idle & self._all_of[profile]:
                begin = max(cluster.now, cluster.ready(gpu, cluster.states[gpu].idle_of(profile)[0]))
                found.append((self.order(self._views[gpu], free), gpu, begin, self._estimates.ends[gpu]))
        return [(gpu, begin, end) for _, gpu, begin, end in sorted(found)]

    def _mark(self, cluster: Cluster, profile: int) -> bool:
        """Mark a GPU for an unmatched job, and return whether it is idle."""
        if self._matched(profile):
            return False
        idle = self._ranking.best(self._idle_lane + profile)
        gpu = idle
        if idle is None and profile not in self._marks:
            all_of, most = self._all_of[profile], self._divider.most[profile]
            gpu = self._draining.first(lambda instances: (instances & all_of).bit_count() < most)
        if gpu is None:
            return False
        if profile in self._marks:
            self._unmark(cluster, profile)
        self._marks[profile] = gpu
        self._marked.add(gpu)
        self._look(cluster, gpu)
        return idle is not None

    def _unmark(self, cluster: Cluster, profile: int) -> None:
        gpu = self._marks.pop(profile)
        self._marked.discard(gpu)
        self._look(cluster, gpu)

    # Small steps

    def _key(self, view: View, lane: int) -> int | None:
        """Return the order of GPUs with an idle instance, for profile and ``free``, or of idle GPUs to divide anew."""
        if lane >= self._idle_lane:
            profile = lane - self._idle_lane
            instances = (view.state.idle & self._all_of[profile]).bit_count()
            more = not view.state.busy and not view.marked and instances < self._divider.most[profile]
            return 0 if more else None
        profile, free = divmod(lane, self._most)
        return None if view.marked or not view.state.idle & self._all_of[profile] else self.order(view, free)

    def _best(self, profile: int, free: int) -> int | None:
        return self._ranking.best(profile * self._most + free)

    def _matched(self, profile: int) -> bool:
        """Whether a GPU that is not marked has an idle instance of a profile."""
        return self._best(profile, self._most - 1) is not None

    def _starves(self, cluster: Cluster, waiting: Waiting) -> bool:
        return self.wait_threshold is not None and cluster.now - waiting.since > self.wait_threshold

    def _start(self, cluster: Cluster, kind: Kind, job: int, gpu: int, profile: int) -> None:
        place = cluster.states[gpu].idle_of(profile)[0]
        begin = max(cluster.now, cluster.ready(gpu, place))
        seconds = cluster.trace.jobs[job].times[cluster.geometry.profiles[profile].compute_slices]
        cluster.start(job, gpu, place)
        factor = self._queue.remove(kind, job).factor
        self._estimates.add(gpu, job, factor, begin=begin, seconds=seconds, now=cluster.now)
        self._look(cluster, gpu)

    def _create(self, cluster: Cluster, gpu: int, places: Iterable[int]) -> None:
        """Give a GPU without jobs some instances; those in the way go."""
        for place in places:
            cluster.create(gpu, place)
        self._look(cluster, gpu)

    def _look(self, cluster: Cluster, gpu: int) -> None:
        """Bring what is known of a GPU up to date."""
        state, marked = cluster.states[gpu], gpu in self._marked
        self._views[gpu] = View(state, self._estimates.bound[gpu], marked)
        self._ranking.changed.add(gpu)
        if marked:
            self._draining.drop(gpu)
        else:
            self._draining.put(gpu, state.busy | state.idle, self._estimates.ends[gpu])

    def _larger_than(self, geometry: Geometry, profile: int) -> tuple[tuple[int, int], ...]:
        """Return the profiles that have all that one has, and more, the smallest first; with their compute slices."""
        own = geometry.profiles[profile]
        found = [
            (other.compute_slices, other.memory_slices, -number)
            for number, other in enumerate(geometry.profiles)
            if other.compute_slices >= own.compute_slices
            and other.memory_slices >= own.memory_slices
            and (other.compute_slices, other.memory_slices) != (own.compute_slices, own.memory_slices)
            and set(other.attributes) >= set(own.attributes)
        ]
        return tuple((-number, size) for size, _, number in sorted(found))


def wrong_threshold(path: str, value: object, unit: str, least: float) -> Iterator[Problem]:
    """Yield a problem unless a threshold is None or a number from ``least`` on."""
    if value is not None:
        wanted = f"{unit} from {least:g} on, or None for no threshold"
        yield from wrong_number(path, value, wanted, above=math.nextafter(least, -math.inf))
