"""Plans on GPUs of other machines, whose connection is lost in the middle."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nvml_machine import Machine

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.journal import Commands
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.errors import InputError
from mig_opt.files.batch.journals import read_journal
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.operations.driver import Patience
from mig_opt.operations.execute.schedules import resume_schedule, run_schedule, undo_schedule

BATCH = Batch((Task("big", {4: 0.1}), Task("left", {2: 0.2})), get_gpu("A30"))
PLAN = Schedule(
    (Run("big", 0, "4g.24gb", 0, 0.13, 0.23), Run("left", 0, "2g.12gb", 0, 0.45, 0.65)),
    (
        Operation("create", 0, "4g.24gb", 0, 0.0, 0.13),
        Operation("destroy", 0, "4g.24gb", 0, 0.23, 0.33),
        Operation("create", 0, "2g.12gb", 0, 0.33, 0.45),
    ),
)
# A connection: what it runs does not die with it, but its input ends.
SSH = """#!{python}
import os, subprocess, sys, threading
arguments = sys.argv[1:]
assert arguments[:3] == ["-o", "BatchMode=yes", "node-1"], arguments
if os.path.exists({folder!r} + "/down"):
    sys.exit(255)
open({folder!r} + "/connections", "a").write(f"{{os.getpid()}}\\n")
pipe = subprocess.PIPE
agent = subprocess.Popen(arguments[3:], stdin=pipe, stdout=pipe, start_new_session=True, cwd={folder!r})
def forward():
    for line in agent.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    os._exit(0)
threading.Thread(target=forward).start()
for line in sys.stdin.buffer:
    agent.stdin.write(line)
    agent.stdin.flush()
agent.stdin.close()
agent.wait()
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with Machine(tmp_path, "A30").loaded() as found:
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "ssh"
        program.write_text(SSH.format(python=sys.executable, folder=str(tmp_path)))
        program.chmod(0o755)
        for name, value in found.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("MIG_OPT_PYTHON", sys.executable)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        yield found


def commands(folder: Path, then: str = "") -> Commands:
    script = f'echo "$MIG_OPT_TASK $MIG_OPT_HOST $CUDA_VISIBLE_DEVICES" >>{folder}/ran; {then}'
    return Commands({task.name: ("sh", "-c", script) for task in BATCH.tasks})


def ran(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "ran").read_text().splitlines()]


def lose_connection(folder: Path) -> None:
    for pid in (folder / "connections").read_text().split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.mark.deep
def test_a_plan_runs_on_another_machine(machine: Machine, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    found = run_schedule(BATCH, PLAN, commands(tmp_path), journal=journal, devices=["node-1/0"])
    assert found.complete
    assert [line[:2] for line in ran(tmp_path)] == [["big", "node-1"], ["left", "node-1"]]
    assert read_journal(journal).gpus == (f"node-1/{Machine.uuid(0)}",)
    assert {(one.profile, one.start) for one in machine.instances(0)} == {("2g.12gb", 0)}
    assert undo_schedule(journal) == []
    assert machine.instances(0) == []


@pytest.mark.deep
@pytest.mark.parametrize("moment", ["create", "destroy", "run"])
def test_the_connection_is_lost_in_the_middle(machine: Machine, tmp_path: Path, moment: str) -> None:
    lost: list[str] = []

    def lose(_: object, event) -> None:
        if event.kind == moment:
            machine.fault("slow", 1, 0.6)
            lost.append(event.kind)
            threading.Timer(0.3, lose_connection, [tmp_path]).start()

    words = commands(tmp_path, "sleep 0.6")
    found = run_schedule(BATCH, PLAN, words, journal=tmp_path / "j", devices=["node-1/0"], observe=lose)
    assert lost
    assert found.complete
    assert [line[0] for line in ran(tmp_path)] == ["big", "left"]
    assert [line[0] for line in machine.log].count("create") == 2
    assert {(one.profile, one.start) for one in machine.instances(0)} == {("2g.12gb", 0)}


@pytest.mark.deep
def test_a_machine_that_cannot_be_reached_for_long(machine: Machine, tmp_path: Path) -> None:
    def cut(_: object, event) -> None:
        if event.kind == "destroy":
            (tmp_path / "down").touch()
            lose_connection(tmp_path)
            time.sleep(0.1)

    soon = Patience(first=0.05, limit=0.3)
    options = {"journal": tmp_path / "j", "devices": ["node-1/0"]}
    found = run_schedule(BATCH, PLAN, commands(tmp_path), patience=soon, observe=cut, **options)
    assert not found.complete
    assert "node-1: ssh gives no connection" in found.refusals[0]
    (tmp_path / "down").unlink()
    assert resume_schedule(tmp_path / "j").complete
    assert [line[0] for line in ran(tmp_path)] == ["big", "left"]
    (tmp_path / "down").touch()
    with pytest.raises(InputError, match=r"devices\[0\]: node-1: ssh gives no connection"):
        run_schedule(BATCH, PLAN, commands(tmp_path), journal=tmp_path / "k", devices=["node-1/0"], patience=soon)
