"""Worker processes: each does one run after the other, and may crash without taking anything else with it.

They are programs of their own and not those of :mod:`concurrent.futures`: those import the program that begins them
(which would need an ``if __name__ == "__main__"``), all crash together, cannot be ended in the middle of a run, and do
not tell how they ended.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mig_opt.studies.environment import environment
from mig_opt.studies.rows import CRASHED, Outcome, shielded

R = TypeVar("R")

Answer = tuple[Outcome, dict[str, Any]]
"""Outcome of a run, and the environment that it ran in."""

_PROGRAM = "from mig_opt.studies.workers import serve; serve()"
_CTRL_C = (-signal.SIGINT, 0xC000013A)  # exit codes after Ctrl-C, of POSIX and of Windows


def answer(perform: Callable[[R], Outcome], run: R) -> Answer | None:
    """Return the outcome of ``perform(run)`` and the environment of this process; None after Ctrl-C.

    Other exceptions become outcomes.
    """
    try:
        return shielded(lambda: perform(run)), environment()
    except KeyboardInterrupt:
        return None


class Worker:
    """A process that does runs until it crashes or is closed.

    Examples
    --------
    >>> from mig_opt.studies.rows import shielded
    >>> with contextlib.closing(Worker()) as worker:
    ...     outcome, environment = worker.answer(shielded, Outcome)  # Outcome() lacks arguments
    >>> outcome.status
    'crashed'
    """

    def __init__(self) -> None:
        self._closed = False
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(  # noqa: S603  # this program itself
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
        )

    @property
    def alive(self) -> bool:
        """True if the process can do more runs."""
        return self._process.poll() is None

    def answer(self, perform: Callable[[R], Outcome], run: R) -> Answer | None:
        """Return what :func:`answer` returns in the process; None if Ctrl-C or :meth:`close` cut the run short.

        If the process crashes, so is the status of the outcome. The process has to be able to import ``perform``.
        """
        begin = time.perf_counter()
        message = pickle.dumps((perform, run))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError, EOFError, pickle.UnpicklingError):
            self._process.stdin.write(message)
            self._process.stdin.flush()
            answered: Answer | None = pickle.load(self._process.stdout)  # noqa: S301  # written by the worker
            return answered
        code = self._process.wait()
        if self._closed or code in _CTRL_C:
            return None
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        how = f"the process was ended by signal {-code}" if code < 0 else f"the process ended with exit code {code}"
        return Outcome(CRASHED, time.perf_counter() - begin, error=": ".join([how, *lines[-1:]])), environment()

    def close(self) -> None:
        """End the process at once, whatever it is doing."""
        self._closed = True
        self._process.kill()
        with contextlib.suppress(OSError), self._process:  # what was to be flushed has no reader
            self._process.wait()
        self._log.close()


class WorkerPool:
    """Workers, as many as there are runs at the same time; threads share it."""

    def __init__(self) -> None:
        self._busy: set[Worker] = set()
        self._idle: list[Worker] = []
        self._closed = False
        self._lock = threading.Lock()

    def answer(self, perform: Callable[[R], Outcome], run: R) -> Answer | None:
        """Return the answer of an idle worker, as :meth:`Worker.answer` does; None after :meth:`close`."""
        with self._lock:
            if self._closed:
                return None
            worker = self._idle.pop() if self._idle else Worker()
            if not worker.alive:  # it crashed while it had nothing to do, which is no run's fault
                worker.close()
                worker = Worker()
            self._busy.add(worker)
        answered = worker.answer(perform, run)
        with self._lock:
            self._busy.discard(worker)
            if worker.alive and not self._closed:
                self._idle.append(worker)
            else:
                worker.close()
        return answered

    def close(self) -> None:
        """End all workers at once, and begin no other ones."""
        with self._lock:
            self._closed = True
            for worker in [*self._idle, *self._busy]:
                worker.close()


def alone(perform: Callable[[R], Outcome], run: R) -> Outcome:
    """Return the outcome of ``perform(run)``, done by a fresh process; if that crashes, so is the status."""
    with contextlib.closing(Worker()) as worker:
        answered = worker.answer(perform, run)
    if answered is None:
        raise KeyboardInterrupt
    return answered[0]


def serve() -> None:
    """Read pickled runs from standard input until it ends, and write the answers to standard output."""
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # the output of solvers must not get between the answers: it goes where errors go
        while True:
            try:
                perform, run = pickle.load(sys.stdin.buffer)  # noqa: S301  # written by the process that began this one
            except EOFError:
                return
            pickle.dump(answer(perform, run), answers)
            answers.flush()


def end_with_parent(parent: int, every: float = 1.0) -> None:
    """End this process, in the middle of a run if need be, once its parent is no longer the process ``parent``.

    Without that, a run without a limit of time would go on for ever when the study was killed.
    """
    while os.getppid() == parent:
        time.sleep(every)
    os._exit(1)
