"""Rows that every program for a fleet has: segments enough for each service, and instances enough for the segments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mig_opt.gpu.packing import Counts, Packer
from mig_opt.models.solvers.linear import LinearProgram, Term, Variable
from mig_opt.serving.covers import InstanceTypes
from mig_opt.serving.demand import MOST_SEGMENTS, NEEDED, Demand, Option, Service

Key = tuple[str, int]
"""Service and kind of instance."""


def serve(linear: LinearProgram, label: str, service: Service, shares: Sequence[Term]) -> None:
    """Let a service have what it needs, of segments with the share of its rate that each of them answers."""
    linear.at_least(f"rate_{label}", shares, NEEDED)
    if service.min_replicas > 1:
        linear.at_least(f"replicas_{label}", [(variable, 1.0) for variable, _ in shares], service.min_replicas)


class FleetWays:
    """Ways to serve a demand: the options of each service with their kinds, and the most segments of each."""

    def __init__(self, demand: Demand, kinds: InstanceTypes) -> None:
        self.kinds, self.pools, self.costs = kinds, demand.pools, demand.costs
        self.options: dict[str, tuple[tuple[int, Option], ...]] = {
            service.name: tuple((kinds.index(option), option) for option in options)
            for service, options in zip(demand.services, demand.options, strict=True)
        }
        self.most = {
            (service.name, kind): max(
                math.ceil(min(service.rate / option.point.throughput, MOST_SEGMENTS)), service.min_replicas
            )
            for service in demand.services
            for kind, option in self.options[service.name]
        }


class FleetRows:
    """Numbers of segments of each service and kind, and of GPUs with each pattern, as variables of a program."""

    def __init__(self, linear: LinearProgram, label: str, ways: FleetWays, services: Iterable[Service]) -> None:
        self._linear, self._label, self._ways = linear, label, ways
        self.segments: dict[Key, Variable] = {}
        self.patterns: list[tuple[Packer, slice, Counts, Variable]] = []  # with the kinds of the packer
        self.gpus: list[Term] = []
        self.of_pool: dict[int, list[Term]] = {}  # the same by pool
        self.costs: list[Term] = []  # with factors as :meth:`mig_opt.serving.costs.Costs.factor` gives them
        for row, service in enumerate(services):
            shares: list[Term] = []
            for kind, option in ways.options[service.name]:
                variable = linear.number(f"segments_{label}{row}_{kind}", ways.most[service.name, kind])
                self.segments[service.name, kind] = variable
                shares.append((variable, min(option.point.throughput / service.rate, 1.0)))
            serve(linear, f"{label}{row}", service, shares)

    def offer_instances(self) -> None:
        """Let there be instances for the segments, on no more GPUs than the pools have."""
        linear, label, kinds = self._linear, self._label, self._ways.kinds
        for packer, pool, part in zip(kinds.packers, kinds.pools, kinds.parts, strict=True):
            used: list[list[Term]] = [[] for _ in packer.profiles]
            for (_, kind), variable in self.segments.items():
                if part.start <= kind < part.stop:
                    used[kind - part.start].append((variable, 1))
            enough = sum(int(variable.upBound) for terms in used for variable, _ in terms)
            count = self._ways.pools[pool].count
            most = enough if count is None else min(count, enough)
            taken = [linear.number(f"gpus_{label}{pool}_{at}", most) for at in range(len(packer.patterns))]
            if count is not None:
                linear.at_most(f"pool_{label}{pool}", [(variable, 1) for variable in taken], count)
            for at, terms in enumerate(used):
                offered = [(variable, -pattern[at]) for variable, pattern in zip(taken, packer.patterns, strict=True)]
                linear.at_most(f"instances_{label}{pool}_{at}", [*terms, *offered], 0)
            self.patterns += [(packer, part, *entry) for entry in zip(packer.patterns, taken, strict=True)]
            self.of_pool[pool] = [(variable, 1.0) for variable in taken]
            self.gpus += self.of_pool[pool]
            self.costs += [(variable, self._ways.costs.factor(pool)) for variable in taken]
