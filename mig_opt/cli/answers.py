"""The answer of a command, and the one way in which commands begin and end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from mig_opt.cli.checks import Checks, file_named, refuse
from mig_opt.cli.errors import DEFECT, REQUEST, say
from mig_opt.cli.streams import INTERRUPTED
from mig_opt.errors import InputError, Problem, problems_of, raise_any
from mig_opt.method.functions import imported
from mig_opt.method.report import Report
from mig_opt.method.result import Status

if TYPE_CHECKING:
    from mig_opt.cli.progress import Bar
    from mig_opt.method.options import Callbacks
    from mig_opt.method.registry import Method
    from mig_opt.method.result import Result

ANSWER_IS_NO = 1

EXIT_CODES = {Status.INFEASIBLE: ANSWER_IS_NO, Status.NO_SOLUTION: ANSWER_IS_NO, Status.INTERRUPTED: INTERRUPTED}
"""The exit code by the status of a run, if it is not 0."""

NO_PLAN, NOTHING = "There is no plan to write to", "Nothing written to"
"""Words before the name of a file for which there is no content."""

_CHECKS = {
    "chart": "mig_opt.views:check_plot_path",
    "program": "mig_opt.files.batch.programs:check_model_path",
    **dict.fromkeys(("batch", "profiles", "state"), "mig_opt.files.documents:check_json"),
}
"""Check of a file for a purpose, where that is more than whether it can be written."""

DEFAULT_TIME_LIMIT = 60.0
"""Seconds that exact methods get on the command line, which should always end; the library has no limit by default."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that a command is to write, if it is wanted (has a path) and there is something to write."""

    noun: str  # for the content
    path: Path | None
    content: Any  # a text, texts by name for a folder, or anything that mig_opt.write takes; None for nothing
    purpose: str = "."  # what is said of it behind the path
    advice: str = ""  # what else is to be known about it
    absent: str = ""  # what is said before the path where there is nothing to write
    writer: Callable[[Any, Path], object] | None = None  # writes the content, if nothing else can

    def written(self) -> list[str]:
        """Write it; return the remarks about it."""
        from mig_opt.files.documents import write_folder, write_text
        from mig_opt.verbs.files import write

        if self.path is None:
            return []
        advice = [self.advice] if self.advice else []
        if self.content is None:
            return [f"{self.absent or f'There is no {self.noun} to write to'} {self.path}.", *advice]
        if self.writer is not None:
            self.writer(self.content, self.path)
        elif isinstance(self.content, str):
            write_text(self.path, self.content)
        elif isinstance(self.content, dict):
            write_folder(self.path, self.content)
        else:
            with file_named(self.path):
                write(self.content, self.path)
        return [f"{self.noun[0].upper()}{self.noun[1:]} written to {self.path}{self.purpose}", *advice]


def chart_of(noun: str, path: Path | None, *content: Any, source: str | Path = "", **options: Any) -> File:
    """Return the chart of what :func:`mig_opt.plot` takes, from a file; there is none if a part of it is None."""

    def draw(parts: Sequence[Any], to: Path) -> None:
        from mig_opt.views import plot

        try:
            plot(*parts, to=to, **options)
        except InputError as error:
            of_option = any(problem.path in options for problem in error.problems)
            raise InputError(error.problems, error.source or ("" if of_option else str(source))) from None

    there = None if any(part is None for part in content) else content
    return File("chart", path, there, absent=f"There is no {noun} to draw in", writer=draw)


def script_of(path: Path | None, text: str | None, hooks: str) -> File:
    """Return a script for bash, which is called with hooks."""
    return File("script", path, text, f". Usage: bash {word_of(path)} {hooks}", absent=NO_PLAN)


def word_of(path: object) -> str:
    """Return a path as a word for a shell, which no program takes for an option."""
    return quote(f"./{path}" if str(path).startswith("-") else str(path))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a command, which has the option ``--json`` for its report."""

    report: Report = field(default_factory=Report)
    code: int = 0  # to exit with
    files: Sequence[File] = ()  # to be written and drawn
    why: str = ""  # the answer is no: for standard error, where the report is not shown
    said: Sequence[str] = ()  # on standard error at the end
    text: str | None = None  # printed in place of the report


class Product(Answer):
    """The answer of a command that makes a file, for which there is no ``--json``."""

    __slots__ = ()


def made(
    noun: str, content: Any, path: Path | None, text: Callable[[Any], str], report: Report | None = None, **more: Any
) -> Product:
    """Return what a command makes: a file with a report, or without a path the text that a function makes of it."""
    if path is None:
        return Product(text=text(content), **more)
    return Product(report or Report(), files=[File(noun, path, content)], **more)


class Call(Checks):
    """The call of a command: checks of what was given, and the way in which it is answered.

    ``inputs`` are the files that were named, ``given`` are the values of all options and arguments by their names, as
    ``defaults`` are. No progress is shown if it is not wanted, or the report as JSON.
    """

    def __init__(
        self, inputs: Sequence[str | Path], given: Mapping[str, object], defaults: Mapping[str, object]
    ) -> None:
        super().__init__()
        self.inputs, self.given, self.as_json = inputs, given, bool(given.get("--json"))
        self.defaults, self.quiet = defaults, bool(given.get("--quiet")) or self.as_json

    def none_of(self, names: Iterable[str], message: str) -> None:
        """Note a problem of each of some options that says something: is not its default, empty, or left out."""
        for name in names:
            value = self.given[name]
            self.require(value in (None, "", [], self.defaults[name]) or value is False, name, message)

    def begin(self, **outputs: Path | None) -> None:
        """Refuse all that is wrong, before the work: outputs (by the words for their content) that cannot be, too."""
        self.check_outputs(**outputs)
        self.finish()

    def check_outputs(self, **outputs: Path | None) -> None:
        """Note files that cannot be written, that are inputs, or that are wanted for two purposes, with every reason.

        The outputs are named by the words for their content; the names of charts and programs have to end like such.
        """
        inputs = [name for name in self.inputs if not any(name is path for path in outputs.values())]
        earlier: dict[str, Path] = {}
        for purpose, path in outputs.items():
            if path is None:
                continue
            with self.step():
                if path == Path("-"):
                    named = next((name for name, value in self.given.items() if value is path), "")
                    for_json = named == "--output" and "--json" in self.given
                    more = " (--json prints the answer on standard output)" if for_json else ""
                    refuse(named, f"- stands for no file that is written; name one{more}")
                # One folder that cannot be written to is one problem, however many files it is to hold.
                new = [other for other in earlier.values() if not os.access(other, os.F_OK)]
                there = os.access(path, os.F_OK)  # exists() raises errors for some names
                together = not there and path.parent in {other.parent for other in new}
                earlier[purpose] = path
                said = {problem.message for error in self.errors for problem in error.problems if together}
                check = imported(_CHECKS.get(purpose, "mig_opt.files.documents:check_writable"))
                if problems := problems_of(check, path):
                    left = (problem for problem in problems if problem.message not in said)
                    raise_any((Problem(one.path.removeprefix(str(path)), one.message) for one in left), path)
                    continue
                for name in inputs:
                    if there and os.access(name, os.F_OK) and path.samefile(name):
                        refuse("", f"is read as well ({name}); write to another file", path)
                for other, same in earlier.items():
                    if other != purpose and path.resolve() == same.resolve():
                        refuse("", f"is wanted for both {other} and {purpose}; name two files", path)

    def check_folder(self, path: Path | None) -> None:
        """Note why a folder for outputs, if one is named, can be neither made nor written to."""
        from mig_opt.files.documents import check_folder

        if path is not None:
            self.attempt(check_folder, path)

    def progress(self, method: str = "") -> AbstractContextManager[list[Callbacks]]:
        """Show the progress of a method; of one that reports nothing the name is given, and its time is shown."""
        if self.quiet or not sys.stderr.isatty():
            return nullcontext([])
        from mig_opt.cli.progress import shown_progress

        return shown_progress(method)

    def bar(self, text: str, total: int | None = None) -> AbstractContextManager[Bar]:
        """Show a bar of the work that is done."""
        from mig_opt.cli.progress import shown_bar

        return shown_bar(text, total, quiet=self.quiet)

    def end(self, answer: Answer) -> int:
        """Write the files of an answer, show it, and return the exit code."""
        remarks: list[str] = [*answer.report.remarks]
        for file in answer.files:
            with self.step():
                remarks += file.written()
        if answer.text is not None:
            print_text(answer.text)
        elif self.as_json:
            from mig_opt.files.documents import rendered

            print_text(rendered(answer.report.data))
        else:
            from mig_opt.cli.screens import show_report

            show_report(answer.report, remarks)
        unshown = [answer.why] if answer.why and (self.as_json or answer.text is not None) else []
        for message in (*unshown, *answer.said):
            say(message)
        self.finish()
        return answer.code


def print_text(text: str) -> None:
    """Print a file on standard output: in UTF-8, as JSON has to be, whatever the terminal uses."""
    # A lone surrogate becomes an escape, which in JSON stands for just that.
    typer.echo(text.encode("utf-8", "backslashreplace"), nl=False)


def code_of(*, good: bool, interrupted: bool = False) -> int:
    """Return the exit code of an answer that is yes or no, unless the command was interrupted."""
    return INTERRUPTED if interrupted else 0 if good else ANSWER_IS_NO


def infeasible(reasons: Sequence[str]) -> str:
    """Return the message that says why there is no plan at all."""
    return "\n  ".join(["infeasible:", *reasons])


def contradicting(answer: Answer, contradictions: Sequence[str]) -> Answer:
    """Return an answer, or that it cannot be, since bounds and schedules contradict each other."""
    if not contradictions:
        return answer
    said = "\n".join(["error: bounds and schedules contradict each other:", *contradictions, REQUEST])
    return Answer(answer.report, DEFECT, answer.files, said=[said])


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
