"""The instances of a fleet state as the segments of a deployment."""

from __future__ import annotations

from mig_opt.errors import Problem, nearest, raise_any
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point, front


def deployment_in(state: FleetState, demand: Demand) -> Deployment:
    """Return the deployment that runs in a fleet: the instances whose name or owner is that of a service.

    A name or owner such as ``shop/chat`` stands for the service ``chat``, too. A state does not tell batch sizes and
    processes: each segment has the best ones for its service and size, or if none is within the limit the fastest. Idle
    instances are left out; those that are in use for something else, or for which there are no figures, are refused.

    Examples
    --------
    >>> from mig_opt import get_gpu, load
    >>> held = (
    ...     HeldInstance(0, "2g.20gb", 2, "shop/bert-7d9c", owner="shop/bert"),
    ...     HeldInstance(0, "1g.10gb", 6, idle=True),
    ... )
    >>> state = FleetState(get_gpu("A100-80GB"), 1, held)
    >>> found = deployment_in(state, load("parvagpu-s1"))
    >>> [(segment.service, segment.profile, segment.batch, segment.processes) for segment in found.segments]
    [('bert', '2g.20gb', 128, 3)]
    """
    services = {service.name: service for service in demand.services}
    problems, segments = [], []
    for index, held in enumerate(state.instances):
        if held.idle:
            continue
        names = [name for text in (held.owner, held.name) for name in (text, text.rpartition("/")[2])]
        service = next((services[name] for name in names if name in services), None)
        if service is None:
            who = held.owner or held.name or "nobody that the state names"
            message = f"is in use by {who}, which is no service; {nearest(who, services)}"
            problems.append(Problem(f"instances[{index}]", message))
            continue
        point = _point(state, held, service, demand)
        if point is None:
            message = f"there are no figures of {service.model} on {held.profile} of {state.kind(held.gpu).name}"
            problems.append(Problem(f"instances[{index}]", message))
            continue
        way = point.batch, point.processes, point.throughput, point.latency
        segments.append(Segment(service.name, held.gpu, held.profile, held.start, *way))
    raise_any(problems)
    return Deployment(state.names, tuple(segments), state.devices)


def _point(state: FleetState, held: HeldInstance, service: Service, demand: Demand) -> Point | None:
    kind = state.kind(held.gpu)
    size = kind.profile(held.profile).compute_slices
    for table in demand.measured:
        if table.model == service.model and table.gpu == kind.name:
            points = front(table, size, demand.max_processes)
            within = [point for point in points if demand.rule.serves(point, service)]
            return max(within, key=lambda point: point.throughput) if within else next(iter(points), None)
    return None
