"""The functions for users."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from mig_opt.arguments import entries_of, wrong_flag, wrong_integer, wrong_number, wrong_share, wrong_type
from mig_opt.control import Limits
from mig_opt.defragmentation.planning import MigrationIncumbent, Planner
from mig_opt.defragmentation.problem import DefragmentationGoal, FleetMasks
from mig_opt.errors import InputError, Problem, SolverError
from mig_opt.fleet.state import FleetState
from mig_opt.result import DefragmentationResult, Status
from mig_opt.solving import versions_with
from mig_opt.validation import validate_migrations

_ROUNDING = 1e-9
_MOST = 1_000_000


def defragment(
    state: FleetState,
    room: Iterable[str] | None = None,
    *,
    fragmentation: float | None = None,
    within_gpus: bool = False,
    most_migrations: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> DefragmentationResult:
    """Find the fewest migrations that make room for profiles, or that leave the least fragmentation.

    A migration creates a replica on a free place beside everything that is there, and then destroys the old instance,
    so nothing is ever interrupted. The migrations of a plan are in an order in which each can be done, one after the
    other; where an instance has to make a detour over a third place, that is two migrations.

    Of a single GPU, and if instances stay on their GPUs, every sequence of migrations is taken into account. Else an
    integer program finds what the fleet should look like at the end, which takes at least so many migrations, and then
    an order is looked for that takes no more; if there is none, a small fleet is searched state by state. Where that
    leaves a doubt the status is ``feasible``, and ``lower_bound`` says how much might be saved at most.

    Parameters
    ----------
    state : FleetState
        What there is.
    room : iterable of str, optional
        Profiles of instances that it must be possible to create, all of them together; one that comes twice counts
        twice. By default the goal is the least mean fragmentation of the GPUs.
    fragmentation : float, optional
        In place of ``room``: the mean fragmentation that is low enough.
    within_gpus : bool
        Whether instances stay on their GPUs.
    most_migrations : int, optional
        How many migrations there may be.
    time_limit : float, optional
        Seconds; by default the run takes as long as it needs.
    seed : int
        Seed of the solver.

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
    check_defragment_options(
        state,
        room,
        fragmentation=fragmentation,
        within_gpus=within_gpus,
        most_migrations=most_migrations,
        time_limit=time_limit,
        seed=seed,
    )
    limits = Limits(time_limit, seed)
    wanted = Counter(() if room is None else room)
    plain = {profile.name for profile in state.gpu.profiles_of("double-memory")}
    fleet = FleetMasks.of(state, all_profiles=not plain.issuperset(wanted))
    geometry = fleet.geometry
    most_cost = None
    if fragmentation is not None:
        # The validator allows for as much rounding.
        most_cost = math.floor((fragmentation + _ROUNDING) * geometry.unit * state.gpus)
    profiles = tuple(geometry.profile_index(state.gpu.profile(name)) for name in wanted)
    goal = DefragmentationGoal(geometry, profiles, tuple(wanted.values()), most_cost)
    planner = Planner(fleet, goal, within=within_gpus, most_moves=most_migrations, limits=limits)
    status: Status | None = None
    try:
        planner.run()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    result = _conclude(state, planner, limits, status)
    _verify(result, wanted, within_gpus=within_gpus, most_migrations=most_migrations, fragmentation=fragmentation)
    return result


def check_defragment_options(
    state: object = None,
    room: object = None,
    *,
    fragmentation: object = None,
    within_gpus: object = False,
    most_migrations: object = None,
    time_limit: object = None,
    seed: object = 0,
) -> None:
    """Refuse arguments that :func:`defragment` cannot work with; those left out are not looked at.

    Raises
    ------
    InputError
        With every problem.
    """
    problems: list[Problem] = []
    if state is not None and not isinstance(state, FleetState):
        problems.append(wrong_type("state", state, "a FleetState, for example read_state('fleet.json')"))
    if room is not None:
        try:
            names = entries_of("room", room, str, "the name of a profile")
        except InputError as error:
            problems += error.problems
        else:
            problems += _room_problems(state, names)
    if fragmentation is not None:
        problems += wrong_share("fragmentation", fragmentation)
        if room is not None:
            problems.append(Problem("fragmentation", "is another goal than room; give one of the two"))
    problems += wrong_flag("within_gpus", within_gpus)
    if most_migrations is not None:
        problems += wrong_integer("most_migrations", most_migrations, 0, _MOST)
    if time_limit is not None:
        problems += wrong_number("time_limit", time_limit, "a finite number of seconds > 0", above=0)
    problems += wrong_integer("seed", seed, 0, 2**31 - 1)
    if problems:
        raise InputError(problems)


def _room_problems(state: object, names: tuple[str, ...]) -> list[Problem]:
    if not names:
        return [Problem("room", "names no profile; leave it out for least fragmentation")]
    problems = []
    for index, name in enumerate(names if isinstance(state, FleetState) else ()):
        try:
            state.gpu.profile(name)  # type: ignore[attr-defined]  # there are names only for a FleetState
        except InputError as error:
            problems += [Problem(f"room[{index}]", problem.message) for problem in error.problems]
    return problems


def _conclude(state: FleetState, planner: Planner, limits: Limits, status: Status | None) -> DefragmentationResult:
    fleet, goal, found = planner.fleet, planner.goal, planner.found
    proven = _proven(goal, found)
    if status is None:
        if found.moves is None:
            status = Status.INFEASIBLE if found.infeasible else Status.NO_SOLUTION
        else:
            status = Status.OPTIMAL if "migrations" in proven else Status.FEASIBLE
    migrations = None if found.moves is None else fleet.migrations(state, found.moves)
    room: tuple[tuple[int, str, int], ...] = ()
    if migrations is not None and goal.wanted:
        places = goal.places(found.masks) or []
        where = [(gpu, fleet.geometry.placements[place]) for gpu, place in places]
        room = tuple((gpu, placement.profile.name, placement.start) for gpu, placement in where)
    return DefragmentationResult(
        status=status,
        state=state,
        migrations=migrations,
        lower_bound=found.lower_bound if not found.infeasible else 0,
        fragmentation_before=fleet.mean(fleet.cost(fleet.masks)),
        least_fragmentation=fleet.mean(found.least_cost) if goal.least else 0.0,
        fragmentation=None if found.moves is None else fleet.mean(found.cost),
        room=room,
        reason=found.infeasible if found.moves is None else "",
        runtime_s=limits.seconds,
        proven=proven,
        seed=limits.seed,
        versions=versions_with(("highspy", "pulp")),
    )


def _proven(goal: DefragmentationGoal, found: MigrationIncumbent) -> tuple[str, ...]:
    if found.moves is None or (goal.least and found.cost > found.least_cost):
        return ()
    fewest = ("migrations",) if len(found.moves) <= found.lower_bound else ()
    return (*(("fragmentation",) if goal.least else ()), *fewest)


def _verify(
    result: DefragmentationResult,
    wanted: Counter[str],
    *,
    within_gpus: bool,
    most_migrations: int | None,
    fragmentation: float | None,
) -> None:
    if result.migrations is None:
        return
    found = validate_migrations(
        result.state,
        result.migrations,
        room=result.room,
        fragmentation=fragmentation,
        within_gpus=within_gpus,
        most_migrations=most_migrations,
    )
    if not found.valid:
        raise SolverError(f"defragment found an invalid plan: {found.violations[0]}")
    if Counter(profile for _, profile, _ in result.room) != wanted:
        raise SolverError(f"defragment found room for other instances than wanted: {result.room}")
    if result.fragmentation is None or abs(found.fragmentation - result.fragmentation) > _ROUNDING:
        raise SolverError(f"defragment states a fragmentation of {result.fragmentation}, it is {found.fragmentation}")
    if len(result.migrations) < result.lower_bound or result.fragmentation < result.least_fragmentation - _ROUNDING:
        raise SolverError("defragment states a bound that its own plan breaks")
