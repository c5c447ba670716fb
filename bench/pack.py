"""Rows of studies, moved from plain files to the compressed ones that are committed.

Run: python -m bench.pack, for all rows in results/, or with the names of files. Studies do it themselves when they end;
this is for one that was stopped, and for rows that were measured at two places: see README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.report import RESULTS, start
from mig_opt.studies.rows import pack, packed
from mig_opt.texts import plural


@start
def main(arguments: Sequence[str] | None = None) -> int:
    """Pack files of rows, and say how many rows each has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="*", help="such as results/exact.jsonl; all in results/ by default")
    files = parser.parse_args(arguments).files or sorted(RESULTS.glob("*.jsonl"))
    for file in files:
        print(f"{plural(pack(file), 'row')} in {packed(file)}")
    return 0
