"""Segments as inference servers: the name of each, where it answers, how it forms batches, and HAProxy before them.

Each service has a port there, and requests go to its servers in proportion to throughput.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mig_opt.errors import Problem, raise_any
from mig_opt.operations.rollout.layouts import addresses, hosts_of, segment_problems
from mig_opt.operations.rollout.shell import comment, remarks
from mig_opt.rules import wrong_integer
from mig_opt.serving.demand import Demand, Service, wrong_demand
from mig_opt.serving.deployment import Deployment, Segment, check_deployments
from mig_opt.serving.profile_table import Point
from mig_opt.simulation.serving.continuous import is_continuous
from mig_opt.simulation.serving.requests import SERVERS, Batching, unserved_problems, worker_at

FIRST_PORT = 8000
"""Port of the first service; those of servers begin behind :data:`MOST_SERVICES`."""
MOST_SERVICES = 1000
"""Services that have a port each."""
_LEAST_STARTS, _PORTS = 8, 3
"""Start slices of a GPU for which there are ports, also if it has fewer, and ports for each: HTTP, gRPC, metrics."""
_MOST_WEIGHT = 256
"""Greatest weight of a server that HAProxy knows."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""Names that folders, the backends of HAProxy and words of a shell can have."""

_LEAST_TIMEOUT, _SLOS, _MOST_TIMEOUT = 60.0, 10, 2e6
"""Seconds, and SLOs, for which HAProxy waits for an answer: the longer of the two, up to about what it can count."""

_GENERAL = """\
global
    # For scripts that start and stop servers; others may not know it.
    presetenv HAPROXY_SOCKET "haproxy.sock"
    presetenv HAPROXY_ADDRESS "*"
    stats socket "unix@${HAPROXY_SOCKET}" mode 600 level admin
    # A client sends all its requests by gRPC on one connection; of the usual 100 at a time others would wait with it.
    tune.h2.max-concurrent-streams 10000

defaults
    mode http
    timeout connect 2s
    timeout client 1h
    # A request that no server has begun goes to another one.
    retries 3
    option redispatch 1
    balance leastconn
    option httpchk GET /v2/health/ready
    default-server check inter 500ms fall 2 rise 1
"""


@dataclass(frozen=True, slots=True)
class InferenceServer:
    """A segment as an inference server.

    Attributes
    ----------
    name : str
        Service, GPU, profile, start slice, batch size and processes: another one has another name.
    segment : Segment
        What it serves.
    model : str
        Model that it has loaded.
    host : str
        Machine; empty for the one at which the deployment is carried out.
    port : int
        First of its three ports: HTTP, gRPC, metrics.
    weight : int
        Share of the requests that it gets, from 1 to 256: proportional to its throughput.
    delay : float
        Seconds that a request waits for its batch to fill.
    continuous : bool
        True if its model batches by itself, continuously.
    """

    name: str
    segment: Segment
    model: str
    host: str
    port: int
    weight: int
    delay: float
    continuous: bool


def servers_of(
    demand: Demand,
    deployment: Deployment,
    *,
    batching: Batching | None = None,
    port: int = FIRST_PORT,
    devices: Sequence[str] | None = None,
) -> tuple[InferenceServer, ...]:
    """Return the server of each segment that serves a service of the demand.

    The port of a server follows from its place, so that one which stays in a change keeps its port.

    Parameters
    ----------
    demand : Demand
        The services, each with a port of its own: ``port``, ``port + 1`` and so on.
    deployment : Deployment
        The segments.
    batching : Batching, optional
        How batches are formed; the delay of each server follows from it. By default it is 0.
    port : int
        First port; those of servers begin 1,000 above.
    devices : sequence of str, optional
        For each GPU what identifies it, as for :func:`mig_opt.operations.rollout.nvidia_smi.deployment_script`.

    Returns
    -------
    tuple of InferenceServer
        In the order of the deployment.

    Raises
    ------
    InputError
        If a service has no segment, segments cannot exist together, a name cannot be that of a server, or there are
        not enough ports.

    Examples
    --------
    >>> from mig_opt import deploy, load
    >>> demand = load("parvagpu-s1")
    >>> servers = servers_of(demand, deploy(demand).deployment)
    >>> min(server.port for server in servers), max(server.weight for server in servers) <= 256
    (9000, True)
    """
    problems = list(wrong_demand(demand))
    check_deployments(deployment=deployment)
    if not problems:
        problems = [*unserved_problems(demand, deployment), *_name_problems(demand)]
    wrong = list(segment_problems(deployment))
    gpus = () if wrong else range(len(deployment.gpus))
    starts = [sorted({place.start for place in deployment.model(gpu).placements("all")}) for gpu in gpus]
    ports = [_PORTS * max(len(own), _LEAST_STARTS) for own in starts]
    raise_any([*problems, *(wrong or _port_problems(port, ports))])
    places, rule = addresses(len(deployment.gpus), devices, deployment.devices), batching or SERVERS["triton"][1]
    firsts: dict[int, int] = {}
    for own in hosts_of(places).values():
        firsts |= dict(zip(own, accumulate((ports[gpu] for gpu in own), initial=port + MOST_SERVICES), strict=False))
    services = {service.name: service for service in demand.services}

    def server_of(segment: Segment) -> InferenceServer:
        service = services[segment.service]
        point = Point(1, segment.batch, segment.processes, segment.throughput, segment.latency)
        known = (one.throughput for table in demand.tables if table.model == service.model for one in table.points)
        weight = round(_MOST_WEIGHT * segment.throughput / max(segment.throughput, *known))
        first = firsts[segment.gpu] + _PORTS * starts[segment.gpu].index(segment.start)
        name, host = server_name(segment), places[segment.gpu].host.rpartition("@")[2]  # without the user of ssh
        delay, continuous = worker_at(point, service.slo, rule).wait, is_continuous(demand, service)
        return InferenceServer(name, segment, service.model, host, first, max(weight, 1), delay, continuous)

    return tuple(server_of(segment) for segment in deployment.segments if segment.service in services)


def server_name(segment: Segment) -> str:
    """Return the name of the server of a segment; functions of scripts make it of their arguments in the same way."""
    where = f"{segment.service}-{segment.gpu}-{segment.profile.replace('+', '.')}-{segment.start}"
    return f"{where}-{segment.batch}x{segment.processes}"


def _name_problems(demand: Demand) -> Iterator[Problem]:
    wanted = "at most 63 letters, digits, dots, underscores and hyphens, with a letter or digit at both ends"
    for index, service in enumerate(demand.services):
        for key in ("name", "model"):
            if not _NAME.fullmatch(name := getattr(service, key)):
                yield Problem(f"services[{index}].{key}", f"must be {wanted}, to be served, is {name!r:.80}")
    if len(demand.services) > MOST_SERVICES:
        message = f"must be at most {MOST_SERVICES}, so that each has a port, are {len(demand.services)}"
        yield Problem("services", message)


def _port_problems(port: object, ports: Sequence[int]) -> Iterator[Problem]:
    most = 65_535 - MOST_SERVICES - sum(ports)
    if most < 1024:
        message = f"are {len(ports)}, more than there are ports for; export those of each machine alone"
        yield Problem("gpus", message)
    else:
        yield from wrong_integer("port", port, 1024, most)


def haproxy_config(
    deployment: Deployment, demand: Demand, *, port: int = FIRST_PORT, devices: Sequence[str] | None = None
) -> str:
    """Return the configuration of an HAProxy before the servers of a deployment.

    A service answers HTTP and gRPC on one port. A request goes to the server with the fewest requests for its weight
    (``leastconn``); a server counts while Triton says that it is ready.

    Parameters
    ----------
    deployment, demand, port, devices
        As for :func:`mig_opt.operations.rollout.servers.servers_of`.

    Returns
    -------
    str
        Text of ``haproxy.cfg``, for HAProxy 2.6 or newer.

    Raises
    ------
    InputError
        If an argument is wrong.

    Examples
    --------
    >>> from mig_opt import deploy, load
    >>> demand = load("parvagpu-s1")
    >>> lines = haproxy_config(deploy(demand).deployment, demand).splitlines()
    >>> sum(line.startswith("frontend") for line in lines)
    6
    """
    servers = servers_of(demand, deployment, port=port, devices=devices)
    lines = [*remarks("HAProxy before the servers of a deployment.", "", "Usage: haproxy -f FILE"), "", _GENERAL]
    for index, service in enumerate(demand.services):
        own = [server for server in servers if server.segment.service == service.name]
        lines += _service(service, port + index, own)
    return "\n".join(lines)


def _service(service: Service, port: int, servers: Sequence[InferenceServer]) -> list[str]:
    seconds = min(max(_LEAST_TIMEOUT, _SLOS * service.slo), _MOST_TIMEOUT)
    lines = [
        comment(f"{service.rate:g} requests per second, SLO {service.slo:g} s"),
        f"frontend {service.name}",
        f'    bind "${{HAPROXY_ADDRESS}}:{port}"',
        f"    use_backend {service.name}-grpc if {{ req.hdr(content-type) -m beg application/grpc }}",
        f"    default_backend {service.name}-http",
    ]
    for kind in ("grpc", "http"):
        lines += [f"backend {service.name}-{kind}", f"    timeout server {1000 * seconds:.0f}ms"]
        for server in servers:
            address = server.host or "127.0.0.1"
            where = f"{address}:{server.port + 1} proto h2 check-proto h1 port {server.port}"
            where = where if kind == "grpc" else f"{address}:{server.port}"
            lines.append(f"    server {server.name} {where} weight {server.weight}")
    return [*lines, ""]
