"""Engines: starters of the part of each node there, what they do on the node, and the conductor that follows them.

An engine only has to start one job for each node that may be started again: ``mig-opt run`` with ``--restartable``. Its
restart is ``--resume``, and a second start waits for the first. So engines try nothing again by themselves, and each
deed may be done twice. The files of a part are in a folder that only its user may enter. Its process outlives whatever
has started it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from mig_opt.batch.journal import Event, EventKind, Journal
from mig_opt.errors import DriverError, InputError, Problem, raise_any
from mig_opt.files.batch.journals import JournalFile, take_lines
from mig_opt.operations.execute.attempts import Attempts, own_folder
from mig_opt.operations.execute.machines import Observer, check_plan, check_this_machine
from mig_opt.operations.execute.parts import JOURNAL, Gathering, arguments_of, common_ends, cut, lock_of, write_part

SILENT_S = 8.0  # seconds after which it is told that nothing has been heard of a node, or that its job waits
_STOPPING_S = 30.0  # seconds for which the nodes may take to stop after Ctrl-C
_AGAIN_S = 3.0  # seconds after which a job that has not stopped is told to again: it may just have begun
_POLL_S = 0.2  # seconds between questions about the nodes
_MOST_STARTS = 3  # starts of a job that dies before anything happens
_UNHEARD = f"no answer for {SILENT_S:g} s; what runs there goes on, and is asked again"
_RUN = re.compile(r"[0-9a-f]{1,64}")
_STARTED: list[subprocess.Popen[bytes]] = []  # processes that this one has started, and that are asked for their ends
_MOST_TEXT = 4000  # bytes of what a process has said last


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of the job of a node, and what its journal has more than was known.

    Attributes
    ----------
    journal : bytes
        The journal from the byte on that was asked for; its last line may be torn.
    ended : bool
        True if the job has come to its end, so that nothing is to come of the journal.
    code : int or None
        The exit code of a job that has ended; None if it died without one.
    text : str
        What it said last.
    waits : str
        Why it has not begun, if the engine has it wait.
    """

    journal: bytes = b""
    ended: bool = False
    code: int | None = None
    text: str = ""
    waits: str = ""


@runtime_checkable
class Engine(Protocol):
    """Starter of jobs on nodes: each carries out the part of its node, a journal in which nothing has happened.

    One that is known to have begun has that event: it is refused where there is no journal to go on with.
    A job is known by the ``run`` of its part and its host, so that another process finds it. Each call may come twice,
    and after the engine, its nodes or this process have been restarted. No call waits for longer than a second or so,
    but ``check``. Jobs run the words of :func:`mig_opt.operations.execute.parts.arguments_of` in the folder
    ``part.folder`` if the node has it, with ``MIG_OPT_HOST`` set to the host; no text passes a shell unquoted.
    """

    def check(self, parts: Mapping[str, Journal], *, begun: bool) -> list[Problem]:
        """Return what keeps parts from being carried out, all of it, before anything is touched.

        Versions of mig_opt are compared; unless the execution has ``begun``, nodes are checked for GPUs and the
        like, as far as the engine can do that without waiting for them.
        """

    def submit(self, host: str, part: Journal, *, undo: bool = False) -> None:
        """Start the job of a node, unless it is there: it goes on if it has a journal. ``undo`` takes back instead."""

    def progress(self, host: str, part: Journal, seen: int, *, undo: bool = False) -> Progress | None:
        """Return what has become of the job, with its journal from byte ``seen`` on; None if that is not known now."""

    def cancel(self, host: str, part: Journal) -> None:
        """Do to the job what Ctrl-C does (SIGTERM): tasks end, instances stay; no harm if there is no job."""

    def close(self) -> None:
        """Let go of what the engine needs here; jobs go on."""


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
    return own_folder(state_folder(usual) / run / host)


def begin(host: str, part: Journal, undo: bool) -> None:
    """Begin or go on with a part, or take it back, in a process of its own, unless one does so already."""
    folder = folder_of(part.run, host)
    there = os.path.isdir(part.folder)  # noqa: PTH112 - also where this user, root say, may not look for it
    working = Path(part.folder) if there else Path(f"~{part.user}").expanduser()
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
    return [sys.executable, "-m", "mig_opt", "run", *words, "--quiet"]


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
        return list(map(str, problems + check_this_machine(part.batch, schedule, part.gpus)))
    except DriverError as error:
        return [str(error)]
    except InputError as error:
        return list(map(str, error.problems))


@dataclass(slots=True)
class _Node:
    """The job of a node as it is known here."""

    heard: float  # second of this process at which something was heard of it last
    begun: float  # likewise, at which its job did not wait
    part: Journal | None = None  # its journal, as far as it is known
    seen: int = 0  # bytes of its journal
    started: int = 0  # how often it was started since something happened
    silent: str = ""  # why nothing happens there, as it has been told
    done: bool = False


class Conductor:
    """Carries out a plan of several nodes by an engine; what their journals tell comes into that of the whole."""

    def __init__(self, file: JournalFile, engine: Engine, observe: Observer | None = None) -> None:
        self._file, self._whole, self._engine, self._observe = file, file.journal, engine, observe
        self._plans = cut(self._whole)
        self._gathering = Gathering(self._whole)
        now = time.monotonic()
        self._nodes = {host: _Node(now, now) for host in self._plans}

    def _note(self, event: Event) -> None:
        self._file.append(event)
        if self._observe is not None:
            self._observe(self._whole, event)

    def _say(self, kind: EventKind, text: str = "") -> None:
        self._note(Event(time.time(), kind, text=text))

    def execute(self) -> bool:
        """Start the jobs and follow them until all have ended; return True if all of the plan has been done.

        After Ctrl-C the nodes have stopped as by Ctrl-C, as far as they answer.
        """
        self._say("resume" if self._whole.began else "begin")
        try:
            self._start(undo=False)
            self._follow(undo=False)
        except KeyboardInterrupt:
            self._follow(undo=False, limit=time.monotonic() + _STOPPING_S)
            self._say("stop")
            raise
        parts = {host: node.part for host, node in self._nodes.items() if node.part is not None}
        for event in common_ends(self._whole, self._plans, parts):
            if event.kind == "end":
                self._note(event)
        return any(event.kind == "end" for event in self._whole.events)

    def undo(self) -> list[str]:
        """End what runs on the nodes and take back what they have made; return why some of it is still there."""
        self._say("resume")
        for host, part in self._plans.items():
            self._engine.cancel(host, part)
        self._start(undo=True)
        refusals = self._follow(undo=True)
        if not refusals:
            self._say("undo")
        return refusals

    def _start(self, *, undo: bool) -> None:
        for host, node in self._nodes.items():
            node.started += 1
            self._engine.submit(host, self._plans[host], undo=undo)

    def _follow(self, *, undo: bool, limit: float | None = None) -> list[str]:
        """Follow the jobs until all have ended; return what those said that could not do all.

        With a second up to which that is done, the jobs are to stop.
        """
        refusals: list[str] = []
        again = 0.0
        while not all(node.done for node in self._nodes.values()):
            stop = limit is not None and time.monotonic() >= again
            again = time.monotonic() + _AGAIN_S if stop else again
            for host, node in self._nodes.items():
                if stop and not node.done:
                    self._engine.cancel(host, self._plans[host])
                if not node.done:
                    refusals += self._look(host, node, undo=undo, restart=limit is None)
            if limit is not None and time.monotonic() > limit:
                break
            time.sleep(_POLL_S)
        return refusals

    def _look(self, host: str, node: _Node, *, undo: bool, restart: bool) -> list[str]:
        """Take the news of a node; return what it has said if it has ended and not done all."""
        now, found = time.monotonic(), self._engine.progress(host, self._plans[host], node.seen, undo=undo)
        why, since = (_UNHEARD, node.heard) if found is None else (found.waits, node.begun)
        if why and why != node.silent and now - since > SILENT_S:
            node.silent = why
            self._say("silent", f"{host}: {why}")
        if found is None:
            return []
        node.heard = now
        if not why:
            if node.silent:
                self._say("heard", f"{host}: {'answers again' if node.silent == _UNHEARD else 'goes on'}")
            node.begun, node.silent = now, ""
        node.part, taken = take_lines(node.part, found.journal, host)
        node.seen += taken
        for event in self._gathering.news(host, node.part) if node.part else ():
            node.started = 0
            self._note(event)
        if not found.ended:
            return []
        node.done = True
        if found.code == 0 or (not undo and node.part is not None and node.part.ended):
            return []
        died = found.code is None or found.code < 0 or found.code > 128
        if died and restart and node.started < _MOST_STARTS:
            node.done, node.started = False, node.started + 1
            self._engine.submit(host, self._plans[host], undo=undo)
            return []
        said = f"{host}: {found.text.strip() or 'its job has died without a word'}"
        if not undo and restart and found.code != 1:  # what is refused on the way is in its journal
            self._say("refused", said)
        return [said]
