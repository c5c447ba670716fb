"""The reference of the file formats, from their JSON Schemas."""

from __future__ import annotations

import json
from typing import Any

from mig_opt.files import KINDS
from mig_opt.files.schema import schema as schema_of

LIMITS = {"minimum": "at least {}", "exclusiveMinimum": "above {}", "maximum": "at most {}", "minItems": "not empty"}


def formats() -> str:
    """Return a section for each kind of file, with a table for each kind of object in it."""
    known: dict[str, Any] = {}
    parts = []
    for kind in KINDS:
        schema = schema_of(kind)
        parts += [f"## `{schema['title']}`", schema.get("description", "")]
        parts += _object(schema)
        for name, definition in sorted(schema["$defs"].items()):
            if known.get(name) == definition:
                continue
            title = name if name not in known else f"{name} of {kind}"
            known.setdefault(name, definition)
            parts += [f"### {title}", definition.get("description", "")]
            if "properties" in definition:
                parts += _object(definition)
            else:
                parts.append(f"Type: {kind_of(definition)}.")
    return "\n\n".join(part for part in parts if part)


def _object(schema: dict[str, Any]) -> list[str]:
    required = set(schema.get("required", ()))
    rows = ["| key | value | meaning |", "|---|---|---|"]
    for key, value in schema["properties"].items():
        meaning = value.get("description", "")
        if key in required:
            note = "required"
        elif value.get("default") not in (None, [], {}, ""):
            note = f"default {json.dumps(value['default'])}"
        else:
            note = "optional"
        rows.append(f"| `{key}` | {kind_of(value)}; *{note}* | {_plain(meaning)} |")
    return ["\n".join(rows), *(f"```json\n{_example(example)}\n```" for example in schema.get("examples", ()))]


def _example(value: Any) -> str:
    line = json.dumps(value)
    if len(line) <= 100 or not isinstance(value, dict):
        return line if len(line) <= 100 else json.dumps(value, indent=1)
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {_entry(entry)}" for key, entry in value.items()) + "\n}"


def _entry(value: Any) -> str:
    line = json.dumps(value)
    if len(line) <= 90 or not isinstance(value, list):
        return line
    return "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in value) + "]"


def kind_of(schema: dict[str, Any]) -> str:
    """Return what a value has to be, in words.

    Examples
    --------
    >>> kind_of({"type": "array", "items": {"type": "number", "minimum": 0}})
    'list of number, at least 0'
    """
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(kind_of, schema[several])))
    kinds = schema.get("type", "anything")
    return " or ".join(_one_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _one_kind(kind: str, schema: dict[str, Any]) -> str:
    if kind == "array":
        if "prefixItems" in schema:
            return "list of " + ", ".join(map(kind_of, schema["prefixItems"]))
        return f"list of {kind_of(schema['items'])}" if "items" in schema else "list"
    if kind == "object":
        values = [*schema.get("patternProperties", {}).values()]
        more = schema.get("additionalProperties")
        values += [more] if isinstance(more, dict) else []
        return f"mapping to {' or '.join(map(kind_of, values))}" if values else "object"
    if kind in ("number", "integer"):
        limits = [text.format(schema[key]) for key, text in LIMITS.items() if key in schema]
        return ", ".join([kind, *limits])
    return kind


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|").replace("<", r"\<").replace("*", r"\*")
