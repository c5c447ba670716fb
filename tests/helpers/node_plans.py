"""A plan of two nodes, and the program that carries it out by an engine, whatever dies meanwhile."""

import contextlib
import getpass
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from nvml_machine import Machine

from mig_opt import Batch, Commands, Run, Task, get_gpu
from mig_opt.batch.timing import retimed_schedule
from mig_opt.files.batch.batches import BATCH as BATCH_FILE
from mig_opt.files.batch.journals import COMMANDS, read_journal
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.validation import validate

USER = getpass.getuser()
BATCH = Batch((Task("a", {2: 0.3}), Task("b", {1: 0.3}), Task("c", {2: 0.3})), get_gpu("A30"), 2)
RUNS = Run("a", 0, "2g.12gb", 0, 0, 1), Run("b", 0, "1g.6gb", 0, 1, 2), Run("c", 1, "2g.12gb", 0, 0, 1)
PLAN = retimed_schedule(BATCH, RUNS)
DEVICES = ["n1/0", "n2/0"]
FOREIGN = ("1g.6gb", 3)
END = {"n1": {("1g.6gb", 0)}, "n2": {("2g.12gb", 0)}}
NOTHING: dict[str, set[tuple[str, int]]] = {"n1": set(), "n2": set()}


class Nodes(Protocol):
    """Nodes that an engine reaches from this machine, and the processes by which it does so."""

    folder: Path
    machines: Mapping[str, Machine]
    environment: Mapping[str, str]

    @property
    def engine(self) -> str: ...
    def processes(self, who: str) -> list[int]:
        """The ``agent`` of the engine on the first node, its ``job`` there, or the ``controller`` of all nodes."""

    def start_again(self, who: str) -> None:
        """Start an ``agent`` or the ``controller`` that has been killed."""

    def executor_of(self, host: str) -> int:
        """The process that carries out the part of a node."""
        (lock,) = self.folder.glob(f"state/*/{host}/run.journal.lock")
        return int(lock.read_text())


def commands(folder: Path, seconds: float, **others: float) -> Commands:
    """Commands that write down their begin and their end; some tasks take other times."""
    note = f'$MIG_OPT_TASK $MIG_OPT_HOST $$ $PWD" >>{shlex.quote(f"{folder}/ran")}'
    begin, end = f'echo "begin {note}', f'echo "end {note}'
    times = {task.name: others.get(task.name, seconds) for task in BATCH.tasks}
    # There is no end if it is killed.
    return Commands({name: ("sh", "-c", f"{begin}; sleep {time} && {end}") for name, time in times.items()})


def ran(folder: Path, word: str) -> list[list[str]]:
    path = folder / "ran"
    lines = [line.split(" ", 4) for line in path.read_text().splitlines()] if path.exists() else []
    return [line[1:] for line in lines if line[0] == word]


def places(nodes: Nodes) -> dict[str, set[tuple[str, int]]]:
    """The instances of each node but the one of somebody else, which is still there."""
    found = {
        host: {(one.profile, one.start) for one in machine.instances(0)} for host, machine in nodes.machines.items()
    }
    assert all(FOREIGN in there for there in found.values())
    return {host: there - {FOREIGN} for host, there in found.items()}


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited for too long"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """True unless a process has ended, be it that nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def signalled(number: int, pids: Iterable[int]) -> None:
    """Send a signal to processes, some of which may be gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def killed_at_once(pids: Sequence[int]) -> None:
    """Kill processes and all that they have started as their control group does, in which none sees another one die."""
    group = Path("/sys/fs/cgroup", "unified" if Path("/sys/fs/cgroup/unified").is_dir() else "", f"mig-opt-{pids[0]}")
    try:
        group.mkdir()
    except OSError:  # where groups may not be made, nobody is awake to see it
        signalled(signal.SIGSTOP, pids)
        signalled(signal.SIGKILL, pids)
        return
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(f"{pid}\n")
    (group / "cgroup.kill").write_text("1\n")
    until(lambda: "populated 0" in (group / "cgroup.events").read_text())
    group.rmdir()


def ends(process: subprocess.Popen[str], code: int | None = 0) -> str:
    """Wait for the end of a process, by any code but 0 if it is None; return what it has said on standard error."""
    _, err = process.communicate(timeout=120)
    assert process.returncode == code if code is not None else process.returncode in (1, 2), err
    return err


class Client:
    """A process that carries out the plan by the cluster."""

    def __init__(self, nodes: Nodes, folder: Path, seconds: float = 1.0, **others: float) -> None:
        self.nodes, self.folder, self.journal = nodes, folder, folder / "run.journal"
        BATCH_FILE.write(BATCH, folder / "batch.json")
        SCHEDULE.write(PLAN, folder / "plan.json")
        COMMANDS.write(commands(folder, seconds, **others), folder / "commands.json")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start ``mig-opt run``: it begins with the plan, unless it is to go on, or to take back."""
        files = [str(self.folder / name) for name in ("batch.json", "plan.json")]
        files += ["--commands", str(self.folder / "commands.json"), "--devices", ",".join(DEVICES)]
        files += ["--engine", self.nodes.engine, "--user", USER]
        given = list(arguments) if "--resume" in arguments or "--undo" in arguments else [*files, *arguments]
        if not arguments:
            given += ["--journal", str(self.journal)]
        pipe = subprocess.PIPE
        program = [sys.executable, "-m", "mig_opt", "run", *given]
        return subprocess.Popen(
            program, env=self.nodes.environment, cwd=self.folder, stdout=pipe, stderr=pipe, text=True
        )

    ends = staticmethod(ends)

    def check(self, *, again: Iterable[str] = ()) -> None:
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

    def kinds(self) -> list[str]:
        """The kinds of what has happened, as the journal tells."""
        return [event.kind for event in read_journal(self.journal).events]

    def begun(self, task: str) -> list[str] | None:
        """The line in which a task has told that it has begun."""
        return next((line for line in ran(self.folder, "begin") if line[0] == task), None)

    def seconds_of(self, task: str) -> float:
        """For how long a task has run, as measured."""
        (found,) = (run.end - run.begin for run in read_journal(self.journal).runs() if run.task == task)
        return found


def running(nodes: Nodes, folder: Path, seconds: float = 1.0, **others: float) -> tuple[Client, subprocess.Popen[str]]:
    """A client whose first task on each node has begun, and its process."""
    client = Client(nodes, folder, seconds, **others)
    process = client.start()
    until(lambda: client.begun("a") and client.begun("c"))
    return client, process
