"""A Dask cluster on this machine: a scheduler, and a worker with a nanny for each node, which has GPUs of its own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import node_plans
import pytest
from node_plans import until
from nvml_machine import ALONE, Machine


class Nodes(node_plans.Nodes):
    """The processes of a cluster, started one by one; each can be killed, and started again."""

    def __init__(self, folder: Path, *hosts: str, security: Mapping[str, str] | None = None) -> None:
        self.folder, self.protocol = folder, "tls" if security else "tcp"
        for host in hosts:
            (folder / host).mkdir()
        self.machines = {host: Machine(folder / host, "A30") for host in hosts}
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ALONE), *sys.path])),
            "MIG_OPT_STATE": str(folder / "state"),
            "DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False",
            **(security or {}),
        }
        self._started: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler("0")
        self.port = self._port()
        self.workers = {host: self.start_worker(host) for host in hosts}

    @property
    def engine(self) -> str:
        """The name of the cluster as an engine."""
        return f"dask://127.0.0.1:{self.port}"

    def _start(self, name: str, words: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            program = [sys.executable, "-m", *words]
            process = subprocess.Popen(program, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._started.append(process)
        return process

    def start_scheduler(self, port: str) -> subprocess.Popen[bytes]:
        """Start the scheduler."""
        words = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
        words += ["--protocol", self.protocol]
        return self._start("scheduler", words, self.environment)

    def _port(self) -> str:
        address = re.compile(rf"Scheduler at:\s+{self.protocol}://127.0.0.1:(\d+)")
        until(lambda: address.search(self.log("scheduler")))
        return address.findall(self.log("scheduler"))[-1]

    def log(self, name: str) -> str:
        """The output of a process."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start_worker(self, host: str, **more: str) -> subprocess.Popen[bytes]:
        """Start the nanny and the worker of a node, with more in their environment."""
        address = f"{self.protocol}://127.0.0.1:{self.port}"
        words = ["distributed.cli.dask_worker", address, "--resources", f"mig-{host}=1", "--nthreads", "1"]
        words += ["--no-dashboard", "--local-directory", str(self.folder / host)]
        own = self.machines[host].environment
        gpus = {key: own[key] for key in ("LD_LIBRARY_PATH", "FAKE_NVML")}
        return self._start(host, words, {**self.environment, **gpus, **more})

    def worker_of(self, host: str) -> int:
        """The process of the worker that the nanny of a node keeps."""
        nanny = self.workers[host].pid
        return next(pid for pid in children(nanny) if b"spawn_main" in command_of(pid))

    def processes(self, who: str) -> list[int]:
        """The ``controller`` is the scheduler; the worker of the first node the ``agent``, kept by a nanny."""
        match who:
            case "controller":
                return [self.scheduler.pid]
            case "agent":
                return [self.worker_of("n1")]
            case "keeper":
                return [self.workers["n1"].pid, self.worker_of("n1")]
            case "executor":
                return [self.executor_of("n1")]
        shell = parent(self.executor_of("n1"))
        return [shell, *children(shell)]

    def start_again(self, who: str) -> None:
        """Start what has been killed, and all workers with the scheduler; a worker alone is started by its nanny."""
        if who == "controller":
            self.scheduler.wait()
            time.sleep(1)
            self.scheduler = self.start_scheduler(self.port)
        for host in {"controller": ("n1", "n2"), "keeper": ("n1",)}.get(who, ()):
            self.workers[host].kill()
            self.workers[host].wait()
            self.workers[host] = self.start_worker(host)

    def close(self) -> None:
        """End the cluster, and what it has begun."""
        for lock in self.folder.glob("state/*/*/run.journal.lock"):
            with contextlib.suppress(ValueError, ProcessLookupError):
                if b"mig_opt" in command_of(int(lock.read_text())):
                    os.kill(int(lock.read_text()), signal.SIGKILL)
        for process in reversed(self._started):
            for pid in (*children(process.pid), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def dask_nodes(folder: Path, *hosts: str, security: Mapping[str, str] | None = None) -> Iterator[Nodes]:
    """Give a cluster, which is ended afterwards; with TLS if its certificates are given, as Dask finds them."""
    if not Path("/proc/self").exists():
        pytest.skip("looks for processes in /proc")
    nodes = Nodes(folder, *hosts, security=security)
    try:
        for host in hosts:
            until(lambda host=host: "Registered to" in nodes.log(host))
        yield nodes
    finally:
        nodes.close()


def children(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    found = []
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, path.read_text().split()):
                found += [child, *children(child)]
    return found


def parent(pid: int) -> int:
    """The process that has started a process; 0 if there is none."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def command_of(pid: int) -> bytes:
    """The words with which a process was started; nothing if there is no such process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
