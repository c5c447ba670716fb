"""Lower bounds on the cost of GPUs, their number if each costs 1, that need no solver, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mig_opt.errors import InputError, Problem
from mig_opt.gpu.packing import Numbers
from mig_opt.serving.covers import Covers, InstanceTypes
from mig_opt.serving.demand import Demand

_NOISE = 1e-7
_ROUNDS = 40
_PATIENCE = 12
_GAIN = 1e-5
_SAMPLE = 150
"""Services that are enough to find good dual prices."""
_CANDIDATES = 4
"""Prices that are tried with all services."""
_STEP = 4.0
_PREMIUM_STEP = 0.3
"""First step of a premium, as a share of the cost of the most costly GPU."""


@dataclass(frozen=True, slots=True)
class FleetBound:
    """A lower bound on the cost of GPUs, and why it holds.

    Attributes
    ----------
    name : str
        What it is called.
    cost : float
        No deployment costs less; where each GPU costs 1, none has fewer GPUs.
    value : float
        The same before it is rounded up to a sum of costs.
    reason : str
        Why.
    """

    name: str
    cost: float
    value: float
    reason: str


def fleet_bounds(demand: Demand) -> tuple[FleetBound, ...]:
    """Return every bound of this module for ``demand``, the best one first.

    Raises
    ------
    InputError
        If a service can be served by no instance: there is no deployment to bound.
    """
    return Relaxation(demand).bounds


def shortage(demand: Demand, bound: FleetBound) -> str:
    """Return why a lower bound is more than the GPUs that there are; empty if it is not.

    Of several pools, or where GPUs cost something else than 1, it is a bound on any number of GPUs that is looked at.
    """
    counts = [pool.count for pool in demand.pools if pool.count is not None]
    if len(counts) < len(demand.pools):
        return ""
    if len(counts) > 1 or not demand.costs.counted:
        pools = tuple(replace(pool, cost=1.0, count=None) for pool in demand.pools)
        bound = fleet_bounds(demand.replace(pools=pools))[0]
    if bound.cost <= sum(counts):
        return ""
    there = ", ".join(f"{pool.count} {pool.kind.name}" for pool in demand.pools)
    return f"the services need at least {bound.cost} GPUs ({bound.reason}); there are {there}"


class Relaxation:
    """Relaxation of a demand in which GPUs need not be whole: dual prices of instances and lower bounds.

    Prices are shares of the cost of the most costly GPU.
    """

    def __init__(self, demand: Demand) -> None:
        if nowhere := demand.unservable():
            message = "no instance can serve {!r} in time, so no GPUs do"
            raise InputError(
                Problem(f"services[{index}]", message.format(demand.services[index].name)) for index in nowhere
            )
        self.kinds = kinds = InstanceTypes.of(demand)
        self._costs = demand.costs
        self._shares = demand.costs.shares[list(kinds.pools)]
        counts = [demand.pools[pool].count for pool in kinds.pools]
        # Of a single kind they say nothing about the cost, only whether there are enough.
        limited = len(counts) > 1
        self._counts = np.array([count if limited and count is not None else math.inf for count in counts])
        self.covers = Covers.of(demand, self.kinds)
        self._sample = self.covers
        if len(demand.services) > _SAMPLE:
            rows = np.random.default_rng(0).choice(len(demand.services), _SAMPLE, replace=False)
            self._sample = self.covers.some(rows)
        dual, self.dual_prices = self._dual_bound()  # the prices of instances of each kind
        bounds = (self._compute_slices(), dual)
        # on the cost of the GPUs, the best one first
        self.bounds = tuple(sorted(bounds, key=lambda bound: (-bound.cost, -bound.value)))

    def _bound(self, name: str, share: float, reason: str) -> FleetBound:
        """Return the bound for a cost as a share of that of the most costly GPU."""
        value = share * float(self._costs.largest)
        least = self._costs.raised(value, _NOISE * max(float(self._costs.largest), value))
        return FleetBound(name, max(least, 0), value, reason)

    def _compute_slices(self) -> FleetBound:
        shares = [
            cost * profile.compute_slices / packer.gpu.compute_slices
            for cost, packer in zip(self._shares, self.kinds.packers, strict=True)
            for profile in packer.profiles
        ]
        value = float(self.covers.least(np.array(shares)).sum())
        what = "as a number of GPUs" if self._costs.counted else "at their share of the cost of a GPU"
        reason = f"the fewest compute slices that serve each service, all together, {what}"
        return self._bound("compute slices", value, reason)

    def _dual_bound(self) -> tuple[FleetBound, Numbers]:
        """Return the bound for the best dual prices of instances that were found, and these prices.

        Any dual prices will do at which no GPU is worth more than it costs: then a deployment costs at least what the
        cheapest covers of all services cost together. Prices between the vertices of :attr:`Packer.weights`, times the
        cost of the GPU, are such; they are raised where the covers that they make cheapest ask for too much
        (multiplicative weights). Where a pool has too few GPUs for these covers, a GPU may be worth a premium on top,
        less which as many of them as there are may cost.
        """
        candidates = sorted(self._multiplicative_weights(), key=lambda entry: -entry[0])
        if self._sample is not self.covers:
            # What is best for the sample is about the best for all.
            tried = [entry[1:] for entry in candidates[:_CANDIDATES]]
            candidates = [(float(self.covers.least(prices).sum()) - less, prices, less) for prices, less in tried]
        value, prices, less = max(candidates, key=lambda entry: entry[0])
        worth = "one GPU's worth" if self._costs.counted else "it costs"
        premium = ", but for a premium that the GPUs of the pools cost less together" if less else ""
        reason = f"the least that serves each service, at prices at which no GPU holds more than {worth}{premium}"
        return self._bound("instance prices", value, reason), prices

    def _multiplicative_weights(self) -> Iterator[tuple[float, Numbers, float]]:
        """Yield what all services cost at least at some dual prices, judged by the sample, these prices, and premiums.

        The latter are those of all GPUs that there are, which the cost is less already.
        """
        kinds, counts = self.kinds, self._counts
        logarithms = [np.zeros(len(packer.weights)) for packer in kinds.packers]
        limited = np.isfinite(counts)
        premiums = np.zeros(len(counts))
        times = len(self.covers.shares) / len(self._sample.shares)
        best, idle, patience = -math.inf, 0, _PATIENCE * (2 if limited.any() else 1)
        for round_ in range(_ROUNDS * (4 if limited.any() else 1)):
            worth = self._shares + premiums
            powers = [np.exp(entry - entry.max()) for entry in logarithms]
            mixtures = [share * (power / power.sum()) for share, power in zip(worth, powers, strict=True)]
            prices = np.concatenate([mix @ packer.weights for mix, packer in zip(mixtures, kinds.packers, strict=True)])
            less = float(premiums[limited] @ counts[limited])
            value = times * float(self._sample.least(prices).sum()) - less
            yield value, prices, less
            idle = 0 if value > best + _GAIN * abs(best) else idle + 1
            best = max(best, value)
            if idle > patience or (max(map(len, logarithms)) == 1 and not limited.any()):
                return
            asked = self._sample.cheapest(prices).sum(axis=0)
            step = 1 / math.sqrt(round_ + 1)
            for at, (packer, part) in enumerate(zip(kinds.packers, kinds.parts, strict=True)):
                loads = packer.weights @ asked[part]
                logarithms[at] += _STEP * step * (loads / max(loads.max(), 1.0) - 1)
                if limited[at]:
                    lack = times * loads.max() - counts[at]
                    premiums[at] = max(0.0, premiums[at] + _PREMIUM_STEP * step * lack / max(lack, counts[at]))
