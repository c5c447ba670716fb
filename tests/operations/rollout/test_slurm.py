"""Lines for Slurm before and after a change, with drain and resume around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Command

from mig_opt import FleetState, HeldInstance, InputError, Migration, get_gpu
from mig_opt.files.fleet.states import STATE as STATE_FILE
from mig_opt.operations.rollout.slurm import slurm_change

A100 = get_gpu("A100")
NODES = ("n1", "n1", "n2")
HELD = (
    HeldInstance(0, "1g.5gb", 0, "job 1"),
    HeldInstance(0, "1g.5gb", 1, "job 2"),
    HeldInstance(1, "3g.20gb", 4, "job 3"),
    HeldInstance(2, "2g.10gb", 0, "job 4"),
)
STATE = FleetState(A100, 3, HELD, nodes=NODES)
MOVE = Migration(0, "1g.5gb", 1, 2, 6, "job 2")


def test_states_name_their_nodes() -> None:
    with pytest.raises(InputError, match="add its nodes"):
        slurm_change(FleetState(A100, 3, HELD), [MOVE])


def test_a_change_drains_before_and_resumes_after() -> None:
    text = slurm_change(STATE, [MOVE])
    lines = text.splitlines()
    drain, resume = (next(at for at, line in enumerate(lines) if word in line) for word in ("DRAIN", "RESUME"))
    before = [line[4:] for line in lines[drain:resume] if line.startswith("# - NodeName") and "Name=gpu" in line]
    after = [line[4:] for line in lines[drain:resume] if line.startswith("# + NodeName") and "Name=gpu" in line]
    assert before == [
        "NodeName=n1 AutoDetect=nvml Name=gpu Type=a100_1g.5gb Count=2",
        "NodeName=n1 AutoDetect=nvml Name=gpu Type=a100_3g.20gb Count=1",
        "NodeName=n2 AutoDetect=nvml Name=gpu Type=a100_2g.10gb Count=1",
    ]
    assert after == [
        "NodeName=n1 AutoDetect=nvml Name=gpu Type=a100_1g.5gb Count=1",
        "NodeName=n1 AutoDetect=nvml Name=gpu Type=a100_3g.20gb Count=1",
        "NodeName=n2 AutoDetect=nvml Name=gpu Type=a100_1g.5gb Count=1",
        "NodeName=n2 AutoDetect=nvml Name=gpu Type=a100_2g.10gb Count=1",
    ]
    assert "# + NodeName=n2 Gres=gpu:a100_1g.5gb:1,gpu:a100_2g.10gb:1" in lines
    assert "#    1. 1g.5gb@1 of GPU 0 of n1 to 6 of GPU 0 of n2 (job 2)" in lines
    # All that is to be executed are commands; the rest are comments.
    commands = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert commands == ["scontrol", "squeue", "scontrol", "scontrol"]


def test_only_nodes_that_change_are_drained() -> None:
    within = Migration(0, "1g.5gb", 1, 1, 0, "job 2")
    assert "NodeName=n1 State=DRAIN" in slurm_change(STATE, [within])
    assert "n2" not in slurm_change(STATE, [within])
    assert slurm_change(STATE, []) == "# Nothing changes.\n"


def test_idle_instances_stay_unless_they_are_in_the_way() -> None:
    idle = (HeldInstance(0, "1g.5gb", 5, idle=True), HeldInstance(2, "2g.10gb", 4, idle=True))
    state = FleetState(A100, 3, (*HELD, *idle), nodes=NODES)
    assert "# + NodeName=n2 Gres=gpu:a100_1g.5gb:1,gpu:a100_2g.10gb:2" in slurm_change(state, [MOVE])
    text = slurm_change(state, [MOVE], room=[(2, "1g.5gb", 5)])
    assert (
        "#    1. destroy the idle 2g.10gb@4 of GPU 0 of n2\n#    2. 1g.5gb@1 of GPU 0 of n1 to 6 of GPU 0 of n2" in text
    )
    assert "# + NodeName=n2 Gres=gpu:a100_1g.5gb:1,gpu:a100_2g.10gb:1" in text
    assert "State=DRAIN" in slurm_change(state, [], room=[(0, "1g.5gb", 5)])


def test_the_command_writes_them(run: Command, tmp_path: Path) -> None:
    path, out = tmp_path / "state.json", tmp_path / "change.txt"
    STATE_FILE.write(STATE, path)
    ended = run("defragment", path, "--free", "nodes", "--slurm", out)
    assert (ended.code, f"Lines for Slurm written to {out}." in ended.out) == (0, True)
    assert "State=RESUME" in out.read_text()
    STATE_FILE.write(FleetState(A100, 3, HELD), path)
    assert "--slurm: the state does not say which GPUs are on which node" in run("defragment", path, "--slurm", out).err
