"""The study of promises."""

from __future__ import annotations

import pytest
from places import BENCH

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

from bench.serving.promise import beaten, demands, earlier, late
from mig_opt import deploy

TABLE = """# Title

| demand | arrivals | method | GPUs without promise | late without | GPUs | late | kept | raised | runs |
|---|---|---|---|---|---|---|---|---|---|
| S1 | even | parvagpu | 2 | 0.00% (0.0%) | 2 | 0.000% (0.00%) | yes | - | 120 s |
| S1 | even | exact | 2 | 0.00% (0.0%) | 2* | 0.000% (0.00%) | yes | - | 120 s |
| S5 x 10 | poisson | search | 118 | 18.74% (89.8%) | 122 | 0.065% (1.46%) | yes | - | 120 s |
"""


def test_rows_of_other_demands_stay() -> None:
    rows = earlier(TABLE)
    assert list(rows) == [("S1", "even", "parvagpu"), ("S1", "even", "exact"), ("S5 x 10", "poisson", "search")]
    assert list(rows.values()) == TABLE.splitlines()[4:]


def test_a_rival_with_fewer_gpus_or_a_broken_promise_is_told() -> None:
    assert beaten(earlier(TABLE)) == []
    worse = TABLE.replace("| 2* |", "| 3 (>= 2) |")
    assert beaten(earlier(worse)) == [TABLE.splitlines()[4]]
    assert beaten(earlier(TABLE.replace("(1.46%) | yes", "(1.46%) | NO"))) == [
        "| S5 x 10 | poisson | search | 118 | 18.74% (89.8%) | 122 | 0.065% (1.46%) | NO | - | 120 s |"
    ]


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
