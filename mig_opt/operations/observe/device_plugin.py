"""Labels that NVIDIA's device plugin (GPU feature discovery) gives to nodes: how many instances of each profile.

Labels count the instances of a node. They tell neither the GPU of each nor its place, nor which are in use. They count
all GPUs, those on which MIG is off, too; how many of them the plugin hands out whole is in the status of the node.
"""

from __future__ import annotations

import re

from mig_opt.files.documents import shown
from mig_opt.operations.observe.kubernetes import Part, of_kind
from mig_opt.operations.observe.sightings import SeenInstance, Sightings

_PREFIX = "nvidia.com/"
_GPUS, _REPLICAS = f"{_PREFIX}gpu.count", f"{_PREFIX}gpu.replicas"
_COUNT = re.compile(r"nvidia\.com/mig-(.+)\.count")
_SINGLE = re.compile(r"(.+)-MIG-(.+)")
_INVALID = "INVALID"
_MOST = 4096


def has_labels(part: Part) -> bool:
    """Return True if a node has labels of GPU feature discovery."""
    return any(key.startswith(f"{_PREFIX}gpu.") for key in part.texts("metadata", "labels"))


def read_labels(parts: list[Part], seen: Sightings) -> None:
    """Add what the labels of nodes tell."""
    seen.tells_modes = "the status of the node, which kubectl get nodes -o json prints,"
    nodes = [node for node in of_kind(parts, "Node") if has_labels(node)]
    for node in nodes:
        _read_node(node, seen)
    if not nodes:
        seen.wrong("", f"no node has labels of the device plugin, like {_PREFIX}gpu.product")
    elif seen.instances:
        seen.notes.append("labels do not tell which instances are in use, so all count as busy")


def _read_node(node: Part, seen: Sightings) -> None:
    name, labels = node.text("metadata", "name", needed=True), node.texts("metadata", "labels")
    product = labels.get(f"{_PREFIX}gpu.product", "").removesuffix("-SHARED")
    counts = {found[1]: _number(node, key, labels) for key in sorted(labels) if (found := _COUNT.fullmatch(key))}
    gpus = _number(node, _GPUS, labels)
    single = _SINGLE.fullmatch(product)
    if single and single[2] == _INVALID:
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
