"""Arrivals of requests: evenly, at random, in bursts, at rates that change over time, or as they were recorded.

Times come from a clock: a stream of even or random points of rate 1 is stretched so that the points fall as densely as
the rate is high. For the bursts the rate itself is random: it is high for a while and low for a while, both of random
(exponential) lengths, which is a Markov-modulated Poisson process of two states.
"""

from __future__ import annotations

import contextlib
import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt

from mig_opt.errors import Problem, nearest, problems_of
from mig_opt.rules import ReadOnlyDict, check_values, entries_of, is_listed
from mig_opt.rules.vocabulary import Number, OfType, Seconds
from mig_opt.serving.rates import RateTable

Times: TypeAlias = npt.NDArray[np.float64]

_AT_ONCE = 1 << 17
"""Requests that are made at a time."""
_SPARSE = 0.5
"""Requests for each burst and the calm after it, below which they are made without the bursts that have none."""


class ArrivalKind(enum.StrEnum):
    """Pattern of arrivals at a given mean rate."""

    EVEN = "even"
    """One after the other at equal distances."""
    POISSON = "poisson"
    """Random ones, independent of each other: distances are exponential."""
    BURSTY = "bursty"
    """Random ones with bursts: a Markov-modulated Poisson process of two states."""


@dataclass(frozen=True)
class Arrivals:
    """Arrivals of the requests of every service.

    Attributes
    ----------
    kind : ArrivalKind or str
        ``even``, ``poisson`` or ``bursty``.
    peak : float
        Rate within a burst, as a multiple of the mean rate.
    burst_share : float
        Share of the time that is within bursts; times ``peak`` at most 1.
    burst_seconds : float
        Mean length of a burst.
    rates : RateTable, optional
        Rates over time, in place of those of the services; bursts are relative to them.
    recorded : mapping of str to sequence of float, optional
        Times at which the requests of each service arrived, in seconds, ascending: no other attribute counts then.

    Raises
    ------
    InputError
        With every problem.

    Examples
    --------
    >>> import numpy as np
    >>> times = np.concatenate(list(Arrivals("even").stream("chat", 2.0, 2.0, np.random.default_rng(1))))
    >>> times.round(3).tolist()
    [0.256, 0.756, 1.256, 1.756]
    """

    kind: ArrivalKind | str = ArrivalKind.POISSON
    peak: Annotated[float, Number(at_least=1, words="a finite multiple of the mean rate >= 1")] = 2.0
    burst_share: Annotated[float, Number(above=0, below=1, words="a share of the time > 0 and < 1")] = 0.1
    burst_seconds: Seconds = 0.1
    rates: RateTable | None = None
    recorded: Annotated[Mapping[str, Sequence[float]], OfType(Mapping, "times by service")] | None = field(
        default=None, hash=False
    )

    def __post_init__(self) -> None:
        with contextlib.suppress(ValueError):  # reported below
            object.__setattr__(self, "kind", ArrivalKind(self.kind))
        if isinstance(self.recorded, Mapping):
            pairs = ((name, tuple(times) if is_listed(times) else times) for name, times in self.recorded.items())
            object.__setattr__(self, "recorded", ReadOnlyDict(pairs))
        check_values(self)

    def _problems(self) -> Iterator[Problem]:
        if not isinstance(self.kind, ArrivalKind):
            message = f"unknown arrivals {self.kind!r:.60}; {nearest(self.kind, [*ArrivalKind])}"
            yield Problem("arrivals", message)
        if self.peak and self.burst_share and self.peak * self.burst_share > 1:
            message = f"bursts would have {self.peak * self.burst_share:.4g} of all requests; at most 1 can be"
            yield Problem("peak", f"{message}: lower peak or burst_share")
        for name, times in (self.recorded or {}).items():
            path = f"recorded[{name!r}]"
            if odd := problems_of(entries_of, path, times, Real, "a number"):
                yield from odd
                continue
            found = np.asarray(times, dtype=float)
            wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
            if len(wrong):
                value = found[wrong[0]]
                yield Problem(f"{path}[{wrong[0]}]", f"must be a finite number of seconds >= 0, is {value}")
            elif len(back := np.flatnonzero(np.diff(found) < 0)):
                later, earlier = found[back[0]], found[back[0] + 1]
                yield Problem(f"{path}[{back[0] + 1}]", f"times must ascend; {earlier:g} s comes after {later:g} s")

    @property
    def end(self) -> float | None:
        """Seconds after which there are no rates or recorded requests any more; None if they go on for ever."""
        if self.recorded is not None:
            return max((times[-1] for times in self.recorded.values() if times), default=0.0)
        return None if self.rates is None else self.rates.times[-1] - self.rates.times[0]

    def stream(self, service: str, rate: float, seconds: float, rng: np.random.Generator) -> Iterator[Times]:
        """Yield the arrivals of a service, some at a time.

        Parameters
        ----------
        service : str
            Name of the service.
        rate : float
            Its requests per second, unless there are rates over time or recorded requests.
        seconds : float
            All arrivals are from 0 up to here.
        rng : numpy.random.Generator
            Source of what is random.

        Returns
        -------
        iterator of numpy.ndarray
            Seconds, ascending, also from one array to the next.
        """
        if self.recorded is not None:
            times = np.array(self.recorded.get(service, ()), dtype=float)
            yield times[times <= seconds * (1 + 1e-12)]  # which may be a sum
            return
        sparse = self.rates is None and rate * self.burst_seconds / self.burst_share < _SPARSE
        if self.kind == ArrivalKind.BURSTY and sparse:
            yield from self._sparse(rate, seconds, rng)
            return
        expected = self._expected(service, rate, seconds)
        if self.kind != ArrivalKind.BURSTY:
            yield from _stretched(iter([expected]), self.kind == ArrivalKind.EVEN, rng)
        else:
            yield from _stretched(self._with_bursts(expected, rng), False, rng)

    def _expected(self, service: str, rate: float, seconds: float) -> tuple[Times, Times]:
        """Return a line through the number of requests to be expected up to some times: the times and the numbers."""
        if self.rates is None:
            return np.array([0.0, seconds]), np.array([0.0, rate * seconds])
        times = np.array(self.rates.times) - self.rates.times[0]
        numbers = np.concatenate([[0.0], np.cumsum(np.array(self.rates.rates[service]) * np.diff(times))])
        kept = times < seconds
        end = float(np.interp(seconds, times, numbers))
        return np.append(times[kept], min(seconds, times[-1])), np.append(numbers[kept], end)

    def _sparse(self, rate: float, seconds: float, rng: np.random.Generator) -> Iterator[Times]:
        """Yield arrivals in bursts most of which have none: the same process, from one arrival to the next.

        The states at arrivals are a Markov chain, and the time between two depends on both states: its density is that
        entry of ``expm(t * [[-left[0], begins], [ends, -left[1]]])``. For equal states this is a mixture of a slow and
        a fast exponential, for others the density of their sum.
        """
        share = self.burst_share
        arrive = rate * np.array([max(1 - share * self.peak, 0.0) / (1 - share), self.peak])
        begins, ends = share / (1 - share) / self.burst_seconds, 1 / self.burst_seconds
        left = arrive + np.array([begins, ends])
        determinant = arrive[0] * left[1] + begins * arrive[1]
        fast = (left.sum() + math.sqrt((left[0] - left[1]) ** 2 + 4 * begins * ends)) / 2
        slow = determinant / fast
        slowly = np.maximum(fast - left, 0.0) * fast
        slowly /= slowly + np.maximum(left - slow, 0.0) * slow
        # Chance that the next one comes in a burst: after one in the calm, and a greater one after one in a burst.
        low, high = np.array([begins, left[0]]) * arrive[1] / determinant
        state, now = int(rng.random() < share), 0.0
        while now < seconds:
            drawn = rng.random(_AT_ONCE)
            # Below the lower chance it is a burst whatever came before, beyond the higher one never, between it stays.
            settled = np.where((drawn < low) | (drawn >= high), np.arange(1, _AT_ONCE + 1), 0)
            states = np.concatenate([[state], drawn < low])[np.maximum.accumulate(np.concatenate([[0], settled]))]
            before, after = states[:-1], states[1:]
            slower = (before != after) | (rng.random(_AT_ONCE) < slowly[before])
            faster = (before != after) | ~slower
            steps = slower * rng.standard_exponential(_AT_ONCE) / slow
            times = now + np.cumsum(steps + faster * rng.standard_exponential(_AT_ONCE) / fast)
            yield times[times < seconds]
            state, now = int(after[-1]), float(times[-1])

    def _with_bursts(self, expected: tuple[Times, Times], rng: np.random.Generator) -> Iterator[tuple[Times, Times]]:
        """Yield such lines with bursts, one after the other."""
        calm = (1 - self.burst_share * self.peak) / (1 - self.burst_share)
        calm_seconds = self.burst_seconds * (1 - self.burst_share) / self.burst_share
        times, numbers = expected
        # Within a state the rate is that of the table times the factor of the state; states begin and end between.
        state, now, total = int(rng.random() < self.burst_share), 0.0, 0.0
        while now < times[-1]:
            lengths = rng.standard_exponential(4096)
            states = (state + np.arange(4096)) % 2
            ends = now + np.cumsum(lengths * np.where(states == 1, self.burst_seconds, calm_seconds))
            ends = np.minimum(ends, times[-1])
            inner = times[(times > now) & (times < ends[-1])]
            knots = np.unique(np.concatenate([[now], ends, inner]))
            factors = np.where(states == 1, self.peak, calm)[np.searchsorted(ends, knots[1:], side="left")]
            grown = np.cumsum(np.diff(np.interp(knots, times, numbers)) * factors)
            yield knots, total + np.concatenate([[0.0], grown])
            total, now = total + float(grown[-1]), float(ends[-1])


def _stretched(lines: Iterator[tuple[Times, Times]], even: bool, rng: np.random.Generator) -> Iterator[Times]:
    """Yield the times at which even or random points of rate 1 fall on the lines, a limited number at a time."""
    reached = rng.random() if even else rng.standard_exponential()
    for times, numbers in lines:
        # A flat part has no points: only the last of equal numbers counts, where the line goes on.
        while reached < numbers[-1]:
            count = min(_AT_ONCE, math.ceil(numbers[-1] - reached) + 64)
            steps = np.ones(count) if even else rng.standard_exponential(count)
            points = reached + np.concatenate([[0.0], np.cumsum(steps)])
            inside = min(int(np.searchsorted(points, numbers[-1])), count)
            reached = float(points[inside])
            yield np.interp(points[:inside], numbers, times)
