"""Entry point for fragmented fleets: :func:`defragment`."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal, Unpack

from mig_opt.api.defragment.crossing import CrossingSearch, with_crossings
from mig_opt.api.defragment.joined import KindsGoal, KindsPlan, joined_migrations, planned_apart
from mig_opt.api.defragment.plans import Planner
from mig_opt.api.defragment.problem import DefragmentationGoal, FleetMasks, moved_weight
from mig_opt.api.defragment.rounds import rounds_of
from mig_opt.errors import InputError, Problem, problems_of, raise_any
from mig_opt.fleet.migration_plan import DefragmentationResult, MigrationPlan
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.gpu.problems import uncounted
from mig_opt.method.control import Control, run
from mig_opt.method.options import RunKeywords, RunOptions, run_options
from mig_opt.method.registry import Method
from mig_opt.rules import entries_of, is_among, is_listed, wrong_class
from mig_opt.validation.fleet.migrations import limit_problems, validate_migrations

_ROUNDING = 1e-9

_METHOD = Method(
    "defragment",
    "exact",
    "columns of GPU states by integer programming, then an order of the migrations",
    "this package",
    "mig_opt.api.defragment.plans:Planner",
    packages=("highspy", "pulp"),
)


def defragment(
    state: FleetState,
    room: Iterable[str] | None = None,
    *,
    fragmentation: float | None = None,
    free: Literal["gpus", "nodes"] | None = None,
    within_gpus: bool = False,
    most_migrations: int | None = None,
    per_owner: int | None = None,
    time_limit: float | None = None,
    **options: Unpack[RunKeywords],
) -> DefragmentationResult:
    """Find the fewest migrations that make room for profiles, free GPUs or nodes, or leave the least fragmentation.

    A migration creates a replica on a free place beside everything that is there, and then destroys the old instance,
    so nothing is ever interrupted. The migrations of a plan are in an order in which each can be done, one after the
    other; where an instance has to make a detour over a third place, that is two migrations.

    Of a single GPU, and if instances stay on their GPUs, every sequence of migrations is taken into account. Else an
    integer program finds what the fleet should look like at the end, which bounds the migrations from below,
    and then an order is looked for that takes no more; if there is none, a small fleet is searched state by state.
    Where that leaves a doubt the status is ``feasible``, and ``lower_bound`` says how much might be saved at most.

    Where instances have weights, the sum of these is least, not the number of migrations; weights do not count on the
    only GPU of a kind, nor if instances stay on their GPUs.

    GPUs of several kinds are planned apart: an instance stays on GPUs of its kind. A goal that they have in common,
    such as room for a profile that several kinds have, is shared among them in the best way. Where the state says which
    profiles jobs may have ``elsewhere``, these may move to other kinds: a small fleet is searched state by state, which
    is exact; in a larger one plans may begin with such migrations, which proves nothing.

    Parameters
    ----------
    state : FleetState
        What there is. Idle instances are left out: whoever migrates destroys those that are in the way.
    room : iterable of str, optional
        Profiles of instances that it must be possible to create, all of them together; one that comes twice counts
        twice. By default the goal is the least mean fragmentation of the GPUs.
    fragmentation : float, optional
        In place of ``room``: the mean fragmentation that is low enough.
    free : str, optional
        In place of ``room``: ``gpus`` or ``nodes``, of which as many as possible are to be free.
    within_gpus : bool
        Whether instances stay on their GPUs.
    most_migrations : int, optional
        How many migrations there may be.
    per_owner : int, optional
        How many instances of one owner may migrate at a time. Disruption budgets of the state hold, too.
    time_limit : float, optional
        Seconds; by default the run takes as long as it needs.
    **options
        The other :class:`~mig_opt.method.options.RunOptions`, as for :func:`mig_opt.solve`. The objective is the mean
        fragmentation, with ``free`` the number of GPUs or nodes that are not free, or if room was asked for the number
        of migrations; with a ``gap`` of 0, fewer migrations are looked for even where nothing has less fragmentation.
        One thread is used today.

    Returns
    -------
    DefragmentationResult
        Its plan has passed the validator.

    Raises
    ------
    InputError
        If an argument is wrong, with all that is.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> state = FleetState(get_gpu("A100"), 1, (HeldInstance(0, "1g.5gb", 0, "a"), HeldInstance(0, "2g.10gb", 4, "b")))
    >>> result = defragment(state, ["4g.20gb"])
    >>> result.status.value, [str(migration) for migration in result.migrations]
    ('optimal', ['1g.5gb@0 of GPU 0 to 6 of GPU 0'])
    """
    limits: dict[str, Any] = {
        "fragmentation": fragmentation,
        "within_gpus": within_gpus,
        "most_migrations": most_migrations,
        "per_owner": per_owner,
    }
    room = tuple(room) if is_listed(room) else room  # it may be an iterator
    problems = [*_wrong_state(state)] if state is None else []
    problems += defragment_problems(state, room, free=free, **limits)
    settings = run_options(also=problems, time_limit=time_limit, **options)
    state = state.busy()
    kinds = dict.fromkeys(map(state.kind, range(state.gpus)))
    raise_any(uncounted((profile for kind in kinds for profile in kind.profiles), single=True))
    if state.gpu is None:
        return _of_kinds(state, Counter(room or ()), free, limits, settings)
    units = len(set(state.nodes)) if free == "nodes" else state.gpus
    wanted = Counter(() if room is None else room)
    fleet = FleetMasks.of(state, wanted, by_node=free == "nodes")
    geometry = fleet.geometry
    most_cost = None
    if fragmentation is not None:
        # The validator allows for as much rounding.
        most_cost = math.floor((fragmentation + _ROUNDING) * geometry.unit * state.gpus)
    profiles = tuple(geometry.profile_index(state.gpu.profile(name)) for name in wanted)
    goal = DefragmentationGoal(geometry, profiles, tuple(wanted.values()), most_cost, free is not None)

    def worth(plan: MigrationPlan) -> tuple[float, ...]:
        cost = units - len(plan.free) if free else plan.fragmentation
        return (cost, plan.weight) if goal.least else (plan.weight,)

    def report() -> None:
        found = planner.found
        if found.infeasible:
            control.report_infeasible(found.infeasible)
        least = found.least_cost if free else fleet.mean(found.least_cost)
        control.raise_bound(least if goal.least else found.lower_bound)
        if found.moves is not None:
            migrations = fleet.migrations(state, found.moves)
            room = goal.places(found.masks) or ()
            mean = fleet.mean(fleet.cost(found.masks))
            plan = _plan(state, migrations, room, mean, found.weight, free=free, per_owner=per_owner)
            control.report_plan(plan)

    def facts(_: MigrationPlan | None) -> dict[str, Any]:
        found = planner.found
        return {
            # The bound of the run may be one on the fragmentation; that of the result is one on the migrations.
            "lower_bound": 0 if found.infeasible else found.lower_bound,
            "proven": planner.proven,
            "fragmentation_before": fleet.mean(fleet.cost(fleet.masks)),
            "least_fragmentation": fleet.mean(found.least_cost) if goal.least and not free else 0.0,
            "most_free": units - found.least_cost if free else 0,
        }

    control = Control[MigrationPlan](settings, judge=worth)
    planner = Planner(fleet, goal, within=within_gpus, most_moves=most_migrations, limits=control, report=report)

    def optimal() -> bool:
        return "migrations" in planner.proven

    return _run(state, control, planner.run, facts, room=wanted, free=free, limits=limits, optimal=optimal)


def _of_kinds(
    state: FleetState,
    room: Counter[str],
    free: Literal["gpus", "nodes"] | None,
    limits: dict[str, Any],
    settings: RunOptions,
) -> DefragmentationResult:
    """Return the outcome for GPUs of several kinds."""
    gpus = [own for _, own in state.parts()]
    units = len(set(state.nodes)) if free == "nodes" else state.gpus
    least = not room and limits["fragmentation"] is None
    control = Control[MigrationPlan](
        settings, judge=lambda plan: (units - len(plan.free) if free else plan.fragmentation * least, plan.weight)
    )
    most = limits["most_migrations"]
    goal = KindsGoal(room, limits["fragmentation"], free, most, state.gpus, lambda: control.expired)
    found = KindsPlan((), exact=False)
    search = CrossingSearch(state, goal)
    crosses = not limits["within_gpus"] and search.crosses

    def plan_part(
        part: FleetState, room: Counter[str] | None = None, most_migrations: int | None = None
    ) -> DefragmentationResult:
        names = list(room.elements()) if room else None
        one = {**limits, "fragmentation": None, "most_migrations": most_migrations, "free": None if names else free}
        return defragment(part, names, **one, **control.inner()).uninterrupted()

    def offer(migrations: Sequence[Migration], places: Sequence[tuple[int, str, int]]) -> None:
        weights = {(held.gpu, held.profile, held.start): held.weight for held in state.instances}
        steps = (((s.gpu, s.profile, s.start), (s.to_gpu, s.new_profile, s.to_start)) for s in migrations)
        weight = len(migrations) if limits["within_gpus"] else moved_weight(weights, steps)
        mean = _fragmentation(state.after(migrations))
        plan = _plan(state, migrations, places, mean, weight, free=free, per_owner=limits["per_owner"])
        control.report_plan(plan)

    def apart(begin: Sequence[Migration] = ()) -> KindsPlan:
        """Plan each kind apart after some migrations."""
        plans = planned_apart([part for part, _ in state.after(begin).parts()], goal.after(len(begin)), plan_part)
        if plans.results:
            pairs = list(zip(plans.results, gpus, strict=True))
            places = [(own[gpu], profile, start) for each, own in pairs for gpu, profile, start in each.room]
            offer([*begin, *joined_migrations((each.migrations for each in plans.results), gpus)], places)
        return plans

    def work() -> None:
        nonlocal found
        if (crosses or any(held.weight > 1 for held in state.instances)) and (reason := search.refuted(control)):
            control.report_infeasible(reason)
            return
        found = apart()
        # On the only GPU of a kind plans count migrations, whatever their weights: that is never more than these.
        counted = sum(result.objective or 0 for result in found.results)
        uncounted = control.plan is not None and bool(found.results) and control.plan.weight != counted
        if crosses or uncounted:
            searched = with_crossings(search, control, offer, apart)
            found = searched if crosses or searched.exact else dataclasses.replace(found, exact=False)
        if found.infeasible:
            control.report_infeasible(found.infeasible)

    def facts(plan: MigrationPlan | None) -> dict[str, Any]:
        exact = plan is not None and found.exact
        goals = (*["free" if free else "fragmentation"] * least, "migrations")
        most_free = sum(result.most_free for result in found.results) if found.results else units - int(found.least)
        return {
            "lower_bound": plan.weight if plan and exact else 0,
            "proven": goals if exact else (),
            "fragmentation_before": _fragmentation(state),
            "least_fragmentation": found.least if least and not free else 0.0,
            "most_free": most_free if free else 0,
        }

    return _run(state, control, work, facts, room=room, free=free, limits=limits, optimal=lambda: found.exact)


def _run(
    state: FleetState,
    control: Control[MigrationPlan],
    work: Callable[[], None],
    facts: Callable[[MigrationPlan | None], dict[str, Any]],
    *,
    room: Counter[str],
    free: Literal["gpus", "nodes"] | None,
    limits: dict[str, Any],
    optimal: Callable[[], bool],
) -> DefragmentationResult:
    """Run a search and check its plan; return the outcome, with the facts about a plan that are known then."""

    def violations(plan: MigrationPlan) -> Sequence[object]:
        validation = validate_migrations(state, plan.migrations, room=plan.room, rounds=plan.rounds, **limits)
        found: list[object] = [*validation.violations]
        if abs(validation.fragmentation - plan.fragmentation) > _ROUNDING:
            found.append(f"the fragmentation is {validation.fragmentation}, not {plan.fragmentation} as stated")
        return [*found, *_wrong_statements(state, plan, facts(plan)["lower_bound"], room, free)]

    def make_result(*, plan: MigrationPlan | None, reason: str, **known: Any) -> DefragmentationResult:
        return DefragmentationResult(
            plan=plan,
            reason="" if plan else reason,
            state=state,
            freeing=free or "",
            free_before=state.free(free) if free else (),
            **{**known, **facts(plan)},
        )

    return run(
        control,
        state,
        _METHOD,
        work,
        violations=violations,
        optimal=optimal,
        same=lambda bound, value: bound - value <= _ROUNDING,
        make_result=make_result,
    )


def _plan(
    state: FleetState,
    migrations: Sequence[Migration],
    room: Sequence[tuple[int, str, int]],
    fragmentation: float,
    weight: int,
    *,
    free: str | None,
    per_owner: int | None,
) -> MigrationPlan:
    rounds = rounds_of(state, migrations, per_owner)
    after = state.after(migrations).free(free) if free else ()
    return MigrationPlan(
        tuple(migrations), room=tuple(room), rounds=rounds, free=after, fragmentation=fragmentation, weight=weight
    )


def _fragmentation(state: FleetState) -> float:
    parts = (FleetMasks.of(part) for part, _ in state.parts())
    return float(sum(Fraction(part.cost(part.masks), part.geometry.unit) for part in parts) / state.gpus)


def _wrong_statements(
    state: FleetState, plan: MigrationPlan, bound: int, wanted: Counter[str], free: str | None
) -> Iterator[str]:
    """Yield what a plan states about itself and is not so, beside what the validator says about it."""
    if Counter(profile for _, profile, _ in plan.room) != wanted:
        yield f"there is room for other instances than wanted: {plan.room}"
    if plan.weight < bound:
        yield f"its migrations have less weight than the lower bound, {bound}"
    if free and plan.free != state.after(plan.migrations).free(free):
        yield f"other {free} are free in the end than stated"


def _wrong_state(state: object) -> Iterator[Problem]:
    return wrong_class("state", state, FleetState, "read(FleetState, 'fleet.json')")


def defragment_problems(
    state: object = None, room: object = None, *, free: object = None, **limits: object
) -> list[Problem]:
    """Return what is wrong with arguments of :func:`defragment`, whatever their type; None is not looked at."""
    problems = [] if state is None else [*_wrong_state(state)]
    if room is not None:
        problems += _room_problems(state, room)
    low_enough = limits.get("fragmentation") is not None
    if room is not None and low_enough:
        problems.append(Problem("fragmentation", "is another goal than room; give one of the two"))
    problems += limit_problems(**limits)
    if free is None:
        return problems
    if not is_among(free, ("gpus", "nodes")):
        problems.append(Problem("free", f"must be gpus or nodes, is {free!r:.60}"))
    elif room is not None or low_enough:
        problems.append(Problem("free", "is a goal of its own; give no room and no fragmentation"))
    elif free == "nodes" and isinstance(state, FleetState) and not state.nodes:
        problems.append(Problem("free", "the state does not say which GPUs are on which node; add its nodes"))
    elif free == "nodes" and isinstance(state, FleetState) and (mixed := _mixed_node(state)):
        problems.append(Problem("free", f"node {mixed} has GPUs of several kinds; free GPUs, or plan for one kind"))
    elif limits.get("within_gpus") is True:
        problems.append(Problem("within_gpus", f"leaves no way to free {free}; leave one of the two out"))
    return problems


def _mixed_node(state: FleetState) -> str:
    """Return a node that has GPUs of several kinds; empty if there is none."""
    pairs = dict.fromkeys(zip(state.nodes, state.names, strict=True))
    return next((node for node, count in Counter(node for node, _ in pairs).items() if count > 1), "")


def _room_problems(state: object, room: object) -> Iterator[Problem]:
    try:
        names = entries_of("room", room, str, "the name of a profile")
    except InputError as error:
        yield from error.problems
        return
    if not names:
        yield Problem("room", "names no profile; leave it out for least fragmentation")
    if isinstance(state, FleetState):
        kinds = tuple(dict.fromkeys(map(state.kind, range(state.gpus))))
        for index, name in enumerate(names):
            wrong = [problems_of(kind.profile, name) for kind in kinds]
            if all(wrong):
                yield Problem(f"room[{index}]", "; ".join(problem.message for own in wrong for problem in own))
