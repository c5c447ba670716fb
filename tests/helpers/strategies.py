"""Hypothesis strategies for GPUs, tasks, batches and decisions, shared by the tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from hypothesis import strategies as st

from mig_opt import Batch, LiveInstance, Task, catalogue, get_gpu
from mig_opt.batch.schedule import OperationKind
from mig_opt.batch.timing import PlannedInstance
from mig_opt.gpu.model import GpuModel, OperationCosts, Placement, ProfileSet

PROFILE_SETS: tuple[ProfileSet, ...] = ("base", "double-memory", "all")

# Two sizes of A30, and the two families that differ most from it; of the A100 family two cost tables.
A30, A100, H100, RTX = (get_gpu(name) for name in ("A30", "A100", "H100", "RTX-PRO-6000"))

gpus: st.SearchStrategy[GpuModel] = st.sampled_from((A30, A100, H100, RTX))
any_gpu: st.SearchStrategy[GpuModel] = st.sampled_from(catalogue())

whole_seconds = st.integers(1, 6).map(float)
"""Few values: many ties."""
decimal_seconds = st.integers(1, 3000).map(lambda n: n / 100)
any_seconds = st.floats(0.001, 100.0)
seconds = st.one_of(whole_seconds, decimal_seconds, any_seconds)


@st.composite
def tasks(
    draw: st.DrawFn, gpu: GpuModel, name: str = "t", times: st.SearchStrategy[float] = seconds, memory: bool = True
) -> Task:
    """A task that can run somewhere on ``gpu``: any sizes, any times, any amount of memory that some of them have."""
    sizes = draw(st.one_of(st.just(gpu.sizes), st.lists(st.sampled_from(gpu.sizes), min_size=1, unique=True)))
    shape = draw(st.sampled_from(["any", "any", "linear", "super-linear", "falling"]))
    if shape == "any":
        spread = {size: draw(times) for size in sizes}
    elif shape == "falling":
        ordered = sorted((draw(times) for _ in sizes), reverse=True)
        spread = dict(zip(sorted(sizes), ordered, strict=True))
    else:
        whole = draw(times) * 10
        spread = {size: whole / size ** (1 if shape == "linear" else 1.5) for size in sizes}
    needed = None
    if memory and draw(st.integers(0, 5)) == 5:
        most = max(p.memory_gb for p in gpu.profiles_of("double-memory") if p.compute_slices in sizes)
        needed = draw(st.one_of(st.just(float(most)), st.integers(1, int(most)).map(float)))
    return Task(name, spread, needed)


@st.composite
def costs(draw: st.DrawFn, gpu: GpuModel, at_most: float = 2.0) -> OperationCosts:
    """The GPU's own table, no costs at all, or any costs, some of them possibly zero."""
    kind = draw(st.sampled_from(["own", "own", "zero", "any"]))
    if kind == "own":
        return gpu.operation_costs
    if kind == "zero":
        return OperationCosts.zero(gpu)
    each = st.one_of(st.just(0.0), st.integers(1, 100).map(lambda n: at_most * n / 100), st.floats(0.0, at_most))
    return OperationCosts({s: draw(each) for s in gpu.sizes}, {s: draw(each) for s in gpu.sizes}, "drawn")


@cache
def states(gpu: GpuModel, profiles: ProfileSet) -> tuple[tuple[Placement, ...], ...]:
    return tuple(gpu.placed_states(profiles))


@st.composite
def initial_states(draw: st.DrawFn, gpu: GpuModel, count: int) -> tuple[LiveInstance, ...]:
    """Part of any placed state on each of ``count`` GPUs, variants with attributes included."""
    free = st.one_of(st.just(0.0), st.integers(1, 300).map(lambda n: n / 100), whole_seconds, st.floats(0.0, 50.0))
    live: list[LiveInstance] = []
    for index in range(count):
        profiles: ProfileSet = draw(st.sampled_from(["base", "base", "base", "double-memory", "all"]))
        for placement in draw(st.sampled_from(states(gpu, profiles))):
            if draw(st.booleans()):
                live.append(LiveInstance(index, placement.profile.name, placement.start, draw(free)))
    return tuple(draw(st.permutations(live)))


@st.composite
def batches(
    draw: st.DrawFn,
    models: st.SearchStrategy[GpuModel] = gpus,
    max_tasks: int = 8,
    max_gpus: int = 2,
    times: st.SearchStrategy[float] = seconds,
    initial: bool = True,
    zero_costs: bool = False,
) -> Batch:
    """A batch with every feature that batches have; each task can run somewhere."""
    gpu = draw(models)
    count = draw(st.integers(1, max_gpus))
    live = draw(initial_states(gpu, count)) if initial and draw(st.booleans()) else ()
    operations = OperationCosts.zero(gpu) if zero_costs else draw(costs(gpu))
    parallel = draw(st.integers(0, 2)) == 2
    names = [f"t{index}" for index in range(draw(st.integers(1, max_tasks)))]
    return Batch(tuple(draw(tasks(gpu, name, times)) for name in names), gpu, count, operations, live, parallel)


@st.composite
def realistic_batches(
    draw: st.DrawFn, models: st.SearchStrategy[GpuModel] = gpus, max_tasks: int = 20, max_gpus: int = 2
) -> Batch:
    """A batch whose tasks scale like real ones and fill the GPUs, so that bounds are tight and many plans compete.

    The numbers come from a drawn seed: they do not shrink, but differ far more than drawn numbers do.
    """
    gpu, count, n = draw(models), draw(st.integers(1, max_gpus)), draw(st.integers(1, max_tasks))
    rng = Random(draw(st.integers(0, 2**32 - 1)))

    def task(name: str) -> Task:
        whole, scaling = rng.uniform(1.0, 20.0), rng.uniform(0.0, 1.2)
        times = {size: round(whole / size**scaling * rng.uniform(0.9, 1.1), 3) for size in gpu.sizes}
        lost = rng.choice((0, 0, 0, 1, 2))  # too little memory on the smallest sizes
        return Task(name, dict(list(times.items())[lost:]))

    live = [
        LiveInstance(index, placement.profile.name, placement.start, rng.choice((0.0, round(rng.uniform(0.0, 5.0), 2))))
        for index in range(count)
        for placement in rng.choice(states(gpu, "base"))
        if rng.random() < 0.5
    ]
    costs = rng.choice((gpu.operation_costs, gpu.operation_costs, OperationCosts.zero(gpu)))
    names = [f"t{index}" for index in range(n)]
    initial = tuple(live) if rng.random() < 0.4 else ()
    return Batch(tuple(map(task, names)), gpu, count, costs, initial, rng.random() < 0.2)


wide_seconds = st.tuples(st.floats(-6, 6), st.integers(1, 17)).map(lambda one: float(f"{10 ** one[0]:.{one[1]}g}"))
"""Times over twelve orders of magnitude, of any number of digits."""


@st.composite
def spread_batches(draw: st.DrawFn, max_tasks: int = 3, max_gpus: int = 2) -> Batch:
    """A batch whose times, of tasks and of all else, are over twelve orders of magnitude, or over two."""
    center = draw(st.one_of(st.none(), st.floats(-5, 5)))
    near = st.floats(-1, 1).map(lambda one: float(f"{10 ** ((center or 0) + one):.6g}"))
    near = wide_seconds if center is None else near
    batch = draw(batches(gpus, max_tasks, max_gpus, near, initial=True))

    def costs(table: Mapping[int, float]) -> dict[int, float]:
        return {size: draw(near) / 10 for size in table}

    drawn = OperationCosts(costs(batch.operations.create), costs(batch.operations.destroy))
    operations = draw(st.sampled_from([batch.operations, OperationCosts.zero(batch.gpu), drawn]))
    live = [replace(one, free=draw(st.one_of(st.just(0.0), near, wide_seconds))) for one in batch.initial]
    return batch.replace(operations=operations, initial=tuple(live))


@st.composite
def late_things(draw: st.DrawFn, batch: Batch) -> Batch:
    """The batch with a size or a GPU more, of a time that is longer than everything else together."""
    operation = max((*batch.operations.create.values(), *batch.operations.destroy.values()))
    total = sum(max(task.times.values()) + 4 * operation for task in batch.tasks)
    total += sum(live.free + operation for live in batch.initial)
    late = total * 10 ** draw(st.floats(1, 12)) + draw(st.sampled_from([0.0, 0.123457]))
    places = [(at, size) for at, task in enumerate(batch.tasks) for size in batch.gpu.sizes if size not in task.times]
    kind = draw(st.sampled_from(["busy GPU", "busy GPU first", *["time"] * bool(places)]))
    if kind == "time":
        at, size = draw(st.sampled_from(places))
        tasks = list(batch.tasks)
        tasks[at] = replace(tasks[at], times={**tasks[at].times, size: late})
        return batch.replace(tasks=tuple(tasks))
    first = int(kind == "busy GPU first")
    live = [replace(one, gpu=one.gpu + first) for one in batch.initial]
    any_place = batch.placements()[0]
    busy = LiveInstance(0 if first else batch.gpus, any_place.profile.name, any_place.start, late)
    return batch.replace(gpus=batch.gpus + 1, initial=(*live, busy))


tiny_batches = batches(
    st.sampled_from(["A30", "A30", "RTX-PRO-6000", "A100"]).map(get_gpu), max_tasks=3, max_gpus=1
).filter(lambda batch: batch.gpu.memory_slices != 8 or (len(batch.tasks) <= 2 and len(batch.initial) <= 2))
"""Small enough for brute force."""


def place_of(batch: Batch, task: Task) -> st.SearchStrategy[tuple[int, Placement]]:
    """Any GPU and any placement on which a task can run."""
    return st.tuples(st.integers(0, batch.gpus - 1), st.sampled_from([at for at, _ in batch.options(task)]))


def places(batch: Batch) -> st.SearchStrategy[list[tuple[int, Placement]]]:
    """A place for each task."""
    return st.tuples(*(place_of(batch, task) for task in batch.tasks)).map(list)


@dataclass(frozen=True, slots=True)
class Decisions:
    """Arguments of :func:`mig_opt.batch.timing.timed_schedule`."""

    batch: Batch
    instances: Sequence[PlannedInstance]
    operations: Sequence[tuple[OperationKind, int]]


@st.composite
def decisions(draw: st.DrawFn, models: st.SearchStrategy[GpuModel] = gpus) -> Decisions:
    """Random decisions: instances come and go in any order, with re-creations and destructions that nobody needs."""
    batch = draw(batches(models))
    instances = [
        PlannedInstance(live.gpu, batch.gpu.placement(live.profile, live.start), free=live.free)
        for live in batch.initial
    ]
    alive = list(range(len(instances)))
    operations: list[tuple[OperationKind, int]] = []

    def destroy(index: int) -> None:
        operations.append(("destroy", index))
        alive.remove(index)

    for task in draw(st.permutations(batch.tasks)):
        if alive and draw(st.integers(0, 4)) == 0:
            destroy(draw(st.sampled_from(alive)))
        gpu, placement = draw(place_of(batch, task))
        there = [at for at in alive if (instances[at].gpu, instances[at].placement) == (gpu, placement)]
        if not there:
            for at in list(alive):
                if instances[at].gpu == gpu and instances[at].placement.conflicts(placement):
                    destroy(at)
            there = [len(instances)]
            alive += there
            instances.append(PlannedInstance(gpu, placement))
            operations.append(("create", there[0]))
        instances[there[0]].tasks.append(task)
    return Decisions(batch, instances, operations)


def scaled(batch: Batch, scale: float, costs_too: bool) -> Batch:
    def times(table: Mapping[int, float]) -> dict[int, float]:
        # A product has digits that nobody wrote, far below any tick.
        return {size: float(f"{seconds * scale:.12g}") for size, seconds in table.items()}

    tables = [times(table) if costs_too else table for table in (batch.operations.create, batch.operations.destroy)]
    return batch.replace(
        tasks=tuple(replace(task, times=times(task.times)) for task in batch.tasks),
        operations=OperationCosts(*tables),
        initial=tuple(replace(one, free=times({0: one.free})[0]) for one in batch.initial),
    )
