"""Deployments and days that keep a promise to the requests: a plan that keeps it, or a reason."""

import dataclasses
import random
import re

import pytest
from demands import A30, A100, H100, assert_serves, with_room
from documents import refused

from mig_opt import Arrivals, Day, Deployment, Point, ProfileTable, RateTable, Segment, Status, deploy, load
from mig_opt.api.deploy.days import DayPromiseResult, deploy_day, deploy_day_with_promise
from mig_opt.api.deploy.promises import deploy_with_promise
from mig_opt.api.deploy.trials import PromiseTrials, why_unkept
from mig_opt.serving.demand import Demand, GpuPool, Service, SloRule
from mig_opt.simulation.serving import capacity
from mig_opt.simulation.serving.capacity import Promise, held_rate, pool_capacity
from mig_opt.simulation.serving.requests import SERVERS, Batching, simulate_requests, worker_at
from mig_opt.validation import validate_deployment
from mig_opt.validation.serving.days import validate_day


def test_room_for_queues_takes_another_gpu():
    """Throughput alone covers 799 requests per second with two GPUs, with hardly any room for a queue."""
    tight = with_room(799.0)
    assert deploy(tight).gpus == 2
    found = deploy_with_promise(tight, 0.999)
    assert (found.gpus, found.status, found.lower_bound) == (3, Status.OPTIMAL, 3)
    assert found.claim == "3 GPUs, p99.9 kept in simulation; 2 proven too few under the capacities"
    priced = dataclasses.replace(found, demand=tight.replace(pools=(GpuPool(A30, cost=2.0),)), cost=6.0)
    assert priced.claim.endswith("at a cost of 6, p99.9 kept in simulation; a cost of at least 3 under the capacities")
    assert str(Promise(0.9999999)).startswith("99.99999 % of the requests ")
    assert found.simulation.keeps(0.999)
    assert validate_deployment(tight, found.deployment).valid
    for seed in range(3):
        assert simulate_requests(tight, found.deployment, seconds=60, seed=seed).keeps(0.999)


def test_capacities_are_for_as_many_processes_as_the_method_uses():
    """The best way has three processes; a method that knows one only would find none of these in the profile."""
    points = tuple(Point(size, 8, p, 90.0 * size * (1 + p), 0.04 * p / size) for size in (1, 2, 4) for p in (1, 2, 3))
    several = with_room(500.0, slo=0.3).replace(tables=(ProfileTable("m", "A30-24GB", points),))
    best, single = (deploy_with_promise(several, 0.99, method) for method in ("parvagpu", "parvagpu-single"))
    assert {entry.processes for entry in best.capacities} == {3}
    assert {entry.processes for entry in single.capacities} == {1}
    assert single.headroom is None
    assert single.simulation.keeps(0.99)


def test_a_service_is_simulated_once_for_all_deployments_with_its_segments(monkeypatch):
    monkeypatch.setenv("MIG_OPT_CACHE", "off")
    runs = []
    real = capacity.served_by
    monkeypatch.setattr(capacity, "served_by", lambda *args, **known: runs.append(1) or real(*args, **known))
    twice = with_room(1.0).replace(services=tuple(Service(name, 0.2, 300.25, "m") for name in ("a", "b")))
    halves = [Segment(name, gpu, "4g.24gb", 0, 8, 1, 400.0, 0.02) for gpu, name in enumerate("ab")]
    moved = [dataclasses.replace(segment, gpu=1 - segment.gpu) for segment in halves]
    trials = PromiseTrials(Promise(0.99), 5)
    shares = [trials.late(twice, Deployment(("A30-24GB",) * 2, tuple(own))) for own in (halves, moved)]
    assert shares == [{}, {}]
    assert len(runs) == 1


@pytest.mark.parametrize("gpu", [None, 5], ids=["no segments", "no such GPU"])
def test_deployments_that_do_not_fit_the_demand_are_no_incumbents(gpu):
    segments = () if gpu is None else (Segment("a", gpu, "4g.24gb", 0, 8, 1, 400.0, 0.02),)
    tight = with_room(1.0)
    wrong, idle = Deployment(("A30",), segments), Deployment(("A30",), ())
    found = deploy_with_promise(tight, 0.99, incumbents=[wrong], running=idle)
    assert (found.gpus, found.status) == (1, Status.OPTIMAL)


def on_a30(points: tuple[Point, ...], *services: Service, share: float = 1.0, count: int | None = None) -> Demand:
    """Services of the model ``m`` with these points, whose latency may take that share of the SLO."""
    return Demand(services, (ProfileTable("m", "A30", points),), (GpuPool(A30, count),), SloRule(share))


@pytest.mark.parametrize(
    ("points", "slo", "rate", "promise", "gpus"),
    [
        ((Point(1, 1, 1, 100.0, 0.01),), 0.02, 50.0, Promise(0.999), 1),
        ((Point(1, 1, 1, 100.0, 0.01),), 0.02, 50.0, Promise(0.99, Arrivals("bursty")), 1),
        ((Point(1, 8, 1, 72.0, 0.11),), 0.2, 36.0, Promise(0.99), 1),
        ((Point(1, 8, 1, 44.0, 0.18),), 0.2, 22.0, Promise(0.99), 3),
        # Latency and SLO that divide to a little more than 1.
        ((Point(1, 1, 1, 1 / 0.3, 0.3),), 0.3, 1.0, Promise(0.99), 1),
        # Large batches answer more, and hardly any of them in time.
        ((Point(4, 16, 1, 100.0, 0.16), Point(4, 1, 1, 50.0, 0.02)), 0.2, 30.0, Promise(0.999), 1),
        ((Point(1, 8, 1, 50.0, 0.16),), 0.2, 1e-9, Promise(0.9999, Arrivals("bursty")), 1),
    ],
)
def test_segments_of_little_capacity(points, slo, rate, promise, gpus):
    found = deploy_with_promise(on_a30(points, Service("a", slo, rate, "m")), promise, "search")
    assert (found.gpus, found.simulation.keeps(promise.share)) == (gpus, True)


SLOW = Point(1, 8, 1, 10.0, 0.02)
"""A batch takes 0.8 s by its throughput, whatever its latency."""


def test_what_no_instance_keeps_is_told_of_all_services_with_what_would():
    services = (Service(name, slo, 5.0, "m") for name, slo in (("a", 0.1), ("b", 0.2), ("c", 0.01)))
    bad = on_a30((SLOW,), *services, share=0.5)
    found = deploy_with_promise(bad, 0.99)
    assert found.status is Status.INFEASIBLE
    best = "'a' in time, at any rate: at best 0 % are, on 1g.6gb"
    for text in (best, "of 'b' in time", "an SLO of 0.8 s", "'c' needs"):
        assert text in found.reason
    slower = tuple(dataclasses.replace(service, slo=0.8) for service in bad.services)
    assert deploy_with_promise(bad.replace(services=slower), 0.99).simulation.keeps(0.99)
    other = bad.replace(tables=(ProfileTable("m", "A30", (SLOW, Point(2, 1, 1, 500.0, 0.002))),))
    assert {segment.profile for segment in deploy_with_promise(other, 0.99).deployment.segments} == {"2g.12gb"}


@pytest.mark.parametrize(("spread", "patience"), [(0.4, 0.0), (1.0, 0.5), (10.0, 0.5), (0.1, 1.0)])
def test_what_could_be_kept_where_times_vary(spread, patience):
    varied = Promise(0.9999, batching=Batching(spread=spread, patience=patience))
    asked = on_a30((Point(1, 8, 1, 80.0, 0.1),), Service("a", 0.2, 0.01, "m"), share=0.5)
    (reason,) = why_unkept(asked, varied)
    could = dict(re.findall(r"(a promise|an SLO) of ([\d.e+]+)", reason))
    promised = dataclasses.replace(varied, share=float(could["a promise"]) / 100)
    assert why_unkept(asked, promised) == []
    assert why_unkept(asked, dataclasses.replace(varied, share=promised.share + 0.005 * (1 - promised.share)))
    # Who waits for as long as is left is late whenever a batch takes longer than usual, whatever the SLO.
    assert ("an SLO" in could) == (patience < 1)
    if patience < 1:
        longer = dataclasses.replace(asked.services[0], slo=float(could["an SLO"]))
        assert why_unkept(asked.replace(services=(longer,)), varied) == []


def test_latencies_that_the_rule_forbids_may_be_what_keeps_a_promise():
    (reason,) = why_unkept(
        on_a30((SLOW, Point(2, 1, 1, 12.0, 0.08)), Service("a", 0.1, 1.0, "m"), share=0.5), Promise()
    )
    assert reason.endswith(
        "what can be kept: latencies of up to 0.8 of the SLO (--slo-share) in place of 0.5, or an SLO of 0.16 s"
    )


def test_a_method_that_cannot_use_what_others_can_proves_nothing():
    asked = on_a30((Point(1, 8, 2, 100.0, 0.1),), Service("a", 0.3, 5.0, "m"))
    found = deploy_with_promise(asked, 0.99, "parvagpu-single")
    assert (found.status, found.reason[:20]) == (Status.NO_SOLUTION, "for parvagpu-single:")
    assert deploy_with_promise(asked, 0.99).status is Status.OPTIMAL


def test_rates_that_take_too_many_segments():
    found = deploy_with_promise(on_a30((Point(1, 8, 1, 50.0, 0.16),), Service("a", 0.2, 4e6, "m")), 0.999)
    assert found.status is Status.INFEASIBLE
    assert "services[0].rate needs at least" in found.reason


@pytest.mark.parametrize("share", [-0.1, 101.0, float("nan")])
def test_headroom_is_a_share_of_the_rates(share):
    assert refused(load("parvagpu-s1").with_headroom, share) == ["headroom"]


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["even", "poisson"])
@pytest.mark.parametrize("name", ["parvagpu-s2", "parvagpu-s3"])
def test_the_scenarios_keep_their_promise_on_other_seeds(name, kind):
    scenario = load(name)
    found = deploy_with_promise(scenario, Promise(0.99, Arrivals(kind)))
    assert found.status is Status.OPTIMAL
    for seed in (11, 12):
        held_out = simulate_requests(scenario, found.deployment, arrivals=kind, seconds=60, seed=seed)
        assert all(service.late_share_interval[0] <= 0.01 for service in held_out.services)


def worst_at(server: str, deployment: Deployment, demand: Demand) -> float:
    router, batching = SERVERS[server]
    return simulate_requests(demand, deployment, router=router, batching=batching, seconds=600, seed=5).worst.late_share


@pytest.mark.parametrize("server", SERVERS)
def test_a_promise_says_for_which_servers_it_is(server):
    router, batching = SERVERS[server]
    found = deploy_with_promise(load("parvagpu-s1"), Promise(0.99, router=router, batching=batching))
    assert found.promise.server == server
    assert ("server", server) in found.facts()
    assert worst_at(server, found.deployment, load("parvagpu-s1")) <= 0.01


@pytest.mark.deep
def test_a_promise_for_one_queue_is_broken_by_servers_with_a_queue_for_each_process():
    demand = load("parvagpu-s5")
    shared = deploy_with_promise(demand, 0.99)
    assert worst_at("separate", shared.deployment, demand) > 0.02
    router, batching = SERVERS["separate"]
    separate = Promise(0.99, router=router, batching=batching)
    found = deploy_with_promise(demand, separate, "parvagpu")
    assert worst_at("separate", found.deployment, demand) <= 0.01


def test_an_overhead_and_a_delay_count_in_seconds_whatever_the_slo():
    """Capacities are found with times in SLOs."""
    point = Point(1, 4, 1, 40.0, 0.1)
    for slo in (0.25, 25.0):
        batching = Batching(delay=0.02, overhead=0.1)
        held = pool_capacity(point, slo, 1, Promise(0.9, batching=batching))
        late = held_rate([worker_at(point, slo, batching)], slo, Promise(0.9, batching=batching))
        assert held == pytest.approx(late, rel=0.02)
    # What is added to each answer takes room: with all of the SLO there is none.
    plenty, little = (
        pool_capacity(point, 0.25, 1, Promise(0.9, batching=Batching(delay=0.02, overhead=overhead)))
        for overhead in (0.0, 0.1)
    )
    assert plenty > 1.2 * little > 0
    assert pool_capacity(point, 0.25, 1, Promise(0.9, batching=Batching(overhead=0.15001))) == 0


def rates(*row: float) -> RateTable:
    return RateTable(tuple(3600.0 * step for step in range(len(row) + 1)), {"a": row})


def planned(*row: float, promise: float = 0.999, **more: object) -> DayPromiseResult:
    """A plan that is valid for the day; every step keeps the promise, also with other random numbers."""
    result = deploy_day_with_promise(with_room(1.0), rates(*row), promise, **more)
    assert result.day == Day(with_room(1.0), rates(*row))
    assert validate_day(result.day, result.plan).valid
    assert result.lower_bound <= result.objective
    for asked, deployment in zip(result.day.demands, result.plan.deployments, strict=True):
        if asked is not None:
            assert simulate_requests(asked, deployment, seconds=60, seed=5).keeps(promise)
    return result


def test_room_for_queues_takes_another_gpu_in_the_step_that_needs_it():
    """Throughput alone covers 799 requests per second with two GPUs, with hardly any room for a queue."""
    assert deploy_day(with_room(1.0), rates(300.0, 799.0, 300.0)).plan.gpus == (1, 2, 1)
    found = planned(300.0, 799.0, 300.0)
    assert found.plan.gpus == found.fewest_gpus == (1, 3, 1)
    assert found.gpu_hours_bound == 5
    step, worst = found.worst
    assert (step, worst.name) in {(0, "a"), (1, "a"), (2, "a")}
    assert worst.late_share <= 0.001
    assert found.figures()[-1][0] == "simulated"


def test_a_step_without_requests_needs_nothing():
    found = planned(0.0, 300.0)
    assert found.plan.gpus == (0, 1)
    assert found.simulations[0] is None
    nothing = planned(0.0, 0.0)
    assert (nothing.plan.gpus, nothing.simulations, nothing.worst) == ((0, 0), (None, None), None)


def test_other_methods_plan_step_by_step():
    assert planned(300.0, 799.0, method="first-fit").plan.gpus == (1, 3)


def test_too_few_gpus_for_the_promise_of_a_day():
    found = deploy_day_with_promise(with_room(1.0, count=2), rates(300.0, 799.0), 0.999)
    assert (found.status, found.plan, found.simulations) == (Status.INFEASIBLE, None, ())
    assert found.reason.startswith("with the capacities of the promise: at 1:00: ")


TWO = Demand(
    (Service("a", 0.2, 1.0, "m"), Service("b", 0.2, 1.0, "m")),
    (ProfileTable("m", "A30-24GB", (Point(1, 8, 1, 50.0, 0.16),)),),
    (GpuPool(A30, None),),
    SloRule(1.0),
)
"""Batches take 0.8 of the SLO: segments have a capacity of a few requests per second together, and of 0.06 alone."""


@pytest.mark.parametrize("kind", ["even", "poisson", pytest.param("bursty", marks=pytest.mark.deep)])
def test_segments_of_little_capacity_are_enough_at_any_rate(kind):
    table = RateTable((0.0, 3600.0, 7200.0, 10800.0), {"a": (20.0, 0.3, 1e-6), "b": (0.0, 2.0, 0.02)})
    found = deploy_day_with_promise(TWO, table, Promise(0.99, Arrivals(kind)), "first-fit")
    assert validate_day(found.day, found.plan).valid
    assert all(simulation.keeps(0.99) for simulation in found.simulations)


@pytest.mark.parametrize(("rate", "text"), [(20.0, "with an SLO of 0.32 s"), (4e6, "rate needs at least")])
def test_rates_that_take_more_than_there_is(rate, text):
    few = TWO.replace(pools=(GpuPool(A30, 1 if rate < 1e6 else None),))
    found = deploy_day_with_promise(few, RateTable((0.0, 1.0), {"a": (rate,), "b": (1.0,)}), 0.9999)
    assert found.status is Status.INFEASIBLE
    assert text in found.reason


def test_ctrl_c_before_the_promise_of_a_day_is_kept(monkeypatch):
    def ended(*args, **known):
        return dataclasses.replace(deploy_day(*args, **known), status=Status.INTERRUPTED)

    monkeypatch.setattr("mig_opt.api.deploy.days.deploy_day", ended)
    monkeypatch.setattr(PromiseTrials, "late", lambda *_: {"a": 0.5})
    assert deploy_day_with_promise(with_room(1.0), rates(300.0), 0.99).status is Status.INTERRUPTED


def test_days_have_the_capacities_that_the_method_can_use():
    points = (Point(1, 8, 2, 200.0, 0.08), Point(1, 8, 1, 100.0, 0.08))
    both = with_room(1.0).replace(tables=(ProfileTable("m", "A30-24GB", points),))
    found = deploy_day_with_promise(both, rates(50.0), 0.99, "parvagpu-single")
    assert {segment.processes for segment in found.plan.deployments[0].segments} == {1}


def test_all_that_is_wrong_is_said_at_once():
    found = refused(deploy_day_with_promise, with_room(1.0), rates(1.0), 1.0, margin=-1, lookahead=3, time_limit=-1)
    assert found == ["margin", "promise", "lookahead", "time_limit"]


METHODS = ("exact", "exact", "search", "parvagpu", "first-fit")


def drawn_demand(seed: int) -> tuple[Demand, Promise, str]:
    """A demand, a promise of 90 to 99.99 %, and a method; batches may take up to the whole SLO, or longer."""
    rng = random.Random(seed)
    gpu, share = rng.choice([A30, A30, A100, H100]), rng.choice([0.5, 0.7, 1.0, 1.0])
    services, tables = [], []
    for name in "abc"[: rng.choice([1, 1, 1, 2, 3])]:
        slo = 10 ** rng.uniform(-1, 1)
        points = {}
        for size in rng.sample(gpu.sizes, rng.randint(1, len(gpu.sizes))):
            for _ in range(rng.choice([1, 1, 2, 4])):
                batch, processes = rng.choice([1, 2, 4, 8, 8, 16]), rng.choice([1, 1, 2, 3])
                latency = slo * rng.uniform(0.1, 1.1 * share)
                # Throughputs and latencies of profiles do not always agree.
                throughput = batch * processes / latency * rng.choice([1, 1, 1, 1.1, 0.7, 0.2])
                points[size, batch, processes] = Point(size, batch, processes, throughput, latency)
        best = max(point.throughput for point in points.values())
        services.append(Service(name, slo, best * 10 ** rng.uniform(-3, 0.7), name, rng.choice([1, 1, 1, 2])))
        tables.append(ProfileTable(name, gpu.name, tuple(points.values())))
    pool = GpuPool(gpu, rng.choice([None, None, rng.randint(1, 6)]))
    promise = Promise(1 - 10 ** rng.uniform(-4, -1), Arrivals(rng.choice(["even", "poisson", "bursty"])))
    return Demand(tuple(services), tuple(tables), (pool,), SloRule(share)), promise, rng.choice(METHODS)


SEEDS = (9, 17, 27, 29, 31, 58, 60, 70, 71, 75, 95)
OTHERS = (pytest.param(seed, marks=pytest.mark.deep) for seed in range(500) if seed not in SEEDS)


@pytest.mark.parametrize("seed", [*SEEDS, *OTHERS])
def test_a_demand_drawn_at_random_has_a_plan_that_keeps_the_promise_or_a_reason(seed):
    demand, promise, method = drawn_demand(seed)
    found = deploy_with_promise(demand, promise, method)
    if found.deployment is None:
        assert found.reason
        assert found.status in {Status.INFEASIBLE, Status.NO_SOLUTION}
        # With as many GPUs as it takes there is always a plan, unless no instance is in time even without a queue.
        assert demand.pools[0].count is not None or found.reason == "; ".join(why_unkept(demand, promise)) != ""
        return
    assert validate_deployment(demand, found.deployment).valid
    assert_serves(demand, found.deployment)
    assert found.lower_bound <= found.gpus
    assert found.simulation.keeps(promise.share), found.simulation.worst
