"""Parts of a document become domain objects and back; what is wrong with them becomes problems with paths."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from mig_opt.arguments import MOST_GPUS
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.documents import Document, key_name, parsed, shown
from mig_opt.files.shapes import FILES, KEYWORDS, SIZE, Kind, key_names, sized_keys
from mig_opt.gpu.model import GpuModel, OperationCosts, catalogue, get_gpu

T = TypeVar("T")
Raw = dict[str, Any]

NOTHING: Mapping[str, Any] = MappingProxyType({})

_EXPECTED = {
    "string": "a text in quotes",
    "float": "a number",
    "int": "a whole number without a decimal point",
    "bool": "true or false",
    "dict": "an object {...}",
    "mapping": "an object {...}",
    "dataclass": "an object {...}",
    "none": "an object {...} or null",
}
"""What a value must be, by the first word of the code that pydantic gives to the error."""

_COMMANDS = {"batch": "mig-opt solve", "services": "mig-opt deploy"}


class Findings:
    """The problems of one input.

    Parameters
    ----------
    source : str
        Where the input is from.
    """

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
            raise InputError(sorted(self.problems, key=lambda problem: _natural(problem.path)), self.source)


def _natural(path: str) -> list[str | int]:
    # tasks[10] comes after tasks[9]; texts and numbers alternate, so that they are never compared with each other.
    return [int(piece) if index % 2 else piece for index, piece in enumerate(re.split(r"([0-9]+)", path))]


def read_document(document: Document, source: str) -> tuple[Raw, Findings]:
    """Return a JSON document as an object, with the keys that it repeats as findings.

    Raises
    ------
    InputError
        If it is not valid JSON, or not an object.
    """
    findings = Findings(source)
    raw, repeated = parsed(document, source)
    findings.extend(repeated)
    return raw, findings


def check_keys(raw: Raw, kind: Kind, findings: Findings, path: str = "") -> None:
    """Note what is wrong with the keys of a document, and with the kind that it says it is of.

    Raises
    ------
    InputError
        If it is of another kind or of a newer version: to read it as ``kind`` would only give misleading problems.
    """
    _check_schema(raw, kind, findings, path)
    findings.extend(key_problems(FILES[kind], raw), path)


def _check_schema(raw: Raw, kind: Kind, findings: Findings, path: str) -> None:
    wanted = f"mig-opt/{kind}/1"
    stated = raw.get("schema")
    if stated == wanted or "schema" not in raw:
        return
    where = f"{path}.schema" if path else "schema"
    named = re.fullmatch(r"mig-opt/([a-z-]+)/([0-9]{1,9})", stated) if isinstance(stated, str) else None
    if named and named[1] in FILES and named[1] != kind:
        message = f"this is {_a_file(named[1])} ({stated}), but {_a_file(kind)} is wanted ({wanted})"
        if named[1] in _COMMANDS and kind in _COMMANDS:
            message += f"; its command is: {_COMMANDS[named[1]]}"
    elif named and named[1] == kind and int(named[2]) > 1:
        message = f"{stated} is newer than the version that this mig_opt reads ({wanted}); update mig_opt"
    else:
        findings.add(where, f'must be "{wanted}", is {shown(stated)}')
        return
    raise InputError([Problem(where, message)], findings.source)


def _a_file(kind: str) -> str:
    return f"a file of {kind}" if kind in ("services", "profiles") else f"a {kind}"


def key_problems(shape: type, raw: Raw) -> list[Problem]:
    """Return a problem for each key that is missing, unknown, or no number of compute slices where it should be."""
    known = key_names(shape)
    problems = [
        Problem(key_name(key), f"unknown key; {nearest(shown(key, 60).strip(chr(34)), known)}")
        for key in raw
        if key not in known
    ]
    for key, needed in known.items():
        if needed and key not in raw:
            example = json.dumps(KEYWORDS[shape][key]["examples"][0])
            problems.append(Problem(key, f'is missing; add it, for example "{key}": {example}'))
    for key in sized_keys(shape):
        figures = raw.get(key)
        if isinstance(figures, dict):
            problems += [
                Problem(f"{key}.{key_name(size)}", 'the key must be a number of compute slices, like "1" or "4"')
                for size in figures
                if not re.fullmatch(SIZE, size)
            ]
    return problems


def read_value(annotation: object, raw: Raw, key: str, findings: Findings, *, path: str = "") -> Any:
    """Return ``raw[key]`` as the type that ``annotation`` names; None if it is not there or is wrong."""
    if key not in raw:
        return None
    value, problems = _validated(annotation, raw[key])
    findings.extend(problems, f"{path}.{key}" if path else key)
    return value


def read_gpu(raw: Raw, findings: Findings, path: str = "") -> GpuModel | None:
    """Return the GPU that ``raw["gpu"]`` names; None if it is not there or is wrong."""
    name = read_value(str, raw, "gpu", findings, path=path)
    if name is None:
        return None
    try:
        return get_gpu(name)
    except InputError as error:
        findings.extend(error.problems, path)
        return None


def read_gpus(raw: Raw, findings: Findings) -> int | None:
    """Return how many GPUs a document is for, by default one; None if that is wrong."""
    gpus: int | None = read_value(int, raw, "gpus", findings) if "gpus" in raw else 1
    if gpus is not None and not 1 <= gpus <= MOST_GPUS:
        findings.add("gpus", f"must be from 1 to {MOST_GPUS}, is {shown(gpus)}")
        return None
    return gpus


def in_place(raw: Raw, **given: object) -> Raw:
    """Return a document with what is given, and not None, in place of its own keys."""
    return {**raw, **{key: value for key, value in given.items() if value is not None}}


def read_operations(raw: Raw, model: GpuModel | None, findings: Findings) -> OperationCosts | None:
    """Return the seconds of operations that a document states; None if it states none, or they cannot be read."""
    if raw.get("operations") is None:
        return None
    costs = encoded(model.operation_costs) if model else {"create": {}, "destroy": {}}
    return read_object(OperationCosts, raw["operations"], "operations", findings, costs)


def fleet_head(kind: Kind, gpu: GpuModel, gpus: int) -> Raw:
    """Return the first keys of a document about identical GPUs; how many of them if it is not one.

    Raises
    ------
    InputError
        If the GPU is not the catalogue's, so that its name does not say what it is.
    """
    if gpu not in catalogue():
        message = f"{gpu.name} is not a GPU of the catalogue; a file names its GPU and cannot describe another"
        raise InputError([Problem("gpu", message)])
    return {"schema": f"mig-opt/{kind}/1", "gpu": gpu.name, **({"gpus": gpus} if gpus != 1 else {})}


def read_list(
    shape: type[T],
    raw: Raw,
    key: str,
    findings: Findings,
    *,
    path: str = "",
    stand_ins: Callable[[int], Mapping[str, Any]] = lambda _: NOTHING,
) -> list[T | None]:
    """Return the objects of the list ``raw[key]``, None for each that cannot be read; empty if there is no list."""
    if key not in raw:
        return []
    where = f"{path}.{key}" if path else key
    if not isinstance(raw[key], list):
        findings.add(where, f"must be a list [...], is {shown(raw[key])}")
        return []
    return [
        read_object(shape, entry, f"{where}[{index}]", findings, stand_ins(index))
        for index, entry in enumerate(raw[key])
    ]


def read_object(
    shape: type[T], raw: object, path: str, findings: Findings, stand_ins: Mapping[str, Any] = NOTHING
) -> T | None:
    """Return a domain object.

    If something is wrong with it, the object that is returned holds stand-ins for that, so that the rest of it can be
    checked further; None if there are no stand-ins for what must be there.
    """
    if not isinstance(raw, dict):
        findings.add(path, f"must be an object {{...}}, is {shown(raw)}")
        return None
    problems = key_problems(shape, raw)
    while True:
        value: T | None = None
        if not problems:
            value, problems = _validated(shape, raw)
            if not problems:
                return value
        findings.extend(problems, path)
        mended = _mended(shape, raw, problems, stand_ins)
        if mended is None or mended == raw:
            return None
        raw, problems = mended, []


def part_or_null(read: Callable[[Raw, str, Findings], T], raw: Raw, key: str, findings: Findings) -> T | None:
    """Return the part ``raw[key]``, as far as it can be read; None if it is null, not there, or no object."""
    if isinstance(raw.get(key), dict):
        return read(raw[key], key, findings)
    read_value(None, raw, key, findings)
    return None


def check_stated(
    raw: Raw,
    stated: Mapping[str, object],
    result: object,
    part: str,
    findings: Findings,
    *,
    same: Callable[[Any, Any], bool] = operator.eq,
) -> None:
    """Note each figure that a document states, but that follows from a part of it otherwise.

    If anything else is wrong with the document, what follows from the part is not known.
    """
    if findings.problems:
        return
    for key, figure in stated.items():
        actual = getattr(result, key)
        if key in raw and not same(figure, actual):
            findings.add(key, f"is {figure}, but follows from the {part} as {actual}; correct or remove it")


def _mended(shape: type, raw: Raw, problems: Iterable[Problem], stand_ins: Mapping[str, Any]) -> Raw | None:
    """Return an object without what is wrong with it; None if it then lacks something."""
    known = key_names(shape)
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
    for key in sized_keys(shape):
        figures = mended.get(key)
        if isinstance(figures, dict):
            sizes = {size: value for size, value in figures.items() if re.fullmatch(SIZE, size)}
            mended[key] = sizes or stand_ins.get(key, {})
    if any(needed and key not in mended for key, needed in known.items()):
        return None
    return mended


def encoded(part: Any) -> Raw:
    """Return a flat domain object as a part of a document, without the keys that have their default."""
    raw = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if value != field.default:
            raw[field.name] = {str(key): entry for key, entry in value.items()} if isinstance(value, Mapping) else value
    return raw


def finite(part: Any, path: str, findings: Findings, infinite: str = "") -> None:
    """Note each figure of a domain object that is not finite; the one called ``infinite`` may be infinity."""
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if isinstance(value, float) and not math.isfinite(value) and not (field.name == infinite and value == math.inf):
            findings.add(f"{path}.{field.name}", f"must be a finite number, is {value}")


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def _validated(annotation: Any, raw: object) -> tuple[Any, list[Problem]]:
    try:
        # As JSON: only there strict types and objects for dataclasses go together.
        return _adapter(annotation).validate_json(json.dumps(raw), strict=True), []
    except RecursionError:
        return None, [Problem("", "is nested too deeply")]
    except ValidationError as error:
        problems: list[Problem] = []
        for detail in error.errors(include_url=False):
            problems += _translated(detail, raw)
        return None, problems


def _translated(detail: ErrorDetails, raw: object) -> list[Problem]:
    """Return an error of pydantic in our words, seen from the object that ``raw`` stands for."""
    context = detail.get("ctx", {})
    if isinstance(context.get("error"), InputError):
        return list(context["error"].problems)
    path, value = Problem("", ""), raw
    for step in reversed(detail["loc"]):
        path = path.below(f"[{step}]" if isinstance(step, int) else key_name(step))
    if detail["type"] == "json_invalid":
        reason = str(context["error"]).partition(" at line")[0]
        return [Problem(path.path, f"cannot be read: {reason}")]
    if detail["type"] == "missing":
        return [Problem(path.path, "is missing; add it")]  # of a pair: the keys of objects have been looked at
    for step in detail["loc"]:
        if isinstance(value, (dict, list)):
            value = value[step]  # type: ignore[index]  # a key of an object, an index of a list
    wanted = _EXPECTED.get(detail["type"].partition("_")[0], "")
    if "expected" in context:
        wanted = str(context["expected"])
    if not wanted:
        return [Problem(path.path, f"{detail['msg']}, is {shown(value)}")]
    return [Problem(path.path, f"must be {wanted}, is {shown(value)}")]
