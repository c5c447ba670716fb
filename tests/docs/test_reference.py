"""The reference: generated from the package, and complete."""

from __future__ import annotations

import importlib
import itertools
import re

import api
import commands
import drawings
import formats
import generated
import public_api
import pytest
from places import DOCS

import mig_opt
from mig_opt import GpuModel, catalogue, validation
from mig_opt.cli.commands import COMMANDS
from mig_opt.files import KINDS
from mig_opt.files.schema import schema as schema_of


def test_every_public_name_has_exactly_one_entry() -> None:
    pages = sorted((DOCS / "reference" / "api").glob("*.md"))
    marks = [mark for page in pages for mark in generated.MARK.findall(page.read_text(encoding="utf-8"))]
    entries = [name for kind, names in marks if kind == "api" for name in names.split()]
    assert len(entries) == len(set(entries))
    shown = {id(api.found(name)) for name in entries}
    for module in map(importlib.import_module, public_api.MODULES):
        assert module.__all__
        assert [name for name in module.__all__ if id(getattr(module, name)) not in shown] == []
    assert set(mig_opt.__all__) <= set(entries)


def test_every_code_of_a_violation_is_on_the_page() -> None:
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    named = {name for kind, names in generated.MARK.findall(text) if kind == "codes" for name in names.split()}
    assert named == {name for name in validation.__all__ if name.endswith("ViolationCode")}
    assert "| `runs-overlap` | two tasks run on one instance at once |" in api.codes("ViolationCode")


def test_every_command_has_its_section() -> None:
    text = commands.commands()
    assert re.findall(r"^## `mig-opt (.*)`$", text, re.MULTILINE) == list(COMMANDS)
    section = text.partition("## `mig-opt validate`")[2].partition("\n## ")[0]
    assert "| `--json` |" in section
    assert "$ mig-opt validate batch.json plan.json" in section


def test_every_key_of_every_file_has_its_row() -> None:
    text = formats.formats()
    for kind in KINDS:
        schema = schema_of(kind)
        assert f"## `{schema['title']}`" in text
        for entry in (schema, *schema["$defs"].values()):
            for key in entry.get("properties", ()):
                assert f"| `{key}` |" in text
    links = set(re.findall(r"\]\(#([\w-]+)\)", text))
    assert links <= {title.lower() for title in re.findall(r"^### (\w+)$", text, re.MULTILINE)}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9}, "integer, at least 1, at most 9"),
        ({"type": ["number", "null"], "exclusiveMinimum": 0}, "number, above 0 or null"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string or list of string"),
        ({"const": "a"}, '`"a"`'),
        ({"enum": ["a", "b"]}, '`"a"` or `"b"`'),
        ({"$ref": "#/$defs/Task"}, "[Task](#task)"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "mapping to number"),
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]}, "list of number, string"),
    ],
)
def test_values_in_words(schema: dict[str, object], words: str) -> None:
    assert formats.kind_of(schema) == words


@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
def test_a_drawing_has_a_box_for_each_placement(gpu: GpuModel) -> None:
    boxes = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)"', drawings.drawing(gpu))
    profiles = drawings.plain_profiles(gpu)
    assert len(boxes) == sum(len(profile.starts) for profile in profiles)
    rows: dict[str, list[tuple[int, int]]] = {}
    for left, top, width in boxes:
        rows.setdefault(top, []).append((int(left), int(left) + int(width)))
    for row in rows.values():
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(row)), "boxes overlap"
