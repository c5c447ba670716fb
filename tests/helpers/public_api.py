"""Public names with their signatures, one on a line; run by itself it writes ``tests/public_api.txt``."""

import enum
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SNAPSHOT = Path(__file__).resolve().parents[1] / "public_api.txt"
MODULES = ("mig_opt", "mig_opt.simulation", "mig_opt.studies")
"""Those whose ``__all__`` is public."""


def lines() -> list[str]:
    return [line for module in MODULES for line in _of_module(importlib.import_module(module))]


def _of_module(module: Any) -> Iterator[str]:
    for name in sorted(module.__all__):
        yield from _of(f"{module.__name__}.{name}", getattr(module, name))


def _of(name: str, thing: Any) -> Iterator[str]:
    if isinstance(thing, type):
        yield f"class {name}({', '.join(_bases(thing))})"
        if issubclass(thing, enum.Enum):
            yield from (f"{name}.{member.name} = {member.value!r}" for member in thing)
            return
        yield from _of_class(name, thing)
    elif callable(thing):
        yield f"def {name}{_signature(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def _bases(thing: type) -> Iterator[str]:
    """Yield the names of the base classes that are the project's own, or exceptions."""
    for base in thing.__bases__:
        if base.__module__.startswith("mig_opt") or issubclass(base, BaseException | enum.Enum | dict):
            yield base.__name__


def _of_class(name: str, thing: type) -> Iterator[str]:
    if not issubclass(thing, BaseException) and not getattr(thing, "_is_protocol", False):
        yield f"def {name}{_signature(thing)}"
    own = {key: value for base in reversed(thing.__mro__) if _is_own(base) for key, value in vars(base).items()}
    fields = {key for base in thing.__mro__ if _is_own(base) for key in inspect.get_annotations(base)}
    for key in sorted(set(own) | fields):
        if key.startswith("_"):
            continue
        value = own.get(key)
        wrapped = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(wrapped, type(_of)):
            yield f"def {name}.{key}{_signature(wrapped)}"
        else:
            yield f"{name}.{key}"


def _is_own(base: type) -> bool:
    return base.__module__.startswith("mig_opt")


def _signature(thing: Any) -> str:
    """Return a signature as it is written, the same in every version of Python."""
    signature = inspect.signature(thing)
    parts, star = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        hint = "" if parameter.annotation is parameter.empty else f": {_hint(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        parts.append(f"{mark}{parameter.name}{hint}{default}")
    returned = signature.return_annotation
    arrow = "" if returned in (signature.empty, None) else f" -> {_hint(returned)}"
    return f"({', '.join(parts)}){arrow}"


def _hint(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    return type(value).__name__ if " at 0x" in text or text.startswith("<") else text


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(lines()) + "\n", encoding="utf-8")
