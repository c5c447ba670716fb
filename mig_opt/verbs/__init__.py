"""The verbs of the face that stand for several functions, one table each: what is given says which function it is.

A table has ``module:name`` of each function, which is imported when it is called; the options are those of the
function, whose docstring says what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.method.functions import imported

Key = TypeVar("Key")


def function_for(kind: object, table: Mapping[str, str], path: str) -> Callable[..., Any]:
    """Return the function for a class, or for one that it is derived from, out of a table by names of classes.

    Raises
    ------
    InputError
        If the table has none; ``path`` is the argument that is to blame.
    """
    bases = [base.__name__ for base in getattr(kind, "__mro__", ()) if base.__module__.startswith("mig_opt.")]
    return function_in(table, next((name for name in bases if name in table), getattr(kind, "__name__", kind)), path)


def function_in(table: Mapping[Key, str], key: object, path: str) -> Callable[..., Any]:
    """Return the function of a key."""
    try:
        place = table[key]  # type: ignore[index]
    except (KeyError, TypeError):  # what is no name at all may have no hash
        name = " as ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        known = (" as ".join(entry) if isinstance(entry, tuple) else str(entry) for entry in table)
        raise InputError([Problem(path, f"cannot be {name!r:.60}; {nearest(name, known)}")]) from None
    return imported(place)  # type: ignore[no-any-return]  # what there is are functions
