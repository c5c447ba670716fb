"""A batch without operation costs as a model of PyJobShop, a general library for scheduling by CP-SAT.

Each memory slice is a machine, and a mode of a task occupies the machines of one footprint at the same time: the whole
problem, as long as creating and destroying instances takes no time. Of placements with the same footprint a task needs
only the fastest; the other modes are left out, which helps PyJobShop. Machines (no-overlap) are much faster there than
renewable resources of capacity 1 (cumulative).
"""

from dataclasses import dataclass

from pyjobshop import Model

from mig_opt import Batch, Placement, Run, Schedule, Task
from mig_opt.batch.integer_batch import Ticks


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of PyJobShop: seconds of its own clock (the solver alone), status as :class:`mig_opt.Status` has it."""

    status: str
    schedule: Schedule | None
    lower_bound: float
    seconds: float


def solve(batch: Batch, time_limit: float | None, workers: int) -> Answer:
    """Solve a batch for one GPU, without operation costs and live instances, in the ticks that mig_opt takes too."""
    assert batch.gpus == 1
    assert not batch.initial
    assert not any([*batch.operations.create.values(), *batch.operations.destroy.values()])
    ticks = Ticks.of(batch)
    assert ticks.exact
    model = Model()
    machines = [model.add_machine() for _ in range(batch.kind(0).memory_slices)]
    placed: list[tuple[Task, Placement]] = []
    for task in batch.tasks:
        job = model.add_task(name=task.name)
        for seconds, placement in _fastest_by_footprint(batch, task):
            covered = [machines[slice_] for slice_ in placement.footprint]
            model.add_mode(job, covered, ticks.floor(seconds))
            placed.append((task, placement))
    limit = float("inf") if time_limit is None else time_limit
    # Else OR-Tools takes Ctrl-C for itself: what was cut short then looks like a result, and the next one kills Python.
    result = model.solve(time_limit=limit, display=False, num_workers=workers, catch_sigint_signal=False)
    if not result.best.tasks:
        return Answer("no_solution", None, 0.0, result.runtime)
    unit = float(ticks.length)
    runs = []
    for entry in result.best.tasks:
        task, placement = placed[entry.mode]
        profile = placement.profile.name
        runs.append(Run(task.name, 0, profile, placement.start, entry.start * unit, entry.end * unit))
    return Answer(result.status.value.lower(), Schedule(tuple(runs)), result.lower_bound * unit, result.runtime)


def _fastest_by_footprint(batch: Batch, task: Task) -> list[tuple[float, Placement]]:
    fastest: dict[range, tuple[float, Placement]] = {}
    for placement, seconds in batch.options(task):
        known = fastest.get(placement.footprint)
        if known is None or seconds < known[0]:
            fastest[placement.footprint] = seconds, placement
    return list(fastest.values())
