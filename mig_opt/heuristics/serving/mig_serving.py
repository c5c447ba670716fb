"""The methods ``mig-serving-fast`` and ``mig-serving``: GPU after GPU, each in the configuration of the best score.

The first is the fast algorithm of C. Tan et al., "Serving DNN Models with Multi-Instance GPUs: A Case of the
Reconfigurable Machine Scheduling Problem", arXiv:2109.11067. A configuration is a partition of a GPU with a service on
each instance. Its score adds up what each instance gives to its service, as a share of the service's rate (its
utility), weighted by the share that is not served yet (one less its completion rate). No program of the authors is
public to compare with; ``bench/papers/parvagpu_rivals.py`` counts GPUs by other readings, which differ by one GPU
at most in the scenarios of the ParvaGPU paper. The second method is the stronger one: there an instance counts with the
share that it takes from what is not served yet, so that nothing is gained by serving more than was asked for.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.gpu.packing import packer_for
from mig_opt.heuristics.serving.demand_match import SPARE
from mig_opt.heuristics.serving.fill import PlannedSegment, deployment_of
from mig_opt.method.control import Control
from mig_opt.serving.demand import Demand, Option
from mig_opt.serving.deployment import Deployment

_DIGITS, _SCORE_DIGITS = 12, 10
"""Shares of services, and scores, which are sums of some, are equal if they differ only beyond these decimals."""


_Bid = tuple[float, float, int]
"""Less the score of an instance for a service, the share of the instance that is idle then, and the service. The least
bid is the best."""

_NOBODY: _Bid = (0.0, 0.0, -1)


def mig_serving_fast(demand: Demand, control: Control[Deployment]) -> None:
    """Add the GPU of the best score until everything is served, and report the deployment.

    A score is a sum over instances, so each instance of the best configuration has the service of which it serves the
    largest share, weighted: no configuration has to be left out of the search, however many services it mixes. If
    scores are equal, the one with fewer compute slices in use is better. The paper has one kind of GPU and no replicas:
    here kinds compete at every step, by their score for their cost, as long as there are GPUs left of them (if there
    are not enough, nothing is offered), and what a service lacks is the larger of two shares, that of its rate and that
    of its replicas. There is one deployment, so limits come into effect only after it.
    """
    _fill(demand, control, capped=False)


def mig_serving(demand: Demand, control: Control[Deployment]) -> None:
    """Do the same as :func:`mig_serving_fast` with instances that count for no more than their service still lacks."""
    _fill(demand, control, capped=True)


def _fill(demand: Demand, control: Control[Deployment], *, capped: bool) -> None:
    market = _Market(demand, capped=capped)
    left = [pool.count for pool in demand.pools]
    gpus = []
    while market.lacks:
        pools = [pool for pool, count in enumerate(left) if count is None or count > 0]
        configurations = (one for pool in pools for one in market.configurations(pool))
        best = max(configurations, key=lambda one: one.rank, default=None)
        if best is None:
            return
        market.accept(best.lacks)
        gpus.append(best.held)
        pool = best.held[0][0].option.pool
        left[pool] = None if (count := left[pool]) is None else count - 1
    control.report_plan(deployment_of(demand, ((None, held) for held in gpus)))


@dataclass(frozen=True, slots=True)
class _Lack:
    """Demand of a service that is not served yet."""

    rate: float  # its share of the service's rate
    replicas: int  # segments


class _Configuration(NamedTuple):
    """Instances of a GPU with their services, and what the services lack then."""

    rank: tuple[float, float, int]
    held: list[tuple[PlannedSegment, Placement]]
    lacks: dict[int, _Lack]


class _Market:
    """Demand of all services that is not served yet, and their gains from instances.

    With ``capped`` an instance scores what it takes from that, else what it gives, weighted by what was lacking before
    the GPU.
    """

    def __init__(self, demand: Demand, *, capped: bool) -> None:
        self._demand, self._capped = demand, capped
        self.lacks = {index: _Lack(1.0, service.min_replicas) for index, service in enumerate(demand.services)}
        self._offers: list[dict[tuple[int, Profile], Option]] = [
            {(option.pool, option.profile): option for option in options} for options in demand.options
        ]
        # For each instance the services that gain from it, the best one first.
        self._queues: dict[tuple[int, Profile], list[_Bid]] = {}
        for service, offers in enumerate(self._offers):
            for key, option in offers.items():
                self._queues.setdefault(key, []).append(self._bid(service, self.lacks[service], option))
        for queue in self._queues.values():
            queue.sort()
        self._partitions = [
            partitions_into(pool.kind, frozenset(profile for at, profile in self._queues if at == number))
            for number, pool in enumerate(demand.pools)
        ]

    def configurations(self, pool: int) -> Iterator[_Configuration]:
        """Yield the best configuration of each partition of a GPU, as far as it serves what is lacking."""
        configurations = (self._configured(pool, partition) for partition in self._partitions[pool])
        return (configuration for configuration in configurations if configuration.held)

    def accept(self, lacks: Mapping[int, _Lack]) -> None:
        """Let services lack only this."""
        for service, lack in lacks.items():
            before = self.lacks.pop(service)
            done = lack.rate <= SPARE and lack.replicas == 0
            if not done:
                self.lacks[service] = lack
            for key, option in self._offers[service].items():
                queue = self._queues[key]
                del queue[bisect.bisect_left(queue, self._bid(service, before, option))]
                if not done:
                    bisect.insort(queue, self._bid(service, lack, option))

    def _configured(self, pool: int, partition: Sequence[Placement]) -> _Configuration:
        """Return a partition in which each instance in turn, the largest first, has the service that gains most."""
        lacks: dict[int, _Lack] = {}
        held = []
        score, slices = 0.0, 0
        for placement in partition:
            key = pool, placement.profile
            loss, _, service = self._best_bid(key, lacks if self._capped else {})
            if loss < 0:
                option = self._offers[service][key]
                lacks[service] = self._after(service, lacks.get(service, self.lacks[service]), option)
                held.append((PlannedSegment(service, option), placement))
                score -= loss
                slices += placement.profile.compute_slices
        score = round(score, _SCORE_DIGITS)
        cost = self._demand.pools[pool].cost
        return _Configuration((score / cost if cost else math.inf, score, -slices), held, lacks)

    def _best_bid(self, key: tuple[int, Profile], lacks: dict[int, _Lack]) -> _Bid:
        """Return who should have an instance, if some services lack only ``lacks`` by now."""
        untouched = (bid for bid in self._queues[key] if bid[2] not in lacks)
        bids = [next(untouched, _NOBODY)]
        for service, lack in lacks.items():
            option = self._offers[service].get(key)
            if option is not None:
                bids.append(self._bid(service, lack, option))
        return min(bids)

    def _bid(self, service: int, lack: _Lack, option: Option) -> _Bid:
        if not self._capped:
            given = option.point.throughput / self._demand.services[service].rate
            return -self._outstanding(service, lack) * given, 0.0, service
        after = self._after(service, lack, option)
        gain = self._outstanding(service, lack) - self._outstanding(service, after)
        idle = 1 - min(1.0, lack.rate * self._demand.services[service].rate / option.point.throughput)
        return -round(gain, _DIGITS), idle, service

    def _outstanding(self, service: int, lack: _Lack) -> float:
        return max(lack.rate, lack.replicas / self._demand.services[service].min_replicas)

    def _after(self, service: int, lack: _Lack, option: Option) -> _Lack:
        rate = lack.rate - option.point.throughput / self._demand.services[service].rate
        return _Lack(rate if rate > SPARE else 0.0, max(0, lack.replicas - 1))


@cache
def partitions_into(gpu: GpuModel, profiles: frozenset[Profile]) -> tuple[tuple[Placement, ...], ...]:
    """Return the largest sets of instances of some profiles that a GPU takes, each with its largest instances first."""
    if not profiles:
        return ()
    packer = packer_for(gpu, tuple(profile for profile in gpu.profiles_of("double-memory") if profile in profiles))
    placed = map(packer.placed, packer.patterns)
    return tuple(tuple(sorted(own, key=lambda one: (-one.profile.compute_slices, one.start))) for own in placed)
