"""Tasks and models measured on the tests' GPU, with everything that goes wrong on the way."""

from itertools import pairwise
from unittest.mock import Mock

import pytest
from documents import refused

from mig_opt import Commands, Point, get_gpu
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.journals import read_journal
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.execute.profiles import OUT_OF_MEMORY, ProfilePlan, profile_tasks
from mig_opt.validation import validate

A30 = get_gpu("A30")
# A task that takes as many hundredths of a second as it is told for its size, and one that needs half of the GPU.
EVEN = ("sh", "-c", "case $MIG_OPT_PROFILE in 1g*) sleep 0.08;; 2g*) sleep 0.04;; *) sleep 0.02;; esac")
LARGE = ("sh", "-c", 'case $MIG_OPT_PROFILE in 1g*) echo "CUDA out of memory"; exit 1;; esac')
COMMANDS = Commands({"even": EVEN, "large": LARGE})


@pytest.mark.parametrize("isolated", [False, True])
def test_the_table_is_right_in_spite_of_faults(machine, tmp_path, isolated):
    for name in ("in-use", "insufficient", "no-compute"):
        machine.fault(name, 2)
    machine.fault("linger", 1, 0.2)
    plan = ProfilePlan(A30, repetitions=2, isolated=isolated)
    found = profile_tasks(COMMANDS, plan, journal=tmp_path / "j", patience=Patience(first=0.01))
    even, large = found.batch.tasks
    assert (even.times.keys(), large.times.keys()) == ({1, 2, 4}, {2, 4})
    assert (even.times[1] >= 0.08, even.times[2] >= 0.04) == (True, True)
    assert (found.left_out, found.failed) == ({"large on 1g": OUT_OF_MEMORY}, {})
    assert found.batch.source.startswith("measured by mig-opt")
    assert found.batch.source.endswith("beside each other" if not isolated else "alone")
    assert found.batch.spread["even"].keys() == {1, 2, 4}
    again = BATCH.from_json(BATCH.to_json(found.batch))
    assert (again, again.source, again.spread) == (found.batch, found.batch.source, found.batch.spread)
    assert machine.instances(0) == []
    journal = read_journal(tmp_path / "j")
    assert validate(journal.batch, journal.schedule).valid
    assert validate(*journal.measured()).valid
    assert len(journal.runs()) == 2 * 3 * 3
    if isolated:
        runs = sorted(journal.runs(), key=lambda run: run.begin)
        assert all(one.end <= two.begin for one, two in pairwise(runs))
    else:
        assert {one.start for one in journal.lifetimes if one.profile == "1g.6gb"} == {0, 1}  # as many as tasks


def test_it_goes_on_where_it_was_interrupted(machine, tmp_path):
    ran = Mock(side_effect=[None, None, None, KeyboardInterrupt])
    plan, journal = ProfilePlan(A30, repetitions=1, warm_up=1), tmp_path / "j"
    with pytest.raises(KeyboardInterrupt):
        profile_tasks(COMMANDS, plan, journal=journal, observe=lambda _, event: event.kind == "ran" and ran())
    found = profile_tasks(COMMANDS, plan, journal=journal)
    assert [len(task.times) for task in found.batch.tasks] == [3, 2]
    assert (len(read_journal(journal).runs()), machine.instances(0)) == (12, [])
    assert profile_tasks(COMMANDS, plan, journal=journal).batch == found.batch, "nothing is left to do"
    refused(profile_tasks, COMMANDS, ProfilePlan(A30, repetitions=2), match="other measurements", journal=journal)
    assert refused(profile_tasks, COMMANDS, 3, journal=journal) == ["plan"]


def test_failures_and_what_cannot_be_done(machine, tmp_path):
    commands = Commands({"good": ("true",), "bad": ("sh", "-c", "exit 7")})
    plan = ProfilePlan(A30, (4,), repetitions=1, warm_up=0)
    found = profile_tasks(commands, plan, journal=tmp_path / "j")
    assert ([task.name for task in found.batch.tasks], found.failed) == (["good"], {"bad on 4g": "exit code 7"})
    machine.fault("no-compute", -1)
    found = profile_tasks(commands, plan, journal=tmp_path / "k", patience=Patience(first=0.01, limit=0.05))
    assert (found.batch, found.execution.complete) == (None, False)
    machine.fault("no-compute", 0)
    assert profile_tasks(commands, plan, journal=tmp_path / "k").batch is not None


def test_models_by_size_batch_and_processes(machine, tmp_path):
    script = 'echo "throughput $(($0 * $1)) latency 0.0$1"; test "$0" -lt 8 || { echo out of memory; exit 1; }'
    commands = Commands(models={"resnet": ("sh", "-c", script, "{batch}", "{processes}")})
    plan = ProfilePlan(A30, (1, 4), repetitions=1, warm_up=0, batches=(2, 8), processes=(1, 3))
    found = profile_tasks(commands, plan, journal=tmp_path / "j")
    (table,) = found.tables
    assert (table.model, table.gpu) == ("resnet", "A30-24GB")
    assert table.points == tuple(
        Point(size, 2, processes, 2.0 * processes, processes / 100) for size in (4, 1) for processes in (1, 3)
    )
    assert set(found.left_out.values()) == {OUT_OF_MEMORY}
    found = profile_tasks(Commands(models={"resnet": ("true",)}), plan, journal=tmp_path / "k")
    assert (set(found.failed.values()), found.tables) == ({"printed no throughput and latency"}, ())
