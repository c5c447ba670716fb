"""Measurements for the tables of the FAR paper, on batches of the generator."""

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from bench.report import there, timed
from mig_opt import Batch, Schedule, generate_batch
from mig_opt.gpu.partitions import find_partition
from mig_opt.heuristics.batch.far import best_published, far, far_published, far_unrefined
from mig_opt.heuristics.batch.far.concatenation import EndState, arranged, joined
from mig_opt.heuristics.batch.far.published import PublishedPlan
from mig_opt.heuristics.batch.far.refinement import Refinement
from mig_opt.heuristics.batch.far.repartitioning import AllocationFamily
from mig_opt.instances.batch import ScalingName, TimesName
from mig_opt.method.control import Control
from mig_opt.method.registry import get_method

Figures = dict[str, float]  # figures of a cell by name
ONES = "1+1+1+1+1+1+1"  # the partition of an A100 that the paper calls (1, ..., 1)
_program = partial(generate_batch, variant="published-program", shuffle=True)
GENERATORS: Mapping[str, Callable[..., Batch]] = {
    "program": _program,
    "program, memory-bound": partial(_program, memory_bound=0.5),
    "text": partial(generate_batch, p_sup=0.5, shuffle=True),
    "text, by size": partial(generate_batch, p_sup=0.5, decided_by="size", shuffle=True),
    "text, p_sup 0.25": partial(generate_batch, p_sup=0.25, shuffle=True),
    "text, p_sup 1": partial(generate_batch, p_sup=1.0, shuffle=True),
    "program, three quarters memory-bound": partial(_program, memory_bound=0.75),
    "program, all memory-bound": partial(_program, memory_bound=1.0),
}
"""The authors' program, without and with memory-bound tasks; and the text of the paper, in its readings."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Batches of one of :data:`GENERATORS`, as many as ``batches``, with the seeds 0, 1, ...

    The rest is as :func:`mig_opt.generate_batch` takes it.
    """

    generator: str
    scaling: ScalingName
    times: TimesName
    n: int
    batches: int
    gpu: str = "A100"

    def drawn(self) -> Iterator[Batch]:
        """Yield the batches."""
        make = GENERATORS[self.generator]
        for seed in range(self.batches):
            yield make(self.n, scaling=self.scaling, times=self.times, seed=seed, gpu=self.gpu)


def area(batch: Batch) -> float:
    """Return the least work of all tasks by the slices, in seconds: the paper's baseline."""
    least = (min(size * seconds for size, seconds in task.times.items()) for task in batch.tasks)
    return float(sum(least)) / (batch.kind(0).compute_slices * batch.gpus)


def schedule(batch: Batch, method: Callable[..., None], **options: object) -> Schedule:
    """Return the schedule of a method."""
    control = Control[Schedule]()
    method(batch, control, **options)
    return there(control.plan)


def far_to_area(cell: Cell) -> Figures:
    """Return what Table 4 has: FAR's makespan by the area bound."""
    methods = {"rho": far_published, "far": far}
    return with_errors(
        {name: schedule(batch, method).makespan / area(batch) for name, method in methods.items()}
        for batch in cell.drawn()
    )


def rivals_to_far(cell: Cell) -> Figures:
    """Return what Table 5 has: makespans of the rivals by FAR's.

    The paper's FixPart finds its partition on the GPU, so its operations take no time here; nor do MISO-opt's in
    ``miso-opt``, which is how the authors' program counts it. ``unrefined`` figures are by FAR's phases 1 and 2.
    """
    miso = get_method("miso-opt").load()
    fixpart, best = get_method("fixpart").load(), get_method("fixpart-best").load()

    def ratios(batch: Batch) -> Figures:
        free = batch.cost_free()
        spans = {"miso-opt": schedule(free, miso).makespan, "fixpart-best": schedule(free, best).makespan}
        for name in (ONES, "7"):
            partition = find_partition(batch.kind(0), name)
            spans[f"fixpart {name}"] = schedule(free, fixpart, partition=partition).makespan
        with_costs = schedule(batch, miso).makespan
        published, unrefined = (schedule(batch, method).makespan for method in (far_published, far_unrefined))
        return {
            **{name: span / published for name, span in spans.items()},
            **{f"unrefined, {name}": span / unrefined for name, span in spans.items()},
            "with costs, miso-opt": with_costs / published,
        }

    return with_errors(map(ratios, cell.drawn()))


def refinement(cell: Cell) -> Figures:
    """Return what Table 6 has: how much longer the schedule is without the refinement (%), and its steps.

    ``possible`` is how much the schedule before the refinement is above the area bound: no refinement gains more.
    ``first, improvement`` is gained from the first allocation of the family alone.
    """

    def gained(batch: Batch) -> Figures:
        plan = best_published(batch, Control[Schedule]())
        first = _gain(batch, PublishedPlan(batch, AllocationFamily(batch)))
        found = {"possible": (plan.makespan / area(batch) - 1) * 100, "improvement": _gain(batch, plan)}
        return {**found, "moves": plan.moves, "swaps": plan.swaps, "first, improvement": first}

    rows = list(map(gained, cell.drawn()))
    stepped = [row["improvement"] for row in rows if row["moves"] + row["swaps"]]
    return {**with_errors(rows), "stepped, improvement": statistics.fmean(stepped) if stepped else 0.0}


def _gain(batch: Batch, plan: PublishedPlan) -> float:
    """Refine a plan, and return how much longer it was before, in %."""
    before = plan.makespan
    plan.refine()
    return (before / Refinement(batch, plan.instances()).makespan - 1) * 100


def joins(cell: Cell) -> Figures:
    """Return what Tables 7 and 8 have: how much longer two schedules take one after the other than joined, in %.

    As in the authors' program each batch is joined with itself; ``next`` figures join it with the one after it.
    ``possible`` is how much the two, one after the other, end above the area bound: no join gains more.
    """
    plans = [(batch, schedule(batch, far_published)) for batch in cell.drawn()]

    def gains(first: tuple[Batch, Schedule], second: tuple[Batch, Schedule]) -> Figures:
        batch, plan = second
        state = EndState().after(first[0], first[1])
        # The program begins the second one, with its creations, when the last task of the first one has ended.
        trivial = first[1].makespan + plan.makespan
        ends = {name: arranged(batch, plan, state, moved=name == "moved") for name in ("reversed", "moved")}
        return {
            **{name: (trivial / max(end.makespan, first[1].makespan) - 1) * 100 for name, end in ends.items()},
            "moves": ends["moved"].moves,
            "swaps": ends["moved"].swaps,
            "possible": (trivial / (area(first[0]) + area(batch)) - 1) * 100,
        }

    own = with_errors(gains(plan, plan) for plan in plans)
    after = means(itertools.starmap(gains, itertools.pairwise(plans)))
    return {**own, **{f"next, {name}": after[name] for name in ("reversed", "moved", "moves", "swaps")}}


def unrefined_joins(cell: Cell) -> Figures:
    """Return the gains of joins of schedules of phase 2, each with the next one, in % of the second one's makespan."""
    plans = [(batch, schedule(batch, far_unrefined)) for batch in cell.drawn()]

    def gains(first: tuple[Batch, Schedule], second: tuple[Batch, Schedule]) -> Figures:
        state = EndState().after(first[0], first[1])
        trivial = first[1].makespan + second[1].makespan
        ends = {name: arranged(*second, state, moved=name == "moved").makespan for name in ("reversed", "moved")}
        return {name: (trivial - max(end, first[1].makespan)) / second[1].makespan * 100 for name, end in ends.items()}

    return means(itertools.starmap(gains, itertools.pairwise(plans)))


def stream(cell: Cell) -> Figures:
    """Return what Table 9 has: how much the end of a stream is above the area bound of all its tasks (%).

    ``above`` is what the authors' program computes: it sums the ends of all pairs of neighbours, in which each batch
    stands twice, and each bound once. ``stream`` is what the text says, for the same joins.
    """
    plans = [(batch, schedule(batch, far_published)) for batch in cell.drawn()]
    bound = sum(area(batch) for batch, _ in plans)
    pairs = 0.0  # each is the end of two batches
    for first, second in itertools.pairwise(plans):
        state = EndState().after(first[0], first[1])
        pairs += max(first[1].makespan, joined(*second, state, "moved").makespan)
    state = EndState()
    for batch, plan in plans:
        state = state.after(batch, joined(batch, plan, state, "moved") if state.makespan else plan)
    # There are as many pairs as batches but one, which makes no difference for the paper's thousand.
    by_pair = pairs / (len(plans) - 1) * len(plans)
    return {"above": (by_pair / bound - 1) * 100, "stream": (state.makespan / bound - 1) * 100}


def milliseconds(actions: Iterable[Callable[[], object]]) -> float:
    """Return the median of the processor time of some actions."""
    return statistics.median(timed(action)[1] for action in actions) * 1e3


def means(rows: Iterable[Figures]) -> Figures:
    """Return the mean of each figure."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return {name: statistics.fmean(values) for name, values in found.items()}


def with_errors(rows: Iterable[Figures]) -> Figures:
    """Return the mean of each figure, and its standard error under ``error of`` the figure."""
    rows = list(rows)
    errors = {
        f"error of {name}": statistics.stdev(row[name] for row in rows) / len(rows) ** 0.5 if len(rows) > 1 else 0.0
        for name in rows[0]
    }
    return means(rows) | errors
