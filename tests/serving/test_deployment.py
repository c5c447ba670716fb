"""Slices that a deployment leaves unused."""

import dataclasses

import pytest
from demands import demands, one_model
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Demand, Deployment, deploy


def test_internal_slack_counts_slices_by_hand() -> None:
    # Seven slices each, for 105 and 45 of 420 requests per second.
    wanted = one_model({"a": 105.0, "b": 45.0}, {7: 420.0})
    found = deploy(wanted, "first-fit").deployment
    assert found is not None
    assert found.internal_slack(wanted) == pytest.approx((7 * 0.75 + 7 * (1 - 45 / 420)) / 14)
    nobody = wanted.replace(services=wanted.services[:1])
    assert found.internal_slack(nobody) == pytest.approx((7 * 0.75 + 7) / 14), "nobody asks for b"
    assert Deployment(found.gpus, ()).internal_slack(wanted) == 0.0


@pytest.mark.deep
@settings(max_examples=40)
@given(demands(), st.floats(0.1, 1.0))
def test_internal_slack_falls_as_rates_rise(wanted: Demand, share: float) -> None:
    found = deploy(wanted, "first-fit").deployment
    assert found is not None
    less = wanted.replace(services=tuple(dataclasses.replace(s, rate=s.rate * share) for s in wanted.services))
    used, idle = 1 - found.internal_slack(wanted), found.internal_slack(less)
    assert 0 <= found.internal_slack(wanted) <= idle <= 1
    assert 1 - idle == pytest.approx(used * share), "activity is in proportion to the rates"
