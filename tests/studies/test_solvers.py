"""Solvers of other people that do their worst: nothing of them is left, and the next instance follows."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from documents import refused
from node_plans import until

from mig_opt.instances.bundled import DATA, library
from mig_opt.studies import solvers, supervisor
from mig_opt.studies.rows import Outcome
from mig_opt.studies.scores import score

EASY = "far-1xa30-006-mixed-2"


def scored(tmp_path: Path, script: str, *, limit: float = 60.0) -> Outcome:
    """Outcome of a solver that is a script; in a folder with a space in its name."""
    folder = tmp_path / "a folder"
    (folder / "my plans").mkdir(parents=True, exist_ok=True)
    (folder / "mine.sh").write_text(script)
    (folder / "best.json").write_text(library().text("plans", EASY) or "")
    command = f"sh '{folder / 'mine.sh'}' {{instance}} {{plan}} '{folder}'"
    plan = folder / "my plans" / "plan.json"
    found = solvers.perform(solvers.SolverRun("mine", "command", command, EASY, str(DATA), limit, str(plan)))
    assert plan.exists() == (found.status == "valid")
    plan.unlink(missing_ok=True)
    return found


def running(mark: str) -> list[str]:
    """Processes with a word in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [path.parent.name] * (mark in path.read_bytes().decode("utf-8", "replace").split("\0"))
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux tells what runs")
@pytest.mark.parametrize("end", ["exit 0", "exit 3", "sleep 60", "kill -9 $$"])
def test_nothing_that_a_solver_begins_is_left(tmp_path, end):
    """Neither in the background, nor in a session of its own, nor below that."""
    seconds = f"3{os.getpid()}.{len(end)}"
    script = (
        f"sleep {seconds} &\n(setsid sleep {seconds} &)\nsetsid sh -c 'sleep {seconds} & sleep {seconds}' &\n{end}\n"
    )
    one = scored(tmp_path, f'sleep 0.2\ncp "$3/best.json" "$2"\n{script}', limit=2 if end == "sleep 60" else 60)
    assert one.status == {"exit 0": "valid", "exit 3": "valid", "sleep 60": "late", "kill -9 $$": "valid"}[end]
    assert running(seconds) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux tells what runs")
def test_nothing_is_left_when_the_process_that_asked_is_killed():
    seconds = f"4{os.getpid()}.5"
    program = [sys.executable, "-I", "-S", supervisor.__file__]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        asked = ["sh", "-c", f"setsid sleep {seconds} & sleep {seconds}"], 100
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        until(lambda: len(running(seconds)) >= 2)
    assert running(seconds) == []


@pytest.mark.parametrize("sign", ["KILL", "STOP"])
def test_a_solver_that_turns_on_who_watches_it(sign, monkeypatch):
    """It ends with that one, and the run with both."""
    monkeypatch.setattr(solvers, "_ANSWER_S", 0.5)
    seconds = f"5{os.getpid()}.{len(sign)}"
    code, said, _ = solvers._ended(["sh", "-c", f"kill -{sign} $PPID; exec sleep {seconds}"], 0.5)
    assert (code, said) == (-9, "who watches it was stopped")
    until(lambda: not running(seconds))


def test_a_method_of_our_own_ends_in_time_however_long_it_took_to_begin(tmp_path, monkeypatch):
    begin = time.monotonic()
    given = ["method", "auto", "far-4xa100-040-good-1", str(DATA), 600.0, str(tmp_path / "plan.json"), begin - 599]
    monkeypatch.setattr(sys, "argv", ["", json.dumps(given)])
    solvers.call_solver()
    assert (tmp_path / "plan.json").exists()
    assert time.monotonic() - begin < 300


def test_floods(tmp_path):
    """Of endless output the last line is kept; a plan without end, or with too much, is none."""
    flood = scored(tmp_path, "yes nonsense", limit=1)
    assert (flood.status, flood.error) == ("timeout", "had to be ended after 1 s")
    for script, told in (
        ("echo out; kill -9 $$", ("crashed", "signal 9: out")),
        ("yes nonsense | head -c 30000000; echo; echo last words; exit 4", ("crashed", "exit code 4: last words")),
        ('mkfifo "$2"', ("garbage", "is no file")),
        ('ln -s /dev/zero "$2"', ("garbage", "is no file")),
        ('head -c 100000000 /dev/zero > "$2"', ("garbage", "has 100000000 bytes, which no plan has")),
        ('mkdir "$2"', ("garbage", "is no file")),
    ):
        one = scored(tmp_path, script)
        assert (one.status, one.error) == told
    assert scored(tmp_path, 'cat /dev/zero > "$2"').status == "crashed"


def test_plans_that_are_nearly_right(tmp_path):
    """Figures that are none, and the plan of another instance."""
    best = json.loads(library().text("plans", EASY) or "")
    for key, value, status in (
        ("begin", float("nan"), "garbage"),
        ("end", float("inf"), "garbage"),
        ("begin", -1.0, "invalid"),
        ("gpu", 10**30, "invalid"),
        ("task", "t999", "invalid"),
        ("end", 1e300, "invalid"),
    ):
        broken = json.loads(json.dumps(best))
        broken["runs"][0][key] = value
        (tmp_path / "broken.json").write_text(json.dumps(broken))
        one = scored(tmp_path, f"cp '{tmp_path}/broken.json' \"$2\"")
        assert (one.status, one.makespan) == (status, None), one.error
    (tmp_path / "other.json").write_text(library().text("plans", "far-1xa100-008-mixed-1") or "")
    assert scored(tmp_path, f"cp '{tmp_path}/other.json' \"$2\"").status == "invalid"
    for encoding in ("utf-8-sig", "utf-16"):  # as PowerShell writes them
        (tmp_path / "marked.json").write_text(json.dumps(best), encoding=encoding)
        assert scored(tmp_path, f"cp '{tmp_path}/marked.json' \"$2\"").status == "valid"


def test_commands_that_are_none(tmp_path):
    for command, message in (
        ("no-such-program {instance} {plan}", "no-such-program is no program that can be run here"),
        (f"{'x' * 300} {{instance}} {{plan}}", "is no program that can be run here"),
        ("./mine.sh {instance} {plan}", r"\./mine.sh is no program that can be run here"),
        ("sh 'mine.sh {instance} {plan}", "is no command: No closing quotation"),
    ):
        refused(score, command, match=message, names=[EASY], output=tmp_path / "plans")
    assert not (tmp_path / "plans").exists()
    (one,) = score("{instance} {plan}", names=[EASY], output=tmp_path / "plans").scores
    assert (one.status, "cannot be run: Permission denied" in one.reason) == ("crashed", True)
