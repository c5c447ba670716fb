"""Exceptions of mig_opt.

::

    MigOptError
    ├── InputError (also a ValueError)    what was given is wrong; lists every problem
    │   ├── UnknownGpuError               no such GPU in the catalogue
    │   └── UnknownMethodError            no such method in the registry
    ├── DriverError                       the driver of a GPU refused something; says how to mend it
    ├── PolicyError                       a scheduler of a simulation did something impossible
    └── SolverError                       a method broke its contract; please report it
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ParamSpec

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input.

    Attributes
    ----------
    path : str
        Where it is, e.g. ``tasks[3].times.2``; empty for the input as a whole.
    message : str
        What is wrong and how to mend it.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def below(self, prefix: str) -> Problem:
        """Return the same problem seen from an enclosing object."""
        if not self.path:
            return Problem(prefix, self.message)
        joint = "" if self.path.startswith("[") or not prefix else "."
        return Problem(f"{prefix}{joint}{self.path}", self.message)


class MigOptError(Exception):
    """Base of every exception that this package raises on purpose."""


class InputError(MigOptError, ValueError):
    """The input is wrong.

    Parameters
    ----------
    problems : iterable of Problem
        All problems that were found, not only the first.
    source : str
        The file or object that they were found in.

    Examples
    --------
    >>> from mig_opt import Task
    >>> try:
    ...     Task("lu", {1: -2.0})
    ... except InputError as error:
    ...     print(error)
    times.1: must be a finite number of seconds > 0, is -2.0
    """

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        super().__init__(self.problems, source)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems]
        if self.source:
            lines.insert(0, f"{self.source}:")
        return "\n  ".join(lines)


class UnknownGpuError(InputError):
    """The catalogue has no GPU of that name."""


class UnknownMethodError(InputError):
    """The registry has no method of that name."""


class DriverError(MigOptError):
    """The driver of a GPU refused something, or did not do what it promised.

    Parameters
    ----------
    cause : str
        The kind of trouble in one word or two, for example ``in use``.
    message : str
        What has happened, and how to mend it.

    Examples
    --------
    >>> error = DriverError("no permission", "instances can be created by root only; run the command with sudo")
    >>> error.cause
    'no permission'
    """

    def __init__(self, cause: str, message: str) -> None:
        self.cause = cause
        super().__init__(cause, message)

    def __str__(self) -> str:
        return str(self.args[1])


class SolverError(MigOptError):
    """A method returned something that it must not return."""


class PolicyError(MigOptError):
    """A scheduler of a simulation did something impossible, such as placing two jobs on one slice."""


def problems_of(call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> tuple[Problem, ...]:
    """Return the problems for which a call is refused; none if it is not."""
    try:
        call(*args, **kwargs)
    except InputError as error:
        return error.problems
    return ()


def raise_any(problems: Iterable[Problem], source: object = "") -> None:
    """Raise an input error with these problems, if there are any."""
    if found := tuple(problems):
        raise InputError(found, str(source))


_LISTED = 20
"""Names that are listed where there are more than twice as many."""


def nearest(name: object, known: Iterable[str], beside: Iterable[str] = ()) -> str:
    """Return a phrase that offers the known names closest to ``name``, or lists them, unless they are too many.

    Those ``beside`` them are offered where they are close, but not listed.
    """
    known = list(known)
    folded = {entry.casefold(): entry for entry in reversed([*known, *beside])}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(folded[entry] for entry in close) + "?"
    more = [f"and {len(known) - _LISTED} more"] if len(known) > 2 * _LISTED else []
    return "known: " + ", ".join(known[:_LISTED] + more if more else known or ["none"])
