"""Backfilling in place of plans: what the planner does where run times are hardly known.

A plan keeps instances free for jobs that are to come; where nobody knows when these can begin, that costs more than it
gains. Then each job begins as soon as there is room for it, placed and moved by the rules of
:class:`~mig_opt.heuristics.fleet.fragmentation_aware.FragmentationAware`.
"""

from __future__ import annotations

from mig_opt.heuristics.fleet.fragmentation_aware import FragmentationAware
from mig_opt.heuristics.fleet.planning.calibration import Calibration
from mig_opt.heuristics.fleet.planning.choice import JobChooser
from mig_opt.heuristics.fleet.planning.problem import area
from mig_opt.simulation.fleet.cluster import Cluster

# Standard deviation of the logarithms of run times from which on plans that only choose an order are of no use.
_MOST_ERROR = 0.3
_EXACT = 0.02  # the same, up to which one time for all jobs is believed
_LEAST_ALIKE = 4  # jobs of which all sizes have one declared time, from which on that says nothing
# A job goes first if it is longer than so many times the seconds that all known work takes the whole fleet.
_PRESSING = 1.5


class Backfilling:
    """Backfilling on the cluster of a simulation, and whether plans would be of use."""

    def __init__(self, cluster: Cluster, chooser: JobChooser, calibration: Calibration) -> None:
        # To balance the load of a single GPU would only keep instances from where they fit best.
        self._rules = FragmentationAware(backfill=True, patience=None, load_balancing=cluster.trace.gpus > 1)
        self._rules.watch(cluster)
        self._ranking = cluster.ranking(self._rules.key)
        self._calibration = calibration
        self._chooser = chooser
        # The declared seconds by size, as long as they are those of all jobs.
        self._declared: dict[int, float] = {}
        self._alike = True
        self._arrived = 0

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Note what a job declares."""
        self._arrived += 1
        for profile in cluster.trace.profiles(cluster.trace.jobs[job]):
            seconds = cluster.trace.jobs[job].times[profile.compute_slices]
            self._alike &= self._declared.setdefault(profile.compute_slices, seconds) == seconds

    def plans_are_of_use(self, cluster: Cluster) -> bool:
        """Return True if what is known of run times is enough to plan with.

        Where jobs slow each other down on the link, or where declared times say how much faster each job is on a
        larger instance, plans gain by places and sizes, however wrong these times are.
        """
        jobs, error = cluster.trace.jobs, self._calibration.error
        if any(cluster.trace.pcie_factor(jobs[job]) > 0 for job in cluster.waiting):
            return True
        one_time = len(self._declared) > len(set(self._declared.values())) == 1
        if one_time and self._alike and self._arrived >= _LEAST_ALIKE:
            return error is not None and error <= _EXACT
        if error is None or error <= _MOST_ERROR:
            return True
        return not self._alike and any(
            jobs[job].profile is None and len(set(jobs[job].times.values())) > 1 for job in cluster.waiting
        )

    def serve(self, cluster: Cluster) -> None:
        """Start the jobs for which there is room on their smallest size: long ones if they press, then by length.

        None overtakes an urgent one.
        """
        choice = self._chooser.choose(cluster, 0.0, len(cluster.waiting))
        pressing = _PRESSING * (choice.work + self._work_that_runs(cluster))
        refused: set[int] = set()
        for waiting in sorted(choice.jobs, key=lambda own: 0 if own.urgent else 1 if own.shortest > pressing else 2):
            profile = waiting.modes[0][0]
            gpu = None if profile in refused else self._ranking.best(profile)
            if gpu is not None:
                cluster.start(waiting.job, gpu, self._rules.pick(cluster.states[gpu], profile))
            elif waiting.urgent:
                return
            else:
                refused.add(profile)

    def repair(self, cluster: Cluster, gpu: int) -> bool:
        """Migrate jobs after the end of a run on a GPU, if that helps; return True if any migrated."""
        return self._rules.migrate_to_repair(cluster, gpu)

    def _work_that_runs(self, cluster: Cluster) -> float:
        """Return for how many seconds the jobs that run would keep the whole fleet busy."""
        work = 0.0
        for gpu in range(cluster.trace.gpus):
            for job in cluster.jobs_on(gpu):
                place = cluster.place(job)
                assert place is not None
                profile = cluster.geometry.profiles[cluster.geometry.profile_of[place[1]]]
                left = cluster.expected_end(job, self._calibration.factor(job)) - cluster.now
                work += area(cluster.trace, profile, left)
        return work
