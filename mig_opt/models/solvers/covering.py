"""Linear programs that cover rows by columns of cost 1, by HiGHS in this process; columns come one after the other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class CoveringProgram:
    """Program that covers each row at least once, with as few columns as possible.

    A row can be covered by a column of its own anyway. Columns have a key each. Where they are for several groups, of
    which ``members`` tells the sizes, a group has at most its share of the number that is minimised.
    """

    def __init__(self, rows: int, members: Sequence[int] = (1,)) -> None:
        import highspy  # slow to load

        self._infinity = highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._model: Any = highspy.Highs()
        self._model.setOptionValue("output_flag", False)
        # Primal simplex: with more columns the last solution is still one.
        self._model.setOptionValue("simplex_strategy", 4)
        self._columns: dict[Hashable, int] = {}
        self._off: set[int] = set()
        self.dual_prices: npt.NDArray[np.float64] = np.zeros(rows)
        for _ in range(rows):
            self._model.addRow(1.0, self._infinity, 0, [], [])
        for row in range(rows):
            self._model.addCol(1.0, 0.0, 1.0, 1, [row], [1.0])
        self._surplus: npt.NDArray[np.int32] | None = None  # columns that take away from a row
        self._shared = len(members) > 1
        if self._shared:
            groups, total = range(rows, rows + len(members)), sum(members)
            for _ in groups:
                self._model.addRow(-self._infinity, 0.0, 0, [], [])
            shares = [-own / total for own in members]
            self._model.addCol(1.0, 0.0, self._infinity, len(members), list(groups), shares)

    def add(self, columns: Mapping[Any, Mapping[int, int]], groups: Sequence[int] = ()) -> bool:
        """Add columns, each with how often it covers some rows, and its group; return True if any of them is new."""
        before, rows = len(self._columns), len(self.dual_prices)
        for at, (key, covered) in enumerate(columns.items()):
            if key not in self._columns:
                self._columns[key] = self._model.getNumCol()
                entries = {row: float(times) for row, times in covered.items()}
                if self._shared:
                    entries[rows + groups[at]] = 1.0
                cost = 0.0 if self._shared else 1.0
                self._model.addCol(cost, 0.0, self._infinity, len(entries), list(entries), list(entries.values()))
        return len(self._columns) > before

    def use(self, keys: Mapping[Any, bool]) -> None:
        """Let the program use some of its columns, and others not."""
        for key, on in keys.items():
            column = self._columns[key]
            if on == (column in self._off):
                self._model.changeColBounds(column, 0.0, self._infinity if on else 0.0)
                self._off ^= {column}

    def price_within(self, lowest: npt.NDArray[np.float64], highest: npt.NDArray[np.float64]) -> None:
        """Keep the dual price of each row between two limits: what it costs to leave it, and what more than 1 earns."""
        rows = np.arange(len(self.dual_prices), dtype=np.int32)
        if self._surplus is None:
            self._surplus = self._model.getNumCol() + rows
            for row in rows.tolist():
                self._model.changeColBounds(row, 0.0, self._infinity)
                self._model.addCol(0.0, 0.0, self._infinity, 1, [row], [-1.0])
        self._model.changeColsCost(len(rows), rows, np.asarray(highest, np.float64))
        self._model.changeColsCost(len(rows), self._surplus, -np.asarray(lowest, np.float64))

    def solve(self) -> float | None:
        """Find the least number of columns, and the dual prices of the rows; return None if the solver fails."""
        self._model.run()
        if self._model.getModelStatus() != self._optimal:
            return None
        duals = self._model.getSolution().row_dual[: len(self.dual_prices)]
        self.dual_prices = np.maximum(np.array(duals), 0.0)
        return float(self._model.getInfo().objective_function_value)
