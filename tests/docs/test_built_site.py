"""The site as it was built: every page is reached by links of the texts, no link is broken, every public name is there.

``MIG_OPT_SITE=site pytest tests/docs/test_built_site.py`` after ``sphinx-build docs site``; `.ci/run` does both.
"""

import functools
import importlib
import os
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import networkx as nx
import public_api
import pytest
from places import BENCH, DOCS

WANTED = "MIG_OPT_SITE"
"""Name of the variable with the folder of the site."""

if WANTED not in os.environ:
    pytest.skip(f"needs the site: sphinx-build docs site, and its folder in {WANTED}", allow_module_level=True)

SITE = Path(os.environ[WANTED]).resolve()
START = SITE / "index.html"
MADE = {"genindex.html", "search.html"}
"""Pages that the tools add: a list of names, and the form for searching; the side of each page leads there."""


@dataclass
class Page(HTMLParser):
    """The anchors of a page, its links, and those of them that stand in its text."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    in_text: set[str] = field(default_factory=set)
    _depth: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._depth += tag == "article"
        of = dict(attributes)
        if of.get("id"):
            self.anchors.add(of["id"] or "")
        link = of.get("href" if tag in {"a", "link"} else "src")
        if link:
            self.links.add(link)
            if tag == "a" and self._depth:
                self.in_text.add(link)

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "article"

    def target(self, link: str) -> tuple[Path, str] | None:
        """The file and the anchor to which a link leads; None for one that leads out of the site."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        file = (self.path.parent / unquote(parts.path)).resolve() if parts.path else self.path
        return file, unquote(parts.fragment)


@functools.cache
def page(path: Path) -> Page:
    return Page(path)


PAGES = sorted(SITE.rglob("*.html"))


def named(path: Path) -> str:
    return path.relative_to(SITE).as_posix()


def test_every_page_of_the_sources_is_there():
    sources = {path.relative_to(DOCS) for end in ("md", "ipynb") for path in DOCS.rglob(f"*.{end}")}
    sources |= {Path("benchmarks", path.name) for path in (BENCH / "results").glob("*.md")}
    assert len(sources) > 80
    assert {path.with_suffix(".html").as_posix() for path in sources} <= {named(path) for path in PAGES}


def test_reading_from_the_start_page_leads_to_every_page():
    links = nx.DiGraph()
    for here in map(page, PAGES):
        links.add_edges_from((here.path, target[0]) for link in here.in_text if (target := here.target(link)))
    assert {named(path) for path in set(PAGES) - nx.descendants(links, START) - {START}} <= MADE


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_links_lead_to_files_and_anchors(path):
    here, wrong = page(path), []
    for link in sorted(here.links):
        target = here.target(link)
        if target is None:
            continue
        file, anchor = target
        if not file.is_file() or (anchor and file.suffix == ".html" and anchor not in page(file).anchors):
            wrong.append(link)
    assert wrong == []


def test_every_public_name_has_its_place_in_the_reference():
    anchors = {name for path in PAGES if path.parent.name == "api" for name in page(path).anchors}
    public = {
        (f"{module}.{name}", id(getattr(importlib.import_module(module), name)))
        for module in public_api.MODULES
        for name in importlib.import_module(module).__all__
    }
    assert len(public) > 120
    there = {identity for name, identity in public if name in anchors}
    assert sorted(name for name, identity in public if identity not in there) == []
