"""Options of registered policies: their names, and their values as texts."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping

from mig_opt.errors import Problem, nearest
from mig_opt.registry import Method


def policy_options(policy: Method) -> tuple[str, ...]:
    """Return the names of the options of a registered policy."""
    return tuple(inspect.signature(policy.load()).parameters)


def option_problems(policy: Method, options: Mapping[str, object]) -> Iterator[Problem]:
    """Yield the options that a policy does not have; what is wrong with the values of others it says itself."""
    known = policy_options(policy)
    for option in options:
        if option not in known:
            yield Problem(option, f"is no option of the policy {policy.name!r}; {nearest(option, known)}")


def read_option(policy: Method, option: str, text: str) -> object:
    """Return the value that a text stands for: ``true`` or ``false``, a number, or several words with ``/``.

    Where the option takes texts, numbers stay texts: a partition may be called ``7``. Where it may be None, that is
    ``none``.
    """
    parameter = inspect.signature(policy.load()).parameters.get(option)
    annotation = "" if parameter is None else str(parameter.annotation)
    if "None" in annotation and text.casefold() == "none":
        return None
    if "str" in annotation:
        return tuple(text.split("/")) if "/" in text else text
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def policy_label(name: str, options: Mapping[str, object]) -> str:
    """Return a policy with options as the command line takes it.

    Examples
    --------
    >>> policy_label("static", {"partition": ("4+3", "2+2+3"), "backfill": True})
    'static:partition=4+3/2+2+3:backfill=true'
    """
    return ":".join([name, *(f"{option}={_spelled(value)}" for option, value in options.items())])


def _spelled(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return "/".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
