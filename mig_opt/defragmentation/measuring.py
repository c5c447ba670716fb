"""How little fragmentation there could be: what schedulers are measured against."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from functools import lru_cache

from mig_opt.arguments import wrong_type
from mig_opt.control import Limits
from mig_opt.defragmentation.fleet import Fleet, layouts_of
from mig_opt.errors import InputError
from mig_opt.fleet.log import Log
from mig_opt.fleet.state import FleetState
from mig_opt.gpu.model import GpuModel, ProfileSet
from mig_opt.models.fleet.defragmentation import Column, Task, choose
from mig_opt.simulation.metrics import fragmentation_series


def least_fragmentation(state: FleetState) -> float:
    """Return the least mean fragmentation that any arrangement of the instances on the GPUs has.

    It is how low migrations between GPUs could bring it, if there is always a free place to migrate to: the measure
    for a scheduler. Only pinned instances stay where they are. What is found is kept, and depends only on how many
    instances of which profile there are.

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
    if not isinstance(state, FleetState):
        raise InputError([wrong_type("state", state, "a FleetState, for example read_state('fleet.json')")])
    fleet = Fleet.of(state)
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
    geometry, gpus = log.geometry, log.trace.gpus
    changes: dict[float, Counter[int]] = defaultdict(Counter)
    for place, begin, end in zip(log.run_placement, log.run_begin, log.run_end, strict=True):
        changes[begin][geometry.profile_of[place]] += 1
        changes[end][geometry.profile_of[place]] -= 1
    profiles: ProfileSet = "double-memory"
    if len(geometry.profiles) != len(log.trace.gpu.profiles_of(profiles)):
        profiles = "all"
    held, area = Counter(range(0)), 0.0
    moments, levels = fragmentation_series(log)
    for (moment, level), (until, _) in itertools.pairwise(zip(moments, levels, strict=True)):
        held.update(changes[moment])
        totals = tuple(held[profile] for profile in range(len(geometry.profiles)))
        least = _least_cost(log.trace.gpu, profiles, ((0, gpus),), totals) / geometry.unit / gpus
        area += (level - least) * (until - moment)
    return area / moments[-1] if moments[-1] > 0 else 0.0


@lru_cache(maxsize=65536)
def _least_cost(
    gpu: GpuModel, profiles: ProfileSet, groups: tuple[tuple[int, int], ...], totals: tuple[int, ...]
) -> int:
    columns: list[Column] = []
    for group, (pinned, _) in enumerate(groups):
        best: dict[tuple[int, ...], Column] = {}
        for layout in layouts_of(gpu, profiles):
            if layout.mask & pinned == pinned and all(map(int.__le__, layout.counts, totals)):
                known = best.get(layout.counts)
                if known is None or layout.cost < known.cost:
                    best[layout.counts] = Column(group, layout.mask, layout.counts, 0, 0, layout.cost)
        columns += best.values()
    task = Task(tuple(size for _, size in groups), totals)
    return choose(columns, task, Limits(), "cost").cost
