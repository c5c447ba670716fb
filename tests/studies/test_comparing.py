"""Some methods on some batches, side by side."""

import pytest
from study_parts import method_that, problems

from mig_opt import Batch, Schedule, compare, generate_batch, load
from mig_opt.heuristics.batch.far import far
from mig_opt.method.control import Control
from mig_opt.studies.comparison import comparison_rows, comparison_to_csv


def test_compare():
    batches = {"rodinia": load("rodinia-a30"), "small": generate_batch(4)}
    found = compare(batches, ["far", "cp", "auto"])
    assert list(found.by_batch) == list(batches)
    assert [[run.run.column for run in runs] for runs in found.by_batch.values()] == [["far", "cp"]] * 2
    assert [(line.method, line.proven) for line in found.methods] == [("far", 0), ("cp", 2)]
    assert (found.interrupted, found.failures, found.contradictions) == (False, [], [])
    rows = comparison_rows(found)
    assert rows[0]["above_best"] == pytest.approx(rows[0]["makespan_s"] / rows[1]["makespan_s"] - 1)
    assert rows[0]["gap"] == pytest.approx(1 - rows[1]["lower_bound_s"] / rows[0]["makespan_s"])
    text = comparison_to_csv(found).splitlines()
    assert text[0].startswith("batch,gpu,gpus,tasks,method,status,makespan_s")
    assert [line.split(",")[4] for line in text[1:]] == ["far", "cp"] * 2


def test_compare_refuses_all_at_once():
    found = problems(lambda: compare({}, ["far", "fr"], time_limit=0, seed=-1, workers=0))
    assert set(found) == {"methods", "time_limit", "seed", "workers"}
    assert set(problems(lambda: compare({}, []))) == {"methods"}


@pytest.mark.parametrize("with_schedule", [True, False])
def test_ctrl_c_keeps_what_was_compared(monkeypatch, with_schedule):
    runs = 0

    def interrupted(batch: Batch, control: Control[Schedule]) -> None:
        nonlocal runs
        runs += 1
        if runs < 3 or with_schedule:
            far(batch, control)
        if runs == 3:
            raise KeyboardInterrupt

    method_that(monkeypatch, interrupted)
    found = compare({"a": generate_batch(3), "b": generate_batch(4), "c": generate_batch(5)}, ["far", "lpt"])
    assert found.interrupted
    statuses = [[run.outcome.status for run in runs] for runs in found.by_batch.values()]
    assert statuses == [["feasible", "feasible"], *([["interrupted"]] if with_schedule else [])]
