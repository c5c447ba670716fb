"""Texts and numbers of arguments: names of any kind, and what only some programs take for a number."""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import BATCH, MODULE, refuses


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


def test_a_name_of_thousands_of_letters_is_no_file(run):
    refuses(run("bound", "x" * 5000), "no such file")
    refuses(run("solve", "rodinia-a30", "-o", "x" * 300), "x: cannot be written: File name too long")
    refuses(run("init", "batch", "x" * 300), "x: File name too long")
