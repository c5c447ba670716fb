"""The simulator: asks a policy at each decision of a simulation of a trace."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from mig_opt.errors import InputError, Problem, problems_of, raise_any
from mig_opt.fleet.job import Job
from mig_opt.fleet.log import Log, joined_log
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.fleet.trace import Trace, TracePart, check_jobs
from mig_opt.gpu.geometry import geometry_of
from mig_opt.method.registry import get_policy
from mig_opt.method.shown import Shown
from mig_opt.rules import wrong_class, wrong_flag, wrong_integer, wrong_number, wrong_type
from mig_opt.simulation.fleet.cluster import Cluster, Policy
from mig_opt.simulation.fleet.course import Course, Decision, Observer
from mig_opt.simulation.fleet.metrics import KindMetrics, Metrics, PowerModel, measure, measure_kinds
from mig_opt.simulation.fleet.options import option_problems, policy_label
from mig_opt.simulation.fleet.router import Arrivals, Router

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Simulation(Shown):
    """Outcome of one simulation.

    Attributes
    ----------
    trace : Trace
        The jobs and the fleet.
    policy : str
        Name of the policy.
    log : Log
        Runs and operations.
    unfinished : tuple of str
        Jobs that were never done: the policy left them waiting, or they ran out of memory too often.
    events : int
        Number of events.
    runtime_s : float
        Seconds that the simulation took.
    options : mapping of str to object
        Options of the policy that were set.
    reject : bool
        True if the fleet turned jobs away in place of letting them wait.
    """

    trace: Trace
    policy: str
    log: Log
    unfinished: tuple[str, ...]
    events: int
    runtime_s: float
    options: Mapping[str, object] = field(default_factory=dict, hash=False)
    reject: bool = False

    @property
    def label(self) -> str:
        """The policy with its options, such as ``static:backfill=true``."""
        return policy_label(self.policy, self.options)

    @property
    def rejected(self) -> tuple[str, ...]:
        """Names of the jobs that were turned away."""
        return self.log.turned_away()

    @cached_property
    def metrics(self) -> Metrics:
        """Waiting times, flow times, utilisation, energy (:class:`~mig_opt.simulation.PowerModel`) and so on."""
        return measure(self.log)

    @cached_property
    def kinds(self) -> dict[str, KindMetrics]:
        """Figures of each kind of GPU, by its name."""
        return measure_kinds(self.log)

    def metrics_with(self, power: PowerModel) -> Metrics:
        """Return the metrics with energy by another power model."""
        return measure(self.log, power)


def simulate(
    trace: Trace,
    policy: str | Policy = "fragmentation-aware",
    *,
    failure_limit: int = 100,
    observer: Observer | None = None,
    state: FleetState | None = None,
    busy_until: float | None = None,
    reject: bool = False,
    **options: object,
) -> Simulation:
    """Let a scheduler run the jobs of a trace.

    Parameters
    ----------
    trace : Trace
        The jobs that arrive, and the fleet.
    policy : str or Policy
        A name of :func:`mig_opt.methods`, or a scheduler of your own (see :class:`mig_opt.simulation.Policy`).
    failure_limit : int
        A job that has run out of memory so often is given up.
    observer : callable, optional
        Called with the cluster after each event.
    state : FleetState, optional
        Instances with which the fleet starts, in place of empty GPUs. What runs on them are jobs of the trace of the
        result; idle ones can be used. Schedulers that partition the GPUs themselves are refused.
    busy_until : float, optional
        Second at which the jobs on instances of the state end; needed if there are any.
    reject : bool
        Admission without a queue: a job to which the scheduler gives no place in the moment in which it arrives is
        turned away for good, and so is one that loses its place (it ran out of memory) and gets no other at once.
        Jobs that arrive in one moment are judged when all of them are there, the first one first. By default jobs wait.
    **options
        Arguments of the policy, if it is given by name.

    Returns
    -------
    Simulation
        The same for the same arguments, whenever it is run.

    Raises
    ------
    InputError
        With every problem of the arguments.
    PolicyError
        If the policy does something impossible, such as placing two jobs on one slice.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> jobs = (Job("a", 0.0, {3: 10.0}, "3g.20gb"), Job("b", 1.0, {4: 5.0}, "4g.20gb"))
    >>> done = simulate(Trace(jobs, get_gpu("A100")), "first-fit")
    >>> [(run.job, str(run.placement), round(run.end, 2)) for run in done.log.runs()]
    [(0, '3g.20gb@0', 10.2), (1, '4g.20gb@0', 15.62)]

    Without a queue the second job is turned away: 4g starts at slice 0 only.

    >>> done = simulate(Trace(jobs, get_gpu("A100")), "first-fit", reject=True)
    >>> done.rejected, done.metrics.acceptance.jobs
    (('b',), 0.5)
    """
    problems = list(wrong_integer("failure_limit", failure_limit, 1, 10**9))
    problems += wrong_flag("reject", reject)
    if observer is not None and not callable(observer):
        problems.append(wrong_type("observer", observer, "a function of a Cluster"))
    raise_any([*problems_of(_decider, trace, policy, options, reject=reject), *problems])
    decider = _decider(trace, policy, options, reject=reject)
    running = _RunningJobs()
    if state is not None:
        trace, running = _with_running_jobs(trace, state, busy_until)
        if getattr(decider, "partitions_gpus", False):
            message = "partitions the GPUs itself, and cannot start with instances of others"
            raise InputError([Problem("policy", f"{policy} {message}; choose another one, or leave the state out")])
    elif busy_until is not None:
        raise InputError([Problem("busy_until", "is for a state; leave it out")])
    begin = time.perf_counter()
    name = policy if isinstance(policy, str) else type(policy).__name__
    parts = trace.parts()
    if not parts:
        check_jobs(trace)
    clusters = [_cluster(part, running.idle) for part in parts]
    deciders = _of_parts(decider, trace)
    offering = any(callable(getattr(decider, name, None)) for name in ("withdrawn", "rejected"))
    at_start = [held.gpu for held in running.busy]
    router = Arrivals(clusters[0]) if trace.gpu else Router(clusters, parts, offering=offering, running=at_start)
    course = Course(clusters[0], failure_limit, observer, reject, router)
    for decision in course.decisions():
        at = decision.part
        if state is None or not running.answer(decision, clusters[at], parts[at]):
            decision.tell(deciders[at], clusters[at])
    log = joined_log(trace, parts, [cluster.log for cluster in clusters])
    runtime = time.perf_counter() - begin
    _LOG.info("%s on %s: %d events in %.3f s", name, trace.name, course.events, runtime)
    return Simulation(trace, name, log, log.unfinished(), course.events, runtime, options, reject)


def check_policy(trace: Trace, policy: str | Policy, *, reject: bool = False, **options: object) -> None:
    """Refuse a policy that cannot begin on a trace, before a long simulation; arguments as of :func:`simulate`.

    Some problems of its options show only beside the trace, such as a partition that its GPUs do not have.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu
    >>> check_policy(Trace((Job("a", 0.0, {4: 10.0}),), get_gpu("A30")), "static", partition="1+2+1")
    Traceback (most recent call last):
    ...
    mig_opt.errors.InputError: partition: A30-24GB has no partition '1+2+1'; did you mean 2+1+1 or 1+1+2? Order counts
    """
    decider = _decider(trace, policy, options, reject=reject)
    for own, part in zip(_of_parts(decider, trace), trace.parts(), strict=True):
        own.begin(_cluster(part))


def _of_parts(policy: Policy, trace: Trace) -> list[Policy]:
    """Return a policy for each kind of GPU: itself and copies, or what it makes of its options about single GPUs."""
    parts, cut = trace.parts(), getattr(policy, "of_gpus", None)
    if cut and not trace.gpu:
        return [cut(trace, part.gpus) for part in parts]
    return [policy, *(copy.copy(policy) for _ in parts[1:])]


class _RunningJobs(NamedTuple):
    """The instances of the jobs that run at the start, which are the first ones of the trace; and idle instances."""

    busy: tuple[HeldInstance, ...] = ()
    idle: tuple[HeldInstance, ...] = ()

    def answer(self, decision: Decision, cluster: Cluster, part: TracePart) -> bool:
        """Create the idle instances at the begin; start such a job where it runs, and return True: it is decided."""
        for held in self.idle if decision.event == "begin" else ():
            if held.gpu in part.gpus:
                cluster.create(held.gpu - part.gpus.start, cluster.geometry.index(held.profile, held.start))
        # One that lost its GPU later is the scheduler's.
        if decision.event != "arrived" or cluster.now or part.jobs[decision.arguments[0]] >= len(self.busy):
            return False
        (job,) = decision.arguments
        held = self.busy[part.jobs[job]]
        cluster.start(job, held.gpu - part.gpus.start, cluster.geometry.index(held.profile, held.start))
        return True


def _with_running_jobs(trace: Trace, state: FleetState, busy_until: float | None = None) -> tuple[Trace, _RunningJobs]:
    """Return a trace on the GPUs of a state, with a job for each instance that something runs on.

    The simulator creates the instances at second 0, one after the other on each GPU, which takes the driver's time; the
    jobs on them are that much shorter, so that they end at ``busy_until``. States of other kinds of GPUs are refused.
    """
    raise_any(wrong_class("state", state, FleetState, "read(FleetState, 'fleet.json')"))
    problems: list[Problem] = []
    names = tuple(trace.kind(gpu).name for gpu in range(trace.gpus))
    if state.gpu != trace.gpu:
        kinds = " and ".join(dict.fromkeys(state.names))
        problems.append(Problem("state", f"is of {kinds}, and the trace of {' and '.join(dict.fromkeys(names))}"))
    elif state.kinds and state.names != names:
        problems.append(Problem("state", f"has the GPUs {', '.join(state.names)}; give the trace pools in that order"))
    busy, idle = state.busy().instances, state.idle
    if busy and busy_until is None:
        message = f"say after how many seconds the {len(busy)} instances in use are free"
        problems.append(Problem("busy_until", message))
    if busy_until is not None:
        problems += wrong_number("busy_until", busy_until, "a number of seconds > 0", above=0)
    gone = {outage.gpu for outage in trace.outages if not outage.begin} & {held.gpu for held in busy}
    message = "which leaves at second 0; leave them out, or let it leave later"
    problems += (Problem("state", f"has jobs on GPU {gpu}, {message}") for gpu in sorted(gone))
    raise_any(problems)
    known = {job.name for job in trace.jobs}
    jobs = []
    passed: dict[int, float] = {}
    for held in (*idle, *busy):
        profile = state.kind(held.gpu).profile(held.profile)
        passed[held.gpu] = passed.get(held.gpu, 0.0) + trace.operations.of("create", profile)
        if not held.idle:
            seconds = max((busy_until or 0.0) - passed[held.gpu], 1e-3)
            name = held.name if held.name and held.name not in known else f"{held.profile}@{held.start} of {held.gpu}"
            known.add(name)
            kind = state.kind(held.gpu).name
            jobs.append(Job(name, 0.0, {kind: {profile.compute_slices: seconds}}, {kind: held.profile}))
    return trace.replace(jobs=(*jobs, *trace.jobs), gpus=state.gpus), _RunningJobs(busy, idle)


def check_own_policy(policy: object, options: Mapping[str, object]) -> None:
    """Refuse what is no scheduler of somebody else, and options for one."""
    if isinstance(policy, type) or not callable(getattr(policy, "arrived", None)):
        raise InputError([wrong_type("policy", policy, "the name of a policy or an object with the methods of Policy")])
    if options:
        raise InputError(Problem(option, "is for policies that are given by name") for option in options)


def _decider(trace: Trace, policy: str | Policy, options: Mapping[str, object], *, reject: bool) -> Policy:
    """Return a policy; refuse one that would still wait for a job that was turned away."""
    problems = list(wrong_class("trace", trace, Trace))
    if isinstance(policy, str):
        problems += option_problems(get_policy(policy), options)
    else:
        problems += problems_of(check_own_policy, policy, options)
    raise_any(problems)
    decider = get_policy(policy).load()(**options) if isinstance(policy, str) else policy
    if reject and not callable(getattr(decider, "rejected", None)):
        message = f"{type(decider).__name__} has no method rejected(cluster, job), so it would wait for ever for jobs"
        raise InputError([Problem("policy", f"{message} that are turned away; choose another one, or let jobs wait")])
    return decider


def _cluster(part: TracePart, idle: Iterable[HeldInstance] = ()) -> Cluster:
    gpu = part.trace.one_kind
    names = [one.name for one in gpu.profiles_of(part.trace.profile_set)]
    names += [held.profile for held in idle if held.gpu in part.gpus]
    return Cluster(part.trace, geometry_of(gpu, gpu.profile_set(names)))
