"""Several GPUs: the gap over time of one long run, and of runs that have less time from the beginning.

Run: python -m bench.batch.anytime, which does what is missing and takes seven hours with 30 batches of each size; with
--seeds 1 a tenth of it; --only 4x60 measures one size, --limits 60 one limit; --cut takes seconds. A size is GPUs x
tasks. Batches have the three scalings of the FAR paper. Rows that are kept are not measured again.
"""

import itertools
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import COLOURS, panels, save_figure
from bench.report import Kept, Page, markdown, parser_of, some_of, start
from mig_opt import generate_batch, solve
from mig_opt.instances.batch import SCALINGS, ScalingName
from mig_opt.method.result import TrajectoryPoint, relative_gap

SIZES = {f"{gpus}x{gpus * tasks}": (gpus, gpus * tasks) for gpus in (2, 4, 8) for tasks in (8, 15, 25)}
FURTHER = {"4x30": (4, 30), "4x40": (4, 40)}  # sizes of which it matters how many are proven
LIMITS = (1.0, 2.0, 5.0, 20.0, 60.0)
WORKERS = 2
GOALS: dict[str, dict[float, tuple[float, float]]] = {
    "4x60": {2.0: (0.9, 1.2), 5.0: (0.4, 0.8), 20.0: (0.3, 0.45), 60.0: (0.2, 0.4)},
    "8x200": {2.0: (1.0, 1.5), 5.0: (0.5, 0.8), 20.0: (0.3, 0.5), 60.0: (0.25, 0.3)},
}
"""Gaps in percent after some seconds: the median, and the worst."""
_SLACK, _NOISE = 1.1, 0.05
"""A run with a limit is as good as a longer one at that time, up to this factor and these hundredths."""


class Run(NamedTuple):
    """Outcome of a run with a limit of time."""

    status: str
    makespan: float  # seconds
    lower_bound: float
    points: list[tuple[float, float]]  # second, and gap in percent from then on

    def at(self, seconds: float) -> float:
        """Return the gap after some seconds."""
        return next((gap for second, gap in reversed(self.points) if second <= seconds), 100.0)

    @property
    def last(self) -> float:
        """The gap at the end, some hundredths of a second after the limit."""
        return self.points[-1][1]

    def integral(self, seconds: float) -> float:
        """Return the mean gap over the first seconds."""
        points = [point for point in self.points if point[0] < seconds]
        ends = [second for second, _ in points[1:]] + [seconds]
        return sum(gap * (end - second) for (second, gap), end in zip(points, ends, strict=True)) / seconds


def gaps(trajectory: Sequence[TrajectoryPoint]) -> Iterator[tuple[float, float]]:
    """Yield each second at which the gap becomes smaller, with the gap in percent."""
    least = 100.0
    for point in trajectory:
        gap = 100.0 if point.objective is None else 100 * (relative_gap(point.objective, point.lower_bound) or 0.0)
        if gap < least:
            least = gap
            yield round(point.seconds, 3), round(gap, 5)


def measure(gpus: int, tasks: int, scaling: ScalingName, seed: int, limit: float) -> list[Any]:
    """Return the fields of a run."""
    batch = generate_batch(tasks, gpus=gpus, scaling=scaling, seed=seed)
    result = solve(batch, "cp", time_limit=limit, workers=WORKERS)
    return [result.status.value, result.makespan, result.lower_bound, list(gaps(result.trajectory))]


def spread(values: Sequence[float]) -> str:
    """Return the median and the worst; nothing if there are none."""
    return f"{statistics.median(values):.2f} / {max(values):.2f}" if values else ""


def picture(found: dict[str, list[Run]], path: Path) -> None:
    """Draw the gap over time of the longest runs: the median of each size, and all between the best and the worst."""
    shown = {name: runs for name, runs in found.items() if runs}
    figure, axes = panels(shown, (1.0 + 2.2 * len(shown), 3.0), grid="both")
    seconds = [0.1 * 1.05**step for step in range(132)]
    for axis, runs in zip(axes, shown.values(), strict=True):
        over_time = [[run.at(second) for run in runs] for second in seconds]
        axis.fill_between(seconds, [min(at) for at in over_time], [max(at) for at in over_time], color="#cccccc")
        axis.plot(seconds, [statistics.median(at) for at in over_time], color=COLOURS[1])
        axis.set(xscale="log", yscale="symlog", ylim=(0, 20), xlim=(0.1, 60), xlabel="seconds")
        axis.set_yscale("symlog", linthresh=0.1)
        axis.set_xticks([0.1, 1, 10, 60], ["0.1", "1", "10", "60"])
        axis.set_yticks([0, 0.1, 1, 10], ["0", "0.1", "1", "10"])
        axis.minorticks_off()
    axes[0].set_ylabel("gap in %")
    save_figure(figure, path)


def report(kept: Kept, folder: Path) -> None:
    """Write the page of all that is known."""
    runs = {tuple(key.split()[:4]): Run(*fields) for key, fields in kept.known.items()}

    def of(name: str, limit: float) -> list[Run]:
        return [run for key, run in runs.items() if key[0] == name and float(key[3]) == limit]

    page = Page("anytime", "Several GPUs: the gap over time", "mig-opt", "ortools", "highspy", folder=folder)
    page.add(f"""Median and worst gap in % of `cp` with {WORKERS} workers after some seconds of one run of
        {LIMITS[-1]:g} s, for batches of all three scalings; in the table below, of runs that had no more time.""")
    page.add("![gap over time](anytime.svg)")
    head = ["GPUs x tasks", "runs", *(f"{limit:g} s" for limit in LIMITS), "mean over the time", "proven"]
    longest = {name: of(name, LIMITS[-1]) for name in SIZES | FURTHER}
    rows = [
        [
            name,
            len(found),
            *(spread([run.at(limit) for run in found]) for limit in LIMITS),
            spread([run.integral(LIMITS[-1]) for run in found]),
            sum(run.status == "optimal" for run in found),
        ]
        for name, found in longest.items()
        if found
    ]
    page.lines += [*markdown(head, rows), ""] if rows else []
    whole = {key[:3]: run for key, run in runs.items() if float(key[3]) == LIMITS[-1]}
    short = {key: run for key, run in runs.items() if key[:3] in whole and float(key[3]) < LIMITS[-1]}
    worse = sum(run.last > _SLACK * whole[key[:3]].at(float(key[3])) + _NOISE for key, run in short.items())
    text = f"Of {len(short)} such runs {worse} are worse than the long one was at that time."
    page.section("Runs with less time", text)
    brief = ([name, *(spread([run.last for run in of(name, limit)]) for limit in LIMITS[:-1])] for name in longest)
    head = ["GPUs x tasks", *(f"{limit:g} s" for limit in LIMITS[:-1])]
    page.lines += [*markdown(head, (cells for cells in brief if any(cells[1:]))), ""]
    rows = [
        [name, f"{limit:g} s", f"{goal[0]:g} / {goal[1]:g}", spread([run.at(limit) for run in longest[name]])]
        for name, goals in GOALS.items()
        for limit, goal in goals.items()
        if longest[name]
    ]
    if rows:
        page.section("Goals", "Median / worst, of one long run.")
        page.lines += [*markdown(["GPUs x tasks", "after", "goal", "measured"], rows), ""]
    page.wrong(contradictions(runs))
    page.save()
    if any(longest.values()):
        picture({name: found for name, found in longest.items() if name in SIZES}, folder / "anytime.svg")


def contradictions(runs: dict[tuple[str, ...], Run]) -> list[str]:
    """Return the pairs of runs on one batch of which one has a bound above the makespan of the other."""
    best: dict[tuple[str, ...], tuple[float, float]] = {}
    for key, run in runs.items():
        makespan, bound = best.get(key[:3], (float("inf"), 0.0))
        best[key[:3]] = min(makespan, run.makespan), max(bound, run.lower_bound)
    return [f"{' '.join(key)}: {bound} > {makespan}" for key, (makespan, bound) in best.items() if bound > makespan]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the page."""
    known = SIZES | FURTHER
    parser = parser_of(__doc__, "anytime.jsonl.xz, anytime.md and anytime.svg", "one size, one seed, brief limits")
    parser.add_argument("--only", type=some_of(known), default=tuple(known), help="sizes, as 4x60")
    parser.add_argument("--seeds", type=int, default=10, help="batches of each size and scaling")
    parser.add_argument("--limits", type=some_of([f"{limit:g}" for limit in LIMITS]), help="seconds, as 2,60")
    options = parser.parse_args(arguments)
    if options.cut:
        options.only, options.seeds, options.limits = ("2x16",), 1, ("1",)
    limits = sorted(map(float, options.limits), reverse=True) if options.limits else list(LIMITS[::-1])
    kept = Kept(options.results / "anytime.jsonl")
    for limit, name, seed, scaling in itertools.product(limits, options.only, range(options.seeds), SCALINGS):
        kept.get(f"{name} {scaling} {seed} {limit:g} s", partial(measure, *known[name], scaling, seed, limit))
    report(kept, options.results)
    kept.pack()
