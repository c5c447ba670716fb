"""Texts and numbers of arguments: names of any kind, and what only some programs take for a number."""

import io
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import BATCH, MODULE, refuses
from freeze import HERE


def with_tasks(*tasks: Mapping[str, Any]) -> dict[str, Any]:
    return {**BATCH, "tasks": list(tasks)}


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


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("solve rodinia-a30 --gpus ٢", "'--gpus': must be a whole number, is '٢'"),
        ("solve rodinia-a30 --time-limit ٢", "'--time-limit': must be a number, is '٢'"),
        ("serve x.json --services parvagpu-s1 --preferred 8 --preferred 1.5", "'--preferred': must be a whole number"),
        ("solve rodinia-a30 --gap ٢%", "--gap: must be a share"),
        ("deploy parvagpu-s1 --headroom ٢", "--headroom: must be a share"),
        ("trace generate normal-25 --set jobs=1_0", "--set jobs: must be a whole number"),
    ],
)
def test_options_take_the_numbers_of_files(run, command, wrong):
    refuses(run(*command.split()), wrong)


def test_a_name_of_thousands_of_letters_is_no_file(run):
    refuses(run("bound", "x" * 5000), "no such file")
    refuses(run("solve", "rodinia-a30", "-o", "x" * 300), "x: cannot be written: File name too long")
    refuses(run("init", "batch", "x" * 300), "x: File name too long")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("solve", ""), "BATCH"),
        (("solve", "rodinia-a30", "-o", ""), "--output"),
        (("validate", "rodinia-a30", ""), "SCHEDULE"),
        (("deploy", "parvagpu-s1", "--profiles", ""), "--profiles"),
    ],
)
def test_no_name_of_a_file_is_empty(run, words, name):
    refuses(run(*words), name, "is empty; give a name")


def test_a_dash_is_standard_output_or_refused(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("generate", "-n", "3", "-o", "-").out == run("generate", "-n", "3").out
    told = "--output: - stands for no file that is written; name one (--json prints the answer on standard output)"
    refuses(run("solve", "rodinia-a30", "-o", "-"), told)
    assert json.loads(run("solve", "rodinia-a30", "--method", "far", "--json").out)["schedule"]["runs"]
    refuses(run("plot", "rodinia-a30", "-", "-"), "OUT: - stands for no file that is written; name one\n")
    assert [*tmp_path.iterdir()] == []


def test_a_table_on_standard_input_is_told_to_be_one(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"task,t1_s\na,1\n")))
    refuses(run("solve", "-", "--gpu", "A30"), "save a table as CSV, in a file whose name ends in .csv")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("generate -n 3 -o b.csv", "is written as JSON, which is not read from a file .csv"),
        ("solve rodinia-a30 --time-limit 600 --save-batch b.csv", "is written as JSON, which is not read from"),
        ("generate -n 3 --gpu own-gpu.json -o own-gpu.json", "own-gpu.json: is read as well"),
        ("generate -n 3 --memory-bound 0.5", "--memory-bound: is not for --variant paper; leave it out"),
        ("generate -n 3 --variant published-program --p-sup 0.2 --decided-by size", "--p-sup: is not for"),
        ("instances verify nix rodinia-a30 rodinia-a31", "NAME: no bundled instance 'rodinia-a31'"),
        ("instances rodinia-a30 --kind trace", "leave it out, or --kind and --class"),
        ("score --command {instance}{plan} --instance rodinia-a30 --kind batch", "is in place of --kind and --class"),
        ("solve free.json --from state-a30.json --busy-until 4 --gpus 3", "--gpus: is 3, but the state of --from has"),
        ("bench study.toml --table --jobs 2 --retry", "--retry: is for runs; leave it out with --table"),
        ("check batch.json plan.json certificate.json --time-limit 5", "--time-limit: is for --rerun"),
        ("run batch.json plan.json --commands commands.json --split x --restartable", "--restartable: and"),
        ("run batch.json plan.json --commands commands.json --measured run.journal", "for both batch and journal"),
        ("run --resume run.journal --gpus 3", "--gpus: is for a new execution"),
        ("run --undo run.journal --user ada", "--user: is for a new execution"),
        ("run --undo none.journal --dry-run", "error: --dry-run: is for a new execution; the journal has all"),
        ("profile --commands commands.json --gpu A30 -o x --journal x", "is wanted for both batch and journal"),
        ("simulate trace.json --busy-until 5", "--busy-until: is for --from"),
        ("simulate trace.json --declared one --seed 1", "--seed: is for --declared SIGMA and --disturb"),
        ("simulate trace.json --disturb downtime=5", "--disturb downtime: is of GPUs that leave"),
        ("trace import pods.csv --gpus 3 --nodes nodes.csv", "--nodes: say how many GPUs there are"),
        ("serve fleet.json --services services.json --burst 3,10%,1 --start-up 5", "out\nerror: --start-up: is for"),
        ("serve fleet.json --services services.json --recorded requests.csv --arrivals even", "--arrivals: is not"),
        ("serve fleet.json --services services.json --patience 0 --delay 1", "--delay: is in place of --patience"),
        ("services export services.json fleet.json x --format triton --patience 0 --delay 1", "--delay: is in"),
    ],
)
def test_what_does_not_go_together_is_refused(run, tmp_path, monkeypatch, command, told):
    shutil.copytree(HERE / "inputs", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    refuses(run(*command.split()), told)
