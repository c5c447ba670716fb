"""Reads what the arguments of a command name."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from mig_opt.batch import Batch
from mig_opt.cli.outcome import options_named
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.gpu import get_gpu

BatchArgument = Annotated[
    str, typer.Argument(metavar="BATCH", help="JSON or CSV file, bundled instance, or -.", show_default=False)
]
ScheduleArgument = Annotated[Path, typer.Argument(metavar="SCHEDULE", help="JSON file.", show_default=False)]
GpuOption = Annotated[
    str | None,
    typer.Option("--gpu", metavar="GPU", help="In place of the GPU that BATCH names; CSV files need it."),
]
GpusOption = Annotated[int | None, typer.Option("--gpus", metavar="N", help="In place of BATCH's number of GPUs.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def load_batch(name: str, gpu: str | None, gpus: int | None) -> Batch:
    """Return the batch that BATCH, ``--gpu`` and ``--gpus`` stand for.

    Raises
    ------
    InputError
        With every problem of the one that is wrong.
    """
    if gpu is not None:
        with options_named({"gpu": "--gpu"}):
            get_gpu(gpu)
    check_gpus(gpus)
    batch = _load(name, gpu)
    return batch if gpus is None else batch.replace(gpus=gpus)


def check_gpus(gpus: int | None) -> None:
    """Refuse a number of GPUs that files do not hold either."""
    from mig_opt.files.shapes import MOST_GPUS

    if gpus is not None and not 1 <= gpus <= MOST_GPUS:
        raise InputError([Problem("--gpus", f"must be from 1 to {MOST_GPUS}, is {gpus}")])


def _load(name: str, gpu: str | None) -> Batch:
    from mig_opt.files import batch_from_json, batch_to_json, read_batch
    from mig_opt.instances import instance_names, load_instance

    if name == "-":
        return batch_from_json(sys.stdin.buffer.read(), gpu=gpu, name="standard input", source="standard input")
    there = os.access(name, os.F_OK)
    if name in instance_names() and not there:
        bundled = load_instance(name)
        # Through its file format, which finds everything about it that does not fit the other GPU.
        return bundled if gpu is None else batch_from_json(batch_to_json(bundled), gpu=gpu, name=name, source=name)
    if not there and name == Path(name).stem:
        message = f"no such file, and no bundled instance of that name; {nearest(name, instance_names())}"
        raise InputError([Problem("", message)], name)
    return read_batch(name, gpu)


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
