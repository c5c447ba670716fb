"""Studies as JSON and TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import Document, file_path, read_text
from mig_opt.files.kinds import read_document
from mig_opt.files.shapes import ABOVE_0, FROM_1, GPUS, SHARE, WORDS, Keywords, NotEmpty, Whole, Words
from mig_opt.files.values import Findings, Raw, read_keys, read_object
from mig_opt.method.study import (
    BatchFromFile,
    BatchSource,
    BundledBatch,
    GeneratedBatches,
    GeneratedTraces,
    MethodSettings,
    PolicySettings,
    Study,
    TraceFromFile,
    TraceSource,
)
from mig_opt.rules import MOST_SEEDS


@dataclass(frozen=True, slots=True)
class StudyFile:
    """Batches with the methods that run on each of them, traces with the schedulers that run on each of them."""

    schema: Literal["mig-opt/study/1"]
    batches: Annotated[tuple[BundledBatch | BatchFromFile | GeneratedBatches, ...], NotEmpty] = ()
    methods: Annotated[tuple[MethodSettings, ...], NotEmpty] = ()
    repetitions: Annotated[int, Whole(1, 2**30 - 1)] = 1
    seed: Annotated[int, Whole(0, 2**30 - 1)] = 0
    fresh: bool = False
    traces: Annotated[tuple[TraceFromFile | GeneratedTraces, ...], NotEmpty] = ()
    policies: Annotated[tuple[PolicySettings, ...], NotEmpty] = ()


_PAIRS = (("batches", "methods"), ("traces", "policies"))
"""Lists of a study that need each other."""
_COMMON = {"gpu": {"description": "Name of the GPU, or a list of them."}, "gpus": GPUS}
_SEEDS: Keywords = {
    "description": "How many seeds (0, 1, ...), or a list of them.",
    "default": 1,
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_SEEDS},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    ],
}
_EXAMPLE = {
    "schema": "mig-opt/study/1",
    "batches": [{"n": [10, 20], "seeds": 30}],
    "methods": [{"method": "far"}],
}
_WHOLE: Keywords = {
    "anyOf": [{"required": list(pair)} for pair in _PAIRS],
    "dependentRequired": {key: [other] for pair in _PAIRS for key, other in (pair, pair[::-1])},
}
WORDS[StudyFile] = Words(_EXAMPLE, whole=_WHOLE, described_by=Study)
WORDS[BundledBatch] = Words({"instance": "rodinia-a30"}, {"gpus": GPUS})
WORDS[BatchFromFile] = Words({"file": "batch.json"}, {"gpus": GPUS})
WORDS[TraceFromFile] = Words({"file": "trace.json"}, {"gpus": GPUS})
WORDS[GeneratedBatches] = Words(
    {"n": 20},
    {
        **_COMMON,
        "n": {"description": "Number of tasks, or a list of them.", "minimum": 1},
        "seeds": _SEEDS,
        "scaling": {"description": "PoorScaling, MixedScaling, GoodScaling, or a list."},
        "times": {"description": "WideTimes, NarrowTimes, or a list."},
        "p_sup": {"description": "Share of super-linear tasks, or a list.", **SHARE},
        "variant": {"description": "paper, published-program, or a list."},
    },
)
WORDS[GeneratedTraces] = Words(
    {"family": "normal-25"}, {**_COMMON, "seeds": _SEEDS, "parameters": {"type": ["number", "string"]}}
)
WORDS[MethodSettings] = Words({"method": "cp"}, {"time_limit": ABOVE_0, "gap": SHARE, "workers": FROM_1})
WORDS[PolicySettings] = Words({"policy": "first-fit"})


@dataclass(frozen=True, slots=True)
class Parts:
    """The lists of a study, as far as they can be read; None is an entry that cannot."""

    batches: Sequence[BatchSource | None]
    methods: Sequence[MethodSettings | None]
    traces: Sequence[TraceSource | None]
    policies: Sequence[PolicySettings | None]


PartProblems = Callable[[Parts], Iterable[Problem]]
"""Finds what is wrong with the parts of a study beyond their shape."""

_KINDS: dict[str, tuple[dict[str, type[Any]], str]] = {
    "batches": (
        {"instance": BundledBatch, "file": BatchFromFile, "n": GeneratedBatches},
        '"instance" (a bundled one), "file", and "n" (of the generator)',
    ),
    "methods": ({"method": MethodSettings}, ""),
    "traces": ({"file": TraceFromFile, "family": GeneratedTraces}, '"file" and "family" (of the generator)'),
    "policies": ({"policy": PolicySettings}, ""),
}
"""For each list the kinds of its entries, by the key that only they have; and where there are several, in words."""

_STAND_INS: dict[type[Any], Raw] = {GeneratedBatches: {"n": [1]}}
"""Stand-ins for what cannot be read, so that the rest can be checked."""


_HUGE = re.compile(r"(?<![\w\"'])[0-9][0-9_]{4300,}")


def study_document(path: str | Path) -> Document:
    """Return the content of a study file: its text, or the object that it stands for if its name ends in ``.toml``."""
    path = file_path(path)
    text = read_text(path)
    if path.suffix.lower() != ".toml":
        return text
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError([Problem("", f"not valid TOML: {error}")], str(path)) from None
    except ValueError:  # Python reads no integers of more than 4300 digits
        found = _HUGE.search(text)
        where = f"line {text.count(chr(10), 0, found.start()) + 1}" if found else ""
        problem = Problem(where, "has an integer of more than 4300 digits; write a smaller one")
        raise InputError([problem], str(path)) from None


def study_from_json(document: Document, part_problems: PartProblems, *, source: str = "") -> Study:
    """Return the study that a JSON document describes; ``part_problems`` checks its parts beyond their shape."""
    findings = Findings(source)
    raw = read_document(document, "study", findings)
    readers = {key: partial(_entry, *kinds) for key, kinds in _KINDS.items()}
    values = read_keys(StudyFile, raw, findings, readers=readers)
    for key in _KINDS:
        if raw.get(key) == []:
            findings.add(key, "needs at least one entry")
        if key in raw:
            values[key] = values[key] or [None]
    findings.extend(part_problems(Parts(**{key: values[key] for key in _KINDS})))
    findings.check()
    return Study(**{**values, **{key: tuple(values[key]) for key in _KINDS}})


def _entry(kinds: dict[str, type[Any]], words: str, entry: object, path: str, findings: Findings) -> Any:
    found = [name for name in kinds if name in entry] if isinstance(entry, dict) and len(kinds) > 1 else list(kinds)[:1]
    if len(found) != 1:
        findings.add(path, f"needs one of {words}, and only one")
        return None
    return _read(kinds[found[0]], entry, path, findings)


def _read(shape: type[Any], entry: object, path: str, findings: Findings) -> Any:
    """Return a part of the study; single values become lists, and a number of seeds becomes the seeds."""
    if not isinstance(entry, dict):
        return read_object(shape, entry, path, findings)
    raw, single = dict(entry), set()
    if shape in (GeneratedBatches, GeneratedTraces) and type(raw.get("seeds")) is int:
        if not 1 <= raw["seeds"] <= MOST_SEEDS:
            findings.add(f"{path}.seeds", f"must be from 1 to {MOST_SEEDS} seeds, or a list of them, is {raw['seeds']}")
            raw["seeds"] = 1
        raw["seeds"] = list(range(raw["seeds"]))
    for key, hint in get_type_hints(shape).items():
        if key in raw and get_origin(hint) is tuple and not isinstance(raw[key], list):
            raw[key] = [raw[key]]
            single.add(f"{key}[0]")
        elif get_origin(hint) is Mapping and isinstance(raw.get(key), dict):
            raw[key] = {name: value if isinstance(value, list) else [value] for name, value in raw[key].items()}
    found = Findings("")
    part = read_object(shape, raw, "", found, _STAND_INS.get(shape, {}))
    for problem in found.problems:
        name = problem.path.removesuffix("[0]") if problem.path in single else problem.path
        findings.add(Problem(name, problem.message).below(path).path, problem.message)
    return part
