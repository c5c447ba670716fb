"""HAMi's record of MIG instances: an annotation of each pod, beside the GPUs in an annotation of each node."""

from __future__ import annotations

import re

from mig_opt.errors import InputError
from mig_opt.files.documents import parsed, shown
from mig_opt.operations.observe.kubernetes import Document, Part, full_name, of_kind, owner_of, pods_in, read_budgets
from mig_opt.operations.observe.sightings import SeenInstance, Sightings, Source

ALLOCATIONS = "hami.io/vgpu-mig-allocations"
REGISTER = "hami.io/node-nvidia-register"
_NODE = "hami.io/vgpu-node"
_INDEX = re.compile(r"[0-9]{1,4}")
_OLD_FIELDS, _WITH_MODE, _INDEX_AT, _MODE = 7, 9, 7, 8


def read_hami(parts: list[Part], seen: Sightings) -> None:
    """Add what the annotations of HAMi tell."""
    uuids: dict[str, tuple[str, int]] = {}
    for node in of_kind(parts, "Node"):
        text = node.texts("metadata", "annotations").get(REGISTER)
        if text is not None:
            _read_node(node, text, uuids, seen)
    pods = pods_in(parts)
    for pod in pods:
        text = pod.texts("metadata", "annotations").get(ALLOCATIONS)
        if text is not None:
            _read_pod(pod, text, uuids, seen)
    read_budgets(parts, pods, seen)


def _read_node(node: Part, text: str, uuids: dict[str, tuple[str, int]], seen: Sightings) -> None:
    """Add the GPUs of a node: a JSON list, or entries that end with ``:`` in older versions."""
    name = node.text("metadata", "name", needed=True)
    if text.lstrip().startswith("["):
        entries = [
            (
                *(entry.text("id", needed=True), entry.text("type", needed=True)),
                *(entry.whole("index") or 0, entry.text("mode")),
            )
            for entry in _list_in(node, text, REGISTER)
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
        if not uuid:
            continue
        mig = mode == "mig" if mode else None
        seen.gpu(name, index, node, product=product, uuid=uuid, mig=mig)
        uuids[uuid] = (name, index)


def _list_in(part: Part, text: str, annotation: str) -> list[Part]:
    """Return the objects of a JSON list that an annotation holds; their problems are told by the line of the object."""
    try:
        raw, _ = parsed(f'{{"list": {text}}}', "")
    except InputError as error:
        part.wrong(f"has an annotation {annotation} that cannot be read: {error.problems[0].message}")
        return []
    return Part(Document(Source(""), raw, part), (), raw, part.findings).entries("list")


def _read_pod(pod: Part, text: str, uuids: dict[str, tuple[str, int]], seen: Sightings) -> None:
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
        seen.instances.append(
            SeenInstance(
                *(*home, pod, profile),
                start=start,
                slices=slices,
                instance=entry.whole("gpuInstanceID"),
                uuid=entry.text("migUUID"),
                name=name,
                owner=owner_of(pod),
                idle=False,
            )
        )
