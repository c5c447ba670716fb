"""Studies as JSON and TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_args

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.documents import Document, file_path, read_text
from mig_opt.files.kinds import FileKind
from mig_opt.files.values import Findings, Raw, defaults_of
from mig_opt.method.functions import name_of
from mig_opt.method.study import (
    BatchFromFile,
    BundledBatch,
    GeneratedBatches,
    GeneratedTraces,
    MethodSettings,
    PolicySettings,
    Study,
    TraceFromFile,
)
from mig_opt.rules import hints_of, parts_of

_PAIRS = (("batches", "methods"), ("traces", "policies"))
"""Lists of a study that need each other."""


PartProblems = Callable[[Study], Iterable[Problem]]
"""Finds what is wrong with the lists of a study beyond their shape; an entry that cannot be read is None."""

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


def _study(values: Raw, raw: Raw, _: str, findings: Findings, *, part_problems: PartProblems) -> Study:
    lists = {key: values[key] or ([None] if key in raw else ()) for pair in _PAIRS for key in pair}
    parts: Raw = {key: [part and _readable(part) for part in given] for key, given in lists.items()}
    findings.extend(part_problems(Study(**parts)))
    findings.check()
    return Study(**values)


def _readable(part: Any) -> Any:
    """Return a part of a study with defaults for what could not be read of it; None if it then lacks something."""
    shape: Any = type(part)
    values: dict[str, Any] = {"n": (1,)} if isinstance(part, GeneratedBatches) else {}
    for name, hint in hints_of(shape).items():
        value, optional = getattr(part, name), parts_of(hint).optional
        entry = get_args(parts_of(hint).bare)[:1]
        unread = isinstance(value, tuple) and None in value and not parts_of(*entry).optional
        if (value is not None or optional) and not unread:
            values[name] = value
    return shape(**values) if hints_of(shape).keys() <= values.keys() | defaults_of(shape).keys() else None


def _named(study: Study, document: Raw) -> Raw:
    """Return the document of a study; refuse one with functions and objects, of which a file can have no name."""
    own = [("methods", "method", one.method) for one in study.methods]
    own += [("policies", "policy", one.policy) for one in study.policies]
    wrong = [
        Problem(f"{key}.{name}", f"{name_of(given)} is no name of the package, and files have only these")
        for key, name, given in own
        if not isinstance(given, str)
    ]
    raise_any(wrong)
    return document


STUDY: FileKind[Study] = FileKind(
    "study",
    Study,
    {
        Study: {"batches": [{"n": [10, 20], "seeds": 30}], "methods": [{"method": "far"}]},
        BundledBatch: {"instance": "rodinia-a30"},
        BatchFromFile: {"file": "batch.json"},
        TraceFromFile: {"file": "trace.json"},
        GeneratedBatches: {"n": 20},
        GeneratedTraces: {"family": "normal-25"},
        MethodSettings: {"method": "cp"},
        PolicySettings: {"policy": "first-fit"},
    },
    whole={
        "anyOf": [{"required": list(pair)} for pair in _PAIRS],
        "dependentRequired": {key: [other] for pair in _PAIRS for key, other in (pair, pair[::-1])},
    },
    options=("part_problems",),
    prepare=lambda raw, _, __, **_given: raw,
    build=_study,
    finish=_named,
)
