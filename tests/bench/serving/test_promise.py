"""The study of promises."""

import pytest

from bench.report import Page
from bench.serving.promise import beaten, demands, late
from mig_opt import deploy

ROWS = {
    ("S1", "even", "parvagpu"): ["S1", "even", "parvagpu", "2", "0.00% (0.0%)", "2", "0.000% (0.00%)", "yes"],
    ("S1", "even", "exact"): ["S1", "even", "exact", "2", "0.00% (0.0%)", "2*", "0.000% (0.00%)", "yes"],
}


def test_a_rival_with_fewer_gpus_or_a_broken_promise_is_told() -> None:
    assert beaten(ROWS) == beaten(Page("serving_promise", "").earlier_rows(3)) == []
    exact = ROWS["S1", "even", "exact"]
    worse = {**ROWS, ("S1", "even", "exact"): [*exact[:5], "3 (>= 2)", *exact[6:]]}
    assert beaten(worse) == [" | ".join(ROWS["S1", "even", "parvagpu"])]
    broken = [*exact[:7], "NO"]
    assert beaten({**ROWS, ("S1", "even", "exact"): broken}) == [" | ".join(broken)]


def test_ten_copies_have_names_of_their_own() -> None:
    found = demands(cut=False)
    assert list(found) == ["S1", "S2", "S3", "S4", "S5", "S6", "S5 x 10"]
    assert len({service.name for service in found["S5 x 10"].services}) == 110


@pytest.mark.deep
def test_the_worst_service_is_that_of_all_seeds() -> None:
    demand = demands(cut=True)["S1"]
    deployment = deploy(demand).deployment
    share, worst, within = late(demand, deployment, "bursty")
    assert 0.01 < share < worst < 0.5
    assert not within
    assert late(demand, deployment, "even") == (0.0, 0.0, True)
