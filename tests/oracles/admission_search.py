"""The most that a fleet without a queue can accept, by trying everything; a policy that carries out an admission."""

import itertools
from collections.abc import Iterable, Sequence

from mig_opt import Job, Placement, Trace
from mig_opt.fleet.admission import Admission, AdmissionGoal, admission_weights
from mig_opt.simulation import Cluster, Policy

Held = tuple[int, Placement, float, float]
"""GPU, placement, begin and end of a job that was accepted."""


def placements(trace: Trace, job: Job) -> list[Placement]:
    """Every place of a GPU on which a job may run."""
    return [Placement(profile, start) for profile in trace.whole_run_profiles(job) for start in profile.starts]


def most_on_one_place(trace: Trace, goal: AdmissionGoal) -> float:
    """The greatest weight of jobs that each stay where they begin."""
    weights = admission_weights(trace, goal)

    def best(number: int, held: tuple[Held, ...]) -> float:
        if number == len(trace.jobs):
            return 0.0
        job = trace.jobs[number]
        found = best(number + 1, held)
        for gpu, place in itertools.product(range(trace.gpus), placements(trace, job)):
            end = job.arrival + job.times[place.profile.compute_slices]
            if not any(
                other_gpu == gpu and place.excludes(other) and until > job.arrival
                for other_gpu, other, _, until in held
            ):
                entry = (gpu, place, job.arrival, end)
                found = max(found, weights[number] + best(number + 1, (*held, entry)))
        return found

    return best(0, ())


def most_with_migration(trace: Trace, goal: AdmissionGoal) -> float:
    """The greatest weight of jobs that fit on the fleet in each moment; each runs for its shortest time."""
    weights = admission_weights(trace, goal)
    jobs = trace.jobs
    ends = [job.arrival + min(job.times[p.compute_slices] for p in trace.whole_run_profiles(job)) for job in jobs]

    def fits(chosen: Sequence[int]) -> bool:
        moments = {jobs[number].arrival for number in chosen}
        return all(
            packable(trace, [number for number in chosen if jobs[number].arrival <= moment < ends[number]])
            for moment in moments
        )

    subsets: Iterable[tuple[int, ...]] = itertools.chain.from_iterable(
        itertools.combinations(range(len(jobs)), size) for size in range(len(jobs) + 1)
    )
    return max(sum(weights[number] for number in chosen) for chosen in subsets if fits(chosen))


def packable(trace: Trace, numbers: Sequence[int]) -> bool:
    """True if jobs fit on the fleet at once."""

    def place(rest: Sequence[int], held: tuple[tuple[int, Placement], ...]) -> bool:
        if not rest:
            return True
        options = itertools.product(range(trace.gpus), placements(trace, trace.jobs[rest[0]]))
        return any(
            place(rest[1:], (*held, (gpu, where)))
            for gpu, where in options
            if not any(other == gpu and where.excludes(there) for other, there in held)
        )

    return place(numbers, ())


class Replay(Policy):
    """Accepts the jobs of an admission, each at its place."""

    def __init__(self, admission: Admission) -> None:
        self.places = {entry.job: entry for entry in admission.accepted}

    def arrived(self, cluster: Cluster, job: int) -> None:
        entry = self.places.get(cluster.trace.jobs[job].name)
        if entry is not None:
            cluster.start(job, entry.gpu, cluster.geometry.index(entry.profile, entry.start))

    def rejected(self, cluster: Cluster, job: int) -> None:
        assert cluster.trace.jobs[job].name not in self.places
