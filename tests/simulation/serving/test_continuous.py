"""Continuous batching: by hand, by the formulas of queues that it contains, and as services with several SLOs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from documents import complaints

from mig_opt import (
    Arrivals,
    Batching,
    Demand,
    Deployment,
    Point,
    Pool,
    ProfileTable,
    Segment,
    Service,
    deploy,
    deploy_with_promise,
    get_gpu,
    simulate_requests,
)
from mig_opt.simulation.serving.continuous import ContinuousRequests, ContinuousSegment
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.simulation.serving.service import Router

A30 = get_gpu("A30")


def simulated(
    rates: dict[int, float], arrivals: Arrivals | str = "poisson", *, seconds: float | None = None, **more: object
) -> RequestSimulation:
    """Simulate a service on one or more segments, with points of some requests per second by requests in flight."""
    points = tuple(Point(2, n, 1, rate, n / rate, ttft=0.1 * n, itl=0.01 * n) for n, rate in rates.items())
    service = Service("chat", **{"slo": 60.0, "rate": 1.0, **{k: v for k, v in more.items() if k in ("slo", "rate")}})
    service = dataclasses.replace(service, **{k: v for k, v in more.items() if k.startswith("slo_")})
    demand = Demand((service,), (ProfileTable("chat", A30.name, points, continuous=True),), (Pool(A30),))
    most = max(rates)
    segments = [
        Segment("chat", gpu, "2g.12gb", 0, most, 1, rates[most], most / rates[most])
        for gpu in range(int(str(more.get("segments", 1))))
    ]
    deployment = Deployment(("A30",) * len(segments), tuple(segments))
    options = {key: more[key] for key in ("router", "batching", "seed") if key in more}
    return simulate_requests(demand, deployment, arrivals=arrivals, seconds=seconds, **options)  # type: ignore[arg-type]


def test_two_requests_by_hand() -> None:
    # Alone the first has 0.2 of its way behind it at 0.1 s; together both go on at 1.5 per second until it is done at
    # 0.1 + 0.8 / 1.5 = 0.6333 s, and the second has 0.2 left.
    found = simulated({1: 2.0, 2: 3.0}, Arrivals(recorded={"chat": np.array([0.0, 0.1, 9.0])}), seconds=0.2)
    (service,) = found.services
    assert service.longest_s == pytest.approx(0.6333 + 0.1 - 0.1 + 1e-9, abs=1e-3)
    assert service.mean_s == pytest.approx((0.63333 + 0.63333) / 2, abs=1e-4)


def test_more_than_the_concurrency_wait() -> None:
    found = simulated({1: 2.0}, Arrivals(recorded={"chat": np.array([0.0, 0.0, 0.0, 9.0])}), seconds=1.5)
    assert found.services[0].mean_s == pytest.approx((0.5 + 1.0 + 1.5) / 3)
    assert found.segments[0].utilisation == pytest.approx(1.0)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_one_in_flight_is_the_queue_of_pollaczek_and_khinchine(load: float) -> None:
    found = simulated({1: 10.0}, rate=10 * load, seconds=6000.0)
    expected = 0.1 + load / (2 * 10 * (1 - load))
    assert found.services[0].mean_s == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_constant_throughput_is_processor_sharing_whatever_the_work(spread: float) -> None:
    found = simulated({1: 10.0, 500: 10.0}, rate=7.0, seconds=6000.0, batching=Batching(spread=spread))
    assert found.services[0].mean_s == pytest.approx(1 / (10 * (1 - 0.7)), rel=0.05)


def test_throughput_in_proportion_to_requests_in_flight_has_no_queue() -> None:
    (service,) = simulated({1: 2.0, 400: 800.0}, rate=50.0, seconds=200.0).services
    assert service.p50_s == pytest.approx(0.5, rel=2e-3)
    assert service.longest_s == pytest.approx(0.5, rel=1e-6)


def test_a_saturated_segment_answers_what_its_profile_says() -> None:
    # 60 requests per second arrive for 110 s, and 6 are answered: the last one waits for all others.
    found = simulated({1: 2.0, 8: 6.0}, rate=60.0, seconds=100.0)
    (load,) = found.segments
    assert load.utilisation == pytest.approx(1.0, abs=0.01)
    assert load.filling == pytest.approx(1.0, abs=0.01)
    longest = found.services[0].longest_s
    assert longest == pytest.approx(60 * 110 / 6 - 110, rel=0.05)


@pytest.mark.parametrize("router", ["least-work", "round-robin", "random", "least-connections", "uniform"])
def test_two_segments_share_the_requests(router: str) -> None:
    found = simulated({1: 10.0, 16: 20.0}, rate=20.0, seconds=300.0, segments=2, router=router)
    shares = [load.requests / found.requests for load in found.segments]
    assert shares == pytest.approx([0.5, 0.5], abs=0.03)
    again = simulated({1: 10.0, 16: 20.0}, rate=20.0, seconds=300.0, segments=2, router=router)
    assert again.services == found.services


def test_late_is_what_breaks_any_slo() -> None:
    alone = Arrivals(recorded={"chat": np.array([0.0, 10.0, 20.0, 30.0])})
    for slos, late in (
        ({}, 0),
        ({"slo_ttft": 0.11}, 0),
        ({"slo_ttft": 0.09}, 3),
        ({"slo_itl": 0.011}, 0),
        ({"slo_itl": 0.009}, 3),
        ({"slo": 0.4}, 3),
    ):
        assert simulated({1: 2.0, 4: 4.0}, alone, seconds=25.0, **slos).services[0].late == late
    slower = Batching(overhead=0.05)
    found = simulated({1: 2.0, 4: 4.0}, alone, seconds=25.0, slo_ttft=0.14, batching=slower)
    assert (found.services[0].late, found.services[0].longest_s) == (3, pytest.approx(0.55))
    # The second has both in flight at its begin (0.2 s), and mostly (0.02 s from token to token).
    pair = Arrivals(recorded={"chat": np.array([0.0, 0.0, 9.0])})
    assert simulated({1: 2.0, 2: 3.0}, pair, seconds=1.0, slo_ttft=0.15).services[0].late == 1
    assert simulated({1: 2.0, 2: 3.0}, pair, seconds=1.0, slo_itl=0.019).services[0].late == 2


def test_segments_that_end_and_begin() -> None:
    points = (Point(2, 1, 1, 2.0, 0.5), Point(2, 4, 1, 4.0, 1.0))
    demand = Demand(
        (Service("chat", 9.0, 1.0),), (ProfileTable("chat", A30.name, points, continuous=True),), (Pool(A30),)
    )
    old, new = (Segment("chat", 0, "2g.12gb", start, 4, 1, 4.0, 1.0) for start in (0, 2))
    deployment = Deployment((A30.name,), (old, new))
    first = ContinuousSegment(demand, demand.services[0], deployment, old, times=(0.0, 10.0))
    second = ContinuousSegment(demand, demand.services[0], deployment, new, times=(12.0, np.inf))
    options = {"router": Router.LEAST_WORK, "spread": 0.0, "rng": np.random.default_rng(0)}
    served = ContinuousRequests([first, second], demand.services[0], (0.0, 100.0), **options)  # type: ignore[arg-type]
    served.run([np.array([9.9, 11.0, 13.0])])
    # The one at 11 s waits for the segment that opens at 12 s.
    assert [(done[0], round(done[2], 3)) for one in (first, second) for done in one.done] == [
        (9.9, 10.4),
        (11.0, 12.5),
        (13.0, 13.5),
    ]


def test_a_promise_is_not_searched_and_says_so() -> None:
    points = (Point(2, 8, 1, 6.0, 1.2, ttft=0.1, itl=0.01),)
    tables = (ProfileTable("chat", A30.name, points, continuous=True),)
    demand = Demand((Service("chat", 4.0, 5.0),), tables, (Pool(A30),))
    (told,) = complaints(deploy_with_promise, demand, 0.99)
    assert told.startswith("services[0]: no promise is searched for 'chat', which is batched continuously")
    found = deploy(demand).deployment
    assert found is not None
    assert simulate_requests(demand, found, seconds=200).keeps(0.99)
