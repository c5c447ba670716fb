"""Plans for GPUs of several kinds, by methods that plan for one kind.

A service belongs to the kind of GPU of which it needs the smallest share. If there are not enough of a kind, the GPUs
with most on them stay, what was on the others is moved to them as far as it fits, and what still lacks is left to the
kind that is next best for the service. As this may spread services over more kinds than is good, every kind is tried as
the first choice of all services as well.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from mig_opt.control import Control
from mig_opt.gpu.model import GpuModel, Placement
from mig_opt.heuristics.serving.demand_matching import Need, yield_of
from mig_opt.heuristics.serving.rack import Piece, Rack, largest_first
from mig_opt.heuristics.serving.segment_relocation import fit
from mig_opt.serving.assembling import segment_of
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment

Planner = Callable[[GpuModel, Sequence[Need]], Rack]
"""Puts segments for all needs on as many GPUs of one kind as it takes."""


def offer_plans(demand: Demand, control: Control[Deployment], planner: Planner) -> None:
    """Offer what ``planner`` makes of a demand; nothing if there is a service that it finds no GPUs for."""
    if demand.unservable():
        return
    for ranks in _rankings(demand):
        if control.plan is not None and control.expired:
            return
        racks = _planned(demand, ranks, planner)
        if racks is not None:
            control.offer(deployment_of(demand, (rack.on(index) for rack in racks for index in rack.used())))


def deployment_of(demand: Demand, gpus: Iterable[Sequence[tuple[Piece, Placement]]]) -> Deployment:
    """Return the deployment with these segments on its GPUs, each of which has at least one."""
    names, segments = [], []
    for index, held in enumerate(gpus):
        names.append(demand.pools[held[0][0].option.pool].gpu.name)
        for piece, placement in held:
            segments.append(segment_of(demand.services[piece.service].name, index, placement, piece.option))
    return Deployment(tuple(names), tuple(segments))


def _rankings(demand: Demand) -> Iterator[list[tuple[int, ...]]]:
    """Yield for each service its pools, best first: by the share of a GPU that it needs, then each as first choice."""
    own = []
    for options in demand.options:
        most: defaultdict[int, float] = defaultdict(float)
        for option in options:
            gpu = demand.pools[option.pool].gpu
            most[option.pool] = max(most[option.pool], yield_of(gpu, option) * gpu.compute_slices)
        own.append(tuple(sorted(most, key=lambda pool: -most[pool])))
    yield own
    seen = [own]
    for first in range(len(demand.pools)):
        ranks = [tuple(sorted(pools, key=lambda pool: pool != first)) for pools in own]
        if ranks not in seen:
            seen.append(ranks)
            yield ranks


def _planned(demand: Demand, ranks: Sequence[tuple[int, ...]], planner: Planner) -> list[Rack] | None:
    """Return the racks of a plan by the order of the pools; None if the GPUs do not suffice."""
    racks: dict[int, Rack] = {}
    # What is still to be served. The pools without a limit come last, they take everything.
    lacks = {index: (service.rate, service.min_replicas) for index, service in enumerate(demand.services)}
    for number in sorted(range(len(demand.pools)), key=lambda pool: (demand.pools[pool].count is None, pool)):
        pool = demand.pools[number]
        needs = [
            Need(index, *lack, tuple(o for o in demand.options[index] if o.pool == number), pool.gpu)
            for index, lack in lacks.items()
            if next((rank for rank in ranks[index] if rank not in racks), None) == number
        ]
        rack = racks[number] = planner(pool.gpu, needs)
        if pool.count is not None:
            keep(rack, pool.count)
        for need in needs:
            del lacks[need.service]
        lacks |= {need.service: (need.rate, need.replicas) for need in lacking(needs, rack)}
    return None if lacks else [racks[number] for number in sorted(racks)]


def keep(rack: Rack, count: int) -> None:
    """Make do with ``count`` GPUs, those with most on them; the others' segments go there as far as they fit."""
    used = sorted(rack.used(), key=lambda index: (-rack.compute_slices(index), index))
    empty = set(range(len(rack))).difference(used)
    for piece in largest_first(rack.drop(empty.union(used[count:]))):
        fit(rack, piece)


def lacking(needs: Sequence[Need], rack: Rack) -> Iterator[Need]:
    """Yield what the segments of a rack leave to be served, of each need that they do not fulfil."""
    given: defaultdict[int, list[float]] = defaultdict(list)
    for piece in rack.pieces():
        given[piece.service].append(piece.option.point.throughput)
    for need in needs:
        served = given[need.service]
        rate, replicas = need.rate - math.fsum(served), need.replicas - len(served)
        # What the stages took for rounding may add up.
        if rate > 4 * need.dust or replicas > 0:
            yield dataclasses.replace(need, rate=max(0.0, rate), replicas=max(0, replicas))
