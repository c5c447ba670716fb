"""Reads what the arguments of a command name."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from mig_opt.batch.batch import Batch
from mig_opt.cli.outcome import Checks, as_options, options_named, say
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.fleet.state import FleetState
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.catalogue import get_gpu

T = TypeVar("T")

STANDARD_INPUT = "-"
"""Stands for standard input where a file is wanted."""

BatchArgument = Annotated[
    str, typer.Argument(metavar="BATCH", help="JSON or CSV file, bundled instance, or -.", show_default=False)
]
ScheduleArgument = Annotated[Path, typer.Argument(metavar="SCHEDULE", help="JSON file.", show_default=False)]
ProblemArgument = Annotated[
    str,
    typer.Argument(metavar="BATCH|SERVICES", help="JSON or CSV file, bundled instance, or -.", show_default=False),
]
PlanArgument = Annotated[
    Path,
    typer.Argument(
        metavar="SCHEDULE|DEPLOYMENT", help="JSON file; of a deployment if it is for services.", show_default=False
    ),
]
GpuOption = Annotated[
    str | None,
    typer.Option("--gpu", metavar="GPU", help="In place of the GPU that BATCH names; CSV files need it."),
]
GpusOption = Annotated[int | None, typer.Option("--gpus", metavar="N", help="In place of BATCH's number of GPUs.")]
TraceGpusOption = Annotated[int | None, typer.Option("--gpus", metavar="N", help="In place of TRACE's number of GPUs.")]
TimeLimitOption = Annotated[float, typer.Option(metavar="S", help="Seconds.")]
SeedOption = Annotated[int, typer.Option(metavar="N", help="For what is random.")]
WorkersOption = Annotated[int | None, typer.Option(metavar="N", help="Threads.  [default: one per core]")]
CostFreeOption = Annotated[
    bool, typer.Option("--cost-free", help="Creations and destructions take no time, whatever BATCH says.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def piped(name: str) -> bytes | None:
    """Return what standard input holds if ``name`` stands for it; it can be read only once."""
    return sys.stdin.buffer.read() if name == STANDARD_INPUT else None


def load_batch(
    name: str, gpu: str | None, gpus: int | None, *, cost_free: bool = False, document: bytes | None = None
) -> Batch:
    """Return the batch that BATCH, ``--gpu``, ``--gpus`` and ``--cost-free`` stand for.

    Says on standard error when the GPU is another one than that of the times. ``document`` is what standard input
    holds, if it has been read.

    Raises
    ------
    InputError
        With every problem of the one that is wrong.
    """
    if gpu is not None:
        with options_named(as_options("gpu")):
            get_gpu(gpu)
    check_gpus(gpus)
    batch, own = _load(name, gpu, document)
    if own not in (None, batch.gpu.name):
        say(f"note: the times of {batch.name} are for {own} and taken as they are for {batch.gpu.name}")
    if gpus is not None:
        batch = batch.replace(gpus=gpus)
    return batch.cost_free() if cost_free else batch


def load_trace(name: str, gpu: str | None, gpus: int | None) -> Trace:
    """Return the trace that TRACE, ``--gpu`` and ``--gpus`` stand for.

    Raises
    ------
    InputError
        With every problem of the one that is wrong.
    """
    from mig_opt.files import read_trace, trace_from_json

    return _loaded(name, gpu, gpus, read_trace, trace_from_json)


def load_state(name: str, gpu: str | None, gpus: int | None) -> FleetState:
    """Return the fleet state that STATE, ``--gpu`` and ``--gpus`` stand for.

    Raises
    ------
    InputError
        With every problem of the one that is wrong.
    """
    from mig_opt.files import read_state, state_from_json

    return _loaded(name, gpu, gpus, read_state, state_from_json)


def _loaded(name: str, gpu: str | None, gpus: int | None, read: Callable[..., T], from_json: Callable[..., T]) -> T:
    """Return what a file or standard input holds, for other GPUs if they are given."""
    if gpu is not None:
        with options_named(as_options("gpu")):
            get_gpu(gpu)
    check_gpus(gpus)
    if name == STANDARD_INPUT:
        label = "standard input"
        return from_json(sys.stdin.buffer.read(), gpu=gpu, gpus=gpus, name=label, source=label)
    return read(name, gpu, gpus)


def check_gpus(gpus: int | None) -> None:
    """Refuse a number of GPUs that files do not hold either."""
    from mig_opt.arguments import MOST_GPUS

    if gpus is not None and not 1 <= gpus <= MOST_GPUS:
        raise InputError([Problem("--gpus", f"must be from 1 to {MOST_GPUS}, is {gpus}")])


def _load(name: str, gpu: str | None, given: bytes | None) -> tuple[Batch, str | None]:
    """Return the batch, and the GPU that it names itself if ``gpu`` may take the place of one."""
    from mig_opt.files import batch_from_json, batch_to_json, read_batch
    from mig_opt.files.documents import read_text
    from mig_opt.instances import instance_names, load_instance

    document: str | bytes
    there = os.access(name, os.F_OK)
    if name == STANDARD_INPUT:
        document, label, source = given or piped(name) or b"", "standard input", "standard input"
    elif name in instance_names() and not there:
        bundled = load_instance(name)
        if gpu is None:
            return bundled, None
        # Through its file format, which finds everything about it that does not fit the other GPU.
        document, label, source = batch_to_json(bundled), name, name
    elif not there and name in instance_names("demand"):
        message = f"is a demand of services, not a batch of tasks; its command is: mig-opt deploy {name}"
        raise InputError([Problem("", message)], name)
    elif not there and name == Path(name).stem:
        message = f"no such file, and no bundled instance of that name; {nearest(name, _bundled())}"
        raise InputError([Problem("", message)], name)
    elif gpu is None or Path(name).suffix.lower() == ".csv":
        return read_batch(name, gpu), None
    else:
        document, label, source = read_text(Path(name)), Path(name).stem, str(Path(name))
    batch = batch_from_json(document, gpu=gpu, name=label, source=source)
    return batch, _own_gpu(document) if gpu is not None else None


def _bundled() -> list[str]:
    from mig_opt.instances import instance_names

    return [*instance_names("batch"), *instance_names("demand")]


def _own_gpu(document: str | bytes) -> str | None:
    """Return the name of the GPU in a JSON document, as the catalogue has it if it is there."""
    from mig_opt.files.documents import parsed

    raw, _ = parsed(document, "")
    named = raw.get("gpu")
    if not isinstance(named, str):
        return None
    with contextlib.suppress(InputError):
        return get_gpu(named).name
    return named


def parsed_share(option: str, text: str) -> float:
    """Return the share that ``0.003`` or ``0.3%`` stands for.

    Raises
    ------
    InputError
        If it is neither, or not from 0 to 1.
    """
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        message = f"must be a share from 0 to 1 or a percentage, e.g. 0.003 or 0.3%, is {text!r}"
        raise InputError([Problem(option, message)])
    return share


def check_outputs(output: Path | None, chart: Path | None, *inputs: str | Path, what: str = "schedule") -> None:
    """Refuse output files that cannot be written, that are inputs, or that are the same.

    Parameters
    ----------
    output, chart : Path, optional
        What is to be written, if anything.
    *inputs : str or Path
        What is read.
    what : str
        What ``output`` is to hold.

    Raises
    ------
    WrongInputsError
        With every reason.
    """
    checks = Checks()
    if output is not None:
        with checks.step():
            check_output(output, *inputs)
    if chart is not None:
        from mig_opt.plotting import check_plot_path

        # One folder that cannot be written is one problem, whatever was to be written there.
        together = output is not None and output.parent == chart.parent and not (output.exists() or chart.exists())
        said = {problem.message for error in checks.errors for problem in error.problems if together}
        try:
            check_plot_path(chart)
        except InputError as error:
            problems = [problem for problem in error.problems if problem.message not in said]
            if problems:
                checks.errors.append(InputError(problems, error.source))
        else:
            with checks.step():
                check_output(chart, *inputs)
                if output is not None and output.resolve() == chart.resolve():
                    raise InputError([Problem("", f"is wanted for both {what} and chart; name two files")], str(chart))
    checks.finish()


def check_output(path: Path, *inputs: str | Path) -> None:
    """Refuse an output file that cannot be written, or that is one of the inputs.

    Raises
    ------
    InputError
        With the reason.
    """
    from mig_opt.files import check_writable

    check_writable(path)
    for name in inputs:
        if os.access(name, os.F_OK) and path.exists() and path.samefile(name):
            raise InputError([Problem("", f"is read as well ({name}); write to another file")], str(path))
