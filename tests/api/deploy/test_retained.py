"""Updating some services of a running deployment: all others stay where they are."""

import dataclasses

import pytest
from demands import A30, A100, assert_serves, demands, flat_table, one_model, places
from documents import complaints
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Demand, Deployment, GpuPool, InputError, Service, Status, deploy, methods, plan_change
from mig_opt.api.deploy import retained_segments
from mig_opt.method.registry import get_deploy_method
from mig_opt.validation import validate_change

MODEL = {1: 60.0, 2: 130.0, 3: 200.0, 4: 250.0, 7: 420.0}
UPDATING = [method.name for method in methods("deploy") if "retained" in method.options]


def with_rates(wanted: Demand, **rates: float) -> Demand:
    services = (dataclasses.replace(one, rate=rates.get(one.name, one.rate)) for one in wanted.services)
    return wanted.replace(services=tuple(services))


def running_for(wanted: Demand) -> Deployment:
    found = deploy(wanted, "parvagpu").deployment
    assert found is not None
    return found


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
    assert result.deployment is not None
    assert len(result.deployment.gpus) == 3
    assert [one for one in result.deployment.segments if one.service == "a"] == [
        one for one in idle.segments if one.service == "a"
    ]
    assert result.gpus == 2
    assert {one.gpu for one in result.deployment.segments} == {0, 1}


def test_services_come_and_go() -> None:
    wanted = one_model({"a": 200.0, "b": 130.0}, MODEL)
    other = one_model({"a": 200.0, "c": 60.0}, MODEL)
    result = deploy(other, running=running_for(wanted), only=["b", "c"])
    assert places(result.deployment) == [["c:1@0", "a:3@4"]]
    plan = plan_change(running_for(wanted), result.deployment, demand=other).plan if result.deployment else None
    assert plan is not None
    assert [segment.service for segment in plan.kept] == ["a"]


def test_a_limited_fleet() -> None:
    wanted = one_model({"a": 420.0, "b": 60.0}, {7: 420.0}, count=2)
    assert deploy(with_rates(wanted, b=420.0), running=running_for(wanted), only=["b"]).gpus == 2
    assert deploy(with_rates(wanted, b=430.0), running=running_for(wanted), only=["b"]).status is Status.INFEASIBLE


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
    with pytest.raises(InputError, match="only: nothing is running that could stay"):
        deploy(wanted, only=["a"])


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
