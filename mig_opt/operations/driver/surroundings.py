"""Other programs of the machine that matter to partitions: those that hold GPUs, and those that own the partitions."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

_MONITORS = {
    "nv-hostengine": "DCGM",
    "dcgm-exporter": "DCGM exporter",
    "nvidia_gpu_expo": "nvidia_gpu_exporter",
    "nvtop": "nvtop",
    "nvitop": "nvitop",
    "gpustat": "gpustat",
    "netdata": "netdata",
    "telegraf": "telegraf",
    "nvidia-smi": "nvidia-smi",
}
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
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True
