"""Days: rates that change over time, and what a plan costs."""

from fractions import Fraction

from demands import A30, one_model
from documents import wrong_paths

from mig_opt import Day, RateTable

DEMAND = one_model({"a": 1.0, "b": 1.0}, {1: 100.0}, A30)


def test_each_step_has_the_services_with_requests_at_raised_rates():
    day = Day(DEMAND, RateTable((0.0, 60.0, 90.0, 120.0), {"a": (10.0, 0.0, 0.0), "b": (0.0, 20.0, 0.0)}), margin=0.5)
    asked = [step and {service.name: service.rate for service in step.services} for step in day.demands]
    assert asked == [{"a": 15.0}, {"b": 30.0}, None]
    assert {service.name: service.rate for service in day.at_peak.services} == {"a": 15.0, "b": 30.0}
    assert day.hours == (Fraction(1, 60), Fraction(1, 120), Fraction(1, 120))


def test_problems_are_told_all_at_once():
    wrong = {"margin": 101, "creation_price": -1.0, "interruption_price": "much"}
    assert wrong_paths(Day, DEMAND, RateTable((0.0, 1.0), {"a": (1.0,)}), **wrong) == [*wrong, "rates"]
