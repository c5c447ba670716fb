"""Requests on whole deployments: figures of services and segments, determinism, and wrong arguments."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from demands import A100, flat_table
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt.errors import InputError
from mig_opt.serving.arrivals import Arrivals
from mig_opt.serving.demand import Demand, GpuPool, Service
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.serving.rates import RateTable
from mig_opt.simulation.serving.outcome import late_interval
from mig_opt.simulation.serving.requests import Batching, simulate_requests, worker_at

CHAT = Segment("chat", 0, "1g.10gb", 0, 4, 2, 80.0, 0.1)
DEPLOYMENT = Deployment(("A100-80GB",), (CHAT, dataclasses.replace(CHAT, start=1)))
DEMAND = Demand((Service("chat", 0.4, 100.0),), (flat_table("chat", A100, {1: 80.0}),), (GpuPool(A100),))


def test_requests_add_up():
    found = simulate_requests(DEMAND, DEPLOYMENT, arrivals="even", seconds=100, warm_up=10)
    (chat,) = found.services
    assert chat.requests == found.requests == 10_000
    assert sum(segment.requests for segment in found.segments) == 10_000
    assert sum(count for _, count in chat.bins) == 10_000
    assert sum(segment.utilisation for segment in found.segments) / 2 == pytest.approx(
        100 / 160 / found.segments[0].filling, rel=0.01
    )
    assert chat.p50_s <= chat.p95_s <= chat.p99_s <= chat.p999_s <= chat.longest_s
    assert (found.late, found.keeps(0.999)) == (0, True)


@settings(max_examples=25)
@given(
    st.sampled_from(["even", "poisson", "bursty"]),
    st.sampled_from(["least-work", "round-robin", "random"]),
    st.floats(0, 1),
    st.booleans(),
    st.sampled_from([0.0, 0.2]),
    st.floats(1, 300),
)
def test_none_is_lost_whatever_the_settings(kind, router, patience, partial, spread, rate):
    demand = DEMAND.replace(services=(dataclasses.replace(DEMAND.services[0], rate=rate),))
    arrivals = Arrivals(kind)
    batching = Batching(patience, partial, spread)
    found = simulate_requests(
        demand, DEPLOYMENT, arrivals=arrivals, router=router, batching=batching, seconds=10, warm_up=0
    )
    assert found.requests == sum(segment.requests for segment in found.segments)
    assert found.requests == sum(count for _, count in found.services[0].bins)
    assert found.requests == pytest.approx(10 * rate, abs=5 + 8 * (10 * rate) ** 0.5 * (3 if kind == "bursty" else 1))
    assert all(0 <= segment.filling <= 1 for segment in found.segments)


def test_partial_batches_take_the_time_of_the_next_size_in_the_profile():
    points = [Point(1, batch, 2, 20.0 * batch**0.5, 0.05 * batch) for batch in (1, 2)]
    worker = worker_at(Point(1, 4, 2, 80.0, 0.1), 0.4, Batching(), points)
    assert worker.answer == (0.1, 2 * 2 / (20.0 * 2**0.5), 0.1, 0.1)
    assert worker.busy == (0.1, 2 * 2 / (20.0 * 2**0.5), 0.1, 0.1)
    assert worker.wait == pytest.approx(0.15)


@pytest.mark.deep
def test_the_interval_covers_the_share_of_a_long_run():
    """Also where queues are long for seconds and late requests come in heaps: here with a load of 95 %."""
    busy = DEMAND.replace(services=(dataclasses.replace(DEMAND.services[0], rate=152.0),))
    share = simulate_requests(busy, DEPLOYMENT, seconds=20_000, seed=99).late_share
    assert 0.002 < share < 0.02
    intervals = [
        simulate_requests(busy, DEPLOYMENT, seconds=60, seed=seed).services[0].late_share_interval
        for seed in range(100)
    ]
    assert sum(low <= share <= high for low, high in intervals) >= 93


def test_without_requests_nothing_is_known():
    assert late_interval(np.zeros((50, 3)), 0, 0.0) == (0.0, 1.0)
    found = simulate_requests(DEMAND, DEPLOYMENT, arrivals=Arrivals(recorded={"chat": (5.0,)}), warm_up=0, seconds=1)
    assert (found.requests, found.services[0].p99_s, found.late_share) == (0, None, 0.0)


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"arrivals": "often"}, ["arrivals"]),
        ({"arrivals": 3}, ["arrivals"]),
        ({"router": "best"}, ["router"]),
        ({"seconds": 0.0, "warm_up": -1.0, "seed": -1}, ["seconds", "warm_up", "seed"]),
        ({"seconds": float("inf")}, ["seconds"]),
        ({"seconds": 1e12}, ["seconds"]),
        ({"arrivals": Arrivals(rates=RateTable((0.0, 1.0), {"search": (1.0,)}))}, ["rates", "rates"]),
        ({"arrivals": Arrivals(recorded={"search": (1.0,)})}, ["recorded", "recorded"]),
        ({"arrivals": Arrivals(rates=RateTable((0.0, 1.0), {"chat": (1.0,)})), "seconds": 2.0}, ["seconds"]),
    ],
)
def test_wrong_arguments_are_refused(changes, paths):
    with pytest.raises(InputError) as caught:
        simulate_requests(DEMAND, DEPLOYMENT, **changes)
    assert [problem.path for problem in caught.value.problems] == paths


def test_deployments_without_figures_or_segments_are_refused():
    bare = DEPLOYMENT.replace(segments=[dataclasses.replace(CHAT, throughput=0.0, service="other")])
    with pytest.raises(InputError) as caught:
        simulate_requests(DEMAND, bare)
    assert [problem.path for problem in caught.value.problems] == ["services[0]", "segments[0].throughput"]


@pytest.mark.parametrize("figures", [{"patience": 1.5}, {"spread": -1.0}, {"spread": 11.0}])
def test_wrong_batching_is_refused(figures):
    with pytest.raises(InputError):
        Batching(**figures)


def test_a_table_is_used_for_partial_batches():
    points = (Point(1, 1, 2, 40.0, 0.05), Point(1, 4, 2, 80.0, 0.1))
    demand = DEMAND.replace(
        tables=(ProfileTable("chat", "A100-80GB", points),),
        services=(dataclasses.replace(DEMAND.services[0], rate=5.0),),
    )
    full, part = (
        simulate_requests(demand, DEPLOYMENT, batching=Batching(0.0, partial), seconds=100).services[0]
        for partial in (False, True)
    )
    assert part.mean_s < 0.8 * full.mean_s
