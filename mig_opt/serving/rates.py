"""Rates of requests that change over time, in steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.serving.demand import Demand

_MOST_NAMED = 5


@dataclass(frozen=True)
class RateTable:
    """Rates of services by time: each step lasts until the next one begins, the last one until the end.

    Attributes
    ----------
    times : tuple of float
        Seconds at which the steps begin, ascending, and after them the end: one entry more than there are steps.
    rates : mapping of str to tuple of float
        For each service its requests per second in each step; 0 is allowed.

    Raises
    ------
    InputError
        With every problem: no step, times that run backwards, no end, rates below zero, too few or too many of them.

    Examples
    --------
    >>> table = RateTable((0.0, 60.0, 120.0), {"chat": (10.0, 40.0)})
    >>> table.steps, table.mean("chat")
    (2, 25.0)
    """

    times: tuple[float, ...]
    rates: Mapping[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", tuple(self.times))
        object.__setattr__(self, "rates", MappingProxyType({name: tuple(row) for name, row in self.rates.items()}))
        problems = list(rate_problems(self.times, self.rates))
        if problems:
            raise InputError(problems)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.times) - 1

    @property
    def durations(self) -> tuple[float, ...]:
        """Seconds of each step."""
        return tuple(end - begin for begin, end in zip(self.times, self.times[1:], strict=False))

    def mean(self, service: str) -> float:
        """Return the requests per second of a service over the whole time."""
        total = sum(rate * seconds for rate, seconds in zip(self.rates[service], self.durations, strict=True))
        return total / (self.times[-1] - self.times[0])


def rate_problems(times: Sequence[float], rates: Mapping[str, Sequence[float]]) -> Iterator[Problem]:
    """Yield everything that is wrong with a table of rates."""
    if len(times) < 2:
        yield Problem("times", "needs at least one step and the time when it ends")
    if not rates:
        yield Problem("rates", "needs at least one service, is empty")
    for index, time in enumerate(times):
        if not math.isfinite(time):
            message = f"must be a finite number of seconds, is {time}"
            yield Problem(f"times[{index}]", message if index < len(times) - 1 else f"{message}: rates need an end")
        elif index and not time > times[index - 1]:
            yield Problem(f"times[{index}]", f"times must ascend; {time:g} s comes after {times[index - 1]:g} s")
    for name, row in rates.items():
        if len(row) != len(times) - 1:
            yield Problem(f"rates[{name!r}]", f"has {len(row)} rates for {max(len(times) - 1, 0)} steps")
        for index, rate in enumerate(row):
            if not (rate >= 0 and math.isfinite(rate)):
                message = f"must be a finite number of requests per second >= 0, is {rate}"
                yield Problem(f"rates[{name!r}][{index}]", message)


def wrong_services(demand: Demand, names: Sequence[str], path: str) -> Iterator[Problem]:
    """Yield a problem for each of some names that no service of a demand has, and for the services without a name."""
    known = [service.name for service in demand.services]
    for name in names:
        if name not in known:
            yield Problem(path, f"the demand has no service {name!r}; {nearest(name, known)}")
    missing = [name for name in known if name not in names]
    if missing:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        named = ", ".join(map(repr, missing[:_MOST_NAMED]))
        yield Problem(path, f"has nothing about {named}{more}; add what the demand's services are asked for")
