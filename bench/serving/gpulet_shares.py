"""gpulet on shares of MPS in sevenths of a GPU: a count of GPUs only, since no MIG instance has most of these shares.

Choi et al., USENIX ATC 2022. Throughput on 5 and 6 sevenths is interpolated between sizes that were profiled, as the
ParvaGPU paper does for the curves of its Figure 3; services on a GPU do not slow each other down.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left

import numpy as np

from mig_opt import Demand

WHOLE = 7
"""Shares of a GPU."""


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
