"""The conductor: carries out a plan of several nodes by an engine, and follows what becomes of it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mig_opt.batch.journal import Event, EventKind, Journal
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.batch.journals import JournalFile, take_lines
from mig_opt.operations.execute.engines import SILENT_S, Engine
from mig_opt.operations.execute.executor import Observer
from mig_opt.operations.execute.parts import Gathering, common_ends, cut

_STOPPING_S = 30.0  # seconds for which the nodes may take to stop after Ctrl-C
_AGAIN_S = 3.0  # seconds after which a job that has not stopped is told to again: it may just have begun
_POLL_S = 0.2  # seconds between questions about the nodes
_MOST_STARTS = 3  # starts of a job that dies before anything happens
_UNHEARD = f"no answer for {SILENT_S:g} s; what runs there goes on, and is asked again"


def engine_of(name: str) -> Engine:
    """Return the engine that a name stands for: ``dask://HOST:PORT`` or ``slurm``."""
    if found := re.fullmatch(r"dask://(.+):([0-9]+)", name):
        from mig_opt.operations.execute.dask_engine import DaskEngine

        return DaskEngine(*found.groups())
    if name == "slurm":
        from mig_opt.operations.execute.slurm_engine import SlurmEngine

        return SlurmEngine()
    raise InputError([Problem("engine", f"must be dask://HOST:PORT or slurm, is {name!r:.60}")])


@contextlib.contextmanager
def checked_engine(engine: str | Engine, parts: Mapping[str, Journal], *, begun: bool) -> Iterator[Engine]:
    """Give an engine that finds nothing that keeps parts from being carried out; at the end it is closed."""
    with contextlib.closing(engine_of(engine) if isinstance(engine, str) else engine) as known:
        raise_any(known.check(parts, begun=begun))
        yield known


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
