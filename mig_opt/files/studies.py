"""Studies as JSON and TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import Document, file_path, read_text, shown
from mig_opt.files.limits import MOST_SEEDS
from mig_opt.files.parts import NOTHING, Findings, Raw, check_keys, read_document, read_object, read_value
from mig_opt.files.shapes import listed_keys
from mig_opt.study import BatchFromFile, BatchSource, BundledBatch, GeneratedBatches, MethodSettings, Study

PartProblems = Callable[[Sequence[BatchSource | None], Sequence[MethodSettings | None]], Iterable[Problem]]
"""Finds what is wrong with the parts of a study beyond their shape; None is a part that cannot be read."""

_SOURCES: dict[str, type[Any]] = {"instance": BundledBatch, "file": BatchFromFile, "n": GeneratedBatches}
"""Kinds of entries of ``batches``, by the key that only they have."""

_STAND_INS: dict[type[Any], Raw] = {GeneratedBatches: {"n": [1]}}
"""What takes the place of what cannot be read, so that the rest can be checked."""


def study_document(path: str | Path) -> Document:
    """Return what a study file contains: its text, or the object that it stands for if its name ends in ``.toml``.

    Raises
    ------
    InputError
        If it cannot be read, or is not valid TOML.
    """
    path = file_path(path)
    text = read_text(path)
    if path.suffix.lower() != ".toml":
        return text
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError([Problem("", f"not valid TOML: {error}")], str(path)) from None


def study_from_json(document: Document, part_problems: PartProblems, *, source: str = "") -> Study:
    """Return the study that a JSON document describes.

    Parameters
    ----------
    document : str, bytes or mapping
        JSON text, or the object that it stands for.
    part_problems : callable
        Finds what is wrong with the parts beyond their shape.
    source : str
        Where the document is from, for messages.

    Raises
    ------
    InputError
        With every problem of the document.
    """
    raw, findings = read_document(document, source)
    check_keys(raw, "study", findings)
    batches = [_source(entry, f"batches[{index}]", findings) for index, entry in _entries(raw, "batches", findings)]
    methods = [
        _read(MethodSettings, entry, f"methods[{index}]", findings)
        for index, entry in _entries(raw, "methods", findings)
    ]
    values: dict[str, Any] = {
        key: value
        for key, shape in (("repetitions", int), ("seed", int), ("fresh", bool))
        if (value := read_value(shape, raw, key, findings)) is not None
    }
    for key, least in (("repetitions", 1), ("seed", 0)):
        if not least <= values.get(key, least) < 2**30:
            findings.add(key, f"must be from {least} to {2**30 - 1}, is {values[key]}")
    # A list that is missing or none has been reported, an empty one has not.
    findings.extend(
        part_problems(
            batches if batches or raw.get("batches") == [] else [None],
            methods if methods or raw.get("methods") == [] else [None],
        )
    )
    findings.check()
    return Study(tuple(entry for entry in batches if entry), tuple(entry for entry in methods if entry), **values)


def _entries(raw: Raw, key: str, findings: Findings) -> Iterable[tuple[int, object]]:
    entries = raw.get(key, [])
    if not isinstance(entries, list):
        findings.add(key, f"must be a list [...], is {shown(entries)}")
        return ()
    return enumerate(entries)


def _source(entry: object, path: str, findings: Findings) -> BatchSource | None:
    kinds = [key for key in _SOURCES if key in entry] if isinstance(entry, dict) else list(_SOURCES)[:1]
    if len(kinds) != 1:
        findings.add(path, 'needs one of "instance" (a bundled one), "file", and "n" (of the generator), and only one')
        return None
    found: BatchSource | None = _read(_SOURCES[kinds[0]], entry, path, findings)
    return found


def _read(shape: type[Any], entry: object, path: str, findings: Findings) -> Any:
    """Return a part of the study; single values become lists, and a number of seeds becomes the seeds."""
    if not isinstance(entry, dict):
        return read_object(shape, entry, path, findings)
    raw, single = dict(entry), set()
    if shape is GeneratedBatches and type(raw.get("seeds")) is int:
        if not 1 <= raw["seeds"] <= MOST_SEEDS:
            findings.add(f"{path}.seeds", f"must be from 1 to {MOST_SEEDS} seeds, or a list of them, is {raw['seeds']}")
            raw["seeds"] = 1
        raw["seeds"] = list(range(raw["seeds"]))
    for key in listed_keys(shape):
        if key in raw and not isinstance(raw[key], list):
            raw[key] = [raw[key]]
            single.add(f"{key}[0]")
    found = Findings("")
    part = read_object(shape, raw, "", found, _STAND_INS.get(shape, NOTHING))
    for problem in found.problems:
        name = problem.path.removesuffix("[0]") if problem.path in single else problem.path
        findings.add(Problem(name, problem.message).below(path).path, problem.message)
    return part
