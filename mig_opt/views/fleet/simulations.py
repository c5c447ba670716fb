"""Pictures of simulations: fleets and fragmentation over time, waits, and the policies side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mig_opt.errors import Problem, raise_any
from mig_opt.fleet.admission import Acceptance
from mig_opt.fleet.bounds import TraceBounds, trace_bounds
from mig_opt.method.result import relative_gap
from mig_opt.rules import entries_of
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.texts import plural
from mig_opt.views.fleet.fleets import (
    Numbers,
    StepFunction,
    acceptance_steps,
    fleet_panels,
    fragmentation_steps,
    migration_times,
    wait_steps,
)
from mig_opt.views.scene import Axis, Box, Boxes, Dots, Line, Mark, Panel, Rows, Rule, Scene, seconds_axis
from mig_opt.views.texts import BOUND, elide_all, one_line, spell_seconds, wrap_name

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#8A6D00")
_DASHES: tuple[tuple[float, ...], ...] = ((), (7, 2.1), (2.1, 1.68), (8.4, 2.1, 2.1, 2.1))
"""Lengths of the dashes and gaps of lines, in points."""
_MOST_FLEETS = 4
_LONGEST, _SHORT = 44, 20  # characters of a name, and of one on one line
_MOST_DOTS = 150  # migrations up to which each is marked on its line in an image
_COUNT_BINS = 60
_FAR_APART = 20  # ratio of the longest waits of two policies from which on the scale is logarithmic
_WIDTH = 10.0  # inches
_LINES, _COUNTS, _BAR = 1.35, 0.6, 0.27  # inches of a panel with lines, of one with counts, and of a bar
_PIXELS, _BAR_PIXELS = 260, 40  # of a panel with lines, and of a bar
_SHARES = Axis("%", (0, 104), ticks=[(share, str(share)) for share in (0, 25, 50, 75, 100)])


def simulation_scene(
    simulations: Simulation | Sequence[Simulation], bounds: TraceBounds | Acceptance | None = None
) -> Scene:
    """Return the picture of one simulation, or of several of the same trace side by side.

    From top to bottom: the jobs of the fleet over time, for up to four simulations; the fragmentation of all, with
    migrations marked; how long jobs waited; mean wait, mean flow time (arrival to completion), and makespan
    beside their lower bounds. Of simulations that turned jobs away (``reject``) the lower part shows in place of waits
    and times the share of the jobs that was accepted over time, and acceptance ratios beside their upper bounds.

    A fleet of up to 8 GPUs with up to 800 runs is drawn job by job over the memory slices; of others the share of the
    compute slices that was busy with each profile.

    Parameters
    ----------
    simulations : Simulation or sequence of Simulation
        What :func:`mig_opt.simulate` returned.
    bounds : TraceBounds or Acceptance, optional
        Lower bounds of the trace, if they are known already; upper bounds on acceptance ratios where jobs were turned
        away (:func:`mig_opt.bounds`, ``as_asked=False`` where one gives jobs other profiles).

    Returns
    -------
    Scene
        Its title is the name of the trace, the fleet and the number of jobs.
        The labels of the panels of a figure (``figure.axes``) are ``fleet 0``, ..., ``fragmentation``, ``migrations``
        (where these are too many to mark each), ``waits``, ``mean wait``, ``mean flow time`` and ``makespan``; without
        a queue ``acceptance``, ``accepted jobs``, ``accepted slices`` and ``accepted slice-seconds``. The group ids of
        the artists say what they are: ``run:<simulation>:<index in the log>``, ``label:...``, ``hop:...``,
        ``instance:...``, ``use:<simulation>:<profile>``, ``fragmentation:<simulation>``, ``migrations:<simulation>``,
        ``waits:<simulation>``, ``bar:<panel>:<simulation>``, ``lower-bound:<panel>``,
        ``upper-bound:<panel>``, ``acceptance:<simulation>``.

    Raises
    ------
    InputError
        If they are of different traces, or some turned jobs away and others let them wait.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu, plot, simulate
    >>> trace = Trace((Job("a", 0.0, {3: 10.0}, "3g.20gb"), Job("b", 1.0, {4: 5.0}, "4g.20gb")), get_gpu("A100"))
    >>> figure = plot([simulate(trace, "first-fit"), simulate(trace, "static", backfill=True)])
    >>> [axes.get_label() for axes in figure.axes][:4]
    ['fleet 0', 'fleet 1', 'fragmentation', 'waits']
    """
    given = (simulations,) if isinstance(simulations, Simulation) else simulations
    done = entries_of("simulations", given, Simulation, "what simulate() returned")
    raise_any(_problems(done))
    trace = done[0].trace
    title = " · ".join(filter(None, [trace.name, trace.label, plural(len(trace.jobs), "job")]))
    names = elide_all([one_line(simulation.label) for simulation in done], _LONGEST)
    end = max((max(simulation.log.run_end, default=0.0) for simulation in done), default=0.0) or 1.0
    times = seconds_axis(0.0, end, 0.005)
    panels = list(fleet_panels(done[:_MOST_FLEETS], list(map(_summary, done, names)), times, alone=len(done) == 1))
    panels += _fragmentation(done, names, times)
    panels.append(_shares(done, names, times))
    panels += _bars(done, names, bounds)
    return Scene(title, panels, _WIDTH, left=0.95, own_key=True)


def _problems(simulations: Sequence[Simulation]) -> Iterator[Problem]:
    for index, simulation in enumerate(simulations[1:], 1):
        if simulation.trace != simulations[0].trace:
            yield Problem(f"simulations[{index}]", "is of another trace than the first; draw each trace for itself")
        if simulation.reject != simulations[0].reject:
            message = "and the first: one turned jobs away, one let them wait; draw each kind for itself"
            yield Problem(f"simulations[{index}]", message)


def _summary(simulation: Simulation, name: str) -> str:
    """Return the heading of a fleet."""
    metrics = simulation.metrics
    of_all = f"{metrics.finished} of {metrics.jobs} jobs"
    parts = [name, f"{of_all} done" if simulation.unfinished else ""]
    parts += [f"{100 * metrics.utilisation:.1f} % of the compute slices busy", plural(metrics.migrations, "migration")]
    parts.append(f"{of_all} accepted" if simulation.reject else "")
    return " · ".join(filter(None, parts))


def _line(gid: str, index: int, steps: StepFunction, until: float, hover: dict[str, str]) -> Line:
    """Return something that changes in steps, as the line of a policy, whose name begins the hover."""
    moments, levels = np.append(steps.moments, until), np.append(steps.levels, steps.levels[-1])
    colour, dashes = _COLOURS[index % len(_COLOURS)], _DASHES[index % len(_DASHES)]
    return Line(f"{gid}:{index}", moments, levels, colour, hover["scheduler"], dashes, hover=tuple(hover.items()))


def _fragmentation(done: Sequence[Simulation], names: Sequence[str], times: Axis) -> Iterator[Panel]:
    """Yield the fragmentation with the migrations, which images count where they are too many to mark each."""
    moves = [migration_times(simulation.log) for simulation in done]
    counted = sum(map(len, moves)) > _MOST_DOTS
    end = times.limits[1] if times.limits else 1.0
    marks: list[Mark] = []
    highest = 0.0
    for index, (simulation, name) in enumerate(zip(done, names, strict=True)):
        steps = fragmentation_steps(simulation.log).thinned(end)
        highest = max(highest, float(steps.levels.max()))
        until = max(simulation.metrics.makespan, steps.moments[-1])
        hover = {"scheduler": name, "at": "@x{0.000} s", "fragmentation": "@y{0.00} %"}
        marks.append(_line("fragmentation", index, steps, until, hover))
        if len(moves[index]):
            at, colour = moves[index], _COLOURS[index % len(_COLOURS)]
            legend = "migration (fragmentation after it)"
            marks.append(
                Dots(
                    f"migrations:{index}", at, steps.at(at), colour, hollow=True, legend=legend,
                    only="page" if counted else "",
                )
            )  # fmt: skip
    yield Panel(
        "fragmentation", marks, times, Axis("%", (0, 1.12 * highest or 1.0)), heading="Fragmentation, mean of the GPUs",
        height=_LINES, pixels=_PIXELS, grid="y", joined=counted,
    )  # fmt: skip
    if counted:
        yield _counts(moves, names, times, end)


def _counts(moves: Sequence[Numbers], names: Sequence[str], times: Axis, end: float) -> Panel:
    """Return how many jobs migrated when."""
    unit = 10.0 ** np.floor(np.log10(end / _COUNT_BINS))
    width = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor * _COUNT_BINS >= end)
    edges = np.arange(0.0, end + width, width)
    counts = [np.histogram(moments, edges)[0] for moments in moves]
    marks = [
        _line("migrations", index, StepFunction(edges[:-1], counts[index]), end, {"scheduler": name})
        for index, name in enumerate(names)
        if counts[index].any()
    ]
    most = Axis(limits=(0, 1.05 * max(map(max, counts))), most_ticks=3, whole=True)
    heading = f"Migrations in each {spell_seconds(width)}"
    return Panel("migrations", marks, times, most, heading=heading, height=_COUNTS, grid="y", only="image")


def _shares(done: Sequence[Simulation], names: Sequence[str], times: Axis) -> Panel:
    """Return for each policy which share of the jobs waited at most how long, or was accepted so far."""
    if done[0].reject:
        found, x = [acceptance_steps(simulation.log) for simulation in done], times
        name, heading = "acceptance", "Acceptance: share of the jobs so far that were accepted"
        hover = {"at": "@x{0.000} s", "accepted so far": "@y{0.00} %"}
    else:
        found = [wait_steps(simulation.log) for simulation in done]
        name, heading, x = "waits", "Waits: share of all jobs that had a place by then", _waiting(found)
        hover = {"waited at most": "@x{0.000} s", "jobs": "@y{0.00} %"}
    until = x.limits[1] if x.limits else 1.0
    lines = [
        _line(name, index, steps, max(steps.moments[-1], until), {"scheduler": scheduler, **hover})
        for index, (steps, scheduler) in enumerate(zip(found, names, strict=True))
    ]
    return Panel(name, lines, x, _SHARES, heading=heading, height=_LINES, pixels=_PIXELS, grid="y")


def _waiting(found: Sequence[StepFunction]) -> Axis:
    """Return the axis of the waits."""
    longest = [float(steps.moments[-1]) for steps in found]
    remark = ""
    if not max(longest):
        started = all(steps.levels[-1] == 100 for steps in found)
        remark = " (no job waits)" if started else " (none of those that started waited)"
    shortest = min((seconds for seconds in longest if seconds > 0), default=0.0)
    far = max(longest) > _FAR_APART * shortest > 0
    return Axis(
        f"seconds from the arrival to the start{remark}", (0, 1.02 * max(longest) or 1.0), page_room=0.01,
        scale="symlog" if far else "linear", linear_until=shortest / 2,
    )  # fmt: skip


def _bars(done: Sequence[Simulation], names: Sequence[str], bounds: TraceBounds | Acceptance | None) -> Iterator[Panel]:
    """Yield the policies side by side, with what no policy falls below, or exceeds."""
    reject = done[0].reject
    wrapped = [wrap_name(name, 1 if len(name) <= _SHORT else 2) for name in names]
    height = max(0.5, _BAR * len(names) * (1.25 if any("\n" in name for name in wrapped) else 1))
    compared = (_ratios if reject else _times)(done, bounds)
    for number, (title, heading, values, bound, wordings, sign) in enumerate(compared):
        bars: dict[str, list[Box]] = {"bar": [], "faint bar": []}
        for index, (name, value, wording) in enumerate(zip(names, values, wordings, strict=True)):
            colour, gid = _COLOURS[index % len(_COLOURS)], f"bar:{number}:{index}"
            # Figures of some jobs only are no rivals of the others.
            role = "faint bar" if done[index].unfinished else "bar"
            bars[role].append(Box(0.0, value, index + 0.15, index + 0.85, colour, gid, name, [wording], beside=wording))
        marks: list[Mark] = [Boxes(role, boxes) for role, boxes in bars.items()]
        if bound is not None:
            spelled = f"{bound:.1f} %" if reject else spell_seconds(bound)
            gid = f"{'upper' if reject else 'lower'}-bound:{number}"
            marks.append(Rule(gid, bound, sign, f"({spelled})", BOUND, dashed=True, keyed=True))
        # Beside a bar of seconds there is more to say.
        most = max([*values, bound or 0.0]) or 1.0
        axis = Axis("%" if reject else "seconds", (0, (1.3 if reject else 1.75) * most), most_ticks=5)
        labels = wrapped if number == 0 else [""] * len(names)
        rows = Rows(names, height / (len(names) + 0.2), labels=labels, margin=0.1)
        yield Panel(
            title, marks, axis, rows=rows, heading=heading, pixels=_BAR_PIXELS * len(names) + 100, beside=number > 0,
            zoom="",
        )  # fmt: skip


_BOUND_S = 10.0  # seconds for each upper bound


_Compared = tuple[str, str, Sequence[float], float | None, Sequence[str], str]
"""Title, heading, figures of the policies, what none falls below (or exceeds), wordings, and the sign of that bound."""


def _ratios(simulations: Sequence[Simulation], most: TraceBounds | Acceptance | None) -> Iterator[_Compared]:
    from mig_opt.models.fleet.admission import acceptance_bound

    as_asked = all(each.log.as_asked() for each in simulations)
    if not isinstance(most, Acceptance):
        most = acceptance_bound(simulations[0].trace, as_asked=as_asked, time_limit=_BOUND_S)
    whose = "scheduler that gives what is asked for" if as_asked else "scheduler"
    for name, heading, goal in (
        ("accepted jobs", "Accepted jobs", "jobs"),
        ("accepted slices", "Accepted compute slices", "slices"),
        ("accepted slice-seconds", "Accepted slices x seconds", "slice_seconds"),
    ):
        values = [100 * getattr(each.metrics.acceptance, goal) for each in simulations]
        wordings, sign = [f"{value:.1f}" for value in values], f"upper bound: no {whose} accepts more"
        yield name, heading, values, 100 * getattr(most, goal), wordings, sign


def _times(simulations: Sequence[Simulation], bounds: TraceBounds | Acceptance | None) -> Iterator[_Compared]:
    least = bounds if isinstance(bounds, TraceBounds) else trace_bounds(simulations[0].trace)
    metrics = [simulation.metrics for simulation in simulations]
    flow = "Mean flow time (arrival to completion)"
    for name, heading, values, bound in (
        ("mean wait", "Mean wait", [each.wait.mean for each in metrics], None),
        ("mean flow time", flow, [each.completion.mean for each in metrics], least.mean_completion),
        ("makespan", "Makespan", [each.makespan for each in metrics], least.makespan[0].value),
    ):
        wordings = [_wording(each, value, bound) for each, value in zip(simulations, values, strict=True)]
        yield name, heading, values, bound, wordings, "lower bound: no scheduler is better"


def _wording(simulation: Simulation, value: float, bound: float | None) -> str:
    wording = spell_seconds(round(value) if value >= 1000 else float(f"{value:.4g}"))
    if simulation.unfinished:
        return f"{wording} of {simulation.metrics.finished} of {simulation.metrics.jobs} jobs"
    return wording if bound is None else f"{wording}, gap {100 * relative_gap(value, bound):.1f} %"
