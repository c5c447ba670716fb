"""Every block of the pages is run as a reader would, or is marked as a file, an output, or as something not to run."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from blocks import Block, blocks_of, commands_of, first_difference, is_run, run_page
from documents import flaws
from places import DOCS, PROJECT, README

from mig_opt.files.schema import document_kind, json_schema

if not DOCS.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

PAGES = sorted([README, *(page for page in DOCS.rglob("*.md") if page.parent.name != "benchmarks")])
BLOCKS = [(page, block) for page in PAGES for block in blocks_of(page)]
DATA = {"json", "toml", "csv"}


def named(page: Path) -> str:
    return str(page.relative_to(PROJECT))


def documents(block: Block) -> list[object]:
    """The documents that a block is: one, or one in each line."""
    if block.language == "toml":
        return [tomllib.loads(block.text)]
    try:
        return [json.loads(block.text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in block.text.splitlines()]


@pytest.mark.parametrize(
    ("page", "block"), BLOCKS, ids=[f"{page.relative_to(PROJECT)}:{block.line}" for page, block in BLOCKS]
)
def test_every_block_is_run_or_marked(page: Path, block: Block) -> None:
    if is_run(block) or block.mark or block.language == "text":
        return
    assert block.language in DATA, "run it, or mark it: <!-- file: NAME -->, <!-- output -->, <!-- not run: REASON -->"
    if block.language == "csv":
        return
    for document in documents(block):
        assert isinstance(document, dict)
        kind = document_kind(json.dumps(document))
        assert kind is not None, "a document of no kind is an output: <!-- output -->"
        assert flaws(json_schema(kind), document) == []


def runnable(page: Path) -> bool:
    return any(is_run(block) for block in blocks_of(page))


@pytest.mark.deep
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=named)
def test_a_reader_comes_to_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run_page(page, folder, capsys)


# The mechanism


def test_commands_and_their_outputs() -> None:
    text = "$ a b\none\ntwo\n$ c \\\n   d\n"
    assert commands_of(text) == [("a b", ["one", "two"]), ("c    d", [])]


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\nb", "a\n", False),
        ("a", "a\nb\n", False),
        ("a\n...", "a\nb\nc\n", True),
        ("...\nc", "a\nb\nc\n", True),
        ("...\nc", "a\nb\n", False),
        ("runtime 0.1 s", "runtime 0.25 s\n", True),
        ("makespan 0.1 s", "makespan 0.25 s\n", False),
        ("name  time s\n────\na 1.0", "name time s\n──\na 2.0\n", True),
        ("mig-opt 0.1.0", "mig-opt 1.2.3\n", True),
    ],
)
def test_differences_that_count(shown: str, printed: str, equal: bool) -> None:
    assert (first_difference(shown.splitlines(), printed) is None) == equal


def test_marks_of_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- run: ls -->\n\n<!-- file: a.csv -->\n```csv\nx\n```\n\n```python\n1\n```\n", encoding="utf-8")
    assert [(block.language, block.mark) for block in blocks_of(page)] == [
        ("run", ""),
        ("csv", "file: a.csv"),
        ("python", ""),
    ]
