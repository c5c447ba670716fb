"""Parts of the shapes of files: types of values, and words that types cannot say.

A *shape* is a dataclass with the keys of an object in a file. The shape of each kind of file stands beside its reader;
its parts are mostly objects of the domain. Readers and JSON Schemas both follow from the shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import shown
from mig_opt.gpu.devices import Device
from mig_opt.rules import MOST_GPUS

Kind = Literal[
    "batch",
    "schedule",
    "result",
    "certificate",
    "commands",
    "study",
    "services",
    "profiles",
    "deployment",
    "deployment-result",
    "trace",
    "state",
    "costs",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Types of values


@dataclass(frozen=True, slots=True)
class Whole:
    """Annotation of a whole number from ``least`` to ``most``, for readers and JSON Schemas."""

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "minimum": self.least, "maximum": self.most}

    def _checked(self, value: int) -> int:
        if not self.least <= value <= self.most:
            raise InputError([Problem("", f"must be from {self.least} to {self.most}, is {shown(value)}")])
        return value


NotEmpty = Field(min_length=1)
Count = Annotated[int, Whole(1, 2**31 - 1)]
GpuCount = Annotated[int, Whole(1, MOST_GPUS)]
GpuName = Annotated[str, Field(description="Name of the GPU in the catalogue, or a short alias.")]
Seconds = Annotated[float, Field(description="Wall-clock seconds.")]
Versions = Mapping[str, str]

# Words

Keywords = dict[str, Any]
"""Keywords of JSON Schema."""

ABOVE_0: Keywords = {"exclusiveMinimum": 0}
FROM_0: Keywords = {"minimum": 0}
FROM_1: Keywords = {"minimum": 1}
SHARE: Keywords = {"minimum": 0, "maximum": 1}
GPUS: Keywords = {"minimum": 1, "maximum": MOST_GPUS}
NAME: Keywords = {"minLength": 1, "pattern": r"\S"}
PLACED: dict[str, Keywords] = {"gpu": FROM_0, "start": FROM_0}

SIZE = "^[1-9][0-9]?$"
"""Pattern of a number of compute slices as a key."""


def by_size(figures: Keywords) -> Keywords:
    """Return the keywords of an object with a figure for each of some sizes."""
    return {
        "patternProperties": {SIZE: {"type": "number", **figures}},
        "additionalProperties": False,
        "minProperties": 1,
    }


TIMES = {"1": 4.0, "2": 2.5}
INSTANCE = {"gpu": 0, "profile": "2g.10gb", "start": 0}


class Words(NamedTuple):
    """All that is said of the objects of a shape beside the types of their keys."""

    example: Mapping[str, Any]
    """An object with every key that it needs."""
    keys: Mapping[str, Keywords] = MappingProxyType({})
    """Keywords for the values of a key, or for each value of a list of values."""
    whole: Mapping[str, Any] = MappingProxyType({})
    """Keywords about the keys together."""
    described_by: type | None = None
    """The class of the domain whose docstring describes the keys; by default the shape itself."""


WORDS: dict[type, Words] = {
    Device: Words({"index": 3}, {"index": {**FROM_0, "maximum": MOST_GPUS - 1}}),
}
"""The words about each shape; the module that reads objects of a shape adds its own."""
