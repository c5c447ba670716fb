"""The command simulate: schedulers on jobs that arrive over time."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from mig_opt.cli import completing, options
from mig_opt.cli.fleet.rejecting import MOST_OPTIMAL, admission_document, admission_limits, admission_parts
from mig_opt.cli.inputs import check_outputs, load_costs, load_state, load_trace, plotted, written
from mig_opt.cli.outcome import Checks, finish, options_named, print_json
from mig_opt.cli.screens import Cell, Part, broken_label, card, note, percent, show, show_remarks, table, tenths
from mig_opt.method.options import run_options
from mig_opt.method.result import relative_gap
from mig_opt.texts import number_in, plural

if TYPE_CHECKING:
    from mig_opt.cli.progress import Bar
    from mig_opt.fleet.admission import Acceptance
    from mig_opt.fleet.bounds import TraceBounds
    from mig_opt.fleet.trace import Trace
    from mig_opt.simulation import Simulation
    from mig_opt.simulation.fleet.cluster import Cluster
    from mig_opt.simulation.fleet.simulator import Observer

_EXPECTED = ("fragmentation-aware", "first-fit", "best-fit", "load-balancing")
"""Policies that run if none are named: those that need no options to do what they are for."""

_MOST_OPTIMAL = 20
"""Jobs up to which the optimum may be asked for; from a dozen on it is not always proven."""

_GOALS = ("mean_completion", "makespan")
_MOST_NAMED = 5

_REFRESH_S = 0.25


@dataclass(frozen=True, slots=True)
class References:
    """Lower bounds for every policy, and the best schedules in hindsight (without migration) if they were asked for."""

    bounds: TraceBounds
    optima: Mapping[str, tuple[float, float, bool]]
    """By goal: seconds of the best schedule, its lower bound in seconds, and True if it is proven."""

    @property
    def lower_bounds(self) -> dict[str, float]:
        """Seconds, by goal."""
        return {"makespan": self.bounds.makespan[0].value, "mean_completion": self.bounds.mean_completion}

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
        if self.optima:
            found["optimum"] = {
                goal: (values[goal] - value) / values[goal] if complete and math.isfinite(value) else None
                for goal, (value, _, _) in self.optima.items()
            }
        return found


_DECLARED = {"knowledge": "--declared", "seed": "--seed"}
_START = {"state": "--from", "busy_until": "--busy-until"}


def simulate(
    trace: options.TraceArgument,
    *,
    policy: Annotated[
        list[str] | None,
        Option(
            metavar="NAMES",
            help="Some of: mig-opt methods; each with :OPTION=VALUE for its options, like "
            f"static:partition=4+3:backfill=true; may be repeated.  [default: {','.join(_EXPECTED)}]",
            autocompletion=completing.policies,
        ),
    ] = None,
    gpu: options.TraceGpu = None,
    gpus: options.TraceGpus = None,
    costs: options.Costs = None,
    start: Annotated[
        str | None, Option("--from", metavar="STATE", help="Instances that there are: a file of mig-opt state import.")
    ] = None,
    busy_until: Annotated[
        float | None, Option(metavar="S", help="For --from: seconds after which the instances in use are free.")
    ] = None,
    declared: Annotated[
        str | None,
        Option(
            metavar="HOW",
            help="Tell schedulers other run times: wrong by a lognormal factor of this sigma, classes (means of "
            "jobs that ask for the same), or one (the same for all).",
        ),
    ] = None,
    seed: Annotated[int | None, Option(metavar="N", help="For --declared.  [default: 0]")] = None,
    optimum: Annotated[
        bool,
        Option(
            "--optimum",
            help=f"Find the best in hindsight too; for up to {_MOST_OPTIMAL} jobs, {MOST_OPTIMAL} with --reject.",
        ),
    ] = False,
    reject: Annotated[
        bool, Option("--reject", help="Turn jobs away that find no place when they arrive: no job waits.")
    ] = False,
    time_limit: Annotated[float, Option(metavar="S", help="Seconds for each goal of --optimum.")] = 30.0,
    chart: Annotated[Path | None, options.plot("fleets, fragmentation and waits")] = None,
    log: Annotated[
        Path | None, options.file("Write every run and operation, one JSON object on a line.", "--save-log")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Simulate schedulers on the jobs of a trace.

    They are compared with each other and with lower bounds; with --reject by their acceptance ratios, and with upper
    bounds. Exits with 1 if a scheduler leaves jobs waiting for ever.
    """
    from mig_opt.cli.fleet.policies import read_policies
    from mig_opt.cli.progress import shown_bar

    checks = Checks()
    chosen = read_policies(",".join(policy or _EXPECTED), checks)
    checks.attempt(run_options, time_limit=time_limit)
    checks.attempt(check_outputs, [trace, *filter(None, [start, costs])], chart, log=log)
    with checks.step():
        found = load_trace(trace, gpu, gpus)
        if costs is not None:
            found = found.replace(operations=load_costs(costs, found.gpu))
        if declared is not None:
            found = _declared(found, declared, seed or 0)
        for choice in chosen:
            checks.attempt(choice.check, found, reject=reject)
        most = MOST_OPTIMAL if reject else _MOST_OPTIMAL
        message = f"is for traces of up to {most} jobs, this one has {len(found.jobs)}; leave it out"
        checks.require(not optimum or len(found.jobs) <= most, "--optimum", message)
    checks.require(seed is None or declared is not None, "--seed", "is for --declared; leave it out")
    checks.require(busy_until is None or start is not None, "--busy-until", "is for --from; leave it out")
    checks.require(not optimum or start is None, "--optimum", "is for GPUs that start empty; leave it or --from out")
    state = None if start is None else checks.attempt(load_state, start, None, None)
    checks.finish()
    done: list[Simulation] = []
    with shown_bar("jobs", len(chosen) * len(found.jobs), quiet=as_json) as bar, options_named(_START):
        for choice in chosen:
            observer = None if bar is None else _watched(bar, choice.text, len(done) * len(found.jobs))
            done.append(choice.run(found, state, busy_until, reject=reject, observer=observer))
    shown, document, bounds = _compared(done, time_limit if optimum else None, quiet=as_json)
    remarks = written("log", done, log, _write_log) + plotted("simulation", done, chart, partial(_draw, bounds))
    if as_json:
        print_json(document)
    else:
        show(*shown)
        show_remarks(remarks)
    finish(good=not any(simulation.unfinished for simulation in done))


def _declared(trace: Trace, knowledge: str, seed: int) -> Trace:
    """Return a trace of whose run times schedulers know no more than an option says."""
    from mig_opt.fleet.declared_times import declare_times

    with options_named(_DECLARED):
        return declare_times(trace, number_in(knowledge.strip()), seed=seed)


def _watched(bar: Bar, policy: str, before: int) -> Observer:
    """Return an observer that shows how many jobs are finished, ``before`` of them with the policies before."""
    bar.show(f"jobs, now: {policy}", completed=before)
    due = 0.0

    def observe(cluster: Cluster) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + _REFRESH_S
            finished = sum(not math.isnan(seconds) for seconds in cluster.log.finished)
            bar.show(completed=before + finished)

    return observe


def _write_log(done: Sequence[Simulation], log: Path) -> None:
    from mig_opt.files.fleet.traces import write_log

    write_log(done, log)


def _draw(bounds: TraceBounds | Acceptance, done: Sequence[Simulation], chart: Path) -> None:
    from mig_opt.views import plot

    plot(done, to=chart, bounds=bounds)


def _compared(
    done: Sequence[Simulation], time_limit: float | None, *, quiet: bool
) -> tuple[Iterator[Part], dict[str, object], TraceBounds | Acceptance]:
    """Return what to show of simulations of one trace, the same as a document, and their bounds."""
    if done[0].reject:
        limits = admission_limits(done, time_limit, quiet=quiet)
        return admission_parts(done, limits), admission_document(done, limits), limits.other_bounds or limits.bounds
    references = _references(done[0].trace, time_limit, quiet=quiet)
    return _parts(done, references), _document(done, references), references.bounds


def _references(trace: Trace, time_limit: float | None, *, quiet: bool) -> References:
    """Return the figures that the policies are compared with; the optimum only if there is time for it."""
    from mig_opt.cli.progress import shown_progress
    from mig_opt.fleet.bounds import trace_bounds
    from mig_opt.models.fleet.optimum import trace_optimum

    bounds, optima = trace_bounds(trace), {}
    if time_limit is not None:
        with shown_progress("optimum", quiet=quiet):
            makespan, total = (trace_optimum(trace, goal, time_limit=time_limit) for goal in ("makespan", "completion"))
        optima["makespan"] = makespan.value, makespan.lower_bound, bool(makespan.proven)
        value, bound = ((seconds - bounds.arrivals) / bounds.jobs for seconds in (total.value, total.lower_bound))
        optima["mean_completion"] = value, bound, bool(total.proven)
    return References(bounds, optima)


def _document(done: Sequence[Simulation], references: References) -> dict[str, object]:
    from mig_opt.fleet.declared_times import declared_error

    trace = done[0].trace
    document: dict[str, object] = {
        "trace": trace.name,
        "gpu": trace.gpu.name,
        "gpus": trace.gpus,
        "lower_bounds": references.lower_bounds,
    }
    error = declared_error(trace)
    if error is not None:
        document["declared_error"] = error
    if references.optima:
        document["optimum"] = {
            name: {"value": value if math.isfinite(value) else None, "lower_bound": bound, "proven": proven}
            for name, (value, bound, proven) in references.optima.items()
        }
    document["policies"] = [
        {
            "policy": simulation.policy,
            "options": {name: list(v) if isinstance(v, tuple) else v for name, v in simulation.options.items()},
            "label": simulation.label,
            **dataclasses.asdict(simulation.metrics),
            "gaps": references.gaps(simulation),
            "unfinished": list(simulation.unfinished),
            "runtime_s": simulation.runtime_s,
        }
        for simulation in done
    ]
    return document


def _parts(done: Sequence[Simulation], references: References) -> Iterator[Part]:
    """Yield everything to be shown about simulations of one trace."""
    from mig_opt.fleet.declared_times import declared_error

    trace, bounds = done[0].trace, references.lower_bounds
    named = f"{trace.name} ({plural(len(trace.jobs), 'job')})"
    error = declared_error(trace)
    known = [] if error is None else [("declared", f"run times, on the median wrong by a factor of {error:.2f}")]
    yield from (card([("trace", named), ("fleet", f"{trace.gpus} x {trace.gpu.name}"), *known]), "")
    rows: list[list[Cell]] = [_figures(simulation) for simulation in done]
    rows.append(["lower bound", "", "", *(tenths(bounds[goal]) for goal in _GOALS), "", "", ""])
    if references.optima:
        rows.append(["optimum", "", "", *(_best(*references.optima[goal]) for goal in _GOALS), "", "", ""])
    numbers = [">done", ">wait s", ">flow s", ">makespan s", ">busy %", ">frag. %", ">moves"]
    yield from (table(["~policy", *numbers], rows), "")
    yield from (note("wait, flow: mean seconds from arrival to start, and to completion (flow time)."), "")
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


def _best(value: float, _: float, proven: bool) -> str:
    return "-" if math.isinf(value) else f"{'' if proven else '<='}{tenths(value)}"


def _gap_parts(done: Sequence[Simulation], references: References) -> Iterator[Part]:
    words = {"mean_completion": "flow", "makespan": "makespan"}
    against = {"lower_bound": "bound", "optimum": "optimum"}
    gaps = [references.gaps(simulation) for simulation in done]
    kinds = [kind for kind in against if kind in gaps[0]]
    rows: list[list[Cell]] = [
        [broken_label(simulation.label), *(percent(gap[kind][goal], 1) for kind in kinds for goal in _GOALS)]
        for simulation, gap in zip(done, gaps, strict=True)
    ]
    yield table(["~gap in %", *(f">{words[goal]}/{against[kind]}" for kind in kinds for goal in _GOALS)], rows)
    if "optimum" in kinds:
        remark = (
            "optimum: of schedules that know the future and give jobs the profiles that they ask for, but neither"
            " migrate them nor slow them down by PCIe."
        )
        yield from ("", note(remark))
