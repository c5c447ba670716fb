"""Fleet states as JSON and CSV, and the results of defragmentations as documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mig_opt.batch.batch import instance_problems
from mig_opt.errors import Problem
from mig_opt.files.documents import Document, read_table_or_json, rendered, shown, write_text
from mig_opt.files.reading import Findings, Raw, encoded, fleet_head, gpu_of, read_document, read_fleet
from mig_opt.files.shapes import StateFile
from mig_opt.files.tables import check_columns, gpu_of_table, read_rows, told_by_row, whole_number
from mig_opt.fleet.state import FleetState
from mig_opt.gpu.model import GpuModel
from mig_opt.result import DefragmentationResult

_COLUMNS = ("gpu", "profile", "start", "name", "pinned")
_FLAGS = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True}


def read_state(path: str | Path, gpu: str | None = None, gpus: int | None = None) -> FleetState:
    """Read a fleet state from a JSON file, or from a CSV file if its name ends in ``.csv``.

    A CSV file has the columns ``gpu`` (the index of the GPU), ``profile`` and ``start``, and optionally ``name`` and
    ``pinned`` (``yes`` or ``no``; blank is ``no``), in any order.

    Parameters
    ----------
    path : str or Path
        The file. Its name without the ending becomes the name of the state.
    gpu : str, optional
        Name or alias of the GPU; in place of the one that a JSON file names. A CSV file needs it.
    gpus : int, optional
        How many GPUs; in place of what a JSON file says. By default a CSV file is for as many as it has instances on.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return read_table_or_json(path, state_from_csv, state_from_json, gpu=gpu, gpus=gpus)


def state_from_json(
    document: Document, *, gpu: str | None = None, gpus: int | None = None, name: str = "", source: str = ""
) -> FleetState:
    """Return the fleet state that a JSON document describes; the arguments are those of :func:`trace_from_json`.

    Raises
    ------
    InputError
        With every problem of the document.

    Examples
    --------
    >>> state = state_from_json(
    ...     '{"schema": "mig-opt/state/1", "gpu": "A30", "instances": [{"gpu": 0, "profile": "1g.6gb", "start": 3}]}'
    ... )
    >>> state.gpu.name, len(state.instances)
    ('A30-24GB', 1)
    """
    raw, findings = read_document(document, "state", source, gpu=gpu, gpus=gpus)
    return _state(raw, gpu_of(raw, findings), name, findings)


def _state(raw: Raw, model: GpuModel | None, name: str, findings: Findings) -> FleetState:
    # Without a kind of GPU only the indices of the GPUs can be wrong.
    values = read_fleet(StateFile, raw, model, findings, _problems, known_without_gpu=r".*\.gpu")
    return FleetState(**values, name=name)


def _problems(gpu: GpuModel, values: dict[str, Any]) -> Iterator[Problem]:
    return instance_problems(gpu, values["gpus"], "instances", values["instances"])


def state_from_csv(
    text: str, *, gpu: str | None = None, gpus: int | None = None, name: str = "", source: str = ""
) -> FleetState:
    r"""Return the fleet state that a CSV table describes; see :func:`read_state`.

    Raises
    ------
    InputError
        With every problem of the table, each with its line and column.

    Examples
    --------
    >>> state = state_from_csv("gpu,profile,start,name\n1,1g.6gb,3,chat\n", gpu="A30")
    >>> state.gpus, state.instances[0].name
    (2, 'chat')
    """
    findings = Findings(source)
    check = partial(check_columns, known=_COLUMNS, needed=dict.fromkeys(_COLUMNS[:3], "; add one"))
    rows = read_rows(text, findings, check, example="gpu,profile,start,...", what="instance")
    entries = [_entry(cells, f"line {line}", findings) for line, cells in rows]
    if gpus is None:
        gpus = max(1, *(entry["gpu"] + 1 for entry in entries if isinstance(entry["gpu"], int)), 1)
    model = gpu_of_table(gpu, findings)
    raw = {"schema": "mig-opt/state/1", "gpu": gpu, "gpus": gpus, "instances": entries}
    with told_by_row(source, "instances", [line for line, _ in rows]):
        return _state(raw, model, name, findings)


def _entry(cells: dict[str, str], where: str, findings: Findings) -> Raw:
    pinned = cells.get("pinned", "").lower()
    if pinned not in _FLAGS:
        findings.add(f"{where}, pinned", f"must be yes or no, is {shown(cells['pinned'])}")
    entry: Raw = {"profile": cells["profile"], "name": cells.get("name", ""), "pinned": _FLAGS.get(pinned, False)}
    entry.update({key: whole_number(cells[key]) for key in ("gpu", "start")})
    return entry


def state_to_json(state: FleetState) -> str:
    """Return a fleet state as JSON text, one instance on each line.

    Optional keys are left out where they have their default. The name of the state is not part of the text: it is the
    name of the file.

    Raises
    ------
    InputError
        If the GPU is not the catalogue's, so that its name does not say what it is.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> print(state_to_json(FleetState(get_gpu("A30"), 1, (HeldInstance(0, "1g.6gb", 3, "chat"),))), end="")
    {
      "schema": "mig-opt/state/1",
      "gpu": "A30-24GB",
      "instances": [
        {"gpu": 0, "profile": "1g.6gb", "start": 3, "name": "chat"}
      ]
    }
    """
    document = fleet_head("state", state.gpu, state.gpus)
    document["instances"] = [encoded(held) for held in state.instances]
    return rendered(document)


def write_state(state: FleetState, path: str | Path) -> None:
    """Write a fleet state to a JSON file; an existing file is replaced only when all is written.

    Raises
    ------
    InputError
        If the file cannot be written, or see :func:`state_to_json`.
    """
    write_text(path, state_to_json(state))


def defragmentation_document(result: DefragmentationResult) -> dict[str, Any]:
    """Return the outcome of a defragmentation as a document: its figures, the migrations in order, and the room."""
    return {
        "status": result.status.value,
        "migrations": None if result.migrations is None else len(result.migrations),
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "fragmentation_before": result.fragmentation_before,
        "fragmentation": result.fragmentation,
        "least_fragmentation": result.least_fragmentation,
        "proven": list(result.proven),
        "reason": result.reason,
        "runtime_s": result.runtime_s,
        "seed": result.seed,
        "room": [{"gpu": gpu, "profile": profile, "start": start} for gpu, profile, start in result.room],
        "steps": [dataclasses.asdict(migration) for migration in result.migrations or ()],
        "versions": dict(result.versions),
    }
