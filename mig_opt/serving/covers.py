"""Cheapest sets of instances that serve each service, for given dual prices, and deployments made from their counts.

A *cover* of a service is a set of instances whose throughputs add up to its rate, with as many segments as it wants
replicas. At given dual prices each service is a covering problem of its own (a knapsack): all small sets are tried on
top of instances of the best price for their throughput. Arrays hold the sets of all services.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from mig_opt.gpu.model import Placement
from mig_opt.gpu.packing import Numbers, Packer, Whole, packer_for
from mig_opt.serving.demand import ENOUGH, NEEDED, Demand, Option
from mig_opt.serving.deployment import Deployment, segment_of

_NOT_AT_ALL = -1e30
"""The share of an option that does not exist: one such instance spoils any set."""
_TRIFLE = 1e-300
"""The least share: an instance counts as a replica however little it answers."""

_MOST_SETS = 1000
_MAX_CELLS = 2_000_000
"""Sets times services that are computed at once: arrays of 16 MB."""
_LEAST_PRICE = 0.01
"""Least dual price of an instance that is chosen to fill up: nobody wants a million that are for nothing."""


@dataclass(frozen=True)
class InstanceTypes:
    """The kinds of instances that some service can use, pool after pool, in one numbering."""

    packers: tuple[Packer, ...]  # one for each pool with such a kind
    pools: tuple[int, ...]  # index of the pool of each packer
    parts: tuple[slice, ...]  # which kinds belong to each packer
    count: int  # how many kinds there are

    @classmethod
    def of(cls, demand: Demand) -> InstanceTypes:
        """Return the kinds of a demand."""
        packers, pools, parts, at = [], [], [], 0
        for number, pool in enumerate(demand.pools):
            used = {option.profile for options in demand.options for option in options if option.pool == number}
            if used:
                order = pool.kind.profiles_of("double-memory")
                packer = packer_for(pool.kind, tuple(profile for profile in order if profile in used))
                packers.append(packer)
                pools.append(number)
                parts.append(slice(at, at + len(used)))
                at += len(used)
        return cls(tuple(packers), tuple(pools), tuple(parts), at)

    @cached_property
    def _column(self) -> dict[tuple[int, str], int]:
        return {
            (pool, profile.name): part.start + at
            for packer, pool, part in zip(self.packers, self.pools, self.parts, strict=True)
            for at, profile in enumerate(packer.profiles)
        }

    def index(self, option: Option) -> int:
        """Return which kind of instance an option uses."""
        return self._column[option.pool, option.profile.name]


class Covers:
    """Finds cheap covers of every service.

    Throughputs, of shape (services, kinds), and rates are in requests per second; a throughput is 0 or less where there
    is no option.
    """

    def __init__(self, throughput: Numbers, rates: Numbers, replicas: Whole) -> None:
        whole = rates[:, None]
        answered = np.minimum(np.maximum(throughput, 0.0), whole) / whole
        self._able = throughput > 0
        # The share of its rate that an instance of each kind answers, of shape (services, kinds): 1 at most, since more
        # than all of it is no better. Far below 0 where there is no option. Shares that add up to
        # :data:`mig_opt.serving.demand.ENOUGH` are a cover.
        self.shares: Numbers = np.where(self._able, np.maximum(answered, _TRIFLE), _NOT_AT_ALL)
        self.replicas = replicas  # segments that each service needs at least
        self._sets = small_sets(throughput.shape[1])
        self._sizes = self._sets.sum(axis=1)

    @classmethod
    def of(cls, demand: Demand, kinds: InstanceTypes) -> Covers:
        """Return those of a demand, of which ``kinds`` are the kinds; every service has an option."""
        throughput = np.zeros((len(demand.services), kinds.count))
        for row, options in enumerate(demand.options):
            for option in options:
                throughput[row, kinds.index(option)] = option.point.throughput
        rates = np.array([service.rate for service in demand.services])
        return cls(throughput, rates, np.array([service.min_replicas for service in demand.services]))

    def some(self, rows: Whole) -> Covers:
        """Return those of some services only."""
        return Covers(self.shares[rows], np.ones(len(rows)), self.replicas[rows])

    def given(self, counts: Whole, rows: slice | Whole = slice(None)) -> Numbers:
        """Return the share of its rate that segments answer, for each service of ``rows``.

        ``counts`` has only these rows.
        """
        total: Numbers = (np.where(counts > 0, self.shares[rows], 0.0) * counts).sum(axis=1)
        return total

    def cheapest(self, prices: Numbers, rows: Whole | None = None) -> Whole:
        """Return the cheapest covers of a certain form at ``prices``, as counts of shape (services, kinds).

        The form: as many instances as it takes of the kind that costs least for its throughput, and a small set of
        others. The services are all of them, or ``rows``.
        """
        found = []
        for part in self._parts(rows):
            own = np.arange(len(part))
            filler, sets, fill, _ = self._filled(part, prices, np.maximum(prices, _LEAST_PRICE), ENOUGH)
            counts = self._sets[sets].copy()
            counts[own, filler] += fill[own, sets].astype(np.int64)
            found.append(counts)
        return np.concatenate(found)

    def least(self, prices: Numbers) -> Numbers:
        """Return for each service a price that every cover of it reaches.

        A cover either has the form of :meth:`cheapest`, or many instances that cost more for their throughput than the
        best kind: each of them costs something on top of what the rate costs at best. It also is either a small set
        itself, or costs at least as much as one instance more than these have of the cheapest kind.
        """
        return np.concatenate([self._least(part, prices) for part in self._parts(None)])

    def _least(self, part: Whole, prices: Numbers) -> Numbers:
        filler, sets, fill, costs = self._filled(part, prices, prices, NEEDED)
        rows = np.arange(len(part))
        able, shares = self._able[part], self.shares[part]
        own = np.where(able, prices, np.inf)
        ratio = own[rows, filler] / shares[rows, filler]
        on_top = np.where(able, prices - ratio[:, None] * shares, np.inf)
        on_top[rows, filler] = np.inf
        on_top = np.maximum(on_top.min(axis=1), 0.0)
        others = np.full(len(rows), np.inf)
        some = np.isfinite(on_top)
        others[some] = (ratio * NEEDED + on_top * (self._sizes.max() + 1))[some]
        others = np.maximum(others, own.min(axis=1) * self.replicas[part])
        small = np.where(fill > 0, np.inf, costs).min(axis=1)
        larger = own.min(axis=1) * (self._sizes.max() + 1)
        best: Numbers = np.maximum(np.minimum(costs[rows, sets], others), np.minimum(small, larger))
        return best

    def _parts(self, rows: Whole | None) -> Iterator[Whole]:
        """Yield the services a few at a time, so that all their sets fit into memory."""
        chosen = np.arange(len(self.shares)) if rows is None else rows
        at_once = max(_MAX_CELLS // len(self._sets), 1)
        # One part even of nothing, which has a shape.
        for begin in range(0, max(len(chosen), 1), at_once):
            yield chosen[begin : begin + at_once]

    def _filled(
        self, part: Whole, prices: Numbers, ranking: Numbers, rate: float
    ) -> tuple[Whole, Whole, Numbers, Numbers]:
        """Fill up every small set with the best kind of each service, until it answers a part ``rate`` of all requests.

        Return the kind that costs least for its throughput at the prices ``ranking`` and the index of the cheapest set,
        for each service; how many instances of that kind each set takes, of shape (services, sets); and the price of
        each set.
        """
        shares = self.shares[part]
        rows = np.arange(len(part))
        filler = (np.where(self._able[part], ranking, np.inf) / np.abs(shares)).argmin(axis=1)
        together = shares @ self._sets.T
        # What is noise of the division must not ask for one more.
        fill = np.ceil((rate - together) / shares[rows, filler][:, None] - 1e-12)
        np.maximum(fill, self.replicas[part][:, None] - self._sizes, out=fill)
        np.maximum(fill, 0, out=fill)
        costs = self._sets @ prices + fill * prices[filler][:, None]
        # Also where such an instance costs nothing, nobody can have it.
        costs[together < _NOT_AT_ALL / 2] = np.inf
        return filler, costs.argmin(axis=1), fill, costs


@cache
def small_sets(kinds: int) -> Whole:
    """Return all sets of a few instances, as counts of shape (sets, kinds): of up to 7 where there are 5 kinds."""
    most = next(size for size in range(7, 1, -1) if math.comb(kinds + size, size) <= _MOST_SETS or size == 2)
    sets = [
        np.bincount(chosen, minlength=kinds + 1)[:kinds]
        for chosen in itertools.combinations_with_replacement(range(kinds + 1), most)
    ]
    # The smallest first: of those that cost the same it is chosen.
    return np.array(sets[::-1], dtype=np.int64)


def assembled(demand: Demand, kinds: InstanceTypes, counts: Whole) -> Deployment:
    """Return a deployment with given numbers of segments of each kind for each service, packed on few GPUs.

    ``kinds`` are those of the demand, and ``counts`` is of shape (services, kinds), 0 where a service has no option.
    """
    packed = []
    totals = counts.sum(axis=0)
    for packer, part in zip(kinds.packers, kinds.parts, strict=True):
        name = packer.gpu.name
        packed += [(name, placements) for placements in packer.pack(tuple(int(count) for count in totals[part]))]
    return filled(demand, kinds, counts, packed)


def filled(
    demand: Demand, kinds: InstanceTypes, counts: Whole, packed: list[tuple[str, tuple[Placement, ...]]]
) -> Deployment:
    """Return a deployment as :func:`assembled` does, in given instances: ``packed`` has those of each GPU, by its name.

    They are enough for the counts; those left over are not created.
    """
    waiting: defaultdict[tuple[str, str], deque[tuple[str, Option]]] = defaultdict(deque)
    for service, options, row in zip(demand.services, demand.options, counts, strict=True):
        for option in options:
            queue = waiting[demand.pools[option.pool].kind.name, option.profile.name]
            queue.extend([(service.name, option)] * int(row[kinds.index(option)]))
    segments = []
    for gpu, (name, placements) in enumerate(packed):
        for placement in placements:
            queue = waiting[name, placement.profile.name]
            if queue:
                name_of_service, chosen = queue.popleft()
                segments.append(segment_of(name_of_service, gpu, placement, chosen))
    assert not any(waiting.values()), "every segment has an instance"
    return Deployment(tuple(name for name, _ in packed), tuple(segments)).without_idle_gpus()
