"""Entry point for requests: :func:`simulate_requests` lets them arrive at a deployment."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from mig_opt.errors import InputError, Problem, nearest, problems_of, raise_any
from mig_opt.rules import Checked, is_among, wrong_class, wrong_integer, wrong_number, wrong_type
from mig_opt.rules.vocabulary import Count, Number, Share
from mig_opt.serving.arrivals import Arrivals
from mig_opt.serving.change_plan import ChangePlan
from mig_opt.serving.demand import Demand, Service, wrong_demand
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point
from mig_opt.serving.rates import wrong_services
from mig_opt.simulation.serving.continuous import ContinuousRequests, ContinuousWorker, continuous_worker, is_continuous
from mig_opt.simulation.serving.outcome import RequestSimulation, latencies_of, load_of
from mig_opt.simulation.serving.service import ALWAYS, Router, Served, ServedRequests, Worker
from mig_opt.validation.serving.deployments import deployment_problems

MOST_REQUESTS = 10_000_000_000
"""Requests of a simulation: more is taken for a slip of the pen."""
DEFAULT_SECONDS = 60.0
"""Seconds that count, if nothing else says how long."""
_WARM_UP = 0.1
"""Share of these seconds that goes before."""

Server = Worker | ContinuousWorker

Wait = Annotated[float, Number("seconds", at_least=0)]
Spread = Annotated[float, Number(at_least=0, at_most=10, words="a share of the time of a batch, from 0 to 10")]


@dataclass(frozen=True, slots=True)
class Batching(Checked):
    """Rule by which segments form batches.

    Attributes
    ----------
    patience : float
        How long a request waits for its batch to fill while a process is free, as a share of the seconds between the
        latency of a full batch and the SLO: 1 until it has to start to be in time, 0 not at all. One half leaves as
        much for the wait for a process.
    partial : bool
        True if a batch that is not full takes the time of the next larger batch size in the profile (same size and
        number of processes); False if it takes that of a full one.
    spread : float
        Standard deviation of the time of a batch, as a share of it.
    delay : float, optional
        Seconds that a request waits for its batch to fill, in place of the patience: the
        ``max_queue_delay_microseconds`` of Triton.
    preferred : tuple of int
        Batch sizes with which a batch begins at once, also if it is not full: the ``preferred_batch_size`` of Triton.
    separate : bool
        True if each process of a segment is a server of its own, with its own queue; False for one queue of all.
    overhead : float
        Seconds that each answer takes longer: network, proxy, server.
    look : float
        As the dynamic batcher of Triton does it, above 0 (there 0.5): a batch is formed when its time has come although
        no process is free, up to two for each process. What comes later joins the last one only when a batch begins,
        when as many wait as it lacked before, or after these seconds; without a delay at once. With one, when a batch
        begins, the next ones join it if there is room; if not, and its delay is over, the first of them is closed. 0: a
        batch takes what is there when it begins.

    Raises
    ------
    InputError
        If a figure is out of range.
    """

    patience: Share = 0.5
    partial: bool = False
    spread: Spread = 0.0
    delay: Wait | None = None
    preferred: tuple[Count, ...] = ()
    separate: bool = False
    overhead: Wait = 0.0
    look: Wait = 0.0


_TRITON = Batching(patience=0.0, look=0.5)
SERVERS = {
    "ideal": (Router.LEAST_WORK, Batching()),
    "triton": (Router.LEAST_CONNECTIONS, _TRITON),
    "separate": (Router.LEAST_CONNECTIONS, Batching(separate=True)),
    "kubernetes": (Router.UNIFORM, _TRITON),
}
"""Servers by name: where requests go, and how they form batches. ``triton`` is behind HAProxy, ``kubernetes`` the same
behind a Service, ``separate`` is a server for each process behind HAProxy. Tritons wait for no batch to fill: with a
delay, one that is formed while no process is free hardly grows any more."""


def simulate_requests(
    demand: Demand,
    deployment: Deployment | ChangePlan,
    *,
    arrivals: Arrivals | str = "poisson",
    router: str = Router.LEAST_WORK,
    batching: Batching | None = None,
    start_up: float = 0.0,
    seconds: float | None = None,
    warm_up: float | None = None,
    seed: int = 0,
) -> RequestSimulation:
    """Let requests arrive at the segments of a deployment, and measure when they are answered.

    Each segment has a queue for its processes, or each process one. A batch begins when a process is free and the batch
    is full, or its oldest request cannot wait any longer. A full batch occupies a process for as long as the throughput
    of the segment says (batch size x processes / throughput), and is answered after this time or the latency of the
    segment, whichever is longer: latencies of profiles are rounded. Models whose profiles say so are batched
    continuously, and a request is late if it breaks any of its SLOs.

    Parameters
    ----------
    demand : Demand
        The services: their SLOs and rates.
    deployment : Deployment or ChangePlan
        Segments; each service of the demand has one at least. They need not answer all requests. Of a plan: what runs
        before it, until it begins after the warm-up; its steps are then done one after the other, as
        :func:`mig_opt.operations.rollout.changes.change_script` does. A segment that ends gets no further requests, and
        has the SLO of its service to answer those that it has. While a service has no segment, its requests wait for
        the next one.
    arrivals : Arrivals or str
        Pattern of arrivals; ``even``, ``poisson`` or ``bursty`` for one with its usual figures.
    router : str
        Where requests go: ``least-work`` (to the segment that would be done with all its requests first),
        ``round-robin`` or ``random`` (both as often as throughputs say), ``least-connections`` (to the one with the
        fewest open requests for its throughput) or ``uniform`` (to any, all as often).
    batching : Batching, optional
        How batches are formed and how long they take.
    start_up : float
        Seconds from the moment when a segment has its instance until it serves, in a plan.
    seconds : float, optional
        How long requests count: by default a minute, or as long as rates or recorded requests are given.
    warm_up : float, optional
        Seconds of arrivals that go before, from empty queues; by default a tenth of ``seconds``, and nothing before
        rates or recorded requests.
    seed : int
        Seed for what is random. Each service has random numbers of its own.

    Returns
    -------
    RequestSimulation
        Latencies of each service and the load of each segment.

    Raises
    ------
    InputError
        With every problem: services without segments, segments without figures, instances that cannot exist together,
        rates or recorded requests of services that the demand does not have, times out of range.

    Examples
    --------
    >>> from mig_opt import deploy, load, simulate_requests
    >>> demand = load("parvagpu-s1")
    >>> simulation = simulate_requests(demand, deploy(demand).deployment, seconds=20)
    >>> simulation.late_share < 0.01, simulation.keeps(0.99)
    (True, True)
    """
    begun = time.perf_counter()
    problems = list(wrong_demand(demand))
    problems += () if batching is None else wrong_class("batching", batching, Batching)
    change = deployment if isinstance(deployment, ChangePlan) else None
    plan: object = deployment
    if change is not None:  # all segments before, during and after it, though they cannot all exist together
        moved = (segment for step in change.steps for segment in (step.ends, step.begins) if segment is not None)
        plan = Deployment(change.gpus, tuple(dict.fromkeys([*change.kept, *moved])), change.devices)
    if not isinstance(plan, Deployment):
        problems.append(wrong_type("deployment", deployment, "a Deployment or a ChangePlan"))
    elif not problems:
        problems += [*unserved_problems(demand, plan), *([] if change else deployment_problems(plan))]
    problems += [*problems_of(as_arrivals, arrivals), *setting_problems(router, seconds, warm_up, seed)]
    problems += wrong_number("start_up", start_up, "a finite number of seconds >= 0", at_least=0)
    if problems or not isinstance(plan, Deployment):
        raise InputError(problems)
    arrivals = as_arrivals(arrivals)
    own = {service.name: [s for s in plan.segments if s.service == service.name] for service in demand.services}
    given = arrivals.end is not None
    before = (0.0 if given else _WARM_UP * (seconds or DEFAULT_SECONDS)) if warm_up is None else warm_up
    counted = (max((arrivals.end or 0.0) - before, 0.0) if given else DEFAULT_SECONDS) if seconds is None else seconds
    _check_amount(demand, arrivals, before, counted)
    settings = batching or Batching()
    times = {} if change is None else _times(change, demand, before, start_up)
    services, loads = [], {}
    for service, seed_of in zip(demand.services, np.random.SeedSequence(seed).spawn(len(demand.services)), strict=True):
        rng = np.random.default_rng(seed_of)
        window = before, before + counted
        groups = [workers_of(demand, service, plan, segment, settings) for segment in own[service.name]]
        of = zip(own[service.name], groups, strict=True)
        how = {"router": Router(router), "spread": settings.spread, "rng": rng}
        open_times = [times.get(segment, ALWAYS) for segment, group in of for _ in group]
        served = served_by(list(itertools.chain(*groups)), service.slo, window, **how, times=open_times)
        served.run(arrivals.stream(service.name, service.rate, before + counted, rng))
        services.append(latencies_of(service.name, service.slo, served))
        first = 0
        for segment, group in zip(own[service.name], groups, strict=True):
            loads[id(segment)] = load_of(segment, slice(first, first + len(group)), served, counted)
            first += len(group)
    segments = tuple(loads[id(segment)] for segment in plan.segments if id(segment) in loads)
    pattern = str(arrivals.kind) if arrivals.recorded is None else "recorded"
    run = counted, before, seed, time.perf_counter() - begun
    return RequestSimulation(tuple(services), segments, pattern, str(router), *run, separate=settings.separate)


def _times(change: ChangePlan, demand: Demand, begin: float, start_up: float) -> dict[Segment, tuple[float, float]]:
    """Return the seconds from and until which requests come to each segment of a change that begins at some second."""
    slos = {service.name: service.slo for service in demand.services}
    times: dict[Segment, tuple[float, float]] = {}
    now = begin
    for step in change.steps:
        if step.ends is not None:
            times[step.ends] = times.get(step.ends, ALWAYS)[0], now
            now += slos.get(step.ends.service, 0.0)
        now += step.end - step.begin
        if step.begins is not None:
            now += start_up
            times[step.begins] = now, math.inf
    return times


def as_arrivals(arrivals: Arrivals | str) -> Arrivals:
    """Return arrivals; the name of a pattern stands for one with its usual figures."""
    if isinstance(arrivals, str):
        return Arrivals(arrivals)
    if not isinstance(arrivals, Arrivals):
        raise InputError([wrong_type("arrivals", arrivals, "an Arrivals or the name of a pattern")])
    return arrivals


def setting_problems(router: object, seconds: object, warm_up: object, seed: object) -> Iterator[Problem]:
    """Yield everything that is wrong with settings of :func:`simulate_requests`, whatever the demand."""
    if not is_among(router, [*Router]):
        yield Problem("router", f"unknown router {router!r:.60}; {nearest(router, [*Router])}")
    if seconds is not None:
        yield from wrong_number("seconds", seconds, "a finite number of seconds > 0", above=0)
    if warm_up is not None:
        yield from wrong_number("warm_up", warm_up, "a finite number of seconds >= 0", at_least=0)
    yield from wrong_integer("seed", seed, 0, 2**63 - 1)


def unserved_problems(demand: Demand, deployment: Deployment) -> Iterator[Problem]:
    """Yield a problem for each service without a segment, and for each segment without figures."""
    served = {segment.service for segment in deployment.segments}
    for index, service in enumerate(demand.services):
        if service.name not in served:
            yield Problem(f"services[{index}]", f"no segment of the deployment serves {service.name!r}")
    for index, segment in enumerate(deployment.segments):
        for name in ("throughput", "latency"):
            if not 0 < getattr(segment, name) < math.inf:
                message = f"must be > 0 to simulate the segment, is {getattr(segment, name):g}"
                yield Problem(f"segments[{index}].{name}", message)


def _check_amount(demand: Demand, arrivals: Arrivals, warm_up: float, seconds: float) -> None:
    """Refuse arrivals of other services than those of the demand, times without arrivals, and too many requests."""
    problems: list[Problem] = []
    total = sum(service.rate for service in demand.services) * (warm_up + seconds)
    if arrivals.rates is not None:
        problems += wrong_services(demand, list(arrivals.rates.rates), "rates")
        total = sum(map(max, arrivals.rates.rates.values())) * (warm_up + seconds)
    if arrivals.recorded is not None:
        problems += wrong_services(demand, list(arrivals.recorded), "recorded")
        total = 0.0
    if arrivals.end is not None and not (seconds > 0 and warm_up + seconds <= arrivals.end * (1 + 1e-12)):
        message = f"warm-up and counted time have to lie within the {arrivals.end:g} s that are given"
        problems.append(Problem("seconds", f"{message}; they are {warm_up:g} s and {seconds:g} s"))
    if total > MOST_REQUESTS:
        message = f"{total:.3g} requests would arrive; at most {MOST_REQUESTS:,} may, so give fewer seconds"
        problems.append(Problem("seconds", message))
    raise_any(problems)


def worker_at(point: Point, slo: float, batching: Batching, smaller: list[Point] | None = None) -> Worker:
    """Return a segment with the figures of a point; smaller batches take those of the points in ``smaller``."""
    points = sorted([*(smaller or ()), point], key=lambda entry: entry.batch)
    busy, answer = [], []
    for count in range(1, point.batch + 1):
        used = next(entry for entry in points if entry.batch >= count)
        busy.append(used.batch * used.processes / used.throughput)
        answer.append(max(used.latency, busy[-1]) + batching.overhead)
    wait = max(slo - answer[-1], 0.0) * batching.patience if batching.delay is None else batching.delay
    preferred = tuple(sorted({size for size in batching.preferred if size < point.batch}))
    return Worker(point.batch, point.processes, tuple(busy), tuple(answer), wait, preferred, batching.look)


def servers_at(demand: Demand, service: Service, gpu: str, point: Point, batching: Batching) -> tuple[Server, ...]:
    """Return the servers that a segment with the figures of a point, on a kind of GPU, is to requests of a service."""
    tables = (table for table in demand.measured if (table.model, table.gpu) == (service.model, gpu))
    points = [p for t in tables for p in t.points if (p.size, p.processes) == (point.size, point.processes)]
    if is_continuous(demand, service):
        return (continuous_worker(service, point, points, batching.overhead),)
    smaller = [p for p in points if batching.partial and p.batch < point.batch]
    return separated(worker_at(point, service.slo, batching, smaller), batching)


def separated(worker: Worker, batching: Batching) -> tuple[Worker, ...]:
    """Return the servers that a segment is: one for each process if they are separate."""
    return (dataclasses.replace(worker, processes=1),) * worker.processes if batching.separate else (worker,)


def workers_of(
    demand: Demand, service: Service, deployment: Deployment, segment: Segment, batching: Batching
) -> tuple[Server, ...]:
    """Return the servers that a segment is to the requests of its service."""
    size = deployment.placement(segment).profile.compute_slices
    point = Point(size, segment.batch, segment.processes, segment.throughput, segment.latency)
    return servers_at(demand, service, deployment.model(segment.gpu).name, point, batching)


def served_by(workers: Sequence[Server], slo: float, window: tuple[float, float], **how: Any) -> Served:
    """Return the requests of a service at its servers, as :class:`ServedRequests` takes them."""
    flights = [worker for worker in workers if isinstance(worker, ContinuousWorker)]
    if flights:
        return ContinuousRequests(flights, window, **how)
    return ServedRequests([worker for worker in workers if isinstance(worker, Worker)], slo, window, **how)
