"""Checks of the inputs of a command: all that is wrong is collected, and told at once."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NoReturn, ParamSpec, TypeVar, cast

from mig_opt.errors import InputError, Problem

P = ParamSpec("P")
T = TypeVar("T")


class WrongInputsError(Exception):
    """Several inputs are wrong, each with its own error."""

    def __init__(self, errors: list[InputError]) -> None:
        super().__init__(errors)
        self.errors = errors


class Checks:
    """Collects the errors of several inputs, so that all are reported at once.

    Examples
    --------
    >>> checks = Checks()
    >>> with checks.step():
    ...     raise InputError([Problem("", "no such file")], "batch.json")
    >>> len(checks.errors)
    1
    """

    def __init__(self) -> None:
        self.errors: list[InputError] = []

    def attempt(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the value of a function; without one, since it raised an input error, :meth:`finish` will raise."""
        with self.step():
            return function(*args, **kwargs)
        return cast(T, None)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Keep what is raised inside."""
        try:
            yield
        except InputError as error:
            self.errors.append(error)
        except WrongInputsError as several:
            self.errors += several.errors

    def require(self, condition: bool, path: str, message: str) -> None:
        """Note a problem of an option, unless a condition holds."""
        self.note([] if condition else [Problem(path, message)])

    def note(self, problems: Iterable[Problem], source: object = "") -> None:
        """Note problems of an input, if there are any."""
        if found := list(problems):
            self.errors.append(InputError(found, str(source)))

    def finish(self) -> None:
        """Raise what was collected, if anything."""
        if self.errors:
            raise WrongInputsError(self.errors)


def refuse(path: str, message: str, source: object = "") -> NoReturn:
    """Raise an input error with one problem."""
    raise InputError([Problem(path, message)], str(source))


@contextlib.contextmanager
def options_named(names: Mapping[str, str]) -> Iterator[None]:
    """Let problems of certain paths name the options (``--gpu``) that they came from.

    Needed where a path is not the name of the command's own argument, or where the problem was found in a file.
    """
    try:
        yield
    except InputError as error:
        raise renamed(error, names) from None


@contextlib.contextmanager
def file_named(name: object) -> Iterator[None]:
    """Let problems name the file, or the bundled instance, that is wrong, where they name none."""
    try:
        yield
    except InputError as error:
        raise InputError(error.problems, error.source or str(name)) from None


def renamed(error: InputError, names: Mapping[str, str]) -> InputError:
    """Return the error with other names for what its paths begin with, unless that is a key which no file has."""

    def path(problem: Problem) -> str:
        if problem.message.startswith("unknown key"):
            return problem.path
        return names.get(problem.path) or re.sub(r"^\w+", lambda found: names.get(found[0], found[0]), problem.path)

    problems = (Problem(path(problem), problem.message) for problem in error.problems)
    return InputError(dict.fromkeys(problems), error.source)
