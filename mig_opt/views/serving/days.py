"""Pictures of days: GPUs in use over time against the fewest that are possible, with the changes marked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mig_opt.errors import InputError
from mig_opt.rules import wrong_type
from mig_opt.serving.day import DayPlan, DayResult, clock_text
from mig_opt.texts import plural
from mig_opt.views.scene import Axis, Dots, Line, Mark, Marker, Panel, Scene
from mig_opt.views.texts import BOUND, INK, colour_of

_HOUR = 3600
_TICK_HOURS = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168)
_MOST_TICKS = 13
_LEAST_SIZE, _SIZE_PER_SEGMENT = 12.0, 8.0  # square points of a dot


def day_scene(result: DayResult) -> Scene:
    """Return the picture of a day: the GPUs in use, the fewest that each step can do with, and the changes.

    Where GPUs do not cost 1 each, it is their cost in place of their number.

    A change is a dot where it begins, the larger the more segments it creates; one that interrupts a segment is drawn
    as a cross.

    Parameters
    ----------
    result : DayResult
        What :func:`mig_opt.deploy_day` returned, with a plan.

    Returns
    -------
    Scene
        Its title is GPU-hours or their cost, the lower bound, and changes.
        The group ids of the parts of a figure are ``gpus``, ``bound``, ``changes`` and ``interruptions``.

    Raises
    ------
    InputError
        If the result has no plan.

    Examples
    --------
    >>> from mig_opt import RateTable, deploy_day, load, plot
    >>> demand = load("parvagpu-s1")
    >>> rows = {service.name: (service.rate, 3 * service.rate) for service in demand.services}
    >>> figure = plot(deploy_day(demand, RateTable((0, 3600, 7200), rows)))
    >>> figure.axes[0].get_ylabel()
    'GPUs'
    """
    if result.plan is None:
        raise InputError([wrong_type("result", result, "what deploy_day(...) returns, with a plan")])
    plan, day, counted = result.plan, result.day, result.counted
    hours = [time / _HOUR for time in plan.times]
    costs, least = (plan.gpus, result.least_costs) if day is None else (day.costs(plan), result.least_costs)
    used, fewest = [*costs, costs[-1]], [*least, least[-1]]
    marks: list[Mark] = [
        Line("gpus", hours, used, colour_of(0), "in use", width=2.0),
        Line("bound", hours, fewest, BOUND, "at least (proven)", (4.8, 2.4), width=1.2),
        *_changes(plan, hours, costs),
    ]
    ticks = [(tick, clock_text(tick * _HOUR)) for tick in _ticks(hours[0], hours[-1])]
    x = Axis("time", (hours[0], hours[-1]), ticks=ticks, zoom_label="hours")
    y = Axis("GPUs" if counted else "cost of the GPUs", (0, 1.12 * max(*used, *fewest, 1)), whole=counted)
    panel = Panel("day", marks, x, y, height=3.2, pixels=380, grid="both")
    spent = f"{plan.gpu_hours:.6g} GPU-hours" if day is None or counted else f"GPUs cost {day.over_hours(costs):.6g}"
    hours_used = f"{spent}, at least {result.hours_bound:.6g}"
    title = f"{hours_used}; {plural(len(plan.changed), 'change')}, {plan.created} new segments"
    return Scene(title, [panel], 8.1, left=0.65)


def _changes(plan: DayPlan, hours: list[float], costs: Sequence[float]) -> Iterator[Dots]:
    """Yield the two kinds of changes, if there are any."""
    kinds: list[tuple[str, str, Marker, str, bool]] = [
        ("changes", "change; larger: more new segments", "circle", INK, False),
        ("interruptions", "change that interrupts a segment", "cross", BOUND, True),
    ]
    for gid, legend, marker, colour, interrupts in kinds:
        steps = [step for step in plan.changed if bool(plan.changes[step - 1].interrupted) == interrupts]
        if not steps:
            continue
        changes = [plan.changes[step - 1] for step in steps]
        begin = [sum(one.begins is not None for one in change.steps) for change in changes]
        hover: list[tuple[str, Sequence[object]]] = [
            ("time", [clock_text(plan.times[step]) for step in steps]),
            ("GPUs", [plan.gpus[step] for step in steps]),
            ("begin", begin),
            ("end", [sum(one.ends is not None for one in change.steps) for change in changes]),
            ("interrupted", [len(change.interrupted) for change in changes]),
        ]
        sizes = [math.sqrt(_LEAST_SIZE + _SIZE_PER_SEGMENT * number) for number in begin]
        at, level = [hours[step] for step in steps], [costs[step] for step in steps]
        yield Dots(gid, at, level, colour, marker, sizes, legend=legend, hover=hover)


def _ticks(begin: float, end: float) -> list[float]:
    """Return full hours, or parts of them, of which there are not too many."""
    step = next((step for step in _TICK_HOURS if (end - begin) / step < _MOST_TICKS), (end - begin) / _MOST_TICKS)
    first = -int(-begin // step)
    return [number * step for number in range(first, int(end // step) + 1)]
