"""The figures that schedulers are compared with: bounds that none can pass, and the best with hindsight."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mig_opt.cli.answers import Call
from mig_opt.cli.figures import broken_label, percent, tenths
from mig_opt.method.report import Cell, Table
from mig_opt.method.result import relative_gap

if TYPE_CHECKING:
    from mig_opt.fleet.admission import Acceptance, AdmissionGoal
    from mig_opt.fleet.bounds import TraceBounds
    from mig_opt.models.fleet.admission import AdmissionOptimum
    from mig_opt.simulation import Simulation

_BOUND_S = 10.0
"""Seconds for each upper bound; parts of very long traces for which there is no time count in full."""

Gaps = dict[str, dict[str, float | None]]
"""Distance of a scheduler from each reference in each goal, as a share; None where it cannot be told."""


@dataclass(frozen=True)
class QueueReferences:
    """Lower bounds for every policy, and the best schedules in hindsight (without migration) if they were asked for."""

    fleet: ClassVar[str] = ""  # what is said of the fleet
    most_optimal: ClassVar[int] = 20  # jobs; from a dozen on the optimum is not always proven
    drawn: TraceBounds  # in the chart
    optima: Mapping[str, tuple[float, float, bool]]  # seconds of the best schedule, its lower bound, True if proven
    error: float | None

    @classmethod
    def of(cls, call: Call, done: Sequence[Simulation], time_limit: float | None) -> QueueReferences:
        """Return the bounds of mean flow time and makespan."""
        from mig_opt.fleet.bounds import trace_bounds
        from mig_opt.fleet.declared_times import declared_error
        from mig_opt.models.fleet.optimum import trace_optimum

        trace = done[0].trace
        bounds, optima = trace_bounds(trace), {}
        if time_limit is not None:
            with call.progress("optimum"):
                makespan = trace_optimum(trace, "makespan", time_limit=time_limit)
                total = trace_optimum(trace, "completion", time_limit=time_limit)
            optima["makespan"] = makespan.value, makespan.lower_bound, bool(makespan.proven)
            value, bound = ((seconds - bounds.arrivals) / bounds.jobs for seconds in (total.value, total.lower_bound))
            optima["mean_completion"] = value, bound, bool(total.proven)
        return cls(bounds, optima, declared_error(trace))

    @property
    def declared(self) -> str | None:
        """The error of the run times that schedulers were told."""
        return None if self.error is None else f"run times, on the median wrong by a factor of {self.error:.2f}"

    @property
    def _bounds(self) -> dict[str, float]:
        return {"makespan": self.drawn.makespan[0].value, "mean_completion": self.drawn.mean_completion}

    def gaps(self, simulation: Simulation) -> Gaps:
        """Return for each reference and goal (value - reference) / value; none where jobs were not finished."""
        metrics = simulation.metrics
        values = {"makespan": metrics.makespan, "mean_completion": metrics.completion.mean}
        complete = not simulation.unfinished
        found: Gaps = {
            "lower_bound": {
                goal: relative_gap(values[goal], bound) if complete else None for goal, bound in self._bounds.items()
            }
        }
        if self.optima:
            found["optimum"] = {
                goal: (values[goal] - value) / values[goal] if complete and math.isfinite(value) else None
                for goal, (value, _, _) in self.optima.items()
            }
        return found

    def data(self) -> dict[str, Any]:
        """Return the bounds, how wrong declared times are, and the optima."""
        found: dict[str, Any] = {"lower_bounds": self._bounds}
        if self.error is not None:
            found["declared_error"] = self.error
        if self.optima:
            found["optimum"] = {
                name: {"value": value if math.isfinite(value) else None, "lower_bound": bound, "proven": proven}
                for name, (value, bound, proven) in self.optima.items()
            }
        return found

    def tables(self, done: Sequence[Simulation]) -> list[Table]:
        """Return the figures, and the gaps."""
        goals, bounds = {"mean_completion": "flow", "makespan": "makespan"}, self._bounds
        rows = [_queue_row(simulation) for simulation in done]
        rows.append(["lower bound", "", "", *(tenths(bounds[goal]) for goal in goals), "", "", ""])
        if self.optima:
            rows.append(["optimum", "", "", *(_best(*self.optima[goal]) for goal in goals), "", "", ""])
        columns = ["~policy", ">done", ">wait s", ">flow s", ">makespan s", ">busy %", ">frag. %", ">moves"]
        notes = ["wait, flow: mean seconds from arrival to start, and to completion (flow time)."]
        kinds = {"lower_bound": "bound"} | ({"optimum": "optimum"} if self.optima else {})
        gaps: list[list[Cell]] = []
        for simulation in done:
            own = self.gaps(simulation)
            shares = [percent(own[kind][goal], 1) for kind in kinds for goal in goals]
            gaps.append([broken_label(simulation.label), *shares])
        heads = [f">{goals[goal]}/{word}" for word in kinds.values() for goal in goals]
        optimum = (
            "optimum: of schedules that know the future and give jobs the profiles that they ask for, but neither"
            " migrate them nor slow them down by PCIe."
        )
        return [Table(columns, rows, notes), Table(["~gap in %", *heads], gaps, [optimum] if self.optima else [])]


def _queue_row(simulation: Simulation) -> list[Cell]:
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


def _best(value: float, _: float, proven: bool) -> str:
    return "-" if math.isinf(value) else f"{'' if proven else '<='}{tenths(value)}"


GOALS: Mapping[str, AdmissionGoal] = {"jobs": "jobs", "slices": "slices", "slice_seconds": "slice-seconds"}
"""Goals by their names in documents."""


@dataclass(frozen=True)
class AdmissionReferences:
    """Upper bounds on acceptance ratios, and the optima if they were asked for.

    The bounds are those of all schedulers that give jobs the profiles that they ask for, and, if one that is compared
    does not, ``other_bounds`` those of all. The optima are those of schedulers that know the future but give jobs what
    they ask for and migrate none, by the names of :data:`GOALS`.
    """

    fleet: ClassVar[str] = ", without a queue"
    most_optimal: ClassVar[int] = 500  # beyond some hundred the optimum is seldom proven
    declared: ClassVar[None] = None
    bounds: Acceptance
    other_bounds: Acceptance | None
    optima: Mapping[str, AdmissionOptimum]

    @classmethod
    def of(cls, call: Call, done: Sequence[Simulation], time_limit: float | None) -> AdmissionReferences:
        """Return the bounds of acceptance ratios."""
        from mig_opt.models.fleet.admission import acceptance_bound, admission_optimum

        trace, others = done[0].trace, not all(simulation.log.as_asked() for simulation in done)
        with call.progress("upper bound"):
            bounds = acceptance_bound(trace, time_limit=_BOUND_S)
            other_bounds = acceptance_bound(trace, as_asked=False, time_limit=_BOUND_S) if others else None
        if time_limit is None:
            return cls(bounds, other_bounds, {})
        with call.progress("optimum"):
            optima = {name: admission_optimum(trace, goal, time_limit=time_limit) for name, goal in GOALS.items()}
        return cls(bounds, other_bounds, optima)

    @property
    def drawn(self) -> Acceptance:
        """The bounds of the chart."""
        return self.other_bounds or self.bounds

    def gaps(self, simulation: Simulation) -> Gaps:
        """Return for each reference and goal (reference - ratio) / reference."""
        as_asked = self.other_bounds is None or simulation.log.as_asked()
        bounds = self.bounds if as_asked else self.other_bounds

        def shares(reference: Callable[[str], float | None]) -> dict[str, float | None]:
            own = simulation.metrics.acceptance
            best = {goal: reference(goal) for goal in GOALS}
            return {goal: (value - getattr(own, goal)) / value if value else None for goal, value in best.items()}

        found = {"upper_bound": shares(lambda goal: getattr(bounds, goal))}
        return found | ({"optimum": shares(self._ratio)} if self.optima else {})

    def _ratio(self, goal: str) -> float | None:
        """Return the ratio of the best admission that was found for a goal."""
        best = self.optima[goal]
        return None if best.accepted is None else best.accepted / best.total

    def data(self) -> dict[str, Any]:
        """Return the bounds and the optima."""
        found: dict[str, Any] = {"admission": "reject", "upper_bounds": dataclasses.asdict(self.bounds)}
        if self.other_bounds is not None:
            found["upper_bounds_on_any_profile"] = dataclasses.asdict(self.other_bounds)
        if self.optima:
            found["optimum"] = {
                name: {
                    "value": self._ratio(name),
                    "upper_bound": best.upper_bound / best.total,
                    "status": best.status.value,
                    "accepted": list(map(dataclasses.asdict, best.admission.accepted)) if best.admission else [],
                }
                for name, best in self.optima.items()
            }
        return found

    def tables(self, done: Sequence[Simulation]) -> list[Table]:
        """Return the ratios and other figures."""
        rows: list[list[Cell]] = []
        for simulation in done:
            metrics = simulation.metrics
            figures = [percent(metrics.utilisation, 1), percent(metrics.fragmentation, 1), tenths(metrics.active_gpus)]
            ratios = (percent(getattr(metrics.acceptance, goal), 1) for goal in GOALS)
            rows.append([broken_label(simulation.label), *ratios, *figures, str(metrics.migrations)])
        for name, bounds in (("upper bound", self.bounds), ("on any profile", self.other_bounds)):
            if bounds is not None:
                rows.append([name, *(percent(getattr(bounds, goal), 1) for goal in GOALS), *[""] * 4])
        notes = [
            "jobs, slices, slice-s: share of the jobs, of the compute slices that they ask for, and of these times"
            " seconds that was accepted. GPUs: on which jobs ran, mean over time. upper bound: of every scheduler that"
            " gives jobs the profiles that they ask for, migrating or not, on instances that take no time to create."
        ]
        if self.other_bounds is not None:
            named = ", ".join(simulation.label for simulation in done if not simulation.log.as_asked())
            notes += ["", f"on any profile: of every scheduler, those that give jobs other profiles included: {named}."]
        if self.optima:
            unproven = {goal: ">=" * (self.optima[goal].status.value != "optimal") for goal in GOALS}
            rows.append(["optimum", *(f"{unproven[goal]}{percent(self._ratio(goal), 1)}" for goal in GOALS), *[""] * 4])
            optimum = "of schedulers that know the future, give jobs what they ask for and do not migrate them."
            notes += ["", f"optimum: {optimum}"]
        columns = ["~policy", ">jobs %", ">slices %", ">slice-s %", ">busy %", ">frag. %", ">GPUs", ">moves"]
        return [Table(columns, rows, notes)]


References = QueueReferences | AdmissionReferences
"""Figures that the schedulers on one trace are compared with."""
