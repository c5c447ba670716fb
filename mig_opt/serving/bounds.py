"""Lower bounds on the number of GPUs that need no solver, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class FleetBound:
    """A lower bound on the number of GPUs, and why it holds.

    Attributes
    ----------
    name : str
        What it is called.
    gpus : int
        No deployment has fewer GPUs.
    value : float
        The same before it is rounded up.
    reason : str
        Why.
    """

    name: str
    gpus: int
    value: float
    reason: str


def fleet_bounds(demand: Demand) -> tuple[FleetBound, ...]:
    """Return every bound of this module for ``demand``, the best one first.

    Raises
    ------
    InputError
        If a service can be served by no instance: there is no deployment to bound.

    Examples
    --------
    >>> from mig_opt import load
    >>> for bound in fleet_bounds(load("parvagpu-s5")):
    ...     print(bound.name, bound.gpus, round(bound.value, 2))
    instance prices 12 11.72
    compute slices 12 11.71
    """
    return Relaxation(demand).bounds


def shortage(demand: Demand, bound: FleetBound) -> str:
    """Return why a lower bound is more than the GPUs that there are; empty if it is not.

    Examples
    --------
    >>> from mig_opt import Pool, load
    >>> demand = load("parvagpu-s3")
    >>> few = demand.replace(pools=(Pool(demand.pools[0].gpu, 2),))
    >>> shortage(demand, fleet_bounds(demand)[0]), shortage(few, fleet_bounds(few)[0]).partition(" (")[0]
    ('', 'the services need at least 5 GPUs')
    """
    counts = [pool.count for pool in demand.pools if pool.count is not None]
    if len(counts) < len(demand.pools) or bound.gpus <= sum(counts):
        return ""
    pools = ", ".join(f"{pool.count} {pool.gpu.name}" for pool in demand.pools)
    return f"the services need at least {bound.gpus} GPUs ({bound.reason}); there are {pools}"


class Relaxation:
    """Relaxation of a demand in which GPUs need not be whole: dual prices of instances and lower bounds."""

    def __init__(self, demand: Demand) -> None:
        if nowhere := demand.unservable():
            message = "no instance can serve {!r} in time, so no GPUs do"
            raise InputError(
                Problem(f"services[{index}]", message.format(demand.services[index].name)) for index in nowhere
            )
        self.kinds = InstanceTypes.of(demand)
        self.covers = Covers.of(demand, self.kinds)
        self._sample = self.covers
        if len(demand.services) > _SAMPLE:
            rows = np.random.default_rng(0).choice(len(demand.services), _SAMPLE, replace=False)
            self._sample = self.covers.some(rows)
        dual, self.dual_prices = self._dual_bound()  # the prices of instances of each kind
        bounds = (self._compute_slices(), dual)
        # on the number of GPUs, the best one first
        self.bounds = tuple(sorted(bounds, key=lambda bound: (-bound.gpus, -bound.value)))

    def _compute_slices(self) -> FleetBound:
        kinds = ((packer.gpu, profile) for packer in self.kinds.packers for profile in packer.profiles)
        shares = np.array([profile.compute_slices / gpu.compute_slices for gpu, profile in kinds])
        value = float(self.covers.least(shares).sum())
        reason = "the fewest compute slices that serve each service, all together, as a number of GPUs"
        return FleetBound("compute slices", _whole(value), value, reason)

    def _dual_bound(self) -> tuple[FleetBound, Numbers]:
        """Return the bound for the best dual prices of instances that were found, and these prices.

        Any dual prices will do at which no GPU is worth more than 1: then a deployment has at least as many GPUs as the
        cheapest covers of all services cost together. Prices between the vertices of :attr:`Packer.weights` are such;
        they are raised where the covers that they make cheapest ask for too much (multiplicative weights).
        """
        candidates = sorted(self._multiplicative_weights(), key=lambda entry: -entry[0])
        if self._sample is not self.covers:
            # What is best for the sample is about the best for all.
            tried = [prices for _, prices in candidates[:_CANDIDATES]]
            candidates = [(float(self.covers.least(prices).sum()), prices) for prices in tried]
        value, prices = max(candidates, key=lambda entry: entry[0])
        reason = "the least that serves each service, at prices at which no GPU holds more than one GPU's worth"
        return FleetBound("instance prices", _whole(value), value, reason), prices

    def _multiplicative_weights(self) -> Iterator[tuple[float, Numbers]]:
        """Yield the costs of the cheapest covers of the sample at some dual prices, and these prices."""
        kinds = self.kinds
        logarithms = [np.zeros(len(packer.weights)) for packer in kinds.packers]
        best, idle = -math.inf, 0
        for round_ in range(_ROUNDS):
            mixtures = [_softmax(entry) for entry in logarithms]
            prices = np.concatenate([mix @ packer.weights for mix, packer in zip(mixtures, kinds.packers, strict=True)])
            value = float(self._sample.least(prices).sum())
            yield value, prices
            idle = 0 if value > best * (1 + _GAIN) else idle + 1
            best = max(best, value)
            if idle > _PATIENCE or max(map(len, logarithms)) == 1:
                return
            asked = self._sample.cheapest(prices).sum(axis=0)
            for at, (packer, part) in enumerate(zip(kinds.packers, kinds.parts, strict=True)):
                loads = packer.weights @ asked[part]
                logarithms[at] += _STEP / math.sqrt(round_ + 1) * (loads / max(loads.max(), 1.0) - 1)


def _softmax(logarithms: Numbers) -> Numbers:
    powers = np.exp(logarithms - logarithms.max())
    mixture: Numbers = powers / powers.sum()
    return mixture


def _whole(value: float) -> int:
    return math.ceil(value - _NOISE * max(1.0, value))
