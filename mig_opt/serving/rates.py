"""Rates of requests that change over time, in steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from mig_opt.errors import Problem, nearest
from mig_opt.rules import Checked
from mig_opt.rules.vocabulary import NotEmpty, Number
from mig_opt.serving.demand import Demand
from mig_opt.texts import listed

_MOST_NAMED = 5
_Rate = Annotated[float, Number("requests per second", at_least=0)]
_TIME = Number(at_least=-1e15, at_most=1e15, words="a number of seconds from -1e15 to 1e15")


@dataclass(frozen=True)
class RateTable(Checked):
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

    times: tuple[Annotated[float, _TIME], ...]
    rates: Annotated[Mapping[str, tuple[_Rate, ...]], NotEmpty("at least one service")] = field(hash=False)

    def _problems(self) -> Iterator[Problem]:
        times = self.times or ()
        if len(times) < 2:
            yield Problem("times", "needs at least one step and the time when it ends")
        for index, (one, two) in enumerate(itertools.pairwise(times), 1):
            if None not in (one, two) and two <= one:
                yield Problem(f"times[{index}]", f"times must ascend; {two:g} s comes after {one:g} s")
        for name, row in (self.rates or {}).items():
            if row is not None and len(row) != len(times) - 1:
                yield Problem(f"rates.{name}", f"has {len(row)} rates for {max(len(times) - 1, 0)} steps")

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


def wrong_services(demand: Demand, names: Sequence[str], path: str) -> Iterator[Problem]:
    """Yield a problem for each of some names that no service of a demand has, and for the services without a name."""
    known = [service.name for service in demand.services]
    for name in names:
        if name not in known:
            yield Problem(path, f"the demand has no service {name!r}; {nearest(name, known)}")
    missing = [name for name in known if name not in names]
    if missing:
        named = listed([repr(name) for name in missing], _MOST_NAMED)
        yield Problem(path, f"has nothing about {named}; add what the demand's services are asked for")
