"""Standard output that is closed early, as by ``| head``: all files are there all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mig_opt import generate_trace
from mig_opt.files.batch.batches import write_batch
from mig_opt.files.fleet.traces import write_trace
from mig_opt.instances.batch import generate_batch


@pytest.mark.parametrize("command", ["solve", "deploy", "simulate"])
def test_files_are_written_before_the_screen(command: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    chart, other = tmp_path / "chart.svg", tmp_path / "other.json"
    if command == "solve":
        write_batch(generate_batch(40, seed=1), tmp_path / "batch.json")
        arguments = [str(tmp_path / "batch.json"), "--method", "far", "-o", str(other)]
    elif command == "deploy":
        arguments = ["parvagpu-s3", "--method", "first-fit", "-o", str(other)]
    else:
        write_trace(generate_trace("normal-25", seed=1), tmp_path / "trace.json")
        arguments = [str(tmp_path / "trace.json"), "--policy", "first-fit", "--save-log", str(other)]
    program = [sys.executable, "-m", "mig_opt.cli", command, *arguments, "--plot", str(chart)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (141, "")
    assert chart.stat().st_size > 1000
    assert other.stat().st_size > 100
