"""Wrong arguments of `solve`, and numbers of numpy."""

import math
from typing import Any

import numpy as np
import pytest
import tiny

from mig_opt import Callbacks, InputError, Status, solve

WRONG: dict[str, tuple[Any, ...]] = {
    "time_limit": (0, -1.0, math.nan, math.inf, "60", True),
    "seed": (-1, 2**31, 1.5, None),
    "workers": (0, "2", 2.0, True),
    "gap": (-1, 1.5, math.nan, "1%", None),
    "stop": (True,),
    "deterministic": (1,),
    "callbacks": (Callbacks, "far"),
    "method": (7,),
    "partition": ("4",),
}
PARTITIONS = (("far", ""), *(("fixpart", partition) for partition in (None, 4, "4+4", "1+1+1+1")))


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        *((name, {name: value}) for name, values in WRONG.items() for value in values),
        *(("partition", {"method": method, "partition": partition}) for method, partition in PARTITIONS),
        ("callbacks[1]", {"callbacks": [Callbacks(), Callbacks]}),
    ],
)
def test_wrong_arguments(path: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        solve(tiny.BATCH, **arguments)
    assert [problem.path for problem in caught.value.problems] == [path]


@pytest.mark.parametrize("integer", [np.int64, np.int8])
def test_numbers_of_numpy_are_numbers(integer: type[np.integer[Any]]) -> None:
    result = solve(tiny.BATCH, seed=integer(3), workers=integer(1), time_limit=np.float64(20), gap=np.float32(0))
    assert result.status is Status.OPTIMAL
    assert type(result.seed) is int
