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
from typing import IO, Any, TypeVar

from mig_opt.studies.environment import environment
from mig_opt.studies.rows import CRASHED, Outcome, shielded

R = TypeVar("R")

Answer = tuple[Outcome, dict[str, Any]]
"""Outcome of a run, and the environment that it ran in."""

_PROGRAM = "from mig_opt.studies.workers import serve; serve()"
_CTRL_C = (-signal.SIGINT, 0xC000013A)
"""Exit codes after Ctrl-C, of POSIX and of Windows."""


def answer(perform: Callable[[R], Outcome], run: R) -> Answer | None:
    """Return the outcome of ``perform(run)`` and the environment of this process; None after Ctrl-C.

    Other exceptions become outcomes.
    """
    try:
        return shielded(lambda: perform(run)), environment()
    except KeyboardInterrupt:
        return None


class Worker:
    """A process that does runs; begun when first used, and again after a crash.

    Examples
    --------
    >>> from mig_opt.studies.rows import shielded
    >>> with contextlib.closing(Worker()) as worker:
    ...     outcome, environment = worker.answer(shielded, Outcome)  # Outcome() lacks arguments
    >>> outcome.status
    'crashed'
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def answer(self, perform: Callable[[R], Outcome], run: R) -> Answer | None:
        """Return what :func:`answer` returns in the process; None if Ctrl-C or :meth:`close` cut the run short.

        If the process crashes, so is the status of the outcome.

        Parameters
        ----------
        perform : callable
            Does the run; a function of a module that the process can import.
        run
            Argument of ``perform`` that can be pickled.
        """
        begin = time.perf_counter()
        message = pickle.dumps((perform, run))
        process = self._running()
        if process is None:
            return None
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            process.stdin.write(message)
            process.stdin.flush()
            answered: Answer | None = pickle.load(process.stdout)  # noqa: S301  # written by the worker
            return answered
        seconds = time.perf_counter() - begin
        code, error = self._reap()
        if self._closed or code in _CTRL_C:
            return None
        return Outcome(CRASHED, seconds, error=error), environment()

    def close(self) -> None:
        """End the process at once, whatever it is doing, and begin no other one."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is not None:
            process.kill()
            self._reap()

    def _running(self) -> subprocess.Popen[bytes] | None:
        """Return the process, None after :meth:`close`."""
        if self._process is not None and self._process.poll() is not None:
            self._reap()  # it crashed while it had nothing to do, which is no run's fault
        with self._lock:
            if self._process is None and not self._closed:
                self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
                self._process = subprocess.Popen(  # noqa: S603  # this program itself
                    [sys.executable, "-c", _PROGRAM],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
                )
            return None if self._closed else self._process

    def _reap(self) -> tuple[int, str]:
        """Wait for the end of the process; return its exit code, and in words how it ended and its last line."""
        with self._lock:
            process, log = self._process, self._log
            self._process = self._log = None
        if process is None or log is None:
            return 0, ""
        with log, contextlib.suppress(OSError), process:  # what was to be flushed has no reader
            code = process.wait()
            log.seek(0)
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
        ending = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return code, ": ".join([f"the process {ending}", *lines[-1:]])


class WorkerPool:
    """Workers, as many as there are runs at the same time; threads share it."""

    def __init__(self) -> None:
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._closed = False
        self._lock = threading.Lock()

    def answer(self, perform: Callable[[R], Outcome], run: R) -> Answer | None:
        """Return the answer of an idle worker, as :meth:`Worker.answer` does."""
        with self._lock:
            if self._closed:
                return None
            if not self._idle:
                self._idle.append(Worker())
                self._workers += self._idle
            worker = self._idle.pop()
        try:
            return worker.answer(perform, run)
        finally:
            self._idle.append(worker)

    def close(self) -> None:
        """End all workers at once, and begin no other ones."""
        with self._lock:
            self._closed = True
        for worker in self._workers:
            worker.close()


def alone(perform: Callable[[R], Outcome], run: R) -> Outcome:
    """Return the outcome of ``perform(run)``, done by a fresh process; if that crashes, so is the status.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
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
