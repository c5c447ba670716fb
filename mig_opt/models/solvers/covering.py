"""Linear programs that cover rows by columns of cost 1, by HiGHS in this process; columns come one after the other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


class CoveringProgram:
    """Program that covers each row at least once, with as few columns as possible.

    A row can be covered by a column of its own anyway. Columns have a key each.
    """

    def __init__(self, rows: int) -> None:
        import highspy  # slow to load

        self._infinity = highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._model: Any = highspy.Highs()
        self._model.setOptionValue("output_flag", False)
        self._columns: dict[Hashable, int] = {}
        self._off: set[int] = set()
        self.dual_prices: npt.NDArray[np.float64] = np.zeros(rows)
        for _ in range(rows):
            self._model.addRow(1.0, self._infinity, 0, [], [])
        for row in range(rows):
            self._model.addCol(1.0, 0.0, 1.0, 1, [row], [1.0])

    def add(self, columns: Mapping[Any, Mapping[int, int]]) -> bool:
        """Add columns, each with how often it covers some rows; return True if any of them is new."""
        before = len(self._columns)
        for key, covered in columns.items():
            if key not in self._columns:
                self._columns[key] = self._model.getNumCol()
                entries = [float(times) for times in covered.values()]
                self._model.addCol(1.0, 0.0, self._infinity, len(covered), list(covered), entries)
        return len(self._columns) > before

    def use(self, keys: Mapping[Any, bool]) -> None:
        """Let the program use some of its columns, and others not."""
        for key, on in keys.items():
            column = self._columns[key]
            if on == (column in self._off):
                self._model.changeColBounds(column, 0.0, self._infinity if on else 0.0)
                self._off ^= {column}

    def solve(self) -> float | None:
        """Find the least number of columns, and the dual prices of the rows; return None if the solver fails."""
        self._model.run()
        if self._model.getModelStatus() != self._optimal:
            return None
        self.dual_prices = np.maximum(np.array(self._model.getSolution().row_dual), 0.0)
        return float(self._model.getInfo().objective_function_value)
