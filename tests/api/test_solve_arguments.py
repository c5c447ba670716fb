"""Wrong arguments of `solve`, and numbers of numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tiny

from mig_opt import Callbacks, InputError, Status, solve


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"time_limit": 0}, "time_limit"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"time_limit": math.nan}, "time_limit"),
        ({"time_limit": math.inf}, "time_limit"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**31}, "seed"),
        ({"workers": 0}, "workers"),
        ({"time_limit": "60"}, "time_limit"),
        ({"time_limit": True}, "time_limit"),
        ({"seed": 1.5}, "seed"),
        ({"seed": None}, "seed"),
        ({"workers": "2"}, "workers"),
        ({"workers": 2.0}, "workers"),
        ({"workers": True}, "workers"),
        ({"gap": -1}, "gap"),
        ({"gap": 1.5}, "gap"),
        ({"gap": math.nan}, "gap"),
        ({"gap": "1%"}, "gap"),
        ({"gap": None}, "gap"),
        ({"stop": True}, "stop"),
        ({"deterministic": 1}, "deterministic"),
        ({"callbacks": Callbacks}, "callbacks"),
        ({"callbacks": "far"}, "callbacks"),
        ({"callbacks": [Callbacks(), Callbacks]}, "callbacks[1]"),
        ({"method": 7}, "method"),
        ({"partition": "4"}, "partition"),
        ({"method": "far", "partition": ""}, "partition"),
        ({"method": "fixpart"}, "partition"),
        ({"method": "fixpart", "partition": 4}, "partition"),
        ({"method": "fixpart", "partition": "4+4"}, "partition"),
        ({"method": "fixpart", "partition": "1+1+1+1"}, "partition"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        solve(tiny.BATCH, **arguments)
    assert [problem.path for problem in caught.value.problems] == [path]


@pytest.mark.parametrize("integer", [np.int64, np.int8])
def test_numbers_of_numpy_are_numbers(integer: type[np.integer[Any]]) -> None:
    result = solve(tiny.BATCH, seed=integer(3), workers=integer(1), time_limit=np.float64(20), gap=np.float32(0))
    assert result.status is Status.OPTIMAL
    assert type(result.seed) is int
