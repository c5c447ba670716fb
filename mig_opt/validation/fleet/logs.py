"""Validator of logs: checks them against their traces, and shares nothing with the simulator."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from mig_opt.errors import Problem
from mig_opt.fleet.job import Job
from mig_opt.fleet.log import Log, LoggedRun, RunOutcome


def check_log(log: Log, *, tolerance: float = 1e-6) -> list[Problem]:
    """Return everything that is wrong with the jobs of a log; for the instances see :meth:`Log.as_schedule`.

    No job runs before it arrives, in two places at once or again after it is done; what goes on elsewhere does so in
    the same moment; and the work that was done, recomputed from the runs alone, is all of it where a job finished,
    what its memory allowed where that ran out, and the share at which it was to crash where it did. Nothing runs once
    it was turned away, nor on a GPU that is not there, whose driver does nothing either, nor where a job has no time,
    nor on an instance of another kind than its GPU.

    Parameters
    ----------
    log : Log
        Log of a simulation.
    tolerance : float
        Seconds by which times may differ, and by which work may differ at the speed of the run.
    """
    trace = log.trace
    work = log.work_done()
    runs: dict[int, list[tuple[int, LoggedRun]]] = defaultdict(list)
    for index, run in enumerate(log.runs()):
        runs[run.job].append((index, run))
    problems = [
        Problem(f"runs[{index}]", f"is on {run.placement} of {run.placement.profile.gpu}, but GPU {run.gpu} is none")
        for index, run in enumerate(log.runs())
        if run.placement.profile.gpu != trace.kind(run.gpu).name
    ]
    problems += _outage_problems(log, tolerance)
    for number, job in enumerate(trace.jobs):
        own = sorted(runs[number], key=lambda entry: (entry[1].begin, entry[1].end, entry[0]))
        problems += _order_problems(job, own, tolerance)
        problems += _work_problems(job, own, work, tolerance)
        done = [run.end for _, run in own if run.outcome is RunOutcome.FINISHED]
        noted = log.finished[number]
        if len(done) > 1:
            problems.append(Problem(f"jobs[{number}]", f"{job.name!r} was finished {len(done)} times"))
        if math.isnan(noted) == bool(done) or (done and noted != done[-1]):
            problems.append(Problem(f"jobs[{number}]", f"{job.name!r} ended at {done}, but {noted} is noted"))
        sent = log.rejected[number]
        if sent < job.arrival or (not math.isnan(sent) and (done or any(run.end > sent for _, run in own))):
            problems.append(
                Problem(f"jobs[{number}]", f"{job.name!r} was turned away at {sent}, but ran then or later")
            )
    return problems


def _order_problems(job: Job, runs: Sequence[tuple[int, LoggedRun]], tolerance: float) -> Iterator[Problem]:
    free, before = job.arrival, None
    for index, run in runs:
        path = f"runs[{index}]"
        if before is RunOutcome.FINISHED:
            yield Problem(path, f"{job.name!r} runs again after it was done")
        if run.begin < free - tolerance:
            yield Problem(path, f"{job.name!r} begins at {run.begin}, before {free}: its arrival, or its run before")
        if before is RunOutcome.MIGRATED and run.begin > free + tolerance:
            yield Problem(path, f"{job.name!r} migrated at {free}, but goes on only at {run.begin}")
        if run.end < run.begin:
            yield Problem(path, f"{job.name!r} ends at {run.end}, before it begins at {run.begin}")
        free, before = run.end, run.outcome
    if before is RunOutcome.MIGRATED:
        yield Problem(f"runs[{runs[-1][0]}]", f"{job.name!r} migrated, but does not go on")


def _work_problems(
    job: Job, runs: Sequence[tuple[int, LoggedRun]], work: Sequence[float], tolerance: float
) -> Iterator[Problem]:
    done, crashes = 0.0, iter(job.crashes)
    crash = next(crashes, 1.0)
    for index, run in runs:
        done += work[index]
        profile = run.placement.profile
        seconds = job.seconds(profile)
        if seconds is None:
            yield Problem(f"runs[{index}]", f"{job.name!r} has no time for {profile.name} of {profile.gpu}")
            continue
        allowed = min(job.share_within(profile.memory_gb), crash)
        close = tolerance * max(1.0, 1 / seconds)
        exact = run.outcome in {RunOutcome.FINISHED, RunOutcome.OUT_OF_MEMORY, RunOutcome.CRASHED}
        wanted = {RunOutcome.FINISHED: 1.0, RunOutcome.CRASHED: crash}.get(run.outcome, allowed)
        # A job that migrates to less memory than it uses is over there at once.
        moved_too_far = run.outcome is not RunOutcome.FINISHED and run.end == run.begin and done > allowed
        if done > allowed + close and not moved_too_far:
            yield Problem(f"runs[{index}]", f"{job.name!r} did {done:.9g} of its work where memory allows {allowed:g}")
        elif exact and abs(done - wanted) > close and not moved_too_far:
            yield Problem(
                f"runs[{index}]", f"{job.name!r} is {run.outcome.name} after {done:.9g} of its work, not {wanted:g}"
            )
        if run.outcome is not RunOutcome.MIGRATED:
            done = 0.0
        if run.outcome is RunOutcome.CRASHED:
            crash = next(crashes, 1.0)


def _outage_problems(log: Log, tolerance: float) -> Iterator[Problem]:
    """Yield the runs and operations on GPUs that are not there, and the runs that no GPU that left has ended."""
    outages = log.trace.outages
    if not outages and not log.count(RunOutcome.GPU_LEFT):
        return

    def absent(gpu: int, begin: float, end: float) -> bool:
        return any(o.gpu == gpu and begin < o.end - tolerance and end > o.begin + tolerance for o in outages)

    for index, run in enumerate(log.runs()):
        if absent(run.gpu, run.begin, run.end):
            yield Problem(f"runs[{index}]", f"runs from {run.begin} to {run.end}, while GPU {run.gpu} is not there")
        if run.outcome is RunOutcome.GPU_LEFT and all(run.end != outage.begin for outage in outages):
            yield Problem(f"runs[{index}]", f"ends at {run.end} since a GPU left, but none leaves then")
    for index, done in enumerate(log.operations()):
        if absent(done.gpu, done.begin, done.end):
            yield Problem(f"operations[{index}]", f"is done at {done.begin}, while GPU {done.gpu} is not there")
