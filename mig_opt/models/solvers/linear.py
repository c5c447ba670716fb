"""Mixed-integer programs that are written row by row, on top of PuLP."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pulp

Variable = Any
"""A ``pulp.LpVariable``; PuLP has no annotations."""

Term = tuple[Variable, float]
"""A variable with its factor."""

Terms = Iterable[Term]
"""A sum; a variable may come more than once."""


class LinearProgram:
    """A mixed-integer program to be minimised; its name is in the head of a file."""

    def __init__(self, name: str) -> None:
        self.program = pulp.LpProblem(name, pulp.LpMinimize)  # for solvers
        self.variables: list[Variable] = []  # in the order in which they were made

    def continuous(self, name: str, least: float, most: float) -> Variable:
        """Return a new variable from ``least`` to ``most``."""
        return self._variable(name, least, most, pulp.LpContinuous)

    def share(self, name: str) -> Variable:
        """Return a new continuous variable from 0 to 1."""
        return self._variable(name, 0, 1, pulp.LpContinuous)

    def choice(self, name: str) -> Variable:
        """Return a new variable that is 0 or 1."""
        return self._variable(name, 0, 1, pulp.LpInteger)

    def number(self, name: str, most: int) -> Variable:
        """Return a new variable that is a whole number from 0 to ``most``."""
        return self._variable(name, 0, most, pulp.LpInteger)

    def _variable(self, name: str, least: float, most: float, category: str) -> Variable:
        variable = self.program.add_variable(name, least, most, category)
        self.variables.append(variable)
        return variable

    def at_most(self, name: str, terms: Terms, limit: float) -> None:
        """Demand that the sum of ``terms`` is at most ``limit``."""
        self._row(name, terms, pulp.LpConstraintLE, limit)

    def implies(self, name: str, cause: Variable, effect: Variable) -> None:
        """Demand that ``effect`` is at least ``cause``: of two choices, the second follows from the first."""
        self.at_most(name, [(cause, 1), (effect, -1)], 0)

    def exactly_one(self, name: str, choices: Iterable[Variable]) -> None:
        """Demand that one of some choices is 1."""
        self.equal(name, [(choice, 1) for choice in choices], 1)

    def at_most_one(self, name: str, choices: Iterable[Variable]) -> None:
        """Demand that no two of some choices are 1."""
        self.at_most(name, [(choice, 1) for choice in choices], 1)

    def requires(self, name: str, cause: Variable, effects: Iterable[Variable], count: int = 1) -> None:
        """Demand that as many of some effects as ``count`` follow from their cause."""
        self.at_most(name, [(cause, count), *((effect, -1) for effect in effects)], 0)

    def at_least(self, name: str, terms: Terms, limit: float) -> None:
        """Demand that the sum of ``terms`` is at least ``limit``."""
        self._row(name, terms, pulp.LpConstraintGE, limit)

    def equal(self, name: str, terms: Terms, value: float) -> None:
        """Demand that the sum of ``terms`` is ``value``."""
        self._row(name, terms, pulp.LpConstraintEQ, value)

    def _row(self, name: str, terms: Terms, sense: int, limit: float) -> None:
        # PuLP keeps the last factor of a variable that comes twice, not the sum.
        together: dict[Variable, float] = {}
        for variable, factor in terms:
            together[variable] = together.get(variable, 0.0) + factor
        expression = pulp.LpAffineExpression({variable: factor for variable, factor in together.items() if factor})
        self.program.addConstraint(pulp.LpConstraint(expression, sense, name, limit))

    def any(self, name: str, choices: Sequence[Variable]) -> Variable:
        """Return a variable that is 1 if one of ``choices`` is, and else 0."""
        if len(choices) == 1:
            return choices[0]
        result = self.caused(name, choices, "if")
        self.requires(f"{name}_only_if", result, choices)
        return result

    def caused(self, name: str, causes: Iterable[Variable], why: str = "for") -> Variable:
        """Return a variable that is 1 if one of its causes is, and else may be less; ``why`` is for names of rows."""
        result = self.share(name)
        for at, cause in enumerate(causes):
            self.implies(f"{name}_{why}_{at}", cause, result)
        return result

    def minimise(self, variable: Variable) -> None:
        """Make ``variable`` the objective."""
        self.program.setObjective(1 * variable)

    def minimise_sum(self, terms: Terms) -> None:
        """Make a sum the objective, in which no variable comes twice."""
        self.program.setObjective(pulp.LpAffineExpression(dict(terms)))

    def relax(self) -> None:
        """Let whole numbers be any."""
        for variable in self.variables:
            variable.cat = pulp.LpContinuous

    @contextlib.contextmanager
    def fixed(self, values: Mapping[Variable, float]) -> Iterator[None]:
        """Fix variables for a while."""
        bounds = {variable: (variable.lowBound, variable.upBound) for variable in values}
        for variable, value in values.items():
            variable.bounds(value, value)
        try:
            yield
        finally:
            for variable, (least, most) in bounds.items():
                variable.bounds(least, most)

    def leeway(self, tolerance: float) -> float:
        """Return by how much rows together give way if each of them, and each integer, may be off by ``tolerance``.

        A solver takes a row for kept if it is broken by no more than its tolerance, and a number for whole if it is as
        close to one; an integer that is off moves each of its rows by its factor there. In a program whose objective is
        the end of a chain of rows, the sum over all rows limits what that can add up to.
        """
        rows = self.program.constraints()
        total: float = sum(
            1 + sum(abs(factor) for variable, factor in row.items() if variable.cat == pulp.LpInteger) for row in rows
        )
        return tolerance * total

    def text(self, suffix: str) -> str:
        """Return the program as a file in the format of ``suffix``: ``.lp`` or ``.mps``."""
        with tempfile.TemporaryDirectory(prefix="mig-opt-") as folder:
            path = Path(folder) / f"program{suffix}"
            if suffix == ".lp":
                self.program.writeLP(str(path))
            else:
                self.program.writeMPS(str(path))
            return path.read_text(encoding="utf-8")
