"""JSON Schemas of the kinds of files."""

from __future__ import annotations

import inspect
import re
from typing import Any

from pydantic import TypeAdapter

from mig_opt.batch.certificate import Claim
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.batch.batches import BatchFile
from mig_opt.files.batch.certificates import CertificateFile
from mig_opt.files.batch.journals import CommandsFile
from mig_opt.files.batch.schedules import ResultFile, ScheduleFile
from mig_opt.files.costs import CostsFile
from mig_opt.files.fleet.states import StateFile
from mig_opt.files.fleet.traces import TraceFile
from mig_opt.files.serving.demands import ServicesFile
from mig_opt.files.serving.deployment_results import DeploymentResultFile
from mig_opt.files.serving.deployments import DeploymentFile
from mig_opt.files.serving.profiles import ProfilesFile
from mig_opt.files.shapes import WORDS, Keywords, Kind
from mig_opt.files.studies import StudyFile
from mig_opt.method.result import Status

FILES: dict[Kind, type] = {
    "batch": BatchFile,
    "schedule": ScheduleFile,
    "result": ResultFile,
    "certificate": CertificateFile,
    "commands": CommandsFile,
    "study": StudyFile,
    "services": ServicesFile,
    "profiles": ProfilesFile,
    "deployment": DeploymentFile,
    "deployment-result": DeploymentResultFile,
    "trace": TraceFile,
    "state": StateFile,
    "costs": CostsFile,
}
"""The shape of each kind of file."""

_DESCRIPTIONS = {
    "schema": "Name and version of the format.",
    "instance": "Name of a bundled instance.",
    "file": "Path of a JSON or CSV file, seen from this one.",
    "gpu": "In place of the GPU that the file names; CSV files need it.",
    "gpus": "In place of its number of GPUs, or one for each of a list.",
    "operation_costs": "Whether creations and destructions take time.",
    "family": "Family of traces, or a list of them.",
    "parameters": "Parameters of the family, each with its value or a list.",
    "group": "Traces of the same group are summarised together.",
    "policy": "Name of the scheduler.",
    "options": "Its options, each with its value or a list of values.",
    "label": "Name in tables.",
}
"""Descriptions of keys that no docstring describes."""


def schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file.

    It states everything about a file that can be said without knowing the GPU, and without comparing one part of the
    file with another.

    Parameters
    ----------
    kind : str
        The kind of file: ``batch``, ``schedule``, ``result``, ``certificate``, ``commands``, ``study``, ``services``,
        ``profiles``, ``deployment``, ``deployment-result``, ``trace``, ``state`` or ``costs``.

    Raises
    ------
    InputError
        If there is no such kind.

    Examples
    --------
    >>> batch = schema("batch")
    >>> batch["required"], batch["properties"]["gpus"]["minimum"]
    (['schema', 'gpu', 'tasks'], 1)
    """
    if kind not in FILES:
        raise InputError([Problem("kind", f"no kind of file is called {kind!r}; {nearest(str(kind), FILES)}")])
    root = TypeAdapter(FILES[kind]).json_schema()
    definitions = root.pop("$defs", {})
    for shape in WORDS:
        if shape is FILES[kind]:
            _complete(root, shape, one_or_more=False)
        elif shape.__name__ in definitions:
            _complete(definitions[shape.__name__], shape, one_or_more=kind == "study")
    for kinds in (Status, Claim):
        if kinds.__name__ in definitions:
            del definitions[kinds.__name__]["title"]
            definitions[kinds.__name__]["description"] = inspect.getdoc(kinds)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"mig-opt/{kind}/1",
        **{key: value for key, value in root.items() if key != "title"},
        "$defs": definitions,
    }


def _complete(schema: Keywords, shape: type, *, one_or_more: bool) -> None:
    """Add to the schema of an object what its types do not say; drop what nobody needs.

    With ``one_or_more``, a single value may stand for a list of one.
    """
    words = WORDS[shape]
    schema.pop("title", None)
    schema |= {"description": _plain(inspect.getdoc(shape) or "").partition("\n")[0], "additionalProperties": False}
    schema |= {**words.whole, "examples": [words.example]}
    descriptions = {**_DESCRIPTIONS, **_attributes(words.described_by or shape)}
    for key, found in schema["properties"].items():
        keywords = words.keys.get(key, {})
        found.pop("title", None)
        if key in descriptions:
            found.setdefault("description", descriptions[key])
        alternatives = [alternative.get("type") for alternative in found.get("anyOf", ())]
        if alternatives and set(alternatives) <= {"number", "null"}:
            del found["anyOf"]
            found["type"] = alternatives
        if "minItems" in found:
            found.pop("default", None)  # of a list that is left out or has entries
        if "anyOf" in keywords:
            found.clear()
        elif one_or_more and found.get("type") == "array":
            keywords = _let_one_stand_for_a_list(found, keywords)
        elif one_or_more and found.get("type") == "object":
            item, keywords = keywords, {}
            found["additionalProperties"] = {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}
        found.update(keywords)


def _let_one_stand_for_a_list(schema: Keywords, keywords: Keywords) -> Keywords:
    """Let a list in a schema have a single value in its place; return those keywords that are not of its values."""
    own = {name: value for name, value in keywords.items() if name == "description"}
    item = {**schema.pop("items"), **{name: value for name, value in keywords.items() if name not in own}}
    alternatives = [alternative["type"] for alternative in item.pop("anyOf", ())]
    if alternatives:
        item["type"] = alternatives
    del schema["type"]
    if len(schema.get("default") or ()) == 1:
        schema["default"] = schema["default"][0]
    schema["anyOf"] = [item, {"type": "array", "items": item, "minItems": 1}]
    return own


def _attributes(shape: type) -> dict[str, str]:
    """Return the descriptions in the section Attributes of the docstring of a class, by attribute."""
    section = re.search(r"Attributes\n-+\n(.*?)(?:\n\n\S[^\n]*\n-+\n|\Z)", inspect.getdoc(shape) or "", re.DOTALL)
    entries = re.findall(r"^(\S.*?) :.*\n((?:(?: +.*)?\n?)+)", section[1] if section else "", re.MULTILINE)
    return {name: " ".join(_plain(text).split()) for names, text in entries for name in names.split(", ")}


def _plain(text: str) -> str:
    """Return a docstring without its mark-up."""
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("``", "")
