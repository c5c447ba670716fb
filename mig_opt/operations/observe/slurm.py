"""Slurm's ``gres.conf`` with ``scontrol show node -d`` and ``scontrol show job -d``, one after the other in any order.

The lines of ``gres.conf`` tell the profile and the GPU of each instance, the node which of them are used (by their
index), and the jobs by whom. Where AutoDetect finds the instances, the node only counts them. Places are told by
``nvidia-smi``, run on each node, and given to the instances of Slurm here.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from mig_opt.files.documents import shown
from mig_opt.operations.observe.gpu_models import kinds_of, profile_named
from mig_opt.operations.observe.sightings import Line, SeenInstance, Sightings, Source
from mig_opt.texts import listed, plural

_PAIR = re.compile(r"([A-Za-z_/]+)=(\"[^\"]*\"|\S*)")
_PROFILE = re.compile(r"(?:(.*?)_)?((?:\d+c\.)?\d+g\.\d+gb\S*)")
_DEVICE = re.compile(r"/dev/nvidia(\d{1,4})")
_CAPABILITY = re.compile(r"/dev/nvidia-caps/nvidia-cap(\d{1,5})")
_GRES = re.compile(r"gpu(?::([^:()]+|\(null\)))?:(\d{1,4})(?:\((S|IDX):([^)]*)\))?")
_RANGES = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")
_GRES_KEYS = frozenset(
    "autodetect cores cpus count file flags links multiplefiles name nodename type uniqueid uuid".split()  # noqa: SIM905 - shorter
)
_BEGIN = re.compile(rf"\s*(#|(JobId|{'|'.join(_GRES_KEYS)})=)", re.IGNORECASE)
_MOST, _MOST_OF_NODE = 4096, 512  # names or numbers in a list; GPUs and instances of a kind on a node


@dataclass(slots=True)
class _Node:
    """Instances of a node, and those of them that are used."""

    name: str
    listed: list[SeenInstance] = field(default_factory=list)  # in the order of the indices
    counted: list[SeenInstance] = field(default_factory=list)
    used: set[int] | None = None
    users: dict[int, tuple[str, str]] = field(default_factory=dict)
    used_at: object = ""
    shown: bool = False


def read_slurm(sources: Iterable[Source], seen: Sightings) -> None:
    """Add what texts of Slurm tell."""
    nodes: dict[str, _Node] = {}
    for source in sources:
        block, begun = _NO_BLOCK, ""
        for line in (*source.lines(), Line("", "")):
            begun += line.text
            bare = begun.partition("#")[0].rstrip()
            if bare.endswith("\\"):  # it goes on in the next line
                begun = f"{bare[:-1]} "
                continue
            block, begun = _read_line(line._replace(text=begun), block, nodes, seen), ""
    _name_the_nameless(nodes, seen)
    for node in nodes.values():
        _use(node, seen)
    untold = [node.name for node in nodes.values() if not node.shown and not node.listed]
    if untold:
        seen.notes.append(f"scontrol show node -d, which tells the instances of {listed(untold)}, is not in the text")
    seen.note_unknown("scontrol show node -d tells it")


_Block = tuple[str, str, str]
"""Node, job and user that lines are about; all empty for lines of ``gres.conf``."""

_NO_BLOCK: _Block = ("", "", "")


def _read_line(line: Line, block: _Block, nodes: dict[str, _Node], seen: Sightings) -> _Block:
    """Read a line, and return the block that it is part of."""
    # By the first key, since texts that are pasted have lost their indent, or have another one.
    begins = bool(_BEGIN.match(line.text))
    text = line.text.split("#", 1)[0] if begins or block == _NO_BLOCK else line.text
    if begins and re.match(r"\s*(JobId=|NodeName=\S+ +Arch=)", text):
        text = line.text  # what scontrol shows has no comments
    if not text.strip() or text.strip() == "No jobs in the system":
        return block if line.text.strip() else _NO_BLOCK
    found = [(key.lower(), value.strip('"')) for key, value in _PAIR.findall(text)]
    pairs = dict(found)
    if begins and "jobid" in pairs:
        block = "", pairs["jobid"], ""
    elif begins and ("name" in pairs or "autodetect" in pairs) and "arch" not in pairs:
        _read_gres(line, text, pairs, nodes, seen)
        return _NO_BLOCK
    elif begins and "nodename" in pairs:
        block = pairs["nodename"], "", ""
        nodes.setdefault(block[0], _Node(block[0])).shown = True
    elif block == _NO_BLOCK or not pairs:
        message = "is no line of gres.conf, nor of scontrol show node -d or show job -d"
        seen.wrong(line.where, f"{message}: {shown(text.strip(), 60)}")
    if block[0]:
        _read_shown(line, pairs, block[0], nodes[block[0]], seen)
    elif block[1]:
        block = "", block[1], pairs.get("userid", "").partition("(")[0] or block[2]
        _read_job(line, found, block, nodes, seen)
    return block


def _read_job(
    line: Line, pairs: list[tuple[str, str]], block: _Block, nodes: dict[str, _Node], seen: Sightings
) -> None:
    """Read a line about a job of ``scontrol show job -d``: it may have the indices of the job on several nodes."""
    names = ""
    for key, value in pairs:
        if key == "nodes":
            names = value
        elif key == "gres" and names and (indices := list(_indices(value, line, seen))):
            for name in _expanded(names, line, seen):
                nodes.setdefault(name, _Node(name)).users |= dict.fromkeys(indices, (f"job {block[1]}", block[2]))


def _read_gres(line: Line, text: str, pairs: dict[str, str], nodes: dict[str, _Node], seen: Sightings) -> None:
    """Read a line of ``gres.conf``."""
    unknown = [key for key in pairs if key not in _GRES_KEYS]
    rest = _PAIR.sub("", text).strip()
    if unknown or rest:
        seen.wrong(line.where, f"cannot be read as a line of gres.conf: {shown(rest or unknown[0], 60)}")
        return
    if pairs.get("name", "gpu") != "gpu":
        return
    files = pairs.get("multiplefiles") or pairs.get("file")
    names = _expanded(pairs["nodename"], line, seen) if "nodename" in pairs else [""]
    if files:
        _read_files(line, files, pairs, [nodes.setdefault(name, _Node(name)) for name in names], seen)
    elif "nodename" in pairs:
        nodes |= {name: _Node(name) for name in names if name not in nodes}  # AutoDetect finds its instances


def _read_files(line: Line, files: str, pairs: dict[str, str], nodes: list[_Node], seen: Sightings) -> None:
    """Read the devices of a line of ``gres.conf``: several are of an instance if that is said."""
    kind, of_instance = pairs.get("type", ""), "multiplefiles" in pairs
    found = _PROFILE.fullmatch(kind)
    names = _expanded(files, line, seen)
    indices = [int(match[1]) for match in map(_DEVICE.fullmatch, names) if match]
    capabilities = [int(match[1]) for match in map(_CAPABILITY.fullmatch, names) if match]
    if not indices:
        seen.wrong(line.where, f"names no device like /dev/nvidia0: {shown(files, 60)}")
    elif of_instance and not found:
        seen.wrong(line.where, f"the type of an instance must name its profile, like a100_1g.5gb, is {shown(kind)}")
    for node in nodes if indices else ():
        if of_instance and found:
            seen.gpu(node.name, indices[0], line.where, product=(found[1] or ""), mig=True)
            number = _instance_number(indices[0], capabilities)
            node.listed.append(SeenInstance(node.name, indices[0], line.where, found[2], instance=number))
        elif not of_instance:
            for index in indices:
                seen.gpu(node.name, index, line.where, product=kind, mig=False)
                node.listed.append(SeenInstance(node.name, index, line.where))


def _instance_number(gpu: int, capabilities: list[int]) -> int | None:
    """Return the id of a GPU instance by the numbers of its device files; None if they are not as the driver counts.

    Examples
    --------
    >>> _instance_number(0, [30, 31]), _instance_number(1, [147, 148]), _instance_number(1, [30, 31])
    (3, 1, None)
    """
    numbers = {divmod((number - 3) // 9, 15) for number in capabilities}
    of, instance = numbers.pop() if len(numbers) == 1 else (None, None)
    return instance if of == gpu else None


def _read_shown(line: Line, pairs: dict[str, str], name: str, node: _Node, seen: Sightings) -> None:
    """Read a line about a node of ``scontrol show node -d``."""
    if "gres" in pairs and pairs["gres"] not in ("(null)", ""):
        for kind, number, _ in _counts(pairs["gres"], line, seen):
            found = _PROFILE.fullmatch(kind)
            profile, product = (found[2], found[1] or "") if found else ("", kind)
            node.counted += (SeenInstance(name, None, line.where, profile, product=product) for _ in range(number))
    if "gresused" in pairs:
        node.used, node.used_at = set(_indices(pairs["gresused"], line, seen)), line.where


def _name_the_nameless(nodes: dict[str, _Node], seen: Sightings) -> None:
    """Let lines of ``gres.conf`` without a node be about the only node that is shown, if there is one."""
    shown_nodes = [name for name, node in nodes.items() if node.shown]
    if not shown_nodes or not nodes.get("", _Node("")).listed:
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
    found = node.listed or node.counted
    here, there = (Counter(held.profile for held in entries) for entries in (node.listed, node.counted))
    # Without types the node tells a number only.
    typed = all(held.profile or held.product for held in node.counted)
    if node.listed and node.counted and (here != there if typed else here.total() != there.total()):
        message = f"the node has {_counted(there)}, and gres.conf lists {_counted(here)} for it"
        seen.wrong(node.counted[0].where, f"{message}: they are of different moments")
    if not node.listed:
        _leave_out_whole(node, seen)
    for index in sorted({*(node.used or ()), *node.users}):
        if index >= len(found) and found:
            seen.wrong(node.used_at, f"index {index} is in use, and the node has {len(found)} GPUs and instances only")
    for index, held in enumerate(found):
        held.name, held.owner = node.users.get(index, ("", ""))
        held.idle = None if node.used is None else index not in node.used and index not in node.users
        if held.profile:
            seen.instances.append(held)


def _counted(profiles: Counter[str]) -> str:
    return ", ".join(f"{number} x {profile or 'gpu'}" for profile, number in sorted(profiles.items()))


def _leave_out_whole(node: _Node, seen: Sightings) -> None:
    """Leave out what has a type that names no profile: whole GPUs, unless it may be instances beside others."""
    instances = [held for held in node.counted if held.profile]
    types = Counter(held.product for held in node.counted if not held.profile)
    for kind in types:
        fits = any(all(profile_named(gpu, held.profile) for held in instances) for gpu in kinds_of(kind))
        if instances and not fits:
            where = next(held.where for held in node.counted if not held.profile and held.product == kind)
            what = f"the type {shown(kind)}" if kind else "gpu without a type"
            message = f"{what} names neither a profile, like a100_1g.5gb, nor a GPU that can have the other instances"
            seen.wrong(where, f"{message}, so it is not known what is beside them; add the lines of gres.conf")
    if types:
        what = " and ".join(f"{number} x {kind or 'gpu'}" for kind, number in types.items())
        seen.leave_out("types that name no profile, so they are taken for whole GPUs", f"{what} of {node.name}", None)


def _counts(text: str, line: Line, seen: Sightings) -> Iterator[tuple[str, int, str]]:
    """Yield type, number and indices of each kind of GPU in the value of ``Gres``, ``GresUsed`` or ``GRES``."""
    for part in re.split(r",(?![^()]*\))", text):
        found = _GRES.fullmatch(part)
        if found and int(found[2]) <= _MOST_OF_NODE:
            yield (found[1] or "").removeprefix("(null)"), int(found[2]), found[4] if found[3] == "IDX" else ""
        elif part.startswith("gpu"):
            seen.wrong(line.where, f"must be like gpu:a100_1g.5gb:7 or gpu:a100_1g.5gb:2(IDX:0-1), is {shown(part)}")


def _indices(text: str, line: Line, seen: Sightings) -> Iterator[int]:
    for _, number, indices in _counts(text, line, seen):
        if indices in ("", "N/A"):
            if number:
                seen.wrong(line.where, f"does not tell which are used (no IDX): {shown(text)}; use scontrol with -d")
        elif found := _numbers(indices):
            if len(found) != number:
                counted = plural(len(found), "index", "indices")
                seen.wrong(line.where, f"tells of {number} in use, and of {counted}: {shown(text)}")
            yield from found
        else:
            seen.wrong(line.where, f"must be indices like 0-2,5, is {shown(indices)}")


def _numbers(text: str) -> list[int]:
    """Return the numbers of a list like ``0-2,5``; none if it is no such list."""
    if not _RANGES.fullmatch(text):
        return []
    ends = [tuple(map(int, part.split("-"))) for part in text.split(",")]
    if any(end[0] > end[-1] for end in ends) or sum(end[-1] - end[0] + 1 for end in ends) > _MOST:
        return []
    return [number for end in ends for number in range(end[0], end[-1] + 1)]


def _expanded(text: str, line: Line, seen: Sightings) -> list[str]:
    """Return the names that a list like ``a[1-3],b`` stands for."""
    names: list[str] = []
    for part in re.split(r",(?![^\[\]]*\])", text):
        first, *pieces = re.split(r"\[([^\]]*)\]", part)
        choices = [[first]]
        for piece, behind in zip(pieces[::2], pieces[1::2], strict=True):
            numbers = _numbers(piece)
            if not numbers:
                seen.wrong(line.where, f"must be a list like [1-3,5], is {shown(piece)}")
                return names
            # Zeros in front stay: node[08-10] is node08, node09, node10.
            width = len(piece.partition("-")[0].partition(",")[0])
            choices += [[str(number).zfill(width) for number in numbers], [behind]]
        if len(names) + math.prod(map(len, choices)) > _MOST:
            seen.wrong(line.where, f"stands for more than {_MOST} names: {shown(text)}")
            return names
        names += map("".join, itertools.product(*choices))
    return names


def add_gpus(seen: Sightings, there: Sightings) -> None:
    """Add the GPUs that nvidia-smi tells of to those that Slurm tells of.

    A text that names no node is about the only one of Slurm. GPUs have the driver's names, in place of Slurm's types.
    """
    nodes = list(dict.fromkeys([held.node for held in seen.instances] + [node for node, _ in seen.gpus]))
    only = nodes[0] if len(nodes) == 1 else ""
    for gpu in there.gpus.values():
        gpu.node = gpu.node or only
        home = gpu.node, gpu.index
        known = seen.gpus.get(home, gpu)
        mig = known.mig if gpu.mig is None else gpu.mig
        seen.gpus[home] = replace(gpu, product=gpu.product or known.product, mig=mig)
    for held in there.instances:
        held.node = held.node or only
    strange = [held for held in there.instances if held.node not in nodes]
    if strange:
        where, names = strange[0].where, listed(nodes)
        message = f"is of {strange[0].node or 'no node that is named'}, and Slurm's text of {names}"
        seen.wrong(where, f"{message}; call the file of each node by the name that Slurm has for it")
    seen.notes += [note for note in there.notes if "idle" not in note]


def take_places(seen: Sightings, there: list[SeenInstance], *, assume: bool) -> None:
    """Give the instances of Slurm the places that are told for those of their node.

    Device files say which is which. Where AutoDetect finds the instances, nothing does: those of a profile are told
    apart only if any may be taken (``assume``), or if it does not matter.
    """
    by_number = {(held.node, held.gpu, held.instance): held for held in there}
    nodes, left, open_groups = {held.node for held in there}, {id(at): at for at in there}, defaultdict(list)
    for held in seen.instances:
        at = by_number.get((held.node, held.gpu, held.instance)) if held.instance is not None else None
        if at is not None and at.known == held.known:
            _take(held, at, left)
        elif held.node in nodes:
            open_groups[held.node, held.gpu, held.known].append(held)
    for (node, gpu, profile), group in open_groups.items():
        free = [at for at in left.values() if (at.node, at.known) == (node, profile) and gpu in (None, at.gpu)]
        what = f"{profile.name if profile else 'instances'} of {node or 'the node'}"
        if len(free) < len(group):
            message = f"Slurm has {len(group)} x {what}, and nvidia-smi lists {len(free)}"
            seen.wrong(group[0].where, f"{message}: the texts are of different moments")
            continue
        if len({(held.name, held.owner, held.idle) for held in group}) > 1:
            if not assume:
                message = f"nothing tells which {what} is which, and not all are used alike; Slurm lists device files"
                hint = "(MultipleFiles) where it has them, else take any with --assume-places"
                seen.wrong(group[0].where, f"{message} {hint}")
                continue
            seen.notes.append(f"which {what} is used by whom is assumed, it is not in the text")
        for held, at in zip(group, free, strict=False):
            _take(held, at, left)
    if left and not seen.findings.problems:
        missing = next(iter(left.values()))
        name = missing.known.name if missing.known else missing.profile
        seen.wrong(missing.where, f"Slurm does not have this {name}: the texts are of different moments")


def _take(held: SeenInstance, at: SeenInstance, left: dict[int, SeenInstance]) -> None:
    left.pop(id(at), None)
    held.gpu, held.start, held.instance, held.uuid = at.gpu, at.start, at.instance, at.uuid
