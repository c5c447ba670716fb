"""The text of ``nvidia-smi``, with ``-L``, ``mig -lgi``, ``mig -lci`` or ``-q -x``, in any mixture.

Of an instance each of them knows something else: the tables of GPU instances have the place, the list of devices has
the UUID, the screen and the XML say which processes run. They are joined by the id of the GPU instance.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mig_opt.files.documents import shown
from mig_opt.gpu.catalogue import catalogue
from mig_opt.operations.observe.gpu_models import kinds_of
from mig_opt.operations.observe.nvidia_smi_xml import read_xml
from mig_opt.operations.observe.pasted import PENDING
from mig_opt.operations.observe.sightings import Line, SeenInstance, Sightings, Source


class _Table(NamedTuple):
    """Table that nvidia-smi prints."""

    rows: str  # what its rows are about
    shape: str  # pattern of a row
    example: str


_TABLES = {
    "NVIDIA-SMI": _Table(
        "GPUs",
        r"\|\s+(\d{1,4})\s+(\S.*?)\s+(?:On|Off|N/A)\s*\|\s*[0-9A-Fa-f:.]+\s+(?:On|Off|N/A)\s*\|.*\|",
        "|   0  NVIDIA A100-SXM4-40GB  On  |  00000000:07:00.0 Off |  On |",
    ),
    "MIG devices": _Table(
        "MIG devices",
        r"\|\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s*\|\s*\S+\s*/\s*(\d{1,9})MiB\s*\|"
        r"\s*(\d{1,4})\s+\S+\s*\|.*\|",
        "|  0  7  0  0  |  11MiB / 4864MiB  | 14  0 |  1  0  0  0  0 |",
    ),
    "Processes": _Table(
        "processes",
        r"\|\s+(\d{1,4})\s+(\d{1,4}|N/A)\s+(?:\d{1,4}|N/A)\s+(\d{1,10})\s+\S+\s.*\|",
        "|  0  7  0  4007  C  python3  312MiB |",
    ),
    "GPU instances": _Table(
        "GPU instances",
        r"\|\s+(\d{1,4})\s+MIG (\S+)\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,3}):(\d{1,3})\s*\|",
        "|   0  MIG 1g.5gb  19  7  0:1  |",
    ),
    "Compute instances": _Table(
        "compute instances",
        r"\|\s+(\d{1,4})\s+(\d{1,4})\s+MIG (\S+)\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,3}):(\d{1,3})\s*\|",
        "|   0  7  MIG 1g.5gb  0  0  0:1  |",
    ),
}
"""Tables by their titles: three of the screen, and those of ``mig -lgi`` and ``mig -lci``."""

_SCREEN = re.compile(r"\| (?:NVIDIA-SMI \S.*|MIG devices:\s*)\|")
"""First line of a screen, or of its table of MIG devices."""
_OF_SCREEN = re.compile(r"\| (NVIDIA-SMI|MIG devices|Processes)\b.*\|")
_LISTED = re.compile(r"\| (GPU instances|Compute instances):\s*\|")
_MODE = re.compile(r"\|\s*\|\s*\|\s*(Enabled|Disabled|N/A|\[N/A\])(\*?)\s*\|")
_ROW = re.compile(r"\|\s+\d{1,4}(\s.*)?")
_GPU = re.compile(r"GPU +(\d{1,4}): (.+?) \(UUID: (GPU-[0-9A-Za-z-]+)\)")
_DEVICE = re.compile(r"MIG (\S+) +Device +(\d{1,4}): +\(UUID: (MIG-[0-9A-Za-z/-]+)\)")
_OLD_UUID = re.compile(r"MIG-GPU-[0-9A-Za-z-]+/(\d{1,4})/(\d{1,4})")
_RULE = re.compile(r"\s*|[+|][-=+]*[+|]")
_HEAD = re.compile(r"\|[\sA-Za-z:]+\|")
_NOTHING = re.compile(r"No (MIG-enabled devices|GPU instances|compute instances) found.*", re.IGNORECASE)
_OTHER = re.compile(r"[^|+].*|\| (NVIDIA-SMI|(GPU|Compute) instances:).*")
"""Lines that are not of a screen: another output begins with them."""


@dataclass(slots=True)
class _Node:
    """Devices and instances of a node, text by text."""

    name: str
    devices: list[SeenInstance] = field(default_factory=list)  # of the list
    placed: list[SeenInstance] = field(default_factory=list)
    computing: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)  # name and line by GPU and instance
    used: list[SeenInstance] = field(default_factory=list)  # of the screen and the XML
    kinds: set[str] = field(default_factory=set)  # outputs that there are; of a table its title
    shown: dict[tuple[str, int | None], object] = field(default_factory=dict)  # in outputs of a kind about a GPU
    title: str = ""  # where the last table begins
    nothing: dict[str, str] = field(default_factory=dict)  # what there is none of, and the line that says so


def read_nvidia_smi(sources: Iterable[Source], seen: Sightings) -> None:
    """Add what texts of nvidia-smi tell."""
    seen.tells_modes = "nvidia-smi or nvidia-smi -q -x"
    nodes: dict[str, _Node] = {}
    for source in sources:
        lines = [Line(where, text.strip()) for where, text in source.lines()]
        node = nodes.setdefault(source.node, _Node(source.node))
        _read_lines(lines, node, seen)
        node.nothing |= {found[1].lower(): at for at, text in lines if (found := _NOTHING.fullmatch(text))}
    for node in nodes.values():
        _join(node, seen)
        _read_modes(node, seen)
    kinds = set.union(*(node.kinds for node in nodes.values()))
    seen.note_unknown("nvidia-smi, run on the machine itself and not in a container, tells it")
    if kinds and kinds <= {"GPU instances", "Compute instances"}:
        seen.notes.append("GPUs without instances are not in the text; nvidia-smi -L lists them")


def _read_lines(lines: Sequence[Line], node: _Node, seen: Sightings) -> None:
    title, gpu, number = "", None, 0
    while number < len(lines):
        begin, (where, text) = number, lines[number]
        number += 1
        if text.startswith("<"):
            ends = (at for at in range(begin, len(lines)) if "</nvidia_smi_log>" in lines[at].text)
            number, title = next(ends, len(lines)) + 1, ""
            _add_shown("-q -x", read_xml(lines[begin:number], node.name, seen), node, seen)
        elif _SCREEN.fullmatch(text):
            ends = (at for at in range(number, len(lines)) if _OTHER.fullmatch(lines[at].text))
            number, title = next(ends, len(lines)), ""
            _add_shown("screen", _read_screen(lines[begin:number], node.name, seen), node, seen)
        elif found := _LISTED.fullmatch(text):
            title, node.title = found[1], where
            node.kinds.add(title)
        elif found := _GPU.fullmatch(text):
            title, gpu = "", int(found[1])
            node.kinds.add("-L")
            seen.gpu(node.name, gpu, where, product=found[2], uuid=found[3])
        elif not title and (found := _DEVICE.fullmatch(text)):
            _read_device(found, gpu, where, node, seen)
        elif title and text.startswith("|") and not _RULE.fullmatch(text) and not _HEAD.fullmatch(text):
            _read_row(title, lines[begin], node, seen)
        elif found := PENDING.fullmatch(text):
            seen.notes.append(f"{where}: MIG is to be {found[1]}d by the next reset of a GPU, and is not yet")
        elif not (_RULE.fullmatch(text) or _NOTHING.fullmatch(text) or (title and _HEAD.fullmatch(text))):
            outputs = "nvidia-smi, or its -L, mig -lgi, mig -lci or -q -x"
            wanted = f"a row like {_TABLES[title].example}" if title else outputs
            seen.wrong(where, f"cannot be read as {wanted}: {shown(text, 60)}")


def _row(title: str, line: Line, seen: Sightings) -> re.Match[str] | None:
    """Return the cells of a row of a table; None if it is none, which is noted."""
    table = _TABLES[title]
    found = re.fullmatch(table.shape, line.text)
    if not found:
        message = f"is no row of the table of {table.rows}, like {table.example}"
        seen.wrong(line.where, f"{message}: {shown(line.text, 60)}")
    return found


def _read_screen(lines: Sequence[Line], node: str, seen: Sightings) -> list[SeenInstance]:
    """Add the GPUs of one screen, and return its MIG devices."""
    tables: dict[str, list[tuple[re.Match[str], str]]] = {}
    title, gpu, partitioned, told = "", None, "", False
    for line in lines:
        where, text = line
        if found := _OF_SCREEN.fullmatch(text):
            title = found[1]
            tables.setdefault(title, [])
        elif _ROW.fullmatch(text) or re.fullmatch(_TABLES[title].shape, text):
            if found := _row(title, line, seen):
                tables[title].append((found, where))
                if title == "NVIDIA-SMI":
                    gpu = int(found[1])
                    seen.gpu(node, gpu, where, product=found[2])
        elif gpu is not None and title == "NVIDIA-SMI" and (found := _MODE.fullmatch(text)):
            # A star says that the mode is not in force yet: it is that after the next reset.
            mig = (found[1] == "Enabled") != bool(found[2])
            if found[2]:
                seen.pending(node, gpu, mig=mig)
            partitioned = partitioned or (where if mig else "")
            seen.gpu(node, gpu, where, mig=mig)
        told = told or (title == "Processes" and ("No running processes" in text or bool(tables[title])))
    torn = title == "MIG devices" and not tables[title] and not any("No MIG devices" in line.text for line in lines)
    if partitioned and (torn or "MIG devices" not in tables):
        what = "row in the table" if torn else "table"
        seen.wrong(partitioned, f"MIG is on, but there is no {what} of MIG devices below; give the whole output")
    # In a container the table of processes is empty, without a word that none runs.
    running = [(int(found[1]), found[2], f"pid {found[3]}") for found, _ in tables.get("Processes", [])]
    devices = []
    for found, where in tables.get("MIG devices", []):
        gpu, instance, _, index, memory, units = map(int, found.groups())
        seen.gpu(node, gpu, where, mig=True)
        own = tuple(name for on, of, name in running if (on, of) == (gpu, str(instance))) if told else None
        size = units, float(memory)
        devices.append(SeenInstance(node, gpu, where, size=size, instance=instance, index=index, processes=own))
    return devices


def _add_shown(kind: str, devices: list[SeenInstance], node: _Node, seen: Sightings) -> None:
    """Add the devices that one output shows."""
    node.kinds.add(kind)
    node.used += devices
    for device in {device.gpu: device for device in devices}.values():
        shown_here = [(other.index, other.instance) for other in devices if other.gpu == device.gpu]
        _check_same((kind, device.gpu), shown_here, device.where, node, seen)


def _check_same(of: tuple[str, int | None], shown_here: object, where: object, node: _Node, seen: Sightings) -> None:
    """Note a GPU that an output shows in another way than an earlier one of the same kind."""
    if node.shown.setdefault(of, shown_here) != shown_here:
        message = f"GPU {of[1]} is shown in another way above: the outputs are of different machines, or moments"
        seen.wrong(where, f"{message}; name the machines, or keep the newest")


def _read_device(found: re.Match[str], gpu: int | None, where: str, node: _Node, seen: Sightings) -> None:
    if gpu is None:
        seen.wrong(where, "a MIG device without a line of its GPU above; give the whole output")
        return
    old = _OLD_UUID.fullmatch(found[3])
    index = int(found[2])
    if any((device.gpu, device.index) == (gpu, index) for device in node.devices):
        seen.wrong(where, f"device {index} of GPU {gpu} is listed more than once")
        return
    seen.gpu(node.name, gpu, where, mig=True)
    instance = int(old[1]) if old else None
    node.devices.append(SeenInstance(node.name, gpu, where, found[1], instance=instance, index=index, uuid=found[3]))


def _read_row(title: str, line: Line, node: _Node, seen: Sightings) -> None:
    found, where = _row(title, line, seen), line.where
    if found is None:
        return
    gpu = int(found[1])
    if title == "Compute instances":
        seen.gpu(node.name, gpu, where, mig=True)
        node.computing.setdefault((gpu, int(found[2])), (found[3], where))
        return
    start, slices, instance = int(found[5]), int(found[6]), int(found[4])
    other = next((held for held in node.placed if (held.gpu, held.instance) == (gpu, instance)), None)
    if other is not None:
        seen.wrong(where, f"instance {instance} of GPU {gpu} is in {other.where} already")
        return
    _check_same(("-lgi", gpu), node.title, where, node, seen)
    seen.gpu(node.name, gpu, where, mig=True)
    held = SeenInstance(node.name, gpu, where, found[2], int(found[3]), start=start, slices=slices, instance=instance)
    node.placed.append(held)


def _read_modes(node: _Node, seen: Sightings) -> None:
    """Add what it says about the modes of GPUs that nvidia-smi found no instances."""
    gpus = [index for name, index in seen.gpus if name == node.name]
    where = next(iter(node.nothing.values()), None)
    if where is None:
        return
    off = node.nothing.get("mig-enabled devices")
    if not gpus:
        reason = "MIG is off" if off else "no instances, and nvidia-smi -L, which lists GPUs, is not in the text"
        seen.leave_out(reason, node.name or "this machine", None)
    for index in gpus if off else gpus[:1] if len(gpus) == 1 else ():
        # That there are no instances is said only if MIG is on somewhere.
        seen.gpu(node.name, index, off or where, mig=not off)


_ByInstance = dict[tuple[int | None, int | None], SeenInstance]
"""Instances by GPU and id; those of which the id is not known have a negative number."""


def _join(node: _Node, seen: Sightings) -> None:
    """Add the instances of a node: those of the table of GPU instances, else those that the other texts speak of."""
    by_id: _ByInstance = {(held.gpu, held.instance): held for held in node.placed}
    for found in node.used:
        _add_used(found, node, by_id, seen)
    _join_devices(node, by_id, seen)
    for (gpu, instance), (name, where) in node.computing.items():
        if (gpu, instance) not in by_id and node.placed:
            seen.wrong(where, f"instance {instance} of GPU {gpu} is not in the table of GPU instances")
        elif (gpu, instance) not in by_id:
            by_id[gpu, instance] = SeenInstance(node.name, gpu, where, _whole(name), instance=instance)
    in_use = {(found.gpu, found.instance) for found in node.used}
    for held in node.placed:
        # Without a compute instance nothing can run; the screen and the XML list only instances with one.
        computes = ("Compute instances" not in node.kinds or (held.gpu, held.instance) in node.computing) and (
            not node.kinds & {"-q -x", "screen"} or (held.gpu, held.instance) in in_use
        )
        held.idle = held.idle if computes else True
    seen.instances += by_id.values()


def _join_devices(node: _Node, by_id: _ByInstance, seen: Sightings) -> None:
    """Add what the list of devices tells."""
    indices = {(found.gpu, found.index): found.instance for found in node.used}
    parts: dict[tuple[int | None, str], list[SeenInstance]] = defaultdict(list)  # compute instances by GPU and profile
    for device in node.devices:
        instance = indices.get((device.gpu, device.index)) if device.instance is None else device.instance
        held = by_id.get((device.gpu, instance)) if instance is not None else None
        if held is not None:
            held.uuid, held.profile = held.uuid or device.uuid, held.profile or _whole(device.profile)
        elif not node.placed and instance is None and _whole(device.profile) != device.profile:
            parts[device.gpu, _whole(device.profile)].append(device)
        elif not node.placed:
            key = (device.gpu, -1 - device.index if instance is None else instance)
            by_id[key] = replace(device, profile=_whole(device.profile), instance=instance)
        elif device.instance is not None or _without_place(device, node):
            message = f"device {device.index} of GPU {device.gpu} is on no instance of the table of GPU instances"
            seen.wrong(device.where, f"{message}: the two outputs are of different moments")
    for group in parts.values():
        _add_parts(group, node, by_id, seen)


def _without_place(device: SeenInstance, node: _Node) -> bool:
    """Return True if a GPU has more devices, up to this one, than instances; parts of instances may share one."""
    before = [other for other in node.devices if other.gpu == device.gpu and other.index <= device.index]
    whole = sum(_whole(other.profile) == other.profile for other in before)
    placed = sum(held.gpu == device.gpu for held in node.placed)
    return whole > placed or not placed


def _add_used(found: SeenInstance, node: _Node, by_id: _ByInstance, seen: Sightings) -> None:
    """Add what the screen or the XML tells of a MIG device."""
    held = by_id.get((found.gpu, found.instance))
    if held is None and node.placed:
        message = f"instance {found.instance} of GPU {found.gpu} is not in the table of GPU instances"
        seen.wrong(found.where, f"{message}: the two outputs are of different moments")
        return
    held = by_id.setdefault((found.gpu, found.instance), found)
    if found.processes is not None:
        held.idle = not found.processes and held.idle is not False
        # Processes come and go: their names do not tell apart instances whose places are not known.
        held.name = held.name or (", ".join(found.processes) if held.start is not None else "")


def _add_parts(parts: list[SeenInstance], node: _Node, by_id: _ByInstance, seen: Sightings) -> None:
    """Add the instances of a profile on a GPU of which the list shows compute instances, if it is clear how many."""
    gpu, home, profile = parts[0].gpu, parts[0].home, _whole(parts[0].profile)
    assert home is not None
    kinds = kinds_of(seen.gpus[home].product) or catalogue()
    others = [device.profile for device in node.devices if device.gpu == gpu and device not in parts]
    # Parts of another profile may all be of one instance.
    beside = [*{_whole(other) for other in others if other != _whole(other)}]
    beside += [other for other in others if other == _whole(other)]
    size, units = _slices(profile), [int(device.profile.partition("c")[0]) for device in parts]
    fewest = max(-(-sum(units) // size), sum(2 * unit > size for unit in units))
    most = min(len(parts), (max(kind.compute_slices for kind in kinds) - sum(map(_slices, beside))) // size)
    if fewest != most:
        for device in parts:
            message = f"{device.profile} is a part of an instance, and the list does not tell of which"
            seen.wrong(device.where, f"{message}; add the output of nvidia-smi mig -lgi")
        return
    for device in parts[:most]:
        uuid = device.uuid if most in (1, len(parts)) else ""
        by_id[gpu, -1 - device.index] = replace(device, profile=profile, uuid=uuid)


def _slices(profile: str) -> int:
    found = re.match(r"[1-9]", profile)
    return int(found[0]) if found else 1


def _whole(profile: str) -> str:
    """Return the profile of the GPU instance of a compute instance: ``3g.20gb`` for ``1c.3g.20gb``."""
    return re.sub(r"^\d+c\.", "", profile)
