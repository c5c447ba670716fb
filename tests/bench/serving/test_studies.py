"""The studies of a day and of promises."""

import pytest

from bench.report import Page
from bench.serving.day import RUNS, SERVICES, day
from bench.serving.promise import beaten, demands, late
from mig_opt import Day, deploy


def test_the_day_has_half_hours_and_fits_on_the_gpus():
    demand, rates = day(48)
    assert (rates.steps, rates.times[-1]) == (48, 86_400.0)
    assert tuple(service.name for service in demand.services) == SERVICES
    assert deploy(Day(demand, rates).demands[35], gap=1e-9).gpus in {7, 8}


def test_rates_do_not_change_from_run_to_run():
    assert day(6) == day(6)
    assert day(6, seed=2)[1] != day(6)[1]


def test_the_stored_page_has_every_row():
    found = Page("serving_day", "").earlier_rows(2)
    assert [key for key in found if key[0].isdigit()] == [(str(count), label) for count, label, *_ in RUNS]


ROWS = {
    ("S1", "even", "parvagpu"): ["S1", "even", "parvagpu", "2", "0.00% (0.0%)", "2", "0.000% (0.00%)", "yes"],
    ("S1", "even", "exact"): ["S1", "even", "exact", "2", "0.00% (0.0%)", "2*", "0.000% (0.00%)", "yes"],
}


def test_a_rival_with_fewer_gpus_or_a_broken_promise_is_told():
    assert beaten(ROWS) == beaten(Page("serving_promise", "").earlier_rows(3)) == []
    exact = ROWS["S1", "even", "exact"]
    worse = {**ROWS, ("S1", "even", "exact"): [*exact[:5], "3 (>= 2)", *exact[6:]]}
    assert beaten(worse) == [" | ".join(ROWS["S1", "even", "parvagpu"])]
    broken = [*exact[:7], "NO"]
    assert beaten({**ROWS, ("S1", "even", "exact"): broken}) == [" | ".join(broken)]


def test_ten_copies_have_names_of_their_own():
    found = demands(cut=False)
    assert list(found) == ["S1", "S2", "S3", "S4", "S5", "S6", "S5 x 10"]
    assert len({service.name for service in found["S5 x 10"].services}) == 110


@pytest.mark.deep
def test_the_worst_service_is_that_of_all_seeds():
    demand = demands(cut=True)["S1"]
    deployment = deploy(demand).deployment
    share, worst, within = late(demand, deployment, "bursty")
    assert 0.01 < share < worst < 0.5
    assert not within
    assert late(demand, deployment, "even") == (0.0, 0.0, True)
