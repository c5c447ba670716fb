"""The figures that charts of simulations show, as series over time: no drawing here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mig_opt.fleet.log import Log, RunOutcome
from mig_opt.gpu.model import GpuModel
from mig_opt.simulation.fleet.metrics import fragmentation_series

Numbers = NDArray[np.float64]

_MOST_STEPS = 800
"""Changes up to which a line shows each of them."""


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
    gpu: GpuModel = log.trace.gpu
    placements = log.geometry.placements
    sizes = {placement.profile.name: placement.profile.compute_slices for placement in placements}
    number = {name: index for index, name in enumerate(sizes)}
    kind = np.array([number[placement.profile.name] for placement in placements])[np.array(log.run_placement, int)]
    begin, end = np.array(log.run_begin), np.array(log.run_end)
    scale = 100 / (log.trace.gpus * gpu.compute_slices)
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
    """Return the percentage of all jobs that had a place after so many seconds; fewer than 100 if some never had."""
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
