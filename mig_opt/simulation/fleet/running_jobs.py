"""Simulations that start with the instances of a fleet state: what runs on them becomes jobs of the trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from mig_opt.errors import InputError, Problem
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.fleet.trace import Job, Trace
from mig_opt.rules import wrong_number, wrong_type
from mig_opt.simulation.fleet.cluster import Cluster, Policy, RejectingPolicy


@dataclass(frozen=True)
class Standing:
    """A trace that starts with the instances of a state.

    Attributes
    ----------
    trace : Trace
        The jobs on the instances come first; they arrive at second 0.
    busy : tuple of HeldInstance
        Instances of these jobs, in their order.
    idle : tuple of HeldInstance
        Instances that nothing runs on.
    """

    trace: Trace
    busy: tuple[HeldInstance, ...]
    idle: tuple[HeldInstance, ...]


def standing(trace: Trace, state: FleetState, busy_until: float | None = None) -> Standing:
    """Return a trace on the GPUs of a state, with a job for each instance that something runs on.

    The simulator creates the instances at second 0, one after the other on each GPU, which takes the driver's time; the
    jobs on them are that much shorter, so that they end at ``busy_until``.

    Raises
    ------
    InputError
        With everything that is wrong: another kind of GPU, or no time for instances in use.
    """
    problems: list[Problem] = []
    if not isinstance(state, FleetState):
        raise InputError([wrong_type("state", state, "a FleetState, for example read(FleetState, 'fleet.json')")])
    if state.gpu != trace.gpu:
        problems.append(Problem("state", f"is of {state.gpu.name}, and the trace of {trace.gpu.name}"))
    busy, idle = state.busy().instances, state.idle
    if busy and busy_until is None:
        message = f"say after how many seconds the {len(busy)} instances in use are free"
        problems.append(Problem("busy_until", message))
    if busy_until is not None:
        problems += wrong_number("busy_until", busy_until, "a number of seconds > 0", above=0)
    if problems:
        raise InputError(problems)
    names = {job.name for job in trace.jobs}
    jobs = []
    passed: dict[int, float] = {}
    for held in (*idle, *busy):
        profile = state.gpu.profile(held.profile)
        passed[held.gpu] = passed.get(held.gpu, 0.0) + trace.operations.of("create", profile)
        if not held.idle:
            seconds = max((busy_until or 0.0) - passed[held.gpu], 1e-3)
            name = held.name if held.name and held.name not in names else f"{held.profile}@{held.start} of {held.gpu}"
            names.add(name)
            jobs.append(Job(name, 0.0, {profile.compute_slices: seconds}, held.profile))
    started = Trace((*jobs, *trace.jobs), trace.gpu, state.gpus, trace.operations, trace.pcie_limit, trace.name)
    return Standing(started, busy, idle)


class StartingPolicy:
    """Policy that lets the instances of a state stand, and leaves all else to another policy."""

    def __init__(self, start: Standing, policy: Policy) -> None:
        self._start = start
        self._policy = policy

    def begin(self, cluster: Cluster) -> None:
        """Create the idle instances."""
        for held in self._start.idle:
            cluster.create(held.gpu, cluster.geometry.index(held.profile, held.start))
        self._policy.begin(cluster)

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Start a job of the state on its instance."""
        if job < len(self._start.busy):
            held = self._start.busy[job]
            cluster.start(job, held.gpu, cluster.geometry.index(held.profile, held.start))
        else:
            self._policy.arrived(cluster, job)

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Tell the policy that an instance is idle."""
        self._policy.finished(cluster, job, gpu, placement)

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Tell the policy that a job ran out of memory."""
        self._policy.failed(cluster, job, gpu, placement, needed_gb)

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Tell the policy that a job is given up."""
        self._policy.gave_up(cluster, job, gpu, placement)

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Let the policy act."""
        self._policy.woken(cluster, tag)

    def rejected(self, cluster: Cluster, job: int) -> None:
        """Tell a policy that can turn jobs away that one was."""
        cast(RejectingPolicy, self._policy).rejected(cluster, job)
