"""The machines of an execution: this one, and those that ssh reaches."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import TracebackType

from mig_opt.batch.journal import Journal
from mig_opt.operations.driver import Nvml, Patience
from mig_opt.operations.execute.attempts import Attempts
from mig_opt.operations.execute.machinery import Threads, Tries
from mig_opt.operations.execute.remote import Remote


class Machines:
    """Drivers and tries at tasks, by the host of a machine; this one is called by an empty text.

    Parameters
    ----------
    run : str
        A name of the execution.
    folder : Path
        For the files of tries on this machine.
    working : str
        The folder in which commands run.
    patience : Patience
        How long to wait for what drivers refuse for a while.
    """

    def __init__(self, run: str, folder: Path, working: str, patience: Patience | None) -> None:
        self._run, self._working, self._patience = run, working, patience or Patience()
        self._attempts = Attempts(folder, Path(working))
        self._local: Nvml | None = None
        self._remote: dict[str, Remote] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)

    def driver(self, host: str) -> Nvml | Remote:
        """Return the driver of a machine."""
        if host:
            if host not in self._remote:
                self._remote[host] = Remote(host, self._run, self._working, self._patience)
                self._stack.callback(self._remote[host].close)
            return self._remote[host]
        if self._local is None:
            self._local = self._stack.enter_context(Nvml(self._patience))
        return self._local

    def drivers(self, journal: Journal) -> list[Nvml | Remote]:
        """Return the driver of each GPU of an execution."""
        return [self.driver(host) for host in _hosts(journal)]

    def threads(self, journal: Journal) -> Threads:
        """Return the hands for the tasks of an execution."""
        tries: list[Tries] = []
        hosts = _hosts(journal)
        for task in journal.batch.tasks:
            host = hosts[journal.lifetimes[journal.instance_of[task.name]].gpu]
            self.driver(host)
            tries.append(self._remote[host] if host else self._attempts)
        return Threads(tries)


def _hosts(journal: Journal) -> list[str]:
    return [gpu.rpartition("/")[0] for gpu in journal.gpus]
