"""Deployments behind HAProxy: each service has a port, and requests go to its servers in proportion to throughput."""

from __future__ import annotations

from collections.abc import Sequence

from mig_opt.operations.rollout.servers import FIRST_PORT, InferenceServer, servers_of
from mig_opt.operations.rollout.shell import comment, remarks
from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.deployment import Deployment

_LEAST_TIMEOUT, _SLOS = 60.0, 10
"""Seconds, and SLOs, for which HAProxy waits for an answer: the longer of the two."""

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
    seconds = max(_LEAST_TIMEOUT, _SLOS * service.slo)
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
