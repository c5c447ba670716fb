"""Devices of the GPUs of a plan: the machine of each, and its identifier for ``nvidia-smi -i``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mig_opt.errors import InputError, Problem

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]*")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9:.-]*")
"""Indices, UUIDs and PCI addresses; nothing else may get into a shell script."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU of a machine."""

    host: str  # the machine; empty for the one at which the plan is carried out
    identifier: str  # index, UUID or PCI address

    @property
    def index(self) -> int | None:
        """Its index on its machine, if that is how it is identified."""
        return int(self.identifier) if self.identifier.isdecimal() else None

    def __str__(self) -> str:
        return f"{self.host}/{self.identifier}" if self.host else self.identifier


def devices_of(count: int, devices: Sequence[str] | None) -> tuple[Device, ...]:
    """Return the device of each GPU of a plan.

    Parameters
    ----------
    count : int
        The number of GPUs of the plan.
    devices : sequence of str, optional
        For each of them an index, UUID or PCI address, after ``host/`` if it is in another machine. By default GPU 3 of
        the plan is device 3 of this machine.

    Raises
    ------
    InputError
        If there are too few or too many, one is given twice, or one is not such a name.

    Examples
    --------
    >>> [str(device) for device in devices_of(2, ["node-1/0", "node-2/0"])]
    ['node-1/0', 'node-2/0']
    """
    names = list(map(str, range(count))) if devices is None else list(devices)
    problems = []
    if len(names) != count:
        problems.append(Problem("devices", f"must name {count}, one for each GPU, names {len(names)}"))
    found: dict[Device, int] = {}
    for index, name in enumerate(names):
        host, _, identifier = name.rpartition("/")
        if not (_IDENTIFIER.fullmatch(identifier) and ("/" not in name or _HOST.fullmatch(host))):
            wanted = "index, UUID or PCI address, or host/index and so on"
            problems.append(Problem(f"devices[{index}]", f"must be {wanted}, is {name!r:.60}"))
            continue
        device = Device(host, str(int(identifier)) if identifier.isdecimal() else identifier)
        if found.setdefault(device, index) != index:
            message = f"{name!r} is devices[{found[device]}] already; each GPU needs its own"
            problems.append(Problem(f"devices[{index}]", message))
    if problems:
        raise InputError(problems)
    return tuple(found)


def hosts_of(devices: Sequence[Device]) -> dict[str, list[int]]:
    """Return the GPUs of each machine, in the order in which they are first named."""
    hosts: dict[str, list[int]] = {}
    for gpu, device in enumerate(devices):
        hosts.setdefault(device.host, []).append(gpu)
    return hosts
