"""The batches, traces and states that the arguments of a command name, and the figures of its options."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from mig_opt import GpuModel, OperationCosts, get_gpu
from mig_opt.cli.checks import file_named, options_named, refuse
from mig_opt.cli.errors import say
from mig_opt.cli.options import BatchOptions, CostOptions
from mig_opt.cli.streams import refusal
from mig_opt.errors import InputError, nearest, raise_any
from mig_opt.rules import wrong_number
from mig_opt.texts import number_in, plural

if TYPE_CHECKING:
    from mig_opt import Batch, Demand, Deployment, FleetState, Trace
    from mig_opt.files.kinds import FileKind
    from mig_opt.gpu.catalogue import CostTable
    from mig_opt.instances.bundled import InstanceKind
    from mig_opt.operations.observe.sightings import Source

T = TypeVar("T")

STANDARD_INPUT = "-"
"""Stands for standard input where a file is wanted."""

_PIPED = "standard input"
"""The name of what comes from there."""

_INSTANCES: Mapping[InstanceKind, tuple[str, str, str]] = {
    "batch": ("a batch of tasks", "solve", "instance"),
    "demand": ("a demand of services", "deploy", "demand"),
    "trace": ("a trace of jobs", "simulate", "trace"),
    "state": ("the state of a fleet", "defragment", "state"),
}
"""For each kind of bundled instance: the words for it, its command, and the word in messages about unknown ones."""


def piped() -> bytes:
    """Return the content of standard input."""
    try:
        return _content(sys.stdin.buffer)
    except OSError as error:
        refuse("", f"cannot be read: {refusal(error)}; name a file, or pipe one into the command", _PIPED)


@functools.lru_cache(maxsize=1)  # a stream can be read only once
def _content(stream: BinaryIO) -> bytes:
    return stream.read()


def texts_of(names: list[str]) -> list[str | Source]:
    """Return the files that are named, or the text that is on standard input in their place."""
    from mig_opt.files.documents import decoded
    from mig_opt.operations.observe.sightings import Source

    if STANDARD_INPUT not in names:
        return [*names]
    if len(names) > 1:
        refuse("SOURCE", "standard input stands alone; leave the files out")
    return [Source(decoded(piped(), _PIPED), _PIPED)]


def is_table(name: str | Path) -> bool:
    """Return True if a file is a CSV table by its name."""
    return Path(name).suffix.lower() == ".csv"


def is_bundled(name: str, kind: InstanceKind) -> bool:
    """Return True if an argument names a bundled instance of a kind, and no file.

    One of the other kind is refused, and what looks like the name of one but is none.
    """
    if os.access(name, os.F_OK):
        return False
    from mig_opt.instances.bundled import instance_names

    known, others = instance_names(kind, drawn=True), list[str]()
    if name in known:
        return True
    wanted, _, word = _INSTANCES[kind]
    for other, (actual, command, _) in _INSTANCES.items():
        names = instance_names(other, drawn=True)
        if name in names:
            refuse("", f"is {actual}, not {wanted}; its command is: mig-opt {command} {name}", name)
        others += names
    if name == Path(name).stem and name != STANDARD_INPUT:
        refuse("", f"no such file, and no bundled {word} of that name; {nearest(name, known, others)}", name)
    return False


def load_batch(name: str, given: BatchOptions) -> Batch:
    """Return the batch that BATCH and its options stand for.

    Says on standard error when the GPU is another one than that of the times.
    """
    from mig_opt.files.batch.batches import BATCH
    from mig_opt.files.documents import read_text

    _check_gpus(given.gpu, given.gpus)
    cost_free = isinstance(given, CostOptions) and given.cost_free
    if given.costs is not None and cost_free:
        refuse("--costs", "and --cost-free exclude each other; give one of them")
    batch, document = _loaded(BATCH, name, gpu=given.gpu)
    if given.gpu is not None and not is_table(name):
        own = _own_gpu(document or read_text(name))
        if own not in (None, batch.kind_names):
            say(f"note: the times of {batch.name} are for {own} and taken as they are for {batch.kind_names}")
    if given.gpus is not None:
        batch = batch.replace(gpus=given.gpus)
    if given.costs is not None:
        batch = batch.replace(operations=costs_by_kind(given.costs, tuple(batch.kinds)))
    return batch.cost_free() if cost_free else batch


def costs_by_kind(argument: str, kinds: Sequence[GpuModel]) -> OperationCosts:
    """Return the operation costs that ``--costs`` stands for; a file has those of one kind of GPU."""
    from mig_opt.batch.kinds import joined_costs

    if len(kinds) == 1:
        return load_costs(argument, kinds[0])
    table = named_costs(argument)
    if table is None:
        refuse("--costs", "a file has the costs of one kind of GPU; give them by kind beside the pools", argument)
    return joined_costs({kind: table.on(kind) for kind in kinds})


def load_costs(argument: str, gpu: GpuModel) -> OperationCosts:
    """Return the operation costs that ``--costs`` stands for: a table of the catalogue, or a file.

    Says on standard error when a file is of another GPU.
    """
    from mig_opt.files.costs import COSTS
    from mig_opt.files.documents import read_text

    table = named_costs(argument)
    if table is not None:
        return table.on(gpu)
    document = read_text(Path(argument))
    costs = COSTS.from_json(document, gpu=gpu.name, source=argument)
    own = _own_gpu(document)
    if own not in (None, gpu.name):
        say(f"note: the costs of {argument} are for {own} and taken as they are for {gpu.name}")
    return costs


def named_costs(argument: str) -> CostTable | None:
    """Return the table of the catalogue that ``--costs`` names; None if it names a file."""
    from mig_opt.gpu.catalogue import cost_tables

    if os.access(argument, os.F_OK):
        return None
    if argument not in cost_tables():
        refuse("--costs", f"no such file, and no table of costs of that name; {nearest(argument, cost_tables())}")
    return cost_tables()[argument]


def _own_gpu(document: str | bytes) -> str | None:
    """Return the name of the GPU in a JSON document, as the catalogue has it if it is there."""
    from mig_opt.files.documents import parsed

    raw, _ = parsed(document, "")
    named = raw.get("gpu")
    if not isinstance(named, str) or named.lower().endswith(".json"):
        return None
    with contextlib.suppress(InputError):
        return get_gpu(named).name
    return named


def load_trace(name: str, gpu: str | None = None, gpus: int | None = None) -> Trace:
    """Return the trace that TRACE, ``--gpu`` and ``--gpus`` stand for."""
    from mig_opt.files.fleet.traces import TRACE

    _check_gpus(gpu, gpus)
    return _loaded(TRACE, name, gpu=gpu, gpus=gpus)[0]


def load_state(name: str, gpu: str | None = None, gpus: int | None = None) -> FleetState:
    """Return the state of a fleet that STATE, ``--gpu`` and ``--gpus`` stand for."""
    from mig_opt.files.fleet.states import STATE

    _check_gpus(gpu, gpus)
    return _loaded(STATE, name, gpu=gpu, gpus=gpus)[0]


def _loaded(kind: FileKind[T], name: str, **gpus: str | int | None) -> tuple[T, str | bytes]:
    """Return what a file, standard input or a bundled instance holds, for other GPUs if they are given.

    Beside it is the document that was read, empty for a file.
    """
    if name == STANDARD_INPUT:
        return kind.from_json(piped(), name=_PIPED, source=_PIPED, **gpus), piped()
    if is_bundled(name, cast("InstanceKind", kind.name)):
        from mig_opt.instances.bundled import load

        bundled: T = load(name)
        if not any(gpus.values()):
            return bundled, ""
        # Through its file format, which finds everything about it that does not fit the other GPUs.
        text = kind.to_json(bundled)
        return kind.from_json(text, name=name, source=name, **gpus), text
    return kind.read(name, **gpus), ""


def started(batch: Batch, state: FleetState, busy_until: float | None, source: str) -> Batch:
    """Return a batch that starts with the instances of a state, on its GPUs; None stays None, it could not be read.

    Where these are of several kinds, those of a kind come one after the other, and their devices say which ones they
    are in the state.
    """
    from mig_opt.gpu.devices import Device

    if busy_until is not None:
        raise_any(wrong_number("--busy-until", busy_until, "a finite number of seconds >= 0", at_least=0))
    initial = state.live_instances(busy_until)
    if batch is None:
        return batch
    if {*batch.kinds} != {*map(state.kind, range(state.gpus))}:
        kinds = f"the state is of {' and '.join(dict.fromkeys(state.names))}, and the batch of {batch.kind_names}"
        refuse("gpu", f"{kinds}; give one of them", source)
    changes: dict[str, object] = {"devices": state.devices}
    if state.kinds:
        pools, parts = {pool.kind: pool for pool in batch.pools}, state.parts()
        order = [gpu for _, gpus in parts for gpu in gpus]
        if order != sorted(order) or state.devices:
            devices = state.devices or tuple(map(Device, range(state.gpus)))
            changes["devices"] = tuple(devices[gpu] for gpu in order)
        changes["pools"] = tuple(replace(pools[state.kind(gpus[0])], count=len(gpus)) for _, gpus in parts)
        initial = tuple(replace(live, gpu=order.index(live.gpu)) for live in initial)
    else:
        changes["gpus"] = state.gpus
    with options_named({"initial": "--from"}):
        return batch.replace(**changes, initial=initial)


def kind_of(name: str) -> str | None:
    """Return the kind of file that an argument names, None if that cannot be told."""
    from mig_opt.files.documents import read_text
    from mig_opt.files.recognition import document_kind

    if not os.access(name, os.F_OK):
        from mig_opt.instances.bundled import FILE_KINDS, instance_names

        found = (file for kind, file in FILE_KINDS.items() if name in instance_names(kind, drawn=True))
        return next(found, None)
    try:
        return document_kind(read_text(name), table=is_table(name))
    except InputError:  # reported where the file is read
        return None


def running_in_state(demand: Demand | None, state: FleetState, path: Path) -> Deployment:
    """Return the deployment that runs in the fleet of the state in a file, empty if the demand could not be read."""
    from mig_opt.fleet.segments import deployment_in
    from mig_opt.serving.deployment import Deployment

    if demand is None:
        return Deployment(state.names, (), state.devices)
    with file_named(path):
        return deployment_in(state, demand)


def idle_as_free(state: FleetState | None) -> list[str]:
    """Return a remark on the idle instances of a state, if it has any."""
    if state is None or not state.idle:
        return []
    idle = plural(len(state.idle), "idle instance of the state counts", "idle instances of the state count")
    return [f"{idle} as free slices: destroy what is in the way."]


def _check_gpus(gpu: str | None, gpus: int | None) -> None:
    if gpu is not None:
        get_gpu(gpu)
    check_number_of_gpus(gpus)


def check_number_of_gpus(gpus: int | None) -> None:
    """Refuse a number of GPUs that files do not hold either."""
    from mig_opt.rules.vocabulary import MOST_GPUS

    if gpus is not None and not 1 <= gpus <= MOST_GPUS:
        refuse("--gpus", f"must be from 1 to {MOST_GPUS}, is {gpus}")


def share_in(text: str) -> float:
    """Return what ``0.003`` or ``0.3%`` stands for; not a number (NaN) if it is neither."""
    number = number_in(text.strip().removesuffix("%").strip())
    return math.nan if isinstance(number, str) else number / (100 if text.strip().endswith("%") else 1)


def parsed_share(option: str, text: str) -> float:
    """Return the share that ``0.003`` or ``0.3%`` stands for."""
    share = share_in(text)
    if not 0 <= share <= 1:
        refuse(option, f"must be a share from 0 to 1 or a percentage, e.g. 0.003 or 0.3%, is {text!r}")
    return share


def parsed_devices(devices: str | None, count: int | None) -> list[str] | None:
    """Return the devices of a list such as ``0,1,node-2/0``; ``count`` is how many it must have, if that is known."""
    from mig_opt.operations.rollout.layouts import addresses

    if devices is None:
        return None
    names = [name.strip() for name in devices.split(",")]
    addresses(len(names) if count is None else count, names)
    return names
