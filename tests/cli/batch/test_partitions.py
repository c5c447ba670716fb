"""Commands with partitions and without operation costs."""

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
