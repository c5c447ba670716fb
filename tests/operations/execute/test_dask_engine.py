"""Plans of two nodes on a Dask cluster: whatever dies or falls silent, each task ends exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dask_nodes import USER, Nodes, dask_nodes, until

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.journal import Commands, Journal
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.errors import InputError
from mig_opt.files.batch.batches import BATCH as BATCH_FILE
from mig_opt.files.batch.journals import COMMANDS, read_journal, write_journal
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.operations.execute.schedules import run_schedule, undo_schedule
from mig_opt.validation import validate

pytest.importorskip("distributed")

BATCH = Batch((Task("a", {2: 0.3}), Task("b", {1: 0.3}), Task("c", {2: 0.3})), get_gpu("A30"), 2)
PLAN = Schedule(
    (
        Run("a", 0, "2g.12gb", 0, 0.12, 0.42),
        Run("b", 0, "1g.6gb", 0, 0.63, 0.93),
        Run("c", 1, "2g.12gb", 0, 0.12, 0.42),
    ),
    (
        Operation("create", 0, "2g.12gb", 0, 0.0, 0.12),
        Operation("destroy", 0, "2g.12gb", 0, 0.42, 0.52),
        Operation("create", 0, "1g.6gb", 0, 0.52, 0.63),
        Operation("create", 1, "2g.12gb", 0, 0.0, 0.12),
    ),
)
DEVICES = ["n1/0", "n2/0"]
FOREIGN = ("1g.6gb", 3)
END = {"n1": {("1g.6gb", 0)}, "n2": {("2g.12gb", 0)}}
NOTHING: dict[str, set[tuple[str, int]]] = {"n1": set(), "n2": set()}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with dask_nodes(tmp_path, "n1", "n2") as found:
        for machine in found.machines.values():
            machine.add(0, *FOREIGN, pid=4711)
        yield found


def commands(folder: Path, seconds: float) -> Commands:
    """Commands that write down their begin and their end."""
    begin, end = (f'echo "{word} $MIG_OPT_TASK $MIG_OPT_HOST $$" >>{folder}/ran' for word in ("begin", "end"))
    script = f"{begin}; sleep {seconds}; {end}"
    return Commands({task.name: ("sh", "-c", script) for task in BATCH.tasks})


def ran(folder: Path, word: str) -> list[list[str]]:
    path = folder / "ran"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [line[1:] for line in lines if line[0] == word]


def places(nodes: Nodes) -> dict[str, set[tuple[str, int]]]:
    """The instances of each node but the one of somebody else, which is still there."""
    found = {
        host: {(one.profile, one.start) for one in machine.instances(0)} for host, machine in nodes.machines.items()
    }
    assert all(FOREIGN in there for there in found.values())
    return {host: there - {FOREIGN} for host, there in found.items()}


class Client:
    """A process that carries out the plan by the cluster."""

    def __init__(self, nodes: Nodes, folder: Path, seconds: float = 1.0) -> None:
        self.nodes, self.folder, self.journal = nodes, folder, folder / "run.journal"
        BATCH_FILE.write(BATCH, folder / "batch.json")
        SCHEDULE.write(PLAN, folder / "plan.json")
        COMMANDS.write(commands(folder, seconds), folder / "commands.json")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start ``mig-opt run``: it begins with the plan, unless it is to go on, or to take back."""
        files = [str(self.folder / name) for name in ("batch.json", "plan.json")]
        files += ["--commands", str(self.folder / "commands.json"), "--devices", ",".join(DEVICES)]
        files += ["--engine", self.nodes.engine, "--user", USER]
        given = list(arguments) if "--resume" in arguments or "--undo" in arguments else [*files, *arguments]
        if not arguments:
            given += ["--journal", str(self.journal)]
        pipe = subprocess.PIPE
        program = [sys.executable, "-m", "mig_opt.cli", "run", *given]
        return subprocess.Popen(program, env=self.nodes.environment, stdout=pipe, stderr=pipe, text=True)

    def ends(self, process: subprocess.Popen[str], code: int = 0) -> str:
        """Wait for the end of a process; return what it has said on standard error."""
        _, err = process.communicate(timeout=120)
        assert process.returncode == code, err
        return err

    def check(self, *, again: tuple[str, ...] = ()) -> None:
        """Check that everything has been done once, measured rightly, and is taken back by ``--undo``."""
        whole = read_journal(self.journal)
        assert whole.ended
        steps = [event for event in whole.events if event.instance is not None or event.task is not None]
        assert len(set(steps)) == len(steps), "an event is told twice"
        assert Counter(line[0] for line in ran(self.folder, "end")) == Counter("abc")
        assert Counter(line[0] for line in ran(self.folder, "begin")) == Counter("abc") + Counter(again)
        assert sorted(run.task for run in whole.runs()) == ["a", "b", "c"]
        assert all(run.code == 0 for run in whole.runs())
        assert validate(*whole.measured()).valid
        assert places(self.nodes) == END
        self.ends(self.start("--undo", str(self.journal)))
        assert places(self.nodes) == NOTHING

    def begun(self, task: str) -> list[str] | None:
        """The line in which a task has told that it has begun."""
        return next((line for line in ran(self.folder, "begin") if line[0] == task), None)

    def seconds_of(self, task: str) -> float:
        """For how long a task has run, as measured."""
        (found,) = (run.end - run.begin for run in read_journal(self.journal).runs() if run.task == task)
        return found


@pytest.mark.deep
def test_a_plan_is_carried_out_and_taken_back(nodes: Nodes, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    options = {"journal": journal, "devices": DEVICES, "engine": nodes.engine, "user": USER}
    events: list[str] = []
    found = run_schedule(
        BATCH, PLAN, commands(tmp_path, 0.2), observe=lambda _, event: events.append(event.kind), **options
    )
    assert found.complete
    assert sorted(line[:2] for line in ran(tmp_path, "begin")) == [["a", "n1"], ["b", "n1"], ["c", "n2"]]
    assert places(nodes) == END
    whole = read_journal(journal)
    assert [event.kind for event in whole.events] == events
    assert validate(*whole.measured()).valid
    assert all(0.2 <= run.end - run.begin < 1 for run in whole.runs())
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert undo_schedule(journal) == []
    assert places(nodes) == NOTHING


# Deaths


def kill_task(client: Client) -> None:
    line = client.begun("a")
    assert line is not None
    os.killpg(os.getpgid(int(line[2])), signal.SIGKILL)


def kill_executor(client: Client) -> None:
    os.kill(client.nodes.executor_of("n1"), signal.SIGKILL)


def kill_worker(client: Client) -> None:
    os.kill(client.nodes.worker_of("n1"), signal.SIGKILL)


def kill_nanny(client: Client) -> None:
    worker, nanny = client.nodes.worker_of("n1"), client.nodes.workers["n1"]
    nanny.kill()
    nanny.wait()
    os.kill(worker, signal.SIGKILL)
    client.nodes.workers["n1"] = client.nodes.start_worker("n1")


def kill_node(client: Client) -> None:
    """Everything of a node dies, the tasks included, and it comes back without its instances."""
    kill_nanny(client)
    kill_executor(client)
    kill_task(client)
    client.nodes.machines["n1"].reboot()
    client.nodes.machines["n1"].add(0, *FOREIGN)


def kill_scheduler(client: Client) -> None:
    client.nodes.scheduler.kill()
    client.nodes.scheduler.wait()
    time.sleep(1)
    client.nodes.scheduler = client.nodes.start_scheduler(client.nodes.port)
    for host in ("n1", "n2"):
        client.nodes.workers[host].kill()
        client.nodes.workers[host].wait()
        client.nodes.workers[host] = client.nodes.start_worker(host)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("death", "again"),
    [
        (kill_task, ("a",)),
        (kill_executor, ()),
        (kill_worker, ()),
        (kill_nanny, ()),
        (kill_node, ("a",)),
        (kill_scheduler, ()),
    ],
)
def test_each_task_ends_once_whatever_dies(
    nodes: Nodes, tmp_path: Path, death: Callable[[Client], None], again: tuple[str, ...]
) -> None:
    client = Client(nodes, tmp_path, 2.0)
    process = client.start()
    until(lambda: client.begun("a") and client.begun("c"))
    death(client)
    client.ends(process)
    client.check(again=again)


@pytest.mark.deep
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


@pytest.mark.deep
def test_ctrl_c_ends_the_tasks_on_all_nodes(nodes: Nodes, tmp_path: Path) -> None:
    client = Client(nodes, tmp_path, 3.0)
    process = client.start()
    until(lambda: client.begun("a") and client.begun("c"))
    process.send_signal(signal.SIGINT)
    client.ends(process, 130)
    kinds = [event.kind for event in read_journal(client.journal).events]
    assert kinds[-1] == "stop"
    assert kinds.count("died") == 2
    time.sleep(3.5)
    assert ran(tmp_path, "end") == []
    client.ends(client.start("--resume", str(client.journal)))
    client.check(again=("a", "c"))


@pytest.mark.deep
def test_the_same_execution_begun_twice_at_once(nodes: Nodes, tmp_path: Path) -> None:
    client = Client(nodes, tmp_path, 0.5)
    first = client.start()
    until(lambda: client.begun("a"))
    second = client.start("--resume", str(client.journal))
    assert "still goes on in another process" in client.ends(second, 2)
    copy = tmp_path / "copy.journal"
    copy.write_bytes(client.journal.read_bytes().partition(b"\n")[0] + b"\n")
    third = client.start("--resume", str(copy))
    client.ends(third)
    client.ends(first)
    assert read_journal(copy).ended
    client.check()


@pytest.mark.deep
@pytest.mark.parametrize("who", ["worker", "scheduler", "executor"])
def test_silence_is_told_within_ten_seconds_and_measures_nothing_wrong(nodes: Nodes, tmp_path: Path, who: str) -> None:
    client = Client(nodes, tmp_path, 2.0)
    process = client.start()
    until(lambda: client.begun("a"))
    pid = nodes.scheduler.pid if who == "scheduler" else getattr(nodes, f"{who}_of")("n1")
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    if who == "executor":  # its node answers, and its task ends meanwhile
        time.sleep(6)
    else:
        until(lambda: "silent" in [event.kind for event in read_journal(client.journal).events])
        assert time.monotonic() - begin < 10
        time.sleep(max(12 - (time.monotonic() - begin), 0))
    os.kill(pid, signal.SIGCONT)
    err = client.ends(process)
    if who != "executor":
        assert "n1: no answer for 8 s; what runs there goes on" in err
        assert "n1: answers again" in err
    assert 2 <= client.seconds_of("a") < 3
    client.check()


# What is refused


@pytest.mark.parametrize("address", ["dask://10.0.0.1:8786", "dask://node-1:8786"])
def test_a_scheduler_elsewhere_without_tls_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"engine: whoever reaches .* without TLS .* certificates"):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), journal=tmp_path / "j", devices=DEVICES, engine=address)
    assert not (tmp_path / "j").exists()


@pytest.mark.parametrize("address", ["dask://", "dask://node", "ray://node:1", "ssh"])
def test_engines_that_there_are_not(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"engine: must be dask://HOST:PORT"):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), journal=tmp_path / "j", devices=DEVICES, engine=address)


@pytest.mark.deep
def test_what_speaks_against_it_is_told_of_all_nodes_before_anything_is_changed(nodes: Nodes, tmp_path: Path) -> None:
    nodes.machines["n1"].mode(0, 0)
    nodes.machines["n2"].add(0, "1g.6gb", 1, pid=7)
    options = {"journal": tmp_path / "j", "engine": nodes.engine}
    with pytest.raises(InputError) as error:
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), devices=DEVICES, user="nobody-at-all", **options)
    text = str(error.value)
    for part in ("n1: devices[0]: MIG mode is off", "n2: devices[0]: an instance is in the way", "no user 'nobody-at"):
        assert part in text
    with pytest.raises(
        InputError, match=r"n3: has no worker; start there: dask worker tcp://127.0.0.1:\d+ --resources"
    ):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), devices=["n1/0", "n3/0"], user=USER, **options)
    os.kill(nodes.worker_of("n2"), signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(InputError, match=r"n2: its worker has not answered for 8 s"):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), devices=DEVICES, user=USER, **options)
    assert time.monotonic() - begin < 10
    assert not (tmp_path / "j").exists()
    assert [machine.log for machine in nodes.machines.values()] == [[], []]


@pytest.mark.deep
def test_what_has_not_begun_is_taken_back_and_a_stopped_scheduler_is_told(nodes: Nodes, tmp_path: Path) -> None:
    client = Client(nodes, tmp_path)
    words = commands(tmp_path, 0)
    write_journal(Journal(BATCH, PLAN, words, tuple(DEVICES), str(tmp_path), "ab", USER, nodes.engine), client.journal)
    assert undo_schedule(client.journal) == []
    assert places(nodes) == NOTHING
    client.ends(client.start("--dry-run"))
    assert [machine.log for machine in nodes.machines.values()] == [[], []]
    os.kill(nodes.scheduler.pid, signal.SIGSTOP)
    begin = time.monotonic()
    assert "no Dask scheduler answers at tcp://127.0.0.1" in client.ends(client.start("--undo", str(client.journal)), 2)
    assert time.monotonic() - begin < 12
