"""The parts of a simulation's picture: names, styles and titles of policies, figures that compare them, hints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mig_opt.errors import InputError, Problem
from mig_opt.fleet.admission import Acceptance
from mig_opt.fleet.log import RunOutcome
from mig_opt.method.result import relative_gap
from mig_opt.rules import entries_of
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.texts import plural
from mig_opt.views.fleet.series import migration_times
from mig_opt.views.texts import elide_all, one_line, spell_seconds

if TYPE_CHECKING:
    from mig_opt.fleet.bounds import TraceBounds

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#8A6D00")
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 2.1), (2.1, 1.68), (8.4, 2.1, 2.1, 2.1))
"""Lengths of the dashes and gaps of lines, in points."""
MOST_FLEETS = 4
LONGEST = 44  # characters of a name
MARKS = {RunOutcome.OUT_OF_MEMORY: "out of memory", RunOutcome.STOPPED: "stopped by the scheduler"}
BOUND_SIGN = "lower bound: no scheduler is better"
UPPER_SIGN = "upper bound: no scheduler accepts more"
_BOUND_S = 10.0  # seconds for each upper bound
IDLE_SIGN = "instance without a job"


def checked(simulations: object) -> tuple[Sequence[Simulation], Sequence[Problem]]:
    """Return simulations, or one of them, as a sequence, with what keeps them from being drawn."""
    given = (simulations,) if isinstance(simulations, Simulation) else simulations
    try:
        found = entries_of("simulations", given, Simulation, "what simulate() returned")
    except InputError as error:
        return (), error.problems
    return found, tuple(_problems(found))


def _problems(simulations: Sequence[Simulation]) -> Iterator[Problem]:
    if not simulations:
        yield Problem("simulations", "needs at least one, is empty")
    for index, simulation in enumerate(simulations[1:], 1):
        if simulation.trace != simulations[0].trace:
            yield Problem(f"simulations[{index}]", "is of another trace than the first; draw each trace for itself")
        if simulation.reject != simulations[0].reject:
            message = "and the first: one turned jobs away, one let them wait; draw each kind for itself"
            yield Problem(f"simulations[{index}]", message)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of each policy, with what no policy falls below, or exceeds."""

    name: str
    heading: str
    values: tuple[float, ...]
    bound: float | None
    wordings: tuple[str, ...]
    unit: str = "seconds"
    sign: str = BOUND_SIGN

    @property
    def spelled_bound(self) -> str:
        """The bound with its unit; empty without one."""
        if self.bound is None:
            return ""
        return spell_seconds(self.bound) if self.unit == "seconds" else f"{self.bound:.1f} {self.unit}"

    @property
    def most(self) -> float:
        """The largest of all these."""
        return max([*self.values, self.bound or 0.0]) or 1.0


class SimulationLayout:
    """The picture of some simulations of a trace: with a queue waits and times, without one what was accepted."""

    def __init__(
        self, simulations: Sequence[Simulation], bounds: TraceBounds | Acceptance | None, title: str | None
    ) -> None:
        self.simulations, self.trace = simulations, simulations[0].trace
        if title is None:
            fleet = f"{self.trace.gpus} x {self.trace.gpu.name}"
            title = " · ".join(filter(None, [self.trace.name, fleet, plural(len(self.trace.jobs), "job")]))
        self.title = title
        self.reject = simulations[0].reject
        self._bounds = bounds
        self.names = elide_all([one_line(simulation.label) for simulation in simulations], LONGEST)
        self.logs = [simulation.log for simulation in simulations]
        self.end = max((max(log.run_end, default=0.0) for log in self.logs), default=0.0) or 1.0
        self.moves = [migration_times(log) for log in self.logs]

    def colour(self, index: int) -> str:
        """Return the colour of a policy."""
        return COLOURS[index % len(COLOURS)]

    def dashes(self, index: int) -> tuple[float, ...]:
        """Return the dashes of the line of a policy."""
        return DASHES[index % len(DASHES)]

    def complete(self, index: int) -> bool:
        """Return True if a policy finished all jobs: figures of some jobs only are no rivals of the others."""
        return not self.simulations[index].unfinished

    def summary(self, index: int) -> str:
        """Return the heading of a fleet."""
        metrics = self.simulations[index].metrics
        parts = [self.names[index]]
        parts.append("" if self.complete(index) else f"{metrics.finished} of {metrics.jobs} jobs done")
        parts.append(f"{100 * metrics.utilisation:.1f} % of the compute slices busy")
        parts.append(plural(metrics.migrations, "migration"))
        parts.append(f"{metrics.finished} of {metrics.jobs} jobs accepted" if self.reject else "")
        return " · ".join(filter(None, parts))

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the figures that stand side by side."""
        yield from self._ratios() if self.reject else self._times()

    def _ratios(self) -> Iterator[Comparison]:
        from mig_opt.models.fleet.admission import acceptance_bound

        most = self._bounds
        if not isinstance(most, Acceptance):
            most = acceptance_bound(self.trace, time_limit=_BOUND_S)
        for name, heading, goal in (
            ("accepted jobs", "Accepted jobs", "jobs"),
            ("accepted slices", "Accepted compute slices", "slices"),
            ("accepted slice-seconds", "Accepted slices x seconds", "slice_seconds"),
        ):
            values = tuple(100 * getattr(each.metrics.acceptance, goal) for each in self.simulations)
            wordings = tuple(f"{value:.1f}" for value in values)
            yield Comparison(name, heading, values, 100 * getattr(most, goal), wordings, "%", UPPER_SIGN)

    def _times(self) -> Iterator[Comparison]:
        from mig_opt.fleet.bounds import TraceBounds, trace_bounds

        least = self._bounds if isinstance(self._bounds, TraceBounds) else trace_bounds(self.trace)
        metrics = [simulation.metrics for simulation in self.simulations]
        flow = "Mean flow time (arrival to completion)"
        for name, heading, values, bound in (
            ("mean wait", "Mean wait", [each.wait.mean for each in metrics], None),
            ("mean flow time", flow, [each.completion.mean for each in metrics], least.mean_completion),
            ("makespan", "Makespan", [each.makespan for each in metrics], least.makespan[0].value),
        ):
            wordings = tuple(self._wording(index, value, bound) for index, value in enumerate(values))
            yield Comparison(name, heading, tuple(values), bound, wordings)

    def _wording(self, index: int, value: float, bound: float | None) -> str:
        metrics = self.simulations[index].metrics
        wording = spell_seconds(round(value) if value >= 1000 else float(f"{value:.4g}"))
        if not self.complete(index):
            return f"{wording} of {metrics.finished} of {metrics.jobs} jobs"
        return wording if bound is None else f"{wording}, gap {100 * relative_gap(value, bound):.1f} %"
