"""A problem and a plan for it, as the commands that work for several kinds of problems see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mig_opt.cli.inputs import check_outputs
from mig_opt.cli.options import ProblemOptions
from mig_opt.cli.outcome import Checks
from mig_opt.cli.screens import Part, Rows
from mig_opt.validation import Violation


class BoundsFound(NamedTuple):
    """Lower bounds of a problem: the best one as number and text, all as JSON and table, and why there is no plan."""

    best: float | None
    text: str
    document: list[dict[str, Any]]
    table: Part
    reasons: Sequence[str]


class Plans(ABC):
    """A problem and a plan for it in files: one subclass for each kind of problem.

    Parameters
    ----------
    argument : str
        The argument that names the problem.
    document : bytes or None
        The content of standard input, if the argument stands for it.
    options : ProblemOptions
        The options of the command.

    Attributes
    ----------
    problem, plan, found
        The problem, the plan and the outcome of its validation, as far as they were read and validated.
    """

    kind: ClassVar[str]
    """The kind of file that holds the problem."""
    plan_kinds: ClassVar[tuple[str, ...]]
    """The kinds of files that hold a plan."""
    own_options: ClassVar[tuple[str, ...]]
    """The options that are for this kind of problem alone."""
    noun: ClassVar[str]
    """The word for a plan."""
    plural: ClassVar[str]
    """The word for problems of this kind."""
    predicate: ClassVar[str]
    """The end of a sentence about a file of this kind."""
    hooks: ClassVar[str]
    """Arguments of a script."""

    problem: Any = None
    plan: Any = None
    found: Any

    def __init__(self, argument: str, document: bytes | None, options: ProblemOptions) -> None:
        self.argument, self.document, self.options = argument, document, options

    def read(self, path: Path, chart: Path | None = None, output: Path | None = None) -> None:
        """Read the problem and the plan, and see to it that outputs can be written.

        Raises
        ------
        WrongInputsError
            With everything that is wrong about any of them.
        """
        checks = Checks()
        self.problem = checks.attempt(self.load)
        self.plan = checks.attempt(self.read_plan, path)
        checks.attempt(check_outputs, [self.argument, path], chart, output=output)
        checks.finish()

    @abstractmethod
    def load(self) -> Any:
        """Return the problem."""

    @abstractmethod
    def read_plan(self, path: Path) -> Any:
        """Return the plan in a file; the problem is None if it could not be read."""

    @abstractmethod
    def validate(self, tolerance: float | None = None) -> Any:
        """Return the outcome of the validator; times (or shares) may differ by ``tolerance``."""

    @abstractmethod
    def figures(self) -> dict[str, float | None]:
        """Return the figures of the validation for its JSON document."""

    @abstractmethod
    def validation_parts(self) -> Iterable[Part]:
        """Yield a card of the validation, and more below it for a valid plan."""

    def remarks(self) -> list[str]:
        """Return remarks on the validation."""
        return []

    @abstractmethod
    def rows(self) -> Rows:
        """Return the rows of a card that describe the problem."""

    @abstractmethod
    def bounds(self) -> BoundsFound:
        """Return the lower bounds of the problem."""

    @abstractmethod
    def draw(self, out: Path, lower_bound: float | None) -> None:
        """Write a chart of the plan."""

    def check_script(self, path: Path) -> None:  # noqa: B027 - most plans have no such names
        """Refuse names in the file of the plan that a script cannot hold."""

    @abstractmethod
    def number_of_gpus(self) -> int:
        """Return the number of GPUs for which a script needs devices."""

    @abstractmethod
    def script(self, devices: Sequence[str] | None) -> str:
        """Return a script for bash that carries out the plan."""


def violations_document(violations: Iterable[Violation]) -> list[dict[str, str]]:
    """Return violations as part of a JSON document."""
    return [{"code": entry.code.value, "path": entry.path, "message": entry.message} for entry in violations]
