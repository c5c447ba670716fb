"""The figures of the FAR paper's tables, measured on batches of the generator."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from mig_opt import Batch, Schedule, concatenate, generate_batch, solve
from mig_opt.control import Control
from mig_opt.gpu.partitions import find_partition
from mig_opt.heuristics.batch.far import best_plan
from mig_opt.heuristics.batch.far.refinement import Refinement
from mig_opt.instances.batch import ScalingName, TimesName
from mig_opt.registry import get_method

Figures = dict[str, float]
"""Figures of a cell by name."""

ONES = "1+1+1+1+1+1+1"
"""The partition of an A100 that the paper calls (1, ..., 1)."""

GENERATORS: Mapping[str, Callable[..., Batch]] = {
    "published program": partial(generate_batch, variant="published-program"),
    "p_sup 0.5": partial(generate_batch, p_sup=0.5),
}
"""The generators of batches that the tables are made with."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Batches of one kind.

    Attributes
    ----------
    generator : str
        One of :data:`GENERATORS`.
    scaling, times, n
        As :func:`mig_opt.generate_batch` takes them.
    batches : int
        How many, with the seeds 0, 1, ...
    """

    generator: str
    scaling: ScalingName
    times: TimesName
    n: int
    batches: int

    def drawn(self) -> Iterator[Batch]:
        """Yield the batches."""
        for seed in range(self.batches):
            yield GENERATORS[self.generator](self.n, scaling=self.scaling, times=self.times, seed=seed)


def area(batch: Batch) -> float:
    """Return the least work of all tasks by the slices, in seconds: the paper's baseline."""
    least = (min(size * seconds for size, seconds in task.times.items()) for task in batch.tasks)
    return sum(least) / (batch.gpu.compute_slices * batch.gpus)


def far_to_area(cell: Cell) -> Figures:
    """Return what Table 4 has: FAR's makespan by the area bound."""
    return _means({"rho": _makespan(batch, "far") / area(batch)} for batch in cell.drawn())


def rivals_to_far(cell: Cell) -> Figures:
    """Return what Table 5 has: makespans of the rivals by FAR's.

    The paper's FixPart finds its partition on the GPU, so its operations take no time here; the figures with costs have
    names of their own.
    """

    def ratios(batch: Batch) -> Figures:
        far, free = _makespan(batch, "far"), batch.cost_free()
        found = {"miso-opt": _makespan(batch, "miso-opt") / far}
        for prefix, given in (("", free), ("created, ", batch)):
            for name in (ONES, "7"):
                found[f"{prefix}fixpart {name}"] = _makespan(given, "fixpart", name) / far
            found[f"{prefix}fixpart-best"] = _makespan(given, "fixpart-best") / far
        return found

    return _means(map(ratios, cell.drawn()))


def refinement(cell: Cell) -> Figures:
    """Return what Table 6 has: how much longer the schedule is without the refinement (%), and its steps.

    ``possible`` is how much the schedule before the refinement is above the area bound: no refinement gains more.
    """

    def gained(batch: Batch) -> Figures:
        plan = best_plan(batch, Control[Schedule]())
        refined = Refinement(batch, plan.slots())
        refined.run(Control[Schedule]())
        return {
            "improvement": (plan.makespan / min(plan.makespan, refined.makespan) - 1) * 100,
            "moves": refined.moves,
            "swaps": refined.swaps,
            "possible": (plan.makespan / area(batch) - 1) * 100,
        }

    return _means(map(gained, cell.drawn()))


def joins(cell: Cell) -> Figures:
    """Return what Table 7 has: how much longer FAR's schedules take one after the other than joined (%).

    The paper does not say whether a concatenation is measured by itself or by what it does to all batches: the first
    figures are of the whole stream, those called ``pair`` the mean of all pairs of neighbours. ``possible`` is how much
    the batches one after the other end above the area bound: no join gains more.
    """
    plans = _planned(cell)

    def gains(part: list[tuple[Batch, Schedule]]) -> Figures:
        trivial = concatenate(part, join="trivial").makespan
        return {
            "reversed": (trivial / concatenate(part, join="reversed").makespan - 1) * 100,
            "moved": (trivial / concatenate(part, join="moved").makespan - 1) * 100,
        }

    pairs = _means(gains(plans[index : index + 2]) for index in range(len(plans) - 1))
    trivial = concatenate(plans, join="trivial").makespan
    return {
        **gains(plans),
        **{f"pair, {name}": value for name, value in pairs.items()},
        "possible": (trivial / sum(area(batch) for batch, _ in plans) - 1) * 100,
    }


def stream(cell: Cell) -> Figures:
    """Return what Table 9 has: how much the end of a stream is above the area bound of all its tasks (%).

    ``trivial`` is the same for batches one after the other, ``share`` the area bound as a share of the end.
    """
    plans = _planned(cell)
    bound = sum(area(batch) for batch, _ in plans)
    moved = concatenate(plans, join="moved").makespan
    trivial = concatenate(plans, join="trivial").makespan
    return {"above": (moved / bound - 1) * 100, "trivial": (trivial / bound - 1) * 100, "share": bound / moved * 100}


def milliseconds(cell: Cell) -> Figures:
    """Return the scheduling times: medians, without reading, validating or writing anything."""
    taken: dict[str, list[float]] = {}
    for batch in cell.drawn():
        for name, partition in (
            ("far", ""),
            ("miso-opt", ""),
            ("fixpart", ONES),
            ("fixpart-best", ""),
            ("fixpart", "7"),
        ):
            options = {"partition": find_partition(batch.gpu, partition)} if partition else {}
            run = get_method(name).load()
            begin = time.perf_counter()
            run(batch, Control[Schedule](), **options)
            taken.setdefault(f"{name} {partition}".strip(), []).append(time.perf_counter() - begin)
    return {name: statistics.median(seconds) * 1e3 for name, seconds in taken.items()}


def _planned(cell: Cell) -> list[tuple[Batch, Schedule]]:
    return [(batch, _schedule(batch, "far")) for batch in cell.drawn()]


def _makespan(batch: Batch, method: str, partition: str | None = None) -> float:
    return _schedule(batch, method, partition).makespan


def _schedule(batch: Batch, method: str, partition: str | None = None) -> Schedule:
    schedule = solve(batch, method, partition=partition).schedule
    assert schedule is not None
    return schedule


def _means(rows: Iterator[Figures]) -> Figures:
    found: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return {name: statistics.fmean(values) for name, values in found.items()}
