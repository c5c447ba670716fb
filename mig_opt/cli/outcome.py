"""The end of a command: its exit code, and its messages when something is wrong."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

import typer

from mig_opt.cli.interruption import INTERRUPTED, interrupted
from mig_opt.cli.pointing import error_text
from mig_opt.cli.streams import refusal, silence
from mig_opt.errors import DriverError, InputError, PolicyError, Problem, SolverError
from mig_opt.method.registry import Method
from mig_opt.method.result import Result, Status
from mig_opt.texts import printable

P = ParamSpec("P")
T = TypeVar("T")

ANSWER_IS_NO, BAD_INPUT, DEFECT, NO_READER = 1, 2, 70, 141

EXIT_CODES = {Status.INFEASIBLE: ANSWER_IS_NO, Status.NO_SOLUTION: ANSWER_IS_NO, Status.INTERRUPTED: INTERRUPTED}
"""The exit code by the status of a run, if it is not 0."""

DEFAULT_TIME_LIMIT = 60.0
"""Seconds that exact methods get on the command line, which should always end; the library has no limit by default."""

REQUEST = (
    "this is a defect of mig_opt; please report it with the batch, the command and the output of: mig-opt versions"
)


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
        """Note a problem unless a condition holds."""
        if not condition:
            self.errors.append(InputError([Problem(path, message)]))

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
        raise _renamed(error, names) from None


def _renamed(error: InputError, names: Mapping[str, str]) -> InputError:
    """Return the error with other names for what its paths begin with."""

    def path(old: str) -> str:
        return names.get(old) or re.sub(r"^\w+", lambda found: names.get(found[0], found[0]), old)

    return InputError((Problem(path(problem.path), problem.message) for problem in error.problems), error.source)


def limit_of(method: Method, time_limit: float | None) -> float | None:
    """Return the seconds that a method gets: without ``--time-limit`` exact ones have a limit too."""
    return DEFAULT_TIME_LIMIT if time_limit is None and method.kind == "exact" else time_limit


def hints_on_time(
    method: Method, result: Result[Any], time_limit: float | None, *, deterministic: bool = False
) -> list[str]:
    """Return the hint that more time might help, if that was the default and all of it was needed."""
    undecided = result.status in (Status.FEASIBLE, Status.NO_SOLUTION)
    # Seconds of work, as in a deterministic run, may be shorter than those of the clock.
    long = result.runtime_s > (0.3 if deterministic else 0.9) * DEFAULT_TIME_LIMIT
    if time_limit is None and method.kind == "exact" and undecided and long:
        return [f"Stopped after the default of {DEFAULT_TIME_LIMIT:g} s; --time-limit S allows for more."]
    return []


def report(error: BaseException, names: Mapping[str, str] | None = None) -> int:
    """Say what went wrong; return the exit code.

    ``names`` are the options of the command by the names of its arguments. Those of the library have the same names, so
    that problems of them (``time_limit``), which are in no file, name the option (``--time-limit``).
    """
    match error:
        case KeyboardInterrupt():
            return interrupted()
        case InputError() | WrongInputsError():
            errors = [error] if isinstance(error, InputError) else error.errors
            named = (entry if entry.source else _renamed(entry, names or {}) for entry in errors)
            _tell("\n".join(map(error_text, named)))
            return BAD_INPUT
        case BrokenPipeError():
            silence(sys.stdout)
            return NO_READER
        case OSError():
            # Files report their troubles as input errors: this one comes from standard output.
            silence(sys.stdout)
            say(f"error: standard output cannot be written: {refusal(error)}")
            return BAD_INPUT
        case DriverError() | PolicyError():
            say(f"error: {error}")
            return BAD_INPUT
        case SolverError():
            say(f"error: {error}\n{REQUEST}")
        case _:
            say(f"{traceback.format_exc()}{REQUEST}")
    return DEFECT


def say(text: str) -> None:
    """Print a message on standard error."""
    _tell("\n".join(printable(line) for line in text.split("\n")))


def _tell(text: str) -> None:
    """Print on standard error. If that cannot be written, the exit code still tells how the command ended."""
    try:
        typer.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def say_infeasible(reasons: Sequence[str]) -> None:
    """Print on standard error why there is no plan at all."""
    say("\n  ".join(["infeasible:", *reasons]))


def finish(*, good: bool, interrupted: bool = False) -> NoReturn:
    """End a command whose answer is yes or no, unless it was interrupted."""
    raise typer.Exit(INTERRUPTED if interrupted else 0 if good else ANSWER_IS_NO)


def exit_if_contradicting(contradictions: Sequence[str]) -> None:
    """End the command with the exit code of a defect if bounds and schedules contradict each other."""
    if contradictions:
        say("\n".join(["error: bounds and schedules contradict each other:", *contradictions, REQUEST]))
        raise typer.Exit(DEFECT)


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as JSON on standard output."""
    from mig_opt.files.documents import rendered

    print_text(rendered(document))


def print_text(text: str) -> None:
    """Print a file on standard output: in UTF-8, as JSON has to be, whatever the terminal uses."""
    # A lone surrogate becomes an escape, which in JSON stands for just that.
    typer.echo(text.encode("utf-8", "backslashreplace"), nl=False)
