"""Segments of several processes: NVIDIA's Multi-Process Service starts before them and ends after them."""

from __future__ import annotations

from pathlib import Path

from scripts import Machine

from mig_opt.operations.rollout.changes import change_script
from mig_opt.operations.rollout.nvidia_smi import deployment_script
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.serving.deployment import Deployment, Segment

HOOKS = """
start_segment() { echo "start $1 $CUDA_VISIBLE_DEVICES ${CUDA_MPS_PIPE_DIRECTORY:--}" >>"$FOLDER/done"; }
stop_segment() { echo "stop $1 ${CUDA_MPS_PIPE_DIRECTORY:--}" >>"$FOLDER/done"; echo hook >>"$FOLDER/mps.order"; }
"""


def segment(service: str, start: int, processes: int, profile: str = "1g.6gb") -> Segment:
    return Segment(service, 0, profile, start, batch=8, processes=processes, throughput=100.0, latency=0.05)


SHARED, ALONE = segment("shared", 0, 3), segment("alone", 1, 1)
PLAN = Deployment(("A30",), (SHARED, ALONE))


def test_one_daemon_for_each_instance_with_several_processes(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "A30")
    done = machine.run(deployment_script(PLAN), HOOKS)
    assert done.returncode == 0, done.stderr
    uuid, other = (machine.uuid(0, "1g.6gb", start) for start in (0, 1))
    assert machine.mps == [f"start {uuid}"]
    folder = tmp_path / "mps" / uuid
    assert (tmp_path / "done").read_text().splitlines() == [f"start shared {uuid} {folder}", f"start alone {other} -"]


def test_it_ends_with_its_processes_and_before_the_instance(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "A30")
    machine.run(deployment_script(PLAN), HOOKS)
    uuid = machine.uuid(0, "1g.6gb", 0)
    larger = segment("shared", 2, 2, "2g.12gb")
    steps = (
        ChangeStep("create", 0, "2g.12gb", 2, 0.0, 0.1, begins=larger),
        ChangeStep("destroy", 0, "1g.6gb", 0, 0.1, 0.2, ends=SHARED),
    )
    done = machine.run(change_script(ChangePlan(("A30",), (ALONE,), steps, (), 0.2)), HOOKS)
    assert done.returncode == 0, done.stderr
    new = machine.uuid(0, "2g.12gb", 2)
    assert machine.mps == [f"start {uuid}", f"start {new}", f"quit {uuid}"]
    assert (tmp_path / "done").read_text().splitlines()[-2:] == [
        f"start shared {new} {tmp_path / 'mps' / new}",
        f"stop shared {tmp_path / 'mps' / uuid}",
    ]
    # The daemon is told to quit between the end of the processes and that of the instance.
    said = done.stderr
    assert said.index("stops serving shared") < said.index("stop the Multi-Process") < said.index("destroy 14:0")


def test_a_switch_restarts_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "A30")
    machine.run(deployment_script(PLAN), HOOKS)
    uuid = machine.uuid(0, "1g.6gb", 0)
    step = ChangeStep("switch", 0, "1g.6gb", 0, 0.0, 0.0, SHARED, segment("next", 0, 2))
    assert machine.run(change_script(ChangePlan(("A30",), (ALONE,), (step,), (), 0.0)), HOOKS).returncode == 0
    assert machine.mps == [f"start {uuid}", f"quit {uuid}", f"start {uuid}"]


def test_where_it_is_missing_nothing_is_changed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "A30")
    (tmp_path / "bin" / "nvidia-cuda-mps-control").unlink()
    done = machine.run(deployment_script(PLAN), HOOKS)
    assert (done.returncode, machine.changes) == (1, [])
    assert "segments of several processes need nvidia-cuda-mps-control, which is not there" in done.stderr
    # Who starts processes in another way does not need it.
    assert machine.run(deployment_script(PLAN)).returncode == 0


def test_in_other_machines_it_is_started_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "A30")
    machine.program("ssh", 'echo "$4" >>"$FOLDER/hosts"; bash -c "${*:5}"')
    hooks = HOOKS.replace("start $1", "start $1 at ${MIG_OPT_HOST:-this}")
    done = machine.run(deployment_script(PLAN, devices=["node-1/0"]), hooks)
    assert done.returncode == 0, done.stderr
    assert machine.mps == [f"start {machine.uuid(0, '1g.6gb', 0)}"]
    assert set((tmp_path / "hosts").read_text().split()) == {"node-1"}
    told = [line.split()[:4] for line in (tmp_path / "done").read_text().splitlines()]
    assert told == [["start", name, "at", "node-1"] for name in ("shared", "alone")]
