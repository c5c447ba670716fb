"""The environment ``mig_opt/Fleet-v0``: jobs that arrive at a fleet get a place, or wait."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from inspect import signature
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mig_opt.environments.masked import Choice, Mask, MaskedEnv, Observation, chosen, slice_shares, unknown_keys
from mig_opt.errors import raise_any
from mig_opt.fleet.trace import Trace, check_jobs
from mig_opt.gpu.geometry import GpuState, geometry_of, members
from mig_opt.heuristics.fleet.base import QueueScheduler
from mig_opt.instances.fleet.registry import generate_trace, get_trace_family
from mig_opt.rules import wrong_choice
from mig_opt.rules.vocabulary import Whole
from mig_opt.simulation.fleet.cluster import Cluster
from mig_opt.simulation.fleet.course import Course
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.validation import validate
from mig_opt.validation.fleet.logs import check_log


@dataclass(eq=False)
class FleetView(QueueScheduler):
    """A fleet as an agent sees it, with the first jobs that wait: the window.

    Action ``slot x places + place`` starts the job of a slot of the window; places are the placements of GPU 0, GPU 1
    and so on. The last action waits until something happens. A job may have the instances that other schedulers would
    give it: those of the profile that it asks for, else those of least memory that is enough, for each of its sizes.

    Parameters
    ----------
    window : int
        Number of slots.
    """

    window: Annotated[int, Whole(1, 1000)] = field(default=4, kw_only=True)

    def begin(self, cluster: Cluster) -> None:
        """Start afresh."""
        geometry, gpus = cluster.geometry, cluster.trace.gpus
        self.cluster, self.asked = cluster, False
        self._count = len(geometry.placements)
        self.wait = self.window * gpus * self._count
        self._profiles: dict[int, list[int]] = {}
        self._rows: dict[GpuState, tuple[NDArray[np.bool_], NDArray[np.float32]]] = {}
        self._shares = np.tile(slice_shares(geometry.gpu, geometry.placements), (gpus, 1))
        self._look()

    def enqueue(self, cluster: Cluster, job: int) -> None:
        """Note the profiles on which a job can run."""
        found = cluster.trace.profiles(cluster.trace.jobs[job], cluster.known_need(job))
        self._profiles[job] = [cluster.geometry.profile_index(profile) for profile in found]

    def dequeue(self, job: int) -> None:
        """Do nothing: the jobs that wait are those of the fleet."""

    def serve(self, cluster: Cluster) -> None:
        """Ask the agent, once all jobs of a moment are there, if it can start one."""
        self.asked = self._look() and not cluster.more_to_come

    def act(self, action: int) -> None:
        """Start a job, after which the agent may be asked for another one; or wait."""
        if action != self.wait:
            slot, place = divmod(action, self.wait // self.window)
            self.cluster.start(self._jobs[slot], *divmod(place, self._count))
        self.asked = action != self.wait and self._look()

    def mask(self) -> Mask:
        """Return 1 for each action that is possible now; to wait, if something is to come or nothing else can be."""
        waits = self.cluster.expects_events or not self._able.any()
        return np.append(self._able.ravel(), waits).astype(np.int8)

    def observe(self) -> Observation:
        """Return what is to be seen: the jobs of the window, the places, and the number of jobs that wait.

        A row of ``jobs`` has the seconds on each size of instance as schedulers know them, smallest first (0 where a
        job cannot run), the seconds since its arrival, the GB and the GB/s of PCIe that it needs, and 1 if there is
        one. A row of ``places`` has 1 if no job is in the way there, 1 if the instance exists without a job, the
        seconds until its job is expected to end, and its shares of the compute and of the memory slices.
        """
        cluster, sizes = self.cluster, self.cluster.trace.one_kind.sizes
        jobs = np.zeros((self.window, len(sizes) + 4), dtype=np.float32)
        for row, number in zip(jobs, self._jobs, strict=False):
            job = cluster.trace.jobs[number]
            able = {cluster.geometry.profiles[profile].compute_slices for profile in self._profiles[number]}
            seconds = (job.times.get(size, 0.0) * (size in able) for size in sizes)
            row[:] = *seconds, cluster.now - job.arrival, job.memory_gb or 0.0, job.pcie_gbps, 1.0
        places = np.stack([self._row(state)[1] for state in cluster.states])
        for gpu, state in enumerate(cluster.states):
            for place, job_there in zip(members(state.busy), cluster.jobs_on(gpu), strict=True):
                places[gpu, place, 2] = cluster.expected_end(job_there) - cluster.now
        queue = np.array([len(cluster.waiting)], dtype=np.float32)
        return {"jobs": jobs, "places": np.hstack((places.reshape(-1, 3), self._shares)), "queue": queue}

    def _look(self) -> bool:
        """Look at the jobs of the window, the first that wait and can run; return True if one has a place."""
        found = (job for job in self.cluster.waiting if self._profiles.get(job))
        self._jobs = [job for _, job in zip(range(self.window), found, strict=False)]
        room = np.stack([self._row(state)[0] for state in self.cluster.states])
        self._able = np.zeros((self.window, *room.shape[::2]), dtype=bool)
        for able, job in zip(self._able, self._jobs, strict=False):
            able[:] = room[:, self._profiles[job]].any(axis=1)
        return bool(self._able.any())

    def _row(self, state: GpuState) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Return the free placements of a GPU by profile, and what is to be seen of its placements but for times."""
        if state not in self._rows:
            free = np.zeros((len(self.cluster.geometry.profiles), self._count), dtype=bool)
            for row, places in zip(free, state.usage.available, strict=True):
                row[list(places)] = True
            seen = np.zeros((self._count, 3), dtype=np.float32)
            seen[:, 0], seen[list(members(state.idle)), 1] = free.any(axis=0), 1
            self._rows[state] = free, seen
        return self._rows[state]


class FleetEnv(MaskedEnv[Trace]):
    """Jobs that arrive over time; the rewards of an episode add up to minus the flow or waiting time of all jobs.

    Observations and actions are those of :class:`FleetView`. An episode is a simulation; the last ``info`` has it as
    ``simulation``, with log and metrics, and its ``schedule``.

    Parameters
    ----------
    family : str
        The family of the traces that are drawn, see :func:`mig_opt.generate_trace`.
    gpu, gpus
        The kind of GPU, and how many.
    window : int
        Number of waiting jobs that an agent sees and can choose from.
    goal : {"flow", "wait"}
        Flow time (from arrival to end) or waiting time (without a place), in seconds.
    instance : Trace or str, optional
        The trace of every episode, on whatever GPUs. By default each has another one.
    penalty : float
        Cost of an action that the mask forbids, in seconds.
    **parameters
        Parameters of the family; 30 ``jobs``, unless there is another number among them.

    Examples
    --------
    >>> import gymnasium, mig_opt.environments
    >>> env = gymnasium.make("mig_opt/Fleet-v0", jobs=10)
    >>> _, info = env.reset(seed=1)
    >>> total, over = 0.0, False
    >>> while not over:
    ...     _, reward, over, _, info = env.step(info["action_mask"].argmax())
    ...     total -= float(reward)
    >>> f"{total / 10:.2f} s, {info['simulation'].metrics.completion.mean:.2f} s"
    '201.84 s, 201.84 s'
    """

    def __init__(
        self,
        family: str = "normal-25",
        *,
        gpu: str = "A100",
        gpus: int = 2,
        window: int = 4,
        goal: Literal["flow", "wait"] = "flow",
        instance: Trace | str | None = None,
        penalty: float = 1.0,
        **parameters: Any,
    ) -> None:
        own = {parameter.name for parameter in get_trace_family(family).parameters}
        known = {*signature(FleetEnv).parameters, *own} - {"parameters"}
        raise_any([*wrong_choice("goal", goal, ("flow", "wait")), *unknown_keys(parameters, known)])
        self._parameters = {"family": family, "gpu": gpu, "gpus": gpus, "jobs": 30, **parameters}
        self._window, self._goal = window, goal
        super().__init__(Trace, instance, penalty)

    def _draw(self, seed: int) -> Trace:
        return generate_trace(seed=seed, **self._parameters)

    def _begin(self, instance: Trace) -> FleetView:
        check_jobs(instance)
        self._began, self._trace, self._actions = time.perf_counter(), instance, list[int]()
        self._course = Course(Cluster(instance, geometry_of(instance.gpu, instance.profile_set)))
        self._decisions, self._state = self._course.decisions(), FleetView(window=self._window)
        self._moment = self._before = 0.0
        self._before, _ = self._advance()
        return self._state

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the simulation, which is a generator and follows from the actions so far."""
        return self.__dict__ | dict.fromkeys(("_course", "_decisions", "_state", "_view"))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Carry out the actions so far once more."""
        self.__dict__.update(state)
        actions, self._view = self._actions, self._begin(self._trace)
        for action in actions:
            self._act(action)

    def _act(self, action: int) -> tuple[float, bool]:
        self._actions.append(action)
        self._state.act(action)
        return (0.0, False) if self._state.asked else self._advance()

    def _advance(self) -> tuple[float, bool]:
        """Go on until the agent is asked; return the seconds of all jobs until then, and True if that is never."""
        # Jobs may have waited before the agent was asked for the first time.
        cluster, seconds, self._before = self._course.cluster, self._before, 0.0
        while True:
            present = len(cluster.waiting) + (cluster.running if self._goal == "flow" else 0)
            decision = next(self._decisions, None)
            if decision is None:
                return seconds, True
            seconds += present * (cluster.now - self._moment)
            self._moment = cluster.now
            decision.tell(self._state, cluster)
            if self._state.asked:
                return seconds, False

    def _outcome(self) -> dict[str, Any]:
        log, seconds = self._course.cluster.log, time.perf_counter() - self._began
        simulation = Simulation(log.trace, "environment", log, log.unfinished(), self._course.events, seconds)
        verdict = validate(*log.as_schedule())
        problems = [*check_log(log), *verdict.violations]
        assert not problems, problems[0]
        return {"simulation": simulation, "schedule": verdict.schedule}


@dataclass(eq=False)
class FleetAgent(FleetView):
    """A trained model as a scheduler, for :func:`mig_opt.simulate`: it does what it would do in the environment.

    Parameters
    ----------
    choose : callable
        The model: takes an observation and its mask, and returns an action.
    window : int
        Number of waiting jobs that it sees, as in the environment.

    Examples
    --------
    >>> from mig_opt import generate_trace, simulate
    >>> trace = generate_trace("normal-25", gpus=2, jobs=10, seed=1)
    >>> done = simulate(trace, FleetAgent(lambda observation, mask: mask.argmax()))
    >>> done.unfinished
    ()
    """

    choose: Choice

    def serve(self, cluster: Cluster) -> None:
        """Let the model decide as long as there is something to start, unless it waits."""
        super().serve(cluster)
        while self.asked:
            self.act(chosen(self.choose, self))
