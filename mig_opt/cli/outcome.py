"""How a command ends: its exit code, and what it says when something is wrong."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import ParamSpec

import typer

from mig_opt.cli.interruption import interrupted
from mig_opt.errors import InputError, PolicyError, Problem, SolverError
from mig_opt.texts import printable

P = ParamSpec("P")

ANSWER_IS_NO, BAD_INPUT, DEFECT, NO_READER = 1, 2, 70, 141

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

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Keep what is raised inside."""
        try:
            yield
        except InputError as error:
            self.errors.append(error)
        except WrongInputsError as several:
            self.errors += several.errors

    def finish(self) -> None:
        """Raise what was collected, if anything."""
        if self.errors:
            raise WrongInputsError(self.errors)


def as_options(*names: str) -> dict[str, str]:
    """Return for each argument of the library the option that stands for it: ``--time-limit`` for ``time_limit``."""
    return {name: f"--{name.replace('_', '-')}" for name in names}


@contextlib.contextmanager
def options_named(names: Mapping[str, str]) -> Iterator[None]:
    """Let problems of an argument of the library (``time_limit``) name the option (``--time-limit``) it came from."""
    try:
        yield
    except InputError as error:
        problems = [Problem(names.get(problem.path, problem.path), problem.message) for problem in error.problems]
        raise InputError(problems, error.source) from None


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that whatever it raises becomes a message on standard error and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no defect
        try:
            command(*args, **kwargs)
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(report(error)) from None

    return run


def report(error: BaseException) -> int:
    """Say what went wrong; return the exit code."""
    match error:
        case KeyboardInterrupt():
            return interrupted()
        case InputError() | PolicyError():
            say(_block(error) if isinstance(error, InputError) else f"error: {error}")
            return BAD_INPUT
        case WrongInputsError():
            say("\n".join(map(_block, error.errors)))
            return BAD_INPUT
        case BrokenPipeError():
            _silence_output()
            return NO_READER
        case OSError():
            # Files report their troubles as input errors: this one comes from standard output.
            _silence_output()
            say(f"error: the output cannot be written: {error.strerror or error}")
            return BAD_INPUT
        case SolverError():
            say(f"error: {error}\n{REQUEST}")
        case _:
            say(f"{traceback.format_exc()}{REQUEST}")
    return DEFECT


def say(text: str) -> None:
    """Print a message on standard error."""
    typer.echo("\n".join(printable(line) for line in text.split("\n")), err=True)


def print_json(text: str) -> None:
    """Print JSON on standard output: in UTF-8, as JSON has to be, whatever the terminal uses."""
    print_document(text)


def print_document(text: str) -> None:
    """Print a file on standard output, in UTF-8."""
    # A lone surrogate becomes an escape, which in JSON stands for just that.
    typer.echo(text.encode("utf-8", "backslashreplace"), nl=False)


def _block(error: InputError) -> str:
    if len(error.problems) == 1 and not (error.source and error.problems[0].path):
        return f"error: {error.source}{': ' if error.source else ''}{error.problems[0]}"
    return "\n  ".join([f"error: {error.source or 'bad input'}", *map(str, error.problems)])


def _silence_output() -> None:
    """Let the interpreter's last flush of standard output go nowhere, so that it does not complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
