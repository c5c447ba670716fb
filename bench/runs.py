"""One run of one method on one batch, here or in a process of its own; always validated again."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from machine import peak_bytes

from mig_opt import Batch, Callbacks, MigOptError, OperationCosts, Task, generate_batch, load_instance, solve, validate
from mig_opt.control import Control
from mig_opt.instances import ScalingName
from mig_opt.loads.compiling import compiled
from mig_opt.result import Result, relative_gap
from mig_opt.ticks import RESOLUTION, Ticks

Variant = Literal["plain", "no operation costs", "memory", "impossible"]
PYJOBSHOP = "pyjobshop"
GAPS = (0.01, 0.005, 0.003, 0.001, 0.0005)
"""The seconds until each of these gaps are kept."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A batch by name: one of the generator's with WideTimes and p_sup 0.5, or a bundled one.

    ``memory`` gives the tasks random needs of memory; ``impossible`` lets the first need a size that it has no time on.
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
            return load_instance(self.bundled)
        batch = generate_batch(self.n, scaling=self.scaling, seed=self.seed, gpu=self.gpu, gpus=self.gpus)
        if self.variant == "no operation costs":
            return batch.replace(operations=OperationCosts.zero(batch.gpu))
        if self.variant == "memory":
            chance = random.Random(self.seed)
            needs = [None, *sorted({profile.memory_gb for profile in batch.gpu.profiles_of("double-memory")})]
            tasks = (dataclasses.replace(task, memory_gb=chance.choice(needs)) for task in batch.tasks)
            return batch.replace(tasks=tuple(tasks))
        if self.variant == "impossible":
            first = Task("nowhere", {batch.gpu.sizes[0]: 1.0}, memory_gb=batch.gpu.memory_gb)
            return batch.replace(tasks=(first, *batch.tasks[1:]))
        return batch


@dataclass(frozen=True, slots=True)
class Run:
    """A method on an instance; ``fresh`` in a process of its own, where start-up counts and memory is measured.

    ``interrupt_after`` presses Ctrl-C after so many seconds (in a process of its own only).
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

    @classmethod
    def from_key(cls, key: str) -> Self:
        """Return the run with that key."""
        fields = json.loads(key)
        return cls(**{**fields, "instance": Instance(**fields["instance"])})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave.

    ``lower_bound`` is None where there is no schedule at all; makespans and bounds that differ by no more than
    ``tolerance`` are the same. ``seconds`` is the time that the caller waited (PyJobShop: the time of its solver).
    ``error`` says what went wrong in a run that had no result, or whose schedule is not valid.
    """

    status: str
    seconds: float
    makespan: float | None = None
    lower_bound: float | None = None
    tolerance: float = 0.0
    seconds_to_gap: Mapping[str, float] = dataclasses.field(default_factory=dict)
    peak_bytes: int | None = None
    error: str = ""

    @property
    def gap(self) -> float:
        """Relative gap; infinite without a schedule or a bound."""
        if self.makespan is None or self.lower_bound is None:
            return float("inf")
        return relative_gap(self.makespan, self.lower_bound)


def perform(run: Run) -> Outcome:
    """Do a run.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, unless it belongs to the run: what was cut short is no measurement.
    """
    if run.fresh:
        outcome = _perform_elsewhere(run)
    else:
        _warm_up(run.method)
        outcome = _perform_here(run)
    if outcome.status == "interrupted" and run.interrupt_after is None:
        raise KeyboardInterrupt
    return outcome


@functools.cache
def _warm_up(method: str) -> None:
    """Load whatever the method loads, so that no run pays for it; what is compiled once on a machine, too."""
    compiled(Control())
    _perform_here(Run(Instance(2, variant="no operation costs"), method, time_limit=10))


def _perform_elsewhere(run: Run) -> Outcome:
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, __file__, run.key], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return Outcome("crashed", time.perf_counter() - begin, error=f"exit code {done.returncode}: {last}")
    return Outcome(**json.loads(done.stdout))


def _perform_here(run: Run) -> Outcome:
    batch = run.instance.batch()
    begin = time.perf_counter()
    try:
        outcome = (_run_pyjobshop if run.method == PYJOBSHOP else _run_mig_opt)(run, batch)
    except MigOptError as error:
        return Outcome("crashed", time.perf_counter() - begin, error=str(error))
    ticks = Ticks.of(batch)
    # Makespans are whole ticks, so two that differ do so by at least one; less is rounding of floating-point sums.
    tolerance = float(ticks.length) / 2 if ticks.exact else RESOLUTION * (outcome.makespan or 0.0)
    return dataclasses.replace(outcome, tolerance=tolerance)


def _run_mig_opt(run: Run, batch: Batch) -> Outcome:
    begin = time.perf_counter()
    result = solve(
        batch,
        run.method,
        time_limit=run.time_limit,
        workers=run.workers,
        gap=run.gap,
        callbacks=_CtrlC(run.interrupt_after),
    )
    seconds = time.perf_counter() - begin
    peak = peak_bytes() if run.fresh else None
    return Outcome(
        status=result.status.value,
        seconds=seconds,
        makespan=result.makespan,
        lower_bound=None if result.status == "infeasible" else result.lower_bound,
        seconds_to_gap={str(gap): at for gap in GAPS if (at := _seconds_to(gap, result)) is not None},
        peak_bytes=peak,
        error="" if result.schedule is None else _violations(batch, result),
    )


def _run_pyjobshop(run: Run, batch: Batch) -> Outcome:
    import pyjobshop_model

    answer = pyjobshop_model.solve(batch, run.time_limit, run.workers)
    return Outcome(
        status=answer.status,
        seconds=answer.seconds,
        makespan=None if answer.schedule is None else answer.schedule.makespan,
        lower_bound=answer.lower_bound,
        error="" if answer.schedule is None else _violations(batch, answer),
    )


class _CtrlC(Callbacks):
    """Sends this process what Ctrl-C sends, some seconds after the start of the run."""

    def __init__(self, after: float | None) -> None:
        self._timer = None if after is None else threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))

    def on_start(self, batch: Batch, method: str) -> None:
        if self._timer:
            self._timer.start()

    def on_end(self, result: Result) -> None:
        if self._timer:
            self._timer.cancel()


def _violations(batch: Batch, answer: Any) -> str:
    validation = validate(batch, answer.schedule)
    return "" if validation.valid else f"{len(validation.violations)} violations: {validation.violations[0]}"


def _seconds_to(gap: float, result: Result) -> float | None:
    for point in result.trajectory:
        if point.makespan is not None and relative_gap(point.makespan, point.lower_bound) <= gap:
            return point.seconds
    # An optimum whose bound was rounded up to it at the end is in no point.
    return result.runtime_s if result.gap is not None and result.gap <= gap else None


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(_perform_here(Run.from_key(sys.argv[1])))))
