"""Documents become objects of the domain, and back; what is wrong with them becomes problems with paths.

The dataclass of an object says which keys there are, of which types, which pydantic applies, and by which rules
(:mod:`mig_opt.rules`). Where something is wrong, all else is read by itself, and None is in its place, so that what the
parts have to do with each other is checked as far as they can be read: all problems are reported at once.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Union, get_args, get_origin

from pydantic import ConfigDict, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.documents import key_name, shown
from mig_opt.gpu.catalogue import add_gpu
from mig_opt.gpu.model import GpuModel
from mig_opt.rules import checked_value, hints_of, parts_of, tables_in
from mig_opt.rules.vocabulary import NullIs, Rule

Raw = dict[str, Any]

_EXPECTED = {
    "string": "a text in quotes",
    "float": "a number",
    "finite": "a finite number",
    "int": "a whole number without a decimal point",
    "bool": "true or false",
    "tuple": "a list [...]",
    "dict": "an object {...}",
    "mapping": "an object {...}",
    "dataclass": "an object {...}",
}
"""Words for what a value must be, by the first word of the code that pydantic gives to the error."""

REPORTED = object()
"""Mark in place of a value of a document whose problem has been noted."""

EXAMPLES: dict[type, Raw] = {}
"""Examples: an object of each class in files, with every key that it needs; each kind of files adds its own."""


class Findings:
    """The problems of one input; ``source`` is where it is from."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def add(self, path: str, message: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(path, message))

    def extend(self, problems: Iterable[Problem], below: str = "") -> None:
        """Note problems that were found in the object at the path ``below``."""
        self.problems += [problem.below(below) if below else problem for problem in problems]

    def check(self) -> None:
        """Raise an error with all problems, sorted by path, if there are any."""
        if self.problems:
            raise InputError(
                sorted(dict.fromkeys(self.problems), key=lambda problem: natural_order(problem.path)), self.source
            )


def with_places(text: str, entries: str, places: Sequence[object]) -> str:
    """Return a text that names places in place of entries such as ``tasks[3]``.

    ``entries`` is a pattern that the list's name matches. An entry that there is not can only come from a text of the
    user, a strange name, and stays.
    """

    def place(found: re.Match[str]) -> str:
        index = int(found[1])
        return str(places[index]) if index < len(places) else found[0]

    return re.sub(rf"{entries}\[([0-9]{{1,9}})\]", place, text)


def natural_order(path: str) -> list[str | int]:
    """Return what sorts texts with numbers as people do."""
    # tasks[10] comes after tasks[9]; texts and numbers alternate, so that they are never compared with each other.
    return [int(piece) if index % 2 else piece for index, piece in enumerate(re.split(r"([0-9]{1,9})", path))]


# Reading


NESTED: dict[type, Any] = {}
"""The kinds of files (FileKind) by the classes that they hold: their objects have a key ``schema`` everywhere."""


def read_value(hint: Any, raw: Any, path: str, findings: Findings) -> Any:
    """Return a value as a type, as far as it can be read: None is what cannot be, all of which is noted."""
    if raw is REPORTED:
        return None
    bare = parts_of(hint).bare
    if either := tables_in(bare):
        by_kind = isinstance(raw, dict) and (str in either or any(isinstance(value, dict) for value in raw.values()))
        hint = either[by_kind]
        bare = parts_of(hint).bare
    if bare in NESTED and isinstance(raw, dict):
        return NESTED[bare].part(raw, path, findings)
    try:
        # As JSON: only there strict types and objects for dataclasses go together. What is reported is null there, and
        # read again in parts.
        value = _adapter(hint).validate_json(f"[{json.dumps(raw, default=lambda _: None)}]", strict=True)[0]
    except RecursionError:
        findings.add(path, "is nested too deeply")
        return None
    except ValidationError as error:
        found = _read_object_parts(bare, raw, path, findings) if isinstance(raw, dict) else REPORTED
        if isinstance(raw, list) and get_args(bare)[1:] == (...,):
            entry = get_args(bare)[0]
            return tuple(read_value(entry, part, f"{path}[{index}]", findings) for index, part in enumerate(raw))
        if found is REPORTED:
            found = None
            for detail in error.errors(include_url=False):
                findings.extend(_translated(detail, raw, path, hint))
        return found
    return checked_value(hint, value, path, findings.problems)


def _read_object_parts(bare: Any, raw: Raw, path: str, findings: Findings) -> Any:
    """Return what an object stands for that cannot be read as a whole; REPORTED if it should be none."""
    if bare in EXAMPLES:
        return read_object(bare, raw, path, findings)
    if get_origin(bare) in (Union, types.UnionType):
        kind = _kind_of(get_args(bare), raw, path, findings)
        return kind and read_object(kind, raw, path, findings)
    if get_origin(bare) is not Mapping:
        return REPORTED
    found = {}
    for name, part in raw.items():
        where = f"{path}.{key_name(name)}"
        key = read_value(get_args(bare)[0], name, where, findings)
        if key is not None:
            found[key] = read_value(get_args(bare)[1], part, where, findings)
    return found


def _kind_of(kinds: Sequence[type], raw: Raw, path: str, findings: Findings) -> type | None:
    """Return the class of an object out of several ones: that whose first key it has; None if not just one is."""
    firsts = {dataclasses.fields(kind)[0].name: kind for kind in kinds}
    found = [kind for key, kind in firsts.items() if key in raw]
    if len(found) == 1:
        return found[0]
    *some, last = (f'"{key}"' for key in firsts)
    findings.add(path, f"needs one of {', '.join(some)} and {last}, and only one")
    return None


def _core_schema(rule: Rule, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return how pydantic validates values of a type with a rule; whether they follow it is looked at afterwards."""
    if rule.file_type is not None:
        there: Any = {**handler.generate_schema(rule.file_type), **rule.keywords}
        return core_schema.no_info_after_validator_function(rule.read, there)
    inner: Any = handler(source)
    if inner["type"] == "float" and type(rule).wrong is not Rule.wrong:
        inner["allow_inf_nan"] = True  # whether it has to be finite is for the rule to say
    if isinstance(rule, NullIs):
        return core_schema.no_info_after_validator_function(rule.with_null, core_schema.nullable_schema(inner))
    changes = type(rule).read is not Rule.read
    return core_schema.no_info_before_validator_function(rule.read, inner) if changes else inner


# Pydantic asks annotations how to go about values; rules themselves know nothing of it.
Rule.__get_pydantic_core_schema__ = _core_schema  # type: ignore[attr-defined]
Rule.__get_pydantic_json_schema__ = lambda rule, schema, to: rule.described(to(schema))  # type: ignore[attr-defined]


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(tuple[hint], config=ConfigDict(extra="forbid", allow_inf_nan=False))


def _translated(detail: Any, raw: object, path: str, hint: Any) -> list[Problem]:
    """Return an error of pydantic about a value at a path in our words."""
    context: Mapping[str, Any] = detail.get("ctx", {})
    for step in detail["loc"][1:]:  # the value is the only entry of a list
        there = raw if isinstance(raw, dict) else range(len(raw)) if isinstance(raw, list) else ()
        if step not in there and detail["type"] != "missing":
            break  # of a class, or of an entry that stands for a list
        path = Problem(f"[{step}]" if isinstance(step, int) else key_name(step), "").below(path).path
        raw = raw[step] if step in there else None  # type: ignore[index]
    if isinstance(context.get("error"), InputError):
        return [problem.below(path) for problem in context["error"].problems]
    if detail["type"] == "json_invalid":
        reason = str(context["error"]).partition(" at line")[0]
        return [Problem(path, f"cannot be read: {reason}")]
    if detail["type"] == "string_pattern_mismatch":
        return [Problem(path, 'the key must be a number of compute slices, like "1" or "4"')]
    if detail["type"] == "missing":
        return [Problem(path, "is missing; add it")]  # of a pair: the keys of objects are looked at elsewhere
    wanted = str(context.get("expected") or _EXPECTED.get(detail["type"].partition("_")[0], ""))
    if wanted == _EXPECTED["dataclass"] and parts_of(hint).optional:
        wanted += " or null"
    value = str(raw) if detail["type"] == "finite_number" else shown(raw)
    return [Problem(path, f"must be {wanted}, is {value}" if wanted else f"{detail['msg']}, is {value}")]


def read_object(shape: type, raw: Raw, path: str, findings: Findings) -> Any:
    """Return an object of a dataclass; where something is wrong, one that has None for that and checks nothing."""
    before = len(findings.problems)
    values = read_keys(shape, hints_of(shape), raw, path, findings, defaults=defaults_of(shape))
    return made(shape, values, path, findings, good=len(findings.problems) == before and REPORTED not in raw.values())


def read_listed(shape: type, raw: object, path: str, findings: Findings) -> tuple[Any, ...]:
    """Return the objects of a dataclass in a list of a document with more in it: other keys are passed over."""
    if not isinstance(raw, list):
        findings.add(path, f"must be {_EXPECTED['tuple']}, is {shown(raw)}")
        return ()
    keys = hints_of(shape)
    entries = ({key: entry[key] for key in keys if key in entry} if isinstance(entry, dict) else {} for entry in raw)
    return tuple(read_object(shape, entry, f"{path}[{index}]", findings) for index, entry in enumerate(entries))


def read_keys(
    shape: type, hints: Mapping[str, Any], raw: Raw, path: str, findings: Findings, *, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the value of each key of an object, by their types; for one that is not there its default, or None."""
    below = f"{path}." if path else ""
    for key in raw:
        if key not in hints and not (key == "schema" and key in EXAMPLES[shape]):
            meant = nearest(shown(key, 60).strip('"'), dict.fromkeys([*EXAMPLES[shape], *hints]))
            findings.add(f"{below}{key_name(key)}", f"unknown key; {meant}")
    values = {}
    for key, hint in hints.items():
        default = defaults.get(key)
        values[key] = default() if callable(default) else default
        if key in raw:
            if raw[key] is not None or not parts_of(hint).optional:  # null is as if it were left out
                values[key] = read_value(hint, raw[key], f"{below}{key}", findings)
        elif key not in defaults:
            example = json.dumps(EXAMPLES[shape][key])
            findings.add(f"{below}{key}", f'is missing; add it, for example "{key}": {example}')
    return values


@cache
def defaults_of(shape: type) -> Mapping[str, Any]:
    """Return the defaults of the fields of a dataclass that have one, or what makes them."""
    missing = dataclasses.MISSING
    found = {field.name: (field.default, field.default_factory) for field in dataclasses.fields(shape)}
    return {
        name: value if factory is missing else factory
        for name, (value, factory) in found.items()
        if value is not missing or factory is not missing
    }


def made(shape: type, values: Mapping[str, Any], path: str, findings: Findings, *, good: bool) -> Any:
    """Return an object of a dataclass with some values; where something is wrong, one that does not check them.

    With ``good`` nothing is wrong with each value by itself.
    """
    if good:
        try:
            return shape(**values)
        except InputError as error:
            findings.extend(error.problems, path)
    ghost: Any = object.__new__(shape)
    for name, value in values.items():
        object.__setattr__(ghost, name, value)
    if not good and hasattr(ghost, "_problems"):
        findings.extend(ghost._problems(), path)  # rules name it
    return ghost


# Writing


def encoded(content: Any) -> Raw:
    """Return an object of the domain as a part of a document, without the keys that have their default."""
    shape: Any = type(content)
    return encoder_of(shape)(content)  # type: ignore[no-any-return]


@cache
def encoder_of(hint: Any) -> Callable[[Any], Any]:
    """Return the function that makes a value of a type a part of a document."""
    bare, rules, optional = parts_of(hint)
    nulls = [rule.number for rule in rules if isinstance(rule, NullIs)]
    either = tables_in(bare)
    if either:
        by_size, by_kind = map(encoder_of, either)
        return lambda value: (
            by_kind if isinstance(value, Mapping) and isinstance(next(iter(value)), str) else by_size
        )(value)
    encode = encoded if get_origin(bare) in (Union, types.UnionType) else _encoder(bare)
    if not nulls and not optional:
        return encode
    return lambda value: None if value is None or value in nulls else encode(value)


def _encoder(bare: Any) -> Callable[[Any], Any]:
    if bare in NESTED:
        return (lambda gpu: add_gpu(gpu).name) if bare is GpuModel else NESTED[bare].document
    if bare in EXAMPLES:
        return object_encoder(hints_of(bare), defaults_of(bare))
    each = encoder_of(get_args(bare)[-1 if get_origin(bare) is Mapping else 0]) if get_args(bare) else str
    if get_origin(bare) is tuple:
        return lambda values: [each(value) for value in values]
    if get_origin(bare) is Mapping:
        return lambda values: {str(key): each(value) for key, value in values.items()}
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        return lambda value: value.value
    return lambda value: value


def object_encoder(hints: Mapping[str, Any], left_out: Mapping[str, Any]) -> Callable[[Any], Raw]:
    """Return the function that makes an object a part of a document; keys with the values ``left_out`` are left out."""
    missing = object()
    keys = [(key, encoder_of(hint), left_out.get(key, missing)) for key, hint in hints.items()]
    keys = [(key, each, default() if callable(default) else default) for key, each, default in keys]

    def encode(content: Any) -> Raw:
        return {key: each(value) for key, each, default in keys if (value := getattr(content, key)) != default}

    return encode
