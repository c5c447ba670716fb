"""The only part of the golden corpus that knows the package: its command line, and what no command shows."""

import contextlib
import io
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import mig_opt
from mig_opt.api.explain.explanation import Explanation
from mig_opt.cli import main
from mig_opt.gpu.model import KNOWN
from mig_opt.operations.driver import surroundings
from mig_opt.operations.execute.report import Execution


class Ending(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@contextlib.contextmanager
def _hidden(module: str) -> Iterator[None]:
    """Let a module be one that is not installed."""
    before = sys.modules.get(module)
    sys.modules[module] = None  # as the import system has it
    try:
        yield
    finally:
        del sys.modules[module]
        if before is not None:
            sys.modules[module] = before


@contextlib.contextmanager
def _timeless() -> Iterator[None]:
    """Let nothing take time, so that neither a busy machine nor a limit changes what is shown."""

    def slow(clock: Callable[[], float]) -> Callable[[], float]:
        begin = clock()
        return lambda: begin + 1e-7 * (clock() - begin)

    with (
        mock.patch.object(time, "monotonic", slow(time.monotonic)),
        mock.patch.object(time, "perf_counter", slow(time.perf_counter)),
    ):
        yield


def run(
    arguments: Sequence[str], *, columns: int = 120, given: bytes = b"", nvml: bool = False, **environment: str
) -> Ending:
    """Run a command in this process, without a terminal, and without NVIDIA's bindings unless they are wanted."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    settings = {"COLUMNS": str(columns), "MIG_OPT_CACHE": "off", "NO_COLOR": "1", **environment}
    handler = signal.getsignal(signal.SIGINT)
    with (
        mock.patch.dict(os.environ, settings),
        mock.patch.dict(KNOWN),  # what one command has read, others do not know
        mock.patch.object(logging.getLogger("mig_opt"), "handlers", []),  # nor do they write its log
        contextlib.nullcontext() if nvml else _hidden("pynvml"),
        _timeless(),
        mock.patch.object(os, "geteuid", return_value=1000),
        mock.patch.object(surroundings, "_processes", return_value=()),  # a slurmd of another test, say
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code: Any = None
        try:
            main(list(arguments))
        except SystemExit as ending:
            code = ending.code
        finally:
            signal.signal(signal.SIGINT, handler)
    printed = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Ending(code or 0, *printed)


# What no command shows


def read(kind: str, name: str) -> Ending:
    """Read a file of a kind whose figures beside the plan no command checks."""
    from mig_opt.files.serving.deployment_results import DEPLOYMENT_RESULT

    try:
        if kind == "result":
            mig_opt.read(mig_opt.ScheduleResult, name)
        else:
            DEPLOYMENT_RESULT.from_json(Path(name).read_bytes(), source=name)
    except mig_opt.InputError as error:
        return Ending(2, "", str(error))
    return Ending(0, "", "")


def shown() -> Iterator[tuple[str, Any]]:
    """Yield what a notebook shows of objects made from the files in this folder: a title, and text or a figure."""
    with _timeless():
        yield from _shown()


def _shown() -> Iterator[tuple[str, Any]]:
    batch, demand = mig_opt.read(mig_opt.Batch, "batch.json"), mig_opt.read(mig_opt.Demand, "services.json")
    trace = mig_opt.read(mig_opt.Trace, "trace.json")
    deployment = mig_opt.read(mig_opt.Deployment, "fleet.json")
    things: dict[str, Any] = {
        "batch": batch,
        "batch with live instances": mig_opt.read(mig_opt.Batch, "release/batch.json"),
        "long batch": mig_opt.load("miso-a100-100"),
        "schedule": mig_opt.read(mig_opt.Schedule, "plan.json"),
        "result": mig_opt.solve(batch, "far"),
        "long result": mig_opt.solve(mig_opt.load("miso-a100-32").replace(gpus=2), "far"),
        "result of a file": mig_opt.read(mig_opt.ScheduleResult, "result.json"),
        "result without a schedule": mig_opt.solve(mig_opt.read(mig_opt.Batch, "impossible.json"), "far"),
        "explanation": mig_opt.explain(batch, 6),
        "deployment": deployment,
        "deployment result": mig_opt.deploy(demand, "parvagpu"),
        "no deployment": mig_opt.deploy(mig_opt.read(mig_opt.Demand, "unservable.json"), "parvagpu"),
        "day": mig_opt.deploy_day(demand, mig_opt.read(mig_opt.RateTable, "rates.csv")),
        "change": mig_opt.plan_change(mig_opt.read(mig_opt.Deployment, "old-fleet.json"), deployment, demand=demand),
        "migrations": mig_opt.defragment(mig_opt.read(mig_opt.FleetState, "state.json")),
        "simulation": mig_opt.simulate(trace, "first-fit"),
        "requests": mig_opt.simulate_requests(demand, mig_opt.read(mig_opt.Deployment, "fleet.csv"), seconds=10),
        "optimum": mig_opt.optimum(trace),
        "execution": Execution(mig_opt.read(mig_opt.Journal, "run.journal")),
    }
    for name, thing in things.items():
        if hasattr(thing, "_repr_html_"):
            yield name, thing._repr_html_()
        if isinstance(thing, mig_opt.Result | Explanation):
            yield f"{name} as text", str(thing)
        if hasattr(thing, "to_frame"):
            yield f"{name} as frame", thing.to_frame().to_csv(index=False)
    for name in ("batch", "long batch", "result", "deployment result", "requests", "simulation"):
        yield f"{name} as picture", things[name].plot()
    execution = things["execution"]
    picture = mig_opt.plot(execution.journal.batch, execution.journal.schedule, execution.measured()[1])
    yield "execution as picture", picture


@contextlib.contextmanager
def machine(folder: Path) -> Iterator[None]:
    """Let there be one A30 in this machine."""
    from nvml_machine import Machine

    with (
        Machine(folder, "A30").loaded(),
        mock.patch("mig_opt.operations.execute.machines.owner_of_partitions", return_value=""),
    ):
        yield
