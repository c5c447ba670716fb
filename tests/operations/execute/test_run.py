"""Schedules run on the tests' GPU with programs: real processes, real deaths."""

import errno
import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from unittest.mock import Mock

import pytest
from documents import complaints, refused
from node_plans import ends, lives, until
from nvml_machine import Machine

from mig_opt import Batch, Commands, Device, DriverError, Operation, OperationCosts, Run, Schedule, Task, get_gpu
from mig_opt.batch.timing import retimed_schedule
from mig_opt.cli.batch.execution import ExecutionView
from mig_opt.files.batch.batches import BATCH as BATCH_FILE
from mig_opt.files.batch.journals import COMMANDS, read_journal
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.execute import machines
from mig_opt.operations.execute.attempts import Attempts, uptime
from mig_opt.operations.execute.schedules import resume_schedule, run_schedule, undo_schedule
from mig_opt.validation import validate

BATCH = Batch((Task("big", {4: 0.1}), Task("left", {2: 0.2}), Task("right", {1: 0.1})), get_gpu("A30"))
RUNS = Run("big", 0, "4g.24gb", 0, 0, 1), Run("left", 0, "2g.12gb", 0, 1, 2), Run("right", 0, "1g.6gb", 3, 1, 2)
PLAN = retimed_schedule(BATCH, RUNS)
END = {("2g.12gb", 0), ("1g.6gb", 3)}
SOON = Patience(first=0.01, limit=0.05)


def note(folder: Path, then: str = "") -> Commands:
    """Commands that write down which task ran where, and then do something more."""
    script = f'echo "$MIG_OPT_TASK $CUDA_VISIBLE_DEVICES $MIG_OPT_PROFILE $MIG_OPT_START" >>{folder}/ran; {then}'
    return Commands({task.name: ("sh", "-c", script) for task in BATCH.tasks})


def ran(folder: Path) -> list[list[str]]:
    path = folder / "ran"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def places(machine: Machine) -> set[tuple[str, int]]:
    return {(one.profile, one.start) for one in machine.instances(0)}


def test_a_plan_is_executed_where_it_says(machine, journal, tmp_path):
    events: list[str] = []
    told = lambda _, event: events.append(event.kind)  # noqa: E731
    found = run_schedule(BATCH, PLAN, note(tmp_path), journal=journal, observe=told)
    assert (found.complete, bool(found.failed)) == (True, False)
    task, _, *place = ran(tmp_path)[0]
    assert (task, place) == ("big", ["4g.24gb", "0"])
    assert {task: uuid for task, uuid, _, _ in ran(tmp_path)}["left"] == machine.instances(0)[1].uuid
    assert places(machine) == END
    assert (events[0], events[-1]) == ("begin", "end")
    assert [event.kind for event in read_journal(journal).events] == events
    assert validate(*read_journal(journal).measured()).valid
    assert sorted(path.suffix for path in Path(f"{journal}.tasks").iterdir()) == [".out"] * 3


def test_no_more_instances_of_a_profile_than_may_exist(machine, journal):
    small, *others = get_gpu("A30").profiles
    gpu = replace(get_gpu("A30"), name="two", aliases=(), profiles=(replace(small, max_count=2), *others))
    batch = Batch(tuple(Task(name, {1: 0.2}) for name in "abc"), gpu, operations=OperationCosts.zero(gpu))
    runs = tuple(Run(task, 0, small.name, at, at // 2 / 5, at // 2 / 5 + 0.2) for at, task in enumerate("abc"))
    made = tuple(Operation("create", 0, small.name, run.start, run.begin, run.begin) for run in runs)
    plan = Schedule(runs, (*made, Operation("destroy", 0, small.name, 0, 0.2, 0.2)))
    commands = Commands(dict.fromkeys("abc", ("sleep", "0.2")))
    assert run_schedule(batch, plan, commands, journal=journal).complete
    assert validate(*read_journal(journal).measured()).valid


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda machine: machine.mode(0, 0), "MIG mode is off; enable it with: nvidia-smi -i GPU-00000000"),
        (lambda machine: machine.mode(0, 0, 1), "only after a reset"),
        (lambda machine: machine.fault("no-permission", -1), "by root only; use sudo"),
        (lambda machine: machine.fault("lost", -1), "restart the machine"),
        (lambda machine: machine.add(0, "1g.6gb", 1, pid=7), "in the way, and is left alone: 1g.6gb at slice 1"),
        (lambda machine: machine.renumber(1, 0), "the driver has no profile"),
    ],
)
def test_what_speaks_against_it_is_told_before_anything_is_changed(machine, journal, tmp_path, spoil, message):
    spoil(machine)
    before = machine.instances(0)
    refused(run_schedule, BATCH, PLAN, note(tmp_path), match=message, journal=journal)
    assert (journal.exists(), machine.instances(0), machine.log) == (False, before, [])


def test_all_problems_at_once(machine, journal, monkeypatch):
    monkeypatch.setattr("mig_opt.operations.execute.machines.owner_of_partitions", lambda: "HAMi owns the partitions")
    odd = Batch((Task("a\0", {4: 0.1}),), get_gpu("A30"))
    given = odd, retimed_schedule(odd, [Run("a\0", 0, "4g.24gb", 0, 0, 1)]), Commands({"a\0": ("true",)})
    refused(run_schedule, *given, match="commands.* no program", journal=journal)
    commands = Commands({"big": ("./no-such-program",), "left": ("true", "\ud800")})
    text = "\n".join(complaints(run_schedule, BATCH, PLAN, commands, journal=journal, devices=["7"]))
    for part in ("'right'; add it", "no program './no-such-program'", "commands.left: has a character", "HAMi owns"):
        assert part in text
    assert "there is no GPU 7" in text
    for name, wrong in {"journal": 3, "devices": "01", "user": 3, "engine": 3, "patience": 3, "observe": 3}.items():
        assert name in refused(run_schedule, BATCH, PLAN, commands, **{"journal": journal, name: wrong})
    assert refused(resume_schedule, 3) == refused(undo_schedule, 3) == ["journal"]
    assert refused(resume_schedule, journal, patience=3, observe=3, engine=3) == ["patience", "observe", "engine"]


@pytest.mark.parametrize("node", [None, "", socket.gethostname()])
def test_gpus_by_uuid_although_numbers_have_shifted(machine, journal, tmp_path, node):
    """The batch may know them; the node may be this machine by its name: nothing goes through ssh then."""
    machine.renumber(1, 0)
    machine.fault("lost", -1, gpu=1)
    batch = BATCH if node is None else BATCH.replace(devices=(Device(7, node, Machine.uuid(0)),))
    devices = [Machine.uuid(0)] if node is None else None
    assert run_schedule(batch, PLAN, note(tmp_path), journal=journal, devices=devices).complete
    assert places(machine) == END
    assert read_journal(journal).batch.devices == batch.devices


def test_what_cannot_be_done_is_done_when_resumed(machine, journal, tmp_path):
    machine.fault("in-use", -1)
    found = run_schedule(BATCH, PLAN, note(tmp_path), journal=journal, patience=SOON)
    assert (found.complete, [line[0] for line in ran(tmp_path)]) == (False, ["big"])
    assert "still in use; stop" in found.refusals[0]
    machine.fault("in-use", 0)
    found = resume_schedule(journal)
    assert (found.complete, found.refusals) == (True, [])
    assert sorted(line[0] for line in ran(tmp_path)) == ["big", "left", "right"]
    assert places(machine) == END
    refused(resume_schedule, journal, match="nothing to go on with")


def test_an_instance_that_appears_in_the_way_is_left_alone(machine, journal, tmp_path):
    def intrude(_: object, event) -> None:
        if event.kind == "destroyed":
            machine.add(0, "2g.12gb", 0, pid=7)

    found = run_schedule(BATCH, PLAN, note(tmp_path), journal=journal, patience=SOON, observe=intrude)
    assert not found.complete
    assert "nothing is taken away: 2g.12gb at slice 0" in found.refusals[0]
    assert sorted(line[0] for line in ran(tmp_path)) == ["big", "right"]  # the other branch is not kept from running


def test_an_instance_made_by_hand_after_a_refusal_is_left_alone(machine, journal, tmp_path):
    machine.fault("no-compute", -1)
    assert not run_schedule(BATCH, PLAN, note(tmp_path), journal=journal, patience=SOON).complete
    machine.fault("no-compute", 0)
    machine.add(0, "4g.24gb", 0)
    assert not resume_schedule(journal, patience=SOON).complete
    assert undo_schedule(journal, patience=SOON) == []
    assert places(machine) == {("4g.24gb", 0)}


def test_what_a_refused_creation_has_left_is_taken_back_whatever_comes_between(machine, journal, tmp_path):
    def stop(_: object, event) -> None:
        if event.kind == "refused":
            raise KeyboardInterrupt

    for fault in ("no-compute", "in-use"):
        machine.fault(fault, -1)
    with pytest.raises(KeyboardInterrupt):
        run_schedule(BATCH, PLAN, note(tmp_path), journal=journal, patience=SOON, observe=stop)
    assert places(machine) == {("4g.24gb", 0)}  # without a compute instance
    assert undo_schedule(journal, patience=SOON) != []
    machine.fault("lost", -1)
    assert "does not answer any more; restart the machine" in undo_schedule(journal, patience=SOON)[0]
    for fault in ("no-compute", "in-use", "lost"):
        machine.fault(fault, 0)
    assert undo_schedule(journal, patience=SOON) == []
    assert places(machine) == set()


FULL = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))


@pytest.mark.parametrize("begun", [True, False])
def test_what_the_disk_refuses_is_told_and_a_journal_without_its_first_line_is_not_there(
    machine, journal, tmp_path, monkeypatch, begun
):
    with monkeypatch.context() as disk:

        def fill(_: object, event) -> None:
            if event.kind == "created":
                disk.setattr(os, "write", FULL)

        if not begun:
            disk.setattr(os, "write", FULL)
        told = r"run.journal:\n.*No space left on device; mend that" if begun else "No space left on device"
        refused(run_schedule, BATCH, PLAN, note(tmp_path), match=told, journal=journal, observe=fill)
    assert journal.exists() == begun
    again = resume_schedule(journal) if begun else run_schedule(BATCH, PLAN, note(tmp_path), journal=journal)
    assert (again.complete, len(ran(tmp_path))) == (True, 3)


def test_a_task_that_the_machine_does_not_start_is_told(machine, journal):
    commands = Commands({task.name: ("sh", "-c", "true", "x" * 3_000_000) for task in BATCH.tasks})
    with pytest.raises(DriverError, match="task 'big' cannot be started: Argument list too long"):
        run_schedule(BATCH, PLAN, commands, journal=journal)


def test_clocks_may_be_set(machine, journal, tmp_path, monkeypatch):
    monkeypatch.setattr(machines, "_LONGEST_WAIT_S", 0.01)
    assert machines.Machines(tmp_path, ".", None).next(1e12) is None
    back = iter(range(2_000_000_000, 0, -1))
    monkeypatch.setattr(time, "time", lambda: next(back))
    view = ExecutionView(uptime)
    found = run_schedule(BATCH, PLAN, note(tmp_path, "sleep 0.2"), journal=journal, observe=view.take)
    assert found.complete
    assert 0.4 <= float(str(view.__rich__()).split()[0]) < 1e6
    assert all(0.2 <= run.end - run.begin < 1e6 for run in found.journal.runs())


@pytest.fixture
def command(machine, journal, tmp_path):
    BATCH_FILE.write(BATCH, tmp_path / "batch.json")
    SCHEDULE.write(PLAN, tmp_path / "plan.json")
    COMMANDS.write(note(tmp_path, "sleep 0.2"), tmp_path / "commands.json")
    files = [str(tmp_path / name) for name in ("batch.json", "plan.json")]
    return [*files, "--commands", str(tmp_path / "commands.json"), "--journal", str(journal)]


def started(machine: Machine, *arguments: str) -> subprocess.Popen[str]:
    user = [] if "--undo" in arguments else ["--user", getpass.getuser()]
    program = [sys.executable, "-m", "mig_opt", "run", *arguments, *user]
    pipe = subprocess.PIPE
    return subprocess.Popen(program, env=machine.environment, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.deep
@pytest.mark.parametrize("half", range(1, 11))
def test_killed_in_the_middle_of_an_operation(machine, command, journal, tmp_path, half):
    machine.fault("kill", half)
    ends(started(machine, *command), -signal.SIGKILL)
    again = started(machine, "--resume", str(journal), "--json")
    out, err = again.communicate()
    assert again.returncode == 0, err
    assert json.loads(out)["complete"]
    assert sorted(line[0] for line in ran(tmp_path)) == ["big", "left", "right"]
    assert places(machine) == END
    assert all(one.uuid for one in machine.instances(0))
    assert validate(*read_journal(journal).measured()).valid


@pytest.mark.deep
def test_ctrl_c_ends_the_tasks_and_undo_takes_back(machine, command, journal, tmp_path):
    COMMANDS.write(note(tmp_path, "sleep 60"), tmp_path / "commands.json")
    process = started(machine, *command)
    until(lambda: ran(tmp_path))
    process.send_signal(signal.SIGINT)
    ends(process, 130)
    assert read_journal(journal).events[-1].kind == "stop"
    assert places(machine) == {("4g.24gb", 0)}
    undo = started(machine, "--undo", str(journal))
    out, _ = undo.communicate()
    assert (undo.returncode, places(machine)) == (0, set())
    assert "nothing else was touched" in out


@pytest.mark.parametrize("name", ["TERM", "KILL"])
def test_a_task_that_is_killed_alone_is_run_again(machine, journal, tmp_path, name):
    once = f"[ -e {tmp_path}/once ] || {{ : >{tmp_path}/once; kill -{name} $$; }}"
    execution = run_schedule(BATCH, PLAN, note(tmp_path, once), journal=journal)
    assert (execution.complete, bool(execution.failed)) == (True, False)
    assert [line[0] for line in ran(tmp_path)][:2] == ["big", "big"]
    assert len(ran(tmp_path)) == 4
    assert [event.task for event in read_journal(journal).events if event.kind == "died"] == ["big"]


def test_a_try_of_an_earlier_version_is_told(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "0000-1.try").write_text("4711\n0\n")
    refused(Attempts(tmp_path, tmp_path).outcome, "0000-1", match="is of an earlier version")


@pytest.mark.deep
def test_a_task_that_fails_since_all_is_being_ended_has_not_come_to_its_end(machine, command, journal, tmp_path):
    pid = tmp_path / "pid"
    waits = f"[ -e {pid} ] || {{ trap 'exit 1' TERM; echo $$ >{pid}.new; mv {pid}.new {pid}; sleep 9 & wait; }}"
    COMMANDS.write(note(tmp_path, waits), tmp_path / "commands.json")
    process = started(machine, *command)
    until(pid.exists)
    os.kill(int(pid.read_text()), signal.SIGTERM)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert [event.kind for event in read_journal(journal).events][-2:] == ["died", "stop"]
    ends(started(machine, "--resume", str(journal)))
    assert sorted(line[0] for line in ran(tmp_path)) == ["big", "big", "left", "right"]


@pytest.mark.deep
def test_undo_ends_tasks_that_outlive_their_executor(machine, command, journal, tmp_path):
    COMMANDS.write(note(tmp_path, f"echo $$ >{tmp_path}/pid; exec sleep 60"), tmp_path / "commands.json")
    process = started(machine, *command)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    process.kill()
    process.communicate()
    ends(started(machine, "--undo", str(journal)))
    assert places(machine) == set()
    assert not lives(int((tmp_path / "pid").read_text()))


def test_tasks_that_ignore_sigterm_are_killed_and_processes_that_have_left_them_are_told(
    machine, journal, tmp_path, monkeypatch
):
    pids, own, told = (tmp_path / name for name in ("left", "own", "told"))
    stays = (
        f"echo $$ >{own}; trap 'echo >>{told}' TERM; setsid sh -c 'echo $$ >{pids}; exec sleep 60' & sleep 60; sleep 60"
    )
    waits = f"until [ -s {pids} ]; do sleep 0.01; done"
    monkeypatch.setattr(Attempts, "stop", partialmethod(Attempts.stop, patience=0.1))

    def stop(_: object, event) -> None:
        if (event.kind, event.task) == ("ran", "right"):
            raise KeyboardInterrupt

    commands = note(tmp_path, f"case $MIG_OPT_TASK in left) {stays};; right) {waits};; esac")
    try:
        with pytest.raises(KeyboardInterrupt):
            run_schedule(BATCH, PLAN, commands, journal=journal, observe=stop)
        assert [lives(int(path.read_text())) for path in (own, pids)] == [False, True]
        assert told.read_text() == "\n"  # once
    finally:
        os.kill(int(pids.read_text()), signal.SIGKILL)
    died, stopped = read_journal(journal).events[-2:]
    assert (died.kind, died.task, stopped.kind) == ("died", "left", "stop")
    assert "some of its processes go on" in died.text
