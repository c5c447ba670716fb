"""Faults of clusters, for each engine: whatever dies, is silent or full, each task ends exactly once.

The table in docs/how-to/run-a-plan.md has a line for each of them.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest
from node_plans import FOREIGN, Client, killed_at_once, ran, running, signalled, until
from slurm_nodes import SlurmNodes

from mig_opt.files.batch.journals import read_journal

pytestmark = pytest.mark.deep


def kill_task(client: Client) -> None:
    line = client.begun("a")
    os.killpg(os.getpgid(int(line[2])), signal.SIGKILL)


def kill_executor(client: Client) -> None:
    os.kill(client.nodes.executor_of("n1"), signal.SIGKILL)


def kill_job(client: Client) -> None:
    """All processes of the part of a node die at once, as with its control group."""
    killed_at_once(client.nodes.processes("job"))


def kill_agent(client: Client) -> None:
    """Death of the process that is asked on a node: the worker of Dask, slurmd."""
    signalled(signal.SIGKILL, client.nodes.processes("agent"))
    time.sleep(1)
    client.nodes.start_again("agent")


def kill_nanny(client: Client) -> None:
    signalled(signal.SIGKILL, client.nodes.processes("keeper"))
    client.nodes.start_again("keeper")


def kill_controller(client: Client) -> None:
    """Death of the process that the client asks: the scheduler of Dask, slurmctld."""
    if isinstance(client.nodes, SlurmNodes):
        time.sleep(6)  # until it has saved its jobs: those that it does not know again keep it from using their nodes
    signalled(signal.SIGKILL, client.nodes.processes("controller"))
    time.sleep(3)
    client.nodes.start_again("controller")


def lose_node(client: Client) -> None:
    """Everything of a node dies at once, the tasks included, and it comes back without its instances."""
    killed_at_once([pid for who in ("agent", "keeper", "job") for pid in client.nodes.processes(who)])
    client.nodes.machines["n1"].reboot()
    client.nodes.machines["n1"].add(0, *FOREIGN)
    if isinstance(client.nodes, SlurmNodes):
        slurm = client.nodes.slurm
        until(lambda: slurm.states()["n1"].startswith("DOWN"))
        client.nodes.start_again("agent")
    else:
        client.nodes.start_again("keeper")


def requeue(client: Client) -> None:
    assert isinstance(client.nodes, SlurmNodes)
    slurm = client.nodes.slurm
    slurm.run("scontrol", "requeue", slurm.run("squeue", "-h", "-w", "n1", "-o", "%i").strip())


Fault = Callable[[Client], None]


def by_engine(*rows: tuple[object, dict[str, object]]) -> list[object]:
    """The engines, what happens there, and what comes of it."""
    return [
        pytest.param(engine, what, outcome, id=f"{engine}-{getattr(what, '__name__', what)}")
        for what, engines in rows
        for engine, outcome in engines.items()
    ]


@pytest.mark.parametrize(
    ("nodes", "death", "again"),
    by_engine(
        (kill_task, {"dask": "a", "slurm": "a"}),
        (kill_executor, {"dask": "", "slurm": ""}),
        (kill_job, {"dask": "a", "slurm": "a"}),
        (kill_agent, {"dask": "", "slurm": ""}),
        (kill_nanny, {"dask": ""}),
        (kill_controller, {"dask": "", "slurm": ""}),
        (lose_node, {"dask": "a", "slurm": "a"}),
        (requeue, {"slurm": "a"}),
    ),
    indirect=["nodes"],
)
def test_each_task_ends_once_whatever_dies(nodes, tmp_path, death, again):
    client, process = running(nodes, tmp_path, 12.0 if death is kill_controller else 2.0)
    death(client)
    assert "Traceback" not in client.ends(process)
    client.check(again=again)


@pytest.mark.parametrize(
    ("nodes", "who", "told"),
    by_engine(
        ("agent", {"dask": True, "slurm": False}),
        ("controller", {"dask": True, "slurm": False}),
        ("executor", {"dask": False, "slurm": True}),
    ),
    indirect=["nodes"],
)
def test_silence_measures_nothing_wrong(nodes, tmp_path, who, told):
    """It is told if nothing is heard of a node for a while; files that Slurm's nodes share tell without it."""
    client, process = running(nodes, tmp_path, 2.0)
    silent = nodes.processes(who)
    signalled(signal.SIGSTOP, silent)
    begin = time.monotonic()
    if told:
        until(lambda: "silent" in client.kinds())
    time.sleep(max(0.0, 15 - (time.monotonic() - begin)))
    signalled(signal.SIGCONT, silent)
    err = client.ends(process)
    assert ("n1: no answer for 8 s; what runs there goes on" in err) == told
    assert ("n1: answers again" in err) == told
    assert all(2 <= client.seconds_of(task) < 10 for task in ("a", "c"))
    client.check()


@pytest.mark.parametrize("nodes", ["slurm"], indirect=True)
def test_a_node_that_slurm_gives_up_runs_what_it_has_lost_when_it_is_back(nodes, tmp_path):
    client, process = running(nodes, tmp_path, 25.0, c=1.0)
    silent = nodes.processes("agent")
    signalled(signal.SIGSTOP, silent)
    until(lambda: nodes.slurm.states()["n1"].startswith("DOWN") and client.begun("b"))  # the first task has ended
    signalled(signal.SIGCONT, silent)  # and is ended, since it is of a job that has been requeued
    client.ends(process)
    assert client.kinds().count("died") == 1
    assert all(25 <= client.seconds_of(task) < 40 for task in ("a", "b"))
    client.check(again="b")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_told_and_gone_on_with(nodes, tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", state], check=True)
    try:
        client = Client(nodes, tmp_path, 2.0, a=5.0)
        process = client.start()
        until(lambda: client.begun("a") and "ran" in client.kinds())
        time.sleep(1)  # the other node has cleared up
        free = os.statvfs(state)
        (state / "filler").write_bytes(bytes(free.f_bavail * free.f_bsize))
        assert "No space left on device; mend that, and then go on" in client.ends(process, 1)
        (state / "filler").unlink()
        client.ends(client.start("--resume", str(client.journal)))
        client.check()
    finally:
        subprocess.run(["umount", "--lazy", state], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("nodes", ["slurm"], indirect=True)
def test_a_job_that_slurm_holds_since_the_disk_of_slurmd_is_full(nodes, tmp_path):
    slurm, spool = nodes.slurm, nodes.slurm.root / "spool" / "n1"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", spool], check=True)
    try:
        free = os.statvfs(spool)
        (spool / "filler").write_bytes(bytes(free.f_bavail * free.f_bsize))
        client = Client(nodes, tmp_path)
        process = client.start()
        until(lambda: "held" in slurm.run("squeue", "-h", "-t", "PENDING", "-o", "%r"))
        until(lambda: "silent" in client.kinds())
        job = slurm.run("squeue", "-h", "-t", "PENDING", "-o", "%i").strip()
        (spool / "filler").unlink()
        slurm.run("scontrol", "update", "NodeName=n1", "State=RESUME")
        slurm.run("scontrol", "release", job)
        err = client.ends(process)
        assert f"n1: job {job} waits in Slurm: launch failed requeued held; see: scontrol show node n1; then: " in err
        assert "n1: goes on" in err
        client.check()
    finally:
        subprocess.run(["umount", "--lazy", spool], check=True)


def test_the_client_dies_and_another_goes_on(nodes, tmp_path):
    client = Client(nodes, tmp_path)
    process = client.start()
    until(lambda: client.begun("a"))
    until(lambda: "run" in client.kinds())
    process.kill()
    process.communicate()
    time.sleep(2)  # meanwhile the nodes go on
    client.ends(client.start("--resume", str(client.journal)))
    client.check()


def test_ctrl_c_ends_the_tasks_on_all_nodes(nodes, tmp_path):
    client, process = running(nodes, tmp_path, 3.0)
    process.send_signal(signal.SIGINT)
    client.ends(process, 130)
    kinds = client.kinds()
    assert kinds[-1] == "stop"
    assert kinds.count("died") == 2
    if isinstance(nodes, SlurmNodes):
        until(lambda: nodes.slurm.run("squeue", "-h") == "")
    time.sleep(3.5)
    assert ran(tmp_path, "end") == []
    client.ends(client.start("--resume", str(client.journal)))
    client.check(again=("a", "c"))


def test_the_same_execution_begun_twice_at_once(nodes, tmp_path):
    client = Client(nodes, tmp_path, 0.5)
    first = client.start()
    until(lambda: client.begun("a"))
    second = client.start("--resume", str(client.journal))
    assert "still goes on in another process" in client.ends(second, 2)
    copy = tmp_path / "copy.journal"
    copy.write_bytes(client.journal.read_bytes().partition(b"\n")[0] + b"\n")
    client.ends(client.start("--resume", str(copy)))
    client.ends(first)
    assert read_journal(copy).ended
    client.check()
