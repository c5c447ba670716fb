"""The command serve: requests that arrive at a deployment."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mig_opt.cli import options
from mig_opt.cli.inputs import check_outputs, parsed_share, plotted
from mig_opt.cli.outcome import Checks, finish, options_named, print_json, refuse
from mig_opt.cli.screens import (
    BAD,
    GOOD,
    MOST_ROWS,
    Cell,
    Part,
    card,
    noted,
    percent,
    show,
    show_remarks,
    styled,
    table,
)
from mig_opt.cli.screens import (
    seconds as seconds_text,
)
from mig_opt.cli.serving.inputs import load_services, read_deployment_for
from mig_opt.cli.serving.screens import demand_rows
from mig_opt.errors import InputError
from mig_opt.texts import number_in, plural

if TYPE_CHECKING:
    from mig_opt.serving.arrivals import Arrivals
    from mig_opt.serving.demand import Demand
    from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies

ARRIVALS = "Pattern of arrivals: even, poisson or bursty."
_PATHS = {
    "arrivals": "--arrivals",
    "rates": "--rates",
    "recorded": "--recorded",
    "router": "--router",
    "seconds": "--seconds",
    "warm_up": "--warm-up",
    "seed": "--seed",
    "patience": "--patience",
    "spread": "--spread",
    "peak": "--burst",
    "burst_share": "--burst",
    "burst_seconds": "--burst",
}


def serve(
    deployment: Annotated[Path, Argument(metavar="DEPLOYMENT", help="JSON or CSV file.", show_default=False)],
    *,
    services: Annotated[
        str, Option(metavar="SERVICES", help="JSON or CSV file, bundled demand, or -.", show_default=False)
    ],
    arrivals: Annotated[str, Option(metavar="NAME", help=ARRIVALS)] = "poisson",
    burst: Annotated[
        str | None,
        Option(
            metavar="PEAK,SHARE,S",
            help="Bursts: multiple of the mean rate, share of the time, seconds.  [default: 2,10%,0.1]",
        ),
    ] = None,
    rates: Annotated[Path | None, options.file("CSV file of rates over time, in place of those of SERVICES.")] = None,
    recorded: Annotated[Path | None, options.file("CSV file of recorded requests: columns time and service.")] = None,
    router: Annotated[
        str, Option(metavar="NAME", help="Where requests go: least-work, round-robin or random.")
    ] = "least-work",
    patience: Annotated[
        float, Option(metavar="P", help="Share of its spare time that a request waits for its batch to fill.")
    ] = 0.5,
    partial: Annotated[
        bool,
        Option("--partial", help="Batches that are not full take the time of the next larger size of the profile."),
    ] = False,
    spread: Annotated[float, Option(metavar="S", help="Standard deviation of batch times, as a share of them.")] = 0.0,
    seconds: Annotated[
        float | None, Option(metavar="S", help="Seconds that count.  [default: 60, or all of a file]")
    ] = None,
    warm_up: Annotated[
        float | None, Option(metavar="S", help="Seconds before these.  [default: a tenth; 0 with a file]")
    ] = None,
    seed: options.Seed = 0,
    promise: Annotated[
        str | None, Option(metavar="SHARE", help="Exit with 1 if a service has fewer requests in time, e.g. 99%.")
    ] = None,
    profiles: options.Profiles = None,
    gpu: Annotated[str | None, options.in_place_of_gpu("GPUs that SERVICES")] = None,
    scenario: options.Scenario = None,
    chart: Annotated[Path | None, options.plot("latencies against the limits")] = None,
    as_json: options.Json = False,
) -> None:
    """Let requests arrive at a deployment; count those that are late.

    Exits with 1 if a promise is given and not kept.
    """
    from mig_opt.simulation.serving.requests import Batching, setting_problems, simulate_requests

    checks = Checks()
    share = None if promise is None else checks.attempt(parsed_promise, promise)
    given = options.ServicesOptions(gpu, profiles, scenario)
    demand = checks.attempt(load_services, services, given)
    plan = checks.attempt(read_deployment_for, demand, deployment)
    batching = pattern = None
    with checks.step(), options_named(_PATHS):
        batching = Batching(patience, partial, spread)
    with checks.step(), options_named(_PATHS):
        if problems := list(setting_problems(router, seconds, warm_up, seed)):
            raise InputError(problems)
    with checks.step():
        pattern = arrivals_of(arrivals, burst, rates, recorded, demand)
    outputs = [services, deployment, *filter(None, [rates, recorded]), *(profiles or ())]
    checks.attempt(check_outputs, outputs, chart)
    checks.finish()
    assert pattern is not None
    with options_named(_PATHS):
        try:
            simulation = simulate_requests(
                demand,
                plan,
                arrivals=pattern,
                router=router,
                batching=batching,
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
    remarks = plotted("simulation", simulation, chart, functools.partial(_draw, share))
    if as_json:
        print_json(_document(simulation, share))
    else:
        show(*_parts(demand, simulation, share))
        show_remarks(remarks)
    finish(good=share is None or simulation.keeps(share))


def _draw(promise: float | None, simulation: RequestSimulation, chart: Path) -> None:
    from mig_opt.views import plot

    plot(simulation, to=chart, promise=promise)


def parsed_promise(text: str, option: str = "--promise") -> float:
    """Return the share that a promise such as ``99%`` or ``0.999`` stands for; all and nothing are no promises."""
    share = parsed_share(option, text)
    if not 0 < share < 1:
        why = "no queue keeps a promise to every request" if share == 1 else "it promises nothing"
        refuse(option, f"must be above 0 and below 100%, is {text!r}: {why}; give for example 99%")
    return share


def arrivals_of(
    kind: str, burst: str | None, rates: Path | None, recorded: Path | None, demand: Demand | None
) -> Arrivals:
    """Return the arrivals that the options of a command stand for."""
    from mig_opt.files.serving.arrivals import read_rates, read_recorded
    from mig_opt.serving.arrivals import Arrivals
    from mig_opt.serving.rates import RateTable, wrong_services

    checks = Checks()
    message = "recorded requests have times of their own; leave out --rates"
    checks.require(rates is None or recorded is None, "--recorded", message)
    figures: dict[str, Any] = {} if burst is None else checks.attempt(_burst, burst) or {}
    readers: list[tuple[Path | None, str, Callable[[Path], Any]]] = [
        (rates, "rates", read_rates),
        (recorded, "recorded", read_recorded),
    ]
    for path, name, read in readers:
        if path is not None and (found := checks.attempt(read, path)) is not None:
            figures[name] = found
            names = list(found.rates if isinstance(found, RateTable) else found)
            problems = [] if demand is None else list(wrong_services(demand, names, "service"))
            if problems:
                checks.errors.append(InputError(problems, str(path)))
    with checks.step(), options_named(_PATHS):
        pattern = Arrivals(kind, **figures)
    checks.finish()
    return pattern


def _burst(text: str) -> dict[str, float]:
    """Return the figures of ``2,10%,0.1``."""
    parts = [part.strip() for part in text.split(",")]
    peak, length = number_in(parts[0]), number_in(parts[-1])
    if len(parts) != 3 or isinstance(peak, str) or isinstance(length, str):
        refuse("--burst", f"must be three figures such as 2,10%,0.1, is {text!r}")
    return {"peak": peak, "burst_share": parsed_share("--burst", parts[1]), "burst_seconds": length}


def _document(simulation: RequestSimulation, promise: float | None) -> dict[str, object]:
    def service(entry: ServiceLatencies) -> dict[str, object]:
        document = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry) if f.name != "bins"}
        return document | {"late_share_interval": list(entry.late_share_interval)}

    document: dict[str, object] = {
        "services": [service(entry) for entry in simulation.services],
        "segments": [dataclasses.asdict(segment) for segment in simulation.segments],
        "requests": simulation.requests,
        "late": simulation.late,
        "late_share": simulation.late_share,
        "arrivals": simulation.arrivals,
        "router": simulation.router,
        "seconds": simulation.seconds,
        "warm_up_s": simulation.warm_up,
        "seed": simulation.seed,
        "runtime_s": simulation.runtime_s,
    }
    return document if promise is None else document | {"promise": promise, "kept": simulation.keeps(promise)}


def _parts(demand: Demand, simulation: RequestSimulation, promise: float | None) -> Iterator[Part]:
    late = f"{percent(simulation.late_share, 3)} % of all requests"
    slow = sum(service.slow_batches for service in simulation.services)
    batches = sum(service.batches for service in simulation.services)
    late_batches = sum(service.late_batches for service in simulation.services)
    rows = [
        demand_rows(demand)[0],
        ("requests", f"{simulation.requests:,} in {simulation.seconds:g} s, {simulation.arrivals}"),
        ("router", simulation.router),
        ("late", late),
        ("batches", f"{batches:,}; {late_batches:,} with a late request, {slow:,} longer than the SLO by themselves"),
        ("promise", None if promise is None else _verdict(simulation, promise)),
        ("runtime", f"{simulation.runtime_s:.3f} s"),
    ]
    yield from (card(rows), "")
    yield _services(demand, simulation)
    if len(simulation.segments) <= MOST_ROWS:
        yield from ("", _segments(simulation))


def _verdict(simulation: RequestSimulation, promise: float) -> Cell:
    wanted = f"{100 * promise:g} % of the requests of each service in time"
    if simulation.keeps(promise):
        return styled(f"kept: {wanted}", GOOD)
    broken = sum(service.late_share > 1 - promise for service in simulation.services)
    return styled(f"broken by {broken} of {plural(len(simulation.services), 'service')}: {wanted}", BAD)


def _services(demand: Demand, simulation: RequestSimulation) -> Part:
    rows = []
    ordered = list(simulation.services)
    remarks = ["late: % of requests, with a 95 % interval. p50, p99: seconds up to which 50 and 99 % were answered."]
    if len(ordered) > MOST_ROWS:
        ordered = sorted(ordered, key=lambda service: -service.late_share)[:MOST_ROWS]
        remarks.append(f"The {MOST_ROWS} services with most late requests are shown.")
    rates = {service.name: service.rate for service in demand.services}
    for service in ordered:
        low, high = service.late_share_interval
        rows.append(
            [
                service.name,
                f"{rates[service.name]:.1f}",
                percent(service.late_share, 3),
                f"{percent(low, 2)}-{percent(high, 2)}",
                *(seconds_text(value) for value in (service.p50_s, service.p99_s, service.p999_s, service.slo_s)),
            ]
        )
    columns = ["/service", ">req/s", ">late %", ">interval", ">p50 s", ">p99 s", ">p99.9 s", ">SLO s"]
    return noted(table(columns, rows), remarks)


def _segments(simulation: RequestSimulation) -> Part:
    rows = [
        [
            str(segment.gpu),
            f"{segment.profile}@{segment.start}",
            segment.service,
            str(segment.batches),
            percent(segment.filling, 1),
            percent(segment.utilisation, 1),
            percent(segment.late_batches / segment.batches if segment.batches else 0.0, 2),
        ]
        for segment in simulation.segments
    ]
    return table(["GPU", "instance", "/service", ">batches", ">filled %", ">busy %", ">late batches %"], rows)
