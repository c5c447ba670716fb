"""Rules of values: constructors say everything that is wrong, with what values have to do with each other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

import numpy as np
import pytest

from mig_opt import Arrivals, InputError, LiveInstance, Problem, Task
from mig_opt.rules import check_values
from mig_opt.rules.vocabulary import Count, Moment, Name, NotEmpty, Number, Seconds, Times


@dataclass(frozen=True, slots=True)
class Plan:
    name: Name
    times: Times
    parts: Annotated[tuple[LiveInstance, ...], NotEmpty("at least one part")]
    wait: Moment | None = None
    pairs: tuple[tuple[Count, Seconds], ...] = ()
    weights: Mapping[str, Annotated[float, Number(above=0)]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_values(self)

    def _problems(self) -> Iterator[Problem]:
        for index, part in enumerate(self.parts or ()):
            if part is not None and part.start == 3:
                yield Problem(f"parts[{index}]", "must not be here")


def test_values_become_what_they_have_to_be() -> None:
    times = {4: 1, np.int8(1): np.float64(2.5), 2: Decimal("0.5"), 3: Fraction(1, 4)}
    made = Plan("a", times, [LiveInstance(np.int64(0), "1g.5gb", 0)], pairs=[[np.int32(2), np.float32(0.5)]])
    plain = "times={1: 2.5, 2: 0.5, 3: 0.25, 4: 1}, parts=(LiveInstance(gpu=0, profile='1g.5gb', start=0, free=0.0),)"
    assert repr(made) == f"Plan(name='a', {plain}, wait=None, pairs=((2, 0.5),), weights={{}})"
    by_kind, recorded = Task("a", {"A30": {1: 2.0}}).times, Arrivals(recorded={"a": [1.0]}).recorded
    for table in (made.times, made.weights, by_kind, recorded):
        with pytest.raises(TypeError, match="make an object with another"):
            table[1] = -1.0


def test_whole_numbers_that_no_float_holds_are_refused() -> None:
    with pytest.raises(InputError, match=r"^times.1: must be less than 1.8e\+308, the largest floating-point number$"):
        Plan("a", {1: Fraction(10**400), 2: 10**300}, [LiveInstance(0, "1g.5gb", 0)])


def test_everything_is_said_at_once_and_nothing_is_changed() -> None:
    part = LiveInstance(0, "1g.5gb", 3, free=-1.0)
    with pytest.raises(InputError) as caught:
        Plan(" ", {1: -1, 2: "x"}, (part, "y"), True, ((0, 1.0), (1,)), {"a": 0})
    assert [str(problem) for problem in caught.value.problems] == [
        "name: must not be empty",
        "times.1: must be a finite number of seconds > 0, is -1",
        "times.2: must be a finite number of seconds > 0, is 'x' (str)",
        "parts[1]: must be a LiveInstance, is 'y' (str)",
        "parts[0].free: must be a finite number of seconds >= 0, is -1.0",
        "wait: must be a finite number of seconds >= 0, is True (bool)",
        "pairs[0][0]: must be from 1 to 2147483647, is 0",
        "pairs[1]: must be a tuple with 2 entries, is (1,) (tuple)",
        "weights.a: must be a finite number > 0, is 0",
        "parts[0]: must not be here",
    ]
    assert part.free == -1.0
