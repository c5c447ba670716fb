"""Plans of two nodes by each engine: whatever dies, each task ends exactly once."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from node_plans import BATCH, DEVICES, PLAN, Client, Nodes, commands, ran, until
from slurm_nodes import SlurmNodes

from mig_opt.errors import InputError
from mig_opt.files.batch.journals import read_journal
from mig_opt.operations.execute.schedules import run_schedule


def test_a_plan_is_carried_out_and_taken_back(nodes: Nodes, tmp_path: Path) -> None:
    client = Client(nodes, tmp_path, 0.5)
    client.ends(client.start())
    assert sorted(line[:2] for line in ran(tmp_path, "begin")) == [["a", "n1"], ["b", "n1"], ["c", "n2"]]
    assert all(0.5 <= client.seconds_of(task) < 1.5 for task in "abc")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    client.check()


@pytest.mark.parametrize(("death", "again"), [(Client.kill_task, ("a",)), (Client.kill_executor, ())])
def test_each_task_ends_once_whatever_dies_on_a_node(
    nodes: Nodes, tmp_path: Path, death: Callable[[Client], None], again: tuple[str, ...]
) -> None:
    client = Client(nodes, tmp_path, 2.0)
    client.outlives(lambda: death(client), again)


def test_the_client_dies_and_another_goes_on(nodes: Nodes, tmp_path: Path) -> None:
    client = Client(nodes, tmp_path)
    process = client.start()
    until(lambda: client.begun("a"))
    until(lambda: "run" in [event.kind for event in read_journal(client.journal).events])
    process.kill()
    process.communicate()
    time.sleep(2)  # meanwhile the nodes go on
    client.ends(client.start("--resume", str(client.journal)))
    client.check()


def test_ctrl_c_ends_the_tasks_on_all_nodes(nodes: Nodes, tmp_path: Path) -> None:
    client = Client(nodes, tmp_path, 3.0)
    process = client.start()
    until(lambda: client.begun("a") and client.begun("c"))
    process.send_signal(signal.SIGINT)
    client.ends(process, 130)
    kinds = [event.kind for event in read_journal(client.journal).events]
    assert kinds[-1] == "stop"
    assert kinds.count("died") == 2
    if isinstance(nodes, SlurmNodes):
        until(lambda: nodes.slurm.run("squeue", "-h") == "")
    time.sleep(3.5)
    assert ran(tmp_path, "end") == []
    client.ends(client.start("--resume", str(client.journal)))
    client.check(again=("a", "c"))


def test_the_same_execution_begun_twice_at_once(nodes: Nodes, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("address", ["dask://10.0.0.1:8786", "dask://node-1:8786"])
def test_a_scheduler_elsewhere_without_tls_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"engine: whoever reaches .* without TLS .* certificates"):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), journal=tmp_path / "j", devices=DEVICES, engine=address)
    assert not (tmp_path / "j").exists()


@pytest.mark.parametrize("address", ["dask://", "dask://node", "ray://node:1", "ssh"])
def test_engines_that_there_are_not(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"engine: must be dask://HOST:PORT"):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), journal=tmp_path / "j", devices=DEVICES, engine=address)
