"""The hands of an executor: a thread for the driver of each GPU, a thread that waits for each task, and one clock."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mig_opt.driver import MigInstance
from mig_opt.executing.attempts import Attempts, Outcome
from mig_opt.gpu.model import Placement


class Driver(Protocol):
    """The driver of a machine, as far as an executor needs it; :class:`mig_opt.driver.Nvml` is one."""

    def instances(self, gpu: str) -> tuple[MigInstance, ...]:
        """Return the instances of a GPU."""

    def create(self, gpu: str, placement: Placement) -> MigInstance:
        """Create an instance."""

    def destroy(self, gpu: str, number: int) -> None:
        """Destroy an instance."""


@dataclass(frozen=True, slots=True)
class Done:
    """Something has come to its end: an operation by its instance, or a try at a task by its name."""

    instance: int | None
    task: str | None
    time: float  # seconds since 1970
    value: Any = None  # what the operation has returned, or the outcome of the try
    error: Exception | None = None


class Machinery(Protocol):
    """Does things beside each other, and tells when they have ended."""

    def now(self) -> float:
        """Return seconds since 1970."""

    def operate(self, gpu: int, instance: int, action: Callable[[], Any]) -> None:
        """Have an operation of a GPU done; its driver does nothing else meanwhile."""

    def begin(self, task: str, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a try, whose files have a name, at a task."""

    def adopt(self, task: str, name: str) -> None:
        """Wait for a try that an earlier process has started."""

    def outcome(self, name: str) -> Outcome | None:
        """Return the end of a try, None while it runs."""

    def next(self, until: float | None) -> Done | None:
        """Return what ends next; None if nothing does until that second."""

    def stop(self, names: Sequence[str]) -> None:
        """End some tries."""

    def clear(self) -> None:
        """Remove what helps to find tries again."""


class Threads:
    """Threads of this process, for programs of this machine.

    Parameters
    ----------
    folder : Path
        For the files of tries.
    working : Path
        The folder in which commands run.
    """

    def __init__(self, folder: Path, working: Path) -> None:
        self._attempts = Attempts(folder, working)
        self._done: queue.Queue[Done] = queue.Queue()

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def operate(self, gpu: int, instance: int, action: Callable[[], Any]) -> None:
        """Have an operation of a GPU done in a thread."""

        def work() -> None:
            try:
                value = action()
            except Exception as error:
                self._done.put(Done(instance, None, self.now(), error=error))
            else:
                self._done.put(Done(instance, None, self.now(), value))

        threading.Thread(target=work, name=f"driver of GPU {gpu}", daemon=True).start()

    def begin(self, task: str, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a try at a task, and wait for it in a thread."""
        process = self._attempts.begin(name, command, environment)
        self._await(task, lambda: self._attempts.wait(name, process))

    def adopt(self, task: str, name: str) -> None:
        """Wait in a thread for a try that an earlier process has started."""
        self._await(task, lambda: self._attempts.wait(name))

    def _await(self, task: str, wait: Callable[[], Outcome]) -> None:
        def work() -> None:
            outcome = wait()
            self._done.put(Done(None, task, outcome.time, outcome))

        threading.Thread(target=work, name=f"task {task}", daemon=True).start()

    def outcome(self, name: str) -> Outcome | None:
        """Return the end of a try, None while it runs."""
        return self._attempts.outcome(name)

    def next(self, until: float | None) -> Done | None:
        """Return what ends next; None if nothing does until that second."""
        try:
            return self._done.get(timeout=None if until is None else max(until - self.now(), 0.0))
        except queue.Empty:
            return None

    def stop(self, names: Sequence[str]) -> None:
        """End some tries, all at the same time."""
        threads = [threading.Thread(target=self._attempts.stop, args=(name,), daemon=True) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def clear(self) -> None:
        """Remove the files of tries, but not their outputs."""
        self._attempts.clear()
