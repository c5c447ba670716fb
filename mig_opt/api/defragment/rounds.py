"""Migrations in rounds: those of a round are done together, with a limit on those of one owner."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from mig_opt.fleet.state import FleetState, Migration
from mig_opt.gpu.model import OperationCosts, Placement


def rounds_of(state: FleetState, migrations: Sequence[Migration], per_owner: int | None = None) -> tuple[int, ...]:
    """Return the round of each migration, from 1: the earliest that its place and its owner allow.

    ``migrations`` are in an order in which each can be done; ``per_owner`` limits those of an owner in a round, and so
    does the disruption budget of the owner in the state, if it has one.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> held = [HeldInstance(0, "1g.5gb", start, f"web-{start}", owner="web") for start in (0, 1)]
    >>> state = FleetState(get_gpu("A100"), 2, tuple(held))
    >>> steps = [Migration(0, "1g.5gb", start, 1, start, f"web-{start}", "web") for start in (0, 1)]
    >>> rounds_of(state, steps), rounds_of(state, steps, per_owner=1)
    ((1, 1), (1, 2))
    """
    found: list[int] = []
    taken: Counter[tuple[str, int]] = Counter()
    made: dict[tuple[int, str, int], int] = {}  # the round in which an instance was created
    left: defaultdict[int, list[tuple[Placement, int]]] = defaultdict(list)  # the places that a GPU lost, with rounds
    for step in migrations:
        place = state.kind(step.to_gpu).placement(step.new_profile, step.to_start)
        source = state.kind(step.gpu).placement(step.profile, step.start)
        waits = [number for other, number in left[step.to_gpu] if place.excludes(other)]
        number = 1 + max(waits, default=0)
        number = max(number, 1 + made.get((step.gpu, step.profile, step.start), 0))
        owner = step.owner or step.name
        limits = [state.budgets.get(owner), per_owner if step.owner else None]
        most = min((limit for limit in limits if limit is not None), default=len(migrations))
        while taken[owner, number] >= most:
            number += 1
        taken[owner, number] += 1
        found.append(number)
        made[step.to_gpu, step.new_profile, step.to_start] = number
        left[step.gpu].append((source, number))
    return tuple(found)


def seconds_of(
    state: FleetState, rounds: Iterable[Iterable[Migration]], operations: OperationCosts | None = None
) -> float:
    """Return the seconds that the operations of migrations take, round after round; by default by the driver's costs.

    In a round GPUs work beside each other, and each does one operation at a time: an old instance is destroyed once the
    new one exists and both GPUs have time. What runs on the instances begins and ends in no time.

    Examples
    --------
    >>> from mig_opt import get_costs, get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> held = [HeldInstance(0, "1g.5gb", start, f"web-{start}") for start in (0, 1)]
    >>> state = FleetState(get_gpu("A100"), 2, tuple(held))
    >>> steps = [Migration(0, "1g.5gb", start, 1, start, f"web-{start}") for start in (0, 1)]
    >>> seconds_of(state, [steps], get_costs("nvidia-smi", "A100"))
    3.0
    >>> seconds_of(state, [[step] for step in steps], get_costs("nvidia-smi", "A100"))
    4.0
    """
    now = 0.0
    for migrations in rounds:
        free: dict[int, float] = {}
        made = []
        for step in migrations:
            kind, to_kind = state.kind(step.gpu), state.kind(step.to_gpu)
            create = (operations or to_kind.operation_costs).of("create", to_kind.profile(step.new_profile))
            destroy = (operations or kind.operation_costs).of("destroy", kind.profile(step.profile))
            free[step.to_gpu] = free.get(step.to_gpu, now) + create
            made.append((free[step.to_gpu], step.gpu, destroy))
        for ready, gpu, destroy in made:
            free[gpu] = max(free.get(gpu, now), ready) + destroy
        now = max(free.values(), default=now)
    return now
