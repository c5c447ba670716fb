"""Tries at tasks: programs that go on when whoever started them is killed, and that are found again by whoever resumes.

Each try has two files of its own: its output (``.out``), and while the execution lasts a file (``.try``) with the
number of its group of processes and, once it has ended, its exit code. That file is locked as long as any of its
processes lives. So a try that is still running is told from one that has died, whatever was killed in between, and no
task is started twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mig_opt.batch.batch import Batch

_KEEPER = 'echo "$$" >>"$0"; "$@"; echo "$?" >>"$0"'
"""A shell that keeps a program, and notes its exit code once it has ended.

It starts no other program to do so, and makes no file: on a busy disk that takes milliseconds, which would be measured
as time of the task."""

_GRACE = 1.0
"""Seconds after which nothing is left of a group of processes that is killed."""

_POLL = 0.05
"""Seconds between looks at a try that was started by a process that is no more."""

_TICK = 0.01
"""Seconds by which the clock of files may be behind that of programs, which is a tick of the kernel."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a try."""

    time: float  # seconds since 1970
    code: int | None  # exit code; None if it died without one


def name_of_try(batch: Batch, task: str, attempt: int) -> str:
    """Return the name of the files of a try at a task."""
    return f"{[each.name for each in batch.tasks].index(task):04d}-{attempt}"


class Attempts:
    """The tries at tasks of an execution: commands run in the folder ``working``, their files are in the other one."""

    def __init__(self, folder: Path, working: Path) -> None:
        self.folder, self._working = folder.absolute(), working

    def _path(self, name: str, suffix: str) -> Path:
        return self.folder / f"{name}.{suffix}"

    def begin(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a program; ``environment`` is added to that of this process."""
        self.folder.mkdir(exist_ok=True)
        path = self._path(name, "try")
        with path.open("w") as lock, self._path(name, "out").open("ab") as output:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return subprocess.Popen(  # noqa: S603 - the commands are what the user wants to run
                ["/bin/sh", "-c", _KEEPER, str(path), *command],
                env={**os.environ, **environment},
                cwd=self._working,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )

    def begun(self, name: str) -> bool:
        """Return True if a try has begun, whatever has become of it."""
        return self._path(name, "try").exists()

    def outcome(self, name: str) -> Outcome | None:
        """Return the end of a try, None while it still runs; one that never began has died, too."""
        alive = self._alive(name)
        lines = self._lines(name)
        if len(lines) > 1:
            return Outcome(self._path(name, "try").stat().st_mtime, int(lines[1]))
        return None if alive else Outcome(time.time(), None)

    def _lines(self, name: str) -> list[str]:
        """Return what a try has noted so far: the number of its group of processes, and its exit code."""
        try:
            text = self._path(name, "try").read_text(encoding="ascii")
        except FileNotFoundError:
            return []
        return text.split("\n")[:-1]  # of the last line not all has been written

    def _alive(self, name: str) -> bool:
        try:
            with self._path(name, "try").open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def wait(self, name: str, process: subprocess.Popen[bytes] | None = None) -> Outcome:
        """Wait for the end of a try; ``process`` is what :meth:`begin` has returned, if this process has begun it."""
        ended = 0.0
        if process is not None:
            process.wait()
            ended = time.time()
        while (outcome := self.outcome(name)) is None:
            time.sleep(_POLL)
        return Outcome(max(outcome.time, min(ended, outcome.time + _TICK)), outcome.code)

    def stop(self, name: str, patience: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        """End a try with all processes of its group, politely at first; what has left the group goes on."""
        limit = clock() + patience
        while self.outcome(name) is None:
            late = clock() - limit
            if late > _GRACE:
                return
            with contextlib.suppress(OSError, IndexError):
                os.killpg(int(self._lines(name)[0]), signal.SIGKILL if late > 0 else signal.SIGTERM)
            time.sleep(_POLL)

    def clear(self) -> None:
        """Remove all files but the outputs."""
        for path in self.folder.glob("*.try"):
            path.unlink(missing_ok=True)
