"""Checks of values, of the arguments of functions and of the fields of dataclasses, by the rules of the vocabulary.

What is of the wrong type or out of range is one problem with its name as path. Any number that counts as one in Python
is fine, those of NumPy included; ``True`` is no number, whatever Python says. A field holds an ``int`` or a ``float``,
also of a fraction or a decimal. Fields have their rules (:mod:`mig_opt.rules.vocabulary`) in their annotations; texts
and numbers without one are of their types. What values have to do with each other is for the method ``_problems``
of a class: it yields problems, and finds None in place of whatever is wrong by itself.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from numbers import Integral, Real
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, NoReturn, TypeGuard, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as _type_hints

from mig_opt.errors import InputError, Problem, nearest, problems_of, raise_any
from mig_opt.rules.vocabulary import (
    FLAG,
    FROM_0_TO_1,
    Number,
    OfType,
    Rule,
    Wanted,
    Whole,
    is_integer,
    other_type,
    own_number,
)

_Entry = TypeVar("_Entry")

MOST_SEEDS = 1_000_000  # batches or traces of one kind in a study; more is taken for a slip of the pen


# Arguments of functions


def wrong_number(
    path: str, value: object, wanted: str, *, above: float = -math.inf, at_least: float = -math.inf
) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a finite number > ``above`` and >= ``at_least``.

    ``wanted`` describes such numbers.
    """
    return _broken(path, value, Number(above=above, at_least=at_least, words=wanted))


def wrong_share(path: str, value: object) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a number from 0 to 1."""
    return _broken(path, value, FROM_0_TO_1)


def wrong_integer(path: str, value: object, least: int, most: int) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a whole number from ``least`` to ``most``."""
    return _broken(path, value, Whole(least, most))


def wrong_flag(path: str, value: object) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is True or False."""
    return _broken(path, value, FLAG)


def _broken(path: str, value: object, rule: Rule) -> Iterator[Problem]:
    if message := rule.wrong(value):
        yield Problem(path, message)


def is_among(value: object, names: Iterable[str]) -> TypeGuard[str]:
    """Return True for one of some names; arrays, which compare with none of them, and what has no hash are none."""
    return isinstance(value, str) and value in names


def wrong_choice(path: str, value: object, choices: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is one of some words."""
    if not is_among(value, choices):
        yield Problem(path, f"unknown {value!r:.60}; {nearest(str(value), choices)}")


def wrong_type(path: str, value: object, wanted: str) -> Problem:
    """Return the problem that ``value`` is something else altogether."""
    return Problem(path, other_type(value, wanted))


def wrong_class(path: str, value: object, kind: type, example: str = "") -> Iterator[Problem]:
    """Yield a problem unless ``value`` is an object of a class; ``example`` says where one comes from."""
    if not isinstance(value, kind):
        yield wrong_type(path, value, f"a {kind.__name__}{example and f', for example {example}'}")


def entries_of(path: str, values: object, kind: type[_Entry], wanted: str) -> tuple[_Entry, ...]:
    """Return an iterable of ``kind`` as a tuple; ``wanted`` describes one entry.

    Raises
    ------
    InputError
        If it is no iterable, or with a problem for each entry of another type.
    """
    if not is_listed(values):
        raise InputError([wrong_type(path, values, f"a tuple, each entry {wanted}")])
    found = tuple(values)
    wrong = [(index, entry) for index, entry in enumerate(found) if not isinstance(entry, kind)]
    raise_any(wrong_type(f"{path}[{index}]", entry, wanted) for index, entry in wrong)
    return found


def is_listed(values: object) -> TypeGuard[Iterable[Any]]:
    """Return True for what has entries, and is no text."""
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)


# Fields of dataclasses


class Hint(NamedTuple):
    """Type of a field in parts."""

    bare: Any
    """The type without annotations, and without None."""
    rules: tuple[Rule, ...]
    optional: bool
    """True if None is a value."""


@cache
def parts_of(hint: Any) -> Hint:
    """Return the parts of the type of a field."""
    rules: tuple[Rule, ...] = ()
    optional = False
    while True:
        if get_origin(hint) is Annotated:
            rules += tuple(entry for entry in hint.__metadata__ if isinstance(entry, Rule))
            hint = hint.__origin__
        elif get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
            optional = True
            hint = Union[tuple(kind for kind in get_args(hint) if kind is not type(None))]  # noqa: UP007  # made here
        else:
            return Hint(hint, rules, optional)


@cache
def hints_of(shape: type) -> Mapping[str, Any]:
    """Return the types of the fields of a dataclass that its constructor takes, with their annotations."""
    hints = _type_hints(shape, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(shape) if field.init}


def checked_value(hint: Any, value: Any, path: str, problems: list[Problem]) -> Any:
    """Return a value of a type as it has to be, None if it breaks a rule of the type; note what is wrong with it."""
    check = _check_of(hint)
    return check(value, path, problems) if check else value


def check_values(instance: Any) -> None:
    """Check an object of a dataclass that is being made: each value by its annotation, then all of them together.

    Lists become tuples, and mappings such that cannot be changed, those by size in the order of the sizes.

    Raises
    ------
    InputError
        With everything that is wrong.
    """
    problems: list[Problem] = []
    shape: Any = type(instance)
    checks, together = _checks(shape)
    for name, check, optional in checks:
        value = getattr(instance, name)
        if value is None and optional:
            continue
        right = check(value, name, problems)
        if right is not value:
            object.__setattr__(instance, name, right)
    if together:
        problems += together(instance)
    if problems:
        raise InputError(problems)


class ReadOnlyDict(dict[Any, Any]):
    """A dict that cannot be changed: what an object has checked stays as it was."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping cannot be changed; make an object with another one")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class Checked:
    """Base of dataclasses whose values are checked when an object is made (:func:`check_values`)."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_values(self)


_Check = Callable[[Any, str, list[Problem]], Any]
"""Returns a value as it has to be, None if it is wrong; notes what is wrong with it."""


@cache
def _checks(shape: type) -> tuple[tuple[tuple[str, _Check, bool], ...], Callable[[Any], Iterator[Problem]] | None]:
    """Return the check of each field that has one, with whether it may be None, and that of all together."""
    hints = hints_of(shape).items()
    checks = tuple((name, check, parts_of(hint).optional) for name, hint in hints if (check := _check_of(hint)))
    return checks, getattr(shape, "_problems", None)


@cache
def _check_of(hint: Any) -> _Check | None:
    bare, rules, optional = parts_of(hint)
    wrongs = tuple(rule.wrong for rule in rules if type(rule).wrong is not Rule.wrong)
    inner = _entries_check(bare)
    own = isinstance(bare, type) and (bare in _ENTRIES or dataclasses.is_dataclass(bare) or issubclass(bare, enum.Enum))
    plain = bare if own and not wrongs else None
    if plain:
        wrongs = (OfType(*_named(bare)).wrong,)
    if not wrongs and (not inner or not optional):
        return inner
    numeric = bare is int or bare is float

    def check(value: Any, path: str, problems: list[Problem]) -> Any:
        if value.__class__ is plain or (optional and value is None):
            return value
        if inner and (value := inner(value, path, problems)) is None:
            return None
        if numeric and value.__class__ is not float and value.__class__ is not int:
            value = own_number(value)
        for wrong in wrongs:
            if message := wrong(value):
                problems.append(Problem(path, message))
                return None
        return value

    return check


def _entries_check(hint: Any) -> _Check | None:
    """Return a check of the entries of a list or a mapping; None if there is nothing to check."""
    if get_origin(hint) is tuple:
        return _tuple_check(hint) if get_args(hint)[1:] == (...,) else _pair_check(hint)
    if either := tables_in(hint):
        by_size, by_kind = (_check_of(kind) or (lambda value, *_: value) for kind in either)
        other = by_kind if either[0] is str else by_size

        def check(values: Any, path: str, problems: list[Problem]) -> Any:
            if values.__class__ is not dict and not isinstance(values, Mapping):
                return by_size(values, path, problems)
            for first in values:  # tasks are made by the thousand: faster than next(iter(values))
                if first.__class__ is str and (other is by_kind or isinstance(values[first], Mapping)):
                    return by_kind(values, path, problems)
                break
            return other(values, path, problems)

        return check
    return _mapping_check(hint) if get_origin(hint) is Mapping else None


def tables_in(hint: Any) -> tuple[Any, ...]:
    """Return the types of a table by size, or of a text, and of a table by kind of GPU if a type is either."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    return kinds if kinds and all(kind is str or get_origin(parts_of(kind).bare) is Mapping for kind in kinds) else ()


def _part_check(shape: Any) -> _Check | None:
    """Return a check of objects that do not check themselves when they are made; None if there is nothing to check."""
    checks = _checks(shape)[0]
    kinds = [parts_of(hints_of(shape)[name]) for name, *_ in checks]
    usual = [kind.bare for kind in kinds if not kind.rules]  # of thousands of runs in a schedule, so only look once
    values_of = attrgetter(*(name for name, *_ in checks), "__class__")

    def check(value: Any, path: str, problems: list[Problem]) -> Any:
        values = values_of(value)
        if [*map(type, values[:-1])] == usual:
            return value
        found: list[Problem] = []
        right = {name: check(own, name, found) for (name, check, _), own in zip(checks, values, strict=False)}
        problems += (problem.below(path) for problem in found)
        return dataclasses.replace(value, **right)

    return check if checks else None


def _pair_check(hint: Any) -> _Check:
    checks = [_check_of(inner) for inner in get_args(hint)]

    def check(values: Any, path: str, problems: list[Problem]) -> Any:
        if not is_listed(values) or len(values := tuple(values)) != len(checks):
            problems.append(wrong_type(path, values, f"a tuple with {len(checks)} entries"))
            return None
        pairs = enumerate(zip(values, checks, strict=True))
        return tuple(each(value, f"{path}[{i}]", problems) if each else value for i, (value, each) in pairs)

    return check


def _tuple_check(hint: Any) -> _Check:
    inner = get_args(hint)[0]
    bare, rules, optional = parts_of(inner)
    kind, wanted = _named(bare) if isinstance(bare, type) else (object, "something")
    wanted = next((rule.words for rule in rules if isinstance(rule, Wanted)), wanted)
    kind = object if optional or bare is Any else kind
    each = _check_of(inner)
    if dataclasses.is_dataclass(bare) and not hasattr(bare, "__post_init__"):
        each = _part_check(bare)

    def check(values: Any, path: str, problems: list[Problem]) -> Any:
        if values.__class__ is tuple and not values:
            return values
        values = tuple(values) if is_listed(values) else values
        if found := problems_of(entries_of, path, values, kind, wanted):
            problems += found
            if not isinstance(values, tuple):
                return None
            values = tuple(entry if isinstance(entry, kind) else None for entry in values)
        if each is None:
            return values
        return tuple(
            None if entry is None else each(entry, f"{path}[{index}]", problems) for index, entry in enumerate(values)
        )

    return check


_ENTRIES: Mapping[type, tuple[type, str]] = {
    str: (str, "a text"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: (bool, "True or False"),
}
"""Plain values that a field, or an entry of a tuple, may have, as types and in words."""


def _named(kind: type) -> tuple[type, str]:
    return _ENTRIES.get(kind) or (kind, f"a{'n' * (kind.__name__[0] in 'AEIO')} {kind.__name__}")


def _mapping_check(hint: Any) -> _Check | None:
    key, value = get_args(hint)
    each = _check_of(value)
    sized = parts_of(key).bare is int
    if each is None and not sized:
        return None
    bare, rules, _ = parts_of(value)
    wrong = rules[0].wrong if len(rules) == 1 and _entries_check(bare) is None else None

    def check(values: Any, path: str, problems: list[Problem]) -> Any:
        if not (values.__class__ is dict or isinstance(values, Mapping)):
            problems.append(wrong_type(path, values, "a mapping"))
            return None
        if sized:
            if others := [key for key in values if key.__class__ is not int]:
                if odd := [key for key in others if not is_integer(key)]:
                    problems += (wrong_type(f"{path}.{key}", key, "a whole number of compute slices") for key in odd)
                    return None
                values = {int(key): value for key, value in values.items()}
            values = values if list(values) == sorted(values) else dict(sorted(values.items()))
        for value in values.values():  # tasks are made by the thousand: faster than any(map(wrong, ...))
            if each and (not wrong or value.__class__ is not float or wrong(value)):
                return ReadOnlyDict({key: each(value, f"{path}.{key}", problems) for key, value in values.items()})
        return values if values.__class__ is ReadOnlyDict else ReadOnlyDict(values)

    return check
