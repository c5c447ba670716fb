"""Rules for values of dataclasses, which stand once, in the annotation of a field.

What a constructor refuses (:func:`mig_opt.rules.check_values`), what the reader of a file refuses, what both
say, and the JSON Schema of the file follow from it.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, TypeGuard

MOST_GPUS = 1_000_000
"""GPUs of a batch, a trace or a state: methods keep a record for each, and more is taken for a slip of the pen."""

SIZE = "^[1-9][0-9]?$"  # pattern of a number of compute slices as a key
_LONGEST = 40  # characters of a number in a message


def other_type(value: object, wanted: str) -> str:
    """Return the message that a value is something else altogether."""
    return f"must be {wanted}, is {' '.join(_shown(value).split()):.60} ({type(value).__name__})"


def _shown(value: object) -> str:
    """Return a value as Python writes it, also if it has whole numbers that are too long for that."""
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def is_real(value: object) -> TypeGuard[float]:
    """Return True for a number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Return True for a whole number."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def own_number(value: Any) -> Any:
    """Return a number of NumPy, a fraction or a decimal as one of Python's own; anything else as it is."""
    if is_integer(value):
        return int(value)
    if is_real(value) or isinstance(value, Decimal):
        with contextlib.suppress(OverflowError, ValueError):  # too large, or a decimal that is a signal
            return float(value)
    return value


class Rule:
    """Constraint of a value, and how files have it."""

    __slots__ = ()
    file_type: ClassVar[Any] = None  # the type that a value has in a file; None if it is the same
    keywords: ClassVar[Mapping[str, Any]] = {}  # what JSON Schema says of the rule

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a JSON Schema of the type with what the rule says of it."""
        return {**schema, **self.keywords}

    def read(self, value: Any) -> Any:
        """Return what a value of a file stands for; only one of the type in files if there is such a type."""
        return value

    def wrong(self, value: Any) -> str:  # noqa: ARG002  # most rules look at it
        """Return what is wrong with a value; empty if it is right."""
        return ""


@dataclass(frozen=True, slots=True)
class Number(Rule):
    """A finite number of some unit within bounds; ``hint`` is said behind them, ``words`` in place of all of it."""

    unit: str = ""
    above: float = -math.inf
    at_least: float = -math.inf
    at_most: float = math.inf
    below: float = math.inf
    hint: str = ""
    words: str = ""

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with the bounds."""
        bounds = {"exclusiveMinimum": self.above, "minimum": self.at_least}
        bounds |= {"maximum": self.at_most, "exclusiveMaximum": self.below}
        return {**schema, **{name: bound for name, bound in bounds.items() if math.isfinite(bound)}}

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a value; empty if it is right."""
        plain = value.__class__ is float
        real = plain or is_real(value)
        if not plain and real and not isinstance(value, float) and abs(value) > sys.float_info.max:
            return f"must be less than {sys.float_info.max:.2g}, the largest floating-point number"
        if real and self.above < value < self.below and self.at_least <= value <= self.at_most:
            return ""
        bounds = f" > {self.above:g}" * (self.above > -math.inf) + f" >= {self.at_least:g}" * (
            self.at_least > -math.inf
        )
        wanted = self.words or f"a finite number{self.unit and f' of {self.unit}'}{bounds}{self.hint}"
        return f"must be {wanted}, is {value}" if real else other_type(value, wanted)


@dataclass(frozen=True, slots=True)
class Whole(Rule):
    """A whole number from ``least`` to ``most``; the latter is 2^n - 1, if it has more than 64 bits."""

    least: int
    most: int

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with the bounds."""
        return {**schema, "minimum": self.least, "maximum": self.most}

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a value; empty if it is right."""
        most = self.most if self.most < 2**64 else f"2^{self.most.bit_length()} - 1"
        if not is_integer(value):
            return other_type(value, f"a whole number from {self.least} to {most}")
        if self.least <= value <= self.most:
            return ""
        shown = _shown(int(value))
        shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
        return f"must be from {self.least} to {most}, is {shown}"


class NotBlank(Rule):
    """A text that says something."""

    __slots__ = ()
    keywords: ClassVar[Mapping[str, Any]] = {"minLength": 1, "pattern": r"\S"}

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a value; empty if it is right."""
        if not isinstance(value, str):
            return other_type(value, "a text")
        return "" if value and not value.isspace() else "must not be empty"


@dataclass(frozen=True, slots=True)
class OfType(Rule):
    """Anything of a type, which ``words`` describe."""

    kind: type | UnionType
    words: str

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a value; empty if it is right."""
        right = isinstance(value, self.kind) and (self.kind is bool or value.__class__ is not bool)
        return "" if right else other_type(value, self.words)


@dataclass(frozen=True, slots=True)
class NotEmpty(Rule):
    """Something that has entries; ``wanted`` is what it needs."""

    wanted: str
    least: str = "minItems"

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with the least number of entries."""
        return {**schema, self.least: 1}

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a value; empty if it is right."""
        return "" if value else f"needs {self.wanted}, is empty"


class Size(Rule):
    """A number of compute slices, in files a key."""

    __slots__ = ()
    file_type = str
    keywords: ClassVar[Mapping[str, Any]] = {"pattern": SIZE}

    def read(self, value: Any) -> int:
        """Return the number of a key that matches the pattern."""
        return int(value)


@dataclass(frozen=True, slots=True)
class NullIs(Rule):
    """A number for which files have null."""

    number: float

    def with_null(self, value: float | None) -> float:
        """Return the number that null stands for, or what is given."""
        return self.number if value is None else value


class OneOrMore(Rule):
    """A list, for which a file may have its only entry."""

    __slots__ = ()

    def read(self, value: Any) -> tuple[Any, ...]:
        """Return the entries."""
        return tuple(value) if isinstance(value, list) else (value,)

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with an entry in place of the list."""
        return {"anyOf": [schema["items"], {**schema, "minItems": 1}]}


@dataclass(frozen=True, slots=True)
class Wanted(Rule):
    """Words for an entry of a list."""

    words: str


@dataclass(frozen=True, slots=True)
class Stated(Rule):
    """Keywords of JSON Schema about what only the values together show to be wrong."""

    pairs: tuple[tuple[str, Any], ...]

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with them."""
        return {**schema, **dict(self.pairs)}


def stated(**keywords: Any) -> Stated:
    """Return an annotation with keywords of JSON Schema."""
    return Stated(tuple(keywords.items()))


Name = Annotated[str, NotBlank()]
Seconds = Annotated[float, Number("seconds", above=0)]
Moment = Annotated[float, Number("seconds", at_least=0)]
Gigabytes = Annotated[float, Number("GB", above=0, hint=" (or left out)")]
PerSecond = Annotated[float, Number("requests per second", above=0)]
FROM_0_TO_1 = Number(at_least=0, at_most=1, words="a share from 0 to 1 (0.01 is one percent)")
Share = Annotated[float, FROM_0_TO_1]
Count = Annotated[int, Whole(1, 2**31 - 1)]
GpuCount = Annotated[int, Whole(1, MOST_GPUS)]
Index = Annotated[int, stated(minimum=0)]
FLAG = OfType(bool, "True or False")
_BY_SIZE = stated(additionalProperties=False)
Times = Annotated[
    Mapping[Annotated[int, Size()], Seconds],
    _BY_SIZE,
    NotEmpty("the seconds on at least one instance size", "minProperties"),
]
Costs = Annotated[Mapping[Annotated[int, Size()], Moment], _BY_SIZE]
OperationSeconds = Annotated[Costs, stated(minProperties=1)]

# Tables by size, or by kind of GPU and then by size: one of the two, which the first key or value tells. A name, or one
# for each kind of GPU.
_SOME_KINDS = NotEmpty("the seconds on at least one kind of GPU", "minProperties")
if TYPE_CHECKING:
    TimesByKind: TypeAlias = Mapping[Any, Any]
    OperationSecondsByKind: TypeAlias = Mapping[Any, Any]
    NameByKind: TypeAlias = Any
else:
    TimesByKind = Times | Annotated[Mapping[str, Times], _SOME_KINDS]
    OperationSecondsByKind = OperationSeconds | Annotated[Mapping[str, OperationSeconds], _SOME_KINDS]
    NameByKind = str | Annotated[Mapping[str, str], NotEmpty("the name for at least one kind of GPU", "minProperties")]
