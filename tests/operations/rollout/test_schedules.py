"""Scripts that carry out schedules of batches."""

import signal
import subprocess
from pathlib import Path

import pytest
from node_plans import lives, until
from scripts import Machine

from mig_opt import Batch, LiveInstance, Operation, OperationCosts, Run, Schedule, Task, get_gpu, solve
from mig_opt.operations.rollout.nvidia_smi import schedule_script

RUN_TASK = """
run_task() {
  touch "$FOLDER/users/$CUDA_VISIBLE_DEVICES"
  printf '%s|%s|%s|%s|%s\\n' "$@" "$CUDA_VISIBLE_DEVICES" >>"$FOLDER/ran"
  rm "$FOLDER/users/$CUDA_VISIBLE_DEVICES"
}
"""


def planned(batch: Batch) -> Schedule:
    return solve(batch, "far").schedule


def ran(folder: Path) -> list[list[str]]:
    return [line.split("|") for line in (folder / "ran").read_text().splitlines()]


def assert_runs_as_planned(folder: Path, batch: Batch, schedule: Schedule) -> None:
    """Each task where the schedule has it, those of one place in its order."""
    expected: dict[tuple[str, str, str], list[str]] = {}
    for run in sorted(schedule.runs, key=lambda run: run.begin):
        expected.setdefault((str(run.gpu), run.profile, str(run.start)), []).append(run.task)
    found: dict[tuple[str, str, str], list[str]] = {}
    for task, gpu, profile, start, _ in ran(folder):
        found.setdefault((gpu, profile, start), []).append(task)
    assert found == expected


@pytest.mark.deep
@pytest.mark.parametrize(("gpu", "gpus"), [("A100", 1), ("A30", 2)])
def test_a_schedule_is_carried_out(gpu, gpus, tmp_path):
    model = get_gpu(gpu)
    # Work for small instances after large ones and beside them: several operations on each slice.
    tasks = [Task(f"small{index}", {1: 1.0 + index / 10}) for index in range(4)]
    tasks += [Task(f"two{index}", {2: 1.5 + index}) for index in range(3)]
    tasks += [Task(f"all{index}", {max(model.sizes): 2.0 + index}) for index in range(2)]
    batch = Batch(tuple(tasks), model, gpus)
    schedule = planned(batch)
    assert {operation.kind for operation in schedule.operations} == {"create", "destroy"}
    machine = Machine(tmp_path, *[gpu] * gpus)
    machine.run(schedule_script(batch, schedule), RUN_TASK)
    assert_runs_as_planned(tmp_path, batch, schedule)
    for number in range(gpus):
        kinds = [line.split()[3] for line in machine.changes if f"-i {number} " in line and "-dci" not in line]
        wanted = sorted((o for o in schedule.operations if o.gpu == number), key=lambda o: (o.begin, o.end))
        assert kinds == [{"create": "-cgi", "destroy": "-dgi"}[operation.kind] for operation in wanted]


@pytest.mark.deep
def test_instances_are_found_by_place_even_if_driver_and_costs_are_odd(tmp_path):
    """Operations that take no time, in a file in an order of its own; the driver holds on to what has been used."""
    model = get_gpu("A30")
    tasks = (Task("a", {2: 1.0}), Task("b", {2: 1.0}), Task("c", {4: 1.0}))
    batch = Batch(tasks, model, operations=OperationCosts.zero(model))
    runs = (
        Run("a", 0, "2g.12gb", 2, 0.0, 1.0),
        Run("b", 0, "2g.12gb", 0, 0.0, 1.0),
        Run("c", 0, "4g.24gb", 0, 1.0, 2.0),
    )
    schedule = Schedule(
        runs,
        (
            Operation("create", 0, "4g.24gb", 0, 1.0, 1.0),
            Operation("destroy", 0, "2g.12gb", 0, 1.0, 1.0),
            Operation("destroy", 0, "2g.12gb", 2, 1.0, 1.0),
            Operation("create", 0, "2g.12gb", 2, 0.0, 0.0),
            Operation("create", 0, "2g.12gb", 0, 0.0, 0.0),
        ),
    )
    machine = Machine(tmp_path, "A30")
    machine.change(0, busy=1)
    done = machine.run(schedule_script(batch, schedule), RUN_TASK)
    assert machine.changes[:2] == ["mig -i 0 -cgi 5:0 -C", "mig -i 0 -cgi 5:2 -C"]
    assert machine.changes[-1] == "mig -i 0 -cgi 0:0 -C"
    assert "In use by another client" in done.stderr
    assert_runs_as_planned(tmp_path, batch, schedule)


def test_a_schedule_from_instances_that_exist(tmp_path):
    live = (LiveInstance(0, "2g.12gb", 0, 0.5), LiveInstance(0, "2g.12gb", 2, 0.25))
    batch = Batch((Task("a", {2: 5.0}), Task("b", {1: 1.0}), Task("c", {1: 1.2})), get_gpu("A30"), initial=live)
    schedule = planned(batch)
    script = schedule_script(batch, schedule)
    machine = Machine(tmp_path, "A30")
    machine.add(0, "2g.12gb", 2)
    done = machine.run(script, RUN_TASK, code=1)
    assert machine.changes == []
    assert "error: GPU 0 (0): an instance of profile 5 at slice 0 should exist, but does not" in done.stderr
    machine.add(0, "2g.12gb", 0)
    hooks = RUN_TASK + 'earlier_work() { echo "$*" >>"$FOLDER/earlier"; }'
    machine.run(script, hooks)
    assert sorted((tmp_path / "earlier").read_text().splitlines()) == ["0 2g.12gb 0 0.5", "0 2g.12gb 2 0.25"]
    assert_runs_as_planned(tmp_path, batch, schedule)


def test_earlier_work_takes_its_time_by_default(tmp_path):
    batch = Batch((Task("a", {4: 5.0}),), get_gpu("A30"), initial=(LiveInstance(0, "4g.24gb", 0, 0.3),))
    schedule = planned(batch)
    machine = Machine(tmp_path, "A30")
    machine.add(0, "4g.24gb", 0)
    machine.program("sleep", 'echo "$*" >>"$FOLDER/slept"')
    machine.run(schedule_script(batch, schedule), RUN_TASK)
    assert (tmp_path / "slept").read_text() == "0.3\n"
    assert ran(tmp_path) == [["a", "0", "4g.24gb", "0", "MIG-old-0-2"]]


TASKS = Batch((Task("a", {4: 2.0}), Task("b", {4: 1.0}), Task("c", {1: 3.0})), get_gpu("A30"))
"""Two tasks one after the other on an instance, then another instance in its place."""


def test_tasks_may_end_when_an_operation_has_failed(tmp_path):
    batch = Batch((Task("a", {2: 3.0}), Task("b", {2: 1.0})), get_gpu("A30"))
    machine = Machine(tmp_path, "A30")
    machine.first('if [[ "$*" == *-cgi* ]]; then if [[ -e $FOLDER/one ]]; then exit 6; fi; touch "$FOLDER/one"; fi')
    machine.run(schedule_script(batch, planned(batch)), RUN_TASK.replace("rm", "sleep 0.3; rm"), code=1)
    assert len(ran(tmp_path)) == 1
    assert list((tmp_path / "users").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_tasks_as_well(number, tmp_path):
    machine = Machine(tmp_path, "A30")
    hooks = 'run_task() { sleep 600 & echo "$!" >"$FOLDER/pid.new"; mv "$FOLDER/pid.new" "$FOLDER/pid"; wait; }'
    process = subprocess.Popen(
        machine.command(schedule_script(TASKS, planned(TASKS)), hooks),
        env=machine.environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until((tmp_path / "pid").exists)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Stopped, and with it the tasks. Instances that exist stay.\n" in errors  # bash 5.3 may say more of its own
    task = int((tmp_path / "pid").read_text())
    until(lambda: not lives(task), 10)


@pytest.mark.parametrize(("free", "written"), [(43200.04, "43200.04"), (1234564.0, "1234564"), (0.0625, "0.063")])
def test_the_time_that_an_instance_is_busy_is_not_cut(free, written):
    gpu = get_gpu("A30")
    batch = Batch((Task("a", {1: 1.0}),), gpu, initial=(LiveInstance(0, "1g.6gb", 0, free=free),))
    assert f" 1g.6gb {written} " in schedule_script(batch, planned(batch)).replace("\n", " ")


def test_what_may_exist_once_is_destroyed_before_it_is_created_elsewhere():
    gpu = get_gpu("A30")
    batch = Batch((Task("a", {1: 1.0}), Task("b", {1: 1.0})), gpu, operations=OperationCosts.zero(gpu))
    runs = (Run(name, 0, "1g.6gb+me", at, at, at + 1.0) for at, name in enumerate("ab"))
    assert "release 0 21:0\n" in schedule_script(batch, Schedule(tuple(runs))).partition("create 0 21:1")[0]
