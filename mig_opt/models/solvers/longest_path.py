"""Linear program that divides tasks among stacks so that the longest path is as short as possible, by HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_UNIT_LENGTH = 1000.0
"""Length of a schedule in the program."""


def path_weights(
    ticks: npt.NDArray[np.int64],
    possible: npt.NDArray[np.bool_],
    cover: npt.NDArray[np.bool_],
    operations: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64] | None:
    """Return the weights of the paths, shape (paths,), of sum 1, at which divided tasks give the best bound.

    ``ticks`` and ``possible``, of shape (tasks, stacks), have the ticks of each task in each stack, and where it can
    run; ``cover``, of shape (paths, stacks), is true where a path goes through a stack; ``operations`` are the ticks of
    each path without tasks. None is returned if the solver fails.
    """
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
