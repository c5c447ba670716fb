"""The figures by which the policies of simulations are compared, each with its bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mig_opt.fleet.admission import Acceptance
from mig_opt.method.result import relative_gap
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.views.texts import spell_seconds

if TYPE_CHECKING:
    from mig_opt.fleet.bounds import TraceBounds

_LOWER_SIGN = "lower bound: no scheduler is better"
UPPER_SIGN = "upper bound: no scheduler accepts more"
ASKED_SIGN = "upper bound: no scheduler that gives what is asked for accepts more"
_BOUND_S = 10.0  # seconds for each upper bound


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of each policy, with what no policy falls below, or exceeds."""

    name: str
    heading: str
    values: tuple[float, ...]
    bound: float | None
    wordings: tuple[str, ...]
    unit: str = "seconds"
    sign: str = _LOWER_SIGN

    def spell(self, value: float) -> str:
        """Return a value with its unit."""
        return spell_seconds(value) if self.unit == "seconds" else f"{value:.1f} {self.unit}"

    @property
    def most(self) -> float:
        """The largest of all these."""
        return max([*self.values, self.bound or 0.0]) or 1.0


def comparisons(simulations: Sequence[Simulation], bounds: TraceBounds | Acceptance | None) -> Iterator[Comparison]:
    """Yield the figures that stand side by side; bounds that are not known yet are computed."""
    yield from _ratios(simulations, bounds) if simulations[0].reject else _times(simulations, bounds)


def _ratios(simulations: Sequence[Simulation], most: TraceBounds | Acceptance | None) -> Iterator[Comparison]:
    from mig_opt.models.fleet.admission import acceptance_bound

    as_asked = all(each.log.as_asked() for each in simulations)
    if not isinstance(most, Acceptance):
        most = acceptance_bound(simulations[0].trace, as_asked=as_asked, time_limit=_BOUND_S)
    sign = ASKED_SIGN if as_asked else UPPER_SIGN
    for name, heading, goal in (
        ("accepted jobs", "Accepted jobs", "jobs"),
        ("accepted slices", "Accepted compute slices", "slices"),
        ("accepted slice-seconds", "Accepted slices x seconds", "slice_seconds"),
    ):
        values = tuple(100 * getattr(each.metrics.acceptance, goal) for each in simulations)
        wordings = tuple(f"{value:.1f}" for value in values)
        yield Comparison(name, heading, values, 100 * getattr(most, goal), wordings, "%", sign)


def _times(simulations: Sequence[Simulation], bounds: TraceBounds | Acceptance | None) -> Iterator[Comparison]:
    from mig_opt.fleet.bounds import TraceBounds, trace_bounds

    least = bounds if isinstance(bounds, TraceBounds) else trace_bounds(simulations[0].trace)
    metrics = [simulation.metrics for simulation in simulations]
    flow = "Mean flow time (arrival to completion)"
    for name, heading, values, bound in (
        ("mean wait", "Mean wait", [each.wait.mean for each in metrics], None),
        ("mean flow time", flow, [each.completion.mean for each in metrics], least.mean_completion),
        ("makespan", "Makespan", [each.makespan for each in metrics], least.makespan[0].value),
    ):
        wordings = tuple(
            _wording(simulation, value, bound) for simulation, value in zip(simulations, values, strict=True)
        )
        yield Comparison(name, heading, tuple(values), bound, wordings)


def _wording(simulation: Simulation, value: float, bound: float | None) -> str:
    wording = spell_seconds(round(value) if value >= 1000 else float(f"{value:.4g}"))
    if simulation.unfinished:
        return f"{wording} of {simulation.metrics.finished} of {simulation.metrics.jobs} jobs"
    return wording if bound is None else f"{wording}, gap {100 * relative_gap(value, bound):.1f} %"
