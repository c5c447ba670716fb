"""The site: its reference, generated from the package and complete, links out of its folder, a way to every page."""

import importlib
import itertools
import os
import re
from pathlib import Path

import api
import benchmarks
import commands
import drawings
import formats
import generated
import networkx as nx
import public_api
import pytest
from places import DOCS

import mig_opt
from mig_opt import catalogue, validation
from mig_opt import schema as schema_of
from mig_opt.cli.commands import COMMANDS
from mig_opt.files import KINDS


def test_every_public_name_has_exactly_one_entry():
    pages = sorted((DOCS / "reference" / "api").glob("*.md"))
    marks = [mark for page in pages for mark in generated.MARK.findall(page.read_text(encoding="utf-8"))]
    entries = [name for kind, names in marks if kind == "api" for name in names.split()]
    assert len(entries) == len(set(entries))
    shown = {id(api.found(name)) for name in entries}
    for module in map(importlib.import_module, public_api.MODULES):
        assert module.__all__
        assert [name for name in module.__all__ if id(getattr(module, name)) not in shown] == []
    assert set(mig_opt.__all__) <= set(entries)


def test_every_code_of_a_violation_is_on_the_page():
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    named = {name for kind, names in generated.MARK.findall(text) if kind == "codes" for name in names.split()}
    assert named == {name for name in validation.__all__ if name.endswith("ViolationCode")}
    assert "| `runs-overlap` | two tasks run on one instance at once |" in api.codes("ViolationCode")


def test_every_command_has_its_section():
    text = commands.commands()
    assert re.findall(r"^## `mig-opt (.*)`$", text, re.MULTILINE) == list(COMMANDS)
    section = text.partition("## `mig-opt validate`")[2].partition("\n## ")[0]
    assert "| `--json` |" in section
    assert "$ mig-opt validate batch.json plan.json" in section


def test_every_key_of_every_file_has_its_row():
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
def test_values_in_words(schema, words):
    assert formats.kind_of(schema) == words


@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
def test_a_drawing_has_a_box_for_each_placement(gpu):
    boxes = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)"', drawings.drawing(gpu))
    profiles = drawings.plain_profiles(gpu)
    assert len(boxes) == sum(len(profile.starts) for profile in profiles)
    rows: dict[str, list[tuple[int, int]]] = {}
    for left, top, width in boxes:
        rows.setdefault(top, []).append((int(left), int(left) + int(width)))
    for row in rows.values():
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(row)), "boxes overlap"


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("docs/how-to/run-a-plan.md#scripts", "how-to/run-a-plan.md#scripts"),
        ("bench/results/exact.md", "benchmarks/exact.md"),
        ("bench/README.md", "benchmarks/commands.md"),
        ("bench/results/gaps_small.svg", "../bench/results/gaps_small.svg"),
        ("https://example.org/a.md", "https://example.org/a.md"),
        ("#below", "#below"),
    ],
)
def test_links_of_the_readme_on_the_start_page(link, there):
    assert generated.with_links(f"see [x]({link}).", Path(), Path("docs/index.md")) == f"see [x]({there})."


def test_links_of_results_on_their_pages():
    text = "[a](../../docs/reference/traces.md) ![b](b.svg)"
    shown = generated.with_links(text, Path("bench/results"), Path("docs/benchmarks/b.md"))
    assert shown == "[a](../reference/traces.md) ![b](../../bench/results/b.svg)"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_generated_parts_have_a_function(page):
    text = page.read_text(encoding="utf-8")
    marks = generated.MARK.findall(text)
    assert len(marks) == text.count("<!-- generated:")
    assert {name for name, _ in marks} <= generated.GENERATED.keys()


def test_every_page_is_reachable_from_the_start_page():
    pages = {path for path in DOCS.rglob("*.md") if benchmarks.FOLDER not in path.relative_to(DOCS).parts}
    pages |= set(DOCS.rglob("*.ipynb"))
    links = nx.DiGraph()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        listed = generated.contents(text).partition(":hidden:")[2] if "<!-- contents -->" in text else ""
        for name in re.findall(r"^(\S+)$", listed, re.MULTILINE):
            links.add_edges_from(
                (page, Path(os.path.normpath(page.parent / f"{name}{end}"))) for end in (".md", ".ipynb")
            )
    assert pages - nx.descendants(links, DOCS / "index.md") == {DOCS / "index.md"}


def test_every_result_has_its_page_and_says_where_and_when(tmp_path):
    benchmarks.write_pages(tmp_path)
    overview = benchmarks.overview()
    pages = {path.stem for path in (tmp_path / benchmarks.FOLDER).glob("*.md")}
    assert pages == {"commands", *(path.stem for path in benchmarks.RESULTS.glob("*.md"))}
    assert len(pages) > 20
    assert set(re.findall(rf"^\.\./{benchmarks.FOLDER}/(\w+)$", overview, re.MULTILINE)) == pages
    rows = [line for line in overview.splitlines() if line.startswith("| [")]
    assert len(rows) == len(pages) - 1
    where = r"20\d\d-\d\d-\d\d, \w+ \w+, [^,]+, \d+ cores, Python 3\.\d+\.\d+, mig-opt \d+\.\d+\.\d+\b.*|made of \[.*"
    assert [row for row in rows if not re.fullmatch(rf"\| \[.*\]\(\S+\) \| ({where}) \|", row)] == []
    made_of = {name for row in rows for name in re.findall(r"\(\S+?/(\w+)\.md\)", row)}
    assert made_of <= pages
