"""One simulation of a scheduler on a trace: checked, measured, and compared with the lower bounds of the trace."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mig_opt.batch.integer_time import RESOLUTION
from mig_opt.fleet.trace import Trace
from mig_opt.instances.fleet import generate_trace
from mig_opt.result import Status, relative_gap
from mig_opt.simulation.simulator import Simulation, simulate
from mig_opt.studies.environment import peak_bytes
from mig_opt.studies.outcome import Outcome, shielded, violations
from mig_opt.validation.fleet.logs import check_log

if TYPE_CHECKING:
    from mig_opt.models.fleet.bounds import TraceBounds

UNFINISHED = "unfinished"
"""Status of a simulation after which jobs wait for ever."""

_MOST_NAMED = 10
"""Unfinished jobs whose names are kept."""

_LATEST_BOUNDS: dict[str, TraceBounds] = {}
"""Those of the latest trace: schedulers run on it one after the other."""


def measure_policy(
    trace: Trace, policy: str, options: Mapping[str, Any], *, key: str = "", memory: bool = False
) -> Outcome:
    """Simulate a scheduler, and check its log.

    The log has to pass :func:`mig_opt.simulation.check_log` and, as a schedule, the validator; and if all jobs were
    done, they must not have been so earlier than the lower bounds allow.

    Parameters
    ----------
    trace, policy, options
        As :func:`mig_opt.simulate` takes them.
    key : str
        Tells the trace from others: bounds are computed once for runs that follow each other with the same key.
    memory : bool
        Whether to note the peak memory of this process, which should then be one for this run alone.

    Returns
    -------
    Outcome
        Its ``makespan`` is missing if jobs were left waiting for ever; its ``figures`` say what was done of the others.

    Raises
    ------
    MigOptError
        If the options or the trace are wrong, or the scheduler does what cannot be done.
    """
    bounds = _bounds(key, trace)
    done = simulate(trace, policy, **options)
    peak = peak_bytes() if memory else None
    complete = not done.unfinished
    return Outcome(
        status=Status.FEASIBLE.value if complete else UNFINISHED,
        seconds=done.runtime_s,
        makespan=done.metrics.makespan if complete else None,
        lower_bound=bounds.makespan[0].value,
        tolerance=RESOLUTION * done.metrics.makespan,
        peak_bytes=peak,
        error=_defects(done, bounds),
        figures=_figures(done, bounds),
    )


@functools.cache
def warm_up_policy(policy: str, options: str) -> None:
    """Load whatever a scheduler loads, so that no run pays for it; ``options`` are JSON.

    What goes wrong is left to the runs.
    """
    # Very small batches need no solver; a scheduler that plans loads its own for these.
    trace = generate_trace("far-stream", batches=2, tasks=6)
    shielded(lambda: measure_policy(trace, policy, json.loads(options)))


def _bounds(key: str, trace: Trace) -> TraceBounds:
    from mig_opt.models.fleet.bounds import trace_bounds  # loads a solver, which studies of batches may not need

    if not key:
        return trace_bounds(trace)
    if key not in _LATEST_BOUNDS:
        found = trace_bounds(trace)
        _LATEST_BOUNDS.clear()
        _LATEST_BOUNDS[key] = found
    return _LATEST_BOUNDS[key]


def _figures(done: Simulation, bounds: TraceBounds) -> dict[str, Any]:
    """Return all that a row says of a simulation: metrics, what was not done, bounds, and distances to them."""
    metrics, complete = done.metrics, not done.unfinished
    limits = {"makespan": bounds.makespan[0].value, "mean_completion": bounds.mean_completion}
    reached = {"makespan": metrics.makespan, "mean_completion": metrics.completion.mean}
    return {
        **dataclasses.asdict(metrics),
        "unfinished": len(done.unfinished),
        "unfinished_names": list(done.unfinished[:_MOST_NAMED]),
        "events": done.events,
        "lower_bounds": limits,
        "gaps": {goal: relative_gap(reached[goal], limits[goal]) if complete else None for goal in limits},
    }


def _defects(done: Simulation, bounds: TraceBounds) -> str:
    """Return what is wrong with a simulation, in one line; empty if nothing is."""
    log = done.log
    problems = check_log(log)
    if problems:
        return f"{len(problems)} violations of the log: {problems[0]}"
    # Without a run of any length there is no schedule.
    ran = any(end > begin for begin, end in zip(log.run_begin, log.run_end, strict=True))
    wrong = violations(*log.as_schedule()) if ran else ""
    mean, least = done.metrics.completion.mean, bounds.mean_completion
    if not wrong and not done.unfinished and mean < least * (1 - RESOLUTION):
        return f"jobs end after {mean:.9g} s on the average, which is below the lower bound of {least:.9g} s"
    return wrong
