"""Instances of Kubernetes, as the programs that own them tell of them in its objects.

NVIDIA's DRA driver for GPUs: ResourceSlices and allocated ResourceClaims. With static partitions the slices announce
the instances that exist; with dynamic ones they announce all that could exist, and those that claims have been
allocated are there. The name of a device tells its place: ``gpu-0-mig-1g5gb-19-6`` is profile 19 at slice 6 of GPU 0;
older drivers wrote ``gpu-0-mig-19-6-1``, with the number of memory slices at the end.

HAMi: an annotation of each pod, beside the GPUs in an annotation of each node.

NVIDIA's device plugin (GPU feature discovery): labels of nodes count the instances of each profile. They tell neither
the GPU of each nor its place, nor which are in use. They count all GPUs, those on which MIG is off, too; how many of
them the plugin hands out whole is in the status of the node.
"""

from __future__ import annotations

import re

from mig_opt.errors import InputError
from mig_opt.files.documents import parsed, shown
from mig_opt.operations.observe.kubernetes import Document, Part, full_name, of_kind, owner_of, pods_in, read_budgets
from mig_opt.operations.observe.sightings import SeenInstance, Sightings, Source

_DRIVER = "gpu.nvidia.com"
_GPU = re.compile(r"gpu-(\d{1,4})")
_OLD = re.compile(r"gpu-(\d{1,4})-mig-(\d{1,4})-(\d{1,3})-(\d{1,3})")
_NEW = re.compile(r"gpu-(\d{1,4})-mig-([a-z0-9-]*[a-z][a-z0-9-]*)-(\d{1,4})-(\d{1,3})")

ALLOCATIONS = "hami.io/vgpu-mig-allocations"
REGISTER = "hami.io/node-nvidia-register"
_NODE = "hami.io/vgpu-node"
_INDEX = re.compile(r"[0-9]{1,4}")
_OLD_FIELDS, _WITH_MODE, _INDEX_AT, _MODE = 7, 9, 7, 8

_PREFIX = "nvidia.com/"
_GPUS, _REPLICAS = f"{_PREFIX}gpu.count", f"{_PREFIX}gpu.replicas"
_COUNT = re.compile(r"nvidia\.com/mig-(.+)\.count")
_SINGLE = re.compile(r"(.+)-MIG-(.+)")
_MOST = 512  # instances, or GPUs, of a node


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
            # Who looks after devices has access to them, and they are free for others.
            if result.text("driver", needed=True) == _DRIVER and result.value.get("adminAccess") is not True:
                _allocate(result, user, nodes, devices, seen)
    for gpu in seen.gpus.values():
        # A GPU is announced without any partition, not even one that could exist, if MIG is off.
        gpu.mig = bool(gpu.mig)
    seen.instances += (held for held in devices.values() if held.idle is not None)
    read_budgets(parts, pods, seen)


def _newest(slices: list[Part], seen: Sightings) -> list[Part]:
    """Return the slices of the driver that are of the newest generation of their pool."""
    own = [part for part in slices if part.text("spec", "driver", needed=True) == _DRIVER]
    told = [(part.text("spec", "pool", "name"), part.whole("spec", "pool", "generation") or 0) for part in own]
    newest = dict(sorted(told))
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
        seen.gpu(node, int(found[1]), device, product=attributes["productName"], uuid=attributes["uuid"])
        return
    if attributes["type"] not in ("mig", ""):
        return
    if found := _OLD.fullmatch(name):
        gpu, profile, start, slices = map(int, found.groups())
        read = SeenInstance(node, gpu, device, profile_id=profile, start=start, slices=slices)
    elif found := _NEW.fullmatch(name):
        gpu, profile, start = int(found[1]), int(found[3]), int(found[4])
        read = SeenInstance(node, gpu, device, found[2], profile_id=profile, start=start)
    else:
        if name:
            device.wrong(f"has the name {shown(name)}, which tells no place, unlike gpu-0-mig-1g5gb-19-6")
        return
    read.profile = attributes["profile"] or read.profile
    # With counters it is announced since it could exist: it is there only if a claim has been allocated it.
    counts = basic.entries("consumesCounters") or device.entries("consumesCounters")
    read.uuid, read.idle = attributes["uuid"], None if counts else True
    seen.gpu(node, gpu, device, product=attributes["productName"], uuid=attributes["parentUUID"], mig=True)
    devices[node, name] = read


def _user(claim: Part, owners: dict[str, str]) -> tuple[str, str]:
    """Return the pod that a claim is for, and to whom that belongs; a claim that no pod uses stands for itself."""
    pods = (user for user in claim.entries("status", "reservedFor") if user.text("resource") in ("pods", ""))
    users = [full_name(claim, pod.text("name")) for pod in pods]
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


def read_hami(parts: list[Part], seen: Sightings) -> None:
    """Add what the annotations of HAMi tell."""
    uuids: dict[str, tuple[str, int]] = {}
    for node in of_kind(parts, "Node"):
        if (text := node.texts("metadata", "annotations").get(REGISTER)) is not None:
            _read_register(node, text, uuids, seen)
    pods = pods_in(parts)
    for pod in pods:
        if (text := pod.texts("metadata", "annotations").get(ALLOCATIONS)) is not None:
            _read_allocations(pod, text, uuids, seen)
    read_budgets(parts, pods, seen)


def _read_register(node: Part, text: str, uuids: dict[str, tuple[str, int]], seen: Sightings) -> None:
    """Add the GPUs of a node: a JSON list, or entries that end with ``:`` in older versions."""
    name = node.text("metadata", "name", needed=True)
    if text.lstrip().startswith("["):
        entries = [
            (one.text("id", needed=True), one.text("type", needed=True), one.whole("index") or 0, one.text("mode"))
            for one in _list_in(node, text, REGISTER)
        ]
    else:
        rows = [entry.split(",") for entry in text.split(":") if entry]
        if any(len(row) < _OLD_FIELDS for row in rows):
            node.wrong(f"has an annotation {REGISTER} that cannot be read: {shown(text, 60)}")
            return
        entries = [
            (row[0], row[4], int(index) if _INDEX.fullmatch(index) else position, mode)
            for position, row in enumerate(rows)
            for index, mode in [(row[_INDEX_AT], row[_MODE]) if len(row) >= _WITH_MODE else ("", "")]
        ]
    for uuid, product, index, mode in entries:
        if uuid:
            seen.gpu(name, index, node, product=product, uuid=uuid, mig=mode == "mig" if mode else None)
            uuids[uuid] = (name, index)


def _list_in(part: Part, text: str, annotation: str) -> list[Part]:
    """Return the objects of a JSON list that an annotation holds; their problems are told by the line of the object."""
    try:
        raw, _ = parsed(f'{{"list": {text}}}', "")
    except InputError as error:
        part.wrong(f"has an annotation {annotation} that cannot be read: {error.problems[0].message}")
        return []
    return Part(Document(Source(""), raw, part), (), raw, part.findings).entries("list")


def _read_allocations(pod: Part, text: str, uuids: dict[str, tuple[str, int]], seen: Sightings) -> None:
    name = full_name(pod)
    node = pod.texts("metadata", "annotations").get(_NODE) or pod.text("spec", "nodeName")
    for entry in _list_in(pod, text, ALLOCATIONS):
        uuid = entry.text("gpuUUID", needed=True)
        start, slices = entry.whole("placement", "start", needed=True), entry.whole("placement", "size", needed=True)
        profile = entry.text("profile", needed=True)
        if not uuid or start is None or slices is None or not profile:
            continue
        home = uuids.get(uuid)
        if home is None or (node and node != home[0]):
            there = f"node {node or '?'}"
            pod.wrong(f"({name}) is on the GPU {shown(uuid)}, which is not among those of {there}; give the nodes too")
            continue
        held = SeenInstance(*home, pod, profile, start=start, slices=slices, instance=entry.whole("gpuInstanceID"))
        held.uuid, held.name, held.owner, held.idle = entry.text("migUUID"), name, owner_of(pod), False
        seen.instances.append(held)


def has_labels(part: Part) -> bool:
    """Return True if a node has labels of GPU feature discovery."""
    return any(key.startswith(f"{_PREFIX}gpu.") for key in part.texts("metadata", "labels"))


def read_labels(parts: list[Part], seen: Sightings) -> None:
    """Add what the labels of nodes tell."""
    seen.tells_modes = "the status of the node, which kubectl get nodes -o json prints,"
    nodes = [node for node in of_kind(parts, "Node") if has_labels(node)]
    for node in nodes:
        _read_labelled(node, seen)
    if not nodes:
        seen.wrong("", f"no node has labels of the device plugin, like {_PREFIX}gpu.product")
    elif seen.instances:
        seen.notes.append("labels do not tell which instances are in use, so all count as busy")


def _read_labelled(node: Part, seen: Sightings) -> None:
    name, labels = node.text("metadata", "name", needed=True), node.texts("metadata", "labels")
    product = labels.get(f"{_PREFIX}gpu.product", "").removesuffix("-SHARED")
    counts = {found[1]: _number(node, key, labels) for key in sorted(labels) if (found := _COUNT.fullmatch(key))}
    gpus = _number(node, _GPUS, labels)
    single = _SINGLE.fullmatch(product)
    if single and single[2] == "INVALID":
        seen.leave_out(f"the label {_PREFIX}gpu.product is that of partitions that do not fit the strategy", name, None)
        return
    if single:
        # The label of GPUs counts the instances here.
        product, counts, gpus = single[1], {single[2]: gpus}, None
    if not any(counts.values()):
        seen.leave_out("whole, since the labels of their nodes count no instances", name, gpus)
        return
    for key, value in ((f"{_PREFIX}mig.config", "all-disabled"), (f"{_PREFIX}mig.strategy", "none")):
        if labels.get(key) == value:
            node.wrong(f"has the label {key}={value}, and labels of instances: they are of different moments")
    if gpus is not None:
        _read_gpus(node, name, product, gpus, seen)
    for profile, number in counts.items():
        seen.instances += (SeenInstance(name, None, node, profile, product=product) for _ in range(number or 0))


def _read_gpus(node: Part, name: str, product: str, gpus: int, seen: Sightings) -> None:
    """Add those GPUs of a node that are not handed out whole."""
    whole = _whole(node)
    if whole is not None and whole >= gpus:
        message = f"has instances, and hands out {whole} whole GPUs by its status, of {gpus} by its labels"
        node.wrong(f"{message}: they are of different moments")
        return
    for index in range(gpus - (whole or 0)):
        seen.gpu(name, index, node, product=product, mig=None if whole is None else True)
    if whole:
        seen.leave_out("handed out whole by the device plugin", f"{whole} of {name}", whole)


def _whole(node: Part) -> int | None:
    """Return the number of GPUs that a node hands out whole; None if that is not told."""
    labels, capacity = node.texts("metadata", "labels"), node.texts("status", "capacity")
    # The label of replicas is about GPUs that are handed out whole: it is 0 if there are none.
    replicas = _number(node, _REPLICAS, labels)
    if not any(key.startswith(f"{_PREFIX}mig-") and text != "0" for key, text in capacity.items()):
        return 0 if replicas == 0 else None  # a plugin that does not run hands out nothing
    handed = sum(_number(node, f"{_PREFIX}{key}", capacity) or 0 for key in ("gpu", "gpu.shared"))
    whole, rest = divmod(handed, replicas or 1)
    if rest or (whole and replicas == 0):
        node.wrong(f"has the label {_REPLICAS}={replicas}, and its status {_PREFIX}gpu: {handed}; they do not agree")
    return None if not whole and replicas else whole


def _number(node: Part, key: str, texts: dict[str, str]) -> int | None:
    """Return the number in a label or an entry of the status; None if there is none, or none that can be read."""
    text = texts.get(key)
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,5}", text) and int(text) <= _MOST:
        return int(text)
    node.wrong(f"has {key}, which must be a number up to {_MOST}, and is {shown(text)}")
    return None
