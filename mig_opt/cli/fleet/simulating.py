"""The command simulate: schedulers on jobs that arrive over time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from mig_opt.cli import options
from mig_opt.cli.inputs import check_outputs, load_trace
from mig_opt.cli.outcome import ANSWER_IS_NO, Checks, print_json
from mig_opt.cli.screens import show, show_written
from mig_opt.control import check_run

if TYPE_CHECKING:
    from mig_opt.cli.fleet.screens import References
    from mig_opt.fleet.trace import Trace
    from mig_opt.simulation import Simulation

_EXPECTED = ("fragmentation-aware", "first-fit", "best-fit", "load-balancing")
"""Policies that run if none are named: those that need no options to do what they are for."""

_MOST_OPTIMAL = 20
"""Jobs up to which the optimum may be asked for; from a dozen on it is not always proven."""


def simulate(
    trace: options.TraceArgument,
    *,
    policy: Annotated[
        list[str] | None,
        Option(
            metavar="NAMES",
            help="Some of: mig-opt methods; each with :OPTION=VALUE for its options, like "
            f"static:partition=4+3:backfill=true; may be repeated.  [default: {','.join(_EXPECTED)}]",
        ),
    ] = None,
    gpu: options.TraceGpu = None,
    gpus: options.TraceGpus = None,
    optimum: Annotated[
        bool, Option("--optimum", help=f"Find the best schedule in hindsight too; for up to {_MOST_OPTIMAL} jobs.")
    ] = False,
    time_limit: Annotated[float, Option(metavar="S", help="Seconds for each of the two goals of --optimum.")] = 30.0,
    chart: Annotated[Path | None, options.plot("fleets, fragmentation and waits")] = None,
    log: Annotated[
        Path | None, options.file("Write every run and operation, one JSON object on a line.", "--save-log")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Let schedulers run the jobs of a trace, and compare what comes of it.

    Exits with 1 if a scheduler leaves jobs waiting for ever.
    """
    from mig_opt.cli.fleet.policies import read_policies
    from mig_opt.cli.fleet.screens import simulation_parts
    from mig_opt.cli.progress import shown_progress

    checks = Checks()
    chosen = read_policies(",".join(policy or _EXPECTED), checks)
    checks.attempt(check_run, time_limit=time_limit)
    checks.attempt(check_outputs, [trace], chart, log=log)
    with checks.step():
        found = load_trace(trace, gpu, gpus)
        for choice in chosen:
            checks.attempt(choice.check, found)
        message = f"is for traces of up to {_MOST_OPTIMAL} jobs, this one has {len(found.jobs)}; leave it out"
        checks.require(not optimum or len(found.jobs) <= _MOST_OPTIMAL, "--optimum", message)
    checks.finish()
    done = []
    for choice in chosen:
        with shown_progress(choice.text, quiet=as_json):
            done.append(choice.run(found))
    references = _references(found, time_limit if optimum else None, quiet=as_json)
    if as_json:
        print_json(_document(done, references))
    else:
        show(*simulation_parts(done, references))
    if (log or chart) and not as_json:
        typer.echo("")
    if log is not None:
        from mig_opt.files.fleet.traces import write_log

        write_log(done, log)
        show_written("Log", log, quiet=as_json)
    if chart is not None:
        from mig_opt.plotting import save_simulation_plot

        save_simulation_plot(done, chart, bounds=references.bounds)
        show_written("Chart", chart, quiet=as_json)
    raise typer.Exit(ANSWER_IS_NO if any(simulation.unfinished for simulation in done) else 0)


def _references(trace: Trace, time_limit: float | None, *, quiet: bool) -> References:
    """Return the figures that the policies are compared with; the optimum only if there is time for it."""
    from mig_opt.cli.fleet.screens import References
    from mig_opt.cli.progress import shown_progress
    from mig_opt.fleet.bounds import trace_bounds
    from mig_opt.models.fleet.optimum import trace_optimum

    if time_limit is None:
        return References(trace_bounds(trace))
    with shown_progress("optimum", quiet=quiet):
        makespan, completion = (
            trace_optimum(trace, goal, time_limit=time_limit) for goal in ("makespan", "completion")
        )
    return References(trace_bounds(trace), makespan, completion)


def _document(done: Sequence[Simulation], references: References) -> dict[str, object]:
    trace = done[0].trace
    document: dict[str, object] = {
        "trace": trace.name,
        "gpu": trace.gpu.name,
        "gpus": trace.gpus,
        "lower_bounds": dict(references.lower_bounds),
    }
    if references.makespan is not None and references.completion is not None:
        document["optimum"] = {
            name: {"value": value if math.isfinite(value) else None, "lower_bound": bound, "proven": proven}
            for name, value, bound, proven in references.optima()
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
