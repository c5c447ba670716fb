"""What a study was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from datetime import date
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def describe(*packages: str) -> str:
    """Return a line with the date, the machine and the versions of some packages, those that are installed."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    installed = ", ".join(f"{package} {version}" for package, version in versions(*packages).items())
    return (
        f"{date.today().isoformat()}, {platform.system()} {platform.machine()}, {_processor()}, {cores} cores, "
        f"Python {platform.python_version()}, {installed}"
    )


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def peak_bytes() -> int:
    """Return the most memory that this process has had so far."""
    try:
        # On Linux getrusage() starts a child with the peak of its parent; this figure does not.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource  # not everywhere

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def save(name: str, text: str, folder: Path = RESULTS) -> None:
    """Write the result of a study beside the others and show it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
