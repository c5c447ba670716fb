"""Content of a picture, said once: panels with axes and the marks in them. Images and pages are drawn from it.

A renderer knows how a role looks (``idle``, ``run``, ``segment``, ...); a scene says what is where, which role it has,
its colour, its words, and what a reader finds when pointing at it. Boxes, dots and panels that only images or only
pages have say so (``only``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mig_opt.views.texts import IDLE, INK, LONGEST_TITLE, NO_SLICES, elide, spell_seconds, spell_slices, spell_span

Only = Literal["", "image", "page"]
Marker = Literal["circle", "x", "square", "cross", "triangle", "diamond"]
Numbers = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis of a panel. Panels with the same axis move together on a page.

    ``limits`` are its ends, found from the marks if they are not given. As shares of the length images add ``room`` at
    the right, and pages ``page_room`` at both ends. Of ``ticks`` (where, and what stands there) pages only use those of
    a ``categorical`` axis, since others have to follow the zoom; then ``zoom_label`` says in which unit.
    """

    label: str = ""
    limits: tuple[float, float] | None = None
    room: float = 0.0
    page_room: float = 0.0
    scale: Literal["linear", "log", "symlog"] = "linear"
    linear_until: float = 1.0
    ticks: Sequence[tuple[float, str]] = ()
    categorical: bool = False
    zoom_label: str = ""
    most_ticks: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a panel from top to bottom: each is ``size`` units high, with ``gap`` units between two.

    A unit has ``unit`` inches in an image. Rows of ``slices`` show lines between these. In an image ``labels`` stand
    for the names, rows are divided into parts of ``part``, one above the other or ``beside`` each other, and only those
    ``shown`` are drawn.
    """

    names: Sequence[str]
    unit: float
    size: float = 1.0
    gap: float = 0.0
    slices: bool = False
    labels: Sequence[str] = ()
    part: int = 0
    beside: bool = False
    shown: Sequence[int] | None = None
    margin: float = 0.0

    @property
    def step(self) -> float:
        """Units from the top of a row to the top of the next."""
        return self.size + self.gap

    @property
    def height(self) -> float:
        """All rows, with the gaps between them."""
        return self.heights(len(self.names))

    def heights(self, count: int) -> float:
        """Return the units of a number of rows, with the gaps between them; there is room for one at least."""
        count = max(1, count)
        return count * self.size + (count - 1) * self.gap

    def at(self, top: float) -> int:
        """Return the row in which something begins."""
        return int((top + self.gap / 2) / self.step)

    def box(self, row: int, slices: range, span: tuple[float, float], facts: Sequence[str] = (), **words: Any) -> Box:
        """Return a box over some slices of a row and a span of seconds; it says both, and its other facts."""
        top = row * self.step + slices.start
        facts = (*facts, f"{self.names[row]}, {spell_slices(slices)}", spell_span(*span))
        return replace(Box(*span, top, top + len(slices), facts=facts), **words)

    def missing(self, counts: Sequence[int], span: tuple[float, float], gid: str) -> list[Boxes]:
        """Return the slices that rows lack, which are as high as that of the GPU with the most, if there are any."""
        words = {"colour": IDLE, "head": NO_SLICES}
        rest = {row: range(count, int(self.size)) for row, count in enumerate(counts) if count < self.size}
        boxes = [self.box(row, slices, span, gid=f"{gid}:{row}", **words) for row, slices in rest.items()]
        return [Boxes("unused", boxes, NO_SLICES)] if boxes else []


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle: what it says when it is pointed at, and what is written in it.

    Pages write as much of its ``label`` as fits. Images write the first of the ``wordings`` that does (each with the
    least font size that it is worth; by default the label, then ``number``), and explain a label that is not there in
    the key, by its number or with the ``place``. ``beside`` is written at its right.
    """

    left: float
    right: float
    top: float
    bottom: float
    colour: str = ""
    gid: str = ""
    head: str = ""
    facts: Sequence[str] = ()
    label: str = ""
    number: str = ""
    place: str = ""
    beside: str = ""
    wordings: Sequence[tuple[str, float]] = ()

    @property
    def middle(self) -> float:
        """Half-way between top and bottom."""
        return (self.top + self.bottom) / 2

    def over(self, left: float, right: float) -> Box:
        """Return it over another interval."""
        return replace(self, left=left, right=max(left, right))

    def without(self, others: Iterable[Box]) -> Box:
        """Return what others (at its two ends) leave of it."""
        left, right = self.left, self.right
        for other in others:
            if other.top < self.bottom and self.top < other.bottom:
                if other.left <= self.left < other.right:
                    left = max(left, other.right)
                elif self.left < other.left < self.right:
                    right = min(right, other.left)
        return self.over(left, right)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Rectangles of one role; ``beneath`` others that follow they are hidden by them, also from the pointer."""

    role: str
    boxes: Sequence[Box]
    legend: str = ""
    beneath: bool = False
    unkeyed: str = ""  # explains numbers, where they are too many for a key
    only: Only = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or a level that changes in ``steps``; ``dashes`` (lengths and gaps) and ``width`` are points."""

    gid: str
    x: Numbers
    y: Numbers
    colour: str
    legend: str = ""
    dashes: Sequence[float] = ()
    width: float = 1.4
    steps: bool = True
    hover: Sequence[tuple[str, str]] = ()  # words of a page about it: names, and texts with @x and @y


@dataclass(frozen=True, slots=True)
class Area:
    """Area between two levels that change in steps at the ``edges``."""

    gid: str
    edges: Numbers
    low: Numbers
    high: Numbers
    colour: str
    legend: str
    unit: str


@dataclass(frozen=True, slots=True)
class Dots:
    """Markers; their sizes are points."""

    gid: str
    x: Numbers
    y: Numbers
    colour: str
    marker: Marker = "circle"
    sizes: float | Sequence[float] = 4.5
    hollow: bool = False
    legend: str = ""
    hover: Sequence[tuple[str, Sequence[object]]] = ()  # words of a page about each: names, and a column of values
    only: Only = ""


@dataclass(frozen=True, slots=True)
class Links:
    """Upright lines of one meaning, each with its id, where it is, and from where to where, with a dot at its end."""

    links: Sequence[tuple[str, float, float, float]]
    legend: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across a panel, upright or ``level``, with a name and a value.

    A ``labelled`` one goes over all parts of its panel and has its words at its upper end in an image; the legend of an
    image has its name if it is ``keyed``. The first labelled one is the main one.
    """

    gid: str
    at: float
    name: str
    value: str = ""
    colour: str = INK
    dashed: bool = False
    level: bool = False
    labelled: bool = False
    keyed: bool = False

    @property
    def wording(self) -> str:
        """Its name and value."""
        return f"{self.name} {self.value}".strip()


Mark = Boxes | Line | Area | Dots | Links | Rule


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: ``height`` is inches in an image, ``pixels`` belongs to a page; rows (of slices) have their own rule."""

    name: str
    marks: Sequence[Mark]
    x: Axis
    y: Axis = Axis()
    rows: Rows | None = None
    heading: str = ""
    height: float = 1.0
    pixels: float = 0.0
    grid: Literal["", "x", "y", "both"] = ""
    beside: bool = False  # in an image it stands beside the panel before, and shares its width
    joined: bool = False  # in an image the panel below has the same axis, and its labels are there
    zoom: Literal["", "x", "y", "both"] = "x"
    only: Only = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture: panels from top to bottom, and a ``key`` of colours; ``width`` of the panels and ``left`` are inches.

    Names of rows need at least ``left`` in an image, or as much as they are wide and ``beyond``. A page shows the key
    as notes, or ``many`` in its place where it is long.
    """

    title: str
    panels: Sequence[Panel]
    width: float
    left: float = 0.0
    beyond: float = 0.2
    key: Sequence[tuple[str, str]] = ()
    many: str = ""
    remarks: Sequence[str] = ()  # further words of the legend of an image
    own_key: bool = False  # in an image lines are explained apart from other marks

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", elide(self.title, LONGEST_TITLE))

    def seen(self, kind: Only) -> list[Panel]:
        """Return the panels, with their marks, that pictures of one kind have."""
        return [
            replace(panel, marks=[mark for mark in panel.marks if getattr(mark, "only", "") in {"", kind}])
            for panel in self.panels
            if panel.only in {"", kind}
        ]


def uncovered(under: Iterable[Box], over: Iterable[Box]) -> list[Box]:
    """Return the parts of some boxes, from left to right, that no other box covers, however little of their height."""
    found: list[Box] = []
    bands: dict[int, list[Box]] = defaultdict(list)
    for box in sorted(over, key=lambda box: box.left):
        for band in range(int(box.top), math.ceil(box.bottom)):
            bands[band].append(box)
    for box in under:
        at = box.left
        near = {id(other): other for band in range(int(box.top), math.ceil(box.bottom)) for other in bands[band]}
        for other in sorted(near.values(), key=lambda other: other.left):
            if other.top < box.bottom and box.top < other.bottom and other.right > at and other.left < box.right:
                if other.left > at:
                    found.append(replace(box, left=at, right=other.left))
                at = other.right
        if at < box.right:
            found.append(replace(box, left=at))
    return found


def seconds_axis(first: float, last: float, room: float) -> Axis:
    """Return an axis of seconds."""
    return Axis("time in seconds", (first, last), room, page_room=0.01)


def second_rule(gid: str, seconds: float, name: str, colour: str, *, dashed: bool) -> Rule:
    """Return a labelled line at a moment."""
    return Rule(gid, seconds, name, spell_seconds(seconds), colour, dashed, labelled=True)
