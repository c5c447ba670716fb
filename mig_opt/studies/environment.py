"""Environment of runs: machine, versions, sources."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from mig_opt.method.control import available_cores
from mig_opt.method.result import versions_with

PACKAGES = ("mig-opt", "ortools", "highspy", "pulp", "numpy", "networkx")
"""Distributions that results may depend on."""

_PACKAGE = Path(__file__).parents[1]
_IDLE_PARTS = frozenset({"cli", "views", "__init__.py", "_version.py"})  # parts of this package that change no result


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of those distributions that are installed; of this package that of its sources.

    Examples
    --------
    >>> versions("pydantic", "no-such-distribution").keys()
    dict_keys(['pydantic'])
    """
    found = versions_with(packages)
    return {package: found[package] for package in packages if package in found}


def environment(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Return Python, system, processor, cores of this process and versions, as a row of a study keeps them."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": available_cores(),
        "packages": versions(*packages),
    }


def fingerprint(
    packages: Sequence[str] = PACKAGES, more_sources: Sequence[Path] = (), without: Collection[str] = ()
) -> str:
    """Return a hash of what decides a run besides its arguments: sources of this package and others, and versions.

    Parameters
    ----------
    packages : sequence of str
        Distributions whose versions count. Of this package the sources count, not the version.
    more_sources : sequence of Path
        Other files that count.
    without : collection of str
        Names of folders and modules of this package that have no part in the runs.
    """
    others = versions(*(name for name in packages if name != "mig-opt"))
    digest = hashlib.sha256(f"Python {platform.python_version()}, {others}".encode())
    found = sorted(path for pattern in ("*.py", "*.c", "*.h") for path in _PACKAGE.rglob(pattern))
    sources = [(path.relative_to(_PACKAGE), path) for path in found]
    sources = [(name, path) for name, path in sources if not {*name.parent.parts, name.stem} & set(without)]
    sources = [(name, path) for name, path in sources if name.parts[0] not in _IDLE_PARTS]
    for name, path in [*sources, *((Path(path.name), path) for path in more_sources)]:
        there = path.stat()
        digest.update(str(name).encode() + b"\0" + _content(path, there.st_mtime_ns, there.st_size))
    return digest.hexdigest()[:12]


@functools.lru_cache(maxsize=1000)
def _content(path: Path, changed_ns: int, size: int) -> bytes:  # noqa: ARG001  # a file that changes is read again
    return hashlib.sha256(path.read_bytes()).digest()


def peak_bytes() -> int | None:
    """Return the most memory that this process has had so far; None where the system does not tell."""
    try:
        # On Linux getrusage() starts a child with the peak of its parent; this figure does not.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    if os.name == "nt":
        return None
    import resource  # not everywhere

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"
