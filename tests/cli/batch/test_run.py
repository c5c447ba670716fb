"""The commands run and profile."""

import json
import re

import pytest
from command_line import refuses
from nvml_machine import Machine

from mig_opt.files.batch.batches import BATCH
from mig_opt.files.costs import COSTS
from mig_opt.files.serving.profiles import PROFILES

pytestmark = pytest.mark.usefixtures("nobody_else")


@pytest.fixture
def machine(tmp_path):
    with Machine(tmp_path, "A30").loaded() as found:
        yield found


@pytest.fixture
def commands(tmp_path):
    path = tmp_path / "commands.json"
    path.write_text(json.dumps({"schema": "mig-opt/commands/1", "tasks": {name: ["true"] for name in "abc"}}))
    return path


def test_a_plan_is_run_and_what_was_measured_written(run, machine, batch_file, plan_file, commands, tmp_path):
    journal, measured, chart = (tmp_path / name for name in ("run.journal", "measured.json", "run.svg"))
    files = ["--journal", journal, "--measured", measured, "--plot", chart]
    outcome = run("run", batch_file, plan_file, "--commands", commands, *files)
    assert outcome.code == 0, outcome.err
    assert f"Chart written to {chart}." in outcome.out
    assert "measured" in chart.read_text()
    source = BATCH.read(measured).operations.source
    assert re.match(r"mig-opt run, \d+-\d+-\d+, medians of \d+ creations?", source)
    assert source.endswith("Table 1, measured on A30)")  # of what has not been measured
    assert run("validate", batch_file, journal).code == 0
    refuses(run("run", "--resume", journal), "there is nothing to go on with")
    refuses(run("run", batch_file, plan_file, "--split", tmp_path, "--restartable"), "--restartable: and --split")
    refuses(run("run", "--undo", journal, "--dry-run"), "--dry-run: is for a new execution")
    assert machine.instances(0)
    assert run("run", "--undo", journal).code == 0
    assert machine.instances(0) == []
    dry = run("run", batch_file, plan_file, "--commands", commands, "--journal", journal, "--dry-run", "--restartable")
    assert (dry.code, "nothing was changed" in dry.out) == (0, True), dry


def test_measured_costs_are_written_back_for_any_plan(run, machine, batch_file, plan_file, commands, tmp_path):
    machine.fault("slow", -1, 0.2)
    costs, options = tmp_path / "costs.json", ["--commands", commands, "--journal", tmp_path / "run.journal", "-q"]
    outcome = run("run", batch_file, plan_file, *options, "--measured-costs", costs)
    assert outcome.code == 0, outcome.err
    assert f"Table of costs written to {costs}." in outcome.out
    measured = COSTS.read(costs)
    assert all(seconds >= 0.2 for seconds in measured.create.values() if seconds not in (0.11, 0.12, 0.13))
    assert max(measured.create.values()) >= 0.2
    again = run("solve", "rodinia-a30", "--costs", costs, "--json", "-o", tmp_path / "next.json")
    assert again.code == 0, again.err
    assert again.json["makespan"] > 28.434
    for command in ("validate", "plot"):
        out = [tmp_path / "next.svg"] if command == "plot" else []
        assert "not valid" not in run(command, "rodinia-a30", tmp_path / "next.json", *out, "--costs", costs).err
    assert run("validate", "rodinia-a30", tmp_path / "next.json", "--costs", costs).code == 0
    assert run("validate", "rodinia-a30", tmp_path / "next.json").code == 1
    other = run("bound", "miso-a100-32", "--costs", costs)
    refuses(other, f"error: {costs}", "create: has no seconds for size 3, 7 of A100-40GB; add them")


def test_models_are_profiled(run, machine, tmp_path):
    path, out = tmp_path / "commands.json", tmp_path / "profiles.json"
    models = {"r": ["echo", "throughput=3 latency=0.5"]}
    path.write_text(json.dumps({"schema": "mig-opt/commands/1", "models": models}))
    words = ["--commands", path, "--gpu", "A30", "-o", out, "--repetitions", 1, "--sizes", "2", "--batches", "1,2"]
    outcome = run("profile", *words)
    assert outcome.code == 0, outcome.err
    assert "r: 6 points" in outcome.out
    assert len(PROFILES.read(out)[0].points) == 6


def test_a_plan_for_several_kinds_of_gpus_is_told(run, commands, tmp_path):
    tasks = [{"name": name, "times": {"A30": {"1": 4.0}, "A100": {"1": 3.0}}} for name in "abc"]
    pools = [{"gpu": gpu, "count": 1} for gpu in ("A30", "A100")]
    batch, plan, costs = (tmp_path / name for name in ("mixed.json", "plan.json", "costs.json"))
    batch.write_text(json.dumps({"schema": "mig-opt/batch/1", "pools": pools, "tasks": tasks}))
    assert run("solve", batch, "--method", "far", "-o", plan).code == 0
    options = ["--commands", commands, "--journal", tmp_path / "run.journal", "--measured-costs", costs]
    with Machine(tmp_path, "A30", "A100").loaded():
        outcome = run("run", batch, plan, *options)
    assert outcome.code == 0, outcome.err
    assert re.search(r"create s +A30-24GB: 1g [0-9.]+, 2g .*A100-40GB: 1g ", " ".join(outcome.out.split()))
    assert f"are no table: nothing written to {costs}." in " ".join(outcome.out.split())
