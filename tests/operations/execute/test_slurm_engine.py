"""Plans of two nodes on a real Slurm: whatever dies or falls silent, each task ends exactly once."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from dask_nodes import command_of
from node_plans import FOREIGN, NOTHING, Client, places, ran, until
from slurm_nodes import SlurmNodes

from mig_opt.files.batch.journals import read_journal

pytestmark = [pytest.mark.deep, pytest.mark.parametrize("nodes", ["slurm"], indirect=True)]


# Deaths of what belongs to Slurm


def kill_job(client: Client, nodes: SlurmNodes) -> None:
    """All processes of the job die at once, as with its control group."""
    for pid in nodes.processes_of("n1"):
        if b"slurmstepd" not in command_of(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def kill_slurmd(_: Client, nodes: SlurmNodes) -> None:
    os.kill(nodes.slurm.pid("slurmd-n1"), signal.SIGKILL)
    time.sleep(1)
    nodes.slurm.service("start", "slurmd-n1")


def kill_slurmctld(_: Client, nodes: SlurmNodes) -> None:
    time.sleep(6)  # until it has saved its jobs: those that it does not know again keep it from using their nodes
    os.kill(nodes.slurm.pid("slurmctld"), signal.SIGKILL)
    time.sleep(3)
    nodes.slurm.service("start", "slurmctld")


def kill_node(client: Client, nodes: SlurmNodes) -> None:
    """Everything of a node dies, the tasks included, and it comes back without its instances."""
    processes = nodes.processes_of("n1")
    for pid in (nodes.slurm.pid("slurmd-n1"), *processes):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    client.kill_task()
    nodes.machines["n1"].reboot()
    nodes.machines["n1"].add(0, *FOREIGN)
    until(lambda: nodes.slurm.states()["n1"].startswith("DOWN"))
    nodes.slurm.service("start", "slurmd-n1")


def requeue(_: Client, nodes: SlurmNodes) -> None:
    nodes.slurm.run("scontrol", "requeue", nodes.job_of("n1"))


@pytest.mark.parametrize(
    ("death", "again"),
    [
        (kill_job, ("a",)),
        (kill_slurmd, ()),
        (kill_slurmctld, ()),
        (kill_node, ("a",)),
        (requeue, ("a",)),
    ],
)
def test_each_task_ends_once_whatever_dies(
    nodes: SlurmNodes, tmp_path: Path, death: Callable[[Client, SlurmNodes], None], again: tuple[str, ...]
) -> None:
    client = Client(nodes, tmp_path, 10.0 if death is kill_slurmctld else 2.0)
    client.outlives(lambda: death(client, nodes), again)


@pytest.mark.parametrize("who", ["job", "slurmctld"])
def test_silence_is_told_within_ten_seconds_and_measures_nothing_wrong(
    nodes: SlurmNodes, tmp_path: Path, who: str
) -> None:
    client = Client(nodes, tmp_path, 2.0)
    process = client.start()
    until(lambda: client.begun("a") and client.begun("c"))
    stopped = [nodes.slurm.pid("slurmctld")]
    if who == "job":  # all of it but its task, which ends meanwhile
        words = ((pid, command_of(pid)) for pid in nodes.processes_of("n1"))
        stopped = [pid for pid, line in words if b"slurm_script" in line or b"mig_opt.cli" in line]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    if who == "slurmctld":  # the nodes go on, and their journals tell of it
        time.sleep(12)
    else:
        until(lambda: "silent" in [event.kind for event in read_journal(client.journal).events])
        assert time.monotonic() - begin < 10
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    err = client.ends(process)
    if who == "job":
        assert "n1: no answer for 8 s; what runs there goes on" in err
        assert "n1: answers again" in err
    assert all(2 <= client.seconds_of(task) < 3 for task in ("a", "c"))
    client.check()


def test_what_is_taken_back_is_ended_first(nodes: SlurmNodes, tmp_path: Path) -> None:
    client = Client(nodes, tmp_path, 60.0)
    process = client.start()
    until(lambda: client.begun("a") and client.begun("c"))
    process.kill()
    process.communicate()
    client.ends(client.start("--undo", str(client.journal)))
    assert places(nodes) == NOTHING
    assert ran(tmp_path, "end") == []


# What is refused


def test_nodes_that_begin_no_job_are_told_before_anything_is_changed(nodes: SlurmNodes, tmp_path: Path) -> None:
    nodes.slurm.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=fan")
    client = Client(nodes, tmp_path)
    err = client.ends(client.start(), 2)
    assert "n2: is IDLE+DRAIN in Slurm, and begins no job; see: scontrol show node n2" in err
    assert not client.journal.exists()
    assert places(nodes) == NOTHING


def test_a_node_with_another_version_changes_nothing(nodes: SlurmNodes, tmp_path: Path) -> None:
    other = tmp_path / "other" / "mig_opt-0.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: mig-opt\nVersion: 0.9\n")
    with (nodes.slurm.root / "n2" / "environment").open("a") as file:
        file.write(f"export PYTHONPATH={other.parent}\n")
    client = Client(nodes, tmp_path, 0.2)
    err = client.ends(client.start(), 1)
    version = metadata.version("mig-opt")
    assert f"n2: error: has mig_opt 0.9, and here is {version}: pip install mig-opt=={version}" in err
    assert places(nodes)["n2"] == set()
