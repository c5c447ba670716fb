"""Other programs of the machine that matter to partitions: those that hold GPUs, and those that own the partitions."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_MONITORS = {name: name for name in ("nvtop", "nvitop", "gpustat", "netdata", "telegraf", "nvidia-smi")}
_MONITORS |= {"nv-hostengine": "DCGM", "dcgm-exporter": "DCGM exporter", "nvidia_gpu_expo": "nvidia_gpu_exporter"}
"""Monitoring tools that keep GPUs open, by the name of their process (which Linux cuts to 15 characters)."""

_DRA, _HAMI, _MANAGER = "NVIDIA's DRA driver", "HAMi", "NVIDIA's MIG manager"
_PLUGINS = {"gpu-kubelet-plu": _DRA, "vGPUmonitor": _HAMI, "nvidia-mig-mana": _MANAGER}
"""Programs that own partitions, by the name of their process.

These are ``gpu-kubelet-plugin`` of kubernetes-sigs/dra-driver-nvidia-gpu, ``vGPUmonitor``, which stands beside the
device plugin of Project-HAMi/HAMi in each of its pods, and ``nvidia-mig-manager`` of NVIDIA/mig-parted.
"""

_DEVICE_PLUGIN, _HAMI_CONFIG = "nvidia-device-p", "--config-file=/device-config.yaml"
"""HAMi's device plugin, too, is called ``nvidia-device-plugin``; only HAMi's has this file as an argument."""

_KUBELETS = ("var/lib/kubelet", "var/lib/k0s/kubelet", "var/snap/microk8s/common/var/lib/kubelet")
_DRA_SOCKETS = "plugins/gpu.nvidia.com/*.sock"

_INSTEAD = (
    "drain the node and remove the plugin from it first, or let Kubernetes place the work: mig-opt defragment says "
    "which pods to move"
)
_DEEDS = {
    _DRA: f"gives what others make to pods, or destroys it when it starts; {_INSTEAD}",
    _HAMI: f"may destroy what others make; {_INSTEAD}",
    _MANAGER: "makes the layout of the label nvidia.com/mig.config when it changes and when it starts; drain the node "
    "and take it from it: kubectl label node NODE nvidia.com/gpu.deploy.mig-manager=false --overwrite",
}
"""Harm that owners do to the partitions of others, and advice against it."""


def _processes(root: Path) -> Iterator[tuple[int, str]]:
    """Yield number and name of each process that can be seen."""
    for folder in (root / "proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(folder.name), (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()[:15]


def monitors(root: Path = Path("/")) -> list[str]:
    """Return the monitoring tools that run and keep GPUs open, each with its process number."""
    return [f"{_MONITORS[name]} (process {pid})" for pid, name in sorted(_processes(root)) if name in _MONITORS]


def owner_of_partitions(root: Path = Path("/")) -> str:
    """Return who owns the partitions of this node, and what to do instead of changing them; empty if nobody does.

    Owners are told by their processes, and the DRA driver also by the socket at which it answers the kubelet, for those
    who do not see its process. NVIDIA's device plugin owns nothing: it changes no partitions.
    """
    found = next(filter(None, (_plugin(root, pid, name) for pid, name in sorted(_processes(root)))), "")
    if not found and any(_answers(path) for kubelet in _KUBELETS for path in (root / kubelet).glob(_DRA_SOCKETS)):
        found = _DRA
    return f"{found} owns the partitions of this node: it {_DEEDS[found]}" if found else ""


def _plugin(root: Path, pid: int, name: str) -> str:
    """Return the owner of partitions that a process is; empty if it is none."""
    if name == _DEVICE_PLUGIN:
        with contextlib.suppress(OSError):
            words = (root / "proc" / str(pid) / "cmdline").read_bytes().split(b"\0")
            return _HAMI if _HAMI_CONFIG.encode() in words else ""
    return _PLUGINS.get(name, "")


def _answers(path: Path) -> bool:
    """Return True unless a socket is what a program that was killed has left; one that cannot be asked counts."""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(path))
        except OSError as error:
            return not isinstance(error, ConnectionRefusedError | FileNotFoundError)
    return True


_BY_SLURM = (
    "slurmd runs on this node, and Slurm does not notice when partitions change: {}; do it in a job that has the whole "
    "node (salloc --exclusive -w {}), or drain the node first, and wait until nothing runs there "
    "(scontrol update NodeName={} State=DRAIN Reason=mig-opt)"
)


def slurm_in_the_way(root: Path = Path("/")) -> str:
    """Return why partitions of this node must not be changed under Slurm, and what to do; empty if they may.

    They may where no slurmd runs, within a job of one's own that has the whole node, and on a node that is drained.
    """
    if not any(name == "slurmd" for _, name in _processes(root)):
        return ""
    here, own = socket.gethostname(), os.environ.get("SLURMD_NODENAME", "")
    hosts = (here, here.partition(".")[0])
    try:
        nodes = [each for each in _slurm("node") if each.get("NodeHostName") in hosts]
        nodes = [each for each in nodes if each["NodeName"] == own] or nodes
        names = ",".join(each["NodeName"] for each in nodes) or hosts[1]
        job = os.environ.get("SLURM_JOB_ID", "")
        if job.isdecimal():
            why = _job_trouble(_slurm("job", job)[0], [each["NodeName"] for each in nodes])
        else:
            states = {each["NodeName"]: each["State"] for each in nodes}
            drained = states and all(re.match(r"(IDLE|DOWN)\W.*DRAIN", state) for state in states.values())
            shown = ", ".join(f"{name} is {state}" for name, state in states.items()) or "it does not know the node"
            why = "" if drained else shown
    except (OSError, subprocess.SubprocessError, LookupError) as error:
        names, why = hosts[1], f"scontrol gives no answer ({error})"
    return _BY_SLURM.format(why, names, names) if why else ""


def _job_trouble(job: Mapping[str, str], nodes: Sequence[str]) -> str:
    """Return why a job does not let its owner change the partitions of nodes."""
    name = f"job {job['JobId']}"
    if job["JobState"] not in ("RUNNING", "COMPLETING"):
        return f"{name} is {job['JobState']}"
    if os.geteuid() not in (0, int(job["UserId"].partition("(")[2].rstrip(")"))):
        return f"{name} is of {job['UserId']}"
    if not set(nodes) & set(_scontrol("show", "hostnames", job["NodeList"]).split()):
        return f"{name} is on {job['NodeList']}"
    # Newer versions of Slurm say it for itself; until 24.11 a job that does not share has its node alone.
    alone = job["Exclusive"] == "NODE" if "Exclusive" in job else job["OverSubscribe"] == "NO"
    return "" if alone else f"{name} shares its node with others"


def _slurm(*words: str) -> list[dict[str, str]]:
    """Return what ``scontrol show`` tells, by key, of each thing."""
    return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in _scontrol("-ao", "show", *words).splitlines()]


def _scontrol(*words: str) -> str:
    program = ["scontrol", *words]
    done = subprocess.run(program, capture_output=True, errors="replace", timeout=10, check=True)  # noqa: S603 - fixed
    return done.stdout
