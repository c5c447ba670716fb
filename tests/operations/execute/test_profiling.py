"""Tasks and models measured on the tests' GPU, with everything that goes wrong on the way."""

from itertools import pairwise
from pathlib import Path

import pytest
from nvml_machine import Machine

from mig_opt.batch.journal import Commands
from mig_opt.errors import InputError
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.journals import read_journal
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.execute.profiles import OUT_OF_MEMORY, ProfilePlan, profile_tasks
from mig_opt.validation import validate

A30 = get_gpu("A30")
# A task that takes as many hundredths of a second as it is told for its size, and one that needs half of the GPU.
EVEN = ("sh", "-c", "case $MIG_OPT_PROFILE in 1g*) sleep 0.08;; 2g*) sleep 0.04;; *) sleep 0.02;; esac")
LARGE = ("sh", "-c", 'case $MIG_OPT_PROFILE in 1g*) echo "CUDA out of memory"; exit 1;; esac')
COMMANDS = Commands({"even": EVEN, "large": LARGE})


@pytest.mark.parametrize("isolated", [False, True])
def test_the_table_is_right_in_spite_of_faults(machine: Machine, tmp_path: Path, isolated: bool) -> None:
    for name in ("in-use", "insufficient", "no-compute"):
        machine.fault(name, 2)
    machine.fault("linger", 1, 0.2)
    plan = ProfilePlan(A30, repetitions=2, isolated=isolated)
    found = profile_tasks(COMMANDS, plan, journal=tmp_path / "j", patience=Patience(first=0.01))
    assert found.batch is not None
    even, large = found.batch.tasks
    assert even.times.keys() == {1, 2, 4}
    assert even.times[1] >= 0.08
    assert even.times[2] >= 0.04
    assert large.times.keys() == {2, 4}
    assert found.left_out == {"large on 1g": OUT_OF_MEMORY}
    assert found.failed == {}
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


def test_it_goes_on_where_it_was_interrupted(machine: Machine, tmp_path: Path) -> None:
    count = 0

    def stop(_: object, event) -> None:
        nonlocal count
        count += event.kind == "ran"
        if count == 4:
            count += 1
            raise KeyboardInterrupt

    plan = ProfilePlan(A30, repetitions=1, warm_up=1)
    with pytest.raises(KeyboardInterrupt):
        profile_tasks(COMMANDS, plan, journal=tmp_path / "j", observe=stop)
    found = profile_tasks(COMMANDS, plan, journal=tmp_path / "j")
    assert found.batch is not None
    assert [len(task.times) for task in found.batch.tasks] == [3, 2]
    assert len(read_journal(tmp_path / "j").runs()) == 12
    assert machine.instances(0) == []
    same = profile_tasks(COMMANDS, plan, journal=tmp_path / "j")  # nothing is left to do
    assert same.batch == found.batch
    with pytest.raises(InputError, match="other measurements"):
        profile_tasks(COMMANDS, ProfilePlan(A30, repetitions=2), journal=tmp_path / "j")


def test_failures_and_what_cannot_be_done(machine: Machine, tmp_path: Path) -> None:
    commands = Commands({"good": ("true",), "bad": ("sh", "-c", "exit 7")})
    plan = ProfilePlan(A30, (4,), repetitions=1, warm_up=0)
    found = profile_tasks(commands, plan, journal=tmp_path / "j")
    assert found.batch is not None
    assert [task.name for task in found.batch.tasks] == ["good"]
    assert found.failed == {"bad on 4g": "exit code 7"}
    machine.fault("no-compute", -1)
    found = profile_tasks(commands, plan, journal=tmp_path / "k", patience=Patience(first=0.01, limit=0.05))
    assert found.batch is None
    assert not found.execution.complete
    machine.fault("no-compute", 0)
    assert profile_tasks(commands, plan, journal=tmp_path / "k").batch is not None


def test_models_by_size_batch_and_processes(machine: Machine, tmp_path: Path) -> None:
    script = 'echo "throughput $(($0 * $1)) latency 0.0$1"; test "$0" -lt 8 || { echo out of memory; exit 1; }'
    commands = Commands(models={"resnet": ("sh", "-c", script, "{batch}", "{processes}")})
    plan = ProfilePlan(A30, (1, 4), repetitions=1, warm_up=0, batches=(2, 8), processes=(1, 3))
    found = profile_tasks(commands, plan, journal=tmp_path / "j")
    (table,) = found.tables
    assert (table.model, table.gpu) == ("resnet", "A30-24GB")
    assert [(p.size, p.batch, p.processes, p.throughput, p.latency) for p in table.points] == [
        (4, 2, 1, 2.0, 0.01),
        (4, 2, 3, 6.0, 0.03),
        (1, 2, 1, 2.0, 0.01),
        (1, 2, 3, 6.0, 0.03),
    ]
    assert set(found.left_out.values()) == {OUT_OF_MEMORY}
    silent = Commands(models={"resnet": ("true",)})
    found = profile_tasks(silent, plan, journal=tmp_path / "k")
    assert set(found.failed.values()) == {"printed no throughput and latency"}
    assert found.tables == ()
