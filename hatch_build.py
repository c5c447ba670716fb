"""Compilation of the loops in ``mig_opt/native``, when the package is built or, in a checkout, by running this file.

The C compiler of the machine does it (``CC``, ``cc``, ``gcc`` or ``clang``). Where there is none, Zig does: it has a C
compiler, and is installed from the package index for the build alone.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("mig_opt") / "native"
LIBRARY = FOLDER / "loops.shared"
FLAGS = ["-std=c11", "-O3", "-fPIC", "-shared", "-ffp-contract=off", "-Wall", "-Wextra"]
ZIG = "ziglang>=0.13"


def compiler() -> list[str]:
    """Return the command of the machine's C compiler; nothing if it has none."""
    own = shlex.split(os.environ.get("CC", ""))
    return own or next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), [])


def compile_library() -> Path:
    """Compile the loops, and return the library."""
    # Zig would use all instructions that this machine has, and no other might.
    command = compiler() or [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline", "-s"]
    sources = sorted(str(source) for source in FOLDER.glob("*.c"))
    made = LIBRARY.with_name(f"{LIBRARY.name}.{os.getpid()}")
    subprocess.run([*command, *FLAGS, *sources, "-o", str(made), "-lm"], check=True)
    made.replace(LIBRARY)  # at once: processes that have loaded the old one go on with it
    return LIBRARY


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by itself
    pass
else:

    class NativeLoops(BuildHookInterface[Any]):
        """Part of the build of a wheel: compiles the loops and puts the library into it."""

        def dependencies(self) -> list[str]:
            """Return what the build needs beside hatchling."""
            return [] if compiler() else [ZIG]

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile before the files of the wheel are collected."""
            del version
            library = compile_library()
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            # One library serves every version of Python.
            build_data["tag"] = f"py3-none-{platform}"
            build_data["pure_python"] = False
            build_data["artifacts"].append(str(library.relative_to(Path(self.root))))


if __name__ == "__main__":
    print(compile_library())
