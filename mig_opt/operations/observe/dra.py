"""ResourceSlices and allocated ResourceClaims of NVIDIA's DRA driver for GPUs.

With static partitions the slices announce the instances that exist; with dynamic ones they announce all that could
exist, and those that claims have been allocated are there. The name of a device tells its place:
``gpu-0-mig-1g5gb-19-6`` is profile 19 at slice 6 of GPU 0; older drivers wrote ``gpu-0-mig-19-6-1``, with the number of
memory slices at the end.
"""

from __future__ import annotations

import re

from mig_opt.files.documents import shown
from mig_opt.operations.observe.kubernetes import Part, full_name, of_kind, owner_of, pods_in, read_budgets
from mig_opt.operations.observe.sightings import SeenInstance, Sightings

DRIVER = "gpu.nvidia.com"
_GPU = re.compile(r"gpu-(\d{1,4})")
_OLD = re.compile(r"gpu-(\d{1,4})-mig-(\d{1,4})-(\d{1,3})-(\d{1,3})")
_NEW = re.compile(r"gpu-(\d{1,4})-mig-([a-z0-9-]*[a-z][a-z0-9-]*)-(\d{1,4})-(\d{1,3})")


_Devices = dict[tuple[str, str], SeenInstance]
"""MIG devices by node and name."""


def read_dra(parts: list[Part], seen: Sightings) -> None:
    """Add what objects of the DRA driver tell."""
    pods = pods_in(parts)
    owners = {full_name(pod): owner_of(pod) for pod in pods}
    devices: _Devices = {}
    nodes: dict[str, str] = {}  # by their pools
    for part in _newest(of_kind(parts, "ResourceSlice"), seen):
        node = part.text("spec", "nodeName", needed=True)
        nodes[part.text("spec", "pool", "name", needed=True)] = node
        for device in part.entries("spec", "devices"):
            _read_device(device, node, devices, seen)
    for claim in of_kind(parts, "ResourceClaim"):
        user = _user(claim, owners)
        for result in claim.entries("status", "allocation", "devices", "results"):
            if result.text("driver", needed=True) == DRIVER:
                _allocate(result, user, nodes, devices, seen)
    for gpu in seen.gpus.values():
        # A GPU is announced without any partition, not even one that could exist, if MIG is off.
        gpu.mig = bool(gpu.mig)
    seen.instances += (held for held in devices.values() if held.idle is not None)
    read_budgets(parts, pods, seen)


def _newest(slices: list[Part], seen: Sightings) -> list[Part]:
    """Return the slices of the driver that are of the newest generation of their pool."""
    own = [part for part in slices if part.text("spec", "driver", needed=True) == DRIVER]
    newest: dict[str, int] = {}
    told = [(part.text("spec", "pool", "name"), part.whole("spec", "pool", "generation") or 0) for part in own]
    for pool, generation in told:
        newest[pool] = max(newest.get(pool, generation), generation)
    if len(own) < len(slices):
        seen.notes.append(f"{len(slices) - len(own)} of {len(slices)} resource slices are of other drivers")
    return [part for part, (pool, generation) in zip(own, told, strict=True) if generation == newest[pool]]


def _read_device(device: Part, node: str, devices: _Devices, seen: Sightings) -> None:
    name = device.text("name", needed=True)
    # In the first versions of the interface (v1alpha3, v1beta1) what a device is like stands under "basic".
    basic = device.find("basic") or device
    keys = ("type", "uuid", "parentUUID", "productName", "profile")
    attributes = {key: basic.text("attributes", key, "string") for key in keys}
    if found := _GPU.fullmatch(name):
        product, uuid = attributes["productName"], attributes["uuid"]
        seen.gpu(node, int(found[1]), device, product=product, uuid=uuid)
        return
    if attributes["type"] not in ("mig", ""):
        return
    read = _instance(name, node, device)
    if read is None:
        if name:
            device.wrong(f"has the name {shown(name)}, which tells no place, unlike gpu-0-mig-1g5gb-19-6")
        return
    read.profile = attributes["profile"] or read.profile
    # With counters it is announced since it could exist: it is there only if a claim has been allocated it.
    counts = basic.entries("consumesCounters") or device.entries("consumesCounters")
    read.uuid, read.idle = attributes["uuid"], None if counts else True
    assert read.gpu is not None
    parent, product = attributes["parentUUID"], attributes["productName"]
    seen.gpu(node, read.gpu, device, product=product, uuid=parent, mig=True)
    devices[node, name] = read


def _instance(name: str, node: str, where: Part) -> SeenInstance | None:
    """Return the instance that the name of a device speaks of."""
    if found := _OLD.fullmatch(name):
        gpu, profile, start, slices = map(int, found.groups())
        return SeenInstance(node, gpu, where, profile_id=profile, start=start, slices=slices)
    if found := _NEW.fullmatch(name):
        return SeenInstance(node, int(found[1]), where, found[2], profile_id=int(found[3]), start=int(found[4]))
    return None


def _user(claim: Part, owners: dict[str, str]) -> tuple[str, str]:
    """Return the pod that a claim is for, and to whom that belongs; a claim that no pod uses stands for itself."""
    users = [
        full_name(claim, user.text("name"))
        for user in claim.entries("status", "reservedFor")
        if user.text("resource") in ("pods", "")
    ]
    name = ", ".join(sorted(users)) or full_name(claim)
    return name, next((owners[user] for user in users if owners.get(user)), "")


def _allocate(result: Part, user: tuple[str, str], nodes: dict[str, str], devices: _Devices, seen: Sightings) -> None:
    """Let the device that a claim has been allocated be in use by a pod of an owner."""
    name, owner = user
    pool, device = result.text("pool", needed=True), result.text("device", needed=True)
    node = nodes.get(pool)
    if not pool or not device:
        return
    if node is None:
        result.wrong(f"is of the pool {shown(pool)}, and no resource slice is; give the resource slices too")
        return
    if found := _GPU.fullmatch(device):
        index = int(found[1])
        seen.notes.append(f"GPU {index} of {node} is allocated as a whole to {name}, so it is left out")
        seen.gpus.pop((node, index), None)
        return
    known = devices.get((node, device))
    if known is None:
        result.wrong(f"has the device {shown(device)}, which no resource slice of {node} announces")
    elif known.idle is False:
        known.name = f"{known.name}, {name}"
    else:
        known.idle, known.name, known.owner, known.where = False, name, owner, result
