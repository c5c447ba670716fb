"""Gantt charts of schedules: where everything goes, which texts fit, and in which colours."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.views.batch.layout import (
    EARLIER,
    EARLIER_SIGN,
    IDLE_SIGN,
    OPERATIONS,
    Box,
    ScheduleLayout,
    schedule_problems,
)
from mig_opt.views.batch.pages import schedule_page
from mig_opt.views.output import draw_figure, save_chart
from mig_opt.views.sheet import FINE, Sheet, add_rectangle, plain_numbers, sign
from mig_opt.views.texts import GRID, IDLE, INK, apart, contrast, elide, one_line, spell_seconds, wrap_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.patches import Patch
    from matplotlib.patheffects import AbstractPathEffect
    from matplotlib.text import Text

_GAP = 0.6  # between two panels, in rows
_RIGHT = 0.25  # inches beside the panels
_MOST_HEIGHT = 24.0  # inches of all rows and gaps together
_LEAST_OPERATION = 2.5  # points
_FONTS = (9.0, 5.0)  # largest and smallest size of names in their rectangles, in points
_TAG_FONT = 5.0
_PADDING = 1.2  # points between a name and the edge of its rectangle


def plot_schedule(
    batch: Batch, schedule: Schedule, *, lower_bound: float | None = None, title: str | None = None
) -> Figure:
    """Draw a schedule as a Gantt chart over the memory slices of the GPUs.

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
    title : str, optional
        By default the batch's name, the GPUs and the makespan.

    Returns
    -------
    matplotlib.figure.Figure
        One panel (``figure.axes``) for each GPU. The group ids of the artists say what they are: ``run:<task>``,
        ``label:<task>``, ``create:<index>`` and ``destroy:<index>`` (of the operation), ``instance:<index>``,
        ``profile:<index>``, ``earlier:<index>`` (of ``batch.initial``), ``makespan``, ``lower-bound``
        and their ``...-label``.

    Raises
    ------
    InputError
        If matplotlib is not installed, or the schedule names a GPU or profile that the batch does not have, or a time
        that is not finite.

    Examples
    --------
    >>> from mig_opt import Batch, Run, Schedule, Task, get_gpu
    >>> batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    >>> figure = plot_schedule(batch, Schedule((Run("a", 0, "4g.24gb", 0, begin=0.13, end=2.13),)))
    >>> figure.axes[0].get_xlabel()
    'time in seconds'
    """
    problems = schedule_problems(batch, schedule, lower_bound)
    return draw_figure(problems, lambda: ScheduleChart(ScheduleLayout.of_schedule(batch, schedule, lower_bound, title)))


def save_plot(
    batch: Batch,
    schedule: Schedule,
    path: str | os.PathLike[str],
    *,
    lower_bound: float | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None:
    """Write the chart of :func:`plot_schedule` to a file.

    Equal arguments give equal files. An existing file is replaced only when the new one is complete.

    Parameters
    ----------
    batch, schedule, lower_bound, title
        As for :func:`plot_schedule`.
    path : path-like
        The file; its suffix gives the format: png, pdf, svg, or html for a page to explore: it zooms, pans, says
        about each task where and when it runs, and needs no network.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`plot_schedule` and :func:`~mig_opt.views.check_plot_path`, and if the file cannot be written.
    """
    save_chart(
        lambda: plot_schedule(batch, schedule, lower_bound=lower_bound, title=title),
        lambda: schedule_page(batch, schedule, lower_bound, title),
        path,
        dpi,
    )


class ScheduleChart(Sheet):
    """The Gantt chart of one schedule. Lengths are inches unless a name says otherwise."""

    def __init__(self, layout: ScheduleLayout) -> None:
        super().__init__(layout.title)
        self.layout, self.batch = layout, layout.batch
        batch, first, self.last = layout.batch, *layout.limits
        self.limits = (first, self.last + 0.01 * (self.last - first))
        self.colours = layout.colours()

        busiest = max(Counter(run.gpu for run in layout.schedule.runs).values(), default=0)
        self.panel_width = min(15.0, max(8.75, 6.75 + 0.08 * busiest))
        self.left = 1.0 if batch.gpus > 1 else 0.7
        self.width = self.left + self.panel_width + _RIGHT
        slices, gaps = batch.gpus * batch.gpu.memory_slices, _GAP * (batch.gpus - 1)
        self.row = min(0.5, max(0.2, 5.5 / slices), _MOST_HEIGHT / (slices + gaps))
        self.panel, self.gap = self.row * batch.gpu.memory_slices, self.row * _GAP
        self.points_per_second = 72 * self.panel_width / (self.limits[1] - self.limits[0])

        self.panels: list[Axes] = [self.add_panel() for _ in range(batch.gpus)]
        self.place_panels(above=1, below=1)

    def draw(self) -> Figure:
        """Draw everything, from the back to the front, and return the figure."""
        for gpu, axes in enumerate(self.panels):
            self.dress_panel(gpu, axes)
        signs: dict[str, Patch] = {}
        self.draw_earlier_work(signs)
        operations = self.draw_operations(signs)
        instances = self.draw_instances(signs)
        labels, legends = self.draw_runs(operations)
        self.draw_profiles(instances, operations, labels)
        if signs:
            legends.insert(0, self.legend(list(signs.values()), list(signs), columns=len(signs)))
        self.arrange(legends, above=self.draw_lines() + 0.12, axis=0.5)
        return self.figure

    def place_panels(self, above: float, below: float) -> None:
        """Give the panels their places, and the figure its height, with room above and below them."""
        height = above + len(self.panels) * (self.panel + self.gap) - self.gap + below
        self.figure.set_size_inches(self.width, height)
        for gpu, axes in enumerate(self.panels):
            bottom = height - above - gpu * (self.panel + self.gap) - self.panel
            self.place(axes, self.left, bottom, self.panel_width, self.panel)

    def dress_panel(self, gpu: int, axes: Axes) -> None:
        """Draw the axes of a panel, its ticks and labels."""
        slices, last = self.batch.gpu.memory_slices, gpu == len(self.panels) - 1
        axes.set_xlim(*self.limits)
        axes.set_ylim(slices, 0)
        self.dress(axes)
        every = math.ceil(9 / (72 * self.row))
        labelled = range(0, slices, every)
        axes.set_yticks([position + 0.5 for position in labelled], [f"slice {position}" for position in labelled])
        axes.tick_params(axis="y", length=0, labelsize=min(8.0, 60 * self.row * every), labelcolor=INK)
        axes.tick_params(axis="x", labelbottom=last)
        plain_numbers(axes, self.last)
        axes.hlines(range(1, slices), *self.limits, color=GRID, linewidth=0.5, zorder=0)
        if len(self.panels) > 1:
            size = min(9.0, 15 * self.panel)
            axes.set_ylabel(self.layout.panel_names[gpu], color=INK, fontsize=size, fontweight="bold", va="center")
            axes.yaxis.set_label_coords(-0.75 / self.panel_width, 0.5)
        if last:
            axes.set_xlabel("time in seconds", color=INK, fontsize=9)

    def rectangle(self, box: Box, gid: str, **style: Any) -> Patch:
        """Draw a box and return it."""
        corner, size = (box.begin, box.slices.start), (box.end - box.begin, len(box.slices))
        return add_rectangle(self.panels[box.gpu], corner, *size, gid=gid, **style)

    def draw_earlier_work(self, signs: dict[str, Patch]) -> None:
        """Draw what live instances are busy with before the batch."""
        style: dict[str, Any] = {"facecolor": EARLIER, "edgecolor": "#8a8a8a", "hatch": "////", "linewidth": 0.0}
        for index, box in self.layout.earlier():
            signs[EARLIER_SIGN] = self.rectangle(box, f"earlier:{index}", zorder=2, **style)

    def draw_operations(self, signs: dict[str, Patch]) -> list[Box]:
        """Draw the operations, widened into the lifetime of their instance, and return the boxes that they cover."""
        least = _LEAST_OPERATION / self.points_per_second
        remark = " (not to scale)" if any(part.end - part.begin < least for part in self.layout.operations) else ""
        covered = []
        for index, part in sorted(enumerate(self.layout.operations), key=lambda entry: entry[1].kind):
            begin = part.begin if part.kind == "create" else min(part.begin, part.end - least)
            end = max(part.end, part.begin + least) if part.kind == "create" else part.end
            covered.append(Box.of(self.batch, part, begin, end))
            word, colour = OPERATIONS[part.kind]
            style: dict[str, Any] = {"facecolor": colour, "edgecolor": INK, "linewidth": 0.7, "zorder": 4}
            signs[f"{word}{remark}"] = self.rectangle(covered[-1], f"{part.kind}:{index}", **style)
        return covered

    def draw_instances(self, signs: dict[str, Patch]) -> list[tuple[str, Box]]:
        """Draw the lifetime of each instance, and return it with the profile's name."""
        boxes = self.layout.instances()
        for index, (_, box) in enumerate(boxes):
            idle = self.rectangle(box, f"idle:{index}", facecolor=IDLE, edgecolor="none", zorder=1)
            self.rectangle(box, f"instance:{index}", fill=False, edgecolor=INK, linewidth=0.9, zorder=5)
            signs[IDLE_SIGN] = idle
        return boxes

    def draw_runs(self, operations: Sequence[Box]) -> tuple[list[Text], list[Legend]]:
        """Draw the runs with their names; return these, and the key to the names that do not fit."""
        labels: list[Text] = []
        signs: list[Patch] = []
        key: list[str] = []
        numbers = 0
        for run in self.layout.runs():
            colour, name = self.colours[run.task], one_line(run.task)
            box = Box.of(self.batch, run, run.begin, run.end)
            # A white edge would hide a run that is not wider than the edge.
            narrow = (run.end - run.begin) * self.points_per_second < 3
            edge, weight = (colour, 0.3) if narrow else ("white", 0.8)
            self.rectangle(box, f"run:{name}", facecolor=colour, edgecolor=edge, linewidth=weight, zorder=3)
            free = box.beside(operations)
            label = self.label(free, f"label:{name}", colour)
            width = (free.end - free.begin) * self.points_per_second - 2 * _PADDING
            height = 72 * self.row * len(box.slices) - 2 * _PADDING
            if not self.fit(label, name, width, height):
                signs.append(sign(colour))
                if self.fit(label, f"#{numbers + 1}", width, height):
                    numbers += 1
                    key.append(f"#{numbers} {elide(name)}")
                else:
                    label.remove()
                    gpu = f"{self.layout.panel_names[run.gpu]}, " if len(self.panels) > 1 else ""
                    key.append(f"{elide(name)} ({gpu}slice {run.start}, at {spell_seconds(run.begin)})")
                    continue
            labels.append(label)
        return labels, [self.key(signs, key)] if key else []

    def label(self, box: Box, gid: str, colour: str) -> Text:
        """Return an empty text in the middle of a box of that colour."""
        x, y = (box.begin + box.end) / 2, box.slices.start + len(box.slices) / 2
        style: dict[str, Any] = {"ha": "center", "va": "center", "multialignment": "center", "linespacing": 1.05}
        text = self.panels[box.gpu].text(x, y, "", gid=gid, parse_math=False, zorder=8, **style)
        text.set_color(contrast(colour))
        # Where the line of the makespan or of the bound would cross the name, it passes behind.
        text.set_bbox({"facecolor": colour, "edgecolor": "none", "pad": 0.4})
        return text

    def fit(self, text: Text, name: str, width: float, height: float) -> bool:
        """Write ``name`` as large as it fits into a rectangle (in points); return whether it does at all."""
        largest, smallest = _FONTS
        best = (0.0, 0.0, "", 0)
        for lines, rotation, preference in [(1, 0, 1.0), (2, 0, 0.95), (3, 0, 0.9), (1, 90, 0.8), (2, 90, 0.75)]:
            wording = wrap_name(name, lines)
            text.set(text=wording, rotation=rotation, fontsize=largest)
            own_width, own_height = self.extent(text)
            scale = min(1.0, width / own_width, height / own_height)
            best = max(best, (scale * preference, scale, wording, rotation), key=lambda option: option[0])
        _, scale, wording, rotation = best
        text.set(text=wording, rotation=rotation)
        for half_points in range(int(2 * largest * scale), int(2 * smallest) - 1, -1):
            text.set_fontsize(half_points / 2)
            own_width, own_height = self.greatest_extent(text)
            if own_width <= width and own_height <= height:
                return True
        return False

    def draw_profiles(
        self, instances: Sequence[tuple[str, Box]], operations: Sequence[Box], labels: list[Text]
    ) -> None:
        """Write the profile into the corner of each instance, where that leaves the names alone."""
        taken = [self.bounds(label).padded(FINE / 72) for label in labels]
        style: dict[str, Any] = {
            "fontsize": _TAG_FONT,
            "color": INK,
            "va": "top",
            "zorder": 7,
            "textcoords": "offset points",
        }
        for index, (profile, box) in enumerate(instances):
            free, axes = box.beside(operations), self.panels[box.gpu]
            corner = (free.begin, box.slices.start)
            plate = axes.annotate(profile, corner, (2.5, -2.5), gid=f"profile:{index}", **style)
            plate.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
            own = self.bounds(plate).padded(FINE / 36)
            width, height = self.extent(plate)
            fits = width + 5 <= (free.end - free.begin) * self.points_per_second
            if not fits or height + 5 > 72 * self.row * len(box.slices) or own.count_overlaps(taken):
                plate.remove()

    def draw_lines(self) -> float:
        """Draw makespan and lower bound with labels that keep apart; return the inches that these take."""
        from matplotlib.patheffects import withStroke

        main, *others = self.layout.lines
        lines = sorted(self.layout.lines, key=lambda line: line.seconds)
        marks = [(line.seconds, line.wording, line.gid, line.colour) for line in lines]
        if len({spell_seconds(line.seconds) for line in lines}) < len(lines):
            same = " = ".join([main.name, others[0].name, spell_seconds(main.seconds)])
            marks = [(main.seconds, same, main.gid, INK)]
        style: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "bottom"}
        labels = [
            self.panels[0].annotate(wording, (at, 1), (0, 0), gid=f"{gid}-label", color=colour, fontsize=8, **style)
            for at, wording, gid, colour in marks
        ]
        at = [(mark[0] - self.limits[0]) * self.points_per_second for mark in marks]
        places = apart(at, [self.extent(label)[0] for label in labels])
        tops = {}
        for (_, _, gid, _), label, (side, tier) in zip(marks, labels, places, strict=True):
            label.set(ha=side, position=(-3 if side == "right" else 3, 2 + 11 * tier))
            tops[gid] = (12 + 11 * tier) / 72
        # White beside the dashes keeps them visible on dark runs; beside a line on top of them it would be in the way.
        halo: list[AbstractPathEffect] = [withStroke(linewidth=2.6, foreground="white")] if len(marks) > 1 else []
        line: dict[str, Any] = {"linewidth": 1.2, "clip_on": False, "zorder": 6}
        # The makespan comes last, on top of a bound that coincides with it.
        for each in sorted(lines, key=lambda line: line == main):
            dashes = "--" if each.dashed else "-"
            for gpu, axes in enumerate(self.panels):
                top = 1 + tops.get(each.gid, tops[main.gid]) / self.panel if gpu == 0 else 1.0
                bottom = -self.gap / self.panel if gpu < len(self.panels) - 1 else 0.0
                drawn = axes.plot(
                    [each.seconds, each.seconds], [bottom, top], color=each.colour, ls=dashes, gid=each.gid,
                    transform=axes.get_xaxis_transform(), **line,
                )  # fmt: skip
                if each.dashed:
                    drawn[0].set_path_effects(halo)
        return max(tops.values())
