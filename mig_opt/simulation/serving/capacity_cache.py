"""Capacities that were simulated before, kept in a file of the user's cache folder.

The file is ``capacities.sqlite`` in the folder ``MIG_OPT_CACHE``, by default ``mig-opt`` in ``XDG_CACHE_HOME`` or in
``~/.cache``; with ``MIG_OPT_CACHE=off`` there is none. A key says all that a value depends on, with the number of this
method. SQLite lets several processes read and write at a time; where the file cannot be used, a value is computed as if
there was none, and a damaged file is written anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

METHOD = 3
"""Number that has to change with whatever changes capacities: the simulation, its length, margins, the bisection."""

_OFF = "off"
_SECONDS = 2.0
"""Time that a process waits for another one that writes."""


def cache_file() -> Path | None:
    """Return the file of the cache; None if there is to be none."""
    if given := os.environ.get("MIG_OPT_CACHE"):
        return None if given == _OFF else Path(given, "capacities.sqlite")
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # nobody knows where the home of this user is
        return None
    return Path(base, "mig-opt", "capacities.sqlite")


Compute = TypeVar("Compute", bound=Callable[..., float])


def kept(kind: str) -> Callable[[Compute], Compute]:
    """Decorate a function of servers, in any order, and of all else that its value depends on: it is computed once.

    Arguments are given by position. The cache has a digest of their texts (``repr``), with the ``kind`` of value.
    """

    def decorated(compute: Compute) -> Compute:
        @lru_cache(maxsize=100_000)
        def known(*arguments: Any) -> float:
            digest = hashlib.sha256(repr(arguments).encode()).hexdigest()
            return remembered((kind, digest), lambda: compute(*arguments))

        @wraps(compute)
        def in_order(servers: Iterable[Any], *others: Any) -> float:
            def rank(one: Any) -> tuple[object, ...]:
                return one.throughput, one.batch, one.processes, one.answer, repr(one)

            return known(tuple(sorted(servers, key=rank)), *others)

        return cast("Compute", in_order)

    return decorated


def remembered(key: tuple[object, ...], compute: Callable[[], float]) -> float:
    """Return the value of a key, computed and stored if it is not in the cache.

    The key has all that the value depends on; the texts of its parts (``repr``) tell them apart.
    """
    file, text = cache_file(), repr((METHOD, *key))
    if file is None:
        return compute()
    known = _load(file, text)
    if known is None:
        known = compute()
        _store(file, text, known)
    return known


def _load(file: Path, key: str) -> float | None:
    try:
        if not file.is_file():
            return None
        with contextlib.closing(sqlite3.connect(file, timeout=_SECONDS)) as connection:
            row = connection.execute("SELECT value FROM capacities WHERE key = ?", (key,)).fetchone()
        return None if row is None or not isinstance(row[0], float) else row[0]
    except (sqlite3.Error, OSError):
        return None


def _store(file: Path, key: str, value: float) -> None:
    with contextlib.suppress(sqlite3.Error, OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            _insert(file, key, value)
        except sqlite3.OperationalError:
            pass  # another process writes, or the disk is full: the next one stores it
        except sqlite3.DatabaseError:
            file.unlink(missing_ok=True)
            _insert(file, key, value)


def _insert(file: Path, key: str, value: float) -> None:
    with contextlib.closing(sqlite3.connect(file, timeout=_SECONDS)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS capacities (key TEXT PRIMARY KEY, value REAL)")
        connection.execute("INSERT OR REPLACE INTO capacities VALUES (?, ?)", (key, value))
