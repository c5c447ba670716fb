"""For the tests of studies: runs that other processes can import, and a cluster of two of these."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import pytest

from mig_opt.studies.rows import Outcome


@dataclass(frozen=True)
class Job:
    """A run that does what its ``deed`` says."""

    number: int
    deed: str = "end"

    @property
    def key(self) -> str:
        return json.dumps({"number": self.number, "deed": self.deed})

    @property
    def batch_key(self) -> str:
        return str(self.number)

    @property
    def label(self) -> str:
        return f"{self.deed} {self.number}"

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        return cls(fields["number"], fields["deed"])


def perform(job: Job) -> Outcome:
    """The lower bound is the process that did it."""
    match job.deed:
        case "raise":
            raise ZeroDivisionError("no such thing")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os.write(2, b"first\nlast words\n")
            os._exit(3)
        case "print":
            os.write(1, b"noise of a solver")
        case "nap":
            time.sleep(0.3)
        case "sleep":
            time.sleep(300)
        case "interrupt":
            raise KeyboardInterrupt
    return Outcome("feasible", 0.5, makespan=float(job.number), lower_bound=os.getpid())


@contextlib.contextmanager
def cluster_of_two() -> Iterator[str]:
    """Provide the address of a Dask scheduler with two workers, each a process; skips the test without Dask."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address
