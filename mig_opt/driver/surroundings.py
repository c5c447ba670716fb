"""Other programs of the machine that matter to partitions: those that hold GPUs, and those that own the partitions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_MONITORS = {
    "nv-hostengine": "DCGM",
    "dcgm-exporter": "DCGM exporter",
    "nvidia_gpu_exp": "nvidia_gpu_exporter",
    "nvtop": "nvtop",
    "nvitop": "nvitop",
    "gpustat": "gpustat",
    "netdata": "netdata",
    "telegraf": "telegraf",
    "nvidia-smi": "nvidia-smi",
}
"""Monitoring tools that keep GPUs open, by the name of their process (which Linux cuts to 15 characters)."""

_PLUGINS = {"gpu-kubelet-plu": "the NVIDIA DRA driver", "vGPUmonitor": "HAMi"}
_DRA_FOLDER = "var/lib/kubelet/plugins/gpu.nvidia.com"


def _processes(root: Path) -> Iterator[tuple[int, str]]:
    """Yield number and name of each process that can be seen."""
    for folder in (root / "proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(folder.name), (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()


def monitors(root: Path = Path("/")) -> list[str]:
    """Return the monitoring tools that run and keep GPUs open, each with its process number."""
    return [
        f"{_MONITORS[name[:15]]} (process {pid})" for pid, name in sorted(_processes(root)) if name[:15] in _MONITORS
    ]


def owner_of_partitions(root: Path = Path("/")) -> str:
    """Return who owns the partitions of this node, and what to do instead of changing them; empty if nobody does.

    A plugin that makes partitions for Kubernetes destroys those that it does not know when it starts.
    """
    found = next((_PLUGINS[name[:15]] for _, name in sorted(_processes(root)) if name[:15] in _PLUGINS), "")
    if not found and any((root / _DRA_FOLDER).glob("*.sock")):
        found = _PLUGINS["gpu-kubelet-plu"]
    if not found:
        return ""
    return (
        f"{found} owns the partitions of this node, and destroys what others make; drain the node and remove the "
        "plugin from it first, or let Kubernetes place the work: mig-opt defragment says which pods to move"
    )
