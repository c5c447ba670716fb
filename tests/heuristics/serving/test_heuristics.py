"""The heuristics for the fewest GPUs: rivals of ParvaGPU by hand, our own, kinds of GPU, and rules for all."""

import itertools
from dataclasses import replace

import demands
import pytest
from demands import A30, A100, assert_serves, control_for, demand_of, featured_demands, flat_table, one_model, places
from hypothesis import given, settings

from mig_opt import Demand, Deployment, GpuPool, Placement, Service, SloRule, Status, deploy, load
from mig_opt.gpu.catalogue import add_gpu
from mig_opt.heuristics.serving.mig_serving import partitions_into
from mig_opt.method.registry import get_deploy_method, methods

METHODS = tuple(m.name for m in methods("deploy") if m.kind == "heuristic" and m.name != "search")
"""Those that plan by rules."""
MODEL = {1: 60.0, 2: 130.0, 3: 200.0, 4: 250.0, 7: 420.0}


def run(method: str, wanted: Demand) -> Deployment | None:
    control = control_for(wanted)
    get_deploy_method(method).load()(wanted, control)
    return control.plan


def test_first_fit_takes_the_best_size_and_the_first_place() -> None:
    # 450 are three segments of 3 slices, the size of greatest throughput per slice: two fill a GPU.
    assert places(run("first-fit", one_model({"a": 450.0}, MODEL))) == [["a:3@0", "a:3@4"], ["a:3@0"]]
    assert places(run("first-fit", one_model({"a": 400.0, "b": 1.0}, MODEL))) == [["a:3@0", "a:3@4"], ["b:3@0"]]


def test_mig_serving_scores_shares_of_the_rate() -> None:
    # One GPU: with 7 slices for b 420 / 4200 = 0.1 of it; for a anything from one slice on is all of it. Four slices
    # go to whom they give most: a (1 > 250 / 4200); then b gets 200 / 4200 on three.
    # A better configuration: ones. The first has a, six have b with 6 * 60 / 4200 = 0.0857 > 250 / 4200 of 1 + 4.
    deployment = run("mig-serving", one_model({"a": 50.0, "b": 4200.0}, MODEL))
    assert [s.service for s in deployment.on(0)].count("a") == 1
    assert sum(s.throughput for s in deployment.on(0) if s.service == "b") == 360.0


def test_mig_serving_uses_double_memory_where_it_has_to_and_gives_up_without_gpus() -> None:
    wanted = one_model({"a": 60.0, "b": 60.0}, {1: 60.0}, memory=15.0)
    assert [s.profile for s in (run("mig-serving", wanted) or Deployment((), ())).segments] == ["1g.20gb", "1g.20gb"]

    assert run("mig-serving", one_model({"a": 840.0}, {7: 420.0}, count=1)) is None
    assert places(run("mig-serving", one_model({"a": 840.0}, {7: 420.0}, count=2))) == [["a:7@0"], ["a:7@0"]]


def test_the_fast_algorithm_weighs_by_what_is_lacking() -> None:
    # A GPU of one model gives 350 as 2 + 2 + 2 + 1 instances of 50 per slice: half of a, so that b is next (1 * 350 /
    # 700 against 0.5 * 350 / 700), and then each again.
    served = {1: 50.0, 2: 100.0}
    deployment = run("mig-serving-fast", one_model({"a": 700.0, "b": 700.0}, served))
    assert [{segment.service for segment in deployment.on(gpu)} for gpu in range(4)] == [{"a"}, {"b"}, {"a"}, {"b"}]


@pytest.mark.deep
@settings(max_examples=40)
@given(demands.demands(max_services=3, gpus=(A100, A30), max_pools=1))
def test_no_configuration_of_any_mix_scores_more(wanted: Demand) -> None:
    """The fast algorithm against every service on every instance of every partition, GPU after GPU."""
    deployment = run("mig-serving-fast", wanted)
    gpu = wanted.pools[0].gpu
    given_by = [
        {option.profile: option.point.throughput / service.rate for option in options}
        for service, options in zip(wanted.services, wanted.options, strict=True)
    ]
    names = [service.name for service in wanted.services]
    rate, segments = [1.0] * len(names), [float(service.min_replicas) for service in wanted.services]
    profiles = frozenset(profile for given in given_by for profile in given)
    for number in range(len(deployment.gpus)):
        shares = zip(rate, segments, wanted.services, strict=True)
        lacks = [max(0.0, left, count / service.min_replicas) for left, count, service in shares]
        best = max(
            sum(
                lacks[who] * given_by[who].get(placement.profile, 0.0)
                for who, placement in zip(mix, partition, strict=True)
            )
            for partition in partitions_into(gpu, profiles)
            for mix in itertools.product(range(len(names)), repeat=len(partition))
        )
        score = 0.0
        for segment in deployment.on(number):
            who = names.index(segment.service)
            score += lacks[who] * given_by[who][deployment.placement(segment).profile]
            rate[who] -= segment.throughput / wanted.services[who].rate
            segments[who] -= 1
        assert score == pytest.approx(best, rel=1e-6)


def test_gpulet_splits_a_service_at_its_most_efficient_size() -> None:
    # Three slices have most per slice (200 / 3), and with the four beside them 450. The step to two slices gains most
    # (70): 130 + 250 = 380 on a GPU would be three GPUs.
    assert places(run("gpulet", one_model({"a": 900.0}, MODEL))) == [["a:4@0", "a:3@4"]] * 2


@pytest.mark.deep
@settings(max_examples=60)
@given(featured_demands(limited=False))
def test_no_gpu_of_gpulet_has_three_segments_and_the_second_has_all_that_the_first_leaves(wanted: Demand) -> None:
    deployment = run("gpulet", wanted)
    if deployment is None:
        return
    options = dict(zip((service.name for service in wanted.services), wanted.options, strict=True))

    def largest_beside(first: Placement, service: str) -> int:
        profiles = [option.profile for option in options[service] if option.profile in first_gpu.profiles]
        return max(
            profile.compute_slices
            for profile in profiles
            if any(not first_gpu.placement(profile.name, start).conflicts(first) for start in profile.starts)
        )

    for gpu in range(len(deployment.gpus)):
        held = [(segment.service, deployment.placement(segment)) for segment in deployment.on(gpu)]
        assert len(held) <= 2
        if len(held) == 2:
            first_gpu = deployment.model(gpu)
            assert any(
                second.profile.compute_slices == largest_beside(first, service)
                for (_, first), (service, second) in itertools.permutations(held)
            )


def test_igniter_gives_whole_gpus_and_then_the_smallest_instance_that_serves_the_rest() -> None:
    found = run("igniter", one_model({"a": 190.0, "b": 125.0, "c": 10.0}, MODEL))
    assert places(found) == [["b:2@0", "c:1@2", "a:3@4"]]
    # Whole GPUs come first until the rest fits: 900 = 2 * 420 + 60.
    assert places(run("igniter", one_model({"a": 900.0}, MODEL))) == [["a:7@0"], ["a:7@0"], ["a:1@0"]]
    assert places(run("igniter", one_model({"a": 50.0}, MODEL, replicas=2))) == [["a:1@0", "a:1@1"]]


BOTH = (flat_table("m", A100, {4: 100.0, 7: 170.0}, batch=8), flat_table("m", A30, {4: 80.0, 2: 30.0}, batch=8))


@pytest.mark.parametrize("method", METHODS)
def test_what_a_kind_has_no_gpus_for_goes_to_the_next(method: str) -> None:
    wanted = Demand((Service("a", 1.0, 180.0, "m"),), BOTH, (GpuPool(A100, 1), GpuPool(A30)))
    deployment = run(method, wanted)
    assert_serves(wanted, deployment)
    assert deployment.gpus[0] == "A100-80GB"
    assert set(deployment.gpus[1:]) == {"A30-24GB"}


@pytest.mark.parametrize("method", [*METHODS, "search"])
def test_nothing_is_offered_if_the_gpus_do_not_suffice(method: str) -> None:
    assert run(method, Demand((Service("a", 1.0, 500.0, "m"),), BOTH, (GpuPool(A100, 1), GpuPool(A30, 2)))) is None
    assert run(method, one_model({"a": 1.0}, {7: 420.0}, count=1)) is not None
    assert run(method, one_model({"a": 1.0, "b": 1.0}, {7: 420.0}, count=1)) is None


@pytest.mark.parametrize("method", [method for method in METHODS if method != "mig-serving-fast"])
def test_one_kind_for_all_if_that_is_less(method: str) -> None:
    # The fast algorithm of MIG-serving fills a GPU with whom it serves best there, needed or not.
    # Each service is a little better off on a GPU of its own kind, but both fit on one.
    figures = ("m", A100, 100.0), ("m", A30, 60.0), ("n", A100, 60.0), ("n", A30, 170.0)
    tables = tuple(flat_table(model, gpu, {1: throughput}, batch=8) for model, gpu, throughput in figures)
    services = Service("a", 1.0, 50.0, "m"), Service("b", 1.0, 50.0, "n")
    deployment = run(method, Demand(services, tables, (GpuPool(A100), GpuPool(A30))))
    assert deployment.used_gpus == 1


def test_within_a_limit_segments_move_to_where_they_were_not_wanted() -> None:
    # Three 3g on a GPU each; two GPUs are there, and the last one finds room at slice 0, beside which a slice is lost.
    wanted = one_model({"a": 200.0, "b": 200.0, "c": 200.0}, {3: 200.0}, count=2)
    assert places(run("parvagpu-unoptimized", wanted)) == [["c:3@0", "a:3@4"], ["b:3@4"]]
    assert run("parvagpu-unoptimized", wanted.replace(pools=(GpuPool(A100, 1),))) is None


@pytest.mark.parametrize("method", [*METHODS, "search"])
def test_a_gpu_has_no_more_of_a_profile_than_it_may(method: str) -> None:
    profiles = (replace(own, max_count=1) if own.memory_slices < 4 else own for own in A30.profiles)
    few = add_gpu(replace(A30, name="one of each", aliases=(), profiles=tuple(profiles)))
    wanted = one_model({"a": 320.0, "b": 250.0}, {1: 50.0, 2: 100.0}, few)
    assert_serves(wanted, deploy(wanted, method).deployment)


@pytest.mark.deep
@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_offered_serves_the_demand_and_without_limits_there_always_is_something(
    method: str, limited: bool
) -> None:
    @settings(max_examples=60)
    @given(featured_demands(limited=limited))
    def check(wanted: Demand) -> None:
        if method == "parvagpu-single":
            wanted = wanted.replace(max_processes=1)
        deployment = run(method, wanted)
        assert limited or (deployment is None) == bool(wanted.unservable())
        if deployment is not None:
            assert_serves(wanted, deployment)

    check()


@pytest.mark.deep
@settings(max_examples=40)
@given(featured_demands())
def test_exact_never_needs_more_gpus_than_a_rival(wanted: Demand) -> None:
    best = deploy(wanted, time_limit=20)
    for method in (*METHODS, "search"):
        rival = deploy(wanted, method)
        if rival.gpus is not None:
            assert best.gpus is not None, method
            assert best.lower_bound <= best.gpus <= rival.gpus, method
        else:
            assert rival.status in (Status.NO_SOLUTION, Status.INFEASIBLE), method


@pytest.mark.deep
@settings(max_examples=60)
@given(featured_demands())
def test_the_last_stage_of_parvagpu_never_makes_it_worse(wanted: Demand) -> None:
    costs = []
    for method in ("parvagpu", "parvagpu-unoptimized"):
        control = control_for(wanted)
        get_deploy_method(method).load()(wanted, control)
        costs.append(control.goals)
    assert costs[1] is None or (costs[0] is not None and costs[0] <= costs[1])


PUBLISHED_RULE = SloRule(0.45, whole_ms=True)


def copies(demand: Demand, number: int) -> Demand:
    services = (replace(one, name=f"{one.name}-{copy}") for copy in range(number) for one in demand.services)
    return demand.replace(services=tuple(services))


@pytest.mark.parametrize(("number", "gpus"), [(2, 24), (5, 59), (10, 118)])
def test_many_copies_of_a_scenario(number: int, gpus: int) -> None:
    """The counts that integer programming proves."""
    demand = copies(load("parvagpu-s5").replace(rule=PUBLISHED_RULE), number)
    assert deploy(demand, "search").gpus == gpus


@pytest.mark.deep
def test_a_thousand_services() -> None:
    result = deploy(copies(load("parvagpu-s5"), 100), "search", time_limit=20)
    assert result.gpus <= result.lower_bound * 1.005


@pytest.mark.deep
def test_one_service_for_thousands_of_gpus() -> None:
    """A 4g and a 3g answer 78 requests/s on a GPU, and nothing answers more."""
    demand = demand_of({"a": 700_000.0}, {"a": {1: 10.0, 2: 21.0, 3: 33.0, 4: 45.0, 7: 70.0}})
    assert deploy(demand, "search").gpus == 8975
