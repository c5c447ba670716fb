"""GPUs and instances as foreign texts speak of them, before they become a state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mig_opt.files.values import Findings

NODE_PREFIX = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]*): ?(.*)")
"""What tools that run a command on many nodes put before each line of its output."""


class Line(NamedTuple):
    """Line of a source."""

    where: str  # for messages
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """Text to import.

    ``label`` is the name in messages: empty if there is only one source. ``node`` is the node that the text is about,
    if it does not say so itself.
    """

    text: str
    label: str = ""
    node: str = ""

    def where(self, line: int) -> str:
        """Return the words for a line, counted from 1."""
        return f"{self.label}, line {line}" if self.label else f"line {line}"

    def lines(self) -> Iterator[Line]:
        """Yield the lines."""
        for number, text in enumerate(re.split(r"\r?\n", self.text), 1):
            yield Line(self.where(number), text.rstrip())

    def by_node(self) -> dict[str, list[Line]]:
        """Return the lines of each node: with the prefix ``node: `` removed if every line that is not blank has one."""
        lines = list(self.lines())
        found = [(line, NODE_PREFIX.fullmatch(line.text)) for line in lines if line.text]
        if not found or not all(match for _, match in found):
            return {self.node: lines}
        nodes: dict[str, list[Line]] = {}
        for line, match in found:
            assert match
            nodes.setdefault(match[1], []).append(Line(line.where, match[2]))
        return nodes


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
