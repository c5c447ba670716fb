"""Every printed figure of the papers beside the measured one, with a verdict.

Run: python -m bench.papers.measure far, or another paper of docs/explanation/papers/README.md; without a name all of
them. With --only, some groups of one paper.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from bench.papers.claims import STORED, Group, Measured, Paper, Store
from bench.report import describe, parser_of, some_of, start
from mig_opt.studies.environment import fingerprint

PAPERS: tuple[str, ...] = ("far", "parvagpu", "migm", "fragmentation", "pcie")
"""Each is a module beside this one with a :class:`claims.Paper` called ``PAPER``."""


def load(name: str) -> Paper:
    """Import a paper."""
    paper: Paper = importlib.import_module(f"bench.papers.{name}").PAPER
    return paper


def measured(group: Group) -> Measured:
    """Return a group with the date, the machine, the versions and the state of the sources."""
    return Measured(group, f"{describe('mig-opt')}, sources {fingerprint()}")


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure groups of papers."""
    parser = parser_of(__doc__, "a file for each paper", "measure as little as possible, in seconds")
    parser.set_defaults(results=STORED)
    parser.add_argument("paper", nargs="*", metavar="PAPER", help=f"some of {', '.join(PAPERS)} (all)")
    parser.add_argument("--only", metavar="GROUPS", help="some groups of one paper, with commas between them")
    options = parser.parse_args(arguments)
    names: list[str] = options.paper or list(PAPERS)
    for name in names:
        if name not in PAPERS:
            parser.error(f"there is no paper {name}; there are {', '.join(PAPERS)}")
    if options.only and len(names) != 1:
        parser.error("--only: needs one paper")
    for name in names:
        paper = load(name)
        order = list(paper.groups)
        wanted: Sequence[str] = order
        if options.only:
            try:
                wanted = some_of(order)(options.only)
            except argparse.ArgumentTypeError as error:
                parser.error(f"--only: {error}")
        store = Store(name, options.results)
        for number, key in enumerate(wanted, 1):
            print(f"{name}: {number} of {len(wanted)}, {key}", file=sys.stderr, flush=True)
            store.put(key, measured(paper.measure(key, cut=options.cut)), order)
