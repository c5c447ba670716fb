"""Metrics of a simulation, computed from its log."""

from __future__ import annotations

import math
import statistics
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import truediv
from typing import Annotated

from mig_opt.errors import Problem
from mig_opt.fleet.admission import Acceptance, acceptance
from mig_opt.fleet.log import CREATE, DESTROY, Log, RunOutcome
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.model import GpuModel
from mig_opt.rules import Checked
from mig_opt.rules.vocabulary import Number

Watts = Annotated[float, Number("watts", at_least=0)]


@dataclass(frozen=True, slots=True)
class PowerModel(Checked):
    """Power that a GPU draws: ``idle`` watts, rising in proportion to its busy compute slices to ``full`` watts.

    A job that says what it costs itself (``energy_j``) adds these joules in place of its slices, however long it
    runs; of work that is lost it costs the share that was done.

    That it is linear in the slices is an assumption: no vendor document says what part of a GPU draws. 250 W is the
    board power of the A100 PCIe 40 GB in NVIDIA's data sheet; 50 W at idle is an assumption, about what
    such boards report without work. Studies of energy should vary both.

    Attributes
    ----------
    idle, full : float
        Watts.

    Raises
    ------
    InputError
        If a figure is negative or not finite, or ``full`` is less than ``idle``.
    """

    idle: Watts = 50.0
    full: Watts = 250.0

    def _problems(self) -> Iterator[Problem]:
        if None not in (self.idle, self.full) and self.full < self.idle:
            yield Problem("full", f"must be at least what it draws at idle ({self.idle:g} W)")


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, median, 95th percentile (the nearest rank) and maximum of the seconds of many jobs; 0 without jobs."""

    mean: float
    median: float
    p95: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Return the spread of some values."""
        values = sorted(values) or [0.0]
        p95 = values[math.ceil(0.95 * len(values)) - 1]
        return cls(statistics.fmean(values), statistics.median(values), p95, values[-1])


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures of a simulation; those in seconds are over the jobs that were finished.

    Attributes
    ----------
    jobs, finished, rejected : int
        Numbers of jobs that arrived, that were done, and that were turned away.
    acceptance : Acceptance
        Shares of the jobs that were accepted and done: 1 unless jobs were turned away or left.
    wait : Spread
        Waiting time: seconds from the arrival to the decision where the job runs first.
    execution : Spread
        Seconds from that decision to the end: the creation of the instance, migrations and restarts included.
    completion : Spread
        Flow time: seconds from the arrival to the end.
    makespan : float
        Seconds from the start of the trace to the end of the last run.
    utilisation : float
        Share of all compute slices' time until then in which a job ran (0 to 1). GPUs count while they are there, here
        and below.
    memory_utilisation : float
        Share of the fleet's memory that jobs used, mean until then (0 to 1). A job that does not say what it needs uses
        all that its instance has.
    fragmentation : float
        Fragmentation cost until then, mean over GPUs and time (0 to 1).
    creations, destructions : int
        Operations of the drivers.
    migrations, failures, stops : int
        Runs that went on elsewhere, ran out of memory, or were stopped by the scheduler.
    active_gpus : float
        Number of GPUs on which jobs ran, mean until the makespan.
    energy : float
        Joules of all GPUs until the makespan, by a :class:`PowerModel`.
    crashes, evictions : int
        Runs that crashed, or lost their GPU.
    lost : float
        Share of what jobs had of the compute slices that was in vain: their runs ended otherwise than done (0 to 1).
    """

    jobs: int
    finished: int
    rejected: int
    acceptance: Acceptance
    wait: Spread
    execution: Spread
    completion: Spread
    makespan: float
    utilisation: float
    memory_utilisation: float
    fragmentation: float
    creations: int
    destructions: int
    migrations: int
    failures: int
    stops: int
    active_gpus: float
    energy: float
    crashes: int
    evictions: int
    lost: float


def measure(log: Log, power: PowerModel | None = None) -> Metrics:
    """Return the figures of a log.

    Parameters
    ----------
    log : Log
        Log of a simulation.
    power : PowerModel, optional
        Power that the GPUs draw; by default that of :class:`PowerModel`.

    Returns
    -------
    Metrics
        Times in seconds, energy in joules.
    """
    power = power or PowerModel()
    trace = log.trace
    done = [job for job, end in enumerate(log.finished) if not math.isnan(end)]
    makespan = max(log.run_end, default=0.0)
    busy, present = _slice_seconds(log), _gpu_seconds(trace, makespan)
    used = math.fsum(busy.values())
    offered = math.fsum(kind.compute_slices * seconds for kind, seconds in present.items())
    memory = math.fsum(kind.memory_gb * seconds for kind, seconds in present.items())
    area, before, level = 0.0, 0.0, 0.0
    active, gpu_seconds = 0, 0.0
    for moment, fragmentation, changed in _usage_changes(log):
        area += level * (moment - before)
        gpu_seconds += active * (moment - before)
        before, level, active = moment, fragmentation, active + changed
    whole = makespan - _absent(trace, makespan, range(trace.gpus)) / trace.gpus  # for which a GPU is there, on the mean
    draw = [
        seconds * (power.idle + (power.full - power.idle) * (busy[kind.name] / (kind.compute_slices * seconds)))
        for kind, seconds in present.items()
        if seconds
    ]
    return Metrics(
        jobs=len(trace.jobs),
        finished=len(done),
        rejected=len(log.turned_away()),
        acceptance=acceptance(trace, [not math.isnan(end) for end in log.finished]),
        wait=_after_arrival(log, log.scheduled, done),
        execution=Spread.of([log.finished[job] - log.scheduled[job] for job in done]),
        completion=_after_arrival(log, log.finished, done),
        makespan=makespan,
        utilisation=used / offered if offered else 0.0,
        memory_utilisation=math.fsum(_gb_seconds(log)) / memory if memory else 0.0,
        fragmentation=area / whole if whole > 0 else 0.0,
        creations=log.operation_kind.count(CREATE),
        destructions=log.operation_kind.count(DESTROY),
        migrations=log.count(RunOutcome.MIGRATED),
        failures=log.count(RunOutcome.OUT_OF_MEMORY),
        stops=log.count(RunOutcome.STOPPED),
        crashes=log.count(RunOutcome.CRASHED),
        evictions=log.count(RunOutcome.GPU_LEFT),
        lost=_in_vain(log) / used if used else 0.0,
        active_gpus=gpu_seconds / makespan if makespan else 0.0,
        energy=math.fsum(draw) + _own_energy(log, power),
    )


@dataclass(frozen=True, slots=True)
class KindMetrics:
    """Figures of the GPUs of one kind in a simulation.

    Attributes
    ----------
    gpus, finished : int
        Numbers of GPUs, and of jobs that were done there.
    wait, completion : Spread
        Waiting and flow times of these jobs, in seconds.
    utilisation : float
        Share of the compute slices' time, until the last run of the whole fleet, in which a job ran (0 to 1).
    """

    gpus: int
    finished: int
    wait: Spread
    completion: Spread
    utilisation: float


def measure_kinds(log: Log) -> dict[str, KindMetrics]:
    """Return figures of a log by the name of the kind of GPU.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> from mig_opt.gpu.pools import Pool
    >>> jobs = (Job("a", 0.0, {"A30": {4: 9.0}, "A100": {7: 8.0}}), Job("b", 1.0, {"A30": {4: 9.0}}))
    >>> trace = Trace(jobs, pools=(Pool(get_gpu("A30"), 1), Pool(get_gpu("A100"), 1)))
    >>> for name, own in measure_kinds(simulate(trace, "first-fit").log).items():
    ...     print(name, own.finished, round(own.utilisation, 2))
    A30-24GB 1 0.89
    A100-40GB 1 0.79
    """
    trace, makespan = log.trace, max(log.run_end, default=0.0)
    busy, present = _slice_seconds(log), _gpu_seconds(trace, makespan)
    names = [placement.profile.gpu for placement in log.placements]
    done: dict[str, list[int]] = defaultdict(list)
    for job, placement, outcome in zip(log.run_job, log.run_placement, log.run_outcome, strict=True):
        if outcome == RunOutcome.FINISHED:
            done[names[placement]].append(job)
    return {
        kind.name: KindMetrics(
            len(gpus),
            len(done[kind.name]),
            _after_arrival(log, log.scheduled, done[kind.name]),
            _after_arrival(log, log.finished, done[kind.name]),
            busy[kind.name] / (kind.compute_slices * present[kind]) if present[kind] else 0.0,
        )
        for kind, gpus in trace.kinds.items()
    }


def _after_arrival(log: Log, moments: Sequence[float], jobs: Iterable[int]) -> Spread:
    """Return by how many seconds the moments of some jobs come after their arrivals."""
    return Spread.of([moments[job] - log.trace.jobs[job].arrival for job in jobs])


def _slice_seconds(log: Log) -> dict[str, float]:
    """Return the compute slices times seconds of all runs, by the name of the kind of GPU."""
    found: dict[str, list[float]] = {kind.name: [] for kind in log.trace.kinds}
    places = [(placement.profile.compute_slices, found[placement.profile.gpu]) for placement in log.placements]
    for placement, begin, end in zip(log.run_placement, log.run_begin, log.run_end, strict=True):
        size, areas = places[placement]
        areas.append(size * (end - begin))
    return {name: math.fsum(areas) for name, areas in found.items()}


def _gpu_seconds(trace: Trace, until: float) -> dict[GpuModel, float]:
    """Return for each kind the number of its GPUs, while they are there, times seconds."""
    return {kind: len(gpus) * until - _absent(trace, until, gpus) for kind, gpus in trace.kinds.items()}


def _absent(trace: Trace, until: float, gpus: range) -> float:
    """Return for how many seconds some GPUs are not there, all together."""
    return math.fsum(max(0.0, min(each.end, until) - each.begin) for each in trace.outages if each.gpu in gpus)


def _in_vain(log: Log) -> float:
    """Return the compute slices times seconds of runs whose work was lost, those before migrations included."""
    lost, since_start = 0.0, defaultdict[int, float](float)
    sizes = [placement.profile.compute_slices for placement in log.placements]
    columns = zip(log.run_job, log.run_placement, log.run_begin, log.run_end, log.run_outcome, strict=True)
    for job, placement, begin, end, outcome in columns:
        since_start[job] += sizes[placement] * (end - begin)
        if outcome != RunOutcome.MIGRATED:
            used = since_start.pop(job)
            lost += 0.0 if outcome == RunOutcome.FINISHED else used
    return lost


def _gb_seconds(log: Log) -> Iterator[float]:
    """Yield the memory that each run used, times seconds."""
    jobs = log.trace.jobs
    given = [placement.profile.memory_gb for placement in log.placements]
    needed = [job.memory_gb for job in jobs]
    grows = any(job.memory_growth for job in jobs)
    work = log.work_done() if grows else ()
    # Shares of the work that jobs had done before they migrated.
    before: dict[int, float] = {}
    columns = log.run_job, log.run_placement, log.run_begin, log.run_end
    for run, (job, placement, begin, end) in enumerate(zip(*columns, strict=True)):
        if grows and jobs[job].memory_growth:
            done = before.pop(job, 0.0)
            if work[run]:
                yield _mean_gb(jobs[job].memory_growth, done, done + work[run]) * (end - begin)
            if log.run_outcome[run] == RunOutcome.MIGRATED:
                before[job] = done + work[run]
        else:
            gb = needed[job]
            yield (given[placement] if gb is None else gb) * (end - begin)


def _mean_gb(growth: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    ends = [share for share, _ in growth[1:]] + [math.inf]
    parts = ((max(begin, share), min(end, until), gb) for (share, gb), until in zip(growth, ends, strict=True))
    return math.fsum(gb * (until - since) for since, until, gb in parts if until > since) / (end - begin)


def _own_energy(log: Log, power: PowerModel) -> float:
    """Return by how many joules jobs that say what they cost differ from what their slices would count for."""
    trace = log.trace
    if all(job.energy_j is None for job in trace.jobs):
        return 0.0
    per_slice = {kind.name: (power.full - power.idle) / kind.compute_slices for kind in trace.kinds}
    found = []
    for run, work in zip(log.runs(), log.work_done(), strict=True):
        own = trace.jobs[run.job].energy_j
        if own is not None:
            profile = run.placement.profile
            found += [own * work, -per_slice[profile.gpu] * profile.compute_slices * (run.end - run.begin)]
    return math.fsum(found)


def fragmentation_series(log: Log) -> tuple[array[float], array[float]]:
    """Return the fragmentation over time: seconds, and from each on the mean cost over the GPUs (0 to 1).

    It is that of the placements on which jobs run; an instance that is being created counts when its job begins.
    """
    series = {0.0: 0.0} | {moment: level for moment, level, _ in _usage_changes(log)}
    return array("d", series), array("d", series.values())


def _usage_changes(log: Log) -> Iterator[tuple[float, float, int]]:
    """Yield each moment at which a run begins or ends, the mean fragmentation of the GPUs from then on, and a change.

    That is 1 or -1 if a GPU has its first job then or loses its last one, else 0.
    """
    # In the same moment ends come first; a run without length leaves no trace.
    runs = enumerate(zip(log.run_begin, log.run_end, strict=True))
    changes = sorted(change for run, (begin, end) in runs if end > begin for change in ((end, 0, run), (begin, 1, run)))
    busy = [0] * log.trace.gpus
    places = [(part, bit) for part, each in enumerate(log.geometries) for bit in range(len(each.placements))]
    usages = [geometry.usage for geometry in log.geometries]
    totals, scales = [0] * len(usages), [geometry.unit * log.trace.gpus for geometry in log.geometries]
    for moment, _begins, run in changes:
        gpu = log.run_gpu[run]
        part, number = places[log.run_placement[run]]
        before, usage = busy[gpu], usages[part]
        busy[gpu] = after = before ^ 1 << number
        totals[part] += usage(after).cost - usage(before).cost
        yield moment, sum(map(truediv, totals, scales)), bool(after) - bool(before)
