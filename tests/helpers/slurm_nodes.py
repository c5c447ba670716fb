"""Nodes of a real Slurm, each with GPUs of its own, on which an engine carries plans out."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from dask_nodes import children, command_of, parent
from node_plans import Nodes
from nvml_machine import Machine
from slurm_cluster import Cluster, cluster

_DAEMONS = {"controller": "slurmctld", "agent": "slurmd-n1"}


class SlurmNodes(Nodes):
    """Nodes of Slurm, each with GPUs of its own, which its jobs see."""

    @property
    def engine(self) -> str:
        return "slurm"

    def __init__(self, slurm: Cluster) -> None:
        self.slurm, self.folder = slurm, slurm.root.parent
        self.machines = {host: Machine(slurm.root / host, "A30") for host in slurm.machines}
        for host, machine in self.machines.items():
            (slurm.root / host / "environment").write_text(f"export FAKE_NVML={machine.path}\n")
        path = self.machines["n1"].environment["LD_LIBRARY_PATH"]
        self.environment = {**slurm.environment, "LD_LIBRARY_PATH": path, "MIG_OPT_STATE": str(self.folder / "state")}

    def processes(self, who: str) -> list[int]:
        """The ``controller`` is slurmctld; on the first node the ``agent`` is slurmd, the ``keeper`` slurmstepd."""
        if who in _DAEMONS:
            return [self.slurm.pid(_DAEMONS[who])]
        mark = f"{self.slurm.root}/spool/n1/".encode()
        scripts = [pid for pid in (int(path.name) for path in Path("/proc").glob("[1-9]*")) if mark in command_of(pid)]
        if who == "keeper":
            return [pid for pid in set(map(parent, scripts)) if command_of(pid).startswith(b"slurmstepd:")]
        if who == "executor":  # and the script around it, which tells that it lives
            return [*scripts, self.executor_of("n1")]
        return [*scripts, *(child for pid in scripts for child in children(pid))]

    def start_again(self, who: str) -> None:
        self.slurm.service("start", _DAEMONS[who])


@contextlib.contextmanager
def slurm_nodes(folder: Path) -> Iterator[SlurmNodes]:
    """Give two nodes, which are ended afterwards."""
    with cluster(folder / "s", {"n1": (), "n2": ()}) as slurm:
        slurm.describe({"n1": "", "n2": ""}, "")
        found = SlurmNodes(slurm)
        slurm.start()
        yield found
