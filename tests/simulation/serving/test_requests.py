"""Requests on whole deployments: figures of services and segments, determinism, and wrong arguments."""

import dataclasses

import numpy as np
import pytest
from demands import A100, flat_table
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Arrivals, Demand, Deployment, GpuPool, Point, RateTable, Segment, Service
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.simulation.serving.outcome import late_interval
from mig_opt.simulation.serving.requests import Batching, simulate_requests, worker_at
from mig_opt.simulation.serving.service import Router, ServedRequests, Worker

CHAT = Segment("chat", 0, "1g.10gb", 0, 4, 2, 80.0, 0.1)
DEPLOYMENT = Deployment(("A100-80GB",), (CHAT, dataclasses.replace(CHAT, start=1)))
DEMAND = Demand((Service("chat", 0.4, 100.0),), (flat_table("chat", A100, {1: 80.0}),), (GpuPool(A100),))


def at_rate(rate: float) -> Demand:
    return DEMAND.replace(services=(dataclasses.replace(DEMAND.services[0], rate=rate),))


@settings(max_examples=60)
@given(
    st.sampled_from(["even", "poisson", "bursty"]),
    st.sampled_from([*Router]),
    st.floats(0, 1),
    st.booleans(),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([(), (2,), (1, 3)]),
    st.booleans(),
    st.sampled_from([None, 0.0, 0.01, 0.1]),
    st.just(0.0) | st.floats(0.001, 1.0),
    st.floats(1, 300),
)
def test_none_is_lost_whatever_the_settings(
    kind, router, patience, partial, spread, preferred, separate, delay, look, rate
):
    batching = Batching(patience, partial, spread, delay, preferred, separate, look=look)
    found = simulate_requests(
        at_rate(rate), DEPLOYMENT, arrivals=kind, router=router, batching=batching, seconds=10, warm_up=0
    )
    assert found.requests == sum(segment.requests for segment in found.segments)
    assert found.requests == sum(count for _, count in found.services[0].bins)
    assert found.requests == pytest.approx(10 * rate, abs=5 + 8 * (10 * rate) ** 0.5 * (3 if kind == "bursty" else 1))
    assert all(0 <= segment.filling <= 1 for segment in found.segments)
    assert found.services[0].batches >= found.requests / 4


@pytest.mark.deep
def test_the_interval_covers_the_share_of_a_long_run():
    """Also where queues are long for seconds and late requests come in heaps: here with a load of 95 %."""
    busy = at_rate(152.0)
    share = simulate_requests(busy, DEPLOYMENT, seconds=20_000, seed=99).late_share
    assert 0.002 < share < 0.02
    intervals = [
        simulate_requests(busy, DEPLOYMENT, seconds=60, seed=seed).services[0].late_share_interval
        for seed in range(100)
    ]
    assert sum(low <= share <= high for low, high in intervals) >= 93


def test_partial_batches_take_the_time_of_the_next_size_in_the_profile():
    points = [Point(1, batch, 2, 20.0 * batch**0.5, 0.05 * batch) for batch in (1, 2)]
    worker = worker_at(Point(1, 4, 2, 80.0, 0.1), 0.4, Batching(), points)
    assert worker.answer == (0.1, 2 * 2 / (20.0 * 2**0.5), 0.1, 0.1)
    assert worker.busy == (0.1, 2 * 2 / (20.0 * 2**0.5), 0.1, 0.1)
    assert worker.wait == pytest.approx(0.15)


@pytest.mark.parametrize(("first", "last"), [(7.891, 28.7), (0.0, 28.7)])
def test_the_last_recorded_request_counts(first, last):
    """Whatever the sum of the seconds before and after the first one that counts."""
    given = Arrivals(recorded={"chat": (first, last)})
    found = simulate_requests(DEMAND, DEPLOYMENT, arrivals=given, warm_up=7.891)
    assert found.requests == 1 + (first > 0)


def test_without_requests_nothing_is_known():
    assert late_interval(np.zeros((50, 3)), 0, 0.0) == (0.0, 1.0)
    found = simulate_requests(DEMAND, DEPLOYMENT, arrivals=Arrivals(recorded={"chat": (5.0,)}), warm_up=0, seconds=1)
    assert (found.requests, found.services[0].p99_s, found.late_share) == (0, None, 0.0)
    # Nor by latencies whose squares are no numbers any more.
    late = simulate_requests(DEMAND, DEPLOYMENT, batching=Batching(overhead=1e300), seconds=1).services[0]
    assert (late.late_share, late.late_share_interval[1]) == (1.0, pytest.approx(1.0))


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
        ({"arrivals": Arrivals(rates=RateTable((0.0, 1.0), {"chat": (1.0,)})), "warm_up": 1.0}, ["seconds"]),
    ],
)
def test_wrong_arguments_are_refused(changes, paths):
    assert refused(simulate_requests, DEMAND, DEPLOYMENT, **changes) == paths


def test_deployments_without_figures_or_segments_are_refused():
    bare = DEPLOYMENT.replace(segments=[dataclasses.replace(CHAT, throughput=0.0, service="other")])
    assert refused(simulate_requests, DEMAND, bare) == ["services[0]", "segments[0].throughput"]
    twice = dataclasses.replace(DEPLOYMENT, segments=(*DEPLOYMENT.segments, DEPLOYMENT.segments[0]))
    assert refused(simulate_requests, DEMAND, twice) == [f"segments[{len(DEPLOYMENT.segments)}]"]


@pytest.mark.parametrize(("router", "share"), [("round-robin", 3.0), ("random", 3.0), ("uniform", 1.0)])
def test_routers_share_requests_by_throughput_or_equally(router, share):
    fast = dataclasses.replace(CHAT, start=1, throughput=240.0, latency=1 / 30)
    found = simulate_requests(at_rate(150.0), DEPLOYMENT.replace(segments=[CHAT, fast]), router=router, seconds=200)
    assert found.segments[1].requests / found.segments[0].requests == pytest.approx(share, rel=0.1)


def test_idle_segments_take_turns():
    """As servers of HAProxy do; else the first one would get all."""
    rare = Arrivals(recorded={"chat": tuple(float(at) for at in range(1, 11))})
    found = simulate_requests(DEMAND, DEPLOYMENT, arrivals=rare, router="least-connections", warm_up=0)
    assert [segment.requests for segment in found.segments] == [5, 5]


NEW = dataclasses.replace(CHAT, start=2)
STEPS = (
    ChangeStep("create", 0, "1g.10gb", 2, 0.0, 3.0, begins=NEW),
    ChangeStep("destroy", 0, "1g.10gb", 0, 3.0, 4.0, ends=CHAT),
)
CHANGE = ChangePlan(("A100-80GB",), (), STEPS, (), 4.0)


@pytest.mark.parametrize("router", [*Router])
def test_in_a_change_segments_start_up_and_drain(router):
    evenly = {"arrivals": "even", "seconds": 20.0, "warm_up": 10.0, "router": router}
    found = simulate_requests(at_rate(60.0), CHANGE, start_up=2.0, **evenly)
    # The new one serves after 3 s and its start, when the old one is drained.
    assert [segment.start for segment in found.segments] == [2, 0]
    assert [segment.requests for segment in found.segments] == pytest.approx([900, 300], abs=2)
    assert found.requests == 1200
    # The last requests of the old one wait for their batch as long as they may: they are answered, not lost.
    assert found.late == 0


def test_without_a_segment_requests_wait_for_the_next_one():
    backwards = dataclasses.replace(CHANGE, steps=(STEPS[1], STEPS[0]))
    found = simulate_requests(at_rate(5.0), backwards, arrivals="even", seconds=20.0, warm_up=10.0, start_up=2.0)
    # From 0 to 0.4 (drained) + 1 (destroyed) + 3 (created) + 2 s (start).
    assert found.services[0].longest_s == pytest.approx(6.4, abs=0.2)
    assert found.late == pytest.approx(5 * 6.1, abs=2)
    assert found.requests == 100


def test_round_robin_goes_on_evenly_when_a_segment_joins():
    worker = Worker(1, 1, (0.001,), (0.001,), 0.0)
    rng = np.random.default_rng(0)
    served = ServedRequests(
        [worker] * 2, 1.0, (0.0, 30.0), router=Router.ROUND_ROBIN, rng=rng, times=[(0.0, 99.0), (20.0, 99.0)]
    )
    served.run([np.arange(3000) / 100])
    assert served.counted.batches[:, 1].tolist() == [2500, 500]


@pytest.mark.parametrize("router", [*Router])
def test_where_no_segment_opens_again_requests_go_to_the_one_that_closed_last(router):
    worker, rng = Worker(1, 1, (0.001,), (0.001,), 0.0), np.random.default_rng(0)
    served = ServedRequests([worker] * 2, 1.0, (0.0, 30.0), router=router, rng=rng, times=[(0.0, 5.0), (0.0, 10.0)])
    served.run([np.arange(500, 3000) / 100])
    assert served.counted.batches[:, 1].tolist() == [0, 2500]
