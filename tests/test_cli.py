"""The command line: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mig_opt._version import __version__
from mig_opt.batch import Batch, LiveInstance, Task
from mig_opt.cli import main
from mig_opt.cli import planning as cli_planning
from mig_opt.cli.live import LiveLine
from mig_opt.cli.lives import lives_of
from mig_opt.cli.screens import seconds
from mig_opt.control import Control
from mig_opt.files import read_batch, read_schedule, write_batch, write_schedule
from mig_opt.gpu import catalogue, get_gpu
from mig_opt.heuristics.far import far
from mig_opt.instances import generate_batch, instance_info, instance_names
from mig_opt.schedule import Operation, Run, Schedule
from mig_opt.solving import Method, methods
from mig_opt.validation import validate

TASKS = [
    {"name": "a", "times": {"1": 4.0, "2": 2.5}},
    {"name": "b", "times": {"1": 3.0, "2": 2.0, "4": 1.5}},
    {"name": "c", "times": {"1": 2.9, "2": 2.7, "4": 2.6}},
]
BATCH = {"schema": "mig-opt/batch/1", "gpu": "A30", "tasks": TASKS}
MODULE = [sys.executable, "-m", "mig_opt.cli"]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: object) -> Outcome:
        handler = signal.getsignal(signal.SIGINT)
        try:
            with pytest.raises(SystemExit) as ending:
                main([str(argument) for argument in arguments])
        finally:
            signal.signal(signal.SIGINT, handler)
        captured = capsys.readouterr()
        return Outcome(ending.value.code or 0, captured.out, captured.err)

    return call


@pytest.fixture
def batch_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(BATCH))
    return path


@pytest.fixture
def plan_file(tmp_path: Path, batch_file: Path) -> Path:
    """A valid schedule of the small batch, with operations."""
    control = Control()
    far(read_batch(batch_file), control)
    path = tmp_path / "plan.json"
    write_schedule(control.schedule, path)
    return path


def without_operations(plan: Path) -> Path:
    content = json.loads(plan.read_text())
    del content["operations"]
    path = plan.with_name("bare.json")
    path.write_text(json.dumps(content))
    return path


def not_valid(plan: Path) -> Path:
    content = json.loads(plan.read_text())
    content["runs"][0]["end"] += 1.0
    del content["makespan"]
    path = plan.with_name("wrong.json")
    path.write_text(json.dumps(content))
    return path


def method_that(monkeypatch: pytest.MonkeyPatch, runner: Callable[[Batch, Control], None]) -> None:
    """Let every method be ``runner``."""
    monkeypatch.setattr(Method, "load", lambda method: runner)


# --- solve ---------------------------------------------------------------------------------------------------------


def test_solve_prints_card_and_plan(run, batch_file):
    outcome = run("solve", batch_file)
    assert (outcome.code, outcome.err) == (0, "")
    for line in (
        "batch        small (3 tasks)",
        "GPU          1 x A30-24GB",
        "status       optimal",
        "gap          0.000%",
    ):
        assert line in outcome.out.splitlines()
    makespan = run("solve", batch_file, "--json").json["makespan"]
    assert f"makespan     {makespan:.3f} s" in outcome.out
    assert "(create)" in outcome.out
    assert "\x1b" not in outcome.out


def test_solve_json_is_one_object_with_a_valid_schedule(run, batch_file, tmp_path):
    outcome = run("solve", batch_file, "--method", "far", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert list(outcome.json) == ["status", "method", "makespan", "lower_bound", "gap", "runtime_s", "schedule"]
    assert (outcome.json["status"], outcome.json["method"]) == ("feasible", "far")
    written = tmp_path / "from_json.json"
    written.write_text(json.dumps(outcome.json["schedule"]))
    assert validate(read_batch(batch_file), read_schedule(written)).valid


def test_solve_writes_schedule_and_chart(run, batch_file, tmp_path):
    plan, chart = tmp_path / "p.json", tmp_path / "p.svg"
    outcome = run("solve", batch_file, "--method", "far", "-o", plan, "--plot", chart)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith(f"Schedule written to {plan}.\nChart written to {chart}.\n")
    assert validate(read_batch(batch_file), read_schedule(plan)).valid
    assert chart.read_text().startswith("<?xml")


def test_solve_json_stays_one_object_beside_files(run, batch_file, tmp_path):
    outcome = run(
        "solve", batch_file, "--method", "far", "--json", "-o", tmp_path / "p.json", "--plot", tmp_path / "p.pdf"
    )
    assert outcome.json["status"] == "feasible"
    assert (tmp_path / "p.pdf").exists()


def test_quiet_leaves_out_the_plan(run, batch_file):
    outcome = run("solve", batch_file, "--method", "far", "--quiet")
    assert "status       feasible" in outcome.out
    assert "(create)" not in outcome.out


def test_options_of_solve_take_the_place_of_the_file(run, batch_file):
    outcome = run("solve", batch_file, "--method", "far", "--gpu", "H100", "--gpus", 2)
    assert "GPU          2 x H100-80GB" in outcome.out
    assert outcome.code == 0


def test_times_of_another_gpu_are_remarked(run, batch_file, tmp_path, monkeypatch):
    options = ("solve", "--method", "far", "-q")
    note = "note: the times of {} are for A30-24GB and taken as they are for A100-40GB\n"
    for command in (("bound", "--json"), options):
        assert run(*command, "rodinia-a30", "--gpu", "A30").err == ""
    batch_file.write_text(json.dumps({**BATCH, "tasks": TASKS[:1]}))
    outcome = run(*options, batch_file, "--gpu", "A100")
    assert (outcome.code, outcome.err) == (0, note.format("small"))
    assert "1 x A100-40GB" in outcome.out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(batch_file.read_bytes())))
    assert run("bound", "-", "--gpu", "A100").err == note.format("standard input")
    table = tmp_path / "t.csv"
    table.write_text("task,t1_s\na,1\n")
    assert run("bound", table, "--gpu", "A100").err == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (0.001, "0.001"),
        (-2.5, "-2.500"),
        (9999999.0, "9999999.000"),
        (1e7, "1.00000e+07"),
        (1.23456789e-5, "1.23457e-05"),
        (1e300, "1.00000e+300"),
        (float("inf"), "-"),
        (None, "-"),
    ],
)
def test_seconds_of_any_magnitude_stay_short(value, text):
    assert seconds(value) == text


def test_bundled_instance_csv_and_standard_input(run, tmp_path, monkeypatch):
    assert "rodinia-a30 (8 tasks)" in run("solve", "rodinia-a30", "--method", "far").out
    table = tmp_path / "table.csv"
    table.write_text("task,t1_s,t2_s\na,4,2.5\nb,3,\n")
    assert "table (2 tasks)" in run("solve", table, "--gpu", "A30", "--method", "far").out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(BATCH).encode())))
    assert "standard input (3 tasks)" in run("solve", "-", "--method", "far").out


def test_a_file_goes_before_a_bundled_instance(run, tmp_path, monkeypatch):
    (tmp_path / "rodinia-a30").write_text(json.dumps(BATCH))
    monkeypatch.chdir(tmp_path)
    assert "rodinia-a30 (3 tasks)" in run("bound", "rodinia-a30").out
    (tmp_path / "rodinia-a30").unlink()
    assert "rodinia-a30 (8 tasks)" in run("bound", "rodinia-a30").out


def test_a_long_plan_is_shortened_to_a_line_per_instance(run, tmp_path):
    path, plan = tmp_path / "long.json", tmp_path / "plan.json"
    write_batch(generate_batch(60, gpu="A30", gpus=2), path)
    outcome = run("solve", path, "--method", "far", "-o", plan)
    lives = lives_of(read_batch(path), read_schedule(plan))
    table = outcome.out.split("\n\n")[1].splitlines()
    assert len(table) == 2 + len(lives) < 40
    assert "One line for each instance: -o FILE or --json gives every run and operation." in outcome.out


def test_very_many_instances_are_cut_with_a_remark(run, tmp_path):
    path = tmp_path / "many.json"
    write_batch(Batch(tuple(Task(f"t{i}", {1: 1.0}) for i in range(60)), get_gpu("A30"), 20), path)
    outcome = run("solve", path, "--method", "far")
    assert "The first 40 of 60 instances, one line for each" in outcome.out


def test_a_task_that_fits_nowhere_makes_it_infeasible(run, tmp_path):
    path = tmp_path / "big.json"
    task = {"name": "huge", "times": {"1": 3.0, "2": 2.0}, "memory_gb": 20}
    path.write_text(json.dumps({**BATCH, "tasks": [*TASKS, task]}))
    message = "task 'huge' fits nowhere on A30-24GB: it needs 20 GB, but instances of 1 or 2 compute slices"
    text = run("solve", path, "-o", tmp_path / "none.json", "--plot", tmp_path / "none.png")
    assert text.code == 1
    assert "status   infeasible" in text.out
    assert message in text.out
    assert not (tmp_path / "none.json").exists()
    assert not (tmp_path / "none.png").exists()
    as_json = run("solve", path, "--json")
    assert as_json.code == 1
    assert (as_json.json["status"], as_json.json["schedule"], as_json.json["lower_bound"]) == ("infeasible", None, None)
    assert message in as_json.err
    bound = run("bound", path)
    assert bound.code == 1
    assert message in bound.out
    bound_json = run("bound", path, "--json")
    assert (bound_json.code, bound_json.json) == (1, {"lower_bound": None, "bounds": []})
    assert message in bound_json.err


def test_no_solution_exits_with_1_and_writes_nothing(run, batch_file, tmp_path, monkeypatch):
    method_that(monkeypatch, lambda batch, control: None)
    outcome = run("solve", batch_file, "-o", tmp_path / "none.json", "--plot", tmp_path / "none.png")
    assert outcome.code == 1
    assert f"There is no schedule to draw in {tmp_path / 'none.png'}." in outcome.out
    assert not (tmp_path / "none.png").exists()
    assert "status       no solution" in outcome.out
    assert f"There is no schedule to write to {tmp_path / 'none.json'}." in outcome.out
    assert not (tmp_path / "none.json").exists()
    assert run("solve", batch_file, "--json").json["status"] == "no_solution"


@pytest.mark.parametrize(
    ("options", "limit"), [((), 60.0), (("--method", "far"), None), (("--time-limit", "7.5"), 7.5)]
)
def test_exact_methods_have_a_time_limit_by_default(run, batch_file, monkeypatch, options, limit):
    left: list[float | None] = []
    method_that(monkeypatch, lambda batch, control: left.append(control.remaining))
    run("solve", batch_file, *options)
    if limit is None:
        assert left == [None]
    else:
        assert all(limit - 5 < seconds <= limit for seconds in left)


@pytest.mark.parametrize(
    ("options", "share"),
    [((), 0.0), (("--gap", "0.003"), 0.003), (("--gap", "0.3%"), 0.003), (("--gap", "25 %"), 0.25)],
)
def test_a_gap_is_a_share_or_a_percentage(run, batch_file, monkeypatch, options, share):
    given: list[float] = []
    original = cli_planning.run_method
    monkeypatch.setattr(
        cli_planning, "run_method", lambda *args, **more: given.append(more["gap"]) or original(*args, **more)
    )
    run("solve", batch_file, "--method", "far", *options)
    assert given == pytest.approx([share])


@pytest.mark.parametrize(("gap", "cut_short"), [("50%", False), ("0", True)])
def test_a_plan_that_is_good_enough_is_not_cut_short(run, monkeypatch, gap, cut_short):
    monkeypatch.setattr(cli_planning, "DEFAULT_TIME_LIMIT", 1e-3)
    outcome = run("solve", "miso-a100-32", "--gap", gap, "-q")
    assert (outcome.code, "status       feasible" in outcome.out) == (0, True)
    assert ("Stopped after the default of 0.001 s" in outcome.out) == cut_short


def test_deterministic_plans_are_the_same(run):
    one, two = (run("solve", "miso-a100-32", "--deterministic", "--time-limit", "0.2", "--json").json for _ in range(2))
    assert one["status"] == "feasible"
    assert {**one, "runtime_s": 0} == {**two, "runtime_s": 0}


def test_wrong_options_are_named_together(run, batch_file):
    outcome = run("solve", batch_file, "--gap", "5", "--time-limit", "0", "--seed", "-1")
    assert outcome.code == 2
    for option in ("--gap", "--time-limit", "--seed"):
        assert f"{option}: must be" in outcome.err


# --- interruption and defects ----------------------------------------------------------------------------------------


def interrupted_after_a_schedule(batch: Batch, control: Control) -> None:
    far(batch, control)
    raise KeyboardInterrupt


def test_interrupted_run_keeps_the_best_schedule(run, batch_file, tmp_path, monkeypatch):
    method_that(monkeypatch, interrupted_after_a_schedule)
    plan, chart = tmp_path / "p.json", tmp_path / "p.png"
    outcome = run("solve", batch_file, "-o", plan, "--plot", chart)
    assert (outcome.code, outcome.err) == (130, "")
    assert "status       interrupted" in outcome.out
    assert "(create)" in outcome.out
    assert validate(read_batch(batch_file), read_schedule(plan)).valid
    assert chart.exists()
    as_json = run("solve", batch_file, "--json")
    assert (as_json.code, as_json.json["status"]) == (130, "interrupted")
    assert as_json.json["schedule"]["runs"]


def test_ctrl_c_outside_of_the_method_is_one_line(run, batch_file, monkeypatch):
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    for target in ("mig_opt.files.read_batch", "mig_opt.cli.screens.show"):
        with monkeypatch.context() as patch:
            patch.setattr(target, interrupted)
            assert run("solve", batch_file, "--method", "far") == Outcome(130, "", "interrupted\n")


def test_ctrl_c_while_modules_are_loaded_and_again_at_the_end():
    program = """
import atexit, os, signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "mig_opt.cli.app":
            raise KeyboardInterrupt
import mig_opt.cli
sys.meta_path.insert(0, Finder())
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
mig_opt.cli.main(["versions"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_the_live_line_is_empty_until_the_method_begins(batch_file):
    line = LiveLine()
    assert line.line().plain == ""
    line.on_start(read_batch(batch_file), "far")
    line.on_bound(0.1, None, 1e300)
    assert re.fullmatch(r"far \d+\.\d s   bound 1\.00000e\+300 s", line.line().plain)


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
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 130
    assert "status       interrupted" in out
    assert "\x1b" not in out
    assert "Traceback" not in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the line is gone
    assert len(read_schedule(plan).runs) == 100


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
    method_that(monkeypatch, lambda batch, control: control.offer(Schedule((), ())))
    outcome = run("solve", batch_file, "-o", tmp_path / "p.json")
    assert (outcome.code, outcome.out) == (70, "")
    assert "returned an invalid schedule" in outcome.err
    assert "please report it" in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "p.json").exists()


def test_an_unforeseen_error_is_a_defect_with_its_traceback(run, batch_file, monkeypatch):
    method_that(monkeypatch, lambda batch, control: control.offer(1 / 0))
    outcome = run("solve", batch_file)
    assert (outcome.code, outcome.out) == (70, "")
    assert "ZeroDivisionError" in outcome.err
    assert "please report it" in outcome.err


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_reader_that_has_gone_away_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*MODULE, "gpus", "--json"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["versions", "--help"])
def test_output_that_cannot_be_written_is_one_line(command):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*MODULE, command], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be written: No space left on device\n"


# --- bad input -------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("command", [("solve",), ("solve", "--json"), ("bound",), ("bound", "--json")])
@pytest.mark.parametrize("case", BAD_BATCHES)
def test_a_bad_batch_is_named_and_nothing_is_written(run, tmp_path, command, case):
    content, message = BAD_BATCHES[case]
    path = tmp_path / "bad.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    files = ("-o", tmp_path / "p.json", "--plot", tmp_path / "p.png") if command[0] == "solve" else ()
    refuses(run(command[0], path, *command[1:], *files), f"error: {path}", message)
    assert list(tmp_path.iterdir()) == [path]


def refuses(outcome: Outcome, *messages: str) -> None:
    assert (outcome.code, outcome.out) == (2, "")
    for message in messages:
        assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_every_problem_has_its_line(run, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({**with_tasks({"name": "a", "times": {"1": 0, "2": -2}}), "gpus": 0}))
    assert run("solve", path).err == (
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
        f"error: {tmp_path / 'x.bmp'}: charts are written as .png, .pdf or .svg",
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


# --- partitions and operation costs --------------------------------------------------------------------------------


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
    assert outcome.err.startswith("No partition has an instance for every task")


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


# --- validate, bound, plot -------------------------------------------------------------------------------------------


def test_validate_a_valid_schedule(run, batch_file, plan_file):
    outcome = run("validate", batch_file, plan_file)
    assert (outcome.code, outcome.err) == (0, "")
    assert "schedule  valid" in outcome.out
    assert "without operations" not in outcome.out
    as_json = run("validate", batch_file, plan_file, "--json")
    assert (as_json.code, as_json.err) == (0, "")
    assert as_json.json == {"valid": True, "makespan": read_schedule(plan_file).makespan, "violations": []}


def test_validate_lists_every_violation(run, batch_file, plan_file):
    wrong = not_valid(plan_file)
    expected = validate(read_batch(batch_file), read_schedule(wrong)).violations
    outcome = run("validate", batch_file, wrong)
    assert (outcome.code, outcome.err) == (1, "")
    assert "schedule  not valid, 1 violation\n" in outcome.out
    as_json = run("validate", batch_file, wrong, "--json")
    assert as_json.code == 1
    assert not as_json.json["valid"]
    assert as_json.json["violations"] == [
        {"code": violation.code.value, "path": violation.path, "message": violation.message} for violation in expected
    ]
    assert f" - {expected[0].path}: " in outcome.out
    assert f"({expected[0].code})" in outcome.out


def test_validate_finds_and_writes_operations(run, batch_file, plan_file, tmp_path):
    found = tmp_path / "found.json"
    outcome = run("validate", batch_file, without_operations(plan_file), "-o", found)
    assert outcome.code == 0
    operations = read_schedule(found).operations
    assert operations
    assert f"without operations; {len(operations)} that are in time for its runs were found" in outcome.out
    assert validate(read_batch(batch_file), read_schedule(found)).valid


def test_validate_writes_nothing_that_is_not_valid(run, batch_file, plan_file, tmp_path):
    found = tmp_path / "found.json"
    outcome = run("validate", batch_file, not_valid(plan_file), "-o", found)
    assert outcome.code == 1
    assert f"Nothing written to {found}." in outcome.out
    assert not found.exists()


def test_tolerance_of_validate(run, batch_file, plan_file):
    assert run("validate", batch_file, not_valid(plan_file), "--tolerance", 2).code == 0
    refuses(run("validate", batch_file, plan_file, "--tolerance", "nan"), "error: --tolerance: must be")


def test_validate_with_the_gpus_of_solve(run, batch_file, tmp_path):
    plan = tmp_path / "two.json"
    run("solve", batch_file, "--method", "far", "--gpus", 2, "-o", plan)
    assert run("validate", batch_file, plan, "--gpus", 2).code == 0
    assert run("validate", batch_file, plan).code == 1


def test_bound(run):
    as_json = run("bound", "rodinia-a30", "--json")
    assert (as_json.code, as_json.err) == (0, "")
    values = [entry["value"] for entry in as_json.json["bounds"]]
    assert as_json.json["lower_bound"] == max(values)
    assert all(set(entry) == {"name", "value", "reason"} and entry["reason"] for entry in as_json.json["bounds"])
    text = run("bound", "rodinia-a30")
    assert f"lower bound  {max(values):.3f} s" in text.out
    for entry in as_json.json["bounds"]:
        assert f"{entry['name']} " in text.out
        assert f"{entry['value']:.3f}" in text.out


def test_plot(run, batch_file, plan_file, tmp_path):
    chart = tmp_path / "chart.svg"
    outcome = run("plot", batch_file, without_operations(plan_file), chart, "--lower-bound", 1.0)
    assert outcome == Outcome(0, f"Chart written to {chart}.\n", "")
    assert 'id="create:0"' in chart.read_text()  # the operations that were found
    assert 'id="lower-bound"' in chart.read_text()


def test_plot_draws_what_is_not_valid_with_a_warning(run, batch_file, plan_file, tmp_path):
    outcome = run("plot", batch_file, not_valid(plan_file), tmp_path / "chart.png")
    assert outcome.code == 0
    assert outcome.err == "warning: the schedule is not valid (1 violation); see: mig-opt validate\n"
    assert (tmp_path / "chart.png").stat().st_size > 0


def test_plot_refuses(run, batch_file, plan_file, tmp_path):
    refuses(run("plot", batch_file, plan_file, tmp_path / "chart.gif"), "chart.gif: charts are written as")
    refuses(run("plot", batch_file, plan_file, tmp_path / "c.png", "--lower-bound", "nan"), "error: --lower-bound:")
    refuses(run("plot", batch_file, plan_file, tmp_path / "no" / "c.png"), "there is no folder")
    assert not list(tmp_path.glob("c*.png"))


# --- catalogues, generate, schema ------------------------------------------------------------------------------------


def test_instances(run):
    text, as_json = run("instances"), run("instances", "--json")
    assert [entry["name"] for entry in as_json.json["instances"]] == list(instance_names())
    for name in instance_names():
        info = instance_info(name)
        assert f"{name} " in text.out
        one = run("instances", name)
        assert one.code == 0
        assert info.licence in one.out
        assert run("instances", name, "--json").json["derivation"] == info.derivation
    refuses(run("instances", "miso"), "error: NAME: no bundled instance 'miso'; did you mean miso-a100-32?")


def test_gpus(run):
    text, as_json = run("gpus"), run("gpus", "--json")
    assert [entry["name"] for entry in as_json.json["gpus"]] == [model.name for model in catalogue()]
    for model in catalogue():
        assert model.name in text.out
    one = run("gpus", "a100")
    for profile in get_gpu("A100").profiles:
        assert f"{profile.name} " in one.out
    assert "4g.20gb@0 + 3g.20gb@4\n" in one.out
    assert "maximal partitions (14 distinct)" in one.out
    described = run("gpus", "A100", "--json").json
    assert len(described["maximal_partitions"]) == 19
    assert len(described["distinct_partitions"]) == 14
    assert described["operations_assumed"] is False
    refuses(run("gpus", "A31"), "error: NAME: unknown GPU 'A31'; did you mean A30")


def test_methods(run):
    text, as_json = run("methods"), run("methods", "--json")
    assert [entry["name"] for entry in as_json.json["methods"]] == [method.name for method in methods()]
    assert as_json.json["auto"] == "cp"
    assert all(f"\n{method.name} " in text.out for method in methods())


def test_versions(run):
    text, as_json = run("versions"), run("versions", "--json")
    assert as_json.json["mig-opt"] == __version__
    assert {"python", "ortools", "pulp", "networkx", "numpy", "pydantic", "typer", "rich"} <= set(as_json.json)
    assert f"ortools     {as_json.json['ortools']}\n" in text.out
    assert run("--version") == Outcome(0, f"mig-opt {__version__}\n", "")


def test_generate(run, tmp_path):
    path = tmp_path / "made.json"
    options = ("-n", 5, "--gpu", "A30", "--gpus", 2, "--seed", 7, "--scaling", "GoodScaling", "--times", "NarrowTimes")
    more = ("--p-sup", 0.25, "--decimals", 1, "--variant", "published-program")
    printed = run("generate", *options, *more)
    written = run("generate", *options, *more, "-o", path)
    assert (printed.code, printed.err) == (0, "")
    assert written == Outcome(0, f"Batch written to {path}.\n", "")
    assert printed.out == path.read_text()
    assert read_batch(path) == generate_batch(
        5,
        gpu="A30",
        gpus=2,
        seed=7,
        scaling="GoodScaling",
        times="NarrowTimes",
        p_sup=0.25,
        decimals=1,
        variant="published-program",
    )


def test_generate_names_every_wrong_option(run, tmp_path):
    wrong = {"-n": 0, "--scaling": "mixed", "--times": "wide", "--p-sup": 2, "--gpu": "A31", "--gpus": 0, "--seed": -1}
    wrong |= {"--decimals": -1, "--variant": "x"}
    outcome = run("generate", *(part for pair in wrong.items() for part in pair), "-o", tmp_path / "no" / "x.json")
    refuses(outcome, *(f"\n  {option}: " for option in wrong), "there is no folder")
    refuses(run("generate", "-n", 3, "--gpus", 2_000_000), "error: --gpus: must be from 1 to 1000000")


@pytest.mark.parametrize("kind", ["batch", "schedule", "result"])
def test_schema(run, kind):
    outcome = run("schema", kind)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["title"] == f"mig-opt/{kind}/1"


def test_schema_of_what_is_no_kind_of_file(run):
    refuses(run("schema", "btch"), "error: KIND: no kind of file is called 'btch'; did you mean batch?")


def test_export(run, tmp_path):
    for path, more in ((tmp_path / "a.lp", []), (tmp_path / "a.mps", ["--strict", "--gpus", 2])):
        outcome = run("export", "rodinia-a30", path, *more)
        assert (outcome.code, outcome.out, outcome.err) == (0, f"Program written to {path}.\n", "")
    assert "(relaxed:" in (tmp_path / "a.lp").read_text()
    text = (tmp_path / "a.mps").read_text()
    assert "(strict:" in text
    assert "2 x A30-24GB" in text


def test_export_names_everything_that_is_wrong(run, tmp_path):
    outcome = run("export", "rodinia-a3", tmp_path / "no" / "a.txt")
    refuses(outcome, "did you mean rodinia-a30?", "not as '.txt'", "there is no folder")
    batch = tmp_path / "batch.json"
    batch.write_text(json.dumps(BATCH))
    assert run("export", batch, batch).code == 2
    assert json.loads(batch.read_text()) == BATCH


# --- help and layout -------------------------------------------------------------------------------------------------

COMMANDS = [
    "solve",
    "validate",
    "bound",
    "explain",
    "prove",
    "check",
    "plot",
    "instances",
    "gpus",
    "methods",
    "versions",
    "generate",
    "export",
    "schema",
]
HEAVY = {"ortools", "pulp", "matplotlib", "networkx", "numpy", "rich", "mig_opt.files", "mig_opt.instances"}


@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
def test_every_help_has_an_example(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = run(*command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Example: mig-opt" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], HEAVY | {"pydantic"}),
        (["--version"], HEAVY | {"pydantic"}),
        (["solve", "--help"], HEAVY),  # new versions of typer read the options of a command with pydantic
    ],
)
def test_help_imports_nothing_heavy(arguments, heavy):
    program = f"""
import sys
from mig_opt.cli import main

try:
    main({arguments!r})
except SystemExit:
    print(sorted(set({sorted(heavy)!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    "arguments",
    [
        ("gpus",),
        ("gpus", "A100"),
        ("gpus", "RTX-PRO-6000"),
        ("gpus", "B200"),
        ("instances",),
        ("instances", "miso-a100-32"),
        ("methods",),
        ("bound", "miso-a100-100"),
        ("explain", "rodinia-a30", "--target", "28"),
        ("solve", "rodinia-a30", "--method", "far", "--gpus", "2"),
        ("solve", "miso-a100-100", "--method", "far"),
    ],
)
def test_screens_fit_and_cut_no_names(run, monkeypatch, width, arguments):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(*arguments).out.splitlines()
    assert max(len(line) for line in lines if "://" not in line) <= width  # sources are left to the terminal
    assert not [line for line in lines if line != line.rstrip()]
    if arguments == ("gpus",):
        words = {word.strip(",") for line in lines for word in line.split()}
        assert all({model.name, *model.aliases} <= words for model in catalogue())
    if arguments[0] == "solve":
        header = next(line.split() for line in lines if "instance" in line)
        assert header in (
            ["GPU", "instance", "task", "begin", "s", "end", "s"],
            ["instance", "begin", "s", "end", "s", "runs", "tasks"],
        )


def test_a_terminal_without_a_width_gets_the_usual_one(run, monkeypatch):
    usual = run("methods").out
    monkeypatch.setenv("COLUMNS", "0")
    monkeypatch.setattr(sys, "__stdout__", None)
    assert run("methods").out == usual


# --- lives -----------------------------------------------------------------------------------------------------------


def test_lives_of_instances_that_come_again():
    batch = Batch((Task("a", {2: 2.0}), Task("b", {2: 1.0}), Task("c", {4: 1.0})), get_gpu("A30")).replace(
        initial=(LiveInstance(0, "2g.12gb", 0, 0.5), LiveInstance(0, "1g.6gb", 3))
    )
    operations = (
        Operation("destroy", 0, "2g.12gb", 0, 2.5, 2.6),
        Operation("create", 0, "2g.12gb", 0, 2.6, 2.72),
        Operation("destroy", 0, "2g.12gb", 0, 3.72, 3.82),
    )
    runs = (Run("b", 0, "2g.12gb", 0, 2.72, 3.72), Run("a", 0, "2g.12gb", 0, 0.5, 2.5))
    first, idle, second = lives_of(batch, Schedule(runs, operations))
    assert [step.label for step in first.steps] == ["(exists)", "a", "(destroy)"]
    assert (first.begin, first.last) == (0.0, 2.6)
    assert [(str(idle), step.label, step.end) for step in idle.steps] == [("1g.6gb@3", "(exists)", 0.0)]
    assert [step.label for step in second.steps] == ["(create)", "b", "(destroy)"]
    assert (second.begin, second.last) == (2.6, 3.82)


def test_lives_show_operations_that_take_no_time_in_order():
    batch = Batch((Task("a", {4: 2.0}), Task("b", {4: 1.0})), get_gpu("A30"))
    place = (0, "4g.24gb", 0)
    runs = (Run("a", *place, 0.0, 2.0), Run("b", *place, 2.0, 3.0))
    operations = (
        Operation("create", *place, 0.0, 0.0),
        Operation("destroy", *place, 2.0, 2.0),
        Operation("create", *place, 2.0, 2.0),
    )
    lives = lives_of(batch, Schedule(runs, operations))
    assert [[step.label for step in life.steps] for life in lives] == [
        ["(create)", "a", "(destroy)"],
        ["(create)", "b"],
    ]


def test_lives_without_operations():
    batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    (life,) = lives_of(batch, Schedule((Run("a", 0, "4g.24gb", 0, 0.13, 2.13),)))
    assert (life.begin, life.last, [step.is_run for step in life.steps]) == (0.13, 2.13, [True])
