"""Commands with partitions and without operation costs."""

from __future__ import annotations

import json

import pytest


def test_a_partition_is_for_fixpart(run, batch_file):
    outcome = run("solve", batch_file, "--method", "fixpart", "--partition", "2+2", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert {entry["profile"] for entry in outcome.json["schedule"]["runs"]} == {"2g.12gb"}
    outcome = run("solve", batch_file, "--partition", "4")
    assert (outcome.code, outcome.err) == (2, "error: --partition: is for the method fixpart; leave it out\n")


@pytest.mark.parametrize(
    ("more", "what"), [((), "fixpart needs one"), (("--partition", "3+1"), "has no partition '3+1'")]
)
def test_fixpart_lists_the_partitions(run, batch_file, more, what):
    outcome = run("solve", batch_file, "--method", "fixpart", *more)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: --partition: ")
    assert what in outcome.err
    assert outcome.err.endswith(" 4, 2+2, 2+1+1, 1+1+2, 1+1+1+1\n")


def test_a_wrong_partition_is_named_with_the_other_problems(run, batch_file):
    outcome = run("solve", batch_file, "--method", "fixpart", "--partition", "8", "--seed", "-1", "--gap", "x")
    assert outcome.code == 2
    assert [line.split(":")[1].strip() for line in outcome.err.splitlines()] == ["--seed", "--gap", "--partition"]
    # Where the batch cannot be read, nothing is said about its partitions.
    outcome = run("solve", "nowhere.json", "--method", "fixpart", "--partition", "8")
    assert outcome.code == 2
    assert "--partition" not in outcome.err


def test_no_partition_for_all_tasks_is_a_no_with_its_reason(run, tmp_path):
    path = tmp_path / "mixed.json"
    tasks = [{"name": "wide", "times": {"4": 3}}, {"name": "narrow", "times": {"1": 2}}]
    path.write_text(json.dumps({"schema": "mig-opt/batch/1", "gpu": "A30", "tasks": tasks}))
    outcome = run("solve", path, "--method", "fixpart-best")
    assert (outcome.code, outcome.err) == (1, "")
    assert "No partition has an instance for every task" in outcome.out
    outcome = run("solve", path, "--method", "fixpart-best", "--json")
    assert outcome.code == 1
    assert outcome.json["status"] == "no_solution"
    assert outcome.err.startswith("No partition has an instance for every task; methods")
    tasks = [{"name": str(size), "times": {str(size): 3}} for size in (7, 4, 3, 2)]
    path.write_text(json.dumps({"schema": "mig-opt/batch/1", "gpu": "A100", "gpus": 2, "tasks": tasks}))
    outcome = run("solve", path, "--method", "fixpart-best", "--json")
    assert (outcome.code, outcome.err.partition(";")[0]) == (
        1,
        "No partition has an instance for every task, even with one of its own for each GPU",
    )


def test_cost_free_schedules_are_valid_and_drawn_as_such(run, batch_file, tmp_path):
    plan, chart = tmp_path / "free.json", tmp_path / "free.svg"
    outcome = run("solve", batch_file, "--method", "miso-opt", "--cost-free", "-o", plan, "--json")
    assert outcome.code == 0
    charged = run("solve", batch_file, "--method", "miso-opt", "--json").json
    assert outcome.json["makespan"] < charged["makespan"]
    assert run("validate", batch_file, plan).code == 1
    assert run("validate", batch_file, plan, "--cost-free").code == 0
    assert "not valid" not in run("plot", batch_file, plan, chart, "--cost-free").err
    free, full = (run("bound", batch_file, *more, "--json").json["lower_bound"] for more in (["--cost-free"], []))
    assert free == outcome.json["lower_bound"] < full
