"""GPUs of a plan: the device of each, its placements, and the order in which these are created."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mig_opt.errors import Problem, raise_any
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.devices import Device, gpu_name
from mig_opt.gpu.model import Placement, Profile
from mig_opt.rules import entries_of
from mig_opt.serving.deployment import Deployment, check_deployments
from mig_opt.validation.serving.deployments import deployment_problems

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]*")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9:.-]{0,99}")
"""Indices, UUIDs and PCI addresses; nothing else may get into a shell script."""

_PROFILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,31}")
"""Names that drivers have for profiles; those of a GPU from a file may be any text."""


@dataclass(frozen=True, slots=True)
class Address:
    """Machine and identifier, by which a GPU is found."""

    host: str  # the machine; empty for the one at which the plan is carried out
    identifier: str  # index, UUID or PCI address
    name: str = field(default="", compare=False)  # what to call it after the word "GPU"

    def __str__(self) -> str:
        return f"{self.host}/{self.identifier}" if self.host else self.identifier


def addresses(
    count: int, devices: Sequence[str] | None, known: Sequence[Device] = (), *, by_index: bool = False
) -> tuple[Address, ...]:
    """Return the address of each GPU of a plan with ``count`` GPUs.

    ``devices`` names for each an index, UUID or PCI address, after ``host/`` if it is in another machine. By default
    they are those that the plan has ``known``: by UUID, which does not shift, or ``by_index``. If it knows none, GPU 3
    of the plan is device 3 of this machine. Too few or too many are refused, and one that is given twice.

    Examples
    --------
    >>> [str(address) for address in addresses(2, ["node-1/0", "node-2/0"])]
    ['node-1/0', 'node-2/0']
    >>> [str(address) for address in addresses(2, None, [Device(1, "node-1", "GPU-5d5b"), Device(3, "node-1")])]
    ['node-1/GPU-5d5b', 'node-1/3']
    """
    known = known if devices is None else ()
    names = device_names(devices, known, by_index=by_index)
    if devices is None and not known:
        names = list(map(str, range(count)))
    problems = []
    if len(names) != count:
        fact = f"names {len(names)}" if devices is not None else f"and only those of the first {len(names)} are known"
        problems.append(Problem("devices", f"must name {count}, one for each GPU, {fact}"))
    found: dict[Address, int] = {}
    for index, name in enumerate(names):
        host, _, identifier = name.rpartition("/")
        if not (_IDENTIFIER.fullmatch(identifier) and ("/" not in name or _HOST.fullmatch(host))):
            wanted = "index, UUID or PCI address, or host/index and so on"
            problems.append(Problem(f"devices[{index}]", f"must be {wanted}, is {name!r:.60}"))
            continue
        number = str(int(identifier)) if identifier.isdecimal() else identifier
        address = Address(host, number, gpu_name(known, index))
        if found.setdefault(address, index) != index:
            message = f"{name!r} is devices[{found[address]}] already; each GPU needs its own"
            problems.append(Problem(f"devices[{index}]", message))
    raise_any(problems)
    return tuple(found)


def device_names(devices: Sequence[str] | None, known: Sequence[Device], *, by_index: bool = False) -> list[str]:
    """Return the names that find the GPUs of a plan, as far as they are given, or else known."""
    if devices is not None:
        return list(entries_of("devices", devices, str, "a str such as 0 or node-1/0"))
    found = ((each.node, (not by_index and each.uuid) or each.index) for each in known)
    return [f"{node}/{identifier}" if node else str(identifier) for node, identifier in found]


def hosts_of(places: Sequence[Address]) -> dict[str, list[int]]:
    """Return the GPUs of each machine, in the order in which they are first named."""
    hosts: dict[str, list[int]] = {}
    for gpu, address in enumerate(places):
        hosts.setdefault(address.host, []).append(gpu)
    return hosts


def layouts_of(deployment: Deployment) -> tuple[tuple[Placement, ...], ...]:
    """Return the placements on each GPU, by start slice; refuse segments that no script can make."""
    check_deployments(deployment=deployment)
    raise_any(segment_problems(deployment))
    placed: list[list[Placement]] = [[] for _ in deployment.gpus]
    for segment in deployment.segments:
        placed[segment.gpu].append(deployment.placement(segment))
    return tuple(tuple(sorted(on_gpu, key=lambda placement: placement.start)) for on_gpu in placed)


def segment_problems(deployment: Deployment) -> Iterator[Problem]:
    """Yield a problem for segments that cannot exist together, and for each whose profile no driver calls so."""
    yield from deployment_problems(deployment)
    wanted = "must be called as the driver calls it, like 1g.10gb+me, is"
    for index, segment in enumerate(deployment.segments):
        if not _PROFILE.fullmatch(segment.profile):
            yield Problem(f"segments[{index}].profile", f"{wanted} {segment.profile!r:.60}")


def whole_gpu_problems(gpus: Sequence[str], used: Iterable[int]) -> Iterator[Problem]:
    """Yield a problem for each used GPU on which MIG is off: scripts are about instances."""
    for gpu in sorted(set(used) & set(range(len(gpus)))):
        if not get_gpu(gpus[gpu]).mig:
            message = f"has MIG off ({gpus[gpu]}), and scripts are about MIG instances"
            yield Problem(f"gpus[{gpu}]", f"{message}; plan it with MIG on, or export for kubernetes")


def creation_order(profile: Profile) -> tuple[int, int, str]:
    """Sort larger profiles first."""
    return -profile.memory_slices, -profile.compute_slices, profile.name


def in_creation_order(layout: Iterable[Placement]) -> list[Placement]:
    """Return placements in the order in which they are created."""
    return sorted(layout, key=lambda placement: (*creation_order(placement.profile), placement.start))
