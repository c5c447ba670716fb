"""Validator of migrations: replays them and collects all violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.fleet.state import FleetState, HeldInstance, Migration, moved, profile_on
from mig_opt.gpu.geometry import geometry_of
from mig_opt.gpu.model import Placement
from mig_opt.rules import checked_value, wrong_class, wrong_flag, wrong_integer, wrong_share
from mig_opt.rules.vocabulary import Whole
from mig_opt.texts import plural
from mig_opt.validation.violations import MigrationViolationCode as Code
from mig_opt.validation.violations import Verdict, Violation

_ROUNDING = 1e-9

MOST_MIGRATIONS = 1_000_000
"""Largest limit of migrations; more is taken for a slip of the pen."""

_STAYS = "its job stays on GPUs of its kind, since the state does not say which profile it may have elsewhere"
_LISTS: Mapping[str, Any] = {
    "migrations": tuple[Migration, ...],
    "room": tuple[tuple[int, str, int], ...],
    "rounds": tuple[Annotated[int, Whole(1, MOST_MIGRATIONS)], ...],
}


@dataclass(frozen=True, slots=True)
class MigrationValidation(Verdict):
    """Verdict on the migrations of a plan.

    Attributes
    ----------
    fragmentation : float
        Mean fragmentation cost of the GPUs after the migrations that can be done.
    violations : tuple of Violation
        All violations; empty if the plan is valid.
    """

    fragmentation: float
    violations: tuple[Violation, ...]

    @property
    def _figures(self) -> str:
        return f"fragmentation {self.fragmentation:.3f}"


def validate_migrations(
    state: FleetState,
    migrations: Iterable[Migration],
    *,
    room: Iterable[tuple[int, str, int]] = (),
    fragmentation: float | None = None,
    within_gpus: bool = False,
    most_migrations: int | None = None,
    rounds: Sequence[int] = (),
    per_owner: int | None = None,
) -> MigrationValidation:
    """Check migrations: apply one after the other, then check the limits and the room at the end.

    Parameters
    ----------
    state : FleetState
        The instances before. Idle ones count like others: plans of :func:`mig_opt.defragment` are for ``state.busy()``.
    migrations : iterable of Migration
        In order. One that is impossible is reported and left out.
    room : iterable of (int, str, int)
        GPU, profile and start slice of instances that it must be possible to create afterwards, all of them together.
    fragmentation : float, optional
        The mean fragmentation cost that the GPUs may have afterwards.
    within_gpus : bool
        True if instances have to stay on their GPUs.
    most_migrations : int, optional
        Most migrations that are allowed.
    rounds : sequence of int, optional
        Round of each migration, from 1: those of one are done together, beside everything that is there before it.
    per_owner : int, optional
        Most instances of one owner that may migrate at a time; the disruption budgets of the state hold anyway. Without
        rounds each migration is a time of its own.

    Returns
    -------
    MigrationValidation
        All violations, not only the first.

    Raises
    ------
    InputError
        If an argument is of another kind, with all that are.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> state = FleetState(get_gpu("A100"), 1, (HeldInstance(0, "1g.5gb", 0), HeldInstance(0, "2g.10gb", 4)))
    >>> print(validate_migrations(state, [Migration(0, "1g.5gb", 0, 0, 6)], room=[(0, "4g.20gb", 0)]))
    valid, fragmentation 0.000
    >>> print(validate_migrations(state, [Migration(0, "1g.5gb", 0, 0, 4)]).violations[0])
    migrations[0]: 1g.5gb@4 of GPU 0 shares memory slices with 2g.10gb@4 (instances-overlap)
    """
    wrong = limit_problems(
        fragmentation=fragmentation, within_gpus=within_gpus, most_migrations=most_migrations, per_owner=per_owner
    )
    steps, places, rounds = _checked(wrong, state, migrations=migrations, room=room, rounds=rounds)
    held = _Held(state)
    violations = [
        violation for index, step in enumerate(steps) for violation in held.migrate(f"migrations[{index}]", step)
    ]
    for index, step in enumerate(steps if within_gpus else ()):
        if step.gpu != step.to_gpu:
            message = f"leads from GPU {step.gpu} to GPU {step.to_gpu}, and instances have to stay on their GPUs"
            violations.append(Violation(Code.OTHER_GPU, f"migrations[{index}].to_gpu", message))
    if most_migrations is not None and len(steps) > most_migrations:
        message = f"there are {plural(len(steps), 'migration')}, and {most_migrations} at most are allowed"
        violations.append(Violation(Code.TOO_MANY_MIGRATIONS, "migrations", message))
    violations += _wrong_rounds(state, steps, rounds, per_owner)
    reached = held.fragmentation()
    if fragmentation is not None and reached > fragmentation + _ROUNDING:
        message = f"is {reached:.6g} afterwards, and may be {fragmentation:.6g}"
        violations.append(Violation(Code.TOO_FRAGMENTED, "fragmentation", message))
    for index, (gpu, profile, start) in enumerate(places):
        lacking = held.create(f"room[{index}]", gpu, profile, start)
        violations += [Violation(Code.NO_ROOM, violation.path, violation.message) for violation in lacking]
    return MigrationValidation(reached, tuple(violations))


def _checked(
    wrong: Iterable[Problem], state: object, **given: object
) -> tuple[tuple[Migration, ...], tuple[tuple[int, str, int], ...], tuple[int, ...]]:
    """Return migrations, places of room and rounds as tuples; refuse other kinds, with all that is ``wrong``."""
    problems = [*wrong, *wrong_class("state", state, FleetState)]
    steps, places, rounds = (checked_value(hint, given[name], name, problems) for name, hint in _LISTS.items())
    if rounds and not problems and len(rounds) != len(steps):
        problems.append(Problem("rounds", f"has {len(rounds)} entries for {plural(len(steps), 'migration')}"))
    raise_any(problems)
    return steps, places, rounds


def _wrong_rounds(
    state: FleetState, steps: Sequence[Migration], rounds: Sequence[int], per_owner: int | None
) -> Iterator[Violation]:
    """Yield what is wrong with the rounds: places that are not free at their begin, and limits of owners."""
    held, made = _Held(state), {(step.to_gpu, step.new_profile, step.to_start) for step in steps}
    owner_at = {(one.gpu, one.profile, one.start): (bool(one.owner), one.owner or one.name) for one in state.instances}
    owners = []
    for step in steps:
        owners.append(owner_at.pop((step.gpu, step.profile, step.start), (False, "")))
        owner_at[step.to_gpu, step.new_profile, step.to_start] = owners[-1]
    for number in sorted(set(rounds)):
        together = [index for index, at in enumerate(rounds) if at == number]
        for index in together:
            step = steps[index]
            source = step.gpu, step.profile, step.start
            if source in made and not held.has(step):
                message = (
                    f"cannot be in round {number}: there is no {step.profile}@{step.start} on GPU {step.gpu} before it"
                )
                yield Violation(Code.NOT_TOGETHER, f"migrations[{index}]", message)
        for index in together:
            step = steps[index]
            for violation in held.create(f"migrations[{index}]", step.to_gpu, step.new_profile, step.to_start):
                message = f"cannot be in round {number}: {violation.message}"
                yield Violation(Code.NOT_TOGETHER, violation.path, message)
        for index in together:
            held.remove(steps[index])
        for (named, owner), count in Counter(owners[index] for index in together).items():
            most = min(state.budgets.get(owner, count), per_owner if named and per_owner is not None else count)
            if count > most:
                message = f"{count} instances of {owner} migrate at a time, and {most} may"
                yield Violation(Code.TOO_MANY_OF_OWNER, f"rounds[{number}]", message)


def limit_problems(
    *,
    fragmentation: object = None,
    within_gpus: object = False,
    most_migrations: object = None,
    per_owner: object = None,
) -> Iterator[Problem]:
    """Yield what is wrong with limits of migrations, whatever their type; None is no limit."""
    if fragmentation is not None:
        yield from wrong_share("fragmentation", fragmentation)
    yield from wrong_flag("within_gpus", within_gpus)
    for name, value, least in (("per_owner", per_owner, 1), ("most_migrations", most_migrations, 0)):
        if value is not None:
            yield from wrong_integer(name, value, least, MOST_MIGRATIONS)


class _Held:
    """The instances on the GPUs; None stands for one for which there is room."""

    def __init__(self, state: FleetState) -> None:
        self._state = state
        self._there: list[dict[Placement, HeldInstance | None]] = [{} for _ in range(state.gpus)]
        for held in state.instances:
            self._there[held.gpu][state.kind(held.gpu).placement(held.profile, held.start)] = held

    def migrate(self, path: str, step: Migration) -> Iterator[Violation]:
        """Apply a migration if that is possible; yield what prevents it."""
        source = self._place(step.gpu, step.profile, step.start)
        if source is None or source not in self._there[step.gpu]:
            message = f"there is no {step.profile}@{step.start} on GPU {step.gpu} then"
            yield Violation(Code.NOTHING_THERE, path, message)
            return
        held = self._there[step.gpu][source]
        assert held is not None  # room comes after all migrations
        if self._state.stays(held):
            yield Violation(Code.PINNED, path, f"{source} of GPU {step.gpu} must stay where it is")
            return
        # The replica is created while the old instance exists.
        problems = list(self.create(path, step.to_gpu, step.new_profile, step.to_start))
        if not problems and step.new_profile != (allowed := profile_on(self._state, held, step.to_gpu)):
            self._there[step.to_gpu].popitem()
            kinds = " to ".join(f"{self._state.kind(gpu).name} (GPU {gpu})" for gpu in (step.gpu, step.to_gpu))
            mend = f"its job may have {allowed} there, not {step.new_profile}" if allowed else _STAYS
            problems = [Violation(Code.OTHER_KIND, f"{path}.to_gpu", f"leads from {kinds}; {mend}")]
        yield from problems
        if not problems:
            del self._there[step.gpu][source]
            target = self._state.kind(step.to_gpu).placement(step.new_profile, step.to_start)
            self._there[step.to_gpu][target] = moved(self._state, held, step)

    def has(self, step: Migration) -> bool:
        """Return True if the old instance of a migration is there."""
        source = self._place(step.gpu, step.profile, step.start)
        return source is not None and source in self._there[step.gpu]

    def remove(self, step: Migration) -> None:
        """Destroy the old instance of a migration, if it is there."""
        source = self._place(step.gpu, step.profile, step.start)
        if source is not None:
            self._there[step.gpu].pop(source, None)

    def create(self, path: str, gpu: int, profile: str, start: int) -> Iterator[Violation]:
        """Create an instance if that is possible; yield what prevents it."""
        if not 0 <= gpu < len(self._there):
            message = f"there are {plural(len(self._there), 'GPU')}, numbered from 0; there is no GPU {gpu}"
            yield Violation(Code.UNKNOWN_GPU, path, message)
            return
        placement = self._place(gpu, profile, start)
        if placement is None:
            message = f"{self._state.kind(gpu).name} has no placement {profile}@{start}"
            yield Violation(Code.UNKNOWN_PLACEMENT, path, message)
            return
        there = self._there[gpu]
        obstacles = placement.obstacles(sorted(there, key=lambda other: other.start))
        if not obstacles:
            there[placement] = None
        elif placement.conflicts(obstacles[0]):
            message = f"{placement} of GPU {gpu} shares memory slices with {', '.join(map(str, obstacles))}"
            yield Violation(Code.INSTANCES_OVERLAP, path, message)
        else:
            message = f"GPU {gpu} can have at most {placement.profile.max_count} of {profile}"
            yield Violation(Code.TOO_MANY_INSTANCES, path, message)

    def fragmentation(self) -> float:
        """Return the mean fragmentation cost of the GPUs (the fragmentation-aware paper, equations 3 to 5)."""
        total = Fraction(0)
        for gpu, there in enumerate(self._there):
            tables = geometry_of(self._state.kind(gpu), "all")
            mask = tables.mask(tables.index(place.profile.name, place.start) for place in there)
            total += Fraction(tables.usage(mask).cost, tables.unit)
        return float(total / len(self._there))

    def _place(self, gpu: int, profile: str, start: int) -> Placement | None:
        try:
            return self._state.kind(gpu).placement(profile, start) if 0 <= gpu < len(self._there) else None
        except InputError:
            return None
