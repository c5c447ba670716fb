"""The panel of a fleet over time: jobs on memory slices, or, where these are too many, the use of its slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mig_opt.batch.lifetimes import lifetimes
from mig_opt.fleet.log import Log, LoggedRun, RunOutcome
from mig_opt.views.fleet.layout import IDLE_SIGN, MARKS
from mig_opt.views.fleet.series import busy_shares, hops
from mig_opt.views.sheet import Sheet, add_rectangle, sign
from mig_opt.views.texts import BOUND, GRID, IDLE, INK, colour_of, contrast, elide, one_line

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.patches import Patch

_MOST_GPUS, _MOST_RUNS = 8, 800
_MOST_KEYED = 60
"""Jobs up to which those without a name in the chart are explained."""
_GAP = 0.6  # between two GPUs, in slices
_BAND = 1.3  # inches of the use of many GPUs
_FONTS = (7.0, 6.0, 5.0)
_PADDING = 1.2  # points between a name and the edge of its rectangle
_BINS = 300
_MARKERS = {RunOutcome.OUT_OF_MEMORY: "x", RunOutcome.STOPPED: "s"}


def detailed(log: Log) -> bool:
    """Return True if each run of a log can be seen in a picture of the fleet."""
    return log.trace.gpus <= _MOST_GPUS and len(log.run_job) <= _MOST_RUNS


class FleetPanel:
    """The panel of one simulation (its ``number``) in a chart, with ``end`` seconds from left to right.

    In detail each run is drawn. The panel of the only simulation may be tall.
    """

    def __init__(
        self, sheet: Sheet, label: str, log: Log, number: int, end: float, *, in_detail: bool, alone: bool
    ) -> None:
        self.sheet, self.log, self.number, self.end, self.in_detail = sheet, log, number, end, in_detail
        self.axes = sheet.add_panel(label)
        gpu = log.trace.gpu
        self.step = gpu.memory_slices + _GAP
        rows = log.trace.gpus * self.step - _GAP
        self.slice = min(0.3, max(0.055, (5.0 if alone else 2.4) / rows))
        self.height = self.slice * rows if in_detail else _BAND
        self.unnamed: set[int] = set()

    def draw(self, signs: dict[str, Artist]) -> None:
        """Draw the panel; what a legend has to explain is added to ``signs``."""
        if self.in_detail:
            self.draw_slices(signs)
        else:
            self.draw_use(signs)

    def draw_use(self, signs: dict[str, Artist]) -> None:
        """Draw the shares of the compute slices in use, by profile."""
        axes, edges = self.axes, np.linspace(0.0, self.end, _BINS + 1)
        below = np.zeros(_BINS)
        names = list(dict.fromkeys(placement.profile.name for placement in self.log.geometry.placements))
        for name, shares in busy_shares(self.log, edges).items():
            colour = colour_of(names.index(name))
            style: dict[str, Any] = {"step": "post", "facecolor": colour, "linewidth": 0, "zorder": 2}
            low, high = (np.append(level, level[-1]) for level in (below, below + shares))
            axes.fill_between(edges, low, high, gid=f"use:{self.number}:{name}", **style)
            below = below + shares
            signs.setdefault(f"busy with {name}", sign(colour))
        axes.set_ylim(0, 100)
        axes.set_yticks([0, 50, 100])
        axes.set_ylabel("% of slices", color=INK, fontsize=8)
        axes.grid(visible=True, axis="y", color=GRID, linewidth=0.6)

    def draw_slices(self, signs: dict[str, Artist]) -> None:
        """Draw every run over the memory slices of its instance."""
        axes, trace = self.axes, self.log.trace
        slices = trace.gpu.memory_slices
        axes.set_ylim(trace.gpus * self.step - _GAP, 0)
        middles = [gpu * self.step + slices / 2 for gpu in range(trace.gpus)]
        axes.set_yticks(middles, [f"GPU {gpu}\nslices 0-{slices - 1}" for gpu in range(trace.gpus)])
        axes.tick_params(axis="y", length=0, labelsize=min(8.0, 26 * self.slice * slices))
        lines = [gpu * self.step + line for gpu in range(trace.gpus) for line in range(slices + 1)]
        axes.hlines(lines, 0, 1.005 * self.end, color=GRID, linewidth=0.4, zorder=0)
        self.draw_instances(signs)
        self.draw_runs()
        if self.unnamed and len(trace.jobs) > _MOST_KEYED:
            signs["#n: the n-th job by arrival"] = sign("none")
        self.draw_hops(signs)
        self.draw_marks(signs)

    def box(self, gpu: int, start: int, slices: int, begin: float, end: float, **style: Any) -> Patch:
        """Draw a rectangle over memory slices of a GPU."""
        return add_rectangle(self.axes, (begin, gpu * self.step + start), end - begin, slices, **style)

    def middle(self, run: LoggedRun) -> float:
        """Return the height of the middle of a run."""
        return run.gpu * self.step + run.placement.start + run.placement.profile.memory_slices / 2

    def draw_instances(self, signs: dict[str, Artist]) -> None:
        """Draw the lifetimes of the instances; what is seen of them later has no job."""
        gpu = self.log.trace.gpu
        found, _ = lifetimes((), tuple(self.log.operations()))
        for index, each in enumerate(found):
            slices = gpu.profile(each.profile).memory_slices
            style: dict[str, Any] = {"facecolor": IDLE, "edgecolor": "#bbbbbb", "linewidth": 0.4, "zorder": 1}
            place = each.gpu, each.start, slices, each.begin, min(each.end, self.end)
            signs[IDLE_SIGN] = self.box(*place, gid=f"instance:{self.number}:{index}", **style)

    def draw_runs(self) -> None:
        """Draw the runs, each with as much of its job's name as it has room for."""
        jobs = self.log.trace.jobs
        wide = 72 * self.sheet.panel_width / (1.005 * self.end)
        for index, run in enumerate(self.log.runs()):
            colour, slices = colour_of(run.job), run.placement.profile.memory_slices
            points = (run.end - run.begin) * wide
            # A white edge would hide a run that is not wider than the edge.
            edge, weight = (colour, 0.3) if points < 3 else ("white", 0.6)
            style: dict[str, Any] = {"facecolor": colour, "edgecolor": edge, "linewidth": weight, "zorder": 3}
            place = run.gpu, run.placement.start, slices, run.begin, run.end
            self.box(*place, gid=f"run:{self.number}:{index}", **style)
            room = points - 2 * _PADDING, 72 * self.slice * slices - _PADDING
            name = one_line(jobs[run.job].name)
            found = self.sheet.fitted([(name, 0.0), (f"#{run.job + 1}", 0.0)], *room, _FONTS)
            if found is None or found[0] != name:
                self.unnamed.add(run.job)
            if found is not None:
                self.axes.text(
                    (run.begin + run.end) / 2, self.middle(run), found[0],
                    fontsize=found[1], color=contrast(colour), ha="center", va="center", parse_math=False, zorder=5,
                    gid=f"label:{self.number}:{index}",
                )  # fmt: skip

    def draw_hops(self, signs: dict[str, Artist]) -> None:
        """Draw where migrating jobs went: a line from the old place to the new one."""
        runs = list(self.log.runs())
        for moment, source, target in hops(self.log):
            at = [self.middle(runs[index]) for index in (source, target)]
            gid = f"hop:{self.number}:{source}"
            self.axes.plot([moment, moment], at, color=INK, linewidth=0.7, zorder=6, gid=gid)
            signs["migration (to the dot)"] = self.axes.plot(
                moment, at[1], linestyle="none", marker="o", markersize=2.6, color=INK, zorder=6
            )[0]

    def draw_marks(self, signs: dict[str, Artist]) -> None:
        """Mark the ends of runs that were not the ends of their jobs."""
        for run in self.log.runs():
            if run.outcome in MARKS:
                marker = _MARKERS[run.outcome]
                signs[MARKS[run.outcome]] = self.axes.plot(
                    run.end, self.middle(run), linestyle="none", marker=marker, markersize=4, color=BOUND, zorder=6
                )[0]


def job_key(fleets: Sequence[FleetPanel]) -> tuple[list[Artist], list[str]] | None:
    """Return the colours of the jobs whose names are not in all pictures, and these names; None if there are none."""
    jobs = fleets[0].log.trace.jobs
    unnamed = sorted({job for fleet in fleets for job in fleet.unnamed})
    if not unnamed or len(jobs) > _MOST_KEYED:
        return None
    signs: list[Artist] = [sign(colour_of(job)) for job in unnamed]
    return signs, [f"#{job + 1} {elide(one_line(jobs[job].name), 32)}" for job in unnamed]
