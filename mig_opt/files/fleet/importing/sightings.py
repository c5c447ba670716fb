"""GPUs and instances as foreign texts speak of them, before they become a state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mig_opt.files.reading import Findings


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


@dataclass(slots=True)
class SeenGpu:
    """GPU of a node.

    ``product`` and ``uuid`` are empty where the source does not tell them, ``mig`` is None then. The text of ``where``
    says where it is spoken of; it is asked for only in messages, since it may take long.
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
    uuid: str = ""
    name: str = ""
    owner: str = ""
    idle: bool | None = None


@dataclass(frozen=True, slots=True)
class SeenDevice:
    """MIG device as nvidia-smi shows it; ``processes`` is None if it does not show them."""

    gpu: int
    index: int
    instance: int  # id of the GPU instance
    size: tuple[int, float]  # multiprocessors and memory in MiB
    processes: tuple[str, ...] | None
    where: str


@dataclass(slots=True)
class Sightings:
    """All that sources tell of a fleet, and what is wrong with them."""

    findings: Findings
    manager: str = ""
    gpus: dict[tuple[str, int], SeenGpu] = field(default_factory=dict)
    instances: list[SeenInstance] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)  # GPUs of a node, where they are counted and not listed
    products: dict[str, tuple[str, object]] = field(default_factory=dict)  # of the GPUs of a node, and where it stands
    budgets: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def wrong(self, where: object, message: str) -> None:
        """Note what is wrong, and where."""
        self.findings.add(str(where), message)

    def pending(self, node: str, index: int, *, mig: bool) -> None:
        """Note that MIG is on or off on a GPU, but will not be after its next reset."""
        now, then = ("on", "off") if mig else ("off", "on")
        of_node = f" of {node}" if node else ""
        self.notes.append(f"GPU {index}{of_node}: MIG is {now}, and will be {then} after the next reset of the GPU")

    def gpu(self, node: str, index: int, where: object, **known: object) -> SeenGpu:
        """Return a GPU that is seen here, perhaps not for the first time; note what contradicts earlier sightings."""
        seen = self.gpus.setdefault((node, index), SeenGpu(node, index, where))
        for name, value in known.items():
            earlier = getattr(seen, name)
            if value in ("", None):
                continue
            if earlier not in ("", None, value):
                of_node = f" of {node}" if node else ""
                message = f"GPU {index}{of_node} has another {name} ({value}) than in {seen.where} ({earlier})"
                self.wrong(where, message)
            else:
                setattr(seen, name, value)
        return seen
