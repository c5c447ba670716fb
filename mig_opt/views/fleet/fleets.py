"""The panel of a fleet over time: jobs on memory slices, or, where these are too many, the use of its slices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mig_opt.batch.schedule import Lifetime, lifetimes
from mig_opt.fleet.log import Log, RunOutcome
from mig_opt.gpu.catalogue import with_mig
from mig_opt.simulation.fleet.metrics import fragmentation_series
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.views.scene import Area, Axis, Boxes, Dots, Links, Mark, Marker, Only, Panel, Rows
from mig_opt.views.texts import BOUND, IDLE, colour_of, one_line, spell_seconds

Numbers = NDArray[np.float64]

_MOST_STEPS = 800  # changes up to which a line shows each of them


@dataclass(frozen=True)
class StepFunction:
    """A step function of time: it keeps its level from each moment to the next."""

    moments: Numbers  # seconds, rising, from 0 on
    levels: Numbers  # the level from then on

    def at(self, moments: Numbers) -> Numbers:
        """Return the levels at some moments."""
        return self.levels[np.searchsorted(self.moments, moments, side="right") - 1]

    def means(self, edges: Numbers) -> Numbers:
        """Return the mean level between each edge and the next."""
        last = max(edges[-1], self.moments[-1])
        times = np.append(self.moments, last)
        area = np.concatenate(([0.0], np.cumsum(self.levels * np.diff(times))))
        return np.diff(np.interp(edges, times, area)) / np.diff(edges)

    def thinned(self, end: float) -> StepFunction:
        """Return itself, or means over equal parts of the time until ``end`` if there are too many changes to see."""
        if len(self.moments) <= _MOST_STEPS:
            return self
        edges = np.linspace(0.0, end, _MOST_STEPS // 4 + 1)
        return StepFunction(edges[:-1], self.means(edges))


def fragmentation_steps(log: Log) -> StepFunction:
    """Return the mean fragmentation of the GPUs in percent."""
    moments, levels = fragmentation_series(log)
    return StepFunction(np.array(moments), 100 * np.array(levels))


def busy_shares(log: Log, edges: Numbers) -> dict[str, Numbers]:
    """Return the mean percentage of the fleet's compute slices that jobs have between edges, by profile in use."""
    placements = log.placements
    sizes = {placement.profile.name: placement.profile.compute_slices for placement in placements}
    number = {name: index for index, name in enumerate(sizes)}
    kind = np.array([number[placement.profile.name] for placement in placements])[np.array(log.run_placement, int)]
    begin, end = np.array(log.run_begin), np.array(log.run_end)
    scale = 100 / sum(len(gpus) * kind.compute_slices for kind, gpus in log.trace.kinds.items())
    found = {}
    for name, size in sorted(sizes.items(), key=lambda entry: -entry[1]):
        own = kind == number[name]
        if own.any():
            moments = np.concatenate((begin[own], end[own]))
            changes = np.repeat([size * scale, -size * scale], own.sum())
            order = np.argsort(moments, kind="stable")
            levels = np.cumsum(changes[order])
            steps = StepFunction(np.append(0.0, moments[order]), np.append(0.0, levels))
            found[name] = np.maximum(steps.means(edges), 0.0)
    return found


def wait_steps(log: Log) -> StepFunction:
    """Return the percentage of all jobs that had a place by the seconds waited; fewer than 100 if some never had."""
    arrivals = np.array([job.arrival for job in log.trace.jobs])
    waits = np.sort(np.array(log.scheduled) - arrivals)
    waits = waits[~np.isnan(waits)]
    values, counts = np.unique(waits, return_counts=True)
    shares = 100 * np.cumsum(counts) / len(arrivals)
    if len(values) > _MOST_STEPS:
        kept = np.unique(np.searchsorted(shares, np.linspace(shares[0], shares[-1], _MOST_STEPS // 2)))
        values, shares = values[kept], shares[kept]
    if not len(values) or values[0] > 0:
        values, shares = np.append(0.0, values), np.append(0.0, shares)
    return StepFunction(values, shares)


def acceptance_steps(log: Log) -> StepFunction:
    """Return over time the percentage of the jobs that had arrived which were accepted and done in the end."""
    arrivals = np.array([job.arrival for job in log.trace.jobs])
    accepted = np.cumsum(~np.isnan(np.array(log.finished)))
    shares = 100 * accepted / np.arange(1, len(arrivals) + 1)
    # Of jobs that arrive together the last one counts.
    kept = np.append(np.diff(arrivals) > 0, True)
    arrivals, shares = arrivals[kept], shares[kept]
    if len(arrivals) > _MOST_STEPS:
        some = np.linspace(0, len(arrivals) - 1, _MOST_STEPS).astype(int)
        arrivals, shares = arrivals[some], shares[some]
    return StepFunction(arrivals, shares)


def migration_times(log: Log) -> Numbers:
    """Return the seconds at which jobs went on elsewhere, rising."""
    moved = np.array(log.run_outcome, int) == RunOutcome.MIGRATED
    return np.sort(np.array(log.run_end)[moved])


def hops(log: Log) -> list[tuple[float, int, int]]:
    """Return the migrations: the second of each, and from which run to which, by their indices in the log."""
    runs: dict[int, list[int]] = {}
    for index in sorted(range(len(log.run_job)), key=lambda index: (log.run_begin[index], log.run_end[index], index)):
        runs.setdefault(log.run_job[index], []).append(index)
    return [
        (log.run_end[one], one, two)
        for own in runs.values()
        for one, two in pairwise(own)
        if log.run_outcome[one] == RunOutcome.MIGRATED
    ]


_MOST_DETAILED: dict[Only, tuple[int, int]] = {"image": (8, 800), "page": (64, 5000)}
"""GPUs and runs of a fleet that is drawn job by job."""
_MOST_KEYED = 60  # jobs up to which those without a name in the picture are explained
_GAP = 0.6  # between two GPUs, in slices
_USE, _USE_PIXELS = 1.3, 260  # inches and pixels of the use of many GPUs
_BINS = 600
_UNKEYED = "#n: the n-th job by arrival"
_MARKS = {
    RunOutcome.OUT_OF_MEMORY: "out of memory",
    RunOutcome.STOPPED: "stopped by the scheduler",
    RunOutcome.CRASHED: "crashed",
    RunOutcome.GPU_LEFT: "GPU left",
}
_ENDS = {RunOutcome.FINISHED: "done", RunOutcome.MIGRATED: "migrated at the end of this run", **_MARKS}


def fleet_panels(
    simulations: Sequence[Simulation], headings: Sequence[str], times: Axis, *, alone: bool
) -> Iterator[Panel]:
    """Yield the panels of some simulations of one trace; that of the only one may be tall."""
    logs = [simulation.log for simulation in simulations]
    for number, (log, heading) in enumerate(zip(logs, headings, strict=False)):
        image, page = all(_detailed(each, "image") for each in logs), _detailed(log, "page")
        if page:
            yield _jobs(log, number, heading, times, "" if image else "page", alone=alone)
        if not image:
            yield _use(log, number, heading, times, "image" if page else "")


def _detailed(log: Log, kind: Only) -> bool:
    gpus, runs = _MOST_DETAILED[kind]
    return log.trace.gpus <= gpus and len(log.run_job) <= runs


def _jobs(log: Log, number: int, heading: str, times: Axis, only: Only, *, alone: bool) -> Panel:
    """Return every run over the memory slices of its instance."""
    trace, jobs = log.trace, log.trace.jobs
    kinds = [trace.kind(gpu) for gpu in range(trace.gpus)]
    names = [f"GPU {gpu}" if trace.gpu else f"GPU {gpu}, {kind.name}" for gpu, kind in enumerate(kinds)]
    most = max(kind.memory_slices for kind in kinds)
    unit = min(0.3, max(0.055, (5.0 if alone else 2.4) / (trace.gpus * (most + _GAP) - _GAP)))
    labels = [f"{name}\nslices 0-{most - 1}" for name in names]
    if trace.gpu is None:
        labels = [f"GPU {gpu}{'' if kind.mig else ' whole'}\n{with_mig(kind).name}" for gpu, kind in enumerate(kinds)]
    rows = Rows(names, unit, most, _GAP, slices=True, labels=labels)
    runs = []
    for index, run in enumerate(log.runs()):
        job, start = jobs[run.job], run.placement.start
        waited = log.scheduled[run.job] - job.arrival
        facts = [f"job {run.job + 1}, arrived at {spell_seconds(job.arrival)}, waited {spell_seconds(waited)}"]
        facts += [f"on {run.placement.profile.name}; {_ENDS[run.outcome]}"]
        slices, name = range(start, start + run.placement.profile.memory_slices), one_line(job.name)
        words = {"gid": f"run:{number}:{index}", "colour": colour_of(run.job), "number": f"#{run.job + 1}"}
        runs.append(rows.box(run.gpu, slices, (run.begin, run.end), facts, head=name, label=name, **words))
    end = times.limits[1] if times.limits else 1.0
    instances = []
    for index, (each, gone) in enumerate(_lifetimes(log)):
        slices = range(each.start, each.start + kinds[each.gpu].profile(each.profile).memory_slices)
        words = {"gid": f"instance:{number}:{index}", "colour": IDLE, "head": f"{each.profile} without a job"}
        instances.append(rows.box(each.gpu, slices, (each.begin, min(each.end, gone, end)), **words))
    moves = [(f"hop:{number}:{old}", moment, runs[old].middle, runs[new].middle) for moment, old, new in hops(log)]
    marks: list[Mark] = [
        *rows.missing([kind.memory_slices for kind in kinds], (0.0, end), f"unused:{number}"),
        Boxes("jobless", instances, "instance without a job", beneath=True),
        Boxes("job", runs, unkeyed=_UNKEYED if len(jobs) > _MOST_KEYED else ""),
        Boxes("outline", instances, only="page"),
        *([Links(moves, "migration (to the dot)")] if moves else []),
    ]
    markers: tuple[Marker, ...] = ("x", "square", "triangle", "diamond")
    for outcome, marker in zip(_MARKS, markers, strict=True):
        ended = [box for box, run in zip(runs, log.runs(), strict=True) if run.outcome == outcome]
        if ended:
            x, y = [box.right for box in ended], [box.middle for box in ended]
            marks.append(Dots(f"ended:{number}:{marker}", x, y, BOUND, marker, 4.0, legend=_MARKS[outcome]))
    return Panel(f"fleet {number}", marks, times, rows=rows, heading=heading, joined=True, only=only)


def _lifetimes(log: Log) -> Iterator[tuple[Lifetime, float]]:
    """Yield the lifetimes of the instances, each with the second at which its GPU leaves."""
    outages = log.trace.outages
    operations = [replace(done, gpu=log.incarnation(done.gpu, done.begin)) for done in log.operations()]
    gpus = {log.incarnation(outage.gpu, outage.end): outage.gpu for outage in outages}
    for each in lifetimes((), operations)[0]:
        gpu = gpus.get(each.gpu, each.gpu)
        leaves = (outage.begin for outage in outages if outage.gpu == gpu and outage.begin >= each.begin)
        yield replace(each, gpu=gpu), min(leaves, default=math.inf)


def _use(log: Log, number: int, heading: str, times: Axis, only: Only) -> Panel:
    """Return the shares of the compute slices in use over time, by profile."""
    edges = np.linspace(0.0, times.limits[1] if times.limits else 1.0, _BINS + 1)
    names = list(dict.fromkeys(placement.profile.name for placement in log.placements))
    marks, below = [], np.zeros(_BINS)
    for name, shares in busy_shares(log, edges).items():
        colour, gid = colour_of(names.index(name)), f"use:{number}:{name}"
        unit = "% of the compute slices"
        marks.append(Area(gid, edges, below, below + shares, colour, f"busy with {name}", unit))
        below = below + shares
    axis = Axis("% of slices", (0, 100), ticks=[(share, str(share)) for share in (0, 50, 100)])
    return Panel(
        f"fleet {number}", marks, times, axis, heading=heading, height=_USE, pixels=_USE_PIXELS, grid="y", joined=True,
        only=only,
    )  # fmt: skip
