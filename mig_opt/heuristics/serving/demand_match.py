"""Demand matching: the segments that each service gets (ParvaGPU, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from mig_opt.gpu.model import GpuModel
from mig_opt.serving.demand import Option

SMALL = (1, 2)
"""Compute slices of the segments that replace others."""
SPARE = 1e-11
"""A share of a rate that is rounding, not requests."""


@dataclass(frozen=True, slots=True)
class Need:
    """Requests of a service that have to be served, and the ways in which GPUs of one kind can do it."""

    service: int  # index of the service in the demand
    rate: float  # requests per second
    replicas: int  # segments that it needs at least
    # The best way for each instance size (the paper's optimal triplets), by rising size. At least one.
    options: tuple[Option, ...]
    gpu: GpuModel  # the kind of GPU

    @property
    def dust(self) -> float:
        """Requests per second that are only rounding."""
        return self.rate * SPARE

    def best(self, options: Sequence[Option] | None = None) -> Option:
        """Return the option of greatest throughput per slice, of equal ones the smallest."""
        return max(
            self.options if options is None else options, key=lambda option: throughput_per_slice(self.gpu, option)
        )


def throughput_per_slice(gpu: GpuModel, option: Option) -> float:
    """Return requests per second and compute slice."""
    return option.point.throughput / _blocked_slices(gpu, option.profile)


_blocked_slices = cache(GpuModel.blocked_slices)  # asked very often


def match(need: Need, best: Option | None = None) -> list[Option]:
    """Return the segments of a service, as the option of each.

    As many of the ``best`` segment (by default the paper's optimal one, that of greatest throughput per slice) as its
    rate fills, and for the rest the smallest one that is enough. If these are fewer than the replicas that the service
    needs, the rate is spread instead: each replica in turn is the smallest one that serves its even share of what is
    left.
    """
    best = best or need.best()
    count = math.floor(need.rate / best.point.throughput)
    left = need.rate - count * best.point.throughput
    chosen = [best] * count
    if left > need.dust:
        chosen.append(_smallest(need, left))
    if len(chosen) < need.replicas:
        left, chosen = need.rate, []
        for due in range(need.replicas, 0, -1):
            chosen.append(_smallest(need, left / due))
            left = max(0.0, left - chosen[-1].point.throughput)
    return chosen


def _smallest(need: Need, rate: float) -> Option:
    """Return the smallest option that serves ``rate``, which the best of them does, but for rounding."""
    enough = (option for option in need.options if option.point.throughput >= rate - need.dust)
    return next(enough, need.options[-1])


def small_segments(need: Need, released: float) -> Iterator[Option]:
    """Yield segments of small sizes that together serve ``released`` requests per second (nothing if that is <= 0).

    As many of the one with the greatest throughput per slice (of equal ones the largest) as are filled, then the
    smallest until it is enough. This is what the published deployments of ParvaGPU show. The service needs an option
    of a small size.
    """
    small = [option for option in need.options if option.point.size in SMALL]
    best = need.best(small[::-1])
    while released > need.dust:
        option = best if best.point.throughput <= released else small[0]
        yield option
        released -= option.point.throughput
