"""Simulations of schedulers in a notebook."""

from __future__ import annotations

import math
from typing import Any

from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.texts import plural
from mig_opt.views.cards.cards import card, card_of, facts, frame_of
from mig_opt.views.cards.frames import frame
from mig_opt.views.texts import spell_seconds


@card_of.register
def simulation_card(simulation: Simulation) -> str:
    """Return the card of a simulation: the figures by which schedulers are compared."""
    metrics, trace = simulation.metrics, simulation.trace
    fleet = f"{trace.gpus} x {trace.gpu.name}"
    rows = [
        ("jobs done", f"{metrics.finished} of {metrics.jobs}"),
        ("mean wait", _seconds(metrics.wait.mean)),
        ("mean flow time", _seconds(metrics.completion.mean)),
        ("makespan", _seconds(metrics.makespan)),
        ("slices busy", f"{100 * metrics.utilisation:.1f} %"),
        ("fragmentation", f"{100 * metrics.fragmentation:.1f} %"),
        ("migrations", str(metrics.migrations)),
    ]
    title = " · ".join(filter(None, [simulation.label, trace.name, fleet, plural(len(trace.jobs), "job")]))
    return card(title, facts(rows))


def _seconds(seconds: float) -> str:
    return spell_seconds(float(f"{seconds:.4g}"))


@frame_of.register
def simulation_frame(simulation: Simulation) -> Any:
    """Return the jobs of a simulation as a frame: when each arrived, had a place, and was done."""
    log = simulation.log
    rows = [
        {
            "job": job.name,
            "arrival": job.arrival,
            "scheduled": scheduled,
            "finished": finished,
            "wait": scheduled - job.arrival,
            "flow_time": finished - job.arrival,
            "done": not math.isnan(finished),
        }
        for job, scheduled, finished in zip(simulation.trace.jobs, log.scheduled, log.finished, strict=True)
    ]
    return frame(["job", "arrival", "scheduled", "finished", "wait", "flow_time", "done"], rows)
