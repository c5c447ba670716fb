"""The least cost by a model that shares nothing with the package's: whole numbers of every layout."""

import dataclasses
from collections import Counter

from ortools.sat.python import cp_model

from mig_opt import Demand, GpuModel, Pool, Profile, Service

_SCALE = 10**6


_PARTS = 300


def fewest_gpus(demand: Demand, most: int) -> int | None:
    """The fewest GPUs, of at most ``most`` of each kind; None if these do not suffice."""
    pools = tuple(dataclasses.replace(pool, cost=1.0) for pool in demand.pools)
    found = least_cost(demand.replace(pools=pools), most)
    return None if found is None else round(found)


def least_cost(demand: Demand, most: int) -> float | None:
    """The least cost of at most ``most`` GPUs of each kind, in thirds of a cent; None if these do not suffice."""
    model = cp_model.CpModel()
    costs = []
    given: dict[str, list[tuple[object, float]]] = {service.name: [] for service in demand.services}
    for pool in demand.pools:
        limit = min(most, pool.count or most)
        layouts = _layouts(pool)
        taken = [model.new_int_var(0, limit, "") for _ in layouts]
        model.add(sum(taken) <= limit)
        costs += [number * round(pool.cost * _PARTS) for number in taken]
        best = {service.name: _best(demand, service, pool.gpu) for service in demand.services}
        for profile in pool.gpu.profiles_of("double-memory"):
            there = sum(number * layout[profile] for number, layout in zip(taken, layouts, strict=True))
            able = [name for name, throughput in best.items() if profile.name in throughput]
            own = {name: model.new_int_var(0, limit * profile.max_count, "") for name in able}
            model.add(sum(own.values()) <= there)
            for name, number in own.items():
                given[name].append((number, best[name][profile.name]))
    for service in demand.services:
        rates = [number * round(rate * _SCALE) for number, rate in given[service.name]]
        model.add(sum(rates) >= round(service.rate * _SCALE))
        model.add(sum(number for number, _ in given[service.name]) >= service.min_replicas)
    model.minimize(sum(costs))
    return _solved(model)


def _layouts(pool: Pool) -> list[Counter[Profile]]:
    """The numbers of instances of each profile that a GPU of a pool can have together."""
    whole = pool.gpu.profiles_of("base")[0]
    states = pool.gpu.placed_states("double-memory")
    counts = (Counter(place.profile for place in state) for state in states)
    return [Counter(dict(key)) for key in {frozenset(one.items()) for one in counts if pool.mig or set(one) <= {whole}}]


def _solved(model: cp_model.CpModel) -> float | None:
    """The objective of the optimum; None if there is no solution."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 8
    solver.parameters.catch_sigint_signal = False  # or Ctrl-C would end the process ever after
    solver.parameters.max_time_in_seconds = 60
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL
    return round(solver.objective_value) / _PARTS


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
