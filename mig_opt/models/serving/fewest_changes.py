"""Fewest changes: the last goal of the method ``exact``, and the places of each step of a day after those before.

Here GPUs and placements count, so the program has a choice for each running GPU - which of its placed partitions it
gets - and for each running segment whether it stays. What is new is counted by kinds, as in
:mod:`mig_opt.models.serving.exact`.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping

from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuPlacement, Placement, ProfileSet
from mig_opt.method.control import Control, Limits
from mig_opt.models.serving.day_counts import Counts, DayProblem
from mig_opt.models.serving.fleet_rows import serve
from mig_opt.models.solvers.backend import Backend, Values, solve_program
from mig_opt.models.solvers.highs import highs_or_cbc
from mig_opt.models.solvers.linear import LinearProgram, Term, Variable
from mig_opt.serving.bounds import Relaxation
from mig_opt.serving.demand import ENOUGH, Demand, Option
from mig_opt.serving.deployment import Deployment, Segment, segment_of

_MOST_CHOICES = 60_000
"""Choices of a partition for a running GPU beyond which the program is not even tried."""


def fewest_changes(
    demand: Demand, relaxation: Relaxation, running: Deployment, control: Control[Deployment], backend: Backend
) -> bool:
    """Report a deployment of fewest changes among those as good as the best; return whether that is proven.

    The incumbent is proven to have least cost and fewest GPUs and slices, and every service has an option.
    """
    assert control.goals is not None
    if control.expired:
        return False
    program = ChangeProgram(demand, relaxation, running)
    if program.choices > _MOST_CHOICES:
        return False
    cost, gpus, slices, changes = control.goals
    program.limit(cost, int(gpus), int(slices), int(changes) - 1)

    def report(values: Values) -> None:
        if (deployment := program.deployment(values)) is not None:
            control.report_plan(deployment)

    outcome = solve_program(program.linear.program, backend, control, on_solution=report)
    return outcome.proves(control.goals[-1])


def fewest_new(
    problem: DayProblem,
    step: int,
    before: Deployment,
    counts: Counts,
    control: Limits,
    *,
    known: Deployment,
    least: int,
    share: float,
) -> Deployment:
    """Return a deployment for a step with given numbers of segments of which as few as possible are new.

    ``known`` is a deployment with these numbers after the one ``before``; no such deployment has fewer changes than
    ``least``. The solver may take a ``share`` of the time that is left.
    """
    demand = problem.day.demands[step]
    changes = before.changes_to(known)
    assert demand is not None
    if changes <= least or control.expired:
        return known
    program = ChangeProgram(demand, Relaxation(demand), before)
    if not program.choices:
        return known
    program.fix(
        {
            (service, option.pool, option.profile.name): counts.get((service, kind), 0)
            for service, ways in problem.ways.items()
            for kind, option in ways
        }
    )
    program.limit(known.cost(demand), known.used_gpus, known.compute_slices, changes - 1, least)
    best = known

    def report(values: Values) -> None:
        nonlocal best
        found = program.deployment(values)
        if found is not None and before.changes_to(found) < before.changes_to(best):
            best = found

    solve_program(program.linear.program, highs_or_cbc(), control, share=share, on_solution=report)
    return best


class ChangeProgram:
    """Program that decides on the running segments that stay, the partitions of running GPUs, and the new segments.

    Every service of the demand has an option.
    """

    def __init__(self, demand: Demand, relaxation: Relaxation, running: Deployment) -> None:
        self._demand, self._kinds, self._running = demand, relaxation.kinds, running
        self.linear = LinearProgram("changes")  # with the number of changes as objective
        self._stays: list[tuple[Segment, Variable]] = []
        self._fresh: list[tuple[str, Option, Variable]] = []  # new segments of one service with one option
        self._old: list[tuple[int, tuple[Placement, ...], Variable]] = []
        self._new: list[tuple[str, tuple[Placement, ...], Variable]] = []
        self._gpus = [get_gpu(name).name for name in running.gpus]
        self._services = {service.name: service for service in demand.services}
        self._measured = {
            (table.model, table.gpu, point.size, point.batch, point.processes): (point, table.memory_gb)
            for table in demand.measured
            for point in table.points
        }
        # Instances with media engines and the like are never created, but they may run and stay.
        plain = all(not get_gpu(running.gpus[s.gpu]).profile(s.profile).attributes for s in running.segments)
        profiles: ProfileSet = "double-memory" if plain else "all"
        self._partitions = {packer.gpu.name: packer.gpu.maximal_partitions(profiles) for packer in self._kinds.packers}
        # number of partitions to choose from, over all running GPUs
        self.choices = sum(len(self._partitions.get(name, ())) for name in self._gpus)
        if self.choices <= _MOST_CHOICES:
            self._choose_partitions()
            self._keep_segments()
            self._serve()
            self._fill_instances()

    def _choose_partitions(self) -> None:
        for gpu, name in enumerate(self._gpus):
            mine = [
                (gpu, partition, self.linear.choice(f"gpu_{gpu}_is_{at}"))
                for at, partition in enumerate(self._partitions.get(name, ()))
            ]
            if mine:
                self.linear.at_most(f"one_partition_{gpu}", [(choice, 1) for _, _, choice in mine], 1)
            self._old += mine
        for packer, pool in zip(self._kinds.packers, self._kinds.pools, strict=True):
            name = packer.gpu.name
            # As many as there are running GPUs' worth of everything is more than enough; the goals limit them.
            own = [
                (name, packer.placed(pattern), self.linear.number(f"more_{pool}_{at}", 10**6))
                for at, pattern in enumerate(packer.patterns)
            ]
            count = self._demand.pools[pool].count
            if count is not None:
                used: list[Term] = [(choice, 1) for gpu, _, choice in self._old if self._gpus[gpu] == name]
                self.linear.at_most(f"pool_{pool}", [*used, *((number, 1) for _, _, number in own)], count)
            self._new += own

    def _keep_segments(self) -> None:
        for at, segment in enumerate(self._running.segments):
            measured = self._as_measured(segment)
            if measured is not None:
                stays = self.linear.choice(f"stays_{at}")
                placement = self._running.placement(segment)
                fitting: list[Term] = [
                    (choice, -1)
                    for gpu, partition, choice in self._old
                    if gpu == segment.gpu and placement in partition
                ]
                self.linear.at_most(f"place_for_{at}", [(stays, 1), *fitting], 0)
                self._stays.append((measured, stays))

    def _as_measured(self, segment: Segment) -> Segment | None:
        """Return a running segment with the figures of the demand, whatever it states; None if it must not stay.

        It need not be the best way to fill its instance: to leave it may be better than to change it.
        """
        service, name = self._services.get(segment.service), self._gpus[segment.gpu]
        if service is None or name not in self._partitions:
            return None
        profile = get_gpu(name).profile(segment.profile)
        variant = service.model, name, profile.compute_slices, segment.batch, segment.processes
        if variant not in self._measured:
            return None
        point, memory = self._measured[variant]
        many = self._demand.max_processes is not None and point.processes > self._demand.max_processes
        small = memory is not None and memory > profile.memory_gb
        if many or small or not self._demand.rule.serves(point, service):
            return None
        return dataclasses.replace(segment, throughput=point.throughput, latency=point.latency)

    def _serve(self) -> None:
        staying: dict[str, list[tuple[Segment, Variable]]] = {}
        for segment, stays in self._stays:
            staying.setdefault(segment.service, []).append((segment, stays))
        for row, (service, options) in enumerate(zip(self._demand.services, self._demand.options, strict=True)):
            shares: list[Term] = []
            for option in options:
                number = self.linear.number(f"new_{row}_{self._kinds.index(option)}", 10**6)
                self._fresh.append((service.name, option, number))
                shares.append((number, min(option.point.throughput / service.rate, 1.0)))
            for segment, stays in staying.get(service.name, ()):
                shares.append((stays, min(segment.throughput / service.rate, 1.0)))
            serve(self.linear, str(row), service, shares)

    def _fill_instances(self) -> None:
        """Let the segments of each kind be no more than the instances for them."""
        offers = [*((self._gpus[gpu], partition, choice) for gpu, partition, choice in self._old), *self._new]
        for packer, pool in zip(self._kinds.packers, self._kinds.pools, strict=True):
            name = packer.gpu.name
            for profile in packer.profiles:
                terms: list[Term] = [
                    (number, 1)
                    for _, option, number in self._fresh
                    if option.pool == pool and option.profile == profile
                ]
                terms += [
                    (stays, 1)
                    for segment, stays in self._stays
                    if self._gpus[segment.gpu] == name and segment.profile == profile.name
                ]
                for kind, partition, variable in offers:
                    held = sum(placement.profile == profile for placement in partition) if kind == name else 0
                    if held:
                        terms.append((variable, -held))
                self.linear.at_most(f"instances_{pool}_{profile.name}", terms, 0)

    def fix(self, counts: Mapping[tuple[str, int, str], int]) -> None:
        """Fix the segments of each service, pool and profile; what stays has to be one of the options."""
        pools = {pool.kind.name: number for number, pool in enumerate(self._demand.pools)}
        terms: dict[tuple[str, int, str], list[Term]] = {}
        for service, option, number in self._fresh:
            terms.setdefault((service, option.pool, option.profile.name), []).append((number, 1))
        for segment, stays in self._stays:
            key = segment.service, pools[self._gpus[segment.gpu]], segment.profile
            terms.setdefault(key, []).append((stays, 1))
        for at, (key, own) in enumerate(terms.items()):
            self.linear.equal(f"number_{at}", own, counts.get(key, 0))

    def limit(self, cost: float, gpus: int, slices: int, changes: int, least: int = 0) -> None:
        """Limit cost, GPUs, compute slices and changes, of which there are at ``least`` some."""
        used = [(self._gpus[gpu], variable) for gpu, _, variable in self._old]
        used += [(name, number) for name, _, number in self._new]
        self.linear.at_most("gpus", [(variable, 1) for _, variable in used], gpus)
        costs = self._demand.costs
        if not costs.counted:
            factors = {pool.kind.name: costs.factor(number) for number, pool in enumerate(self._demand.pools)}
            terms = [(variable, factors[name]) for name, variable in used]
            self.linear.at_most("cost", terms, costs.limit(cost, costs.noise))
        sizes: list[Term] = [(number, option.profile.compute_slices) for _, option, number in self._fresh]
        sizes += [
            (stays, get_gpu(self._gpus[segment.gpu]).profile(segment.profile).compute_slices)
            for segment, stays in self._stays
        ]
        self.linear.at_most("slices", sizes, slices)
        total = self.linear.continuous("changes", least, changes)
        every = len(self._running.segments)
        terms = [(number, 1) for _, _, number in self._fresh]
        terms += [(stays, -1) for _, stays in self._stays]
        self.linear.equal("changes_are", [*terms, (total, -1)], -every)
        self.linear.minimise(total)

    def deployment(self, values: Values) -> Deployment | None:
        """Return the deployment of a solution; None if it serves too little within the solver's tolerance."""
        segments = [segment for segment, stays in self._stays if round(values[stays.name])]
        taken = {(segment.gpu, segment.profile, segment.start) for segment in segments}
        gpus = list(self._gpus)
        free: dict[tuple[str, str], deque[GpuPlacement]] = {}
        slots = [(gpu, partition) for gpu, partition, choice in self._old if round(values[choice.name])]
        for name, partition, number in self._new:
            for _ in range(round(values[number.name])):
                slots.append((len(gpus), partition))
                gpus.append(name)
        for gpu, partition in slots:
            for placement in partition:
                if (gpu, placement.profile.name, placement.start) not in taken:
                    free.setdefault((gpus[gpu], placement.profile.name), deque()).append((gpu, placement))
        for service, option, number in self._fresh:
            name = self._demand.pools[option.pool].kind.name
            for _ in range(round(values[number.name])):
                gpu, placement = free[name, option.profile.name].popleft()
                segments.append(segment_of(service, gpu, placement, option))
        found = Deployment(tuple(gpus), tuple(segments))
        return found if min(found.slack(self._demand).values()) >= ENOUGH - 1 else None
