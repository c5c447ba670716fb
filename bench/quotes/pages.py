"""The figures that README and the pages quote, written again from the results; or compared with them.

Run: python -m bench.quotes.pages, after a study was measured again. It says which figures changed, and which sentences
do not hold any more: these are mended by hand. With --check nothing is written. The modules of the topics name the
source of each figure, page by page; a test compares all of them.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.quotes.quoting import Entry, Reading, read, unknown
from bench.report import start

ROOT = Path(__file__).parents[2]
TOPICS: tuple[str, ...] = (
    *("proofs", "heuristics", "services", "migrations", "admission", "schedulers", "planner", "papers", "guides"),
)
"""Each is a module beside this one, with the entries of its pages, ``PAGES``."""


def entries() -> dict[str, Sequence[Entry]]:
    """Return what is known of each page, by its path in the repository."""
    found: dict[str, Sequence[Entry]] = {}
    for topic in TOPICS:
        pages: Mapping[str, Sequence[Entry]] = importlib.import_module(f"bench.quotes.{topic}").PAGES
        for page, own in pages.items():
            found[page] = (*found.get(page, ()), *own)
    return found


def reading(page: str, root: Path = ROOT) -> Reading:
    """Return what becomes of a page."""
    return read((root / page).read_text(encoding="utf-8"), entries()[page])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, and say what is different; the exit code is 1 if something has to be mended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", nargs="*", metavar="PAGE", help="some pages, such as README.md (all)")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; the exit code is 1 if a figure is different"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    known = entries()
    for page in options.page:
        if page not in known:
            parser.error(f"no figures are known of {page}; there are {', '.join(known)}")
    wrong = False
    for page in options.page or known:
        found = reading(page, options.root)
        for change in found.changes:
            print(f"{page}, {change}")
        for problem in (*found.problems, *unknown(found.text, found.covered)):
            print(f"{page}: {problem}", file=sys.stderr)
            wrong = True
        if options.check:
            wrong = wrong or bool(found.changes)
        elif found.changes:
            (options.root / page).write_text(found.text, encoding="utf-8")
    return int(wrong)


if __name__ == "__main__":
    start(main)
