"""The command simulate: schedulers on jobs that arrive over time."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mig_opt.cli import completion, options
from mig_opt.cli.answers import Answer, Call, File, chart_of, code_of
from mig_opt.cli.checks import file_named, options_named
from mig_opt.cli.figures import broken_label, percent, tenths
from mig_opt.cli.fleet.references import MOST_OPTIMAL, References, admission_references, queue_references
from mig_opt.cli.inputs import costs_by_kind, load_state, load_trace
from mig_opt.errors import Problem, nearest, raise_any
from mig_opt.method.options import run_options
from mig_opt.method.report import Cell, Part, Report, Table
from mig_opt.texts import listed, number_in, plural

if TYPE_CHECKING:
    from mig_opt import Simulation
    from mig_opt.cli.progress import Bar
    from mig_opt.fleet.disturbances import Disturbances
    from mig_opt.simulation.fleet.cluster import Cluster
    from mig_opt.simulation.fleet.course import Observer

_EXPECTED = ("fragmentation-aware", "first-fit", "best-fit", "load-balancing")
"""Policies that run if none are named: those that need no options to do what they are for."""

_DISTURBANCES = ("crashes", "early", "uptime", "downtime", "burst")

_MOST_NAMED = 5  # jobs waiting for ever that are named

_REFRESH_S, _LIMIT = 0.25, 30.0


def simulate(
    call: Call,
    trace: options.TraceArgument,
    *,
    policy: Annotated[
        list[str] | None,
        Option(
            metavar="NAMES",
            help="Some of: mig-opt methods; each with :OPTION=VALUE for its options, like "
            f"static:partition=4+3:backfill=true; may be repeated.  [default: {','.join(_EXPECTED)}]",
            autocompletion=completion.policies,
        ),
    ] = None,
    gpu: options.TraceGpu = None,
    gpus: options.TraceGpus = None,
    costs: options.Costs = None,
    start: options.Start = None,
    busy_until: Annotated[float | None, "S", "For --from: seconds after which the instances in use are free."] = None,
    declared: Annotated[
        str | None,
        "HOW",
        "Tell schedulers other run times: wrong by a lognormal factor of this sigma, classes (means of "
        "jobs that ask for the same), or one (the same for all).",
    ] = None,
    disturb: Annotated[
        str | None,
        "SPEC",
        "Let jobs crash or end early, GPUs leave and return, and jobs arrive in bursts: some of crashes=SHARE, "
        "early=SHARE, uptime=S, downtime=S, burst=N, with commas.",
    ] = None,
    seed: Annotated[int | None, "N", "For --declared and --disturb.  [default: 0]"] = None,
    optimum: Annotated[
        bool,
        (f"Find the best in hindsight too; for up to {MOST_OPTIMAL[False]} jobs, {MOST_OPTIMAL[True]} with --reject."),
    ] = False,
    reject: Annotated[bool, "Turn jobs away that find no place when they arrive: no job waits."] = False,
    time_limit: Annotated[float, "S", "Seconds for each goal of --optimum."] = _LIMIT,
    chart: Annotated[Path | None, options.plot("fleets, fragmentation and waits")] = None,
    log: Annotated[Path | None, "--save-log", "Write every run and operation, one JSON object on a line."] = None,
) -> Answer:
    """Simulate schedulers on the jobs of a trace.

    They are compared with each other and with lower bounds; with --reject by their acceptance ratios, and with upper
    bounds. Exits with 1 if a scheduler leaves jobs waiting for ever, and 130 after Ctrl-C, which shows what is done.

    Examples
    --------
    mig-opt simulate trace.json
    mig-opt simulate trace.json --policy planner:patience=600,first-fit
    mig-opt simulate jobs.csv --gpu A100 --gpus 4 --plot fleet.png
    mig-opt simulate trace.json --disturb crashes=0.1,uptime=36000,downtime=600
    """
    from mig_opt.cli.fleet.policies import read_policies
    from mig_opt.files.fleet.traces import write_log
    from mig_opt.fleet.disturbances import NAMED_KNOWLEDGE, declare_times
    from mig_opt.fleet.trace import check_jobs

    chosen = read_policies(",".join(policy or _EXPECTED), call)
    call.attempt(run_options, time_limit=time_limit)
    call.check_outputs(log=log, chart=chart)
    with call.step():
        found = load_trace(trace, gpu, gpus)
        if costs is not None:
            found = found.replace(operations=costs_by_kind(costs, tuple(found.kinds)))
        if disturb is not None:
            with options_named({name: f"--disturb {name}" for name in _DISTURBANCES}):
                found = _disturbances(disturb).applied_to(found, seed=seed or 0)
        if declared is not None:
            with options_named({"knowledge": "--declared"}):
                found = declare_times(found, number_in(declared.strip()), seed=seed or 0)
        if not found.parts():
            with file_named(trace):
                check_jobs(found)
        for choice in chosen:
            call.attempt(choice.check, found, reject=reject)
        most = MOST_OPTIMAL[reject]
        message = f"is for traces of up to {most} jobs, this one has {len(found.jobs)}; leave it out"
        call.require(not optimum or len(found.jobs) <= most, "--optimum", message)
        call.require(not optimum or bool(found.gpu), "--optimum", "is for traces of one kind of GPU; leave it out")
    drawn = disturb is not None or declared not in (None, *NAMED_KNOWLEDGE)
    call.require(seed is None or drawn, "--seed", "is for --declared SIGMA and --disturb; leave it out")
    call.require(busy_until is None or start is not None, "--busy-until", "is for --from; leave it out")
    call.require(optimum or time_limit == _LIMIT, "--time-limit", "is for --optimum; give that, or leave it out")
    call.require(not optimum or start is None, "--optimum", "is for GPUs that start empty; leave it or --from out")
    state = None if start is None else call.attempt(load_state, start)
    call.finish()
    done: list[Simulation] = []
    find = admission_references if reject else queue_references
    interrupted = False
    try:
        with call.bar("jobs", len(chosen) * len(found.jobs)) as bar, options_named({"state": "--from"}):
            for choice in chosen:
                observer = _watched(bar, choice.text, len(done) * len(found.jobs)) if bar.shown else None
                done.append(choice.run(found, state=state, busy_until=busy_until, reject=reject, observer=observer))
        references = find(call, done, time_limit if optimum else None)
    except KeyboardInterrupt:
        if not done:
            raise
        references, interrupted = find(call, done, None), True
    files = [File("log", log, done, writer=write_log), chart_of("simulation", chart, done, bounds=references.drawn)]
    code = code_of(good=not any(simulation.unfinished for simulation in done), interrupted=interrupted)
    report = _report(done, references)
    if interrupted:
        report = dataclasses.replace(report, remarks=[*report.remarks, "Interrupted: this is what was done so far."])
    return Answer(report, code, files)


def _disturbances(text: str) -> Disturbances:
    """Return what ``crashes=0.1,uptime=3600`` stands for."""
    from mig_opt.fleet.disturbances import Disturbances

    problems, values = [], dict[str, Any]()
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in _DISTURBANCES:
            problems.append(Problem("--disturb", f"there is no {name!r:.60}; {nearest(name, _DISTURBANCES)}"))
        elif not equals or name in values:
            problems.append(Problem("--disturb", f"must be {name}=VALUE, once, is {part!r:.60}"))
        values[name] = number_in(value)
    if "downtime" in values and "uptime" not in values:
        problems.append(Problem("--disturb downtime", "is of GPUs that leave; give uptime, too"))
    raise_any(problems)
    return Disturbances(**values)


def _watched(bar: Bar, policy: str, before: int) -> Observer:
    """Return an observer that shows how many jobs are finished, ``before`` of them with the policies before."""
    bar.show(f"jobs, now: {policy}", completed=before)
    due, finished = 0.0, dict[int, int]()

    def observe(cluster: Cluster) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + _REFRESH_S
            # There is a cluster for each kind of GPU.
            finished[id(cluster)] = sum(not math.isnan(seconds) for seconds in cluster.log.finished)
            bar.show(completed=before + sum(finished.values()))

    return observe


def _report(done: Sequence[Simulation], references: References) -> Report:
    """Return the report of simulations of one trace."""
    from mig_opt.files.fleet.traces import fleet_of

    trace = done[0].trace
    left = []
    for simulation in done:
        if simulation.unfinished:
            names, count = listed(simulation.unfinished, _MOST_NAMED), plural(len(simulation.unfinished), "job")
            left.append(f"{simulation.label} leaves {count} waiting for ever: {names}")
    queue, wrong = ", without a queue" if references.reject else "", references.error
    facts = [
        ("trace", f"{trace.name} ({plural(len(trace.jobs), 'job')})"),
        ("fleet", f"{trace.label}{queue}"),
        ("declared", None if wrong is None else f"run times, on the median wrong by a factor of {wrong:.2f}"),
    ]
    policies = [_policy(simulation, references) for simulation in done]
    data = {"trace": trace.name, **fleet_of(trace), **references.data(), "policies": policies}
    parts: list[Part] = [*references.tables(done), *([] if trace.gpu else [_kinds_table(done)])]
    return Report(facts, parts, left, data)


def _kinds_table(done: Sequence[Simulation]) -> Table:
    """Return what the GPUs of each kind did."""
    rows: list[list[Cell]] = [
        [
            broken_label(simulation.label),
            *(kind, str(own.gpus), str(own.finished)),
            *(tenths(spread.mean) if own.finished else "-" for spread in (own.wait, own.completion)),
            percent(own.utilisation, 1),
        ]
        for simulation in done
        for kind, own in simulation.kinds.items()
    ]
    return Table(
        ["~policy", "~kind", ">GPUs", ">done", ">wait s", ">flow s", ">busy %"], rows, heading="By kind of GPU:"
    )


def _policy(simulation: Simulation, references: References) -> dict[str, Any]:
    options = {name: list(v) if isinstance(v, tuple) else v for name, v in simulation.options.items()}
    named = {"policy": simulation.policy, "options": options, "label": simulation.label}
    left = {"gaps": references.gaps(simulation), "unfinished": list(simulation.unfinished)}
    left |= {"turned_away": list(simulation.rejected)} if simulation.reject else {}
    by_kind = {name: dataclasses.asdict(own) for name, own in simulation.kinds.items()}
    left |= {} if simulation.trace.gpu else {"kinds": by_kind}
    return {**named, **dataclasses.asdict(simulation.metrics), **left, "runtime_s": simulation.runtime_s}
