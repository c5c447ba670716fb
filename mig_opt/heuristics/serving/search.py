"""The method ``search``: dual prices of instances choose segments, a local search on their numbers does the rest.

docs/explanation/deployments.md says why it works. Only the numbers of instances of each kind decide how many GPUs it
takes, and a GPU has few patterns: the maximum of a handful of weights (:class:`mig_opt.gpu.packing.Packer`) tells the
number of GPUs. So a move - this service takes one 3g in place of a 2g and a 1g - is judged by a few additions, whatever
the size of the fleet, and arrays judge all moves of all services at once.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np

from mig_opt.gpu.packing import Numbers, Whole
from mig_opt.method.control import Control
from mig_opt.serving.bounds import Relaxation
from mig_opt.serving.covers import Covers, InstanceTypes, assembled
from mig_opt.serving.demand import ENOUGH, Demand
from mig_opt.serving.deployment import Deployment

_MAX_MOVES = 1700
_MAX_MOVES_PAIRED = 400
_MAX_SERVICES_AT_ONCE = 500
"""Services whose moves are judged at once: their arrays fit into the cache of the processor."""
_IDLE_ROUNDS = 60
"""Rounds without gain after which the search ends."""
_IDLE_ROUNDS_FOR_SLICES = 3
"""The same once the number of GPUs is proven."""

_FEW_TIMES = 3
"""Times that a move is better made one by one, with others in between."""

_NOISE, _DIGITS = 1e-9, 9
_PRICE_OF_LACKING_GPU = 100.0
"""Price of a GPU that the pool does not have."""

_LEAST_SHARE = 0.02
"""Least dual price of an instance, as a share of its part of a GPU."""
_SHARE_OF_WHOLE = 0.3
"""Weight of what whole GPUs cost beside what parts of them do."""

_SECONDS_PER_SERVICE = 1.7e-4
"""Work of a descent, measured on the demands of ParvaGPU."""


def search(demand: Demand, control: Control[Deployment], *, relaxation: Relaxation | None = None) -> None:
    """Report better and better deployments, until the bound is reached, time is up, or nothing was gained for a while.

    Every service needs an option; ``relaxation`` is that of the demand, if it is known already.
    """
    relaxation = relaxation or Relaxation(demand)
    kinds, covers = relaxation.kinds, relaxation.covers
    shares = [one.compute_slices / packer.gpu.compute_slices for packer in kinds.packers for one in packer.profiles]
    # Of GPUs that cost nothing fewer are better, too.
    dual_prices = np.maximum(relaxation.dual_prices, _LEAST_SHARE * np.array(shares))
    limits = np.array([demand.pools[pool].count or math.inf for pool in kinds.pools])
    costs = demand.costs.shares[list(kinds.pools)]
    state = _State(covers, kinds, limits, costs, covers.cheapest(dual_prices))
    # The least cost in the unit of the state, the cost of the most costly GPU.
    target = control.lower_bound / float(demand.costs.largest)
    rng = np.random.default_rng(control.seed)
    best = (math.inf, math.inf, math.inf)
    best_counts = state.counts.copy()
    idle = 0
    while True:
        state.descend(control, target)
        control.spend(_SECONDS_PER_SERVICE * len(demand.services))
        cost = state.cost()
        if cost < best:
            idle = 0
            best, best_counts = cost, state.counts.copy()
            if math.isfinite(cost[0]):
                control.report_plan(assembled(demand, kinds, state.counts))
        else:
            idle += 1
        idle_rounds = _IDLE_ROUNDS_FOR_SLICES if best[0] <= target + _NOISE else _IDLE_ROUNDS
        if control.expired or idle > idle_rounds:
            return
        state.restart(best_counts, dual_prices * rng.uniform(0.85, 1.15, kinds.count), rng)


class _State:
    """Counts of segments, and what every move would make of them."""

    def __init__(self, covers: Covers, kinds: InstanceTypes, limits: Numbers, costs: Numbers, counts: Whole) -> None:
        self._covers, self._kinds, self._limits, self._costs = covers, kinds, limits, costs
        self._moves, self._paired = _moves(kinds.count)
        self._gains = covers.shares @ self._moves.T
        self._changes = self._moves.sum(axis=1)
        profiles = (profile for packer in kinds.packers for profile in packer.profiles)
        self._slices = np.array([profile.compute_slices for profile in profiles], dtype=float)
        self.counts = np.zeros_like(counts)
        self._total = np.zeros(kinds.count, dtype=np.int64)
        self._can = np.zeros((len(counts), len(self._moves)), dtype=bool)
        self._able = np.zeros(len(self._moves), dtype=np.int64)
        self._set(np.arange(len(counts)), counts)

    def _set(self, rows: Whole, counts: Whole) -> None:
        """Give the services of some rows other counts, and find out which moves they can make then."""
        self._total = self._total + counts.sum(axis=0) - self.counts[rows].sum(axis=0)
        self.counts[rows] = counts
        for begin in range(0, len(rows), _MAX_SERVICES_AT_ONCE):
            self._look_at(rows[begin : begin + _MAX_SERVICES_AT_ONCE])

    def _look_at(self, rows: Whole) -> None:
        counts, covers = self.counts[rows], self._covers
        can = self._gains[rows] >= (ENOUGH - covers.given(counts, rows))[:, None]
        can &= self._changes >= (covers.replicas[rows] - counts.sum(axis=1))[:, None]
        for kind in range(self._kinds.count):
            can &= self._moves[:, kind] >= -counts[:, kind, None]
        self._able += can.sum(axis=0) - self._can[rows].sum(axis=0)
        self._can[rows] = can

    def cost(self) -> tuple[float, float, float]:
        """Return the cost, the number of GPUs and of compute slices; an infinite cost if a pool has too few GPUs."""
        whole, _, gpus = self._judge(self._total[None, :])
        return round(float(whole[0]), _DIGITS), float(gpus[0]), float(self._total @ self._slices)

    def _judge(self, totals: Numbers | Whole) -> tuple[Numbers, Numbers, Numbers]:
        """Return for each row of totals the cost of the GPUs, the same if they could be divided, and their number."""
        whole, divisible, number = np.zeros(len(totals)), np.zeros(len(totals)), np.zeros(len(totals))
        pools = zip(self._kinds.packers, self._kinds.parts, self._limits, self._costs, strict=True)
        for packer, part, limit, cost in pools:
            share = (totals[:, part] @ packer.weights.T).max(axis=1)
            gpus = np.ceil(share - _NOISE)
            whole += np.where(gpus > limit, math.inf, cost * gpus)
            divisible += cost * share + _PRICE_OF_LACKING_GPU * np.maximum(share - limit, 0)
            if len(self._limits) > 1:
                # GPUs of several kinds that are each used in part cost more than those parts.
                divisible += _SHARE_OF_WHOLE * (cost * gpus + _PRICE_OF_LACKING_GPU * np.maximum(gpus - limit, 0))
            number += gpus
        return whole, divisible, number

    def descend(self, control: Control[Deployment], target: float) -> None:
        """Make moves while they gain something, one service at a time or two together."""
        while not control.expired and (self._move_one(target) or self._move_two(target)):
            pass

    def _values(self, totals: Numbers | Whole, target: float) -> Numbers:
        """Return what is to be small: the cost of divisible GPUs until it is the least, and then GPUs and slices."""
        whole, divisible, gpus = self._judge(totals)
        slices = totals @ self._slices
        most = max(target, self._costs.min()) + _NOISE
        values: Numbers = np.where(whole <= most, gpus * 1e-5 + slices * 1e-6, 10 + divisible + slices * 1e-4)
        return values

    def _move_one(self, target: float) -> bool:
        values = self._values(self._total + self._moves, target)
        values[self._able == 0] = math.inf
        move = int(values.argmin())
        if values[move] >= self._values(self._total[None, :], target)[0] - _NOISE:
            return False
        able = np.flatnonzero(self._can[:, move])
        if len(able) > _FEW_TIMES:
            self._make(able[: self._times(move, len(able), target)], move)
        else:
            self._make(able[:1], move, self._times(move, self._most_times(int(able[0]), move), target))
        return True

    def _most_times(self, row: int, move: int) -> int:
        """Return how often a service can make a move, one after the other."""
        counts, change = self.counts[row], self._moves[move]
        most = min((int(counts[kind] // -change[kind]) for kind in np.flatnonzero(change < 0)), default=1)
        loses, fewer = -float(self._gains[row, move]), -int(self._changes[move])
        if loses > 0:
            spare = float(self._covers.given(counts[None, :], np.array([row]))[0]) - ENOUGH
            # What is noise of the division must not lose too much.
            most = min(most, int(spare / loses * (1 - _NOISE)))
        if fewer > 0:
            most = min(most, (int(counts.sum()) - int(self._covers.replicas[row])) // fewer)
        return max(most, 1)

    def _times(self, move: int, most: int, target: float) -> int:
        """Return how often a good move is to be made at once: half as often as is best, once at least."""
        if most <= _FEW_TIMES:
            return 1
        steps = 2 ** np.arange(most.bit_length())
        values = self._values(self._total + steps[:, None] * self._moves[move], target)
        return max(int(steps[values.argmin()]) // 2, 1)

    def _move_two(self, target: float) -> bool:
        able = [move for move in self._paired if self._able[move]]
        if len(able) < 2:
            return False
        moves = self._moves[able]
        first, second = np.triu_indices(len(able))
        values = self._values(self._total + moves[first] + moves[second], target)
        now = self._values(self._total[None, :], target)[0] - _NOISE
        better = np.flatnonzero(values < now)
        for pair in better[np.argsort(values[better], kind="stable")][:20]:
            one, two = able[first[pair]], able[second[pair]]
            # Two services, of which the first can make one move and the second the other.
            firsts, seconds = np.flatnonzero(self._can[:, one])[:2], np.flatnonzero(self._can[:, two])[:2]
            rows = next((rows for rows in itertools.product(firsts, seconds) if rows[0] != rows[1]), None)
            if rows is not None:
                self._make(np.array(rows[:1]), one)
                self._make(np.array(rows[1:]), two)
                return True
        return False

    def _make(self, rows: Whole, move: int, times: int = 1) -> None:
        self._set(rows, self.counts[rows] + times * self._moves[move])

    def restart(self, counts: Whole, prices: Numbers, rng: np.random.Generator) -> None:
        """Begin again from other counts, with some services covered anew at perturbed dual prices."""
        changed = counts.copy()
        chosen = np.flatnonzero(rng.random(len(counts)) < max(0.3, 2 / len(counts)))
        changed[chosen] = self._covers.cheapest(prices, chosen)
        # Most services choose what they had: to look at the others only is what makes it quick.
        rows = np.flatnonzero((changed != self.counts).any(axis=1))
        self._set(rows, changed[rows])


@cache
def _moves(kinds: int) -> tuple[Whole, tuple[int, ...]]:
    """Return the moves, as changes of the count of each kind, and the indices of those that are tried in pairs."""
    moves: list[tuple[int, ...]] = []
    shortest = 0
    for length in itertools.count(1):
        longer = list(_changes(kinds, length))
        if length > 2 and len(moves) + len(longer) > _MAX_MOVES:
            break
        moves += longer
        if len(moves) <= _MAX_MOVES_PAIRED or length == 1:
            shortest = len(moves)
    return np.array(moves, dtype=np.int64), tuple(range(shortest))


def _changes(kinds: int, length: int) -> list[tuple[int, ...]]:
    """Return the vectors of ``kinds`` whole numbers with ``length`` as the sum of their absolute values."""
    if kinds == 1:
        return [(length,), (-length,)] if length else [(0,)]
    return [(first, *rest) for first in range(-length, length + 1) for rest in _changes(kinds - 1, length - abs(first))]
