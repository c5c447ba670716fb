"""Fleet states as JSON and CSV, and the results of defragmentations as documents."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from mig_opt.files.kinds import INSTANCE, FileKind
from mig_opt.files.tables import Table, check_columns, entries_of_rows, gpu_of_table, read_rows
from mig_opt.files.values import Findings
from mig_opt.fleet.migration_plan import DefragmentationResult
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.method.report import data_of

_FREED = ("freeing", "free_before", "free", "most_free")
_COLUMNS = ("gpu", "profile", "start", "name", "pinned", "owner", "idle", "weight")


def _table(text: str, findings: Findings, *, gpu: str | None = None, **_: object) -> Table:
    check = partial(check_columns, known=_COLUMNS, needed=dict.fromkeys(_COLUMNS[:3], "; add one"))
    rows = read_rows(text, findings, check, example="gpu,profile,start,...", what="instance")
    entries = entries_of_rows((cells for _, cells in rows), dict(zip(_COLUMNS, _COLUMNS, strict=True)), HeldInstance)
    most = max(1, *(entry["gpu"] + 1 for entry in entries if isinstance(entry["gpu"], int)), 1)
    gpu_of_table(gpu, findings)
    return Table({"gpus": most, "instances": entries}, "instances", [line for line, _ in rows])


STATE: FileKind[FleetState] = FileKind(
    "state",
    FleetState,
    {FleetState: {"gpu": "A100-40GB", "instances": [INSTANCE]}, HeldInstance: INSTANCE},
    ("gpu", "gpus", "kinds", "instances", "nodes", "indices", "uuids", "manager", "budgets"),
    defaults={"gpu": None, "gpus": 1},
    whole={"anyOf": [{"required": ["gpu"]}, {"required": ["kinds"]}]},
    options=("gpu", "gpus"),
    # Kinds of GPUs say how many there are.
    finish=lambda state, document: {key: document[key] for key in document if key != "gpus" or not state.kinds},
    table=_table,
    named=True,
)


def defragmentation_document(result: DefragmentationResult) -> dict[str, Any]:
    """Return the outcome of a defragmentation as a document: its figures, the migrations in order, and the room."""
    return {
        "status": result.status.value,
        "migrations": None if result.migrations is None else len(result.migrations),
        **data_of(result, "lower_bound", "gap", "fragmentation_before", "fragmentation", "least_fragmentation"),
        **data_of(result, "proven", "reason", "runtime_s", "seed"),
        "room": [
            {"gpu": gpu, "profile": profile, "start": start, **_device(result.state, gpu)}
            for gpu, profile, start in result.room
        ],
        **(data_of(result, *_FREED) | {"weight": result.objective} if result.freeing else {}),
        "rounds": len(result.rounds),
        "steps": [
            {
                **{key: value for key, value in dataclasses.asdict(step).items() if value or key != "to_profile"},
                **_device(result.state, step.gpu),
                **_device(result.state, step.to_gpu, "to_"),
                "round": number,
            }
            for number, step in zip(result.plan.rounds, result.plan.migrations, strict=True)
        ]
        if result.plan
        else [],
        "versions": dict(result.versions),
    }


def _device(state: FleetState, gpu: int, prefix: str = "") -> dict[str, str | int]:
    """Return what a GPU is, where the state tells it; ``prefix`` is that of the keys."""
    if not state.devices:
        return {}
    device = state.devices[gpu]
    known = {"node": state.nodes, "index": state.devices, "uuid": state.uuids}
    return {f"{prefix}{key}": getattr(device, key) for key, given in known.items() if given}
