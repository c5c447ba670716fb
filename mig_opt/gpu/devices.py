"""Names by which people and programs know the GPUs of a plan: machine, index there, UUID.

In plans and files GPUs are numbered from 0 on, without gaps. A machine may have others besides, with MIG off,
say, so its GPUs 1 and 3 may be 0 and 1 of a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from mig_opt.errors import InputError, Problem
from mig_opt.rules.vocabulary import MOST_GPUS, Whole
from mig_opt.texts import number_ranges, plural

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Device:
    """GPU of a machine; as a text, what to call it after the word "GPU".

    Attributes
    ----------
    index : int
        Its number in its machine, as nvidia-smi counts.
    node : str
        Name of the machine; empty if it has none, or is the one at which a plan is carried out.
    uuid : str
        UUID, where it is known.

    Examples
    --------
    >>> str(Device(3)), str(Device(3, "node-1"))
    ('3', '3 of node-1')
    """

    index: Annotated[int, Whole(0, MOST_GPUS - 1)]
    node: str = ""
    uuid: str = ""

    def __str__(self) -> str:
        return f"{self.index} of {self.node}" if self.node else str(self.index)


def gpu_name(devices: Sequence[Device], gpu: int) -> str:
    """Return what to call a GPU of a plan after the word "GPU": its number, where devices are not known.

    ``devices`` are those of the first GPUs of the plan; what comes after them is new.

    Examples
    --------
    >>> gpu_name((), 1), gpu_name((Device(1), Device(3)), 1), gpu_name((Device(1), Device(3)), 2)
    ('1', '3', '2 (new)')
    """
    if gpu < len(devices):
        return str(devices[gpu])
    return f"{gpu} (new)" if devices else str(gpu)


def gpu_names(devices: Sequence[Device], gpus: Sequence[int]) -> str:
    """Return what to call several GPUs of a plan, in ascending order.

    Examples
    --------
    >>> gpu_names((), [0, 1, 2])
    '0-2'
    >>> gpu_names([Device(index, node) for node in ("a", "b") for index in (1, 2)], [0, 1, 2])
    '1-2 of a, 1 of b'
    """
    by_node: dict[str, list[int]] = {}
    for gpu in gpus:
        if gpu < len(devices):
            by_node.setdefault(devices[gpu].node, []).append(devices[gpu].index)
    new = number_ranges([gpu for gpu in gpus if gpu >= len(devices)])
    names = [f"{number_ranges(sorted(own))}{f' of {node}' if node else ''}" for node, own in by_node.items()]
    return ", ".join([*names, *([f"{new} (new)" if devices else new] if new else [])])


def devices_of(nodes: Sequence[str], indices: Sequence[int], uuids: Sequence[str]) -> tuple[Device, ...]:
    """Return devices from lists of what is known; each has an entry for every GPU, or none at all.

    Without indices the GPUs of each node are 0, 1 and so on.

    Examples
    --------
    >>> [str(device) for device in devices_of(["a", "b", "b"], [], [])]
    ['0 of a', '0 of b', '1 of b']
    """
    found, counts = [], Counter[str]()
    for gpu in range(max(map(len, (nodes, indices, uuids)))):
        node = nodes[gpu] if nodes else ""
        index = indices[gpu] if indices else counts[node]
        counts[node] += 1
        found.append(Device(index, node, uuids[gpu] if uuids else ""))
    return tuple(found)


def device_problems(devices: Sequence[Device | None], gpus: int, *, some_new: bool = False) -> Iterator[Problem]:
    """Yield what is wrong with the devices of some GPUs; with ``some_new`` they may be those of the first ones.

    None is a device that could not be read, and ``MOST_GPUS`` a number that could not.
    """
    if not devices or None in devices:
        return
    if gpus != MOST_GPUS and (len(devices) > gpus if some_new else len(devices) != gpus):
        wanted = "one for each GPU but the new ones" if some_new else "one for each GPU"
        yield Problem("devices", f"has {len(devices)} entries for {gpus} GPUs; give {wanted}, or none")
    yield from repeated_devices(devices, lambda position, key: f"devices[{position}].{key}")  # type: ignore[arg-type]


def repeated_devices(devices: Sequence[Device], path: Callable[[int, str], str]) -> Iterator[Problem]:
    """Yield a problem for each GPU that is there twice.

    ``path`` is that of a key of a device, by its position and the name of the key.
    """
    first: dict[object, int] = {}
    for position, device in enumerate(devices):
        names: dict[str, tuple[object, str]] = {}
        if device.index is not None:
            names["index"] = (device.node, device.index), f"GPU {device}"
        if device.uuid:
            names["uuid"] = device.uuid, device.uuid
        for key, (identity, name) in names.items():
            other = first.setdefault(identity, position)
            if other != position:
                message = f"{name} is that of {path(other, key)} already; each GPU needs its own"
                yield Problem(path(position, key), message)


def entry_of(gpu: int, entries: Sequence[Entry]) -> Entry:
    """Return the entry of a GPU in a list with one for each; refuse a number that no GPU has."""
    if not 0 <= gpu < len(entries):
        among = plural(len(entries), "GPU")
        raise InputError([Problem("gpu", f"there is no GPU {gpu} among {among}, numbered from 0")])
    return entries[gpu]
