"""JSON Schemas of the kinds of files, and recognition of the kind of a file."""

from __future__ import annotations

import csv
import inspect
import re
from typing import Any

from pydantic import TypeAdapter

from mig_opt.batch.certificate import Claim
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.documents import decoded, parsed
from mig_opt.files.keywords import DESCRIBED_BY, DESCRIPTIONS, EXAMPLES, KEYWORDS, WHOLE_OBJECT, Keywords
from mig_opt.files.serving.demands import SERVICE_COLUMNS
from mig_opt.files.shapes import FILES, Kind
from mig_opt.files.tables import below_comments
from mig_opt.result import Status


def json_schema(kind: Kind) -> dict[str, Any]:
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
    >>> schema = json_schema("batch")
    >>> schema["required"], schema["properties"]["gpus"]["minimum"]
    (['schema', 'gpu', 'tasks'], 1)
    """
    if kind not in FILES:
        raise InputError([Problem("kind", f"no kind of file is called {kind!r}; {nearest(str(kind), FILES)}")])
    root = TypeAdapter(FILES[kind]).json_schema()
    definitions = root.pop("$defs", {})
    for shape in EXAMPLES:
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
    schema.pop("title", None)
    schema |= {"description": _plain(inspect.getdoc(shape) or "").partition("\n")[0], "additionalProperties": False}
    schema |= {**WHOLE_OBJECT.get(shape, {}), "examples": [EXAMPLES[shape]]}
    descriptions = {**DESCRIPTIONS, **_attributes(DESCRIBED_BY.get(shape, shape))}
    for key, found in schema["properties"].items():
        keywords = KEYWORDS.get(shape, {}).get(key, {})
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


def document_kind(document: str | bytes, *, table: bool = False) -> Kind | None:
    """Return the kind of file that a document is meant to be, mistakes or not; None if that cannot be told.

    A CSV table is one of services if it has a column that only they have, else one of tasks.

    Examples
    --------
    >>> document_kind('{"schema": "mig-opt/services/1"}'), document_kind("model,slo_s,rate_rps", table=True)
    ('services', 'services')
    """
    try:
        text = decoded(document, "") if isinstance(document, bytes) else document
        if table:
            columns = next(csv.reader(below_comments(text).strip().splitlines()), [])
            keys = {SERVICE_COLUMNS.get(column.strip()) for column in columns}
            return "services" if keys & {"slo", "rate"} else "batch"
        raw, _ = parsed(text, "")
    except (InputError, csv.Error):
        return None
    stated = raw.get("schema")
    if stated is None:
        return "services" if "services" in raw else "batch" if "tasks" in raw else None
    named = re.fullmatch(r"mig-opt/([a-z-]+)/[0-9]+", str(stated))
    return next((kind for kind in FILES if named and kind == named[1]), None)
