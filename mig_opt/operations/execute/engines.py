"""Engines: starters of the part of each node there.

An engine only has to start one job for each node that may be started again: ``mig-opt run`` with ``--restartable``. Its
restart is ``--resume``, and a second start waits for the first. So engines try nothing again by themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mig_opt.batch.journal import Journal
from mig_opt.errors import Problem

T = TypeVar("T")

SILENT_S = 8.0  # seconds after which it is told that nothing has been heard of a node, or that its job waits


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


def in_background(call: Callable[[], T]) -> Future[T]:
    """Begin a call that may take for ever, beside everything else; return what becomes of it."""
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return answer
