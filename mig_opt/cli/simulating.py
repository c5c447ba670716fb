"""The command simulate: schedulers on jobs that arrive over time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from mig_opt.cli.inputs import GpusOption, JsonOption, load_trace
from mig_opt.cli.outcome import ANSWER_IS_NO, Checks, options_named, print_json
from mig_opt.errors import InputError, Problem
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.online import Simulation
    from mig_opt.online.bounds import TraceBounds

_EXPECTED = ("fragmentation-aware", "first-fit", "best-fit", "load-balancing")
"""Policies that run if none are named: those that need no options to do what they are for."""


def simulate(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="JSON or CSV file, or -.", show_default=False)],
    *,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAMES", help="Some of: fragmentation-aware, first-fit, ..., static.")
    ] = ",".join(_EXPECTED),
    gpu: Annotated[
        str | None, typer.Option(metavar="GPU", help="In place of the GPU that TRACE names; CSV files need it.")
    ] = None,
    gpus: GpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let schedulers run the jobs of a trace, and compare what comes of it.

    Exits with 1 if a scheduler leaves jobs waiting for ever.
    """
    from mig_opt.online import get_policy
    from mig_opt.online import simulate as run_policy
    from mig_opt.online.bounds import trace_bounds

    checks = Checks()
    names = list(dict.fromkeys(name.strip() for name in policy.split(",") if name.strip()))
    with checks.step():
        if not names:
            raise InputError([Problem("--policy", "names no policy; leave it out for the usual ones")])
    for name in names:
        with checks.step(), options_named({"policy": "--policy"}):
            get_policy(name)
    found = None
    with checks.step():
        found = load_trace(trace, gpu, gpus)
    checks.finish()
    assert found is not None
    done = [run_policy(found, name) for name in names]
    limits = trace_bounds(found)
    if as_json:
        from mig_opt.files.documents import rendered

        print_json(rendered(_document(done, limits)))
    else:
        _show(done, limits)
    raise typer.Exit(ANSWER_IS_NO if any(simulation.unfinished for simulation in done) else 0)


def _document(done: Sequence[Simulation], limits: TraceBounds) -> dict[str, object]:
    trace = done[0].trace
    return {
        "trace": trace.name,
        "gpu": trace.gpu.name,
        "gpus": trace.gpus,
        "lower_bounds": {"makespan": limits.makespan[0].value, "mean_completion": limits.mean_completion},
        "policies": [
            {
                "policy": simulation.policy,
                **dataclasses.asdict(simulation.metrics),
                "unfinished": list(simulation.unfinished),
                "runtime_s": simulation.runtime_s,
            }
            for simulation in done
        ],
    }


def _show(done: Sequence[Simulation], limits: TraceBounds) -> None:
    from mig_opt.cli import screens

    trace = done[0].trace
    card = screens.card(
        [
            ("trace", f"{trace.name} ({plural(len(trace.jobs), 'job')})"),
            ("fleet", f"{trace.gpus} x {trace.gpu.name}"),
        ]
    )
    rows = [
        [
            simulation.policy,
            str(simulation.metrics.finished),
            *(f"{value:.1f}" for value in (simulation.metrics.wait.mean, simulation.metrics.completion.mean)),
            f"{simulation.metrics.makespan:.1f}",
            *(f"{100 * share:.1f}" for share in (simulation.metrics.utilisation, simulation.metrics.fragmentation)),
            str(simulation.metrics.migrations),
        ]
        for simulation in done
    ]
    bound = f"{limits.mean_completion:.1f}", f"{limits.makespan[0].value:.1f}"
    rows.append(["lower bound", "", "", *bound, "", "", ""])
    numbers = ("done", "wait s", "to end s", "makespan s", "busy %", "frag. %", "moves")
    table = screens.table([("policy", "name"), *((name, "number") for name in numbers)], rows)
    screens.show(card, "", table, "", screens.note("wait, to end: mean seconds from arrival to start and to the end."))
    for simulation in done:
        if simulation.unfinished:
            count = plural(len(simulation.unfinished), "job")
            names = ", ".join(simulation.unfinished[:5]) + (", ..." if len(simulation.unfinished) > 5 else "")
            screens.show(f"{simulation.policy} leaves {count} waiting for ever: {names}")
