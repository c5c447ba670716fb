"""GPUs and instances as foreign texts speak of them, before they become a state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from mig_opt.files.documents import read_text
from mig_opt.files.values import Findings
from mig_opt.gpu.model import Profile
from mig_opt.texts import listed, plural

Home = tuple[str, int]
"""Node, and index of a GPU in it."""


class Line(NamedTuple):
    """Line of a source."""

    where: str  # for messages
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """Text to import.

    ``label`` is the name in messages: empty if there is only one source. ``node`` is the node that the text is about,
    if it does not say so itself. ``numbers`` are those of its lines in the file; by default they count from 1.
    """

    text: str
    label: str = ""
    node: str = ""
    numbers: Sequence[int] = ()

    def where(self, line: int) -> str:
        """Return the words for a line, counted from 1."""
        number = self.numbers[min(line, len(self.numbers)) - 1] if self.numbers else line
        return f"{self.label}, line {number}" if self.label else f"line {number}"

    def lines(self) -> Iterator[Line]:
        """Yield the lines."""
        for number, text in enumerate(re.split(r"\r?\n", self.text), 1):
            yield Line(self.where(number), text.rstrip())


def sources_of(given: Iterable[str | PathLike[str] | Source]) -> tuple[list[Source], str]:
    """Return texts, with those of files, and the name of the only one: it stands before each message then."""
    sources = [
        each if isinstance(each, Source) else Source(read_text(each), str(each), Path(each).stem) for each in given
    ]
    if len(sources) != 1:
        return sources, ""
    return [replace(sources[0], label="", node="")], sources[0].label


@dataclass(slots=True)
class SeenGpu:
    """GPU of a node.

    ``product`` and ``uuid`` are empty where the source does not tell them, ``mig`` is None then; a product that ends
    with ``...`` has been cut. The text of ``where`` says where it is spoken of; it is asked for only in messages, since
    it may take long.
    """

    node: str
    index: int
    where: object
    product: str = ""
    uuid: str = ""
    mig: bool | None = None


@dataclass(slots=True)
class SeenInstance:
    """GPU instance of a node; what the source does not tell is None or empty."""

    node: str
    gpu: int | None  # index in the node
    where: object  # as for GPUs
    profile: str = ""  # as the source spells it
    profile_id: int | None = None
    size: tuple[int, float] | None = None  # multiprocessors and memory in MiB, in place of a name
    start: int | None = None
    slices: int | None = None  # memory slices
    instance: int | None = None  # id of the GPU instance
    index: int = -1  # of its MIG device, as nvidia-smi lists or shows it
    processes: tuple[str, ...] | None = None
    uuid: str = ""
    name: str = ""
    owner: str = ""
    idle: bool | None = None
    product: str = ""  # of its GPU, where that is not seen itself
    known: Profile | None = None  # the profile of the catalogue, once the kind of GPU is known

    @property
    def home(self) -> Home | None:
        """Node and index of its GPU, if that is known."""
        return None if self.gpu is None else (self.node, self.gpu)


@dataclass(slots=True)
class Sightings:
    """All that sources tell of a fleet, and what is wrong with them."""

    findings: Findings
    manager: str = ""
    gpus: dict[Home, SeenGpu] = field(default_factory=dict)
    instances: list[SeenInstance] = field(default_factory=list)
    budgets: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    left_out: dict[str, list[tuple[str, int | None]]] = field(default_factory=dict)  # by reason: what, number of GPUs
    there: Sightings | None = None  # what nvidia-smi tells on the nodes of Slurm
    tells_modes: str = ""  # what tells on which GPUs MIG is on, where the source may not

    @property
    def every(self) -> tuple[SeenGpu | SeenInstance, ...]:
        """GPUs and instances."""
        return (*self.gpus.values(), *self.instances)

    def leave_out(self, reason: str, what: str, gpus: int | None = 1) -> None:
        """Note that GPUs are left out; their number is None for a node of which it is not known."""
        self.left_out.setdefault(reason, []).append((what, gpus))

    def what_is_left_out(self) -> list[str]:
        """Return a note for each reason."""
        notes = []
        for reason, entries in self.left_out.items():
            gpus, nodes = sum(number or 0 for _, number in entries), sum(number is None for _, number in entries)
            counted = [plural(gpus, "GPU")] if gpus else []
            counted += [f"the GPUs of {plural(nodes, 'node')}"] if nodes else []
            notes.append(f"left out {' and '.join(counted)} ({reason}): {listed([what for what, _ in entries])}")
        return notes

    def note_unknown(self, told: str) -> None:
        """Note that of some instances it is not known whether they are idle, and what would tell it."""
        unknown = sum(held.idle is None for held in self.instances)
        if unknown:
            some = plural(unknown, "of them counts", "of them count")
            which = "all count" if unknown == len(self.instances) else some
            self.notes.append(f"which instances are idle is not told, so {which} as busy; {told}")

    def wrong(self, where: object, message: str) -> None:
        """Note what is wrong, and where."""
        self.findings.add(str(where), message)

    def pending(self, node: str, index: int, *, mig: bool) -> None:
        """Note that MIG is on or off on a GPU, but will not be after its next reset."""
        now, then = ("on", "off") if mig else ("off", "on")
        self.notes.append(f"{gpu_name(node, index)}: MIG is {now}, and will be {then} after the next reset of the GPU")

    def gpu(self, node: str, index: int, where: object, **known: object) -> SeenGpu:
        """Return a GPU that is seen here, perhaps not for the first time; note what contradicts earlier sightings."""
        seen = self.gpus.setdefault((node, index), SeenGpu(node, index, where))
        for name, value in known.items():
            earlier = getattr(seen, name)
            if value in ("", None):
                continue
            if earlier in ("", None, value) or _cut(earlier, value):
                setattr(seen, name, value)
            elif name == "mig":
                now, then = ("on", "off") if value else ("off", "on")
                self.wrong(where, f"MIG is {now} on {gpu_name(node, index)}, and {then} in {seen.where}")
            elif not _cut(value, earlier):
                message = f"{gpu_name(node, index)} has another {name} ({value}) than in {seen.where} ({earlier})"
                self.wrong(where, message)
        return seen


def _cut(cut: object, whole: object) -> bool:
    """Return True if a text is the begin of another one, with dots for the rest."""
    return str(cut).endswith("...") and str(whole).startswith(str(cut)[:-3])


def gpu_name(node: str, index: int) -> str:
    """Return the words for a GPU."""
    return f"GPU {index} of {node}" if node else f"GPU {index}"
