"""The hands of an executor: a thread for the driver of each GPU, a thread that waits for each task, and one clock."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mig_opt.errors import DriverError
from mig_opt.gpu.model import Placement
from mig_opt.operations.driver import MigInstance
from mig_opt.operations.execute.attempts import Outcome


class Driver(Protocol):
    """The driver of a machine, as far as an executor needs it; :class:`mig_opt.operations.driver.Nvml` is one."""

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


class Tries(Protocol):
    """Tries at tasks of a machine; :class:`mig_opt.operations.execute.attempts.Attempts` are those of this one."""

    def begin(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Any:
        """Start a program; what is returned helps to wait for it."""

    def outcome(self, name: str) -> Outcome | None:
        """Return the end of a try, None while it runs."""

    def wait(self, name: str, process: Any = None) -> Outcome:
        """Wait for the end of a try."""

    def stop(self, name: str) -> None:
        """End a try with all of its processes."""

    def clear(self) -> None:
        """Remove what helps to find tries again."""


class Threads:
    """Threads of this process.

    Parameters
    ----------
    tries : sequence of Tries
        For each task of the batch, those of the machine on which it runs.
    """

    def __init__(self, tries: Sequence[Tries]) -> None:
        self._tries = tries
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
        """Start a try at a task, and wait for it in a thread.

        Raises
        ------
        DriverError
            If the machine refuses to start it.
        """
        tries = self._of(name)
        try:
            process = tries.begin(name, command, environment)
        except OSError as error:
            reason = f"task {task!r} cannot be started: {error.strerror}; mend that, and then go on"
            raise DriverError("start", reason) from error
        self._await(task, lambda: tries.wait(name, process))

    def _of(self, name: str) -> Tries:
        """Return the tries to which one belongs; its name begins with the place of the task in the batch."""
        return self._tries[int(name.partition("-")[0])]

    def adopt(self, task: str, name: str) -> None:
        """Wait in a thread for a try that an earlier process has started."""
        self._await(task, lambda: self._of(name).wait(name))

    def _await(self, task: str, wait: Callable[[], Outcome]) -> None:
        def work() -> None:
            try:
                outcome = wait()
            except Exception as error:
                self._done.put(Done(None, task, self.now(), error=error))
            else:
                self._done.put(Done(None, task, outcome.time, outcome))

        threading.Thread(target=work, name=f"task {task}", daemon=True).start()

    def outcome(self, name: str) -> Outcome | None:
        """Return the end of a try, None while it runs."""
        return self._of(name).outcome(name)

    def next(self, until: float | None) -> Done | None:
        """Return what ends next; None if nothing does until that second."""
        try:
            return self._done.get(timeout=None if until is None else max(until - self.now(), 0.0))
        except queue.Empty:
            return None

    def stop(self, names: Sequence[str]) -> None:
        """End some tries, all at the same time."""
        threads = [threading.Thread(target=self._of(name).stop, args=(name,), daemon=True) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def clear(self) -> None:
        """Remove the files of tries, but not their outputs."""
        for tries in {id(each): each for each in self._tries}.values():
            tries.clear()
