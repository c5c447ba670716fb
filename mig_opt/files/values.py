"""Documents become objects of the domain by their shape, and back; what is wrong with them becomes problems with paths.

Whatever cannot be read is None, and stand-ins take the place of what is wrong in an object, so that all the rest can be
checked further: all problems are reported at once.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.documents import key_name, shown
from mig_opt.files.shapes import SIZE, WORDS, Words
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuModel

T = TypeVar("T")
Raw = dict[str, Any]

_NOTHING: Mapping[str, Any] = types.MappingProxyType({})

_EXPECTED = {
    "string": "a text in quotes",
    "float": "a number",
    "int": "a whole number without a decimal point",
    "bool": "true or false",
    "tuple": "a list [...]",
    "dict": "an object {...}",
    "mapping": "an object {...}",
    "dataclass": "an object {...}",
}
"""Words for what a value must be, by the first word of the code that pydantic gives to the error."""

REPORTED = object()
"""In place of a value of a document whose problem has been noted."""


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


EntryReader = Callable[[Any, str, Findings], Any]
"""Returns the part of a document that an object at a path stands for, None if it cannot be read."""


def natural_order(path: str) -> list[str | int]:
    """Return what sorts texts with numbers as people do."""
    # tasks[10] comes after tasks[9]; texts and numbers alternate, so that they are never compared with each other.
    return [int(piece) if index % 2 else piece for index, piece in enumerate(re.split(r"([0-9]{1,9})", path))]


# Objects


class _Key(NamedTuple):
    """Key of an object."""

    needed: bool
    default: Callable[[], Any]
    hint: Any
    """Type of its value."""
    part: type | None
    """Class of the object that it holds, or of each in the list that it holds; None if it holds other values."""
    many: bool
    optional: bool
    """True if null is a value."""


@cache
def _keys(shape: type) -> dict[str, _Key]:
    hints, missing = get_type_hints(shape, include_extras=True), dataclasses.MISSING
    keys = {}
    for field in dataclasses.fields(shape):
        needed = field.default is missing and field.default_factory is missing
        value, factory = None if needed else field.default, field.default_factory
        default = (lambda value=value: value) if factory is missing else factory
        hint = hints[field.name]
        bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        members = get_args(bare) if get_origin(bare) in (Union, types.UnionType) else (bare,)
        optional = type(None) in members
        inner = members[0]
        many = get_origin(inner) is tuple
        if many:
            inner = get_args(inner)[0]
        part = inner if dataclasses.is_dataclass(inner) else None
        keys[field.name] = _Key(needed, default, hint, part, many, optional)  # type: ignore[arg-type]
    return keys


def read_keys(
    shape: type,
    raw: Raw,
    findings: Findings,
    path: str = "",
    *,
    readers: Mapping[str, EntryReader] = _NOTHING,
    skip: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the value of each key of an object but ``schema`` and those to ``skip``.

    For a key that is not there it is the default; None for one without default, and for what cannot be read, be it the
    value of a key or an entry of a list. ``shape`` is the dataclass with the keys; ``readers`` read the objects that
    some keys hold, or each object in the list that they hold.
    """
    findings.extend(key_problems(shape, raw), path)
    prefix = f"{path}." if path else ""
    return {
        name: _read_key(key, raw[name], f"{prefix}{name}", readers.get(name), findings)
        if name in raw
        else key.default()
        for name, key in _keys(shape).items()
        if name not in ("schema", *skip)
    }


def _read_key(key: _Key, value: Any, where: str, reader: EntryReader | None, findings: Findings) -> Any:
    if reader is None and key.part is None:
        return _read_value(key.hint, value, where, findings)
    if value is REPORTED or (value is None and key.optional):
        return None
    read = reader or partial(read_object, key.part or object)
    if key.many and isinstance(value, list):
        return [read(entry, f"{where}[{index}]", findings) for index, entry in enumerate(value)]
    if not key.many and isinstance(value, dict):
        return read(value, where, findings)
    wanted = "a list [...]" if key.many else "an object {...}" + " or null" * (key.needed and key.optional)
    findings.add(where, f"must be {wanted}, is {shown(value)}")
    return None


def key_problems(shape: type, raw: Raw) -> list[Problem]:
    """Return a problem for each key that is missing, unknown, or no number of compute slices where it should be."""
    known = _keys(shape)
    problems = [
        Problem(key_name(key), f"unknown key; {nearest(shown(key, 60).strip(chr(34)), known)}")
        for key in raw
        if key not in known
    ]
    for name, key in known.items():
        if key.needed and name not in raw:
            example = json.dumps(WORDS[shape].example[name])
            problems.append(Problem(name, f'is missing; add it, for example "{name}": {example}'))
    for name in _sized_keys(shape):
        figures = raw.get(name)
        if isinstance(figures, dict):
            problems += [
                Problem(f"{name}.{key_name(size)}", 'the key must be a number of compute slices, like "1" or "4"')
                for size in figures
                if not re.fullmatch(SIZE, size)
            ]
    return problems


@cache
def _sized_keys(shape: type) -> tuple[str, ...]:
    """Return the keys of an object whose values are figures by number of compute slices."""
    return tuple(key for key, keywords in WORDS.get(shape, Words({})).keys.items() if "patternProperties" in keywords)


def read_object(
    shape: type[T],
    raw: object,
    path: str,
    findings: Findings,
    stand_ins: Mapping[str, Any] = _NOTHING,
) -> T | None:
    """Return an object of the domain.

    If something is wrong with it, the object that is returned holds stand-ins for that, so that the rest of it can be
    checked further; None if there are no stand-ins for what must be there.
    """
    if not isinstance(raw, dict):
        findings.add(path, f"must be an object {{...}}, is {shown(raw)}")
        return None
    problems = key_problems(shape, raw)
    while True:
        if not problems:
            value, problems = _validated(shape, raw)
            if not problems:
                return value  # type: ignore[no-any-return]
        findings.extend(problems, path)
        mended = _mended(shape, raw, problems, stand_ins)
        if mended is None or mended == raw:
            return None
        raw, problems = mended, []


def _mended(shape: type, raw: Raw, problems: Iterable[Problem], stand_ins: Mapping[str, Any]) -> Raw | None:
    """Return an object without what is wrong with it; None if it then lacks something."""
    known = _keys(shape)
    mended = {key: value for key, value in raw.items() if key in known}
    for problem in problems:
        key, _, size = problem.path.partition(".")
        key = key.partition("[")[0]
        if key not in known:
            continue
        if size and isinstance(mended.get(key), dict):
            mended[key] = {**mended[key], size: 1.0}
        elif key in stand_ins:
            mended[key] = stand_ins[key]
        else:
            mended.pop(key, None)
    for key in _sized_keys(shape):
        figures = mended.get(key)
        if isinstance(figures, dict):
            sizes = {size: value for size, value in figures.items() if re.fullmatch(SIZE, size)}
            mended[key] = sizes or stand_ins.get(key, {})
    return None if any(key.needed and name not in mended for name, key in known.items()) else mended


def in_place(raw: Raw, **given: object) -> Raw:
    """Return a document with what is given, and not None, in place of its own keys."""
    return {**raw, **{key: value for key, value in given.items() if value is not None}}


def gpu_of(raw: Raw, findings: Findings) -> GpuModel | None:
    """Return the GPU that a document names; None if it names none, or an unknown one, which is noted."""
    return read_gpu(raw["gpu"], findings) if "gpu" in raw else None


def read_gpu(name: object, findings: Findings, path: str = "gpu") -> GpuModel | None:
    """Return the GPU of a name at a path; None if there is none, which is noted."""
    if name is REPORTED:
        return None
    text = _read_value(str, name, path, findings)
    if text is None:
        return None
    try:
        return get_gpu(text)
    except InputError as error:
        findings.extend(Problem(path, problem.message) for problem in error.problems)
        return None


# Values


def encoded(part: Any) -> Raw:
    """Return a flat object of the domain as a part of a document, without the keys that have their default."""
    raw = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if value != field.default:
            raw[field.name] = {str(key): entry for key, entry in value.items()} if isinstance(value, Mapping) else value
    return raw


def _read_value(annotation: object, raw: object, path: str, findings: Findings) -> Any:
    """Return a value as the type that ``annotation`` names; None if it is wrong, which is noted."""
    value, problems = _validated(annotation, raw)
    findings.extend(problems, path)
    return value


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def _validated(annotation: Any, raw: object) -> tuple[Any, list[Problem]]:
    try:
        # As JSON: only there strict types and objects for dataclasses go together.
        value = _adapter(annotation).validate_json(json.dumps(raw), strict=True)
    except RecursionError:
        return None, [Problem("", "is nested too deeply")]
    except ValidationError as error:
        return None, [problem for detail in error.errors(include_url=False) for problem in _translated(detail, raw)]
    infinite = _not_finite(value)
    return (None, infinite) if infinite else (value, [])


def _not_finite(value: object) -> list[Problem]:
    """Return a problem for each number that is not finite of a value, or of an object that checks none itself."""
    if isinstance(value, float):
        return [] if math.isfinite(value) else [Problem("", f"must be a finite number, is {value}")]
    if not dataclasses.is_dataclass(value) or hasattr(value, "__post_init__"):
        return []
    return [problem.below(key) for key in _keys(type(value)) for problem in _not_finite(getattr(value, key))]  # type: ignore[arg-type]


def _translated(detail: ErrorDetails, raw: object) -> list[Problem]:
    """Return an error of pydantic in our words, seen from the object that ``raw`` stands for."""
    context = detail.get("ctx", {})
    path, value = Problem("", ""), raw
    for step in reversed(detail["loc"]):
        path = path.below(f"[{step}]" if isinstance(step, int) else key_name(step))
    if isinstance(context.get("error"), InputError):
        return [problem.below(path.path) for problem in context["error"].problems]
    if detail["type"] == "json_invalid":
        reason = str(context["error"]).partition(" at line")[0]
        return [Problem(path.path, f"cannot be read: {reason}")]
    if detail["type"] == "missing":
        return [Problem(path.path, "is missing; add it")]  # of a pair: the keys of objects have been looked at
    for step in detail["loc"]:
        if isinstance(value, (dict, list)):
            value = value[step]  # type: ignore[index]  # a key of an object, an index of a list
    wanted = str(context["expected"]) if "expected" in context else _EXPECTED.get(detail["type"].partition("_")[0], "")
    return [
        Problem(path.path, f"must be {wanted}, is {shown(value)}" if wanted else f"{detail['msg']}, is {shown(value)}")
    ]
