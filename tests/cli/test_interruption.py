"""Commands that are interrupted or break down: one line, an exit code, and what was found is kept."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from command_line import MODULE, Outcome, method_that

from mig_opt import Batch, Schedule
from mig_opt.cli.progress import LiveLine
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.heuristics.batch.far import far
from mig_opt.method.control import Control
from mig_opt.validation import validate


def interrupted_after_a_schedule(batch: Batch, control: Control[Schedule]) -> None:
    far(batch, control)
    raise KeyboardInterrupt


def test_interrupted_run_keeps_the_best_schedule(run, batch_file, tmp_path, monkeypatch):
    method_that(monkeypatch, interrupted_after_a_schedule)
    plan, chart = tmp_path / "p.json", tmp_path / "p.png"
    outcome = run("solve", batch_file, "-o", plan, "--plot", chart)
    assert (outcome.code, outcome.err) == (130, "")
    assert "status       interrupted" in outcome.out
    assert "(create)" in outcome.out
    assert validate(BATCH.read(batch_file), SCHEDULE.read(plan)).valid
    assert chart.exists()
    as_json = run("solve", batch_file, "--json")
    assert (as_json.code, as_json.json["status"]) == (130, "interrupted")
    assert as_json.json["schedule"]["runs"]


@pytest.mark.parametrize("cause", [None, KeyboardInterrupt()])
def test_ctrl_c_outside_of_the_method_is_one_line(run, batch_file, monkeypatch, cause):
    def interrupted(*arguments: object, **options: object) -> None:
        raise (RuntimeError if cause else KeyboardInterrupt) from cause

    for target in ("mig_opt.files.kinds.FileKind.read", "mig_opt.cli.screens.show_report"):
        with monkeypatch.context() as patch:
            patch.setattr(target, interrupted)
            assert run("solve", batch_file, "--method", "far") == Outcome(130, "", "interrupted\n")


def test_an_interrupted_explanation_states_no_bound_that_is_not_known(run, batch_file, monkeypatch):
    monkeypatch.setattr("mig_opt.api.explain.explainer.solve", Mock(side_effect=KeyboardInterrupt))
    told = run("explain", batch_file)
    assert (told.code, "not known, interrupted" in told.out, "bound" in told.out) == (130, True, False)


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "RuntimeError from KeyboardInterrupt()"])
@pytest.mark.parametrize("known", [(), ("signal", "typing", "mig_opt.cli.streams"), ("mig_opt.cli.app", "typer")])
def test_ctrl_c_while_modules_are_loaded_and_again_at_the_end(error, known):
    """Python 3.11 makes the other one of it where a class is made. Nothing is loaded before the first line of main."""
    program = f"""
import atexit, os, signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name not in ("mig_opt", "mig_opt.cli"):
            sys.meta_path.remove(self)
            raise {error}
for name in {known}:
    __import__(name)
sys.meta_path.insert(0, Finder())
import mig_opt.cli
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
mig_opt.cli.main(["versions"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_the_live_line_is_empty_until_the_method_begins(batch_file):
    line = LiveLine()
    assert line.line().plain == ""
    line.on_start(BATCH.read(batch_file), "far")
    line.on_bound(0.1, None, 1e300)
    assert re.fullmatch(r"far \d+\.\d s   bound 1\.00000e\+300 s", line.line().plain)


@pytest.mark.deep
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_ctrl_c_on_a_terminal(tmp_path):
    """A real run with a terminal for standard error: the line shows an incumbent, then comes the signal."""
    terminal, other_end = os.openpty()
    plan = tmp_path / "plan.json"
    command = [*MODULE, "solve", "miso-a100-100", "--time-limit", "300", "-o", str(plan)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=other_end, text=True, env=environment) as process:
        os.close(other_end)
        shown = read_until(terminal, "gap ", process)
        assert "makespan " in shown
        assert "bound " in shown
        process.send_signal(signal.SIGINT)
        shown += read_until(terminal, None, process)
        out = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 130
    assert "status       interrupted" in out
    assert "\x1b" not in out
    assert "Traceback" not in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the line is gone
    assert len(SCHEDULE.read(plan).runs) == 100


def read_until(terminal: int, text: str | None, process: subprocess.Popen[str]) -> str:
    """Return what a terminal shows up to ``text``, or to the end of the process."""
    shown, deadline = "", time.monotonic() + 120
    while time.monotonic() < deadline and (text is None or text not in shown):
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not piece:
                break
            shown += piece.decode()
        elif process.poll() is not None:
            break
    return shown


def test_a_method_that_breaks_its_contract_is_a_defect(run, batch_file, tmp_path, monkeypatch):
    method_that(monkeypatch, lambda batch, control: control.report_plan(Schedule((), ())))
    outcome = run("solve", batch_file, "-o", tmp_path / "p.json")
    assert (outcome.code, outcome.out, (tmp_path / "p.json").exists()) == (70, "", False)
    assert "returned an invalid schedule" in outcome.err
    assert "please report it" in outcome.err
    assert "Traceback" not in outcome.err


def test_an_unforeseen_error_is_a_defect_with_its_traceback(run, batch_file, monkeypatch):
    method_that(monkeypatch, lambda batch, control: control.report_plan(1 / 0))
    outcome = run("solve", batch_file)
    assert (outcome.code, outcome.out) == (70, "")
    assert "ZeroDivisionError" in outcome.err
    assert "please report it" in outcome.err


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_reader_that_has_gone_away_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*MODULE, "gpus", "--json"], stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["versions", "--help"])
def test_output_that_cannot_be_written_is_one_line(command):
    done = subprocess.run(f"{' '.join(MODULE)} {command} >/dev/full", shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (2, b"error: standard output cannot be written: No space left on device\n")
