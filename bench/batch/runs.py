"""One run of one method on one batch of the study of exactness, here or in a process of its own, and its row."""

import dataclasses
import functools
import json
import os
import random
import signal
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from bench.report import there
from mig_opt import Batch, Callbacks, OperationCosts, ScheduleResult, Task, generate_batch, handover, load, solve
from mig_opt.instances.batch import ScalingName
from mig_opt.studies import environment, rows
from mig_opt.studies.batch import measure, tolerance, violations, warm_up
from mig_opt.studies.rows import Outcome, failures, shielded
from mig_opt.studies.workers import alone

Variant = Literal["plain", "no operation costs", "memory", "impossible", "handover"]
PYJOBSHOP = "pyjobshop"
PACKAGES = ("mig-opt", "ortools", "highspy", "pulp", "pyjobshop")
OTHER_PROBLEMS = (
    *("serving", "fleet", "operations", "simulation", "change", "defragment", "deploy", "explain", "prove", "stream"),
    *("concatenation", "files", "list_decoder", "requests", "study"),
)
"""Parts of the package that have no part in the runs of this study."""
_SEEDS_BEFORE = 1000  # from the seed of a batch to that of the batch before it


@dataclass(frozen=True, slots=True)
class Instance:
    """A batch by name: one of the generator's with WideTimes and p_sup 0.5, or a bundled one.

    ``memory`` gives the tasks random needs of memory; ``impossible`` lets the first need a size that it has no time on.
    ``handover`` begins with the live instances that FAR's schedule for another batch of this size has left.
    """

    n: int
    scaling: ScalingName = "MixedScaling"
    seed: int = 0
    gpu: str = "A100"
    gpus: int = 1
    variant: Variant = "plain"
    bundled: str = ""

    def batch(self) -> Batch:
        """Return the batch."""
        if self.bundled:
            bundled: Batch = load(self.bundled)
            return bundled
        batch = generate_batch(self.n, scaling=self.scaling, seed=self.seed, gpu=self.gpu, gpus=self.gpus)
        if self.variant == "no operation costs":
            return batch.replace(operations=OperationCosts.zero(batch.kind(0)))
        if self.variant == "memory":
            chance = random.Random(self.seed)
            needs = [None, *sorted({profile.memory_gb for profile in batch.kind(0).profiles_of("double-memory")})]
            tasks = (dataclasses.replace(task, memory_gb=chance.choice(needs)) for task in batch.tasks)
            return batch.replace(tasks=tuple(tasks))
        if self.variant == "impossible":
            first = Task("nowhere", {batch.kind(0).sizes[0]: 1.0}, memory_gb=batch.kind(0).memory_gb)
            return batch.replace(tasks=(first, *batch.tasks[1:]))
        if self.variant == "handover":
            before = dataclasses.replace(self, seed=self.seed + _SEEDS_BEFORE, variant="plain").batch()
            return handover(before, there(solve(before, "far").schedule), batch)[0]
        return batch


@dataclass(frozen=True, slots=True)
class Run:
    """A method on an instance; ``fresh`` in a process of its own, where start-up counts and memory is measured.

    ``interrupt_after`` presses Ctrl-C after these seconds (in a process of its own only).
    """

    instance: Instance
    method: str = "auto"
    time_limit: float | None = None
    workers: int = 2
    gap: float = 0.0
    fresh: bool = False
    interrupt_after: float | None = None

    @property
    def key(self) -> str:
        """All of it, as a line of JSON."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @property
    def batch_key(self) -> str:
        """Text that tells the batch from others."""
        return str(self.instance)

    @property
    def label(self) -> str:
        """Name of the run in messages."""
        return f"{self.method} on {self.instance}"

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Return the run with these fields."""
        return cls(**{**fields, "instance": Instance(**fields["instance"])})


def perform(run: Run) -> Outcome:
    """Do a run; KeyboardInterrupt after a Ctrl-C that does not belong to it: what was cut short is no measurement."""
    if run.fresh:
        outcome = alone(perform_here, run)
    else:
        if run.method == PYJOBSHOP:
            _warm_up_pyjobshop()
        else:
            warm_up(run.method)
        outcome = perform_here(run)
    if outcome.status == "interrupted" and run.interrupt_after is None:
        raise KeyboardInterrupt
    return outcome


@functools.cache
def _warm_up_pyjobshop() -> None:
    perform_here(Run(Instance(2, variant="no operation costs"), PYJOBSHOP, time_limit=10))


def perform_here(run: Run) -> Outcome:
    """Do a run in this process."""
    batch = run.instance.batch()
    if run.method == PYJOBSHOP:
        return shielded(functools.partial(_run_pyjobshop, run, batch))
    settings: Any = {"time_limit": run.time_limit, "workers": run.workers, "gap": run.gap, "memory": run.fresh}
    return measure(batch, run.method, callbacks=_CtrlC(run.interrupt_after), **settings)


def _run_pyjobshop(run: Run, batch: Batch) -> Outcome:
    from bench.batch import pyjobshop_model

    answer = pyjobshop_model.solve(batch, run.time_limit, run.workers)
    makespan = None if answer.schedule is None else answer.schedule.makespan
    error, slack = violations(batch, answer.schedule), tolerance(batch, makespan)
    return Outcome(answer.status, answer.seconds, makespan, answer.lower_bound, slack, error=error)


class _CtrlC(Callbacks):
    """Sends this process what Ctrl-C sends, some seconds after the start of the run."""

    def __init__(self, after: float | None) -> None:
        self._timer = None if after is None else threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))

    def on_start(self, batch: Batch, method: str) -> None:
        if self._timer:
            if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in what a shell runs in the background
                signal.signal(signal.SIGINT, signal.default_int_handler)
            self._timer.start()

    def on_end(self, result: ScheduleResult) -> None:
        if self._timer:
            self._timer.cancel()


Row = rows.Row[Run]


def fingerprint() -> str:
    """Return a hash of the sources that have a part in the runs, and of all versions."""
    return environment.fingerprint(PACKAGES, [Path(__file__).with_name("pyjobshop_model.py")], OTHER_PROBLEMS)


def contradictions(found: Iterable[Row]) -> list[str]:
    """Return what cannot be true: bounds above schedules of the same batch; and invalid schedules and failed runs."""
    found = list(found)
    return [*failures(found), *rows.contradictions(found)]
