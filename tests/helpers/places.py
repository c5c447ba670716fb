"""Folders that tests read: the project's own, and figures of the sources where they lie beside it."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
README = PROJECT / "README.md"
BENCH = PROJECT / "bench"
SHARED = PROJECT.parent / "shared" / "data"
