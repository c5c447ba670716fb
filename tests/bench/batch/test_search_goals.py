"""The study of the goals of `search`: a small cut, and when it says that a goal is met."""

import pytest

from bench.batch.search_goals import Cell, verdict
from mig_opt.studies.batch import BatchRun
from mig_opt.studies.rows import Outcome, Row
from mig_opt.studies.summary import Judged, judge


def row(batch: str, method: str, outcome: Outcome) -> Row[BatchRun]:
    return Row(BatchRun({"name": batch}, {}, "", method), outcome)


def judged(batch: str, ours: float, bound: float, far: float, best: float, seconds: float = 1.0) -> list[Judged]:
    outcomes = {
        "cp": Outcome("optimal" if best == bound else "feasible", 1.0, best, bound, 0.0005),
        "far": Outcome("feasible", 0.1, far, 1.0, 0.0005),
        "search": Outcome("feasible", seconds, ours, 1.0, 0.0005),
    }
    return judge([row(batch, method, outcome) for method, outcome in outcomes.items()])


def test_a_cell_sums_up_its_batches() -> None:
    cell = Cell.of([*judged("a", 10.0, 10.0, 12.0, 10.0, 1.1), *judged("b", 10.0, 9.8, 10.0, 9.9, 0.9)])
    assert (cell.proven, cell.worse) == (1, 0)
    assert cell.overrun(1.0) == pytest.approx(0.1)
    assert verdict([cell], 0.011) == "met"
    assert verdict([cell], 0.009) == "met, to the best known"
    assert verdict([cell], 0.005) == "**missed**: too far"
    assert verdict([cell, cell], 0.005) == "**missed**: 2 of 2 cells"


@pytest.mark.parametrize(("far", "worse"), [(9.9996, 0), (9.9994, 1)])
def test_worse_than_far_is_a_miss(far: float, worse: int) -> None:
    cell = Cell.of(judged("a", 10.0, 9.99, far, 9.99))
    assert cell.worse == worse
    assert verdict([cell], 0.01) == ("**missed**: worse than FAR on 1" if worse else "met")
