"""Labels that NVIDIA's device plugin (GPU feature discovery) gives to nodes: how many instances of each profile.

Labels count the instances of a node. They tell neither the GPU of each nor its place, nor which are in use.
"""

from __future__ import annotations

import re

from mig_opt.files.documents import shown
from mig_opt.operations.observe.kubernetes import Part, of_kind
from mig_opt.operations.observe.sightings import SeenInstance, Sightings

_PREFIX = "nvidia.com/"
_COUNT = re.compile(r"nvidia\.com/mig-(\d+g\.\d+gb\S*)\.count")
_SINGLE = re.compile(r"(.+)-MIG-(\d+g\.\d+gb\S*?)(-SHARED)?")
_MOST = 1024


def has_labels(part: Part) -> bool:
    """Return True if a node has labels of GPU feature discovery."""
    return any(key.startswith(f"{_PREFIX}gpu.") for key in part.texts("metadata", "labels"))


def read_labels(parts: list[Part], seen: Sightings) -> None:
    """Add what the labels of nodes tell."""
    found = False
    for node in of_kind(parts, "Node"):
        if has_labels(node):
            _read_node(node, seen)
            found = True
    if not found:
        seen.wrong("", f"no node has labels of the device plugin, like {_PREFIX}gpu.product")
    elif seen.instances:
        seen.notes.append("labels do not tell which instances are in use, so all count as busy")


def _read_node(node: Part, seen: Sightings) -> None:
    name, labels = node.text("metadata", "name", needed=True), node.texts("metadata", "labels")
    product = labels.get(f"{_PREFIX}gpu.product", "").removesuffix("-SHARED")
    counts = {found[1]: value for key, value in labels.items() if (found := _COUNT.fullmatch(key))}
    single = _SINGLE.fullmatch(product)
    if single:
        product, counts = single[1], {single[2]: labels.get(f"{_PREFIX}gpu.count", "")}
    elif _PREFIX + "gpu.count" in labels:
        gpus = _number(node, f"{_PREFIX}gpu.count", labels[f"{_PREFIX}gpu.count"])
        if gpus is not None:
            seen.counts[name] = gpus
    seen.products[name] = (product, node)
    for profile, text in sorted(counts.items()):
        number = _number(node, f"{_PREFIX}mig-{profile}.count" if not single else f"{_PREFIX}gpu.count", text)
        seen.instances += (SeenInstance(name, None, node, profile) for _ in range(number or 0))


def _number(node: Part, label: str, text: str) -> int | None:
    if re.fullmatch(r"\d{1,5}", text) and int(text) <= _MOST:
        return int(text)
    node.wrong(f"has the label {label}, which must be a number up to {_MOST}, and is {shown(text)}")
    return None
