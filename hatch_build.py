"""Compilation of the loops in ``mig_opt/native``, when the package is built or, in a checkout, by running this file.

The C compiler of the machine does it (``CC``, ``cc``, ``gcc`` or ``clang``). Where there is none, Zig does: it has a C
compiler, and is installed from the package index for the build alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
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
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.c"
        texts.write_text(library_texts(), encoding="ascii")
        subprocess.run([*command, *FLAGS, f"-I{FOLDER}", *sources, str(texts), "-o", str(made), "-lm"], check=True)
    made.replace(LIBRARY)  # at once: processes that have loaded the old one go on with it
    return LIBRARY


def library_texts() -> str:
    """Return in C the texts that the library contains: what it declares, and of which sources it is made."""
    declared = "\n".join(json.dumps(line) for line in (FOLDER / "loops.h").read_text("ascii").splitlines(keepends=True))
    made_of = hashlib.sha256(b"".join(source.read_bytes() for source in sorted(FOLDER.glob("*.[ch]")))).hexdigest()
    return f"""#include "loops.h"
EXPORT const char loop_declarations[] = {declared};
EXPORT const char loop_sources[] = "{made_of}";
"""


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
