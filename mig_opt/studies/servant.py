"""A process that does runs for this one, and may die over one of them without taking anything else with it."""

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
from mig_opt.studies.outcome import CRASHED, Outcome, shielded

R = TypeVar("R")

_SERVE = "from mig_opt.studies.servant import serve; serve()"
"""The program of the child."""

_CTRL_C = (-signal.SIGINT, 0xC000013A)
"""Exit codes after Ctrl-C, of POSIX and of Windows."""

Answer = tuple[Outcome, dict[str, Any]]
"""What a run gave, and the environment that it ran in."""

Answered = tuple[int, Answer | None]
"""Number of a run, and the answer to it; None if it was cut short by Ctrl-C."""


def answer(perform: Callable[[R], Outcome], run: R) -> Answer | None:
    """Return the outcome of ``perform(run)`` and the environment of this process; None after Ctrl-C.

    Other exceptions become outcomes.
    """
    try:
        return shielded(lambda: perform(run)), environment()
    except KeyboardInterrupt:
        return None


class Servant:
    """A child process for runs, one after the other; begun when first used, and again after its death.

    Examples
    --------
    >>> from mig_opt.studies.outcome import shielded
    >>> with Servant() as servant:
    ...     outcome, environment = servant.answer(shielded, Outcome)  # Outcome() lacks arguments
    >>> outcome.status
    'crashed'
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._dismissed = False
        self._lock = threading.Lock()

    def __enter__(self) -> Servant:
        return self

    def __exit__(self, *reason: object) -> None:
        self.dismiss()

    def answer(self, perform: Callable[[R], Outcome], run: R) -> Answer | None:
        """Return what the child answers; None if the run was cut short by Ctrl-C or by the dismissal of the child.

        If the child dies over the run, the status of the outcome is ``crashed``.

        Parameters
        ----------
        perform : callable
            Does the run; a function of a module that the child can import.
        run
            What can be pickled.
        """
        begin = time.perf_counter()
        message = pickle.dumps((perform, run))
        process = self._alive()
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
                process.stdin.write(message)
                process.stdin.flush()
                answered: Answer | None = pickle.load(process.stdout)  # noqa: S301  # written by the child
                return answered
        seconds = time.perf_counter() - begin
        code, error = self._bury(process) if process is not None else (0, "")
        if self._dismissed or code in _CTRL_C:
            return None
        return Outcome(CRASHED, seconds, error=error), environment()

    def dismiss(self) -> None:
        """End the child at once, whatever it is doing, and begin no other one."""
        with self._lock:
            self._dismissed = True
            process = self._process
        if process is not None:
            process.kill()
            self._bury(process)

    def _alive(self) -> subprocess.Popen[bytes] | None:
        """Return the child, None after the dismissal."""
        with self._lock:
            process = self._process
        if process is not None and process.poll() is not None:
            self._bury(process)  # it died while it had nothing to do, which is no run's fault
        with self._lock:
            if self._dismissed:
                return None
            if self._process is None:
                self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the child is buried
                self._process = subprocess.Popen(  # noqa: S603  # this program itself
                    [sys.executable, "-c", _SERVE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
                )
            return self._process

    def _bury(self, process: subprocess.Popen[bytes]) -> tuple[int, str]:
        """Wait for the end of a child; return its exit code, and in words how it ended and the last that it said."""
        code = process.wait()
        with self._lock:
            if self._process is not process or self._errors is None:
                return code, ""
            self._errors.seek(0)
            said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            self._errors.close()
            self._process = self._errors = None
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was to be flushed has no reader
                if pipe is not None:
                    pipe.close()
        how = f"the process was ended by signal {-code}" if code < 0 else f"the process ended with exit code {code}"
        return code, f"{how}: {said[-1]}" if said else how


class Household:
    """Servants, one for each thread that asks."""

    def __init__(self) -> None:
        self._servants: dict[int, Servant] = {}
        self._dismissed = False
        self._lock = threading.Lock()

    def servant(self) -> Servant:
        """Return the servant of this thread."""
        with self._lock:
            servant = self._servants.setdefault(threading.get_ident(), Servant())
        if self._dismissed:
            servant.dismiss()
        return servant

    def dismiss(self) -> None:
        """End all of them at once, and those that would come."""
        with self._lock:
            self._dismissed = True
            servants = list(self._servants.values())
        for servant in servants:
            servant.dismiss()


_HOUSEHOLDS: dict[str, Household] = {}
"""Those of the studies for which this process, a worker of a cluster, has done runs."""


def answer_by_household(study: str, index: int, perform: Callable[[R], Outcome], run: R) -> Answered:
    """Return ``index`` and the answer to a run of a study, by a servant of this process."""
    return index, _HOUSEHOLDS.setdefault(study, Household()).servant().answer(perform, run)


def dismiss_household(study: str) -> None:
    """End the servants of a study in this process."""
    household = _HOUSEHOLDS.pop(study, None)
    if household is not None:
        household.dismiss()


def alone(perform: Callable[[R], Outcome], run: R) -> Outcome:
    """Return the outcome of ``perform(run)``, done by a fresh process; if that dies, the status is ``crashed``.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    with Servant() as servant:
        answered = servant.answer(perform, run)
    if answered is None:
        raise KeyboardInterrupt
    return answered[0]


def serve() -> None:
    """Read pickled runs from standard input until it ends, and write the answers to standard output."""
    # What solvers print must not get between the answers: it goes where errors go.
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
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
