"""Options of schedulers: the fields of their dataclasses, whose types say which values are allowed.

What a type cannot say is a check in its annotation: ``Annotated[float, wrong_share]`` is a share, and
``Annotated[float, above(0, "seconds > 0, or None")] | None`` a number of seconds, or None.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.method.registry import Method
from mig_opt.rules import wrong_choice, wrong_flag, wrong_number
from mig_opt.simulation.fleet.cluster import Cluster, Policy
from mig_opt.texts import number_in

Check = Callable[[str, object], Iterable[Problem]]
"""Check of an option: yields a problem, under the given name, unless the value is allowed."""


def at_least(least: float, wanted: str) -> Check:
    """Return the check of numbers that are not less than ``least``; ``wanted`` describes them."""
    return partial(wrong_number, wanted=wanted, at_least=least)


def above(least: float, wanted: str) -> Check:
    """Return the check of numbers that are greater than ``least``; ``wanted`` describes them."""
    return partial(wrong_number, wanted=wanted, above=least)


class ConfigurablePolicy(Policy):
    """Base class of schedulers; each is a dataclass, and the fields that its constructor takes are its options.

    Raises
    ------
    InputError
        With every problem of the options.
    """

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Do nothing: most schedulers ask for no wake-up."""

    def __post_init__(self) -> None:
        problems = list(self.option_problems())
        if problems:
            raise InputError(problems)

    def option_problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the options."""
        for option, kinds in _kinds(type(self)).items():
            value = getattr(self, option)
            for kind in kinds if value is not None or types.NoneType not in kinds else ():
                if kind is bool:
                    yield from wrong_flag(option, value)
                elif get_origin(kind) is Literal:
                    yield from wrong_choice(option, value, get_args(kind))
                elif get_origin(kind) is Annotated:
                    yield from kind.__metadata__[0](option, value)


@cache
def _kinds(policy: Callable[..., Any]) -> Mapping[str, tuple[Any, ...]]:
    """Return the types of each option of a scheduler; those that its bases have as well come last."""
    assert isinstance(policy, type)
    hints = get_type_hints(policy, include_extras=True)
    offered = {field.name for field in dataclasses.fields(policy) if field.init}
    names = dict.fromkeys(name for cls in policy.__mro__ for name in inspect.get_annotations(cls) if name in offered)
    unions = (Union, types.UnionType)
    return {name: get_args(hints[name]) if get_origin(hints[name]) in unions else (hints[name],) for name in names}


def policy_options(policy: Method) -> tuple[str, ...]:
    """Return the names of the options of a registered policy."""
    return tuple(_kinds(policy.load()))


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
    kinds = _kinds(policy.load()).get(option, ())
    if types.NoneType in kinds and text.casefold() == "none":
        return None
    if str in kinds:
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
