"""Proven numbers of GPUs, slices and changes."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from demands import A30, A100, control_for, demand_of, demands, flat_table
from fleet_model import fewest_gpus
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Deployment, Placement, Point, ProfileTable, Segment, Status, deploy, get_gpu, load
from mig_opt.method.options import RunOptions
from mig_opt.models.serving.exact import exact
from mig_opt.models.solvers.backend import ProgramOutcome, ProgramRun, SolverOutcome
from mig_opt.models.solvers.highs import Highs
from mig_opt.serving.covers import Covers, InstanceTypes
from mig_opt.serving.demand import Demand, GpuPool, Service, SloRule
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
@given(demands(limited=True))
@settings(max_examples=60, deadline=None)
def test_the_same_count_as_a_model_of_every_gpu(demand: Demand) -> None:
    result = deploy(demand)
    if result.status is Status.INFEASIBLE:
        assert fewest_gpus(demand, 4) is None
        assert result.reason
    else:
        assert result.status is Status.OPTIMAL
        assert result.gpus is not None
        if result.gpus <= 4:
            assert fewest_gpus(demand, result.gpus) == result.gpus


@pytest.mark.deep
@given(demands())
@settings(max_examples=60, deadline=None)
def test_slices_are_between_what_services_need_and_what_search_finds(demand: Demand) -> None:
    result, search = deploy(demand), deploy(demand, "search")
    assert result.compute_slices is not None
    kinds = InstanceTypes.of(demand)
    slices = [profile.compute_slices for packer in kinds.packers for profile in packer.profiles]
    assert result.compute_slices >= Covers.of(demand, kinds).least(np.array(slices, dtype=float)).sum() - 1e-6
    if search.gpus == result.gpus:
        assert search.compute_slices is not None
        assert result.compute_slices <= search.compute_slices


def test_cbc_takes_over_where_highs_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Highs, "missing", lambda self: "not here")
    result = deploy(load("parvagpu-s3"))
    assert (result.status, result.gpus, result.compute_slices) == (Status.OPTIMAL, 5, 30)


def test_a_solver_that_finds_nothing_is_asked_again_with_other_tolerances(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that errs whenever its tolerance is tight proves nothing, and still the three GPUs are found."""
    run, asked = Highs.run, []

    def errs(self: Highs, job: ProgramRun) -> ProgramOutcome:
        asked.append(self.tolerance)
        return SolverOutcome(Status.INFEASIBLE, None, math.inf, None) if self.tolerance < 1e-8 else run(self, job)

    monkeypatch.setattr(Highs, "run", errs)
    demand = load("parvagpu-s2")
    control = control_for(demand)
    exact(demand, control)
    assert control.goals is not None
    assert control.goals[0] == 3
    assert 1e-6 in asked


def test_without_time_to_ask_again_nothing_is_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    def errs(self: Highs, job: ProgramRun) -> ProgramOutcome:
        del job
        status = Status.INFEASIBLE if self.tolerance < 1e-8 else Status.NO_SOLUTION
        return SolverOutcome(status, None, math.inf, None)

    monkeypatch.setattr(Highs, "run", errs)
    demand = load("parvagpu-s2")
    control = control_for(demand)
    exact(demand, control)
    assert not control.infeasible
    assert control.lower_bound <= 3


# The third goal.


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
    assert result.deployment is not None
    assert [segment.identity for segment in result.deployment.segments] == [old.identity]
    assert result.proven == ("gpus", "compute slices", "changes")


def test_a_running_segment_counts_with_what_was_measured() -> None:
    """Two with batches of 1 answer 20 of 30; that one of them stays beside one with batches of 8 is the best."""
    demand = Demand((Service("a", 1.0, 30.0, "m"),), (TWO_WAYS,), (GpuPool(A100),))
    old = Deployment(("A100-80GB",), tuple(Segment("a", 0, "1g.10gb", at, 1, 1, 999.0, 0.01) for at in (2, 5)))
    result = deploy(demand, running=old)
    assert result.deployment is not None
    assert sorted(segment.throughput for segment in result.deployment.segments) == [10.0, 20.0]
    assert old.changes_to(result.deployment) == 2


def test_what_runs_too_slowly_does_not_stay() -> None:
    demand = Demand((Service("a", 0.03, 5.0, "m"),), (TWO_WAYS,), (GpuPool(A100),))
    old = Deployment(("A100-80GB",), (Segment("a", 0, "1g.10gb", 3, 8, 1, 20.0, 0.02),))
    result = deploy(demand, running=old)
    assert result.deployment is not None
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
    assert result.gpus is not None
    assert result.compute_slices is not None
    if result.gpus > 1:
        return
    segments = []
    for place in data.draw(st.sampled_from(list(A30.placed_states("base")))):
        ways = segments_in(demand, place)
        if ways:
            segments.append(data.draw(st.sampled_from(ways)))
    old = Deployment(("A30-24GB",), tuple(segments))
    changed = deploy(demand, running=old)
    assert changed.deployment is not None
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
    assert control.goals is not None
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
