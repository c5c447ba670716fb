"""Folders that tests read: the project's own, and the data of its sources, where MIG_OPT_PUBLISHED names theirs."""

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
README = PROJECT / "README.md"
BENCH = PROJECT / "bench"
PUBLISHED = Path(os.environ.get("MIG_OPT_PUBLISHED", PROJECT / "published"))
