"""Proven numbers of GPUs, costs, slices and changes, against models of their own; the matching of groups."""

import dataclasses
import itertools
import math
import random
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from demands import A30, A100, H100, control_for, demand_of, demands, flat_table
from fleet_model import least_cost
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Deployment, Placement, Point, Pool, ProfileTable, Segment, Service, Status, deploy, get_gpu, load
from mig_opt.api.deploy.days import deploy_day
from mig_opt.method.options import RunOptions
from mig_opt.method.registry import DEPLOY_METHODS
from mig_opt.models.serving.exact import exact
from mig_opt.models.serving.matches import best_matching
from mig_opt.models.solvers.backend import ProgramOutcome, ProgramRun, SolverOutcome
from mig_opt.models.solvers.highs import Highs
from mig_opt.serving.bounds import fleet_bounds
from mig_opt.serving.covers import Covers, InstanceTypes
from mig_opt.serving.demand import Demand, GpuPool, SloRule
from mig_opt.serving.rates import RateTable
from mig_opt.validation import validate_deployment


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (2, 3, 5, 7, 12, 15)),
        ({"rule": SloRule(0.45)}, (2, 3, 5, 7, 12, 16)),
        ({"rule": SloRule(0.45, whole_ms=True)}, (2, 3, 5, 7, 12, 16)),
    ],
    ids=["half", "0.45", "published program"],
)
def test_the_scenarios(changes: dict[str, object], expected: tuple[int, ...]) -> None:
    results = [deploy(load(f"parvagpu-s{number}").replace(**changes)) for number in range(1, 7)]
    assert tuple(result.gpus for result in results) == expected
    assert all(result.status is Status.OPTIMAL for result in results)
    assert all(result.proven == ("gpus", "compute slices") for result in results)


@pytest.mark.deep
@given(demands())
@settings(max_examples=60, deadline=None)
def test_slices_are_between_what_services_need_and_what_search_finds(demand: Demand) -> None:
    result, search = deploy(demand), deploy(demand, "search")
    kinds = InstanceTypes.of(demand)
    slices = [profile.compute_slices for packer in kinds.packers for profile in packer.profiles]
    assert result.compute_slices >= Covers.of(demand, kinds).least(np.array(slices, dtype=float)).sum() - 1e-6
    if search.gpus == result.gpus:
        assert result.compute_slices <= search.compute_slices


def test_cbc_takes_over_where_highs_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Highs, "missing", lambda self: "not here")
    result = deploy(load("parvagpu-s3"))
    assert (result.status, result.gpus, result.compute_slices) == (Status.OPTIMAL, 5, 30)


@pytest.mark.parametrize("in_time", [True, False])
def test_a_solver_that_finds_nothing_is_asked_again_if_there_is_time(
    in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that errs whenever its tolerance is tight proves nothing, and with another one finds the three GPUs."""
    run = Highs.run

    def errs(self: Highs, job: ProgramRun) -> ProgramOutcome:
        status = Status.INFEASIBLE if self.tolerance < 1e-8 else Status.NO_SOLUTION
        return run(self, job) if in_time and self.tolerance == 1e-6 else SolverOutcome(status, None, math.inf, None)

    monkeypatch.setattr(Highs, "run", errs)
    control = control_for(demand := load("parvagpu-s2"))
    exact(demand, control)
    assert not control.infeasible
    assert control.lower_bound <= 3
    assert (control.goals or (None,))[0] == (3 if in_time else None)


TWO_WAYS = ProfileTable("m", "A100-80GB", (Point(1, 1, 1, 10.0, 0.01), Point(1, 8, 1, 20.0, 0.02)))


@pytest.mark.parametrize(
    "old",
    [
        Segment("a", 0, "1g.10gb", 3, 1, 1, 10.0, 0.01),
        Segment("a", 0, "1g.10gb", 3, 8, 1, 999.0, 0.5),
        Segment("a", 0, "1g.20gb", 2, 8, 1, 20.0, 0.02),
        Segment("a", 0, "1g.10gb+me", 2, 1, 1, 10.0, 0.01),
    ],
    ids=["worse batch size", "other figures", "more memory", "media engines"],
)
def test_what_is_not_the_best_way_stays_if_it_is_enough(old: Segment) -> None:
    demand = Demand((Service("a", 1.0, 10.0, "m"),), (TWO_WAYS,), (GpuPool(A100),))
    result = deploy(demand, running=Deployment(("A100-80GB",), (old,)))
    assert [segment.identity for segment in result.deployment.segments] == [old.identity]
    assert result.proven == ("gpus", "compute slices", "changes")


def test_a_running_segment_counts_with_what_was_measured() -> None:
    """Two with batches of 1 answer 20 of 30; that one of them stays beside one with batches of 8 is the best."""
    demand = Demand((Service("a", 1.0, 30.0, "m"),), (TWO_WAYS,), (GpuPool(A100),))
    old = Deployment(("A100-80GB",), tuple(Segment("a", 0, "1g.10gb", at, 1, 1, 999.0, 0.01) for at in (2, 5)))
    result = deploy(demand, running=old)
    assert sorted(segment.throughput for segment in result.deployment.segments) == [10.0, 20.0]
    assert old.changes_to(result.deployment) == 2


def test_what_runs_too_slowly_does_not_stay() -> None:
    demand = Demand((Service("a", 0.03, 5.0, "m"),), (TWO_WAYS,), (GpuPool(A100),))
    old = Deployment(("A100-80GB",), (Segment("a", 0, "1g.10gb", 3, 8, 1, 20.0, 0.02),))
    result = deploy(demand, running=old)
    assert [segment.batch for segment in result.deployment.segments] == [1]


def segments_in(demand: Demand, place: Placement) -> list[Segment]:
    """Every segment that may be in an instance of an A30: all services, and all ways that are in time."""
    tables = {table.model: table for table in demand.tables}
    return [
        Segment(service.name, 0, place.profile.name, place.start, *dataclasses.astuple(point)[1:5])
        for service in demand.services
        for point in tables[service.model].points
        if point.size == place.profile.compute_slices
        and demand.rule.allows(point.latency, service.slo)
        and place.profile.memory_gb >= (tables[service.model].memory_gb or 0)
    ]


def fewest_changes_by_trial(demand: Demand, old: Deployment, goal: tuple[int, int]) -> int:
    """The fewest changes over every deployment on one GPU with so few GPUs and slices, by trying all of them."""
    best = 10**6
    for state in A30.placed_states("double-memory"):
        for segments in itertools.product(*(segments_in(demand, place) for place in state)):
            found = Deployment(("A30-24GB",), segments)
            counts = [sum(s.service == service.name for s in segments) for service in demand.services]
            enough = all(n >= service.min_replicas for n, service in zip(counts, demand.services, strict=True))
            if enough and min(found.slack(demand).values()) >= 0 and (1, found.compute_slices) <= goal:
                best = min(best, old.changes_to(found))
    return best


@pytest.mark.deep
@given(demands(max_services=3, gpus=(A30,), max_pools=1), st.data())
@settings(max_examples=60, deadline=None)
def test_fewest_changes_against_every_deployment(demand: Demand, data: st.DataObject) -> None:
    result = deploy(demand)
    if result.gpus > 1:
        return
    segments = []
    for place in data.draw(st.sampled_from(list(A30.placed_states("base")))):
        ways = segments_in(demand, place)
        if ways:
            segments.append(data.draw(st.sampled_from(ways)))
    old = Deployment(("A30-24GB",), tuple(segments))
    changed = deploy(demand, running=old)
    assert changed.proven == ("gpus", "compute slices", "changes")
    expected = fewest_changes_by_trial(demand, old, (result.gpus, result.compute_slices))
    assert old.changes_to(changed.deployment) == expected


def test_nothing_is_proven_by_what_was_refused() -> None:
    """A 1g lacks so little that the validator lets it pass, and methods do not: one slice, where they need two."""
    demand = demand_of({"a": 100.0}, {"a": {1: 100 * (1 - 8e-10), 2: 100.0}})
    slight = Deployment(("A100-80GB",), (Segment("a", 0, "1g.10gb", 0, 1, 1, 100 * (1 - 8e-10), 0.01),))
    assert validate_deployment(demand, slight).valid
    result = deploy(demand)
    assert (result.gpus, result.compute_slices, result.proven) == (1, 2, ("gpus",))


@pytest.mark.parametrize("seed", range(4))
def test_a_limited_pool_of_great_gpus_beside_any_number_of_poor_ones(seed: int) -> None:
    """Six GPUs are enough. HiGHS was seen to take up to 674 for the optimum, and not with rounder figures."""
    h100, a100 = get_gpu("H100-96GB"), get_gpu("A100-40GB")
    tables = (
        flat_table("m0", h100, {2: 0.3333333333, 3: 1 / 3, 7: 2.333333333333333}),
        flat_table("m0", a100, {2: 13.999999986, 3: 24.5, 7: 52.49999999475}),
        flat_table("m1", h100, {1: 0.001, 2: 0.0059999999994, 3: 0.006, 7: 0.0075}, 11.0),
        flat_table("m1", a100, {1: 1.49999999985, 3: 2.999999997, 4: 1.0, 7: 13.9999999986}),
    )
    services = (
        Service("s0", 0.1, 55.83333372613333, "m0"),
        Service("s1", 0.1, 0.333333334, "m0", 4),
        Service("s2", 0.1, 10.568165923021006, "m1", 4),
    )
    demand = Demand(services, tables, (GpuPool(h100), GpuPool(a100, 2)))
    control = control_for(demand, RunOptions(seed=seed))
    control.raise_bound(4, "compute slices")
    exact(demand, control)
    assert (control.goals[0], control.lower_bound, control.proven[0]) == (6, 6, "gpus")


def test_why_there_is_no_deployment_beside_a_pool_without_limit() -> None:
    """Only the A100 can serve a, and there is one."""
    demand = Demand(
        (Service("a", 1.0, 20.0), Service("b", 1.0, 1.0)),
        (flat_table("a", A100, {7: 10.0}), flat_table("b", A30, {1: 10.0})),
        (GpuPool(A100, 1), GpuPool(A30)),
    )
    result = deploy(demand)
    assert result.status is Status.INFEASIBLE
    assert result.reason.endswith("serve everything with 1 A100-80GB, any number of A30-24GB")


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[int]]:
    left, right = (draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)) for _ in range(2))
    return [[draw(st.integers(0, 4)) for _ in right] for _ in left], left, right


def best_gain(gains: list[list[int]], left: list[int], right: list[int]) -> int:
    ours = [group for group, count in enumerate(left) for _ in range(count)]
    theirs = [group for group, count in enumerate(right) for _ in range(count)]
    theirs += [-1] * len(ours)
    return max(
        sum(gains[one][two] for one, two in zip(ours, chosen, strict=True) if two >= 0)
        for chosen in set(permutations(theirs, len(ours)))
    )


@given(cases())
def test_the_gain_is_the_greatest(case: tuple[list[list[int]], list[int], list[int]]) -> None:
    gains, left, right = case
    if sum(left) > 4 or sum(right) > 4:
        return
    pairs = best_matching(np.array(gains), left, right)
    assert (pairs.sum(axis=1) <= left).all()
    assert (pairs.sum(axis=0) <= right).all()
    assert (pairs >= 0).all()
    assert int((pairs * gains).sum()) == best_gain(gains, left, right)


_MOST = 4


def mixed_demand(seed: int) -> Demand:
    """Services on GPUs of two or three kinds, some of them few, free, or without MIG; half of the costs are thirds."""
    rng = random.Random(seed)
    kinds = rng.sample([A30, A100, H100], rng.randint(2, 3))
    tables = [
        flat_table(
            model, kind, {size: rng.randint(2, 12) * size for size in kind.sizes if rng.random() < 0.8} or {1: 9}
        )
        for model in ("m0", "m1")
        for kind in kinds
    ]
    services = tuple(
        Service(f"s{number}", 1.0, rng.randint(5, 160) / 2, rng.choice(["m0", "m1"]), rng.choice([1, 1, 1, 2]))
        for number in range(rng.randint(1, 4))
    )
    parts = 1 + seed % 2 * 2
    pools = tuple(
        Pool(kind, rng.choice([None, None, 1, 2]), rng.choice([0, 0.5, 1, 1, 2.2, 3]) / parts, rng.random() < 0.8)
        for kind in kinds
    )
    return Demand(services, tuple(tables), pools)


DEEP = (pytest.param(seed, marks=pytest.mark.deep) for seed in range(12, 200))


@pytest.mark.parametrize("seed", [*range(12), *DEEP])
def test_the_same_cost_as_a_model_of_every_gpu(seed: int) -> None:
    """Compare what is proven with the other model, and every bound and method with what is proven."""
    demand = mixed_demand(seed)
    result = deploy(demand)
    if result.status is Status.INFEASIBLE:
        assert least_cost(demand, _MOST) is None
        return
    assert result.status is Status.OPTIMAL
    assert result.cost == result.lower_bound == result.plan.cost(demand)
    kinds = Counter(result.plan.gpus)
    expected = least_cost(demand, _MOST)
    if max(kinds.values()) <= _MOST:
        assert expected == pytest.approx(result.cost)
    for pool in demand.pools:
        assert pool.count is None or kinds[pool.kind.name] <= pool.count
    assert all(bound.cost <= result.cost for bound in fleet_bounds(demand))
    for method in DEPLOY_METHODS.entries:
        if method.kind == "heuristic":
            found = deploy(demand, method.name)
            assert found.cost is None or found.lower_bound <= result.cost <= found.cost, method.name


TABLES = flat_table("a", A30, {1: 10.0, 4: 42.0}), flat_table("a", A100, {1: 12.0, 7: 80.0})


@pytest.mark.parametrize(
    ("rate", "pools", "expected"),
    [
        # Two A100 or four A30 serve 160 requests per second; at 2.2 to 1 these cost less.
        (160.0, (Pool(A30), Pool(A100, cost=2.2)), (4, {"A30-24GB": 4})),
        (160.0, (Pool(A30), Pool(A100, cost=1.9)), (3.8, {"A100-80GB": 2})),
        # What is there already costs nothing: it serves 84, and one A100 does the rest.
        (160.0, (Pool(A30, 2, 0), Pool(A100, cost=2.2)), (2.2, {"A30-24GB": 2, "A100-80GB": 1})),
        # Of GPUs that cost nothing the fewest are taken.
        (160.0, (Pool(A30, cost=0), Pool(A100, cost=0)), (0, {"A100-80GB": 2})),
        # Costs with many decimals are exact: 0.1 three times is 0.3, and real offers are compared to the cent.
        (120.0, (Pool(A30, cost=0.1), Pool(A100, cost=2.2)), (0.3, {"A30-24GB": 3})),
        (160.0, (Pool(A30, cost=9999.99), Pool(A100, cost=19999.97)), (39999.94, {"A100-80GB": 2})),
        (160.0, (Pool(A30, cost=1 / 3), Pool(A100, cost=1.0)), (4 / 3, {"A30-24GB": 4})),
    ],
)
def test_the_cheapest_gpus_are_taken(rate: float, pools: tuple[Pool, ...], expected: object) -> None:
    result = deploy(Demand((Service("a", 1.0, rate),), TABLES, pools))
    assert result.proven[:2] == ("cost", "gpus")
    assert (result.cost, Counter(result.plan.gpus)) == expected


def test_of_costs_that_no_solver_tells_apart_the_least_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One A100 costs 1e-16 less than the three A30 that are known, which a solver may take for the least."""
    run, nothing = Highs.run, SolverOutcome(Status.INFEASIBLE, None, math.inf, None)
    monkeypatch.setattr(Highs, "run", lambda self, job: nothing if "less" in str(job.program) else run(self, job))
    tables = flat_table("a", A30, {4: 42.0}), flat_table("a", A100, {7: 126.0})
    demand = Demand((Service("a", 1.0, 120.0),), tables, (Pool(A30, cost=1 / 3), Pool(A100, cost=1 - 2e-16)))
    control = control_for(demand)
    control.report_plan(deploy(demand.replace(pools=(Pool(A30),))).plan)
    exact(demand, control)
    assert control.goals[:2] == (control.lower_bound, 1) == (0.9999999999999998, 1)


def test_costs_may_be_far_apart() -> None:
    demand = Demand((Service("a", 1.0, 160.0),), TABLES, (Pool(A30, 1, 5e-324), Pool(A100, cost=1.0)))
    assert deploy(demand).cost == 2.0
    services, rates = (Service("a", 1.0, 1.0), Service("b", 1.0, 1.0, "a")), {"a": (20.0, 90.0), "b": (80.0, 20.0)}
    for costs in ((1.0, 1e19), (1e-19, 1e-19)):
        pools = Pool(A30, 1, costs[0]), Pool(A100, 2, costs[1])
        day = deploy_day(Demand(services, TABLES, pools), RateTable((0, 3600, 7200), rates), time_limit=2)
        assert day.plan is not None
    # HiGHS 1.14 was seen to end with an error where nothing costs less.
    rows = {"a": ({4: 2.6}, {4: 13.0}, {1: 5.0, 2: 7.1}), "b": ({4: 13.0}, {7: 3.9}, {1: 1.0})}
    tables = tuple(flat_table(name, *own) for name in rows for own in zip((A30, A100, H100), rows[name], strict=True))
    pools = Pool(A30, cost=1e10), Pool(A100, cost=1e10), Pool(H100, 1, 1.0)
    assert deploy(Demand((Service("a", 1.0, 74.0), Service("b", 1.0, 110.0)), tables, pools)).cost == 1.2e11 + 1


def test_bounds_know_that_there_are_few_of_the_cheap_gpus() -> None:
    """Without the counts 800 requests per second would cost nothing."""
    demand = Demand((Service("a", 1.0, 800.0),), TABLES, (Pool(A30, 2, 0), Pool(A100, cost=2.2)))
    best = fleet_bounds(demand)[0]
    assert (best.name, best.cost) == ("instance prices", 19.8)
    assert "premium" in best.reason
    assert deploy(demand).cost == 19.8


def test_a_gpu_without_mig_serves_one_service() -> None:
    """Two services of 10 requests per second share an A30, but not if its MIG is off; nothing is created there."""
    services = Service("a", 1.0, 10.0, "a"), Service("b", 1.0, 10.0, "a")
    for mig, cost in ((True, 1), (False, 2)):
        demand = Demand(services, TABLES, (Pool(A30, mig=mig, cost=1.0), Pool(A100, cost=9.0)))
        result = deploy(demand)
        assert result.cost == cost
        assert validate_deployment(demand, result.plan).valid
        assert set(result.plan.gpus) == {"A30-24GB" if mig else "A30-24GB without MIG"}


def test_more_gpus_than_there_are_is_infeasible_whatever_they_cost() -> None:
    result = deploy(Demand((Service("a", 1.0, 500.0),), TABLES, (Pool(A30, 2, 0), Pool(A100, 3, 2.2))))
    assert result.status is Status.INFEASIBLE
    assert "need at least 6 GPUs" in result.reason
