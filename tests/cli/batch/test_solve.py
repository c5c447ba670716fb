"""The commands solve, validate, bound and plot: what they print, and what they write."""

from __future__ import annotations

import io
import json
import sys

import pytest
from command_line import BATCH, TASKS, Outcome, method_that, not_valid, refuses, without_operations

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.lifetimes import lifetimes_with_runs
from mig_opt.cli.batch import solving as cli_solving
from mig_opt.files.batch.batches import read_batch, write_batch
from mig_opt.files.batch.schedules import read_schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.instances.batch import generate_batch
from mig_opt.validation import validate

# --- solve ---------------------------------------------------------------------------------------------------------


def test_solve_prints_card_and_plan(run, batch_file):
    outcome = run("solve", batch_file)
    assert (outcome.code, outcome.err) == (0, "")
    for line in (
        "batch        small (3 tasks)",
        "GPU          1 x A30-24GB",
        "status       optimal",
        "gap          0.000%",
    ):
        assert line in outcome.out.splitlines()
    makespan = run("solve", batch_file, "--json").json["makespan"]
    assert f"makespan     {makespan:.3f} s" in outcome.out
    assert "(create)" in outcome.out
    assert "\x1b" not in outcome.out


def test_solve_json_is_one_object_with_a_valid_schedule(run, batch_file, tmp_path):
    outcome = run("solve", batch_file, "--method", "far", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert list(outcome.json) == ["status", "method", "makespan", "lower_bound", "gap", "runtime_s", "schedule"]
    assert (outcome.json["status"], outcome.json["method"]) == ("feasible", "far")
    written = tmp_path / "from_json.json"
    written.write_text(json.dumps(outcome.json["schedule"]))
    assert validate(read_batch(batch_file), read_schedule(written)).valid


def test_solve_writes_schedule_and_chart(run, batch_file, tmp_path):
    plan, chart = tmp_path / "p.json", tmp_path / "p.svg"
    outcome = run("solve", batch_file, "--method", "far", "-o", plan, "--plot", chart)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith(f"Schedule written to {plan}.\nChart written to {chart}.\n")
    assert validate(read_batch(batch_file), read_schedule(plan)).valid
    assert chart.read_text().startswith("<?xml")


def test_solve_json_stays_one_object_beside_files(run, batch_file, tmp_path):
    outcome = run(
        "solve", batch_file, "--method", "far", "--json", "-o", tmp_path / "p.json", "--plot", tmp_path / "p.pdf"
    )
    assert outcome.json["status"] == "feasible"
    assert (tmp_path / "p.pdf").exists()


def test_quiet_leaves_out_the_plan(run, batch_file):
    outcome = run("solve", batch_file, "--method", "far", "--quiet")
    assert "status       feasible" in outcome.out
    assert "(create)" not in outcome.out


def test_options_of_solve_take_the_place_of_the_file(run, batch_file):
    outcome = run("solve", batch_file, "--method", "far", "--gpu", "H100", "--gpus", 2)
    assert "GPU          2 x H100-80GB" in outcome.out
    assert outcome.code == 0


def test_times_of_another_gpu_are_remarked(run, batch_file, tmp_path, monkeypatch):
    options = ("solve", "--method", "far", "-q")
    note = "note: the times of {} are for A30-24GB and taken as they are for A100-40GB\n"
    for command in (("bound", "--json"), options):
        assert run(*command, "rodinia-a30", "--gpu", "A30").err == ""
    batch_file.write_text(json.dumps({**BATCH, "tasks": TASKS[:1]}))
    outcome = run(*options, batch_file, "--gpu", "A100")
    assert (outcome.code, outcome.err) == (0, note.format("small"))
    assert "1 x A100-40GB" in outcome.out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(batch_file.read_bytes())))
    assert run("bound", "-", "--gpu", "A100").err == note.format("standard input")
    table = tmp_path / "t.csv"
    table.write_text("task,t1_s\na,1\n")
    assert run("bound", table, "--gpu", "A100").err == ""


def test_bundled_instance_csv_and_standard_input(run, tmp_path, monkeypatch):
    assert "rodinia-a30 (8 tasks)" in run("solve", "rodinia-a30", "--method", "far").out
    table = tmp_path / "table.csv"
    table.write_text("task,t1_s,t2_s\na,4,2.5\nb,3,\n")
    assert "table (2 tasks)" in run("solve", table, "--gpu", "A30", "--method", "far").out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(BATCH).encode())))
    assert "standard input (3 tasks)" in run("solve", "-", "--method", "far").out


def test_a_file_goes_before_a_bundled_instance(run, tmp_path, monkeypatch):
    (tmp_path / "rodinia-a30").write_text(json.dumps(BATCH))
    monkeypatch.chdir(tmp_path)
    assert "rodinia-a30 (3 tasks)" in run("bound", "rodinia-a30").out
    (tmp_path / "rodinia-a30").unlink()
    assert "rodinia-a30 (8 tasks)" in run("bound", "rodinia-a30").out


def test_a_long_plan_is_shortened_to_a_line_per_instance(run, tmp_path):
    path, plan = tmp_path / "long.json", tmp_path / "plan.json"
    write_batch(generate_batch(60, gpu="A30", gpus=2), path)
    outcome = run("solve", path, "--method", "far", "-o", plan)
    lifetimes = lifetimes_with_runs(read_batch(path), read_schedule(plan))
    table = outcome.out.split("\n\n")[1].splitlines()
    assert len(table) == 2 + len(lifetimes) < 40
    assert "One line for each instance: -o FILE or --json gives every run and operation." in outcome.out


def test_very_many_instances_are_cut_with_a_remark(run, tmp_path):
    path = tmp_path / "many.json"
    write_batch(Batch(tuple(Task(f"t{i}", {1: 1.0}) for i in range(60)), get_gpu("A30"), 20), path)
    outcome = run("solve", path, "--method", "far")
    assert "The first 40 of 60 instances, one line for each" in outcome.out


def test_a_task_that_fits_nowhere_makes_it_infeasible(run, tmp_path):
    path = tmp_path / "big.json"
    task = {"name": "huge", "times": {"1": 3.0, "2": 2.0}, "memory_gb": 20}
    path.write_text(json.dumps({**BATCH, "tasks": [*TASKS, task]}))
    message = "task 'huge' fits nowhere on A30-24GB: it needs 20 GB, but instances of 1 or 2 compute slices"
    text = run("solve", path, "-o", tmp_path / "none.json", "--plot", tmp_path / "none.png")
    assert text.code == 1
    assert "status   infeasible" in text.out
    assert message in text.out
    assert not (tmp_path / "none.json").exists()
    assert not (tmp_path / "none.png").exists()
    as_json = run("solve", path, "--json")
    assert as_json.code == 1
    assert (as_json.json["status"], as_json.json["schedule"], as_json.json["lower_bound"]) == ("infeasible", None, None)
    assert message in as_json.err
    bound = run("bound", path)
    assert bound.code == 1
    assert message in bound.out
    bound_json = run("bound", path, "--json")
    assert (bound_json.code, bound_json.json) == (1, {"lower_bound": None, "bounds": []})
    assert message in bound_json.err


def test_no_solution_exits_with_1_and_writes_nothing(run, batch_file, tmp_path, monkeypatch):
    method_that(monkeypatch, lambda batch, control: None)
    outcome = run("solve", batch_file, "-o", tmp_path / "none.json", "--plot", tmp_path / "none.png")
    assert outcome.code == 1
    assert f"There is no schedule to draw in {tmp_path / 'none.png'}." in outcome.out
    assert not (tmp_path / "none.png").exists()
    assert "status       no solution" in outcome.out
    assert f"There is no schedule to write to {tmp_path / 'none.json'}." in outcome.out
    assert not (tmp_path / "none.json").exists()
    assert run("solve", batch_file, "--json").json["status"] == "no_solution"


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


@pytest.mark.parametrize(
    ("options", "share"),
    [((), 0.0), (("--gap", "0.003"), 0.003), (("--gap", "0.3%"), 0.003), (("--gap", "25 %"), 0.25)],
)
def test_a_gap_is_a_share_or_a_percentage(run, batch_file, monkeypatch, options, share):
    given: list[float] = []
    original = cli_solving.run_method
    monkeypatch.setattr(
        cli_solving, "run_method", lambda *args, **more: given.append(more["gap"]) or original(*args, **more)
    )
    run("solve", batch_file, "--method", "far", *options)
    assert given == pytest.approx([share])


@pytest.mark.parametrize(("gap", "cut_short"), [("50%", False), ("0", True)])
def test_a_plan_that_is_good_enough_is_not_cut_short(run, monkeypatch, gap, cut_short):
    monkeypatch.setattr("mig_opt.cli.outcome.DEFAULT_TIME_LIMIT", 1e-3)
    outcome = run("solve", "miso-a100-32", "--gap", gap, "-q")
    assert (outcome.code, "status       feasible" in outcome.out) == (0, True)
    assert ("Stopped after the default of 0.001 s" in outcome.out) == cut_short


def test_deterministic_plans_are_the_same(run):
    one, two = (run("solve", "miso-a100-32", "--deterministic", "--time-limit", "0.2", "--json").json for _ in range(2))
    assert one["status"] == "feasible"
    assert {**one, "runtime_s": 0} == {**two, "runtime_s": 0}


def test_wrong_options_are_named_together(run, batch_file):
    outcome = run("solve", batch_file, "--gap", "5", "--time-limit", "0", "--seed", "-1")
    assert outcome.code == 2
    for option in ("--gap", "--time-limit", "--seed"):
        assert f"{option}: must be" in outcome.err


# --- validate, bound, plot -------------------------------------------------------------------------------------------


def test_validate_a_valid_schedule(run, batch_file, plan_file):
    outcome = run("validate", batch_file, plan_file)
    assert (outcome.code, outcome.err) == (0, "")
    assert "schedule  valid" in outcome.out
    assert "no operations" not in outcome.out
    as_json = run("validate", batch_file, plan_file, "--json")
    assert (as_json.code, as_json.err) == (0, "")
    assert as_json.json == {"valid": True, "makespan": read_schedule(plan_file).makespan, "violations": []}


def test_validate_lists_every_violation(run, batch_file, plan_file):
    wrong = not_valid(plan_file)
    expected = validate(read_batch(batch_file), read_schedule(wrong)).violations
    outcome = run("validate", batch_file, wrong)
    assert (outcome.code, outcome.err) == (1, "")
    assert "schedule  not valid, 1 violation\n" in outcome.out
    as_json = run("validate", batch_file, wrong, "--json")
    assert as_json.code == 1
    assert not as_json.json["valid"]
    assert as_json.json["violations"] == [
        {"code": violation.code.value, "path": violation.path, "message": violation.message} for violation in expected
    ]
    assert f" - {expected[0].path}: " in outcome.out
    assert f"({expected[0].code})" in outcome.out


def test_validate_finds_and_writes_operations(run, batch_file, plan_file, tmp_path):
    found = tmp_path / "found.json"
    outcome = run("validate", batch_file, without_operations(plan_file), "-o", found)
    assert outcome.code == 0
    operations = read_schedule(found).operations
    assert operations
    assert f"The schedule has no operations; found for its runs: {len(operations)} operations." in outcome.out
    assert validate(read_batch(batch_file), read_schedule(found)).valid


def test_validate_writes_nothing_that_is_not_valid(run, batch_file, plan_file, tmp_path):
    found = tmp_path / "found.json"
    outcome = run("validate", batch_file, not_valid(plan_file), "-o", found)
    assert outcome.code == 1
    assert f"Nothing written to {found}." in outcome.out
    assert not found.exists()


def test_tolerance_of_validate(run, batch_file, plan_file):
    assert run("validate", batch_file, not_valid(plan_file), "--tolerance", 2).code == 0
    refuses(run("validate", batch_file, plan_file, "--tolerance", "nan"), "error: --tolerance: must be")


def test_validate_with_the_gpus_of_solve(run, batch_file, tmp_path):
    plan = tmp_path / "two.json"
    run("solve", batch_file, "--method", "far", "--gpus", 2, "-o", plan)
    assert run("validate", batch_file, plan, "--gpus", 2).code == 0
    assert run("validate", batch_file, plan).code == 1


def test_bound(run):
    as_json = run("bound", "rodinia-a30", "--json")
    assert (as_json.code, as_json.err) == (0, "")
    values = [entry["value"] for entry in as_json.json["bounds"]]
    assert as_json.json["lower_bound"] == max(values)
    assert all(set(entry) == {"name", "value", "reason"} and entry["reason"] for entry in as_json.json["bounds"])
    text = run("bound", "rodinia-a30")
    assert f"lower bound  {max(values):.3f} s" in text.out
    for entry in as_json.json["bounds"]:
        assert f"{entry['name']} " in text.out
        assert f"{entry['value']:.3f}" in text.out


def test_plot(run, batch_file, plan_file, tmp_path):
    chart = tmp_path / "chart.svg"
    outcome = run("plot", batch_file, without_operations(plan_file), chart, "--lower-bound", 1.0)
    assert outcome == Outcome(0, f"Chart written to {chart}.\n", "")
    assert 'id="create:0"' in chart.read_text()  # the operations that were found
    assert 'id="lower-bound"' in chart.read_text()


def test_plot_draws_what_is_not_valid_with_a_warning(run, batch_file, plan_file, tmp_path):
    outcome = run("plot", batch_file, not_valid(plan_file), tmp_path / "chart.png")
    assert outcome.code == 0
    assert outcome.err == "warning: the schedule is not valid (1 violation); see: mig-opt validate\n"
    assert (tmp_path / "chart.png").stat().st_size > 0


def test_plot_refuses(run, batch_file, plan_file, tmp_path):
    refuses(run("plot", batch_file, plan_file, tmp_path / "chart.gif"), "chart.gif: charts are written as")
    refuses(run("plot", batch_file, plan_file, tmp_path / "c.png", "--lower-bound", "nan"), "error: --lower-bound:")
    refuses(run("plot", batch_file, plan_file, tmp_path / "no" / "c.png"), "there is no folder")
    assert not list(tmp_path.glob("c*.png"))
