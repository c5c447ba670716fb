"""Commands with partitions and without operation costs."""

from __future__ import annotations

import json


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
