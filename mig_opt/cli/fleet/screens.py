"""What the command simulate shows: the figures of each policy, and how far they are from what is possible."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from mig_opt.cli import screens
from mig_opt.cli.fleet.policies import broken_label
from mig_opt.models.fleet.arrivals import TraceOptimum
from mig_opt.models.fleet.bounds import TraceBounds
from mig_opt.result import relative_gap
from mig_opt.simulation import Simulation
from mig_opt.texts import plural

_GOALS = ("mean_completion", "makespan")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class References:
    """What no policy falls below, and the best schedules in hindsight if they were asked for.

    Attributes
    ----------
    bounds : TraceBounds
        For every schedule.
    makespan, completion : TraceOptimum or None
        For schedules without migration.
    """

    bounds: TraceBounds
    makespan: TraceOptimum | None = None
    completion: TraceOptimum | None = None

    @property
    def lower_bounds(self) -> Mapping[str, float]:
        """Seconds, by goal."""
        return {"makespan": self.bounds.makespan[0].value, "mean_completion": self.bounds.mean_completion}

    def optima(self) -> Iterator[tuple[str, float, float, bool]]:
        """Yield goal, seconds of the best schedule, seconds that none falls below, and whether these are proven."""
        if self.makespan is not None and self.completion is not None:
            yield "makespan", self.makespan.value, self.makespan.lower_bound, self.makespan.proven
            value, bound = map(self._per_job, (self.completion.value, self.completion.lower_bound))
            yield "mean_completion", value, bound, self.completion.proven

    def gaps(self, simulation: Simulation) -> dict[str, dict[str, float | None]]:
        """Return for each reference and goal (value - reference) / value; none where jobs were not finished.

        Below zero is what is better than the optimum without migration.
        """
        metrics = simulation.metrics
        values = {"makespan": metrics.makespan, "mean_completion": metrics.completion.mean}
        complete = not simulation.unfinished
        found: dict[str, dict[str, float | None]] = {
            "lower_bound": {
                goal: relative_gap(values[goal], bound) if complete else None
                for goal, bound in self.lower_bounds.items()
            }
        }
        best = {goal: value for goal, value, _, _ in self.optima()}
        if best:
            found["optimum"] = {
                goal: (values[goal] - value) / values[goal] if complete and math.isfinite(value) else None
                for goal, value in best.items()
            }
        return found

    def _per_job(self, total: float) -> float:
        return (total - self.bounds.arrivals) / self.bounds.jobs


def show(done: Sequence[Simulation], references: References) -> None:
    """Show everything on the screen."""
    trace = done[0].trace
    card = screens.card(
        [
            ("trace", f"{trace.name} ({plural(len(trace.jobs), 'job')})"),
            ("fleet", f"{trace.gpus} x {trace.gpu.name}"),
        ]
    )
    numbers = ("done", "wait s", "to end s", "makespan s", "busy %", "frag. %", "moves")
    rows: list[list[str | Text]] = [_figures(simulation) for simulation in done]
    bounds = references.lower_bounds
    rows.append(["lower bound", "", "", *(screens.tenths(bounds[goal]) for goal in _GOALS), "", "", ""])
    best = {goal: (value, proven) for goal, value, _, proven in references.optima()}
    if best:
        rows.append(["optimum", "", "", *(_best(*best[goal]) for goal in _GOALS), "", "", ""])
    remark = "wait, to end: mean seconds from arrival to start and to the end."
    columns: screens.Columns = [("policy", "text"), *((name, "number") for name in numbers)]
    screens.show(card, "", screens.table(columns, rows), "", screens.note(remark))
    _show_gaps(done, references)
    left = [simulation for simulation in done if simulation.unfinished]
    if left:
        screens.show("")
    for simulation in left:
        count = plural(len(simulation.unfinished), "job")
        names = ", ".join(simulation.unfinished[:_MOST_NAMED])
        more = ", ..." if len(simulation.unfinished) > _MOST_NAMED else ""
        screens.show(f"{simulation.label} leaves {count} waiting for ever: {names}{more}")


def _figures(simulation: Simulation) -> list[str | Text]:
    metrics = simulation.metrics
    spans = (metrics.wait.mean, metrics.completion.mean, metrics.makespan)
    return [
        broken_label(simulation.label),
        str(metrics.finished),
        *(screens.tenths(value) if metrics.finished else "-" for value in spans),
        *(f"{100 * share:.1f}" for share in (metrics.utilisation, metrics.fragmentation)),
        str(metrics.migrations),
    ]


def _best(value: float, proven: bool) -> str:
    return "-" if math.isinf(value) else f"{'' if proven else '<='}{screens.tenths(value)}"


def _show_gaps(done: Sequence[Simulation], references: References) -> None:
    words = {"mean_completion": "end", "makespan": "makespan"}
    columns: list[tuple[str, screens.Kind]] = [("gap in %", "text")]
    against = {"lower_bound": "bound", "optimum": "optimum"}
    gaps = [references.gaps(simulation) for simulation in done]
    kinds = [kind for kind in against if kind in gaps[0]]
    columns += [(f"{words[goal]}/{against[kind]}", "number") for kind in kinds for goal in _GOALS]
    gap_rows: list[list[str | Text]] = [
        [broken_label(simulation.label), *(_percent(gap[kind][goal]) for kind in kinds for goal in _GOALS)]
        for simulation, gap in zip(done, gaps, strict=True)
    ]
    screens.show("", screens.table(columns, gap_rows))
    if "optimum" in kinds:
        remark = "optimum: of schedules that know the future, but neither migrate jobs nor slow them down by PCIe."
        screens.show("", screens.note(remark))


def _percent(gap: float | None) -> str:
    return "-" if gap is None else f"{100 * gap:.1f}"
