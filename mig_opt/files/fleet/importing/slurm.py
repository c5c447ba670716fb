"""Slurm's ``gres.conf`` with ``scontrol show node -d`` and ``scontrol show job -d``, one after the other in any order.

The lines of ``gres.conf`` tell the profile and the GPU of each instance, the node which of them are used (by their
index), and the jobs by whom. Where AutoDetect finds the instances, the node only counts them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mig_opt.files.documents import shown
from mig_opt.files.fleet.importing.sightings import Line, SeenInstance, Sightings, Source

_PAIR = re.compile(r"([A-Za-z_/]+)=(\"[^\"]*\"|\S*)")
_PROFILE = re.compile(r"(?:(.*?)_)?((?:\d+c\.)?\d+g\.\d+gb\S*)")
_DEVICE = re.compile(r"/dev/nvidia(\d{1,4})")
_GRES = re.compile(r"gpu(?::([^:()]+))?:(\d{1,4})(?:\((S|IDX):([^)]*)\))?")
_RANGES = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")
_GRES_KEYS = frozenset(
    "autodetect cores cpus count file flags links multiplefiles name nodename type uniqueid".split()  # noqa: SIM905 - shorter
)
_MOST = 4096


@dataclass(slots=True)
class _Node:
    """Instances of a node, and those of them that are used."""

    listed: list[SeenInstance] = field(default_factory=list)  # in the order of the indices
    counted: list[SeenInstance] = field(default_factory=list)
    used: set[int] | None = None
    users: dict[int, tuple[str, str]] = field(default_factory=dict)
    used_at: object = ""
    shown: bool = False


def looks_like_slurm(text: str) -> bool:
    """Return True if a text has a line of ``gres.conf`` or the begin of a node or job."""
    return bool(re.search(r"^\s*(NodeName|AutoDetect|JobId|Name)\s*=", text, re.MULTILINE | re.IGNORECASE))


def read_slurm(sources: Iterable[Source], seen: Sightings) -> None:
    """Add what texts of Slurm tell."""
    nodes: dict[str, _Node] = {}
    for source in sources:
        block = _NO_BLOCK
        for line in source.lines():
            block = _read_line(line, block, nodes, seen)
    _name_the_nameless(nodes, seen)
    for node in nodes.values():
        _use(node, seen)
    if seen.instances and not any(node.shown for node in nodes.values()):
        seen.notes.append("all instances count as busy; scontrol show node -d tells which are")


_Block = tuple[str, str, str]
"""Node, job and user that lines are about; all empty for lines of ``gres.conf``."""

_NO_BLOCK: _Block = ("", "", "")


def _read_line(line: Line, block: _Block, nodes: dict[str, _Node], seen: Sightings) -> _Block:
    """Read a line, and return the block that it is part of."""
    text = line.text.split("#", 1)[0] if block == _NO_BLOCK else line.text
    if not text.strip():
        return block if line.text.strip() else _NO_BLOCK
    pairs = {key.lower(): value.strip('"') for key, value in _PAIR.findall(text)}
    begins = text[:1] not in " \t"
    if begins and "jobid" in pairs:
        block = "", pairs["jobid"], ""
    elif begins and ("name" in pairs or "autodetect" in pairs) and "arch" not in pairs:
        _read_gres(line, text, pairs, nodes, seen)
        return _NO_BLOCK
    elif begins and "nodename" in pairs:
        block = pairs["nodename"], "", ""
        nodes.setdefault(block[0], _Node()).shown = True
    elif block == _NO_BLOCK:
        message = "is no line of gres.conf, nor of scontrol show node -d or show job -d"
        seen.wrong(line.where, f"{message}: {shown(text.strip(), 60)}")
    if block[0]:
        _read_shown(line, pairs, block[0], nodes[block[0]], seen)
    elif block[1]:
        block = "", block[1], _user(pairs) or block[2]
        _read_job(line, pairs, block, nodes, seen)
    return block


def _read_job(line: Line, pairs: dict[str, str], block: _Block, nodes: dict[str, _Node], seen: Sightings) -> None:
    """Read a line about a job of ``scontrol show job -d``: the one with its indices on a node."""
    if "gres" in pairs and "nodes" in pairs:
        indices = list(_indices(pairs["gres"], line, seen))
        for name in _expanded(pairs["nodes"], line, seen):
            nodes.setdefault(name, _Node()).users |= dict.fromkeys(indices, (f"job {block[1]}", block[2]))


def _user(pairs: dict[str, str]) -> str:
    return pairs.get("userid", "").partition("(")[0]


def _read_gres(line: Line, text: str, pairs: dict[str, str], nodes: dict[str, _Node], seen: Sightings) -> None:
    """Read a line of ``gres.conf``."""
    unknown = [key for key in pairs if key not in _GRES_KEYS]
    rest = _PAIR.sub("", text).strip()
    if unknown or rest:
        seen.wrong(line.where, f"cannot be read as a line of gres.conf: {shown(rest or unknown[0], 60)}")
        return
    if pairs.get("name", "gpu") != "gpu" or (
        "name" not in pairs and "multiplefiles" not in pairs and "file" not in pairs
    ):
        return
    files = pairs.get("multiplefiles") or pairs.get("file")
    names = _expanded(pairs["nodename"], line, seen) if "nodename" in pairs else [""]
    if not files:
        return  # AutoDetect finds them
    found = _PROFILE.fullmatch(pairs.get("type", ""))
    indices = [int(match[1]) for match in map(_DEVICE.fullmatch, _expanded(files, line, seen)) if match]
    if not indices:
        seen.wrong(line.where, f"names no device like /dev/nvidia0: {shown(files, 60)}")
    elif "multiplefiles" in pairs and not found:
        kind = pairs.get("type", "")
        seen.wrong(line.where, f"the type of an instance must name its profile, like a100_1g.5gb, is {shown(kind)}")
    for name in names if indices else ():
        node = nodes.setdefault(name, _Node())
        if found and "multiplefiles" in pairs:
            seen.gpu(name, indices[0], line.where, product=(found[1] or ""), mig=True)
            node.listed.append(SeenInstance(name, indices[0], line.where, found[2]))
        elif "multiplefiles" not in pairs:
            for index in indices:
                seen.gpu(name, index, line.where, product=pairs.get("type", ""), mig=False)
                node.listed.append(SeenInstance(name, index, line.where))


def _read_shown(line: Line, pairs: dict[str, str], name: str, node: _Node, seen: Sightings) -> None:
    """Read a line about a node of ``scontrol show node -d``."""
    if "gres" in pairs and pairs["gres"] not in ("(null)", ""):
        for kind, number, _ in _counts(pairs["gres"], line, seen):
            found = _PROFILE.fullmatch(kind)
            if found:
                seen.products.setdefault(name, (found[1] or "", line.where))
                node.counted += (SeenInstance(name, None, line.where, found[2]) for _ in range(number))
    if "gresused" in pairs:
        node.used, node.used_at = set(_indices(pairs["gresused"], line, seen)), line.where


def _name_the_nameless(nodes: dict[str, _Node], seen: Sightings) -> None:
    """Let lines of ``gres.conf`` without a node be about the only node that is shown, if there is one."""
    shown_nodes = [name for name, node in nodes.items() if node.shown]
    if "" not in nodes or not shown_nodes:
        return
    if len(shown_nodes) > 1:
        where = nodes[""].listed[0].where
        seen.wrong(where, "does not name its node, and several are shown; write NodeName=... in front of it")
        return
    nameless, only = nodes.pop(""), nodes[shown_nodes[0]]
    for held in nameless.listed:
        held.node = shown_nodes[0]
    for index in [index for node, index in seen.gpus if not node]:
        gpu = seen.gpus.pop(("", index))
        seen.gpu(shown_nodes[0], index, gpu.where, product=gpu.product, mig=gpu.mig)
    only.listed += nameless.listed


def _use(node: _Node, seen: Sightings) -> None:
    """Add the instances of a node, with those who use them."""
    found = node.listed
    if node.counted:
        whole = sum(1 for held in node.listed if not held.profile)
        if node.listed and len(node.counted) != len(node.listed) - whole:
            here, there = len(node.listed) - whole, len(node.counted)
            message = (
                f"the node has {there} instances, and gres.conf lists {here} for it: they are of different moments"
            )
            seen.wrong(node.counted[0].where, message)
        found = node.listed or node.counted
    used = node.used if node.used is not None else set(node.users) or None
    for index in sorted({*(used or ()), *node.users}):
        if index >= len(found) and (node.listed or node.counted):
            seen.wrong(node.used_at, f"index {index} is in use, and the node has {len(found)} GPUs and instances only")
    for index, held in enumerate(found):
        held.name, held.owner = node.users.get(index, ("", ""))
        held.idle = None if used is None else index not in used and index not in node.users
        if held.profile:
            seen.instances.append(held)


def _counts(text: str, line: Line, seen: Sightings) -> Iterator[tuple[str, int, str]]:
    """Yield type, number and indices of each kind of GPU in the value of ``Gres``, ``GresUsed`` or ``GRES``."""
    for part in re.split(r",(?![^()]*\))", text):
        found = _GRES.fullmatch(part)
        if found and int(found[2]) <= _MOST:
            yield found[1] or "", int(found[2]), found[4] if found[3] == "IDX" else ""
        elif part.startswith("gpu"):
            seen.wrong(line.where, f"must be like gpu:a100_1g.5gb:7 or gpu:a100_1g.5gb:2(IDX:0-1), is {shown(part)}")


def _indices(text: str, line: Line, seen: Sightings) -> Iterator[int]:
    for _, number, indices in _counts(text, line, seen):
        if indices in ("", "N/A"):
            if number:
                seen.wrong(line.where, f"does not tell which are used (no IDX): {shown(text)}; use scontrol with -d")
        elif found := _numbers(indices):
            yield from found
        else:
            seen.wrong(line.where, f"must be indices like 0-2,5, is {shown(indices)}")


def _numbers(text: str) -> list[int]:
    """Return the numbers of a list like ``0-2,5``; none if it is no such list."""
    if not _RANGES.fullmatch(text):
        return []
    ends = [tuple(map(int, part.split("-"))) for part in text.split(",")]
    if any(end[-1] >= _MOST or end[0] > end[-1] for end in ends):
        return []
    return [number for end in ends for number in range(end[0], end[-1] + 1)]


def _expanded(text: str, line: Line, seen: Sightings) -> list[str]:
    """Return the names that a list like ``a[1-3],b`` stands for."""
    names: list[str] = []
    for part in re.split(r",(?![^\[\]]*\])", text):
        pieces = re.split(r"\[([^\]]*)\]", part)
        choices = []
        for index, piece in enumerate(pieces):
            numbers = _numbers(piece) if index % 2 else []
            if index % 2 and not numbers:
                seen.wrong(line.where, f"must be a list like [1-3,5], is {shown(piece)}")
                return names
            # Zeros in front stay: node[08-10] is node08, node09, node10.
            width = len(piece.partition("-")[0].partition(",")[0]) if index % 2 else 0
            choices.append([str(number).zfill(width) for number in numbers] if index % 2 else [piece])
        if len(names) + math.prod(map(len, choices)) > _MOST:
            seen.wrong(line.where, f"stands for more than {_MOST} names: {shown(text)}")
            return names
        names += map("".join, itertools.product(*choices))
    return names
