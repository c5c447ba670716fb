"""Plans of any problem, as the commands that work for several problems see them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from mig_opt.cli.inputs import check_outputs, is_table
from mig_opt.cli.options import ProblemOptions
from mig_opt.cli.outcome import Checks
from mig_opt.cli.screens import Part, Rows
from mig_opt.errors import InputError, Problem
from mig_opt.validation import Violation

ProblemT = TypeVar("ProblemT")
PlanT = TypeVar("PlanT")


class Validated(Protocol):
    """Outcome of a validator."""

    @property
    def valid(self) -> bool:
        """True if no rule is broken."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Every rule that is broken."""


FoundT = TypeVar("FoundT", bound=Validated)


class BoundsFound(NamedTuple):
    """Lower bounds of a problem: as number, text, JSON document and table, and why there is no plan."""

    best: float | None
    text: str
    document: list[dict[str, Any]]
    table: Part
    reasons: Sequence[str]


class Plans(ABC, Generic[ProblemT, PlanT, FoundT]):
    """A problem and a plan for it, which files hold: one subclass for each kind of problem.

    Parameters
    ----------
    argument : str
        The argument that names the problem.
    document : bytes or None
        The content of standard input, if the argument stands for it.
    options : ProblemOptions
        The options of the command.
    """

    kind: ClassVar[str]
    """The kind of file that holds the problem."""
    plan_kinds: ClassVar[tuple[str, ...]]
    """The kinds of files that hold a plan."""
    noun: ClassVar[str]
    """The word for a plan."""
    plural: ClassVar[str]
    """The word for problems of this kind."""
    predicate: ClassVar[str]
    """The end of a sentence about a file of this kind."""
    hooks: ClassVar[str]
    """Arguments of a script."""

    def __init__(self, argument: str, document: bytes | None, options: ProblemOptions) -> None:
        self.argument, self.document, self.options = argument, document, options

    @staticmethod
    @abstractmethod
    def own_options(options: ProblemOptions) -> dict[str, object]:
        """Return the values of the options that are for this kind of problem alone."""

    def read(self, path: Path, chart: Path | None = None, output: Path | None = None) -> tuple[ProblemT, PlanT]:
        """Return the problem and the plan, and see to it that outputs can be written.

        Raises
        ------
        WrongInputsError
            With everything that is wrong about any of them.
        """
        checks = Checks()
        problem: ProblemT | None = None
        plan: PlanT | None = None
        with checks.step():
            problem = self.load()
        with checks.step():
            plan = self.read_plan(path, problem)
        with checks.step():
            check_outputs([self.argument, path], chart, output=output)
        checks.finish()
        assert problem is not None
        assert plan is not None
        return problem, plan

    @abstractmethod
    def load(self) -> ProblemT:
        """Return the problem."""

    @abstractmethod
    def read_plan(self, path: Path, problem: ProblemT | None) -> PlanT:
        """Return the plan in a file."""

    @abstractmethod
    def validate(self, problem: ProblemT, plan: PlanT, tolerance: float | None = None) -> FoundT:
        """Return the violations of a plan; times (or shares) may differ by ``tolerance``."""

    @abstractmethod
    def figures(self, found: FoundT) -> dict[str, float | None]:
        """Return the figures of a validation for its JSON document."""

    @abstractmethod
    def validation_parts(self, problem: ProblemT, plan: PlanT, found: FoundT) -> Iterable[Part]:
        """Yield a card, and more below it for a valid plan."""

    def remarks(self, plan: PlanT, found: FoundT) -> list[str]:
        """Return remarks on a validation."""
        return []

    @abstractmethod
    def rows(self, problem: ProblemT) -> Rows:
        """Return the rows of a card that describe the problem."""

    @abstractmethod
    def bounds(self, problem: ProblemT) -> BoundsFound:
        """Return the lower bounds of a problem."""

    @abstractmethod
    def draw(self, problem: ProblemT, found: FoundT, plan: PlanT, out: Path, lower_bound: float | None) -> None:
        """Write a chart of a plan."""

    @abstractmethod
    def number_of_gpus(self, problem: ProblemT, plan: PlanT) -> int:
        """Return the number of GPUs for which a script needs devices."""

    def check_script(self, plan: PlanT, path: Path) -> None:
        """Refuse names in a plan that a script cannot hold."""

    @abstractmethod
    def script(self, problem: ProblemT, found: FoundT, plan: PlanT, devices: Sequence[str] | None) -> str:
        """Return a script for bash that carries out a plan."""


def violations_document(violations: Iterable[Violation]) -> list[dict[str, str]]:
    """Return violations as part of a JSON document."""
    return [{"code": entry.code.value, "path": entry.path, "message": entry.message} for entry in violations]


def chosen_plans(
    problems: Sequence[type[Plans[Any, Any, Any]]],
    argument: str,
    document: bytes | None,
    plan: Path | None,
    given: Mapping[type[Plans[Any, Any, Any]], Sequence[str]],
) -> type[Plans[Any, Any, Any]]:
    """Return the kind of problem that a command is about.

    Parameters
    ----------
    problems : sequence of subclasses of Plans
        The kinds of problems; the first one is meant where nothing tells.
    argument : str
        The argument that names the problem; the kind of that file decides, if it can be told.
    document : bytes or None
        The content of standard input, if the argument stands for it.
    plan : Path or None
        The file of a plan, which decides otherwise.
    given : mapping
        For each kind of problem the options that were given and are for it alone; they decide as well.

    Raises
    ------
    InputError
        If options were given that are for another kind.
    """
    kind = _kind(argument, document)
    chosen = next((problem for problem in problems if problem.kind == kind), None)
    if chosen is None:
        plan_kind = None if plan is None else _kind(str(plan), None)
        return next((p for p in problems[:0:-1] if given[p] or plan_kind in p.plan_kinds), problems[0])
    wrong = [
        Problem(option, f"is for {problem.plural}, but {argument} {chosen.predicate}; leave it out")
        for problem in problems
        if problem is not chosen
        for option in given[problem]
    ]
    if wrong:
        raise InputError(wrong)
    return chosen


def _kind(name: str, document: bytes | None) -> str | None:
    """Return the kind of file that an argument names, None if that cannot be told."""
    from mig_opt.files import document_kind
    from mig_opt.files.documents import read_text
    from mig_opt.instances import instance_names

    if document is not None:
        return document_kind(document)
    if not os.access(name, os.F_OK):
        return "batch" if name in instance_names() else "services" if name in instance_names("demand") else None
    try:
        return document_kind(read_text(name), table=is_table(name))
    except InputError:  # reported where the file is read
        return None
