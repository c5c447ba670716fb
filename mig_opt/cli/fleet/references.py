"""The figures that schedulers are compared with: bounds that none can pass, and the best with hindsight."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mig_opt.cli.answers import Call
from mig_opt.cli.figures import broken_label, percent, tenths
from mig_opt.method.report import Cell, Table

if TYPE_CHECKING:
    from mig_opt.fleet.admission import Acceptance, AdmissionGoal
    from mig_opt.fleet.bounds import TraceBounds
    from mig_opt.simulation import Simulation

MOST_OPTIMAL = {False: 20, True: 500}
"""Jobs up to which there may be an optimum, with and without a queue: of more it is seldom proven."""

_BOUND_S = 10.0  # seconds for each upper bound; parts of very long traces for which there is no time count in full

_ADMISSION_GOALS: Mapping[str, AdmissionGoal] = {"jobs": "jobs", "slices": "slices", "slice_seconds": "slice-seconds"}
"""Goals by their names in documents."""

_HEADS = {
    False: {"mean_completion": ">flow s", "makespan": ">makespan s"},
    True: {"jobs": ">jobs %", "slices": ">slices %", "slice_seconds": ">slice-s %"},
}
"""The goals with and without a queue, each with its column."""

_MEANINGS = {
    False: "wait, flow: mean seconds from arrival to start, and to completion (flow time).",
    True: (
        "jobs, slices, slice-s: share of the jobs, of the compute slices that they ask for, and of these times"
        " seconds that was accepted. GPUs: on which jobs ran, mean over time. upper bound: of every scheduler that"
        " gives jobs the profiles that they ask for, migrating or not, on instances that take no time to create."
    ),
}

Values = Mapping[str, float | None]
"""Seconds or ratios by the goals that they belong to; None where they are not known."""


@dataclass(frozen=True)
class References:
    """Bounds for every scheduler and, if they were asked for, the optima of those that know the future.

    With a queue the bounds are seconds that no scheduler falls below. Without one they are acceptance ratios that no
    scheduler exceeds that gives jobs the profiles that they ask for, and, if one that is compared does not,
    ``other_bounds`` are those of all. The optima are those of schedulers that give jobs what they ask for and migrate
    none, each as in documents.
    """

    reject: bool  # True if no job waits
    drawn: TraceBounds | Acceptance  # in the chart
    bounds: Values
    other_bounds: Values
    optima: Mapping[str, Mapping[str, Any]]
    error: float | None = None  # of the run times that schedulers were told

    def gaps(self, simulation: Simulation) -> dict[str, Values]:
        """Return how far a scheduler is from each reference, as a share of the greater; None where jobs were left."""
        own = self._values(simulation)
        told = self.reject or not simulation.unfinished
        others = bool(self.other_bounds) and not simulation.log.as_asked()

        def gaps(references: Values) -> dict[str, float | None]:
            found: dict[str, float | None] = {}
            for goal, reference in references.items():
                more, less = (reference, own[goal]) if self.reject else (own[goal], reference)
                found[goal] = (more - less) / more if told and more and less is not None else None
            return found

        found: dict[str, Values] = {self._side("bound"): gaps(self.other_bounds if others else self.bounds)}
        return found | ({"optimum": gaps(self._best)} if self.optima else {})

    def _values(self, simulation: Simulation) -> Values:
        metrics = simulation.metrics
        if self.reject:
            return dataclasses.asdict(metrics.acceptance)
        values = {"makespan": metrics.makespan, "mean_completion": metrics.completion.mean}
        return {goal: value if metrics.finished else None for goal, value in values.items()}

    @property
    def _best(self) -> Values:
        return {goal: best["value"] for goal, best in self.optima.items()}

    def _side(self, word: str) -> str:
        return f"{'upper' if self.reject else 'lower'}_{word}"

    def data(self) -> dict[str, Any]:
        """Return the bounds, how wrong declared times are, and the optima."""
        return {
            **({"admission": "reject"} if self.reject else {}),
            self._side("bounds"): self.bounds,
            **({"upper_bounds_on_any_profile": self.other_bounds} if self.other_bounds else {}),
            **({} if self.error is None else {"declared_error": self.error}),
            **({"optimum": self.optima} if self.optima else {}),
        }

    def tables(self, done: Sequence[Simulation]) -> list[Table]:
        """Return the figures of schedulers and references; with a queue the gaps, too."""
        from mig_opt.fleet.trace import disturbances

        heads, lines, notes = _HEADS[self.reject], list[dict[str, Cell]](), [_MEANINGS[self.reject]]

        def spelled(value: float | None) -> str:
            return "-" if value is None else percent(value, 1) if self.reject else tenths(value)

        for simulation in done:
            metrics = simulation.metrics
            lines.append(
                {
                    "~policy": broken_label(simulation.label),
                    ">done": str(metrics.finished),
                    ">wait s": spelled(metrics.wait.mean if metrics.finished else None),
                    **{heads[goal]: spelled(value) for goal, value in self._values(simulation).items()},
                    ">busy %": percent(metrics.utilisation, 1),
                    ">frag. %": percent(metrics.fragmentation, 1),
                    ">GPUs": tenths(metrics.active_gpus),
                    ">moves": str(metrics.migrations),
                    ">lost %": percent(metrics.lost, 1),
                }
            )
        references = {self._side("bound").replace("_", " "): self.bounds, "on any profile": self.other_bounds}
        for name, bounds in references.items():
            if bounds:
                lines.append({"~policy": name, **{heads[goal]: spelled(value) for goal, value in bounds.items()}})
        if self.other_bounds:
            named = ", ".join(simulation.label for simulation in done if not simulation.log.as_asked())
            notes += ["", f"on any profile: of every scheduler, those that give jobs other profiles included: {named}."]
        if self.optima:
            marks = {goal: self._mark(best) for goal, best in self.optima.items()}
            best = {heads[goal]: f"{marks[goal]}{spelled(value)}" for goal, value in self._best.items()}
            lines.append({"~policy": "optimum", **best})
        if self.optima and self.reject:
            optimum = "of schedulers that know the future, give jobs what they ask for and do not migrate them."
            notes += ["", f"optimum: {optimum}"]
        waits, gpus = ([], [">GPUs"]) if self.reject else ([">done", ">wait s"], [])
        lost = [">lost %"] if any(disturbances(done[0].trace)) else []
        columns = ["~policy", *waits, *heads.values(), ">busy %", ">frag. %", *gpus, ">moves", *lost]
        notes += ["", "lost: share of what jobs had of the compute slices before their runs failed."] if lost else []
        table = Table(columns, [[line.get(column, "") for column in columns] for line in lines], notes)
        return [table] if self.reject else [table, self._gap_table(done)]

    def _mark(self, best: Mapping[str, Any]) -> str:
        """Return what stands before a figure that the optimum may pass."""
        proven = best["status"] == "optimal" if self.reject else best["proven"]
        return "" if proven or best["value"] is None else ">=" if self.reject else "<="

    def _gap_table(self, done: Sequence[Simulation]) -> Table:
        kinds = {"lower_bound": "bound"} | ({"optimum": "optimum"} if self.optima else {})
        goals = {"mean_completion": "flow", "makespan": "makespan"}
        rows: list[list[Cell]] = []
        for simulation in done:
            own = self.gaps(simulation)
            shares = (percent(own[kind][goal], 1) for kind in kinds for goal in goals)
            rows.append([broken_label(simulation.label), *shares])
        heads = [f">{goals[goal]}/{word}" for word in kinds.values() for goal in goals]
        optimum = (
            "optimum: of schedules that know the future and give jobs the profiles that they ask for, but neither"
            " migrate them nor slow them down by PCIe."
        )
        return Table(["~gap in %", *heads], rows, [optimum] if self.optima else [])


def queue_references(call: Call, done: Sequence[Simulation], time_limit: float | None) -> References:
    """Return the bounds of mean flow time and makespan, and the optima if there is a limit for them."""
    from mig_opt.fleet.bounds import trace_bounds
    from mig_opt.fleet.disturbances import declared_error
    from mig_opt.models.fleet.optimum import trace_optimum

    trace = done[0].trace
    found, optima = trace_bounds(trace), {}
    if time_limit is not None:
        with call.progress("optimum"):
            makespan = trace_optimum(trace, "makespan", time_limit=time_limit).uninterrupted()
            total = trace_optimum(trace, "completion", time_limit=time_limit).uninterrupted()
        value, bound = ((seconds - found.arrivals) / found.jobs for seconds in (total.value, total.lower_bound))
        for goal, best, least, proven in (
            ("makespan", makespan.value, makespan.lower_bound, makespan.proven),
            ("mean_completion", value, bound, total.proven),
        ):
            known = best if math.isfinite(best) else None
            optima[goal] = {"value": known, "lower_bound": least, "proven": bool(proven)}
    bounds = {"makespan": found.makespan[0].value, "mean_completion": found.mean_completion}
    return References(False, found, bounds, {}, optima, declared_error(trace))


def admission_references(call: Call, done: Sequence[Simulation], time_limit: float | None) -> References:
    """Return the bounds of acceptance ratios, and the optima if there is a limit for them."""
    from mig_opt.models.fleet.admission import acceptance_bound, admission_optimum

    trace, optima = done[0].trace, {}
    with call.progress("upper bound"):
        bounds = drawn = acceptance_bound(trace, time_limit=_BOUND_S)
        if others := not all(simulation.log.as_asked() for simulation in done):
            drawn = acceptance_bound(trace, as_asked=False, time_limit=_BOUND_S)
    if time_limit is not None:
        with call.progress("optimum"):
            best = {
                name: admission_optimum(trace, goal, time_limit=time_limit).uninterrupted()
                for name, goal in _ADMISSION_GOALS.items()
            }
        optima = {
            name: {
                "value": None if found.accepted is None else found.accepted / found.total,
                "upper_bound": found.upper_bound / found.total,
                "status": found.status.value,
                "accepted": list(map(dataclasses.asdict, found.admission.accepted)) if found.admission else [],
            }
            for name, found in best.items()
        }
    other_bounds = dataclasses.asdict(drawn) if others else {}
    return References(True, drawn, dataclasses.asdict(bounds), other_bounds, optima)
