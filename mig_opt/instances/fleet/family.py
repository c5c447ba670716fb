"""What a family of traces is: its parameters, what is assumed, and how its jobs are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mig_opt.arguments import wrong_integer, wrong_number, wrong_share
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.fleet.trace import Job
from mig_opt.gpu.model import GpuModel, Profile

Kind = Literal["count", "positive", "not negative", "share", "text"]

_MOST_JOBS = 10_000_000
_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A figure of a family that can be changed.

    Attributes
    ----------
    name : str
        As an argument of :func:`mig_opt.generate_trace`.
    default : float, int or str
        Its value if none is given.
    description : str
        What it says, with its unit.
    kind : str
        Which values it takes: ``count`` (a whole number from 1), ``positive``, ``not negative``, ``share`` (0 to 1) or
        ``text``.
    choices : tuple of str
        The texts that it takes; any, if there are none.
    """

    name: str
    default: float | int | str
    description: str
    kind: Kind = "positive"
    choices: tuple[str, ...] = ()

    def problems(self, value: object) -> Iterator[Problem]:
        """Yield what is wrong with a value."""
        match self.kind:
            case "count":
                yield from wrong_integer(self.name, value, 1, _MOST_JOBS)
            case "positive":
                yield from wrong_number(self.name, value, "a finite number > 0", above=0)
            case "not negative":
                found = list(wrong_number(self.name, value, "a finite number >= 0"))
                yield from found
                if not found and value < 0:  # type: ignore[operator]  # a number, as has just been found
                    yield Problem(self.name, f"must be a finite number >= 0, is {value}")
            case "share":
                yield from wrong_share(self.name, value)
            case "text":
                if not isinstance(value, str) or (self.choices and value not in self.choices):
                    wanted = f"known name; {nearest(str(value), self.choices)}" if self.choices else "text"
                    hint = "" if self.choices else f", like {self.default!r}"
                    yield Problem(self.name, f"must be a {wanted}{hint}, is {value!r:.60}")


@dataclass(frozen=True, slots=True)
class Request:
    """A trace that is wanted.

    Attributes
    ----------
    gpu : GpuModel
        The kind of GPU.
    gpus : int
        How many.
    seed : int
        The same request and seed give the same jobs everywhere.
    rng : numpy.random.Generator
        Made from the seed.
    values : mapping of str to object
        The value of each parameter.
    """

    gpu: GpuModel
    gpus: int
    seed: int
    rng: np.random.Generator
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def base_profile(self, size: int) -> Profile:
        """Return the plain profile of a size with the least memory.

        Raises
        ------
        InputError
            If the GPU has no instances of that size.
        """
        for profile in self.gpu.profiles_of("base"):
            if profile.compute_slices == size:
                return profile
        sizes = ", ".join(map(str, self.gpu.sizes))
        message = f"{self.gpu.name} has no instances of {size} compute slices; its sizes are {sizes}"
        raise InputError([Problem("gpu", message)])


@dataclass(frozen=True, slots=True)
class TraceFamily:
    """Traces that are drawn in the same way.

    Attributes
    ----------
    name : str
        As :func:`mig_opt.generate_trace` takes it.
    description : str
        One line.
    source : str
        Where the printed figures are from.
    gpus : int
        How many GPUs it is for, unless told otherwise.
    parameters : tuple of Parameter
        What can be changed.
    assumptions : tuple of str
        What the source does not print and is assumed here.
    make : callable
        Draws the jobs.
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


def poisson_arrivals(rng: np.random.Generator, count: int, mean_gap: float) -> list[float]:
    """Return the arrivals of a Poisson process: independent exponential gaps, the first one from second 0."""
    return [round(float(at), _DECIMALS) for at in np.cumsum(rng.exponential(mean_gap, count))]


def numbered(index: int, count: int, label: str) -> str:
    """Return the name of a job: its number with as many digits as the last one has, and what it is."""
    return f"{index + 1:0{max(3, len(str(count)))}}-{label}"
