"""Validator of admissions: checks a choice of accepted jobs against its trace, and shares nothing with the models."""

from __future__ import annotations

from collections.abc import Iterator

from mig_opt.errors import Problem, problems_of
from mig_opt.fleet.admission import AcceptedJob, Admission
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.model import Placement
from mig_opt.validation.placed import Span, clashes, too_late


def check_admission(trace: Trace, admission: Admission) -> list[Problem]:
    """Return everything that is wrong with an admission.

    Each accepted job is one of the trace and accepted once; its instance is one that the GPU can have, and of a profile
    that the job may run on from begin to end; and from its arrival to its end no instance of another job excludes it.
    That a job ends in the moment in which another one arrives is allowed.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> trace = Trace((Job("a", 0.0, {2: 30.0}), Job("b", 1.0, {4: 5.0})), get_gpu("A30"))
    >>> both = Admission((AcceptedJob("a", 0, "2g.12gb", 0), AcceptedJob("b", 0, "4g.24gb", 0)))
    >>> for problem in check_admission(trace, both):
    ...     print(problem)
    accepted[1]: 'b' on 4g.24gb@0 of GPU 0 begins at 1, while 'a' is on 2g.12gb@0 until 30
    """
    jobs = {job.name: job for job in trace.jobs}
    problems = list(too_late_jobs(trace))
    seen: set[str] = set()
    held: list[Span[Placement, tuple[int, str]]] = []
    for index, entry in enumerate(admission.accepted):
        path, job = f"accepted[{index}]", jobs.get(entry.job)
        if job is None or entry.job in seen:
            wrong = "is accepted twice" if entry.job in seen else "is no job of the trace"
            problems.append(Problem(path, f"{entry.job!r} {wrong}"))
            continue
        seen.add(entry.job)
        found = list(_place_problems(trace, job, entry, path))
        problems += found
        if not found:
            place = trace.one_kind.placement(entry.profile, entry.start)
            end = job.arrival + job.times[place.profile.compute_slices]
            held.append(Span(job.arrival, end, entry.gpu, place, (index, entry.job)))
    for later, earlier in clashes(held, 0.0):
        index, name = later.item
        where = f"{name!r} on {later.key} of GPU {later.gpu} begins at {later.begin:g}"
        there = (f"{other.item[1]!r} is on {other.key} until {other.end:g}" for other in earlier)
        problems.append(Problem(f"accepted[{index}]", f"{where}, while {' and '.join(there)}"))
    return problems


def too_late_jobs(trace: Trace) -> Iterator[Problem]:
    """Yield a problem for each job of a trace that arrives so late that its times are lost in the rounding of ends.

    A trace of several kinds of GPUs is refused.
    """
    for index, job in enumerate(trace.jobs if isinstance(trace, Trace) and trace.one_kind else ()):
        shortest = min(job.times.values())
        if too_late(job.arrival, job.arrival + shortest, shortest):
            message = f"is {job.arrival:g} s, where {shortest:g} s more are lost in rounding; count from a later moment"
            yield Problem(f"jobs[{index}].arrival", message)


def _place_problems(trace: Trace, job: Job, entry: AcceptedJob, path: str) -> Iterator[Problem]:
    if not 0 <= entry.gpu < trace.gpus:
        yield Problem(path, f"GPU {entry.gpu} is none of the {trace.gpus} of the fleet")
    wrong = problems_of(trace.one_kind.placement, entry.profile, entry.start)
    yield from (Problem(path, problem.message) for problem in wrong)
    if not wrong and (profile := trace.one_kind.profile(entry.profile)) not in trace.whole_run_profiles(job):
        yield Problem(path, f"{job.name!r} may not run on {profile.name}")
