"""The one way to run a method on a demand; updates of some services leave all others where they are."""

import dataclasses

import pytest
from demands import A30, A100, assert_serves, demand_of, demands, flat_table, one_model, places
from documents import complaints, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Demand, Deployment, GpuPool, Point, ProfileTable, Segment, Service, Status, load, plan_change
from mig_opt.api.deploy import deploy, retained_segments, why_unservable
from mig_opt.errors import InputError, SolverError, UnknownMethodError
from mig_opt.heuristics.serving import search as search_module
from mig_opt.method.control import Control
from mig_opt.method.registry import get_deploy_method, methods
from mig_opt.validation import validate_change

SMALL = demand_of({"a": 25.0}, {"a": {1: 10.0, 2: 20.0}})


def test_every_wrong_argument_is_named_at_once() -> None:
    with pytest.raises(UnknownMethodError) as caught:
        deploy("services", "exactly", running=3, time_limit=-1, seed=1.5)
    assert [problem.path for problem in caught.value.problems] == ["demand", "running", "method", "time_limit", "seed"]
    assert "did you mean exact?" in str(caught.value)


@pytest.mark.parametrize("method", [method.name for method in methods("deploy")])
def test_absurd_demands_are_refused(method: str) -> None:
    rates = {"a": 1.0, "b": 1e300, "c": 5e9}
    wanted = demand_of(rates, {name: {1: 100.0} for name in rates})
    paths = refused(deploy, wanted, method, match=r"deployments have at most 1,000,000, so give a smaller one")
    assert paths == ["services[1].rate", "services[2].rate"]
    services = tuple(Service(f"s{index}", 1.0, 1.0, "a", min_replicas=10_000) for index in range(101))
    found = refused(deploy, wanted.replace(services=services), method)
    assert found == [f"services[{index}].min_replicas" for index in range(101)]


def test_a_method_that_uses_one_process_may_need_too_many_segments() -> None:
    points = Point(1, 1, 1, 0.1, 0.01), Point(4, 1, 2, 1e9, 0.01)
    demand = Demand((Service("a", 1.0, 5e8),), (ProfileTable("a", A30.name, points),), (GpuPool(A30),))
    assert refused(deploy, demand, "parvagpu-single") == ["services[0].rate"]


@pytest.mark.parametrize("method", [method.name for method in methods("deploy")])
def test_pools_below_the_bound_are_proven_to_be_too_small(method: str) -> None:
    wanted = load("parvagpu-s3")
    few = wanted.replace(pools=(GpuPool(A100, 3), GpuPool(A30, 1)))
    result = deploy(few, method)
    assert (result.status, result.deployment) == (Status.INFEASIBLE, None)
    assert result.reason.startswith("the services need at least 5 GPUs (the ")
    assert result.reason.endswith("; there are 3 A100-80GB, 1 A30-24GB")
    enough = wanted.replace(pools=(GpuPool(A100, 5),))
    assert deploy(enough, method).status is not Status.INFEASIBLE


@pytest.mark.parametrize(
    ("throughput", "rate"),
    [
        ({1: 1e-3, 7: 1e13}, 1.0),
        ({1: 1e-300, 7: 1e9}, 1e9),
        ({1: 1e308, 7: 1e-3}, 5e3),
        ({1: 1e-9, 7: 1e15}, 1e-9),
        ({1: 1e31, 7: 1e31}, 1e33),
        ({1: 1e-1, 3: 1e9}, 5e8),
    ],
)
@pytest.mark.parametrize("method", [method.name for method in methods("deploy")])
def test_figures_of_any_magnitude(method: str, throughput: dict[int, float], rate: float) -> None:
    """The size that answers everything at once decides; 1g of 1e31 is needed 100 times, on 15 GPUs.

    No GPU of gpulet has more than two segments.
    """
    result = deploy(demand_of({"a": rate}, {"a": throughput}), method)
    two_per_gpu = method == "gpulet" and rate == 1e33
    assert result.status is (Status.FEASIBLE if two_per_gpu else Status.OPTIMAL)
    assert result.gpus == (50 if two_per_gpu else 15 if rate == 1e33 else 1)


def test_a_running_deployment_that_cannot_exist_is_refused() -> None:
    overlapping = ("4g.40gb", 0), ("2g.20gb", 2)
    segments = tuple(Segment("a", 0, profile, start, 1, 1, 1.0, 0.1) for profile, start in overlapping)
    refused(deploy, SMALL, running=Deployment(("A100-80GB",), segments), match=r"running\.segments\[1\]")


def test_too_many_processes_are_not_taken_for_too_little_memory() -> None:
    points = (Point(1, 1, 1, 5.0, 0.01), Point(2, 1, 3, 9.0, 0.01), Point(4, 1, 2, 9.0, 0.01))
    table = ProfileTable("large", A30.name, points, memory_gb=10.0)  # too large for the only one with one process
    demand = Demand((Service("chat", 1.0, 1.0, "large"),), (table,), (GpuPool(A30),), max_processes=1)
    reason = "service 'chat' fits on no instance: where it has enough memory its model 'large' was profiled with "
    assert why_unservable(demand) == [f"{reason}2 processes or more, and at most 1 may share an instance"]
    assert why_unservable(demand.replace(max_processes=2)) == []
    parts = ProfileTable("large", A30.name, points[:2])
    (nowhere,) = why_unservable(demand.replace(tables=(parts,), pools=(GpuPool(A30, mig=False),)))
    assert nowhere.endswith("'large' was not profiled on a whole GPU, and MIG is off")


def test_ctrl_c_while_bounds_are_computed_is_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(demand: Demand) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mig_opt.api.deploy.deployment.Relaxation", interrupted)
    result = deploy(SMALL)
    assert (result.status, result.deployment, result.lower_bound, result.proven) == (Status.INTERRUPTED, None, 0, ())


def test_a_bound_above_the_deployment_does_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    def boastful(demand: Demand, control: Control[Deployment], **known: object) -> None:
        original(demand, control, **known)
        control.raise_bound(7, "because")

    original = search_module.search
    monkeypatch.setattr(search_module, "search", boastful)
    with pytest.raises(SolverError, match="lower bound 7 above"):
        deploy(SMALL, "search")


def test_methods_that_ignore_what_runs_are_aligned_with_it() -> None:
    """The only segment is at 1g@0 where the running one is at 1g@3 of GPU 1."""
    demand = demand_of({"a": 5.0}, {"a": {1: 10.0}})
    old = Deployment(("A100-80GB",) * 2, (Segment("a", 1, "1g.10gb", 3, 1, 1, 10.0, 0.01),))
    result = deploy(demand, "first-fit", running=old)
    assert result.deployment == old


MODEL = {1: 60.0, 2: 130.0, 3: 200.0, 4: 250.0, 7: 420.0}
UPDATING = [method.name for method in methods("deploy") if "retained" in method.options]


def with_rates(wanted: Demand, **rates: float) -> Demand:
    services = (dataclasses.replace(one, rate=rates.get(one.name, one.rate)) for one in wanted.services)
    return wanted.replace(services=tuple(services))


def running_for(wanted: Demand) -> Deployment:
    return deploy(wanted, "parvagpu").deployment


def test_only_the_segments_of_the_service_change() -> None:
    wanted = one_model({"a": 200.0, "b": 130.0, "c": 60.0}, MODEL)
    running = running_for(wanted)
    assert places(running) == [["b:2@0", "c:1@2", "a:3@4"]]
    # 190 are three slices, which begin a GPU. The last stage would have 2 + 1 + 1 in their place, of which 2 + 1 fit
    # beside the others; that is a slice more on as many GPUs.
    more = deploy(with_rates(wanted, b=190.0), running=running, only=["b"])
    assert more.method == "parvagpu"
    assert places(more.deployment) == [["c:1@2", "a:3@4"], ["b:3@4"]]
    less = deploy(with_rates(wanted, b=10.0), running=running, only=["b"])
    assert places(less.deployment) == [["b:1@0", "c:1@2", "a:3@4"]]


def test_gpus_of_the_running_fleet_come_first_and_keep_their_numbers() -> None:
    wanted = one_model({"a": 200.0, "b": 130.0}, MODEL)
    segments = running_for(wanted).segments
    idle = Deployment(("A100-80GB",) * 3, tuple(dataclasses.replace(one, gpu=1) for one in segments))
    result = deploy(with_rates(wanted, b=420.0), running=idle, only=["b"])
    # 420 are 200 + 200 + 20. GPU 1 is filled first, then GPU 0, which was idle.
    assert len(result.deployment.gpus) == 3
    there, before = ([s for s in fleet.segments if s.service == "a"] for fleet in (result.deployment, idle))
    assert there == before
    assert result.gpus == 2
    assert {one.gpu for one in result.deployment.segments} == {0, 1}


def test_services_come_and_go() -> None:
    wanted = one_model({"a": 200.0, "b": 130.0}, MODEL)
    other = one_model({"a": 200.0, "c": 60.0}, MODEL)
    result = deploy(other, running=running_for(wanted), only=["b", "c"])
    assert places(result.deployment) == [["c:1@0", "a:3@4"]]
    plan = plan_change(running_for(wanted), result.deployment, demand=other).plan
    assert [segment.service for segment in plan.kept] == ["a"]


def test_what_is_wrong_with_the_services_that_may_change() -> None:
    wanted = one_model({"a": 200.0, "b": 130.0}, MODEL)
    running = running_for(wanted)
    changed = one_model({"a": 300.0, "c": 60.0}, MODEL)
    assert complaints(deploy, changed, running=running, only=["d"]) == [
        "only: there is no service 'd'; known: a, c, b",
        "only: 'b' is running and no longer demanded; name it as well, so that it ends",
        "only: the segments of 'a' answer 200 requests/s together, but 300 requests/s arrive; name this service as "
        "well",
        "only: no segment serves 'c'; name this service as well",
    ]
    small = Demand((Service("a", 1.0, 40.0, "m"),), (flat_table("m", A30, {1: 40.0}, batch=8),), (GpuPool(A30),))
    with pytest.raises(InputError, match=r"running.gpus\[0\]: stays, but no pool has GPUs of the kind A100-80GB"):
        deploy(small, running=running, only=["b"])
    with pytest.raises(InputError, match="only: must be a tuple, each entry the name of a service, is 'a'"):
        deploy(wanted, running=running, only="a")
    refused(deploy, wanted, only=["a"], match="only: nothing is running that could stay")


@pytest.mark.parametrize("method", [one.name for one in methods("deploy") if one.name not in UPDATING])
def test_methods_that_cannot_leave_segments_say_so(method: str) -> None:
    wanted = one_model({"a": 60.0}, MODEL)
    with pytest.raises(InputError, match=f"only: method '{method}' cannot leave segments where they are; parvagpu, "):
        deploy(wanted, method, running=running_for(wanted), only=["a"])


@pytest.mark.deep
@pytest.mark.parametrize("method", UPDATING)
def test_all_others_stay_and_the_demand_is_served(method: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(demands(gpus=(A100, A30), limited=True), st.data())
    def check(wanted: Demand, data: st.DataObject) -> None:
        running = deploy(wanted, data.draw(st.sampled_from(["first-fit", "exact", "parvagpu"]))).deployment
        if running is None:
            return
        names = [service.name for service in wanted.services]
        only = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        changed = with_rates(wanted, **{name: data.draw(st.integers(1, 400)) / 2 for name in only})
        result = deploy(changed, method, running=running, only=only)
        retained = retained_segments(get_deploy_method("parvagpu"), running, only, changed)
        assert {one.service for one in retained.segments}.isdisjoint(only)
        if result.deployment is None:
            assert result.status in (Status.NO_SOLUTION, Status.INFEASIBLE)
            assert method == "parvagpu-single" or any(pool.count is not None for pool in wanted.pools)
            return
        assert set(retained.segments) <= set(result.deployment.segments)
        assert result.deployment.gpus[: len(running.gpus)] == running.gpus
        assert_serves(changed, result.deployment.without_idle_gpus())
        plan = plan_change(running, result.deployment, demand=changed, time_limit=2).plan
        assert set(retained.segments) <= set(plan.kept)
        assert validate_change(running, result.deployment, plan, demand=changed).valid

    check()
