"""A report tells of a result once; a terminal, a notebook, JSON and a frame show it, each in its own way."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Tone = Literal["good", "unclear", "bad", "dim", "strong"]


class Toned(str):
    """A text with a tone, which only renderers with colours show.

    Examples
    --------
    >>> answer = Toned("not valid", "bad")
    >>> answer, answer.tone
    ('not valid', 'bad')
    """

    __slots__ = ("tone",)

    tone: Tone

    def __new__(cls, text: str, tone: Tone) -> Toned:
        """Return the text with its tone."""
        made = super().__new__(cls, text)
        made.tone = tone
        return made


good, unclear, bad, dim, strong = (partial(Toned, tone=tone) for tone in Tone.__args__)  # type: ignore[attr-defined]

Cell: TypeAlias = str | tuple[str, ...]
"""A text of one line, or lines below each other."""

Facts: TypeAlias = Sequence[tuple[str, str | None]]
"""Labels with values, which are None where there is nothing to tell."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    A mark before a header says how a narrow terminal shows the column: ``>`` for numbers, which stand to the right;
    ``~`` for texts, which are wrapped; ``/`` for what is cut off at the edge.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()  # lines below
    noun: str = "rows"
    heading: str = ""

    @classmethod
    def of(cls, entries: Iterable[T], columns: Mapping[str, Callable[[T], Cell]], notes: Sequence[str] = ()) -> Table:
        """Return a table with a row for each entry, and for each column what makes its cells."""
        return cls(list(columns), [[cell(entry) for cell in columns.values()] for entry in entries], notes)

    @property
    def headers(self) -> list[str]:
        """The headers without marks."""
        return [column.lstrip(">~/") for column in self.columns]


@dataclass(frozen=True, slots=True)
class Points:
    """A list with a heading above and a remark below, each of which may be missing."""

    lines: Sequence[str]
    heading: str = ""
    remark: str = ""


Part: TypeAlias = "Table | Points | str | Report"


@dataclass(frozen=True, slots=True)
class Report:
    """All that there is to tell of a result."""

    facts: Facts = ()
    parts: Sequence[Part] = ()  # below, in this order
    remarks: Sequence[str] = ()  # at the end
    data: Mapping[str, Any] = field(default_factory=dict)  # the same for programs: a JSON document
    title: str = ""  # the subject in one line, where the report does not follow from a command
    keys: Sequence[str] = ()  # of the entries
    entries: Sequence[Mapping[str, Any]] = ()  # one for each task, run, segment ...: the rows of a frame
    # A scene and the role of boxes in it, which make a small picture, if there is one.
    picture: Callable[[], tuple[Any, str] | None] = lambda: None


_TONES = {"optimal": good, "feasible": unclear, "interrupted": unclear}


def spelled_status(status: str) -> Toned:
    """Return a status in words, in its tone."""
    return _TONES.get(status, bad)(status.replace("_", " "))


def spelled_gap(gap: float | None) -> str:
    """Return a gap in percent, "-" for none; one that is not closed is never shown as if it were.

    Examples
    --------
    >>> spelled_gap(0.0), spelled_gap(1e-6), spelled_gap(0.0123)
    ('0.000%', '< 0.001%', '1.230%')
    """
    return "-" if gap is None else "< 0.001%" if 0 < gap < 5e-6 else f"{gap:.3%}"


def data_of(thing: object, *names: str) -> dict[str, Any]:
    """Return some attributes for a document: records as objects, enumerations by their values, infinite as None.

    Examples
    --------
    >>> from mig_opt.batch.bounds import Bound
    >>> data_of(Bound("area", math.inf, "it is large"), "name", "value")
    {'name': 'area', 'value': None}
    """
    return {name: _plain(getattr(thing, name)) for name in names}


def _plain(value: Any) -> Any:
    match value:
        case enum.Enum():
            return value.value
        case float() if math.isinf(value):
            return None
        case list() | tuple():
            return list(map(_plain, value))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
    return value
