"""The study of promises."""

from __future__ import annotations

import pytest
from places import BENCH

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

from serving_promise import demands, earlier, late

from mig_opt import deploy


def test_rows_of_other_demands_stay() -> None:
    text = "# Title\n\n| demand | arrivals |\n|---|---|\n| S1 | even |\n| S5 x 10 | even |\n| S1 | poisson |\n"
    assert earlier(text) == {
        ("S1", "even"): ["| S1 | even |"],
        ("S5 x 10", "even"): ["| S5 x 10 | even |"],
        ("S1", "poisson"): ["| S1 | poisson |"],
    }


def test_ten_copies_have_names_of_their_own() -> None:
    found = demands(cut=False)
    assert list(found) == ["S1", "S2", "S3", "S4", "S5", "S6", "S5 x 10"]
    assert len({service.name for service in found["S5 x 10"].services}) == 110


@pytest.mark.deep
def test_the_worst_service_is_that_of_all_seeds() -> None:
    demand = demands(cut=True)["S1"]
    deployment = deploy(demand).deployment
    assert deployment is not None
    share, worst, within = late(demand, deployment, "bursty")
    assert 0.01 < share < worst < 0.5
    assert not within
    assert late(demand, deployment, "even") == (0.0, 0.0, True)
