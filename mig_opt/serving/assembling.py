"""Makes deployments from counts: how many instances of each kind serve each service."""

from __future__ import annotations

from collections import deque

from mig_opt.gpu.model import Placement
from mig_opt.gpu.packing import Whole
from mig_opt.serving.covers import Kinds
from mig_opt.serving.demand import Demand, Option
from mig_opt.serving.deployment import Deployment, Segment


def assembled(demand: Demand, kinds: Kinds, counts: Whole) -> Deployment:
    """Return a deployment with so many segments of each kind for each service, packed on few GPUs.

    Parameters
    ----------
    demand : Demand
        Every service has the options that ``counts`` uses.
    kinds : Kinds
        Those of the demand.
    counts : numpy.ndarray
        Segments, of shape (services, kinds).
    """
    packed = []
    totals = counts.sum(axis=0)
    for packer, part in zip(kinds.packers, kinds.parts, strict=True):
        name = packer.gpu.name
        packed += [(name, placements) for placements in packer.pack(tuple(int(count) for count in totals[part]))]
    return filled(demand, kinds, counts, packed)


def filled(demand: Demand, kinds: Kinds, counts: Whole, packed: list[tuple[str, tuple[Placement, ...]]]) -> Deployment:
    """Return a deployment with so many segments of each kind for each service in given instances.

    Parameters
    ----------
    demand, kinds, counts
        As in :func:`assembled`.
    packed : list of (str, tuple of Placement)
        For each GPU the name of its kind and its instances, enough for the counts; those left over are not created.
    """
    waiting: dict[tuple[str, str], deque[tuple[str, Option]]] = {}
    for packer, pool, part in zip(kinds.packers, kinds.pools, kinds.parts, strict=True):
        for at, profile in enumerate(packer.profiles):
            queue = waiting.setdefault((packer.gpu.name, profile.name), deque())
            for service, options, row in zip(demand.services, demand.options, counts, strict=True):
                number = int(row[part.start + at])
                if number:
                    option = next(o for o in options if o.pool == pool and o.profile == profile)
                    queue.extend([(service.name, option)] * number)
    segments = []
    for gpu, (name, placements) in enumerate(packed):
        for placement in placements:
            queue = waiting[name, placement.profile.name]
            if queue:
                name_of_service, chosen = queue.popleft()
                segments.append(segment_of(name_of_service, gpu, placement, chosen))
    assert not any(waiting.values()), "every segment has an instance"
    return Deployment(tuple(name for name, _ in packed), tuple(segments)).without_idle_gpus()


def segment_of(service: str, gpu: int, placement: Placement, option: Option) -> Segment:
    """Return the segment that serves ``service`` in a placement in the way of ``option``."""
    point = option.point
    return Segment(
        service,
        gpu,
        placement.profile.name,
        placement.start,
        point.batch,
        point.processes,
        point.throughput,
        point.latency,
    )
