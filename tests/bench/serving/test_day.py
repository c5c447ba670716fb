"""The study of a day."""

from bench.report import Page
from bench.serving.day import RUNS, SERVICES, day
from mig_opt import deploy
from mig_opt.serving.day import Day


def test_the_day_has_half_hours_and_fits_on_the_gpus() -> None:
    demand, rates = day(48)
    assert (rates.steps, rates.times[-1]) == (48, 86_400.0)
    assert tuple(service.name for service in demand.services) == SERVICES
    assert deploy(Day(demand, rates).demands[35], gap=1e-9).gpus in {7, 8}


def test_rates_do_not_change_from_run_to_run() -> None:
    assert day(6) == day(6)
    assert day(6, seed=2)[1] != day(6)[1]


def test_rows_that_are_not_measured_stay() -> None:
    found = Page("serving_day", "").earlier_rows(2)
    assert [key for key in found if key[0].isdigit()] == [(str(count), label) for count, label, *_ in RUNS]
