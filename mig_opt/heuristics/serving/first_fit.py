"""The method ``first-fit``: first-fit decreasing, the plainest thing that can be done."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mig_opt.control import Control
from mig_opt.gpu.model import GpuModel
from mig_opt.heuristics.serving.demand_matching import SPARE, Need
from mig_opt.heuristics.serving.filling import FilledGpus, PlannedSegment, largest_first, offer_plans
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment


def first_fit(demand: Demand, control: Control[Deployment]) -> None:
    """Give each service segments of its best throughput per slice until it is served, and offer where they fit first.

    The largest segments come first, each on the first GPU with room, at the first start slice that is free there.

    Parameters
    ----------
    demand : Demand
        Any demand; how GPUs of several kinds and limited numbers are dealt with is said in
        :mod:`~mig_opt.heuristics.serving.filling`.
    control : Control
        Reports. It is soon done, limits come into effect only after it.
    """
    offer_plans(demand, control, _filled)


def _filled(gpu: GpuModel, needs: Sequence[Need]) -> FilledGpus:
    gpus = FilledGpus(gpu)
    segments = []
    for need in needs:
        best = need.best()
        count = math.ceil(need.rate * (1 - SPARE) / best.point.throughput)
        segments += [PlannedSegment(need.service, best)] * max(count, need.replicas)
    for segment in largest_first(segments):
        starts = tuple(sorted(segment.profile.starts))
        if not gpus.put(segment, starts):
            gpus.put_new(segment, starts)
    return gpus
