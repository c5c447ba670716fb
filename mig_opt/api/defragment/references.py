"""References for schedulers and plans: the greedy migration rules of a paper, and the least fragmentation."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from functools import lru_cache

from mig_opt.api.defragment.joined import joined_migrations
from mig_opt.api.defragment.problem import FleetMasks, Relocation, least_costs
from mig_opt.errors import InputError, raise_any
from mig_opt.fleet.log import Log
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.gpu.geometry import members
from mig_opt.gpu.model import GpuModel, ProfileSet
from mig_opt.heuristics.fleet.fragmentation_aware import FragmentationAware
from mig_opt.method.control import Limits
from mig_opt.models.fleet.defragmentation import TargetColumn, TargetProblem, choose_targets
from mig_opt.rules import wrong_class, wrong_type
from mig_opt.simulation.fleet.instances import GpuStates
from mig_opt.simulation.fleet.metrics import fragmentation_series


def greedy_migrations(state: FleetState, threshold: float = 0.4) -> tuple[Migration, ...]:
    """Return the migrations of the fragmentation-aware scheduler if a job departs from each GPU, one by one.

    The rules are those of the paper, section IV-D, GPU by GPU: within a busy one single migrations that lower its
    fragmentation most, to a lazy one jobs of busy ones with more load. A GPU is busy from the ``threshold`` on, a share
    of its compute slices. States with pinned instances are refused.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> held = HeldInstance(0, "2g.10gb", 2), HeldInstance(0, "1g.5gb", 0), HeldInstance(0, "1g.5gb", 6)
    >>> [str(migration) for migration in greedy_migrations(FleetState(get_gpu("A100"), 1, held))]
    ['1g.5gb@6 of GPU 0 to 1 of GPU 0']
    """
    if not isinstance(state, FleetState) or any(held.pinned for held in state.instances):
        raise InputError([wrong_type("state", state, "a FleetState without pinned instances")])
    if state.gpu is None:
        parts, gpus = zip(*state.parts(), strict=True)
        return tuple(joined_migrations((greedy_migrations(part, threshold) for part in parts), gpus))
    fleet = FleetMasks.of(state)
    return fleet.migrations(state, greedy_moves(fleet, threshold))


def greedy_moves(fleet: FleetMasks, threshold: float = 0.4) -> list[Relocation]:
    """Return the migrations of :func:`greedy_migrations` in numbers."""
    fixed = _FixedJobs(fleet)
    rules = FragmentationAware(threshold=threshold)
    rules.watch(fixed)
    for gpu in range(len(fleet.masks)):
        rules.migrate_to_repair(fixed, gpu)
    return fixed.moves


class _FixedJobs(GpuStates):
    """A fleet of jobs that never end, whose migrations take no time."""

    def __init__(self, fleet: FleetMasks) -> None:
        super().__init__(fleet.geometry, fleet.masks)
        self.moves: list[Relocation] = []
        self._places = [(gpu, place) for gpu, mask in enumerate(fleet.masks) for place in members(mask)]
        self._jobs = {place: job for job, place in enumerate(self._places)}

    def job_at(self, gpu: int, placement: int) -> int | None:
        return self._jobs.get((gpu, placement))

    def movable(self, job: int) -> bool:
        return job < len(self._places)

    def migrate(self, job: int, gpu: int, placement: int) -> None:
        source, target = self._places[job], (gpu, placement)
        self.moves.append(Relocation(source, target))
        del self._jobs[source]
        self._places[job] = target
        self._jobs[target] = job
        self._become(source[0], self.states[source[0]].busy & ~(1 << source[1]), 0)
        self._become(gpu, self.states[gpu].busy | 1 << placement, 0)


def least_fragmentation(state: FleetState) -> float:
    """Return the least mean fragmentation that any arrangement of the instances on the GPUs has.

    Migrations between GPUs could bring the fragmentation down to it, if there is always a free place to migrate to: the
    measure for a scheduler. Only pinned instances stay where they are. Results are kept, and depend only on the number
    of instances of each profile.

    Raises
    ------
    InputError
        If it is no FleetState.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> state = FleetState(get_gpu("A100"), 1, (HeldInstance(0, "2g.10gb", 0), HeldInstance(0, "1g.5gb", 5)))
    >>> least_fragmentation(state)  # 2g@4 and 1g@6, so that 4g, 3g, 2g (two of them) and 1g (four) find room
    0.0
    """
    raise_any(wrong_class("state", state, FleetState, "read(FleetState, 'fleet.json')"))
    if state.gpu is None:
        return sum(least_fragmentation(part) * part.gpus for part, _ in state.parts()) / state.gpus
    fleet = FleetMasks.of(state)
    groups = tuple(sorted(Counter(fleet.pinned).items()))
    return fleet.mean(_least_cost(state.gpu, fleet.profiles, groups, fleet.totals))


def excess_fragmentation(log: Log) -> float:
    """Return by how much the fleet of a simulation was more fragmented than it had to be, as the mean over time.

    At each moment the least is that of :func:`least_fragmentation` for the jobs that run; the scheduler could have
    reached it by migrations between GPUs, if there had always been a free place. Times count from the first second of
    the trace to the last end of a run.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> jobs = Job("a", 0.0, {1: 10.0}, "1g.5gb"), Job("b", 0.0, {2: 10.0}, "2g.10gb")
    >>> trace = Trace(jobs, get_gpu("A100"))
    >>> logs = [simulate(trace, policy).log for policy in ("first-fit", "fragmentation-aware")]
    >>> [round(excess_fragmentation(log), 3) for log in logs]
    [0.244, 0.0]
    """
    raise_any(wrong_class("log", log, Log, "simulate(trace, policy).log"))
    gpu, gpus, (geometry, *_) = log.trace.one_kind, log.trace.gpus, log.geometries
    changes: dict[float, Counter[int]] = defaultdict(Counter)
    for place, begin, end in zip(log.run_placement, log.run_begin, log.run_end, strict=True):
        changes[begin][geometry.profile_of[place]] += 1
        changes[end][geometry.profile_of[place]] -= 1
    profiles: ProfileSet = "double-memory"
    if len(geometry.profiles) != len(gpu.profiles_of(profiles)):
        profiles = "all"
    held, area = Counter(range(0)), 0.0
    moments, levels = fragmentation_series(log)
    for (moment, level), (until, _) in itertools.pairwise(zip(moments, levels, strict=True)):
        held.update(changes[moment])
        totals = tuple(held[profile] for profile in range(len(geometry.profiles)))
        least = _least_cost(gpu, profiles, ((0, gpus),), totals) / geometry.unit / gpus
        area += (level - least) * (until - moment)
    return area / moments[-1] if moments[-1] > 0 else 0.0


@lru_cache(maxsize=65536)
def _least_cost(
    gpu: GpuModel, profiles: ProfileSet, groups: tuple[tuple[int, int], ...], totals: tuple[int, ...]
) -> int:
    """Return the least fragmentation cost of numbers of instances; groups are pinned instances and numbers of GPUs."""
    columns = [
        TargetColumn(group, 0, counts, 0, 0, cost)
        for group, (pinned, _) in enumerate(groups)
        for counts, cost in least_costs(gpu, profiles, pinned).items()
        if all(map(int.__le__, counts, totals))
    ]
    problem = TargetProblem(tuple(size for _, size in groups), totals)
    return choose_targets(columns, problem, Limits(), "cost").cost
