"""Charts of batches: the seconds of each task on each size of instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.texts import plural
from mig_opt.views.batch.layout import batch_title
from mig_opt.views.output import draw_figure
from mig_opt.views.sheet import Sheet
from mig_opt.views.texts import GRID, INK, colour_of, elide_all, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_TASKS, _LONGEST = 60, 36  # tasks, and characters of a name
_ROW, _WIDTH, _RIGHT = 0.22, 7.5, 0.3  # inches


def plot_batch(batch: Batch, *, title: str | None = None) -> Figure:
    """Draw the run times of the tasks of a batch: for each a line with a dot for each size of instance.

    A short line means that a task gains little from a larger instance. Of more than 60 tasks the longest are drawn.

    Parameters
    ----------
    batch : Batch
        What to draw.
    title : str, optional
        By default the name of the batch, the GPUs and the number of tasks.

    Returns
    -------
    matplotlib.figure.Figure
        The group ids of the artists are ``task:<name>`` for lines and ``size:<compute slices>`` for dots.

    Raises
    ------
    InputError
        If matplotlib is not installed, or this is no batch.

    Examples
    --------
    >>> from mig_opt import load_instance
    >>> figure = plot_batch(load_instance("rodinia-a30"))
    >>> figure.axes[0].get_xlabel()
    'seconds on an instance (logarithmic)'
    """
    return draw_figure(wrong_batch(batch), lambda: BatchChart(batch, title))


class BatchChart(Sheet):
    """The chart of one batch. Lengths are inches."""

    def __init__(self, batch: Batch, title: str | None) -> None:
        super().__init__(batch_title(batch, plural(len(batch.tasks), "task")) if title is None else title)
        self.batch = batch
        longest = sorted(batch.tasks, key=lambda task: -max(task.times.values(), default=0.0))
        self.tasks = longest[:_MOST_TASKS]
        self.names = elide_all([one_line(task.name) for task in self.tasks], _LONGEST)
        self.left = max(self.size(name, 8)[0] for name in self.names) / 72 + 0.25
        self.panel_width, self.width = _WIDTH, self.left + _WIDTH + _RIGHT
        self.panel: Axes = self.add_panel("tasks")
        self.place_panels(above=1, below=1)

    def draw(self) -> Figure:
        """Draw everything and return the figure."""
        axes = self.panel
        self.dress(axes)
        axes.set_xscale("log")
        axes.set_ylim(len(self.tasks) - 0.4, -0.6)
        axes.set_yticks(range(len(self.tasks)), self.names)
        for label in axes.get_yticklabels():
            label.set_parse_math(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x", color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("seconds on an instance (logarithmic)", color=INK, fontsize=9)
        for row, task in enumerate(self.tasks):
            if task.times:
                ends = min(task.times.values()), max(task.times.values())
                axes.plot(ends, (row, row), color="#9a9a9a", linewidth=1.2, gid=f"task:{one_line(task.name)}", zorder=2)
        signs, words = [], []
        for number, size in enumerate(self.batch.gpu.sizes):
            found = [(task.times[size], row) for row, task in enumerate(self.tasks) if size in task.times]
            if found:
                dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5, "color": colour_of(number)}
                seconds, rows = zip(*found, strict=True)
                signs += axes.plot(seconds, rows, gid=f"size:{size}", zorder=3, **dots)
                words.append(plural(size, "compute slice"))
        hidden = len(self.batch.tasks) - len(self.tasks)
        if hidden and words:
            words[-1] += f" ({hidden} shorter tasks not drawn)"
        self.arrange([self.key(signs, words)] if signs else [], above=0.12, axis=0.55)
        return self.figure

    def place_panels(self, above: float, below: float) -> None:
        """Give the panel its place, and the figure its height."""
        height = _ROW * max(3, len(self.tasks))
        self.figure.set_size_inches(self.width, above + height + below)
        self.place(self.panel, self.left, below, self.panel_width, height)
