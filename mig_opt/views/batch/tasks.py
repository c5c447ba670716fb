"""Pictures of batches: the seconds of each task on each size of instance."""

from __future__ import annotations

from mig_opt.batch.batch import Batch
from mig_opt.texts import plural
from mig_opt.views.batch.schedules import batch_title
from mig_opt.views.scene import Axis, Dots, Line, Panel, Rows, Scene
from mig_opt.views.texts import LINES, colour_of, elide_all, one_line

_MOST_TASKS, _LONGEST = 60, 36  # tasks, and characters of a name
_ROW = 0.22  # inches of a row


def batch_scene(batch: Batch) -> Scene:
    """Return the picture of the run times of tasks: for each a line with a dot for each size of instance.

    A short line means that a task gains little from a larger instance. Of more than 60 tasks the longest are drawn.

    Parameters
    ----------
    batch : Batch
        The batch to draw.

    Returns
    -------
    Scene
        Its title is the name of the batch, the GPUs and the number of tasks.
        The group ids of the artists of a figure are ``task:<name>`` for lines and ``size:<compute slices>`` for dots.

    Examples
    --------
    >>> from mig_opt import load, plot
    >>> plot(load("rodinia-a30")).axes[0].get_xlabel()
    'seconds on an instance (logarithmic)'
    """
    several = len(batch.kinds) > 1
    times = {task.name: [s for kind in batch.kinds for s in task.times_on(kind).values()] for task in batch.tasks}
    tasks = sorted(batch.tasks, key=lambda task: -max(times[task.name], default=0.0))[:_MOST_TASKS]
    names = elide_all([one_line(task.name) for task in tasks], _LONGEST)
    marks: list[Line | Dots] = []
    for row, task in enumerate(tasks):
        ends = [min(times[task.name]), max(times[task.name])]
        marks.append(Line(f"task:{one_line(task.name)}", ends, [row + 0.5] * 2, LINES, width=1.2, steps=False))
    hidden = len(batch.tasks) - len(tasks)
    columns = [(kind, size) for kind in batch.kinds for size in kind.sizes]
    for number, (kind, size) in enumerate(columns):
        known = {row: seconds for row, task in enumerate(tasks) if (seconds := task.times_on(kind).get(size))}
        if known:
            legend = plural(size, "compute slice") + (f" of {kind.name}" if several else "")
            gid = f"size:{kind.name}:{size}" if several else f"size:{size}"
            heights = [row + 0.5 for row in known]
            marks.append(Dots(gid, [*known.values()], heights, colour_of(number), sizes=5, legend=legend))
    x = Axis("seconds on an instance (logarithmic)", scale="log")
    shape = Rows(names, _ROW * max(3, len(names)) / (len(names) + 0.2), margin=0.1)
    panel = Panel("tasks", marks, x, rows=shape, pixels=90 + 22 * len(names), grid="x", zoom="both")
    remarks = [f"{hidden} shorter tasks are not drawn"] if hidden else []
    return Scene(batch_title(batch, plural(len(batch.tasks), "task")), [panel], 7.5, beyond=0.25, remarks=remarks)
