"""The site: links out of its folder, generated parts, and a way from the start page to every page."""

from __future__ import annotations

import os
import re
from pathlib import Path

import benchmarks
import generated
import pytest
from places import DOCS


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
def test_links_of_the_readme_on_the_start_page(link: str, there: str) -> None:
    assert generated.with_links(f"see [x]({link}).", Path(), Path("docs/index.md")) == f"see [x]({there})."


def test_links_of_results_on_their_pages() -> None:
    text = "[a](../../docs/reference/traces.md) ![b](b.svg)"
    page = Path("docs/benchmarks/b.md")
    assert (
        generated.with_links(text, Path("bench/results"), page)
        == "[a](../reference/traces.md) ![b](../../bench/results/b.svg)"
    )


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_generated_parts_have_a_function(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    marks = generated.MARK.findall(text)
    assert len(marks) == text.count("<!-- generated:")
    assert {name for name, _ in marks} <= generated.GENERATED.keys()


def test_every_page_is_reachable_from_the_start_page() -> None:
    pages = {path for path in DOCS.rglob("*.md") if benchmarks.FOLDER not in path.relative_to(DOCS).parts}
    pages |= set(DOCS.rglob("*.ipynb"))
    start = DOCS / "index.md"
    reached, open_ = {start}, [start]
    while open_:
        page = open_.pop()
        text = page.read_text(encoding="utf-8")
        if "<!-- contents -->" not in text:
            continue
        for name in re.findall(r"^(\S+)$", generated.contents(text).partition(":hidden:")[2], re.MULTILINE):
            ends = [page.parent / f"{name}{end}" for end in (".md", ".ipynb")]
            found = {Path(os.path.normpath(path)) for path in ends} & pages - reached
            reached |= found
            open_ += found
    assert pages - reached == set()


def test_every_result_has_its_page_and_says_where_and_when(tmp_path: Path) -> None:
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
