"""Continuous batching: by hand, by the formulas of queues that it contains, and as services with several SLOs."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from documents import complaints

from mig_opt import Arrivals, Demand, Deployment, Point, Pool, ProfileTable, Segment, Service, deploy, get_gpu
from mig_opt.api.deploy.promises import deploy_with_promise
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.simulation.serving.continuous import ContinuousRequests, continuous_worker
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.simulation.serving.requests import Batching, simulate_requests
from mig_opt.simulation.serving.service import varied

A30 = get_gpu("A30")


def chat(points: tuple[Point, ...], **more: float) -> Demand:
    """A service on A30s that are batched continuously, with SLOs and a rate."""
    service = Service("chat", **{"slo": 60.0, "rate": 1.0, **more})
    return Demand((service,), (ProfileTable("chat", A30.name, points, continuous=True),), (Pool(A30),))


def simulated(
    rates: dict[int, float], arrivals: Arrivals | str = "poisson", *, segments: int = 1, processes: int = 1, **more: Any
) -> RequestSimulation:
    """Simulate a service on one or more segments, with points of some requests per second by requests in flight."""
    ways = {n: (2, n // processes, processes, rate, n / rate) for n, rate in rates.items()}
    points = tuple(Point(*way, ttft=0.1 * n, itl=0.01 * n) for n, way in ways.items())
    demand = chat(points, **{key: more.pop(key) for key in ("slo", "slo_ttft", "slo_itl", "rate") if key in more})
    held = tuple(Segment("chat", gpu, "2g.12gb", 0, *ways[max(rates)][1:]) for gpu in range(segments))
    return simulate_requests(demand, Deployment(("A30",) * segments, held), arrivals=arrivals, **more)


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


@pytest.mark.parametrize("processes", [1, 2])
def test_a_saturated_segment_answers_what_its_profile_says(processes: int) -> None:
    # 60 requests per second arrive for 110 s, and 6 are answered: the last one waits for all others.
    found = simulated({2: 4.0, 8: 6.0}, rate=60.0, seconds=100.0, processes=processes)
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
    demand = chat(points, slo=9.0)
    old, new = (Segment("chat", 0, "2g.12gb", start, 4, 1, 4.0, 1.0) for start in (0, 2))
    ends = ChangeStep("destroy", 0, "2g.12gb", 0, 0.0, 1.0, ends=old)
    begins = ChangeStep("create", 0, "2g.12gb", 2, 1.0, 2.0, begins=new)
    change = ChangePlan((A30.name,), (), (ends, begins), (), 2.0)
    arrivals = Arrivals(recorded={"chat": np.array([9.9, 11.0, 21.5, 40.0])})
    found = simulate_requests(demand, change, arrivals=arrivals, warm_up=10.0, seconds=20.0)
    # The one at 11 s waits for the segment that opens at 10 + 9 (drained) + 2 s.
    assert {segment.start: segment.requests for segment in found.segments} == {0: 0, 2: 2}
    assert found.services[0].longest_s == pytest.approx(21.5 + 0.25 - 11.0, abs=0.3)


@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_the_loop_does_what_small_steps_do(spread: float) -> None:
    """Against the same by steps of time, in which each request goes on as fast as the number in flight says."""
    rates, step = {1: 2.0, 3: 4.5, 4: 5.0}, 2e-4
    points = tuple(Point(2, n, 1, rate, n / rate, ttft=0.1 * n, itl=0.01 * n) for n, rate in rates.items())
    service = Service("chat", 9.0, 1.0)
    worker = continuous_worker(service, points[-1], points, 0.0)
    moments = np.sort(np.random.default_rng(3).uniform(0, 8, 40))
    works = varied(spread, 40, np.random.default_rng(4)) if spread else np.ones(40)
    served = ContinuousRequests([worker], (0.0, 100.0), spread=spread, rng=np.random.default_rng(4))
    served.run([moments])
    waiting, flying, latencies = [*zip(moments, works, strict=True)], [], []
    for now in np.arange(0.0, 30.0, step):
        while waiting and waiting[0][0] <= now and len(flying) < 4:
            flying.append([*waiting.pop(0)])
        for one in flying:
            one[1] -= step * float(np.interp(len(flying), [0, *rates], [0.0, *rates.values()])) / len(flying)
        latencies += [now + step - arrival for arrival, left in flying if left <= 0]
        flying = [one for one in flying if one[1] > 0]
    assert len(latencies) == served.counted.batches[0, 1] == 40
    assert served.counted.totals[0] == pytest.approx(sum(latencies), abs=40 * 20 * step)
    assert served.counted.totals[2:] == pytest.approx([min(latencies), max(latencies)], abs=20 * step)


def language_model(**slos: float) -> Demand:
    points = tuple(
        Point(size, flying, 1, size * flying / (1 + flying / 8), (1 + flying / 8) / size, 0.05 * flying, 0.01 * flying)
        for size in (1, 2, 4)
        for flying in (1, 4, 8)
    )
    return chat(points, slo=8.0, rate=12.0, **{f"slo_{name}": slo for name, slo in slos.items()})


@pytest.mark.parametrize("slos", [{}, {"ttft": 1.0, "itl": 0.07}])
def test_a_promise_is_kept_and_what_costs_less_does_not_keep_it(slos: dict[str, float]) -> None:
    demand = language_model(**slos)
    for share in (0.9, 0.99):
        result = deploy_with_promise(demand, share)
        assert result.status.value == "optimal"
        assert simulate_requests(demand, result.deployment, seconds=4000, seed=7).keeps(share)
        # Capacities are below the throughputs by what queues need, more for a greater share and for more SLOs.
        assert all(0.5 < one.capacity / one.throughput <= 1 for one in result.capacities)
    plain = deploy(demand).deployment
    assert not simulate_requests(demand, plain, seconds=4000, seed=7).keeps(0.99)


def test_slos_on_tokens_are_promised_only_where_they_are_simulated() -> None:
    demand = language_model(ttft=1.0)
    whole = demand.replace(tables=[dataclasses.replace(table, continuous=False) for table in demand.tables])
    (told,) = complaints(deploy_with_promise, whole, 0.99)
    assert told.startswith("services[0]: 'chat' has SLOs on tokens, which are simulated only of models that are")
