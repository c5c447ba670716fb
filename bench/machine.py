"""What a study was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import date
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def describe(*packages: str) -> str:
    """Return a line with the date, the machine and the versions of some packages."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)
    return (
        f"{date.today().isoformat()}, {platform.system()} {platform.machine()}, {_processor()}, {cores} cores, "
        f"Python {platform.python_version()}, {versions}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def save(name: str, text: str) -> None:
    """Write the result of a study beside the others and show it."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
