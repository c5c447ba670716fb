"""Parts of pages that are generated when the site is built, and links that lead out of its folder.

A line ``<!-- generated: NAME -->`` of a page stands for the text of a function below. Pages are read in the repository
as well, so they link to files where these are; here such links lead to the pages made of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import api
import benchmarks
import commands
import drawings
import figures
import formats
import library
from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

REPOSITORY = Path(__file__).parents[2]
FENCED = re.compile(r"^(```+).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
MARK = re.compile(r"^<!-- generated: ([\w-]+)((?:\s+[\w.]+)*)\s*-->$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect this with the reading of pages."""
    app.connect("builder-inited", lambda app: benchmarks.write_pages(Path(app.srcdir)))
    app.connect("source-read", _read)
    app.add_lexer("csv", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    """Complete a page before it is parsed."""
    if Path(app.env.doc2path(name)).suffix != ".md":
        return
    page = Path("docs", f"{name}.md")
    text = with_links(figures.completed(source[0]), page.parent if name != "index" else Path("docs"), page)
    text = MARK.sub(lambda mark: GENERATED[mark[1]](*mark[2].split()), text)
    source[0] = text + contents(source[0]) if "<!-- contents -->" in source[0] else text


def with_links(text: str, folder: Path, page: Path) -> str:
    """Return a text of a folder as that of a page: links are relative to the page, and stay within the site.

    Parameters
    ----------
    text : str
        The text in Markdown.
    folder : Path
        Where it comes from, relative to the repository.
    page : Path
        Where it goes, relative to the repository.
    """

    def link(found: re.Match[str]) -> str:
        name, hash_, heading = found[1].partition("#")
        if not name or ":" in name:
            return found[0]
        target = Path(os.path.normpath(folder / name))
        if target.suffix == ".md" and target.parts[0] == "bench":
            target = Path("docs", benchmarks.FOLDER, f"{benchmarks.page_name(target)}.md")
        return f"]({os.path.relpath(target, page.parent)}{hash_}{heading})"

    parts, end = [], 0
    for block in FENCED.finditer(text):
        parts += [LINK.sub(link, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(link, text[end:])])


def contents(text: str) -> str:
    """Return the hidden table of contents: the pages that lists of a page link to, in that order."""
    pages = re.findall(r"^\s*[*|-] .*?\]\(([\w/.-]+)\.(?:md|ipynb)\)", text, re.MULTILINE)
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def _readme() -> str:
    return with_links((REPOSITORY / "README.md").read_text(encoding="utf-8"), Path(), Path("docs/index.md"))


GENERATED: dict[str, Callable[..., str]] = {
    "api": api.api,
    "benchmarks": benchmarks.overview,
    "codes": api.codes,
    "commands": commands.commands,
    "formats": formats.formats,
    "gaps": library.gaps,
    "gpus": drawings.catalogue_of_gpus,
    "instances": library.table,
    "placements": drawings.placements,
    "readme": _readme,
}
