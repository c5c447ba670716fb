"""Tries at tasks: programs that go on when whoever started them is killed, and that are found again by whoever resumes.

Each try has two files of its own: its output (``.out``), and while the execution lasts a file (``state/*.try``) with
the number of its group of processes and, once it has ended, its exit code. That file is locked as long as any of its
processes lives. So a try that is still running is told from one that has died, whatever was killed in between, and no
task is started twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mig_opt.batch.batch import Batch
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.rules import wrong_class

_KEEPER = (
    'read -r MIG_OPT_UP MIG_OPT_IDLE </proc/uptime; echo "$$ $MIG_OPT_UP" >&0; "$@" </dev/null; MIG_OPT_CODE=$?; '
    'read -r MIG_OPT_UP MIG_OPT_IDLE </proc/uptime; echo "$MIG_OPT_CODE $MIG_OPT_UP" >&0'
)
"""A shell that keeps a program, and notes its exit code once it has ended in the file that is its standard input.

It notes begin and end, too, by the clock of the machine that nobody sets. It starts no other program to do so, and
makes no file: on a busy disk that takes milliseconds, which would be measured as time of the task. The file is open
already, since the user of the program may not enter its folder."""

_ROOM = b" " * 48
"""Contents of that file at first, so that on a disk that fills up meanwhile there is still room for the exit code."""

_STATE = "state"
"""Name of the folder of the files that are locked; nobody else may enter it, since whoever has a lock is believed."""

_KILLED = frozenset(128 + each for each in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM))
"""Exit codes, as shells write them, of programs that were killed from outside, which is no end of their own.

Slurm sends SIGTERM to one process of a job after the other, to tasks before their keepers, which may note it then."""

_AFTERMATH_S = 0.5
"""Seconds for which the end of a try that has failed is kept back: if all of a job is being killed, that is why it has
failed, and the process that waits for it is next."""

_GRACE = 1.0  # seconds after which nothing is left of a group of processes that is killed
_POLL = 0.05  # seconds between looks at a try that was started by a process that is no more
_TICK = 0.01  # seconds to which the keeper's clock is told


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a try."""

    seconds: float  # that it took; 0 if it died without an exit code
    code: int | None  # exit code; None if it died without one, or by a signal from outside


def uptime() -> float:
    """Return seconds since the machine was started, by the clock that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def name_of_try(batch: Batch, task: str, attempt: int) -> str:
    """Return the name of the files of a try at a task."""
    return f"{[each.name for each in batch.tasks].index(task):04d}-{attempt}"


def account_of(user: str) -> pwd.struct_passwd | None:
    """Return the account as which commands are to run; None if nobody is named, and this process is not root's.

    Where root names nobody, it is who has called it by sudo. A user is refused that there is not, or as whom this
    process may not run anything; so is root that names nobody.
    """
    raise_any(wrong_class("user", user, str))
    own, caller = os.geteuid(), os.environ.get("SUDO_USER", "")
    if not user and own != 0:
        return None
    name = user or ("" if caller == "root" else caller)
    if not name:
        message = "tasks would run as root; name the user as whom they are to run, which may be root: --user NAME"
        raise InputError([Problem("user", message)])
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise InputError([Problem("user", f"there is no user {name!r:.60} on this machine")]) from None
    if own not in (0, account.pw_uid):
        raise InputError([Problem("user", f"only root can run tasks as {name}; use sudo, or leave it out")])
    return account


def own_folder(folder: Path, mode: int = 0o700, mend: str = "; mend that, or remove it") -> Path:
    """Make a folder of this user with a mode, and return it; refuse one that is another user's, a link or more open."""
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise InputError([Problem(str(folder), f"cannot be made: {error.strerror}")]) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o777 & ~mode:
        deed = f"{'write to' if mode & 0o55 else 'enter'} (mode {mode:04o})"
        raise InputError([Problem(str(folder), f"must be a folder of this user that nobody else may {deed}{mend}")])
    return folder


class Attempts:
    """The tries at tasks of an execution: commands run in the folder ``working``, their files are in the other one.

    Commands run as the user with ``account``, by default as that of this process.
    """

    def __init__(self, folder: Path, working: Path, account: pwd.struct_passwd | None = None) -> None:
        self.folder, self._working, self._account = folder.absolute(), working, account

    def _path(self, name: str) -> Path:
        return self.folder / _STATE / f"{name}.try"

    def begin(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a program; ``environment`` is added to that of this process."""
        path, account, extra = self._path(name), self._account, dict[str, Any]()
        own_folder(own_folder(self.folder, 0o755) / _STATE)
        if account is not None and account.pw_uid != os.geteuid():
            groups = os.getgrouplist(account.pw_name, account.pw_gid)
            extra = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": groups}
            names = {"USER": account.pw_name, "LOGNAME": account.pw_name, "HOME": account.pw_dir}
            environment = {**names, **environment}
        with path.open("w") as lock, (self.folder / f"{name}.out").open("ab") as output:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.pwrite(lock.fileno(), _ROOM, 0)
            return subprocess.Popen(  # noqa: S603 - the commands are what the user wants to run
                ["/bin/sh", "-c", _KEEPER, "sh", *command],
                env={**os.environ, **environment},
                cwd=self._working,
                stdin=lock,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[lock.fileno()],
                **extra,
            )

    def outcome(self, name: str) -> Outcome | None:
        """Return the end of a try, None while it still runs; one that never began has died, too."""
        alive = self._alive(name)
        lines = self._lines(name)
        if len(lines) > 1:
            if any(len(line.split()) != 2 for line in lines):
                message = "is of an earlier version; go on with that, or remove it, so that its task runs again"
                raise InputError([Problem("", message)], str(self._path(name)))
            (_, begun), (code, ended) = map(str.split, lines)
            return Outcome(float(ended) - float(begun), None if int(code) in _KILLED else int(code))
        return None if alive else Outcome(0.0, None)

    def _lines(self, name: str) -> list[str]:
        """Return what a try has noted so far: the number of its group of processes, its exit code, and when."""
        with contextlib.suppress(FileNotFoundError):  # of the last line not all has been written
            return self._path(name).read_text(encoding="ascii").split("\n")[:-1]
        return []

    def _alive(self, name: str) -> bool:
        try:
            with contextlib.suppress(FileNotFoundError), self._path(name).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    def wait(self, name: str, process: subprocess.Popen[bytes] | None = None, begun: float = 0.0) -> Outcome:
        """Wait for the end of a try.

        If this process has begun it, ``process`` is what :meth:`begin` has returned, and ``begun`` when, by its clock.
        """
        lasted = None
        if process is not None:
            process.wait()
            lasted = uptime() - begun
        while (outcome := self.outcome(name)) is None:
            time.sleep(_POLL)
        if outcome.code != 0:
            time.sleep(_AFTERMATH_S)
        # This process knows it better than to the tick, unless it stood still meanwhile.
        least, most = outcome.seconds - _TICK, outcome.seconds + _TICK
        return outcome if lasted is None else Outcome(min(max(lasted, least), most), outcome.code)

    def stop(self, name: str, patience: float = 5.0) -> None:
        """End a try with all processes of its group, politely at first; what has left the group goes on."""
        limit, told = time.monotonic() + patience, False
        while self.outcome(name) is None:
            late = time.monotonic() - limit
            if late > _GRACE:
                return
            if late > 0 or not told:  # many take a second request for impatience
                with contextlib.suppress(OSError, IndexError):
                    os.killpg(int(self._lines(name)[0].split()[0]), signal.SIGKILL if late > 0 else signal.SIGTERM)
                    told = True
            time.sleep(_POLL)

    def clear(self) -> None:
        """Remove all files but the outputs."""
        shutil.rmtree(self.folder / _STATE, ignore_errors=True)
