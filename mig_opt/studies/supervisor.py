"""Program that runs another one within a limit of time, and leaves nothing of it: for :mod:`mig_opt.studies.solvers`.

It reads a line of JSON, ``[command, seconds]``, and writes one: exit code (null if the program had to be ended), the
last line that it printed, and its seconds. It ends the program, and whatever that has begun, also when its own input is
closed: so nothing is left if the process that asked is killed. It imports nothing of this package, to begin at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, Any

_KEPT_BYTES = 10_000  # bytes at the end of the output of a program that are kept

MOST_BYTES = 2**30
"""Size of a file above which a program may write no more to it."""

# Numbers of options of Linux: orphans of a program become children of this one; a program ends when its parent does.
_SUBREAPER, _END_WITH_PARENT = 36, 1

_PATIENCE_S = 10.0  # seconds for which processes are ended that begin others all the time


def main() -> None:
    """Run the program."""
    line = bytearray()
    while not line.endswith(b"\n"):
        line += os.read(0, 1) or b"\n"
    command, seconds = json.loads(line)
    _request(_SUBREAPER, 1)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if hard == resource.RLIM_INFINITY or hard > MOST_BYTES:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, hard))
    begin = time.perf_counter()
    code: int | None = 127
    try:
        asks: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        asks |= {"start_new_session": True, "preexec_fn": lambda: _request(_END_WITH_PARENT, signal.SIGKILL)}
        process = subprocess.Popen(command, **asks)  # noqa: S603  # the user's own command
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        said = f"{command[0]} cannot be run: {reason}"
    else:
        assert process.stdout is not None
        code, said = _watched(process, process.stdout, begin + seconds)
    os.write(1, json.dumps([code, said, time.perf_counter() - begin]).encode() + b"\n")


def _request(option: int, value: int) -> None:
    """Ask Linux for something; there is no such thing elsewhere."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _watched(process: subprocess.Popen[bytes], output: IO[bytes], end: float) -> tuple[int | None, str]:
    """Return the exit code of a program, None if it had to be ended, and the last line that it printed."""
    last = bytearray()

    def keep() -> None:
        while chunk := os.read(output.fileno(), 2**16):
            last.extend(chunk)
            del last[:-_KEPT_BYTES]

    reader = threading.Thread(target=keep, daemon=True)
    reader.start()
    while (code := process.poll()) is None and time.perf_counter() < end:
        if select.select([0], [], [], 0.01)[0]:  # nobody waits for the answer any more
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    until = time.monotonic() + _PATIENCE_S
    while (left := _children()) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
    reader.join(1.0)
    lines = last.decode("utf-8", "replace").strip().splitlines()
    return code, lines[-1].strip() if lines else "it printed nothing"


def _children() -> list[int]:
    """Return the processes whose parent is this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    main()
