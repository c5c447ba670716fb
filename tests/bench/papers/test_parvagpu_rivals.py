"""Two ways to run MIG-serving's fast algorithm: the package's and plain enumeration."""

import pytest

from bench.papers.parvagpu_rivals import WEIGHTS, fast_gpus, readings
from mig_opt import deploy, load


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_enumeration_needs_as_many_gpus_as_the_method(number):
    demand = load(f"parvagpu-s{number}").replace(max_processes=1)
    assert fast_gpus(demand) == deploy(demand, "mig-serving-fast").gpus


def test_readings_differ_in_what_they_allow():
    demand = load("parvagpu-s1").replace(max_processes=1)
    found = readings([demand])
    assert len(found) == len(WEIGHTS) + 2
    assert found["score weighted by what is not served yet"] == [fast_gpus(demand)]
    # Each service alone needs its own GPUs.
    assert found["at most 1 on a GPU"] == [
        sum(fast_gpus(demand.replace(services=(service,))) for service in demand.services)
    ]
