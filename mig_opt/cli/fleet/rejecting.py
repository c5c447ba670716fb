"""The screens and documents of mig-opt simulate --reject: acceptance ratios, upper bounds, optima."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mig_opt.cli.screens import Cell, Part, broken_label, card, note, percent, table, tenths
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.fleet.admission import Acceptance, AdmissionGoal
    from mig_opt.models.fleet.admission import AdmissionOptimum
    from mig_opt.simulation import Simulation

MOST_OPTIMAL = 500
"""Jobs up to which the optimum may be asked for; beyond some hundred it is seldom proven."""

_BOUND_S = 10.0
"""Seconds for each upper bound; parts of very long traces for which there is no time count in full."""

GOALS: Mapping[str, AdmissionGoal] = {"jobs": "jobs", "slices": "slices", "slice_seconds": "slice-seconds"}
"""What is counted, by its name in documents."""


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """Upper bounds on acceptance ratios, and the optima if they were asked for.

    The bounds are those of all schedulers that give jobs the profiles that they ask for, and, if one that is compared
    does not, ``other_bounds`` those of all. The optima are those of schedulers that know the future but give jobs what
    they ask for and migrate none, by the names of :data:`GOALS`.
    """

    bounds: Acceptance
    other_bounds: Acceptance | None
    optima: Mapping[str, AdmissionOptimum]

    def gaps(self, simulation: Simulation) -> dict[str, dict[str, float | None]]:
        """Return for each reference and goal (reference - ratio) / reference; below zero is better than an optimum."""
        own = simulation.metrics.acceptance
        found: dict[str, dict[str, float | None]] = {
            "upper_bound": {goal: _gap(getattr(self.bounds_of(simulation), goal), getattr(own, goal)) for goal in GOALS}
        }
        if self.optima:
            found["optimum"] = {goal: _gap(self.ratio(goal), getattr(own, goal)) for goal in GOALS}
        return found

    def bounds_of(self, simulation: Simulation) -> Acceptance:
        """Return the bounds that hold for a scheduler."""
        return self.bounds if self.other_bounds is None or simulation.log.as_asked() else self.other_bounds

    def ratio(self, goal: str) -> float | None:
        """Return the ratio of the best admission that was found for a goal."""
        best = self.optima[goal]
        return None if best.accepted is None else best.accepted / best.total


def _gap(reference: float | None, ratio: float) -> float | None:
    return (reference - ratio) / reference if reference else None


def admission_limits(done: Sequence[Simulation], time_limit: float | None, *, quiet: bool) -> AdmissionLimits:
    """Return what the policies are compared with; the optima only if there is time for them."""
    from mig_opt.cli.progress import shown_progress
    from mig_opt.models.fleet.admission import acceptance_bound, admission_optimum

    trace, others = done[0].trace, not all(simulation.log.as_asked() for simulation in done)
    with shown_progress("upper bound", quiet=quiet):
        bounds = acceptance_bound(trace, time_limit=_BOUND_S)
        other_bounds = acceptance_bound(trace, as_asked=False, time_limit=_BOUND_S) if others else None
    if time_limit is None:
        return AdmissionLimits(bounds, other_bounds, {})
    with shown_progress("optimum", quiet=quiet):
        optima = {name: admission_optimum(trace, goal, time_limit=time_limit) for name, goal in GOALS.items()}
    return AdmissionLimits(bounds, other_bounds, optima)


def admission_document(done: Sequence[Simulation], limits: AdmissionLimits) -> dict[str, Any]:
    """Return everything about simulations of one trace as a document."""
    trace = done[0].trace
    document: dict[str, Any] = {
        "trace": trace.name,
        "gpu": trace.gpu.name,
        "gpus": trace.gpus,
        "admission": "reject",
        "upper_bounds": dataclasses.asdict(limits.bounds),
    }
    if limits.other_bounds is not None:
        document["upper_bounds_on_any_profile"] = dataclasses.asdict(limits.other_bounds)
    if limits.optima:
        document["optimum"] = {
            name: {
                "value": limits.ratio(name),
                "upper_bound": best.upper_bound / best.total,
                "status": best.status.value,
                "accepted": [dataclasses.asdict(entry) for entry in best.admission.accepted] if best.admission else [],
            }
            for name, best in limits.optima.items()
        }
    document["policies"] = [
        {
            "policy": simulation.policy,
            "options": {name: list(v) if isinstance(v, tuple) else v for name, v in simulation.options.items()},
            "label": simulation.label,
            **dataclasses.asdict(simulation.metrics),
            "gaps": limits.gaps(simulation),
            "unfinished": list(simulation.unfinished),
            "turned_away": list(simulation.rejected),
            "runtime_s": simulation.runtime_s,
        }
        for simulation in done
    ]
    return document


def admission_parts(done: Sequence[Simulation], limits: AdmissionLimits) -> Iterator[Part]:
    """Yield everything to be shown about simulations of one trace."""
    trace = done[0].trace
    named = f"{trace.name} ({plural(len(trace.jobs), 'job')})"
    fleet = f"{trace.gpus} x {trace.gpu.name}, without a queue"
    yield from (card([("trace", named), ("fleet", fleet)]), "")
    rows: list[list[Cell]] = [_figures(simulation) for simulation in done]
    for name, bounds in (("upper bound", limits.bounds), ("on any profile", limits.other_bounds)):
        if bounds is not None:
            rows.append([name, *(percent(getattr(bounds, goal), 1) for goal in GOALS), "", "", "", ""])
    if limits.optima:
        rows.append(["optimum", *(_best(limits, goal) for goal in GOALS), "", "", "", ""])
    numbers = [">jobs %", ">slices %", ">slice-s %", ">busy %", ">frag. %", ">GPUs", ">moves"]
    yield from (table(["~policy", *numbers], rows), "")
    yield note(
        "jobs, slices, slice-s: share of the jobs, of the compute slices that they ask for, and of these times seconds"
        " that was accepted. GPUs: on which jobs ran, mean over time. upper bound: of every scheduler that gives jobs"
        " the profiles that they ask for, migrating or not, on instances that take no time to create."
    )
    if limits.other_bounds is not None:
        named = ", ".join(simulation.label for simulation in done if not simulation.log.as_asked())
        yield from (
            "",
            note(f"on any profile: of every scheduler, those that give jobs other profiles included: {named}."),
        )
    if limits.optima:
        yield from (
            "",
            note("optimum: of schedulers that know the future, give jobs what they ask for and do not migrate them."),
        )


def _figures(simulation: Simulation) -> list[Cell]:
    metrics = simulation.metrics
    return [
        broken_label(simulation.label),
        *(percent(getattr(metrics.acceptance, goal), 1) for goal in GOALS),
        percent(metrics.utilisation, 1),
        percent(metrics.fragmentation, 1),
        tenths(metrics.active_gpus),
        str(metrics.migrations),
    ]


def _best(limits: AdmissionLimits, goal: str) -> str:
    proven = limits.optima[goal].status.value == "optimal"
    return f"{'' if proven else '>='}{percent(limits.ratio(goal), 1)}"
