"""Family of traces: its parameters, its assumptions, and the function that draws its jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from mig_opt.errors import InputError, Problem
from mig_opt.fleet.job import Job
from mig_opt.gpu.model import GpuModel, Profile
from mig_opt.gpu.problems import wrong_size
from mig_opt.rules import checked_value, wrong_choice, wrong_type
from mig_opt.rules.vocabulary import Number, Share, Whole

Kind = Literal["count", "positive", "not negative", "share", "text"]

_MOST_JOBS = 10_000_000
_DECIMALS = 3
_KINDS: Mapping[str, Any] = {
    "count": Annotated[int, Whole(1, _MOST_JOBS)],
    "positive": Annotated[float, Number(above=0)],
    "not negative": Annotated[float, Number(at_least=0)],
    "share": Share,
}
"""The type of a value of each kind but texts."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A figure of a family that can be changed."""

    name: str  # argument of :func:`mig_opt.generate_trace`
    default: float | int | str  # value if none is given
    description: str  # meaning, with its unit
    kind: Kind = "positive"  # legal values: a ``count`` is a whole number from 1, a ``share`` is from 0 to 1
    choices: tuple[str, ...] = ()  # legal texts; any, if there are none

    def problems(self, value: object) -> Iterator[Problem]:
        """Yield what is wrong with a value."""
        if self.kind != "text":
            found: list[Problem] = []
            checked_value(_KINDS[self.kind], value, self.name, found)
            yield from found
        elif self.choices:
            yield from wrong_choice(self.name, value, self.choices)
        elif not isinstance(value, str):
            yield wrong_type(self.name, value, f"a text, like {self.default!r}")


@dataclass(frozen=True, slots=True)
class Request:
    """Request for a trace, with a value for each parameter of its family; ``rng`` is made from the seed."""

    gpu: GpuModel
    gpus: int
    rng: np.random.Generator
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def base_profile(self, size: int) -> Profile:
        """Return the plain profile of a size with the least memory; refuse a size that the GPU does not have."""
        for profile in self.gpu.profiles_of("base"):
            if profile.compute_slices == size:
                return profile
        raise InputError(wrong_size("gpu", self.gpu, size))


@dataclass(frozen=True, slots=True)
class TraceFamily:
    """Family of traces that are drawn in the same way.

    ``source`` has the printed figures, ``assumptions`` tell those that it does not print. ``gpus`` is the default
    number of GPUs; ``make`` draws the jobs.
    """

    name: str
    description: str
    source: str
    gpus: int
    parameters: tuple[Parameter, ...]
    assumptions: tuple[str, ...]
    make: Callable[[Request], list[Job]]


def to_ms(seconds: float) -> float:
    """Return seconds rounded to milliseconds, but never to 0: short decimals keep exact methods exact."""
    return max(round(float(seconds), _DECIMALS), 10.0**-_DECIMALS)


def numbered(index: int, count: int, label: str) -> str:
    """Return the name of a job: its number with as many digits as the last one has, and what it is."""
    return f"{index + 1:0{max(3, len(str(count)))}}-{label}"
