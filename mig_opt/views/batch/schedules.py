"""Gantt charts of schedules, and of plans above their executions, over the memory slices of the GPUs."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.schedule import Lifetime, Operation, Run, Schedule, lifetimes, on_gpus, wrong_types
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.gpu.devices import gpu_name
from mig_opt.views.scene import Box, Boxes, Mark, Panel, Rows, Rule, Scene, second_rule, seconds_axis
from mig_opt.views.texts import BOUND, IDLE, INK, LINES, colour_of, one_line, spell_seconds

_EARLIER, _EARLIER_SIGN = "#d4d4d4", "busy with earlier work"
_OPERATIONS = {"create": ("creation", INK), "destroy": ("destruction", LINES)}
"""The word for each kind of operation, and its colour."""
_GAP = 0.6  # between two GPUs, in slices
_MOST_HEIGHT = 24.0  # inches of all rows and gaps together
_Part = Run | Operation | LiveInstance | Lifetime


def batch_title(batch: Batch, figure: str) -> str:
    """Return the title of a picture: the batch, its GPUs, and a figure."""
    gpus = " + ".join(f"{len(own)} x {kind.label}" if len(own) > 1 else kind.label for kind, own in batch.kinds.items())
    return " · ".join(filter(None, [batch.name, gpus, figure]))


def schedule_problems(batch: Batch, schedule: Schedule, lower_bound: float | None) -> Iterator[Problem]:
    """Yield why a schedule cannot be drawn."""
    wrong = list(wrong_types(batch, schedule))
    if wrong:
        yield from wrong
        return
    parts: list[tuple[str, Run | Operation]] = [(f"runs[{i}]", run) for i, run in enumerate(schedule.runs)]
    parts += [(f"operations[{i}]", operation) for i, operation in enumerate(schedule.operations or ())]
    for path, part in parts:
        if not 0 <= part.gpu < batch.gpus:
            yield Problem(f"{path}.gpu", f"must be from 0 to {batch.gpus - 1}, is {part.gpu}")
        kind = batch.kind(part.gpu if 0 <= part.gpu < batch.gpus else 0)
        try:
            last = kind.memory_slices - kind.profile(part.profile).memory_slices
        except InputError as error:
            yield from (problem.below(path) for problem in error.problems)
        else:
            if not 0 <= part.start <= last:
                yield Problem(f"{path}.start", f"must be from 0 to {last} for {part.profile}, is {part.start}")
        for key, seconds in (("begin", part.begin), ("end", part.end)):
            if not math.isfinite(seconds):
                yield Problem(f"{path}.{key}", f"must be a finite number of seconds, is {seconds}")
    if lower_bound is not None and not math.isfinite(lower_bound):
        yield Problem("lower_bound", f"must be a finite number of seconds, is {lower_bound}")


def schedule_scene(batch: Batch, schedule: Schedule, lower_bound: float | None = None) -> Scene:
    """Return the picture of a schedule: a Gantt chart over the memory slices of the GPUs.

    A task whose name does not fit into its rectangle shows a number instead, explained below the chart. The schedule
    need not be valid: a chart is a good way to see what is wrong with it.

    Parameters
    ----------
    batch : Batch
        The batch that was planned.
    schedule : Schedule
        The schedule. Without operations, only runs are drawn.
    lower_bound : float, optional
        Seconds; drawn as a dashed line beside the makespan.

    Returns
    -------
    Scene
        Its title is the batch's name, the GPUs and the makespan.
        A figure of it has one panel (``figure.axes``) for each GPU. The group ids of the artists say what they are:
        ``run:<task>``, ``label:<task>``, ``create:<index>`` and ``destroy:<index>`` (of the operation),
        ``instance:<index>``, ``profile:<index>``, ``earlier:<index>`` (of ``batch.initial``), ``makespan``,
        ``lower-bound`` and their ``...-label``.

    Raises
    ------
    InputError
        If the schedule names a GPU, profile or slice that the batch does not have, or a time that is not finite.

    Examples
    --------
    >>> from mig_opt import Batch, Run, Schedule, Task, get_gpu, plot
    >>> batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    >>> plot(batch, Schedule((Run("a", 0, "4g.24gb", 0, begin=0.13, end=2.13),))).axes[0].get_xlabel()
    'time in seconds'
    """
    raise_any(schedule_problems(batch, schedule, lower_bound))
    title = batch_title(batch, f"makespan {spell_seconds(schedule.makespan)}")
    rules = [second_rule("makespan", schedule.makespan, "makespan", INK, dashed=False)]
    if lower_bound is not None:
        rules.append(second_rule("lower-bound", lower_bound, "lower bound", BOUND, dashed=True))
    return _scene(batch, schedule, rules, title, [f"GPU {_name(batch, gpu)}" for gpu in range(batch.gpus)])


def _name(batch: Batch, gpu: int) -> str:
    """Return what to call a GPU: its number or device, and its kind where there are several."""
    return gpu_name(batch.devices, gpu) + ("" if batch.gpu else f" ({batch.kind(gpu).name})")


def execution_scene(batch: Batch, plan: Schedule, measured: Schedule) -> Scene:
    """Return the picture of a plan and the schedule that it was in truth, one above the other.

    Parameters
    ----------
    batch : Batch
        The batch that was planned.
    plan, measured : Schedule
        The schedule that was planned, and the one that was measured.

    Returns
    -------
    Scene
        Its title is the batch's name and both makespans.
        A figure of it has for each GPU a panel with the plan, then for each GPU one with what was measured.

    Raises
    ------
    InputError
        As :func:`schedule_scene`.
    """
    raise_any([*schedule_problems(batch, plan, None), *schedule_problems(batch, measured, None)])
    spelled = (spell_seconds(each.makespan) for each in (plan, measured))
    title = " · ".join(filter(None, [batch.name, "planned {}, measured {}".format(*spelled)]))
    below = [dataclasses.replace(live, gpu=live.gpu + batch.gpus) for live in batch.initial]
    lower = on_gpus(measured, {gpu: gpu + batch.gpus for gpu in range(batch.gpus)})
    both = Schedule((*plan.runs, *lower.runs), (*(plan.operations or ()), *(lower.operations or ())))
    names = [
        f"{word} {_name(batch, gpu)}" if batch.gpus > 1 else word
        for word in ("plan", "measured")
        for gpu in range(batch.gpus)
    ]
    rules = [
        second_rule("measured", measured.makespan, "measured", INK, dashed=False),
        second_rule("planned", plan.makespan, "planned", BOUND, dashed=True),
    ]
    return _scene(batch, both, rules, title, names, initial=(*batch.initial, *below))


def _scene(
    batch: Batch,
    schedule: Schedule,
    rules: Sequence[Rule],
    title: str,
    names: Sequence[str],
    *,
    initial: Sequence[LiveInstance] | None = None,
) -> Scene:
    """Return the picture of a schedule: a row of memory slices for each GPU, the seconds from left to right.

    There may be more names than GPUs: these are then drawn again, with other parts and the ``initial`` instances.
    """
    operations = schedule.operations or ()
    initial = batch.initial if initial is None else initial
    most = max(kind.memory_slices for kind in batch.kinds)
    # No task is drawn without room for it.
    parts: list[Run | Operation] = [*schedule.runs, *operations]
    ends = [part.end for part in parts] + [live.free for live in initial]
    first = min([0.0, *(part.begin for part in parts)])
    last = max([0.0, *(rule.at for rule in rules[1:]), *ends]) or 1.0
    slices = len(names) * most
    unit = min(0.5, max(0.2, 5.5 / slices), _MOST_HEIGHT / (slices + _GAP * (len(names) - 1)))
    rows = Rows(names, unit, most, _GAP, slices=True, part=1)

    def box(part: _Part, begin: float, end: float, gid: str, facts: Sequence[str] = (), **words: str) -> Box:
        memory = batch.kind(part.gpu % batch.gpus).profile(part.profile).memory_slices
        footprint = range(part.start, part.start + memory)
        return rows.box(part.gpu, footprint, (begin, end), facts, gid=gid, **words)

    earlier = [
        box(live, 0.0, live.free, f"earlier:{index}", colour=_EARLIER, head=_EARLIER_SIGN)
        for index, live in enumerate(initial)
        if live.free > 0
    ]
    tasks = sorted({task.name for task in batch.tasks} | {run.task for run in schedule.runs})
    colours = {name: colour_of(index) for index, name in enumerate(tasks)}
    runs = []
    for run in sorted(schedule.runs, key=lambda run: (run.gpu, run.begin, run.start)):
        name, gpu = one_line(run.task), f"{names[run.gpu]}, " if len(names) > 1 else ""
        words = {"colour": colours[run.task], "head": name, "label": name}
        words["place"] = f"{gpu}slice {run.start}, at {spell_seconds(run.begin)}"
        runs.append(box(run, run.begin, run.end, f"run:{name}", [f"on {run.profile}"], **words))
    done: dict[str, list[Box]] = {kind: [] for kind in _OPERATIONS}
    for index, each in enumerate(operations):
        word, colour = _OPERATIONS[each.kind]
        head = f"{word} of {each.profile}"
        done[each.kind].append(box(each, each.begin, each.end, f"{each.kind}:{index}", colour=colour, head=head))
    instances = []
    for index, (held, begin, end) in enumerate(_instances(initial, schedule, last)):
        words = {"colour": IDLE, "head": f"{held.profile} without a task", "label": held.profile}
        instances.append(box(held, begin, end, f"instance:{index}", **words))
    idle = [dataclasses.replace(each, gid=each.gid.replace("instance", "idle"), label="") for each in instances]
    counts = [batch.kind(gpu % batch.gpus).memory_slices for gpu in range(len(names))]
    marks: list[Mark] = [
        *rows.missing(counts, (first, last), "unused"),
        Boxes("idle", idle, "instance without a task", beneath=True),
        Boxes("earlier", earlier, _EARLIER_SIGN),
        Boxes("run", runs),
        *(Boxes(kind, boxes, _OPERATIONS[kind][0]) for kind, boxes in done.items()),
        Boxes("instance", instances),
        *rules,
    ]
    busiest = max(Counter(run.gpu for run in schedule.runs).values(), default=0)
    width = min(15.0, max(8.75, 6.75 + 0.08 * busiest))
    panel = Panel("", marks, seconds_axis(first, last, 0.01), rows=rows)
    return Scene(title, [panel], width, left=1.0 if len(names) > 1 else 0.7)


def _instances(
    initial: Sequence[LiveInstance], schedule: Schedule, last: float
) -> Iterable[tuple[Lifetime | Operation, float, float]]:
    """Yield each instance with begin and end of its lifetime; without operations none is known."""
    if schedule.operations is None:
        return
    found, stray = lifetimes(initial, schedule.operations)
    for each in found:
        yield each, each.begin, last if each.destroyed is None else each.end
    # An instance that never existed is drawn as long as its destruction.
    for operation in (schedule.operations[index] for index in stray):
        if operation.kind == "destroy":
            yield operation, operation.begin, operation.end
