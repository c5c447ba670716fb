"""Rivals of ParvaGPU by other readings: counts of GPUs, without instances.

*MIG-serving's fast algorithm* (Tan et al., arXiv:2109.11067), by plain enumeration of what a GPU can be configured to.
No program of it is public. GPU after GPU gets the configuration of the best score; a score adds up what the instances
give to their services, as shares of the rates that are asked for. The readings differ in the weight of a share, and in
how many services may be together on a GPU. This is written apart from the method ``mig-serving-fast``, which a test
compares it with.

*gpulet on shares of MPS* in sevenths of a GPU (Choi et al., USENIX ATC 2022), since no MIG instance has most of these
shares. Throughput on 5 and 6 sevenths is interpolated between sizes that were profiled, as the ParvaGPU paper does for
the curves of its Figure 3; services on a GPU do not slow each other down.
"""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mig_opt import Demand

Weight = Callable[[float], float]
"""From the share of a service that is not served yet to the weight of what an instance adds."""
WEIGHTS: Mapping[str, Weight] = {
    "what is not served yet": lambda left: left,
    "its square": lambda left: left * left,
    "nothing": lambda _left: 1.0,
}
_SPARE = 1e-9
_DIGITS = 10  # scores that differ only beyond these decimals are equal: then fewer compute slices win


def fast_gpus(demand: Demand, weight: Weight = WEIGHTS["what is not served yet"], most: int | None = None) -> int:
    """Return the GPUs of a demand for one kind of GPU, with ``most`` services on each."""
    gpu = demand.pools[0].gpu
    shares = [
        {option.profile.name: option.point.throughput / service.rate for option in options}
        for service, options in zip(demand.services, demand.options, strict=True)
    ]
    left = dict.fromkeys(range(len(shares)), 1.0)
    partitions = [[gpu.profile(name) for name in names] for names in gpu.partition_multisets()]
    gpus = 0
    while left:
        best: tuple[tuple[float, int], list[tuple[int, str]]] = ((0.0, 0), [])
        for services in itertools.combinations(left, min(most or len(left), len(left))):
            for partition in partitions:
                held, score, slices = [], 0.0, 0
                for profile in partition:
                    adds = [
                        (weight(left[service]) * shares[service][profile.name], -service)
                        for service in services
                        if profile.name in shares[service]
                    ]
                    if adds:
                        gain, service = max(adds)
                        held.append((-service, profile.name))
                        score += gain
                        slices += profile.compute_slices
                best = max(best, ((round(score, _DIGITS), -slices), held), key=lambda one: one[0])
        for service, name in best[1]:
            if service in left:
                left[service] -= shares[service][name]
                if left[service] <= _SPARE:
                    del left[service]
        gpus += 1
    return gpus


def readings(demands: Sequence[Demand]) -> Mapping[str, list[int]]:
    """Return the GPUs of all demands by reading."""
    found = {
        f"score weighted by {name}": [fast_gpus(demand, weight) for demand in demands]
        for name, weight in WEIGHTS.items()
    }
    for most in (1, 2):
        found[f"at most {most} on a GPU"] = [fast_gpus(demand, most=most) for demand in demands]
    return found


WHOLE = 7  # shares of a GPU


def mps_gpus(demand: Demand) -> int:
    """Return the GPUs of gpulet, for the better of the two readings of the most efficient share."""
    curves = []
    for options in demand.options:
        sizes = [option.point.size for option in options]
        curve = np.interp(range(1, WHOLE + 1), sizes, [option.point.throughput for option in options], left=0.0)
        curves.append([float(value) for value in curve])
    return min(_filled(demand, curves, [read(curve) for curve in curves]) for read in (_densest, _steepest))


def _densest(curve: list[float]) -> int:
    return max(range(1, WHOLE + 1), key=lambda size: curve[size - 1] / size)


def _steepest(curve: list[float]) -> int:
    steps = [large - small for small, large in itertools.pairwise([0.0, *curve])]
    return 1 + max(range(1, WHOLE), key=lambda index: steps[index])


def _filled(demand: Demand, curves: list[list[float]], efficient: list[int]) -> int:
    """Return the GPUs if the second service of each gets all that the first leaves."""
    gpus = 0
    rests: list[int] = []  # what is left of GPUs with one service, ascending
    for index in sorted(range(len(curves)), key=lambda index: -demand.services[index].rate):
        curve, left = curves[index], demand.services[index].rate
        while left > 1e-9 * demand.services[index].rate:
            enough = next((size for size in range(1, WHOLE + 1) if curve[size - 1] >= left), WHOLE)
            ideal = min(enough, efficient[index])
            at = bisect_left(rests, ideal)
            if at < len(rests):
                share = rests.pop(at)
            else:
                gpus, share = gpus + 1, ideal
                if share < WHOLE:
                    rests.append(WHOLE - share)
                    rests.sort()
            left -= curve[share - 1]
    return gpus
