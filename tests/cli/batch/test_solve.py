"""The commands solve, validate, bound and plot: what they print, and what they write."""

import json

import pytest
from command_line import BATCH, method_that

from mig_opt import Batch, Task, get_gpu
from mig_opt.cli.inputs import parsed_share
from mig_opt.files.batch.batches import BATCH as BATCH_FILE


def test_a_file_goes_before_a_bundled_instance(run, tmp_path, monkeypatch):
    (tmp_path / "rodinia-a30").write_text(json.dumps(BATCH))
    monkeypatch.chdir(tmp_path)
    assert "rodinia-a30 (3 tasks)" in run("bound", "rodinia-a30").out
    (tmp_path / "rodinia-a30").unlink()
    assert "rodinia-a30 (8 tasks)" in run("bound", "rodinia-a30").out


def test_very_many_instances_are_cut_with_a_remark(run, tmp_path):
    path = tmp_path / "many.json"
    BATCH_FILE.write(Batch(tuple(Task(f"t{i}", {1: 1.0}) for i in range(60)), get_gpu("A30"), 20), path)
    outcome = run("solve", path, "--method", "far")
    assert "The first 40 of 60 instances, one line for each" in outcome.out


@pytest.mark.parametrize(
    ("options", "limit"), [((), 60.0), (("--method", "far"), None), (("--time-limit", "7.5"), 7.5)]
)
def test_exact_methods_have_a_time_limit_by_default(run, batch_file, monkeypatch, options, limit):
    left: list[float | None] = []
    method_that(monkeypatch, lambda batch, control: left.append(control.remaining))
    run("solve", batch_file, *options)
    if limit is None:
        assert left == [None]
    else:
        assert all(limit - 5 < seconds <= limit for seconds in left)


@pytest.mark.parametrize(("text", "share"), [("0", 0.0), ("0.003", 0.003), ("0.3%", 0.003), ("25 %", 0.25)])
def test_a_gap_is_a_share_or_a_percentage(text, share):
    assert parsed_share("--gap", text) == pytest.approx(share)


@pytest.mark.parametrize(("gap", "cut_short"), [("50%", False), ("0", True)])
def test_a_plan_that_is_good_enough_is_not_cut_short(run, monkeypatch, gap, cut_short):
    monkeypatch.setattr("mig_opt.cli.answers.DEFAULT_TIME_LIMIT", 1e-3)
    outcome = run("solve", "miso-a100-32", "--gap", gap, "-q")
    assert (outcome.code, "status       feasible" in outcome.out) == (0, True)
    assert ("Stopped after the default of 0.001 s" in outcome.out) == cut_short
