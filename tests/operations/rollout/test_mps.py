"""Segments of several processes: NVIDIA's Multi-Process Service starts before them and ends after them."""

import pytest
from scripts import Machine, segment

from mig_opt import Deployment
from mig_opt.operations.rollout.changes import change_script
from mig_opt.operations.rollout.nvidia_smi import deployment_script
from mig_opt.serving.change_plan import ChangePlan, ChangeStep

HOOKS = """
start_segment() { echo "start $1 $CUDA_VISIBLE_DEVICES ${CUDA_MPS_PIPE_DIRECTORY:--}" >>"$FOLDER/done"; }
stop_segment() { echo "stop $1 ${CUDA_MPS_PIPE_DIRECTORY:--}" >>"$FOLDER/done"; echo hook >>"$FOLDER/mps.order"; }
"""


SHARED, ALONE = segment("shared", 0, "1g.6gb", 0, processes=3), segment("alone", 0, "1g.6gb", 1)
PLAN = Deployment(("A30",), (SHARED, ALONE))


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, "A30")


def change(*steps: ChangeStep) -> str:
    return change_script(ChangePlan(("A30",), (ALONE,), steps, (), 0.2))


def test_one_daemon_for_each_instance_with_several_processes(machine, tmp_path):
    machine.run(deployment_script(PLAN), HOOKS)
    uuid, other = (machine.uuid(0, "1g.6gb", start) for start in (0, 1))
    assert machine.mps == [f"start {uuid}"]
    folder = tmp_path / "mps" / uuid
    assert (tmp_path / "done").read_text().splitlines() == [f"start shared {uuid} {folder}", f"start alone {other} -"]


def test_it_ends_with_its_processes_and_before_the_instance(machine, tmp_path):
    machine.run(deployment_script(PLAN), HOOKS)
    uuid = machine.uuid(0, "1g.6gb", 0)
    larger = segment("shared", 0, "2g.12gb", 2, processes=2)
    create = ChangeStep("create", 0, "2g.12gb", 2, 0.0, 0.1, begins=larger)
    done = machine.run(change(create, ChangeStep("destroy", 0, "1g.6gb", 0, 0.1, 0.2, ends=SHARED)), HOOKS)
    new = machine.uuid(0, "2g.12gb", 2)
    assert machine.mps == [f"start {uuid}", f"start {new}", f"quit {uuid}"]
    assert (tmp_path / "done").read_text().splitlines()[-2:] == [
        f"start shared {new} {tmp_path / 'mps' / new}",
        f"stop shared {tmp_path / 'mps' / uuid}",
    ]
    # The daemon is told to quit between the end of the processes and that of the instance.
    said = done.stderr
    assert said.index("stops serving shared") < said.index("stop the Multi-Process") < said.index("destroy 14:0")


def test_a_switch_restarts_it(machine):
    machine.run(deployment_script(PLAN), HOOKS)
    uuid = machine.uuid(0, "1g.6gb", 0)
    new = segment("next", 0, "1g.6gb", 0, processes=2)
    machine.run(change(ChangeStep("switch", 0, "1g.6gb", 0, 0.0, 0.0, SHARED, new)), HOOKS)
    assert machine.mps == [f"start {uuid}", f"quit {uuid}", f"start {uuid}"]


def test_a_folder_that_another_user_can_exchange_is_refused(machine, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "mps").symlink_to("other")
    done = machine.run(deployment_script(PLAN), HOOKS, code=1)
    assert f"error: GPU 0: {tmp_path}/mps must be a folder of the user who runs this; set MPS_FOLDER" in done.stderr
    assert machine.mps == []


def test_where_it_is_missing_nothing_is_changed(machine, tmp_path):
    (tmp_path / "bin" / "nvidia-cuda-mps-control").unlink()
    done = machine.run(deployment_script(PLAN), HOOKS, code=1)
    assert machine.changes == []
    assert "segments of several processes need nvidia-cuda-mps-control, which is not there" in done.stderr
    # Who starts processes in another way does not need it.
    machine.run(deployment_script(PLAN))


def test_in_other_machines_it_is_started_there(machine, tmp_path):
    machine.program("ssh", 'echo "$4" >>"$FOLDER/hosts"; bash -c "${*:5}"')
    hooks = HOOKS.replace("start $1", "start $1 at ${MIG_OPT_HOST:-this}")
    machine.run(deployment_script(PLAN, devices=["node-1/0"]), hooks)
    assert machine.mps == [f"start {machine.uuid(0, '1g.6gb', 0)}"]
    assert set((tmp_path / "hosts").read_text().split()) == {"node-1"}
    told = [line.split()[:4] for line in (tmp_path / "done").read_text().splitlines()]
    assert told == [["start", name, "at", "node-1"] for name in ("shared", "alone")]
