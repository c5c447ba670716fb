"""The screen of the command simulate: the figures of each policy, and their gaps to what is possible."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mig_opt.cli.fleet.policies import broken_label
from mig_opt.cli.screens import Cell, Part, card, note, percent, table, tenths
from mig_opt.fleet.bounds import TraceBounds
from mig_opt.models.fleet.optimum import TraceOptimum
from mig_opt.result import relative_gap
from mig_opt.simulation import Simulation
from mig_opt.texts import plural

_GOALS = ("mean_completion", "makespan")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class References:
    """Lower bounds for every policy, and the best schedules in hindsight (without migration) if they were asked for."""

    bounds: TraceBounds
    makespan: TraceOptimum | None = None
    completion: TraceOptimum | None = None

    @property
    def lower_bounds(self) -> Mapping[str, float]:
        """Seconds, by goal."""
        return {"makespan": self.bounds.makespan[0].value, "mean_completion": self.bounds.mean_completion}

    def optima(self) -> Iterator[tuple[str, float, float, bool]]:
        """Yield goal, seconds of the best schedule, its lower bound in seconds, and True if it is proven."""
        if self.makespan is not None and self.completion is not None:
            yield "makespan", self.makespan.value, self.makespan.lower_bound, bool(self.makespan.proven)
            value, bound = map(self._per_job, (self.completion.value, self.completion.lower_bound))
            yield "mean_completion", value, bound, bool(self.completion.proven)

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


def simulation_parts(done: Sequence[Simulation], references: References) -> Iterator[Part]:
    """Yield everything to be shown about simulations of one trace."""
    trace, bounds = done[0].trace, references.lower_bounds
    named = f"{trace.name} ({plural(len(trace.jobs), 'job')})"
    yield from (card([("trace", named), ("fleet", f"{trace.gpus} x {trace.gpu.name}")]), "")
    rows: list[list[Cell]] = [_figures(simulation) for simulation in done]
    rows.append(["lower bound", "", "", *(tenths(bounds[goal]) for goal in _GOALS), "", "", ""])
    best = {goal: (value, proven) for goal, value, _, proven in references.optima()}
    if best:
        rows.append(["optimum", "", "", *(_best(*best[goal]) for goal in _GOALS), "", "", ""])
    numbers = [">done", ">wait s", ">to end s", ">makespan s", ">busy %", ">frag. %", ">moves"]
    yield from (table(["~policy", *numbers], rows), "")
    yield from (note("wait, to end: mean seconds from arrival to start and to the end."), "")
    yield from _gap_parts(done, references)
    left = [simulation for simulation in done if simulation.unfinished]
    if left:
        yield ""
    for simulation in left:
        count = plural(len(simulation.unfinished), "job")
        names = ", ".join(simulation.unfinished[:_MOST_NAMED])
        more = ", ..." if len(simulation.unfinished) > _MOST_NAMED else ""
        yield f"{simulation.label} leaves {count} waiting for ever: {names}{more}"


def _figures(simulation: Simulation) -> list[Cell]:
    metrics = simulation.metrics
    spans = (metrics.wait.mean, metrics.completion.mean, metrics.makespan)
    return [
        broken_label(simulation.label),
        str(metrics.finished),
        *(tenths(value) if metrics.finished else "-" for value in spans),
        percent(metrics.utilisation, 1),
        percent(metrics.fragmentation, 1),
        str(metrics.migrations),
    ]


def _best(value: float, proven: bool) -> str:
    return "-" if math.isinf(value) else f"{'' if proven else '<='}{tenths(value)}"


def _gap_parts(done: Sequence[Simulation], references: References) -> Iterator[Part]:
    words = {"mean_completion": "end", "makespan": "makespan"}
    against = {"lower_bound": "bound", "optimum": "optimum"}
    gaps = [references.gaps(simulation) for simulation in done]
    kinds = [kind for kind in against if kind in gaps[0]]
    rows: list[list[Cell]] = [
        [broken_label(simulation.label), *(percent(gap[kind][goal], 1) for kind in kinds for goal in _GOALS)]
        for simulation, gap in zip(done, gaps, strict=True)
    ]
    yield table(["~gap in %", *(f">{words[goal]}/{against[kind]}" for kind in kinds for goal in _GOALS)], rows)
    if "optimum" in kinds:
        remark = "optimum: of schedules that know the future, but neither migrate jobs nor slow them down by PCIe."
        yield from ("", note(remark))
