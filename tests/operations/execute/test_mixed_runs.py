"""Schedules on several kinds of GPUs, and on GPUs without MIG, are carried out by programs on the tests' GPUs."""

import pytest
from documents import refused

from mig_opt import Batch, Commands, InputError, Pool, Task, export, get_gpu, solve, validate
from mig_opt.files.batch.journals import read_journal
from mig_opt.operations.execute.schedules import run_schedule, undo_schedule

BATCH = Batch(
    (
        Task("a", {"A30": {4: 0.3, 2: 0.5}}),
        Task("b", {"A100": {7: 0.2}, "A30": {4: 9.0}}),
        Task("c", {"A30": {1: 0.4}, "A100": {1: 0.3}}),
        Task("d", {"A100": {7: 0.1}}),
    ),
    pools=(Pool(get_gpu("A30"), 1), Pool(get_gpu("A100"), 1, mig=False)),
)


def test_tasks_run_on_their_kind_and_on_the_whole_gpu_without_mig(machine, tmp_path):
    script = f'echo "$MIG_OPT_TASK $CUDA_VISIBLE_DEVICES" >>{tmp_path}/ran'
    commands = Commands({task.name: ("sh", "-c", script) for task in BATCH.tasks})
    schedule = solve(BATCH).schedule
    journal = tmp_path / "run.journal"
    with pytest.raises(InputError, match="MIG mode is on, but the plan takes the whole GPU"):
        run_schedule(BATCH, schedule, commands, journal=journal)
    machine.mode(1, 0)
    assert run_schedule(BATCH, schedule, commands, journal=journal).complete
    where = dict(line.split() for line in (tmp_path / "ran").read_text(encoding="utf-8").splitlines())
    assert where["b"] == where["d"] == machine.uuid(1)
    assert where["a"].startswith("MIG-")
    assert not any(line[1:2] == [machine.uuid(1)] for line in machine.log)
    batch, measured = read_journal(journal).measured()
    assert validate(batch, measured).valid
    again = read_journal(journal).measured_batch()
    assert set(again.tasks[1].times) == {"A100-40GB without MIG", "A30-24GB"}
    assert again.tasks[1].times["A30-24GB"] == {4: 9.0}
    undo_schedule(journal)
    assert machine.instances(0) == []


def test_a_script_is_for_gpus_with_mig():
    refused(export, BATCH, "script", solve(BATCH).schedule, match="MIG is off on GPU 1")
