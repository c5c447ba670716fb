"""Entries of the reference of Python: signatures and docstrings of public names."""

from __future__ import annotations

import enum
import importlib
import inspect

import mig_opt
from mig_opt import validation


def api(*names: str) -> str:
    """Return the entries of some public names, as directives of autodoc."""
    lines = ["```{eval-rst}"]
    for name in names:
        lines += [*_directive(name), ""]
    return "\n".join([*lines, "```"])


def _directive(name: str) -> list[str]:
    thing = found(name)
    if not inspect.isclass(thing):
        return [f".. autofunction:: mig_opt.{name}" if callable(thing) else f".. autodata:: mig_opt.{name}"]
    if issubclass(thing, Exception):
        return [f".. autoexception:: mig_opt.{name}"]
    options = ["members:"]
    if issubclass(thing, enum.Enum):
        options.append("undoc-members:")
    elif any(_is_internal(base) for base in thing.__mro__[1:]):
        options.append("inherited-members: object, Env")  # gymnasium describes its own
    return [f".. autoclass:: mig_opt.{name}", *(f"   :{option}" for option in options)]


def _is_internal(base: type) -> bool:
    """Tell if a base is one of the package's own that has no entry."""
    return base.__module__.startswith("mig_opt") and base.__name__ not in mig_opt.__all__


def found(name: str) -> object:
    """Return what a name of the package, or of a module in it, stands for."""
    module, _, last = f"mig_opt.{name}".rpartition(".")
    return getattr(importlib.import_module(module), last)


def codes(*names: str) -> str:
    """Return a table for each list of codes of violations: what the code means."""
    parts = []
    for name in names:
        rows = [f"| `{code.value}` | {code.description} |" for code in getattr(validation, name)]
        parts.append("\n".join(["| code | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts)
