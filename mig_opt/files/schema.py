"""JSON Schemas of the kinds of files."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from mig_opt.batch.certificate import Claim
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files import KINDS
from mig_opt.files.kinds import FileKind
from mig_opt.files.values import EXAMPLES, NESTED
from mig_opt.method.functions import imported
from mig_opt.method.result import Status
from mig_opt.rules import hints_of, is_among

_Keywords = dict[str, Any]
_MODEL = "#/$defs/GpuModel"


def schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file.

    It states everything about a file that can be said without knowing the GPU, and without comparing one part of the
    file with another.

    Parameters
    ----------
    kind : str
        The kind of file, such as ``batch``; ``mig-opt schema --help`` names all of them.

    Raises
    ------
    InputError
        If there is no such kind.

    Examples
    --------
    >>> batch = schema("batch")
    >>> batch["required"], batch["properties"]["gpus"]["minimum"]
    (['schema', 'tasks'], 1)
    """
    if not is_among(kind, KINDS):
        raise InputError([Problem("kind", f"no kind of file is called {kind!r:.60}; {nearest(kind, KINDS)}")])
    found = imported(KINDS[kind].place)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": found.title, **_described(found)}


def _described(kind: FileKind[Any]) -> _Keywords:
    """Return the schema of a file, with those of its parts as definitions."""
    stated = Annotated[Literal[kind.title], Field(description="Name and version of the format.")]  # type: ignore[name-defined]
    keys: list[Any] = [("schema", stated)]
    for key, hint in kind.types.items():
        default = kind.all_defaults.get(key, dataclasses.MISSING)
        kind_of_default: Any = "default_factory" if callable(default) else "default"
        keys.append((key, hint, dataclasses.field(**{kind_of_default: default})))
    root = _flat(TypeAdapter(dataclasses.make_dataclass("File", keys, kw_only=True)).json_schema())
    definitions = root.pop("$defs", {})
    if _MODEL in str((root, definitions)):
        definitions |= {"GpuModel": {}}
    for shape in EXAMPLES:
        name = shape.__name__
        if name in definitions and shape in NESTED:
            definitions[name] = _described(NESTED[shape])
            definitions |= definitions[name].pop("$defs")
        elif name in definitions:
            for key in definitions[name]["properties"].keys() - hints_of(shape).keys():
                del definitions[name]["properties"][key]  # nobody can give it
            definitions[name] = _completed(definitions[name], shape, kind.described_by)
    for kinds in (Status, Claim):
        if kinds.__name__ in definitions:
            definitions[kinds.__name__]["description"] = inspect.getdoc(kinds)
    return {**_completed(root, kind.shape, kind.described_by), **kind.whole, "$defs": definitions}


def _completed(schema: _Keywords, shape: type, described_by: Mapping[type, type]) -> _Keywords:
    """Return the schema of an object with all that its types do not say, and without what nobody needs."""
    descriptions = _attributes(described_by.get(shape, shape))
    for key, found in schema["properties"].items():
        if key in descriptions:
            found.setdefault("description", descriptions[key])
        one, *more = found.get("anyOf", [{}])
        if more and more[0].get("items") == one and len(found.get("default") or ()) == 1:
            found["default"] = found["default"][0]  # it may stand for a list
        if "minItems" in found or (isinstance(found.get("default"), dict) and found["default"]):
            found.pop("default", None)
    description = _plain(inspect.getdoc(shape) or "").partition("\n")[0]
    required = [key for key in schema["required"] if key in EXAMPLES[shape]]
    own = {"description": description, "additionalProperties": False, "required": required}
    return {**schema, **own, "examples": [EXAMPLES[shape]]}


def _flat(value: Any) -> Any:
    """Return a part of a schema without titles, and with null as one more type in place of one more schema."""
    if not isinstance(value, dict):
        return [_flat(entry) for entry in value] if isinstance(value, list) else value
    if value.keys() == {"$comment"}:  # the model of a GPU, of which a rule cannot say more
        return {"$ref": _MODEL}
    found = {key: _flat(entry) for key, entry in value.items() if key != "title"}
    one, *more = found.get("anyOf", [{}])
    if more == [{"type": "null"}] and isinstance(one.get("type"), str):
        del found["anyOf"]
        found = {**one, "type": [one["type"], "null"], **found}
    return found


def _attributes(shape: type) -> dict[str, str]:
    """Return the descriptions in the section Attributes of the docstring of a class, by attribute."""
    section = re.search(r"Attributes\n-+\n(.*?)(?:\n\n\S[^\n]*\n-+\n|\Z)", inspect.getdoc(shape) or "", re.DOTALL)
    entries = re.findall(r"^(\S.*?) :.*\n((?:(?: +.*)?\n?)+)", section[1] if section else "", re.MULTILINE)
    return {name: " ".join(_plain(text).split()) for names, text in entries for name in names.split(", ")}


def _plain(text: str) -> str:
    """Return a docstring without its mark-up."""
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("``", "")
