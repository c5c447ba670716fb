"""Weights of paths at which tasks that are divided among stacks tell most of the longest path.

At any weights each task runs where it adds least, and the lengths of the paths are then a cut: at other weights their
weighted sum is no less than what the best places of the tasks come to. HiGHS finds the weights at which the cuts so far
allow most (Kelley, 1960). The programs are small, however many tasks there are. Where these are some hundred, a program
with all tasks is solved in half of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_MAX_TASKS_AT_ONCE = 200
"""Number of tasks above which programs with cuts are quicker than one with all tasks."""

_UNIT_LENGTH = 1000.0
"""Length of a schedule in the program."""

_MAX_CUTS = 200
"""Number of cuts at which the search ends with the best weights so far; most layouts need 20 to 40."""

_TOLERANCE, _TOLERATED_TICKS = 1e-10, 0.01
"""Share of the bound, and ticks, by which better weights may raise it at most, so that they are not sought."""

_CAUTION = 0.3
"""Weight of the best weights so far, against those of the program, in the next ones: else they oscillate."""

Weights = npt.NDArray[np.float64]


def path_weights(
    ticks: npt.NDArray[np.int64],
    possible: npt.NDArray[np.bool_],
    cover: npt.NDArray[np.bool_],
    operations: npt.NDArray[np.int64],
) -> Weights:
    """Return the weights of the paths, shape (paths,), of sum 1, at which divided tasks give the best bound.

    ``ticks`` and ``possible``, of shape (tasks, stacks), have the ticks of each task in each stack, and where it can
    run, which is somewhere; ``cover``, of shape (paths, stacks), is true where a path goes through a stack;
    ``operations`` are the ticks of each path without tasks.
    """
    at_once = _with_all_tasks(ticks, possible, cover, operations) if len(ticks) <= _MAX_TASKS_AT_ONCE else None
    if at_once is not None:
        return at_once
    rows, covered = np.arange(len(ticks)), cover.astype(np.float64)
    best = weights = np.full(len(cover), 1 / len(cover))
    lower, cuts = -1.0, None
    for _ in range(_MAX_CUTS):
        stacks = np.where(possible, ticks * (weights @ covered), np.inf).argmin(axis=1)
        lengths = operations + covered @ np.bincount(stacks, ticks[rows, stacks], cover.shape[1])
        if weights @ lengths > lower:
            lower, best = float(weights @ lengths), weights
        cuts = cuts or _Cuts(len(cover), _UNIT_LENGTH / max(1.0, lower))
        upper, most = cuts.add(lengths)
        if most is None or upper - lower <= max(_TOLERANCE * upper, _TOLERATED_TICKS):
            break
        weights = _CAUTION * best + (1 - _CAUTION) * most
    return best


class _Cuts:
    """Program with the cuts so far: its dual, in which they have shares of sum 1 and the longest path is minimised."""

    def __init__(self, paths: int, scale: float) -> None:
        import highspy  # slow to load

        self._scale, self._infinity, self._rows = scale, highspy.kHighsInf, np.arange(paths + 1, dtype=np.int32)
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._model: Any = highspy.Highs()
        self._model.setOptionValue("output_flag", False)
        # Primal simplex: with more columns the last solution is still one.
        self._model.setOptionValue("simplex_strategy", 4)
        for _ in range(paths):
            self._model.addRow(-self._infinity, 0.0, 0, [], [])
        self._model.addRow(1.0, 1.0, 0, [], [])
        self._model.addCol(1.0, 0.0, self._infinity, paths, self._rows[:-1], np.full(paths, -1.0))

    def add(self, lengths: npt.NDArray[np.float64]) -> tuple[float, Weights | None]:
        """Add the lengths of all paths; return what no weights exceed, and the best ones, None if the solver fails."""
        entries = np.append(lengths * self._scale, 1.0)
        self._model.addCol(0.0, 0.0, self._infinity, len(entries), self._rows, entries)
        self._model.run()
        if self._model.getModelStatus() != self._optimal:
            return 0.0, None
        weights = np.maximum(-np.array(self._model.getSolution().row_dual[:-1]), 0.0)
        upper = float(self._model.getInfo().objective_function_value) / self._scale
        return upper, weights / weights.sum() if weights.sum() > 0 else None


def _with_all_tasks(
    ticks: npt.NDArray[np.int64],
    possible: npt.NDArray[np.bool_],
    cover: npt.NDArray[np.bool_],
    operations: npt.NDArray[np.int64],
) -> Weights | None:
    """Return the weights by one program with all tasks; None if the solver fails."""
    import highspy  # slow to load

    tasks, stacks = np.nonzero(possible)
    paths, count = len(cover), len(tasks)
    scale = _UNIT_LENGTH / max(1, int(ticks[possible].max(initial=1)))
    # The column of a task in a stack has the row of the task, and those of the paths through the stack.
    starts = np.cumsum(np.concatenate([[0], 1 + cover.sum(axis=0)[stacks]]))
    rows, values = np.empty(starts[-1], np.int32), np.ones(starts[-1])
    rows[starts[:-1]] = tasks
    for stack in range(cover.shape[1]):
        through, columns = np.nonzero(cover[:, stack])[0], np.nonzero(stacks == stack)[0]
        entries = starts[columns, np.newaxis] + 1 + np.arange(len(through))
        rows[entries] = len(ticks) + through
        values[entries] = (ticks[tasks[columns], stack] * scale)[:, np.newaxis]
    program: Any = highspy.HighsLp()
    program.num_col_, program.num_row_ = count + 1, len(ticks) + paths
    program.col_cost_ = np.append(np.zeros(count), 1.0)
    program.col_lower_ = np.zeros(count + 1)
    program.col_upper_ = np.full(count + 1, highspy.kHighsInf)
    program.row_lower_ = np.concatenate([np.ones(len(ticks)), np.full(paths, -highspy.kHighsInf)])
    program.row_upper_ = np.concatenate([np.ones(len(ticks)), -operations * scale])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.append(starts, starts[-1] + paths)
    program.a_matrix_.index_ = np.concatenate([rows, len(ticks) + np.arange(paths)])
    program.a_matrix_.value_ = np.append(values, np.full(paths, -1.0))
    model: Any = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("presolve", "off")
    model.passModel(program)
    model.run()
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    weights = np.maximum(-np.array(model.getSolution().row_dual[len(ticks) :]), 0.0)
    return weights / weights.sum() if weights.sum() > 0 else None
