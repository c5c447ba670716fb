"""Standard streams that are closed, full or not read to the end: a message, an exit code, and files are written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import MODULE, refuses
from scripts import ended

from mig_opt.files.batch.batches import BATCH
from mig_opt.instances.batch import generate_batch

NEEDS_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture
def inputs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("init", "batch", "batch.json")


@pytest.mark.parametrize(
    "command", ["solve batch.json --method far", "bound batch.json --json", "init batch -", "export batch.json new.lp"]
)
def test_without_standard_output(command, run, inputs, monkeypatch):
    """Of a report, a document, a text and remarks about files."""
    good = run(*command.split())
    assert (good.code, bool(good.out)) == (0, True), good
    monkeypatch.setattr(sys, "stdout", None)
    bad = run(*command.split())
    assert (bad.code, bad.err) == (2, "error: standard output cannot be written: it is closed\n")


@pytest.mark.parametrize("command", ["solve", "bound", "deploy", "simulate", "defragment", "state import"])
def test_without_standard_input(command, run, inputs, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    refuses(run(*command.split(), "-"), "standard input: cannot be read: it is closed; name a file")


@pytest.mark.parametrize(
    ("command", "code"), [("gpus", 0), ("solve nothing", 2), ("solve", 2), ("validate batch.json nothing", 2)]
)
@pytest.mark.parametrize("closed", [True, pytest.param(False, marks=NEEDS_FULL)])
def test_without_standard_error(command, code, closed, run, inputs, monkeypatch):
    with Path(os.devnull if closed else "/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", None if closed else full)
        assert run(*command.split()).code == code


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        ("<&-", 2),
        (">&-", 2),
        ("2>&-", 0),
        pytest.param(">/dev/full", 2, marks=NEEDS_FULL),
        pytest.param("2>/dev/full", 0, marks=NEEDS_FULL),
        ("<&- >&- 2>&-", 2),
    ],
)
def test_a_process_without_streams(streams, code, tmp_path):
    """No file gets the number of a stream that is closed."""
    BATCH.write(generate_batch(3, seed=1), tmp_path / "batch.json")
    words = " ".join(MODULE)
    source = "-" if streams == "<&-" else "batch.json"
    shell = f"{words} solve {source} --method far --gpu A100 -o plan.json --log-level debug {streams}"
    done = ended("sh", "-c", shell, code=code, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    written = (tmp_path / "plan.json").exists() and (tmp_path / "plan.json").read_text()
    assert not written if source == "-" else written.endswith("}\n")


def test_files_are_written_before_the_screen(tmp_path):
    pytest.importorskip("matplotlib")
    chart, other = tmp_path / "chart.svg", tmp_path / "other.json"
    BATCH.write(generate_batch(40, seed=1), tmp_path / "batch.json")
    arguments = [str(tmp_path / "batch.json"), "--method", "far", "-o", str(other), "--plot", str(chart)]
    program = [*MODULE, "solve", *arguments]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (141, "")
    assert chart.stat().st_size > 1000
    assert other.stat().st_size > 100
    ended("bash", "-c", f"set -o pipefail; {' '.join(MODULE)} solve --help | true", code=141)
