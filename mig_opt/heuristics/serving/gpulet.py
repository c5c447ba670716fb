"""The method ``gpulet``: at most two segments on a GPU, the second one with the rest of it.

After S. Choi et al., "Serving Heterogeneous Machine Learning Models on Multi-GPU Servers with Spatio-Temporal Sharing",
USENIX ATC 2022 (elastic partitioning; their program is casys-kaist/glet). It shares a GPU between two services by MPS,
whose shares can be of any size, and predicts how much the two slow each other down with a fitted model. Here the two
have an instance each, so that neither slows the other down and there is nothing to fit; in place of a share a service
gets the smallest instance that is not less. Sharing one partition in time, to which their program resorts when the GPUs
of its machine are used up, is left out: here there is always one GPU more.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache

from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.heuristics.serving.demand_match import Need
from mig_opt.heuristics.serving.fill import FilledGpus, PlannedSegment, report_plans
from mig_opt.method.control import Control
from mig_opt.serving.demand import Demand, Option
from mig_opt.serving.deployment import Deployment

_MAX_SERVICES_PER_GPU = 2
"""Services between which a GPU is shared."""
_MIN_GAIN_FACTOR = 1.05
"""Factor by which a larger size has to raise throughput to be looked at, as in the authors' program."""

Efficient = Callable[[Need], Option]
"""Picks the size up to which a service makes good use of a GPU."""


def gpulet(demand: Demand, control: Control[Deployment]) -> None:
    """Report a deployment for each reading of the most efficient size, of which the better one is kept.

    Services come by falling rate. Each takes the most efficient size, or the smallest one that serves what it lacks if
    that is less, until it is served: on the GPU with the smallest rest that is not less, where it gets the largest
    instance that the rest holds, or on a further GPU, on which the rest is left to another segment.

    The paper calls the knee of throughput over size the most efficient one. With the few sizes of instances that has
    two readings: the greatest throughput per slice, and the step between sizes with the greatest gain per slice, which
    is what the authors' program computes. Limits come into effect only after the first deployment.
    """
    for efficient in (Need.best, steepest):
        if control.plan is None or not control.expired:
            report_plans(demand, control, functools.partial(_planned, efficient=efficient), most=_MAX_SERVICES_PER_GPU)


def steepest(need: Need) -> Option:
    """Return the larger size of the step with the greatest gain of throughput per slice.

    Steps that gain less than 5 % do not count; without a step the smallest size is returned.

    Examples
    --------
    From one slice to two it gains 20 requests per second, from two to three 120.

    >>> from mig_opt.gpu.catalogue import get_gpu
    >>> from mig_opt.serving.profile_table import Point
    >>> a100 = get_gpu("A100")
    >>> points = {"1g.5gb": Point(1, 8, 1, 60.0, 0.01), "2g.10gb": Point(2, 8, 1, 80.0, 0.01)}
    >>> points["3g.20gb"] = Point(3, 8, 1, 200.0, 0.01)
    >>> options = tuple(Option(0, a100.profile(name), point) for name, point in points.items())
    >>> steepest(Need(0, 450.0, 1, options, a100)).point.size
    3
    """
    found, most = need.options[0], 0.0
    for small, large in itertools.pairwise(need.options):
        gain = large.point.throughput - small.point.throughput
        gradient = gain / (large.point.size - small.point.size)
        if large.point.throughput >= _MIN_GAIN_FACTOR * small.point.throughput and gradient > most:
            found, most = large, gradient
    return found


def _planned(gpus: FilledGpus, needs: Sequence[Need], *, efficient: Efficient) -> None:
    # The GPUs with one segment, by where it is.
    open_gpus: defaultdict[Placement, list[int]] = defaultdict(list)
    for need in sorted(needs, key=lambda need: -need.rate):
        left, replicas = need.rate, need.replicas
        most = efficient(need)
        while left > need.dust or replicas > 0:
            enough = next((one for one in need.options if one.point.throughput >= left - need.dust), most)
            ideal = min(enough, most, key=lambda option: option.point.size)
            option = _put(gpus, open_gpus, need, ideal)
            left, replicas = left - option.point.throughput, replicas - 1


def _put(gpus: FilledGpus, open_gpus: defaultdict[Placement, list[int]], need: Need, ideal: Option) -> Option:
    """Put a segment of at least the ideal size on the GPU that it fits best, and return how it serves there."""
    rests = []
    for first, waiting in open_gpus.items():
        option = next((one for one in reversed(need.options) if _fits(gpus.gpu, first, one.profile)), None)
        if waiting and option is not None and option.point.size >= ideal.point.size:
            rests.append((option.point.size, waiting[0], first, option))
    if rests:
        _, index, first, option = min(rests, key=lambda rest: rest[:2])
        open_gpus[first].pop(0)
        gpus.put_on(index, PlannedSegment(need.service, option), tuple(sorted(option.profile.starts)))
        return option
    gpus.put_new(PlannedSegment(need.service, ideal), _starts_of_first(gpus.gpu, ideal.profile))
    ((_, placement),) = gpus.on(len(gpus) - 1)
    open_gpus[placement].append(len(gpus) - 1)
    return ideal


@cache
def _fits(gpu: GpuModel, first: Placement, profile: Profile) -> bool:
    return any(gpu.placement(profile.name, start).fits_beside((first,)) for start in profile.starts)


@cache
def _starts_of_first(gpu: GpuModel, profile: Profile) -> tuple[int, ...]:
    """Return the start slices of the first segment on a GPU, those that leave room for the largest second one first."""

    def left(start: int) -> int:
        first = gpu.placement(profile.name, start)
        beside = (other for other in gpu.profiles_of("base") if _fits(gpu, first, other))
        return max((other.compute_slices for other in beside), default=0)

    return tuple(sorted(profile.starts, key=lambda start: (-left(start), -start)))
