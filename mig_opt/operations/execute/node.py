"""Deeds of an engine on a node: begin a part there, look at it, interrupt it. Each may be done twice.

The files of a part are in a folder that only its user may enter. Its process outlives whatever has started it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mig_opt.batch.journal import Journal
from mig_opt.errors import DriverError, InputError, Problem, raise_any
from mig_opt.operations.execute.attempts import Attempts, own_folder
from mig_opt.operations.execute.checks import check_plan, check_this_machine
from mig_opt.operations.execute.engines import Progress
from mig_opt.operations.execute.parts import JOURNAL, arguments_of, lock_of, write_part

_RUN = re.compile(r"[0-9a-f]{1,64}")
_STARTED: list[subprocess.Popen[bytes]] = []  # processes that this one has started, and that are asked for their ends
_MOST_TEXT = 4000  # bytes of what a process has said last


def state_folder(usual: Path | None = None) -> Path:
    """Return the folder for parts of executions, which only the user of this process may enter.

    It is ``MIG_OPT_STATE``, or the ``usual`` one, by default ``/var/lib/mig-opt`` of root and
    ``~/.local/state/mig-opt`` of others. One that is another user's, a link or open to others is refused.
    """
    home = Path("/var/lib/mig-opt") if os.geteuid() == 0 else Path.home() / ".local" / "state" / "mig-opt"
    folder = Path(os.environ.get("MIG_OPT_STATE") or usual or home).absolute()
    return own_folder(folder, mend="; mend that, or set MIG_OPT_STATE")


def folder_of(run: str, host: str, usual: Path | None = None) -> Path:
    """Return the folder of a part, in that for all (:func:`state_folder`)."""
    if not _RUN.fullmatch(run):
        raise InputError([Problem("run", f"must be the name of an execution, is {run!r:.60}")])
    folder = state_folder(usual) / run / host
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def begin(host: str, part: Journal, undo: bool) -> None:
    """Begin or go on with a part, or take it back, in a process of its own, unless one does so already."""
    folder = folder_of(part.run, host)
    working = Path(part.folder) if Path(part.folder).is_dir() else Path(f"~{part.user}").expanduser()
    attempts, name = Attempts(folder, working), "undo" if undo else "run"
    with (folder / "begin.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if attempts.outcome(name) is None:
            return
        _STARTED[:] = [process for process in _STARTED if process.poll() is None]
        _STARTED.append(attempts.begin(name, program_of(part, folder, undo=undo), {"MIG_OPT_HOST": host}))


def program_of(part: Journal, folder: Path, *, undo: bool) -> list[str]:
    """Return the program that goes on with a part, or takes it back, after writing what it reads into its folder.

    A part that has begun elsewhere is refused: its tasks would run twice, and what it has made would stay.
    """
    raise_any(lost(part, folder))
    if not (folder / JOURNAL).exists():
        write_part(part, folder)
    words = ["--undo", str(folder / JOURNAL), "--restartable"] if undo else arguments_of(part, str(folder))
    return [sys.executable, "-m", "mig_opt.cli", "run", *words, "--quiet"]


def lost(part: Journal, folder: Path) -> Iterator[Problem]:
    """Yield a problem if a part is known to have begun, and its folder has no journal of that."""
    if part.events and not (folder / JOURNAL).exists():
        message = "has no journal of this part, which has begun; go on with the engine and MIG_OPT_STATE as before"
        yield Problem(str(folder), message)


def look(host: str, run: str, seen: int, undo: bool) -> Progress:
    """Return what has become of a part, with its journal from byte ``seen`` on."""
    folder = folder_of(run, host)
    name = "undo" if undo else "run"
    outcome = Attempts(folder, folder).outcome(name)
    return progress_in(folder, name, seen, ended=outcome is not None, code=outcome.code if outcome else None)


def progress_in(folder: Path, name: str, seen: int, *, ended: bool, code: int | None) -> Progress:
    """Return what the files of a part tell, and what it has said last: from its last error on, if there is one.

    Whether it has ended is known before the journal is read, so that nothing comes after it. On a full disk it could
    say nothing, which is said in its place.
    """
    journal, text = b"", ""
    with contextlib.suppress(FileNotFoundError), (folder / JOURNAL).open("rb") as file:
        file.seek(seen)
        journal = file.read()
    with contextlib.suppress(FileNotFoundError):
        text = (folder / f"{name}.out").read_bytes()[-_MOST_TEXT:].decode("utf-8", "replace") if ended else ""
    if ended and code and not text and not os.statvfs(folder).f_bavail:
        text = f"error: {folder}: No space left on device; mend that, and then go on"
    return Progress(journal, ended, code, text[max(text.rfind("error: "), 0) :])


def interrupt(host: str, run: str) -> None:
    """Do to the process of a part what Ctrl-C does, if there is one."""
    lock = lock_of(folder_of(run, host) / JOURNAL)
    with contextlib.suppress(FileNotFoundError), lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.kill(int(file.read()), signal.SIGTERM)


def trouble_on(part: Journal) -> list[str]:
    """Return what keeps a part from being carried out on this node; nothing is changed."""
    try:
        state_folder()
        schedule, problems = check_plan(part.batch, part.schedule, part.commands, part.gpus, part.user)
        problems += check_this_machine(part.batch, schedule, part.gpus)
    except DriverError as error:
        return [str(error)]
    except InputError as error:
        problems = list(error.problems)
    return list(map(str, problems))
