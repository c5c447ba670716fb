"""Deployments that keep a promise to the requests."""

from __future__ import annotations

import dataclasses

import pytest
from demands import A30

from mig_opt.api.deploy import deploy
from mig_opt.api.deploy.promises import deploy_with_promise
from mig_opt.api.deploy.trials import PromiseTrials
from mig_opt.errors import InputError
from mig_opt.instances.bundled import load_demand
from mig_opt.method.result import Status
from mig_opt.serving.arrivals import Arrivals
from mig_opt.serving.demand import Demand, GpuPool, Service
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.simulation.serving import capacity
from mig_opt.simulation.serving.capacity import Promise
from mig_opt.simulation.serving.requests import simulate_requests
from mig_opt.validation import validate_deployment

POINTS = tuple(Point(size, 8, 1, 100.0 * size, 0.08 / size) for size in (1, 2, 4))
TABLE = ProfileTable("m", "A30-24GB", POINTS)


def demand(rate: float, slo: float = 0.2, count: int | None = None) -> Demand:
    return Demand((Service("a", slo, rate, "m"),), (TABLE,), (GpuPool(A30, count),))


def test_room_for_queues_takes_another_gpu():
    """Throughput alone covers 799 requests per second with two GPUs, with hardly any room for a queue."""
    tight = demand(799.0)
    assert deploy(tight).gpus == 2
    found = deploy_with_promise(tight, 0.999)
    assert (found.gpus, found.status, found.lower_bound) == (3, Status.OPTIMAL, 3)
    assert found.claim == "3 GPUs, p99.9 kept in simulation; 2 proven too few under the capacities"
    assert found.simulation is not None
    assert found.simulation.keeps(0.999)
    assert validate_deployment(tight, found.deployment).valid
    for seed in range(3):
        assert simulate_requests(tight, found.deployment, seconds=60, seed=seed).keeps(0.999)


def test_a_promise_that_costs_nothing():
    relaxed = demand(300.0)
    assert deploy_with_promise(relaxed, 0.9).gpus == deploy(relaxed).gpus == 1


def test_capacities_are_below_throughputs():
    found = deploy_with_promise(demand(799.0), Promise(0.99, Arrivals("bursty")))
    assert [entry.profile for entry in found.capacities] == ["1g.6gb", "2g.12gb", "4g.24gb"]
    assert all(0 < entry.capacity < 0.9 * entry.throughput for entry in found.capacities)
    held = {entry.profile: entry.capacity for entry in found.capacities}
    assert sum(held[segment.profile] for segment in found.deployment.segments) >= 799.0 * (1 - 1e-9)


@pytest.mark.parametrize("method", ["parvagpu", "first-fit", "search"])
def test_rivals_keep_the_promise_with_no_fewer_gpus(method):
    tight = demand(799.0)
    rival = deploy_with_promise(tight, 0.999, method)
    assert rival.simulation.keeps(0.999)
    assert rival.method == method
    assert rival.gpus >= 3


def test_capacities_are_for_as_many_processes_as_the_method_uses():
    """The best way has three processes; a method that knows one only would find none of these in the profile."""
    points = tuple(Point(size, 8, p, 90.0 * size * (1 + p), 0.04 * p / size) for size in (1, 2, 4) for p in (1, 2, 3))
    several = demand(500.0, slo=0.3).replace(tables=(ProfileTable("m", "A30-24GB", points),))
    best, single = (deploy_with_promise(several, 0.99, method) for method in ("parvagpu", "parvagpu-single"))
    assert {entry.processes for entry in best.capacities} == {3}
    assert {entry.processes for entry in single.capacities} == {1}
    assert single.headroom is None
    assert single.simulation.keeps(0.99)


def test_a_service_is_simulated_once_for_all_deployments_with_its_segments(monkeypatch):
    monkeypatch.setenv("MIG_OPT_CACHE", "off")
    runs = []
    real = capacity.ServedRequests
    monkeypatch.setattr(capacity, "ServedRequests", lambda *args, **known: runs.append(1) or real(*args, **known))
    twice = Demand(tuple(Service(name, 0.2, 300.25, "m") for name in ("a", "b")), (TABLE,), (GpuPool(A30, None),))
    halves = [Segment(name, gpu, "4g.24gb", 0, 8, 1, 400.0, 0.02) for gpu, name in enumerate("ab")]
    moved = [dataclasses.replace(segment, gpu=1 - segment.gpu) for segment in halves]
    trials = PromiseTrials(Promise(0.99), 5)
    shares = [trials.late(twice, Deployment(("A30-24GB",) * 2, tuple(own))) for own in (halves, moved)]
    assert shares == [{}, {}]
    assert len(runs) == 1


def test_what_is_running_stays():
    running = deploy(demand(799.0)).deployment
    found = deploy_with_promise(demand(780.0), 0.99, running=running)
    assert {s.identity for s in running.segments} & {s.identity for s in found.deployment.segments}


def test_too_few_gpus_for_the_promise():
    found = deploy_with_promise(demand(799.0, count=2), 0.999)
    assert (found.status, found.plan, found.claim) == (Status.INFEASIBLE, None, "")
    assert found.reason.startswith("with the capacities of the promise: ")


def test_a_limit_that_no_instance_keeps():
    nowhere = deploy_with_promise(demand(10.0, slo=0.001), 0.9)
    assert nowhere.status is Status.INFEASIBLE
    assert "needs a latency" in nowhere.reason


def test_the_same_seed_gives_the_same_deployment():
    one, two = (deploy_with_promise(demand(1234.0), 0.99, seed=3) for _ in range(2))
    assert (one.deployment, one.capacities) == (two.deployment, two.capacities)
    assert one.simulation.services == two.simulation.services


def test_headroom_raises_all_rates():
    raised = load_demand("parvagpu-s1").with_headroom(0.5)
    assert [s.rate for s in raised.services] == [1.5 * s.rate for s in load_demand("parvagpu-s1").services]
    for wrong in (-0.1, 101.0, float("nan")):
        with pytest.raises(InputError):
            raised.with_headroom(wrong)


@pytest.mark.parametrize("promise", [0.0, 1.0, 2.0, "99%"])
def test_no_promises(promise):
    with pytest.raises(InputError) as caught:
        deploy_with_promise(demand(10.0), promise)
    assert caught.value.problems[0].path == "promise"


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(InputError) as caught:
        deploy_with_promise(3, 1.0, running=4, time_limit=-1)  # type: ignore[arg-type]
    assert [problem.path for problem in caught.value.problems] == ["demand", "promise", "running", "time_limit"]


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["even", "poisson"])
@pytest.mark.parametrize("name", ["parvagpu-s2", "parvagpu-s3"])
def test_the_scenarios_keep_their_promise_on_other_seeds(name, kind):
    scenario = load_demand(name)
    found = deploy_with_promise(scenario, Promise(0.99, Arrivals(kind)))
    assert found.status is Status.OPTIMAL
    for seed in (11, 12):
        held_out = simulate_requests(scenario, found.deployment, arrivals=kind, seconds=60, seed=seed)
        assert all(service.late_share_interval[0] <= 0.01 for service in held_out.services)
