"""Options of schedulers: the fields of their dataclasses, whose types say which values are allowed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

from mig_opt.errors import Problem, nearest, raise_any
from mig_opt.method.registry import Method
from mig_opt.rules import checked_value, hints_of, parts_of, wrong_choice
from mig_opt.simulation.fleet.cluster import Policy
from mig_opt.texts import number_in


class ConfigurablePolicy(Policy):
    """Base class of schedulers; each is a dataclass, and the fields that its constructor takes are its options.

    Raises
    ------
    InputError
        With every problem of the options.
    """

    def __post_init__(self) -> None:
        raise_any(self.option_problems())

    def option_problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the options."""
        for option, hint in _options(type(self)).items():
            value, problems = getattr(self, option), list[Problem]()
            checked_value(hint, value, option, problems)
            yield from problems
            if get_origin(hint) is Literal:
                yield from wrong_choice(option, value, get_args(hint))


@cache
def _options(policy: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the types of the options of a scheduler; those that its bases have as well come last."""
    assert isinstance(policy, type)
    hints = hints_of(policy)
    names = dict.fromkeys(name for cls in policy.__mro__ for name in inspect.get_annotations(cls) if name in hints)
    return {name: hints[name] for name in names}


def policy_options(policy: Method) -> tuple[str, ...]:
    """Return the names of the options of a registered policy."""
    return tuple(_options(policy.load()))


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
    bare, _, optional = parts_of(_options(policy.load()).get(option))
    if optional and text.casefold() == "none":
        return None
    if bare is str or str in get_args(bare):
        return tuple(text.split("/")) if "/" in text else text
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    return number_in(text)


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
