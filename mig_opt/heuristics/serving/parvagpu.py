"""The methods ``parvagpu``, ``parvagpu-single`` and ``parvagpu-unoptimized``.

M. Lee et al.: "ParvaGPU: Efficient Spatial GPU Sharing for Large-Scale DNN Inference in Cloud Environments", SC 2024.
The best points of each instance size are :attr:`mig_opt.serving.demand.Demand.options`, the other stages are
:mod:`~mig_opt.heuristics.serving.demand_match` (Algorithm 1), and segment relocation and allocation optimisation
(Algorithm 2) here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from mig_opt.heuristics.serving.demand_match import SMALL, Need, match, small_segments
from mig_opt.heuristics.serving.fill import FilledGpus, PlannedSegment, put_all, report_plans
from mig_opt.method.control import Control
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment

THRESHOLD = 4
"""Compute slices of an A100 below which the last stage takes a GPU apart; the paper calls it adjustable."""
_MOST_PARTS = 1000  # segments in place of one


def parvagpu(demand: Demand, control: Control[Deployment], *, retained: Deployment | None = None) -> None:
    """Report the deployments before and after the last stage, of which the better one is kept.

    With ``retained``, a running fleet with the segments that stay, only the other services get segments (section
    III-F): on the GPUs of that fleet as far as they have room, and the last stage divides no segment that stays.

    Only the last stage looks at the limits; the others are soon done.
    """
    parvagpu_unoptimized(demand, control, retained=retained)

    def optimized(gpus: FilledGpus, needs: Sequence[Need]) -> None:
        _relocate_all(gpus, needs)
        optimize(gpus, {need.service: need for need in needs}, control)

    if not control.expired:
        report_plans(demand, control, optimized, retained=retained)


def parvagpu_single(demand: Demand, control: Control[Deployment], *, retained: Deployment | None = None) -> None:
    """Do the same as :func:`parvagpu` with one process in each instance."""
    parvagpu(demand.replace(max_processes=1), control, retained=retained)


def parvagpu_unoptimized(demand: Demand, control: Control[Deployment], *, retained: Deployment | None = None) -> None:
    """Do the same as :func:`parvagpu` without its last stage."""
    report_plans(demand, control, _relocate_all, retained=retained)


def _relocate_all(gpus: FilledGpus, needs: Sequence[Need]) -> None:
    segments = [PlannedSegment(need.service, option) for need in needs for option in match(need)]
    put_all(gpus, segments, avoiding=True)


def optimize(
    gpus: FilledGpus, needs: Mapping[int, Need], control: Control[Deployment], *, threshold: int = THRESHOLD
) -> None:
    """Take apart the GPUs with few allocated slices, from the last one on.

    Each service gets small segments for the throughput that it loses, less what small segments of GPUs before gave it
    beyond that, and these are put on the first GPUs with room. The GPU that was taken apart is empty meanwhile, so they
    may come back to it. A segment of a service without small options, or with too small ones, moves as it is; no
    service falls below the replicas that it needs. After every step the GPUs serve as much as before. ``needs`` are by
    service.
    """
    divisible = {name for name, need in needs.items() if _divisible(need)}
    counts = Counter(segment.service for segment in gpus.segments())
    # Requests per second that a service has lost; below zero what it has been given too much.
    released: defaultdict[int, float] = defaultdict(float)
    for index in range(len(gpus) - 1, -1, -1):
        if control.expired:
            return
        if not gpus.on(index) or not is_fragmented(gpus, index, threshold):
            continue
        queue: list[PlannedSegment] = []
        divided: dict[int, None] = {}  # a set in the order of the segments
        for segment in gpus.clear(index):
            if segment.service not in divisible:
                queue.append(segment)
                continue
            divided[segment.service] = None
            counts[segment.service] -= 1
            released[segment.service] += segment.option.point.throughput
        for service in divided:
            options = list(small_segments(needs[service], released[service]))
            smallest = needs[service].options[0]  # a small one, as the service is divisible
            options += [smallest] * (needs[service].replicas - counts[service] - len(options))
            counts[service] += len(options)
            released[service] -= sum(option.point.throughput for option in options)
            queue += [PlannedSegment(service, option) for option in options]
        put_all(gpus, queue)


def _divisible(need: Need) -> bool:
    """Return True if the smallest option is a small one, and no other has the throughput of very many of it."""
    smallest = need.options[0].point
    most = max(option.point.throughput for option in need.options)
    return smallest.size in SMALL and most <= _MOST_PARTS * smallest.throughput


def is_fragmented(gpus: FilledGpus, index: int, threshold: int = THRESHOLD) -> bool:
    """Return True if so little of a GPU is allocated that it should be taken apart.

    The threshold is in compute slices of an A100, which has seven; other GPUs have the same share of theirs.
    """
    return gpus.compute_slices(index) * 7 < threshold * gpus.gpu.compute_slices
