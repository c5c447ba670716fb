"""The machine of an execution: its driver, tries at tasks, and one clock.

A thread waits for the driver of each GPU that has something to do, and one for each task that runs.
"""

from __future__ import annotations

import contextlib
import pwd
import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from mig_opt.errors import DriverError
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.driver.nvml import Nvml
from mig_opt.operations.execute.attempts import Attempts, Outcome
from mig_opt.operations.execute.engines import in_background


@dataclass(frozen=True, slots=True)
class Done:
    """Something has come to its end: an operation by its instance, a try at a task by its name, or planning."""

    instance: int | None
    task: str | None
    time: float  # seconds since 1970
    value: Any = None  # what the operation has returned, or the outcome of the try
    error: BaseException | None = None


class Machines(contextlib.ExitStack):
    """The driver of this machine, and the tries at tasks.

    Commands run in the folder ``working``, as the user with ``account``; tries have their files in ``folder``.
    """

    def __init__(
        self, folder: Path, working: str, patience: Patience | None, account: pwd.struct_passwd | None = None
    ) -> None:
        super().__init__()
        self._patience = patience or Patience()
        self.tries = Attempts(folder, Path(working), account)
        self._done: queue.Queue[Done] = queue.Queue()

    @cached_property
    def driver(self) -> Nvml:
        """The driver, which is asked from here on."""
        return self.enter_context(Nvml(self._patience))

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def begin(self, task: str, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a try, whose files have a name, at a task; a DriverError says why the machine refuses to."""
        try:
            process = self.tries.begin(name, command, environment)
        except OSError as error:
            reason = f"task {task!r} cannot be started: {error.strerror}; mend that, and then go on"
            raise DriverError("start", reason) from error
        self.later(lambda: self.tries.wait(name, process), task=task)

    def later(self, act: Callable[[], Any], *, instance: int | None = None, task: str | None = None) -> None:
        """Have something done beside everything else, and its end told, as that of an instance or a task if it is."""

        def ended(answer: Future[Any]) -> None:
            error = answer.exception()
            value = None if error else answer.result()
            self._done.put(Done(instance, task, value.time if isinstance(value, Outcome) else self.now(), value, error))

        in_background(act).add_done_callback(ended)

    def next(self, until: float | None) -> Done | None:
        """Return what ends next; None if nothing does until that second."""
        try:
            return self._done.get(timeout=None if until is None else max(until - self.now(), 0.0))
        except queue.Empty:
            return None

    def stop(self, names: Iterable[str]) -> None:
        """End some tries, all at the same time."""
        wait([in_background(partial(self.tries.stop, name)) for name in names])
