"""Nodes of a real Slurm, each with GPUs of its own, on which an engine carries plans out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from dask_nodes import children, command_of, parent
from nvml_machine import Machine
from slurm_cluster import Cluster, cluster


class SlurmNodes:
    """Nodes of Slurm, each with GPUs of its own, which its jobs see."""

    engine = "slurm"

    def __init__(self, slurm: Cluster) -> None:
        self.slurm = slurm
        self.machines = {host: Machine(slurm.root / host, "A30") for host in slurm.machines}
        for host, machine in self.machines.items():
            (slurm.root / host / "environment").write_text(f"export FAKE_NVML={machine.path}\n")

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the program that submits the jobs."""
        path = self.machines["n1"].environment["LD_LIBRARY_PATH"]
        state = str(self.slurm.root.parent / "state")
        return {**self.slurm.environment, "LD_LIBRARY_PATH": path, "MIG_OPT_STATE": state}

    def executor_of(self, host: str) -> int:
        """The process that carries out the part of a node."""
        (lock,) = self.slurm.root.parent.glob(f"state/*/{host}/run.journal.lock")
        return int(lock.read_text())

    def job_of(self, host: str) -> str:
        """The number of the job of a node."""
        return self.slurm.run("squeue", "-h", "-w", host, "-o", "%i").strip()

    def processes_of(self, host: str) -> list[int]:
        """The script that Slurm has started on a node, and the processes that keep it and that it has started."""
        mark = f"{self.slurm.root}/spool/{host}/".encode()
        numbers = [int(path.name) for path in Path("/proc").glob("[1-9]*")]
        scripts = [pid for pid in numbers if mark in command_of(pid)]
        keepers = [pid for pid in set(map(parent, scripts)) if command_of(pid).startswith(b"slurmstepd:")]
        return [*keepers, *scripts, *(child for pid in (*keepers, *scripts) for child in children(pid))]


@contextlib.contextmanager
def slurm_nodes(folder: Path) -> Iterator[SlurmNodes]:
    """Give two nodes, which are ended afterwards."""
    with cluster(folder / "s", {"n1": (), "n2": ()}) as slurm:
        slurm.describe({"n1": "", "n2": ""}, "")
        found = SlurmNodes(slurm)
        slurm.start()
        yield found
