"""The command serve: requests that arrive at a deployment."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Option

from mig_opt.cli import options
from mig_opt.cli.answers import Answer, Call, chart_of, code_of
from mig_opt.cli.checks import options_named, refuse
from mig_opt.cli.figures import MOST_ROWS, first_of, joined, percent, rate
from mig_opt.cli.inputs import parsed_share
from mig_opt.cli.serving.inputs import load_services, read_deployment_for, read_running_and_state
from mig_opt.cli.serving.reports import demand_facts
from mig_opt.errors import InputError, nearest
from mig_opt.method.report import Report, Table, bad, data_of, good
from mig_opt.texts import number_in, plural
from mig_opt.texts import seconds as seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mig_opt import Arrivals, Demand, Deployment
    from mig_opt.api.deploy.drift import Drift
    from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
    from mig_opt.simulation.serving.requests import Batching
    from mig_opt.simulation.serving.service import Router

ARRIVALS = "Pattern of arrivals: even, poisson or bursty."
SERVER = "Servers: ideal, triton (behind HAProxy), separate (a queue for each process), kubernetes (a Service)."
DELAY = "Seconds that a request waits for its batch to fill, in place of the patience."
OVERHEAD = "Seconds that each answer takes longer: network, proxy, server."
_ROUTERS = "Where requests go: least-work, least-connections, round-robin, random or uniform."
_PLANNING_SECONDS = 30.0  # seconds that the deployment for what was observed may take
_SIMULATED = (
    *("--arrivals", "--burst", "--rates", "--recorded", "--server", "--router", "--patience", "--delay", "--preferred"),
    *("--overhead", "--partial", "--spread", "--warm-up", "--seed", "--from", "--start-up", "--promise", "--plot"),
)
_BURST = dict.fromkeys(("peak", "burst_share", "burst_seconds"), "--burst")


def serve(
    call: Call,
    deployment: options.DeploymentArgument,
    *,
    services: Annotated[
        str, Option(metavar="SERVICES", help="JSON or CSV file, bundled demand, or -.", show_default=False)
    ],
    arrivals: Annotated[str, "NAME", ARRIVALS] = "poisson",
    burst: Annotated[
        str | None,
        "PEAK,SHARE,S",
        "Bursts: multiple of the mean rate, share of the time, seconds.  [default: 2,10%,0.1]",
    ] = None,
    rates: Annotated[Path | None, "CSV file of rates over time, in place of those of SERVICES."] = None,
    recorded: Annotated[Path | None, "CSV file of recorded requests: columns time and service."] = None,
    server: Annotated[str, "NAME", SERVER] = "ideal",
    router: Annotated[str | None, "NAME", f"{_ROUTERS}  [default: as the servers]"] = None,
    patience: Annotated[
        float | None,
        "P",
        "Share of its spare time that a request waits for its batch to fill.  [default: 0.5, Triton 0]",
    ] = None,
    delay: Annotated[float | None, "S", DELAY] = None,
    preferred: Annotated[
        list[int] | None, "N", "Batch size with which a batch begins at once; may be repeated."
    ] = None,
    overhead: Annotated[float, "S", OVERHEAD] = 0.0,
    partial: Annotated[bool, "Batches that are not full take the time of the next larger size of the profile."] = False,
    spread: Annotated[float, "S", "Standard deviation of batch times, as a share of them."] = 0.0,
    seconds: Annotated[float | None, "S", "Seconds that count.  [default: 60, or all of a file]"] = None,
    warm_up: Annotated[float | None, "S", "Seconds before these.  [default: a tenth; 0 with a file]"] = None,
    seed: options.Seed = 0,
    running: Annotated[
        Path | None, "OLD", "--from", "What runs, until the steps to DEPLOYMENT begin after the warm-up."
    ] = None,
    start_up: Annotated[float, "S", "With --from: seconds until the server on a new instance serves."] = 0.0,
    promise: Annotated[str | None, "SHARE", "Exit with 1 if a service has fewer requests in time, e.g. 99%."] = None,
    compare: Annotated[
        list[str] | None,
        "METRICS",
        "In place of a simulation: counters of the servers, as files or http://HOST:8002/metrics; may be repeated.",
    ] = None,
    given: options.TableOptions,
    chart: Annotated[Path | None, options.plot("latencies against the limits")] = None,
) -> Answer:
    """Let requests arrive at a deployment; count late ones.

    With --compare it is held against what Triton or vLLM count: which service has drifted from its rate or its profile,
    and what deploy would do now. --seconds says for how long they have counted.

    Exits with 1 if a promise is given and not kept, or a service has drifted.

    Examples
    --------
    mig-opt serve fleet.json --services services.json
    mig-opt serve fleet.json --services services.json --rates rates.csv
    mig-opt serve fleet.json --services s.json --compare m.txt --seconds 600
    mig-opt serve new.json --services s.json --from fleet.json --start-up 20
    """
    from mig_opt.api.change import plan_change
    from mig_opt.simulation.serving.requests import Batching, setting_problems, simulate_requests

    if compare:
        call.none_of(_SIMULATED, "is for a simulation; leave it out with --compare")
    share = None if promise is None else call.attempt(parsed_promise, promise)
    demand = call.attempt(load_services, services, given)
    plan = call.attempt(read_deployment_for, demand, deployment)
    old = None if running is None else call.attempt(lambda path: read_running_and_state(path, demand)[0], running)
    named = call.attempt(named_server, server)
    router, kind = router or (named[0] if named else "least-work"), named[1] if named else Batching()
    own = {} if patience is None else {"patience": patience}
    call.require(delay is None or patience is None, "--delay", "is in place of --patience; give one of them")
    figures = {"partial": partial, "spread": spread, "delay": delay, "overhead": overhead, **own}
    batching = call.attempt(dataclasses.replace, kind, preferred=tuple(preferred or ()), **figures)
    with call.step():
        if problems := list(setting_problems(router, seconds, warm_up, seed)):
            raise InputError(problems)
    pattern = arrivals_of(call, arrivals, burst, demand, rates=rates, recorded=recorded)
    call.require(running is not None or not start_up, "--start-up", "is for --from; give OLD, or leave it out")
    call.begin(chart=chart)
    if compare:
        return _compared(call, demand, plan, compare, seconds)
    try:
        simulation = simulate_requests(
            demand,
            plan if old is None else plan_change(old, plan, demand=demand).plan,
            arrivals=pattern,
            router=router,
            batching=batching,
            start_up=start_up,
            seconds=seconds,
            warm_up=warm_up,
            seed=seed,
        )
    except InputError as error:
        # Services and segments are those of the deployment's file.
        in_file = [problem for problem in error.problems if problem.path.startswith(("services[", "segments["))]
        if len(in_file) == len(error.problems):
            raise InputError(in_file, str(deployment)) from None
        raise
    code = code_of(good=share is None or simulation.keeps(share))
    told = None if rates or recorded else {service.name: service.rate for service in demand.services}
    report = _report(demand, simulation, share, told)
    return Answer(report, code, [chart_of("simulation", chart, simulation, promise=share)])


def named_server(name: str) -> tuple[Router, Batching]:
    """Return the router of a server, and how it forms batches."""
    from mig_opt.simulation.serving.requests import SERVERS

    if name not in SERVERS:
        refuse("--server", f"unknown server {name!r}; {nearest(name, SERVERS)}")
    return SERVERS[name]


def parsed_promise(text: str) -> float:
    """Return the share that a promise such as ``99%`` or ``0.999`` stands for; all and nothing are no promises."""
    share = parsed_share("--promise", text)
    if not 0 < share < 1:
        why = "no queue keeps a promise to every request" if share == 1 else "it promises nothing"
        refuse("--promise", f"must be above 0 and below 100%, is {text!r}: {why}; give for example 99%")
    return share


def arrivals_of(
    call: Call, kind: str, burst: str | None, demand: Demand | None, *, rates: Path | None, recorded: Path | None
) -> Arrivals:
    """Return the arrivals that the options of a command stand for."""
    from mig_opt.files.serving.arrivals import read_rates, read_recorded
    from mig_opt.serving.arrivals import Arrivals
    from mig_opt.serving.rates import wrong_services

    if recorded is not None:
        call.none_of(("--rates", "--arrivals", "--burst"), "is not for --recorded, which has the times of all requests")
    steady = kind in ("even", "poisson")
    call.require(burst is None or not steady, "--burst", "is for --arrivals bursty; give that, or leave it out")
    figures: dict[str, Any] = {} if burst is None else call.attempt(_burst, burst) or {}
    table = None if rates is None else call.attempt(read_rates, rates)
    requests = None if recorded is None else call.attempt(read_recorded, recorded)
    for path, found, names in ((rates, table, table and table.rates), (recorded, requests, requests)):
        if found is not None and demand is not None:
            call.note(wrong_services(demand, list(names or ()), "service"), path)
    with call.step(), options_named(_BURST):
        return Arrivals(kind, rates=table, recorded=requests, **figures)
    return cast("Arrivals", None)


def _burst(text: str) -> dict[str, float]:
    """Return the figures of ``2,10%,0.1``."""
    parts = [part.strip() for part in text.split(",")]
    peak, length = number_in(parts[0]), number_in(parts[-1])
    if len(parts) != 3 or isinstance(peak, str) or isinstance(length, str):
        refuse("--burst", f"must be three figures such as 2,10%,0.1, is {text!r}")
    return {"peak": peak, "burst_share": parsed_share("--burst", parts[1]), "burst_seconds": length}


def _report(
    demand: Demand, simulation: RequestSimulation, promise: float | None, rates: Mapping[str, float] | None
) -> Report:
    """Return the report of a simulation; without ``rates`` of the services, those at which requests came."""
    from mig_opt.simulation.serving.outcome import ServiceLatencies

    services = simulation.services
    facts = [
        demand_facts(demand)[0],
        *simulation.facts(),
        ("promise", None if promise is None else _verdict(simulation, promise)),
        ("runtime", f"{simulation.runtime_s:.3f} s"),
    ]
    rates = rates or {service.name: service.requests / simulation.seconds for service in services}
    tables = [_services(rates, simulation)]
    tables += [_segments(simulation)] if len(simulation.segments) <= MOST_ROWS else []
    names = [field.name for field in dataclasses.fields(ServiceLatencies) if field.name != "bins"]
    data: dict[str, object] = {
        "services": [data_of(service, *names, "late_share_interval") for service in services],
        **data_of(
            simulation, "segments", "requests", "late", "late_share", "arrivals", "router", "separate", "seconds"
        ),
        "warm_up_s": simulation.warm_up,
        **data_of(simulation, "seed", "runtime_s"),
    }
    if promise is not None:
        data |= {"promise": promise, "kept": simulation.keeps(promise)}
    return Report(facts, tables, data=data)


def _verdict(simulation: RequestSimulation, promise: float) -> str:
    wanted = f"{100 * promise:.12g} % of the requests of each service in time"
    if simulation.keeps(promise):
        return good(f"kept: {wanted}")
    broken = sum(service.late_share > 1 - promise for service in simulation.services)
    return bad(f"broken by {broken} of {plural(len(simulation.services), 'service')}: {wanted}")


def _services(rates: Mapping[str, float], simulation: RequestSimulation) -> Table:
    shown = list(simulation.services)
    notes = ["late: % of requests, with a 95 % interval. p50, p99: seconds up to which 50 and 99 % were answered."]
    if len(shown) > MOST_ROWS:
        shown = sorted(shown, key=lambda service: -service.late_share)[:MOST_ROWS]
        notes.append(f"The {MOST_ROWS} services with most late requests are shown.")

    def interval(service: ServiceLatencies) -> str:
        low, high = service.late_share_interval
        return f"{percent(low, 2)}-{percent(high, 2)}"

    return Table.of(
        shown,
        {
            "/service": lambda service: service.name,
            ">req/s": lambda service: f"{rates[service.name]:.1f}",
            ">late %": lambda service: percent(service.late_share, 3),
            ">interval": interval,
            ">p50 s": lambda service: seconds_text(service.p50_s),
            ">p99 s": lambda service: seconds_text(service.p99_s),
            ">p99.9 s": lambda service: seconds_text(service.p999_s),
            ">SLO s": lambda service: seconds_text(service.slo_s),
        },
        joined(notes),
    )


def _segments(simulation: RequestSimulation) -> Table:
    return Table.of(
        simulation.segments,
        {
            "GPU": lambda segment: str(segment.gpu),
            "instance": lambda segment: f"{segment.profile}@{segment.start}",
            "/service": lambda segment: segment.service,
            ">batches": lambda segment: str(segment.batches),
            ">filled %": lambda segment: percent(segment.filling, 1),
            ">busy %": lambda segment: percent(segment.utilisation, 1),
            ">late batches %": lambda segment: percent(segment.late_batches / max(1, segment.batches), 2),
        },
    )


# Running servers beside their plan


def _compared(call: Call, demand: Demand, plan: Deployment, sources: Sequence[str], seconds: float | None) -> Answer:
    """Return what the counters of servers tell of each service, beside a deployment, and what would serve it now."""
    from mig_opt.api.deploy.drift import drifts_of
    from mig_opt.operations.observe.server_metrics import observe_services

    with options_named({"seconds": "--seconds"}):
        observed = observe_services(demand, sources, seconds)
    drifts = drifts_of(demand, plan, observed)
    drifted = [drift for drift in drifts if drift.reasons]
    noun = f"{len(drifted)} of {plural(len(drifts), 'service')}"
    facts: list[tuple[str, str | None]] = [
        demand_facts(demand)[0],
        ("drift", bad(f"{noun} {'has' if len(drifted) == 1 else 'have'} drifted") if drifted else good("none")),
    ]
    data: dict[str, object] = {"services": [_drift_data(drift) for drift in drifts]}
    if drifted:
        text, found = _deployed_now(call, demand, plan, drifts)
        facts.append(("deploy now", text))
        data |= found
    return Answer(Report(facts, [_drifts(drifts)], data=data), code_of(good=not drifted))


def _deployed_now(
    call: Call, demand: Demand, plan: Deployment, drifts: tuple[Drift, ...]
) -> tuple[str, dict[str, object]]:
    """Return what deploy would do about it, in words and as data."""
    from mig_opt import deploy
    from mig_opt.api.deploy.drift import demand_now
    from mig_opt.files.serving.deployments import DEPLOYMENT

    with call.progress("deploy"):
        result = deploy(demand_now(demand, drifts), running=plan, time_limit=_PLANNING_SECONDS)
    if result.deployment is None:
        return result.reason or str(result.status), {"status": str(result.status), "deployment": None}
    changes, used = plan.changes_to(result.deployment), result.deployment.used_gpus
    gpus = plural(used, "GPU") + ("" if used == plan.used_gpus else f" in place of {plan.used_gpus}")
    text = f"{gpus}, {plural(changes, 'segment')} would end or begin" if changes else f"{gpus}, as it is"
    found = {"status": str(result.status), "gpus": used, "changes": changes}
    return text, {**found, "deployment": DEPLOYMENT.document(result.deployment)}


def _drift_data(drift: Drift) -> dict[str, object]:
    found = {"name": drift.service.name, "rate": drift.service.rate, "batch_seconds": drift.batch_seconds}
    seen = drift.observed
    names = ("seconds", "requests", "failures", "rate", "latency", "batch_seconds", "batch", "ttft", "itl")
    return {**found, "drift": [*drift.reasons], "observed": seen and data_of(seen, *names)}


def _drifts(drifts: Sequence[Drift]) -> Table:
    return Table.of(
        drifts[:MOST_ROWS],
        {
            "/service": lambda drift: drift.service.name,
            ">plan req/s": lambda drift: rate(drift.service.rate),
            ">req/s": lambda drift: rate(drift.observed.rate) if drift.observed else "-",
            ">plan batch s": lambda drift: seconds_text(drift.batch_seconds),
            ">batch s": lambda drift: seconds_text(drift.observed.batch_seconds if drift.observed else None),
            ">mean s": lambda drift: seconds_text(drift.observed.latency if drift.observed else None),
            ">SLO s": lambda drift: seconds_text(drift.service.slo),
            "~drift": lambda drift: ", ".join(drift.reasons) or "-",
        },
        first_of(len(drifts), "services")
        or ["batch s: mean time in which batches are computed. mean s: at the server."],
    )
