"""The least cost by a model that shares nothing with the package's: every GPU, placement and service for itself."""

from __future__ import annotations

import dataclasses
import itertools

from ortools.sat.python import cp_model

from mig_opt.gpu.model import GpuModel
from mig_opt.serving.demand import Demand, Service

_SCALE = 10**6


_CENTS = 100


def fewest_gpus(demand: Demand, most: int) -> int | None:
    """The fewest GPUs, of at most ``most`` of each kind; None if these do not suffice."""
    pools = tuple(dataclasses.replace(pool, cost=1.0) for pool in demand.pools)
    found = least_cost(demand.replace(pools=pools), most)
    return None if found is None else round(found)


def least_cost(demand: Demand, most: int) -> float | None:
    """The least cost of at most ``most`` GPUs of each kind, in whole cents; None if these do not suffice."""
    model = cp_model.CpModel()
    used = []
    given: dict[str, list[object]] = {service.name: [] for service in demand.services}
    for pool in demand.pools:
        best = {service.name: _best(demand, service, pool.gpu) for service in demand.services}
        whole = pool.gpu.profiles_of("base")[0]
        places = [place for place in pool.gpu.placements("double-memory") if pool.mig or place.profile == whole]
        gpus = [model.new_bool_var(f"on_{pool.gpu.name}_{gpu}") for gpu in range(min(most, pool.count or most))]
        for before, on in itertools.pairwise(gpus):
            model.add_implication(on, before)
        used += [on * round(pool.cost * _CENTS) for on in gpus]
        for gpu, on in enumerate(gpus):
            held: dict[int, list[object]] = {part: [] for part in range(pool.gpu.memory_slices)}
            for placement in places:
                for name, throughput in best.items():
                    if placement.profile.name in throughput:
                        there = model.new_bool_var(f"{name}_{pool.gpu.name}_{gpu}_{placement}")
                        model.add_implication(there, on)
                        given[name].append((there, round(throughput[placement.profile.name] * _SCALE)))
                        for part in placement.footprint:
                            held[part].append(there)
            for choices in held.values():
                model.add_at_most_one(choices)
    for service in demand.services:
        segments = given[service.name]
        model.add(sum(there * throughput for there, throughput in segments) >= round(service.rate * _SCALE))
        model.add(sum(there for there, _ in segments) >= service.min_replicas)
    model.minimize(sum(used))
    return _solved(model)


def _solved(model: cp_model.CpModel) -> float | None:
    """The objective of the optimum; None if there is no solution."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False  # or Ctrl-C would end the process ever after
    solver.parameters.max_time_in_seconds = 60
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL
    return round(solver.objective_value) / _CENTS


def _best(demand: Demand, service: Service, gpu: GpuModel) -> dict[str, float]:
    """The greatest throughput of a service on each profile of a kind of GPU."""
    best = {}
    for table in demand.tables:
        if (table.model, table.gpu) == (service.model, gpu.name):
            for profile in gpu.profiles_of("double-memory"):
                throughputs = [
                    point.throughput
                    for point in table.points
                    if point.size == profile.compute_slices
                    and (demand.max_processes is None or point.processes <= demand.max_processes)
                    and demand.rule.allows(point.latency, service.slo)
                ]
                if throughputs and (table.memory_gb is None or table.memory_gb <= profile.memory_gb):
                    best[profile.name] = max(throughputs)
    return best
