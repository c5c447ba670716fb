"""Summaries of rows: gaps to the best of all, and lines that summarise."""

from typing import Any

import pytest
from study_parts import FAR

from mig_opt.instances.bundled import instance_info
from mig_opt.studies import BundledBatch, Study, run_study
from mig_opt.studies.batch import BatchRun
from mig_opt.studies.rows import Outcome, Row
from mig_opt.studies.summary import Figures, judge, summarise


def row(method: str, makespan: float | None, bound: float | None = 8.0, batch: str = "b", **more: Any) -> Row[BatchRun]:
    outcome = Outcome(more.pop("status", "feasible"), 1.0, makespan, bound, **more)
    return Row(BatchRun({"name": batch}, {}, "cell", method), outcome)


def test_gaps_are_to_the_best_of_all() -> None:
    wrong_row = row("d", 1.0, 20.0, error="not valid")
    one, two, none, wrong = judge([row("a", 10.0, 5.0), row("b", 12.5, 8.0), row("c", None, 9.0), wrong_row])
    assert (one.best_bound, one.best_known) == (9.0, 10.0)
    assert (one.gap, one.above_best) == (pytest.approx(0.1), 0.0)
    assert (two.gap, two.above_best) == (pytest.approx(0.28), pytest.approx(0.25))
    assert none.gap is none.above_best is wrong.gap is wrong.above_best is None


def test_makespans_on_record_count() -> None:
    (one,) = judge([row("a", 10.0)], {row("a", 10.0).run.batch_key: 8.0})
    assert (one.best_known, one.above_best) == (8.0, 0.25)
    (run,) = run_study(Study((BundledBatch("rodinia-a30"),), (FAR,))).judged()
    assert run.best_known == instance_info("rodinia-a30").best_known.makespan.value


def test_lines_summarise() -> None:
    rows = [
        row("a", 10.0, 10.0, "one", status="optimal"),
        row("a", 20.0, 10.0, "two"),
        row("b", 12.5, 1.0, "one"),
        row("b", None, None, "two", status="crashed", error="broken"),
    ]
    first, second = summarise(judge(rows))
    assert (first.method, first.runs, first.answered, first.proven, first.best, first.failed) == ("a", 2, 2, 1, 2, 0)
    assert first.gap == Figures(0.25, 0.25, 0.5)
    assert (second.runs, second.answered, second.proven, second.best, second.failed) == (2, 1, 0, 0, 1)
    assert second.above_best == Figures(0.25, 0.25, 0.25)
