"""Bad input to commands: all of it is named at once, and nothing is written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import BATCH, MODULE, TASKS, refuses


def with_tasks(*tasks: Mapping[str, Any]) -> dict[str, Any]:
    return {**BATCH, "tasks": list(tasks)}


BAD_BATCHES = {
    "unknown GPU": ({**BATCH, "gpu": "A31"}, "gpu: unknown GPU 'A31'; did you mean A30"),
    "unknown size": (with_tasks({"name": "a", "times": {"3": 1.0}}), "tasks[0].times.3: A30-24GB has no instances"),
    "bad time": (with_tasks(TASKS[0], {"name": "b", "times": {"1": -1}}), "tasks[1].times.1: must be > 0 seconds"),
    "empty times": (with_tasks({"name": "a", "times": {}}), "tasks[0].times: needs the seconds"),
    "duplicates": (with_tasks(TASKS[0], TASKS[0]), "tasks[1].name: 'a' is the name of tasks[0] already"),
    "memory": (with_tasks({"name": "a", "times": {"4": 1}, "memory_gb": 99}), "tasks[0].memory_gb: 99 GB is more"),
    "empty batch": (with_tasks(), "tasks: needs at least one task"),
    "wrong version": ({**BATCH, "schema": "mig-opt/batch/9"}, "schema: mig-opt/batch/9 is newer"),
    "another kind": ({**BATCH, "schema": "mig-opt/schedule/1"}, "schema: this is a schedule"),
    "wrong JSON": ('{"schema": ', "line 1, column 12: not valid JSON"),
    "no JSON": ("", "is empty"),
}


@pytest.mark.deep
@pytest.mark.parametrize("command", [("solve",), ("solve", "--json"), ("bound",), ("bound", "--json")])
@pytest.mark.parametrize("case", BAD_BATCHES)
def test_a_bad_batch_is_named_and_nothing_is_written(run, tmp_path, command, case):
    content, message = BAD_BATCHES[case]
    path = tmp_path / "bad.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    files = ("-o", tmp_path / "p.json", "--plot", tmp_path / "p.png") if command[0] == "solve" else ()
    refuses(run(command[0], path, *command[1:], *files), f"error: {path}", message)
    assert list(tmp_path.iterdir()) == [path]


def test_every_problem_has_its_line(run, tmp_path):
    content = {**with_tasks({"name": "a", "times": {"1": 0, "2": -2}}), "gpus": 0}
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(content))
    told = run("solve", path).err
    assert "".join(line for line in told.splitlines(keepends=True) if not line.startswith("    ")) == (
        f"error: {path}\n  gpus: must be from 1 to 1000000, is 0\n"
        "  tasks[0].times.1: must be > 0 seconds, is 0.0\n  tasks[0].times.2: must be > 0 seconds, is -2.0\n"
    )


def test_every_wrong_argument_is_reported(run, tmp_path):
    gone = tmp_path / "gone.json"
    outcome = run("solve", gone, "--method", "fr", "-o", tmp_path / "no" / "x.json", "--plot", tmp_path / "x.bmp")
    refuses(
        outcome,
        "error: --method: unknown method 'fr'; did you mean far",
        f"error: {gone}: no such file\n",
        f"error: {tmp_path / 'no' / 'x.json'}: cannot be written: there is no folder",
        f"error: {tmp_path / 'x.bmp'}: charts are written as .png, .pdf, .svg or .html",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time-limit", "0"), "error: --time-limit: must be a finite number of seconds > 0, is 0.0"),
        (("--time-limit", "-1"), "error: --time-limit: must be"),
        (("--time-limit", "nan"), "error: --time-limit: must be"),
        (("--time-limit", "inf"), "error: --time-limit: must be"),
        (("--time-limit", "soon"), "--time-limit"),
        (("--seed", "-1"), "error: --seed: must be from 0"),
        (("--gap", "5"), "error: --gap: must be a share from 0 to 1 or a percentage, e.g. 0.003 or 0.3%, is '5'"),
        (("--gap", "-1%"), "error: --gap: must be"),
        (("--gap", "nan"), "error: --gap: must be"),
        (("--gap", "%"), "error: --gap: must be"),
        (("--gap", "1%%"), "error: --gap: must be"),
        (("--gap", "small"), "error: --gap: must be"),
        (("--workers", "0"), "error: --workers: must be from 1 to"),
        (("--gpu", "A31"), "error: --gpu: unknown GPU 'A31'; did you mean A30"),
        (("--gpu", "H100"), "H100"),
        (("--gpus", "0"), "error: --gpus: must be from 1 to 1000000, is 0"),
        (("--method", "cpsat"), "error: --method: unknown method 'cpsat'"),
        (("--metod", "cp"), "--metod"),
    ],
)
def test_bad_options_of_solve(run, tmp_path, options, message):
    path = tmp_path / "four.json"
    task = {"name": "a", "times": {"4": 1.0}}
    cost = {"create": {"1": 0.1, "2": 0.1, "4": 0.1}, "destroy": {"1": 0.1, "2": 0.1, "4": 0.1}}
    path.write_text(json.dumps({**with_tasks(task), "operations": cost}))  # fits no GPU with other sizes
    outcome = run("solve", path, *options, "-o", tmp_path / "p.json", "--plot", tmp_path / "p.png")
    refuses(outcome, message)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("task,t1_s\na,1\n", (), "gpu: a CSV file does not name its GPU"),
        ("name,t1_s\na,1\n", ("--gpu", "A30"), "line 1: has no column task"),
        ("task,memory_gb\na,1\n", ("--gpu", "A30"), "line 1: has no column with times"),
        ("task,t1_s\na,1\nb,x\n", ("--gpu", "A30"), "line 3, t1_s: must be a number"),
    ],
)
def test_bad_tables(run, tmp_path, table, options, message):
    path = tmp_path / "bad.csv"
    path.write_text(table)
    refuses(run("solve", path, *options), f"error: {path}\n", message)


def test_missing_files_and_names(run, tmp_path, monkeypatch, batch_file):
    monkeypatch.chdir(tmp_path)
    refuses(run("solve", "gone.json"), "error: gone.json: no such file")
    refuses(run("bound", "rodinia"), "no bundled instance of that name; did you mean rodinia-a30?")
    refuses(run("bound", "x" * 5000), "no such file")
    refuses(run("validate", batch_file, "gone.json"), "error: gone.json: no such file")
    refuses(run("plot", batch_file, tmp_path, "x.png"), f"error: {tmp_path}: is a folder")


def test_one_bad_folder_is_one_error(run, batch_file, tmp_path):
    plan, chart = tmp_path / "no" / "p.json", tmp_path / "no" / "p.png"
    reason = f"cannot be written: there is no folder {tmp_path / 'no'}; create it first\n"
    assert run("solve", batch_file, "-o", plan, "--plot", chart).err == f"error: {plan}: {reason}"
    assert run("solve", batch_file, "--plot", chart).err == f"error: {chart}: {reason}"
    both = run("solve", batch_file, "-o", plan, "--plot", tmp_path / "no" / "p.gif").err
    assert both.startswith(f"error: {plan}: {reason}error: {tmp_path / 'no' / 'p.gif'}: charts are written as")
    assert both.count("\n") == 2
    other = tmp_path / "other" / "p.png"
    assert run("solve", batch_file, "-o", plan, "--plot", other).err.count("there is no folder") == 2


def test_an_input_is_never_overwritten(run, batch_file, plan_file):
    before = batch_file.read_text(), plan_file.read_text()
    refuses(run("solve", batch_file, "-o", batch_file), f"error: {batch_file}: is read as well")
    refuses(run("validate", batch_file, plan_file, "-o", plan_file), f"error: {plan_file}: is read as well")
    both = batch_file.with_name("both.png")
    refuses(run("solve", batch_file, "-o", both, "--plot", both), f"error: {both}: is wanted for both")
    assert not both.exists()
    assert before == (batch_file.read_text(), plan_file.read_text())


def test_usage_errors(run):
    refuses(run("solv"), "No such command 'solv'")
    refuses(run("solve"), "Missing argument")
    refuses(run("generate"), "-n")


def test_names_are_shown_as_they_are(run, tmp_path):
    """Neither markup nor escape sequences in the names of tasks reach the terminal."""
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(with_tasks({"name": "[red]x[/red]\x1b[31m\ny", "times": {"1": 1.0}})))
    outcome = run("solve", path, "--method", "far")
    assert outcome.code == 0
    assert "[red]x[/red]\\x1b[31m\\ny" in outcome.out
    path.write_text(json.dumps({**BATCH, "\x1b[31m": 1}))
    assert "\x1b" not in run("solve", path).err


@pytest.mark.deep
@pytest.mark.parametrize("arguments", [("--json",), ()])
def test_any_name_can_be_printed_with_any_encoding(tmp_path, arguments):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(with_tasks({"name": "Ωmega", "times": {"1": 1.0}})))
    command = [*MODULE, "solve", str(path), "--method", "far", *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    if arguments:
        assert json.loads(done.stdout.decode("utf-8"))["schedule"]["runs"][0]["task"] == "Ωmega"
    else:
        assert b"\\u03a9mega" in done.stdout


HUGE = "9" * 5000
HUGE_FILES = {
    "batch.json": json.dumps({**BATCH, "gpus": 0}),
    "schedule.json": '{"schema": "mig-opt/schedule/1", "makespan": 0, "runs": []}',
    "services.json": '{"schema": "mig-opt/services/1", "gpu": "A30", "services": 0}',
    "trace.json": '{"schema": "mig-opt/trace/1", "gpu": "A30", "gpus": 0, "jobs": []}',
    "state.json": '{"schema": "mig-opt/state/1", "gpu": "A30", "gpus": 0}',
    "certificate.json": '{"schema": "mig-opt/certificate/1", "batch": 0}',
}


@pytest.mark.parametrize(
    "command",
    [
        "solve batch.json",
        "validate rodinia-a30 schedule.json",
        "deploy services.json",
        "simulate trace.json",
        "defragment state.json --for 1g.6gb",
        "check rodinia-a30 schedule.json certificate.json",
    ],
)
def test_an_integer_of_thousands_of_digits_has_its_place(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name, text in HUGE_FILES.items():
        (tmp_path / name).write_text(text.replace(": 0", f": {HUGE}"))
    files = [word for word in command.split() if word.endswith(".json")]
    refuses(run(*command.split()), *(f"{file}:1:" for file in files), "99999", "^^^^")


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("solve rodinia-a30 --gpus ٢", "'--gpus': must be a whole number, is '٢'"),
        ("solve rodinia-a30 --gpus 1_0", "'--gpus': must be a whole number, is '1_0'"),
        ("solve rodinia-a30 --time-limit ٢", "'--time-limit': must be a number, is '٢'"),
        ("solve rodinia-a30 --gap ٢%", "--gap: must be a share"),
        ("deploy parvagpu-s1 --promise ٩٩%", "--promise: must be a share"),
        ("deploy parvagpu-s1 --headroom ٢", "--headroom: must be a share"),
        ("trace generate normal-25 --set jobs=1_0", "--set jobs: must be a whole number"),
    ],
)
def test_options_take_the_numbers_of_files(run, command, wrong):
    refuses(run(*command.split()), wrong)
