"""Deployments with given numbers of segments."""

from __future__ import annotations

from collections import defaultdict, deque

from mig_opt.models.serving.day_counts import Counts, DayProblem
from mig_opt.serving.demand import Option
from mig_opt.serving.deployment import Deployment, Segment, segment_of


def packed(problem: DayProblem, counts: Counts) -> Deployment:
    """Return a deployment with so many segments of each service and kind, packed on few GPUs."""
    kinds = problem.kinds
    waiting: defaultdict[int, deque[tuple[str, Option]]] = defaultdict(deque)
    for service, ways in problem.ways.items():
        for kind, option in ways:
            waiting[kind].extend([(service, option)] * counts.get((service, kind), 0))
    gpus: list[str] = []
    segments: list[Segment] = []
    for packer, part in zip(kinds.packers, kinds.parts, strict=True):
        of = dict(zip(packer.profiles, range(part.start, part.stop), strict=True))
        for placements in packer.pack(tuple(len(waiting[kind]) for kind in of.values())):
            for placement in placements:
                service, option = waiting[of[placement.profile]].popleft()
                segments.append(segment_of(service, len(gpus), placement, option))
            gpus.append(packer.gpu.name)
    return Deployment(tuple(gpus), tuple(segments))
