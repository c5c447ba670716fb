"""The one way to run a method on a demand."""

import pytest
from demands import A30, A100, demand_of
from documents import wrong_paths

from mig_opt import Demand, Deployment, GpuPool, Point, ProfileTable, Segment, Service, Status, deploy, load, methods
from mig_opt.api.deploy import why_unservable
from mig_opt.errors import InputError, SolverError, UnknownMethodError
from mig_opt.heuristics.serving import search as search_module
from mig_opt.method.control import Control

SMALL = demand_of({"a": 25.0}, {"a": {1: 10.0, 2: 20.0}})


def test_every_wrong_argument_is_named_at_once() -> None:
    with pytest.raises(UnknownMethodError) as caught:
        deploy("services", "exactly", running=3, time_limit=-1, seed=1.5)  # type: ignore[arg-type]  # is the test
    assert [problem.path for problem in caught.value.problems] == ["demand", "running", "method", "time_limit", "seed"]
    assert "did you mean exact?" in str(caught.value)


@pytest.mark.parametrize("method", [method.name for method in methods("deploy")])
def test_absurd_demands_are_refused(method: str) -> None:
    rates = {"a": 1.0, "b": 1e300, "c": 5e9}
    wanted = demand_of(rates, {name: {1: 100.0} for name in rates})
    with pytest.raises(InputError, match=r"deployments have at most 1,000,000, so give a smaller one") as caught:
        deploy(wanted, method)
    assert [problem.path for problem in caught.value.problems] == ["services[1].rate", "services[2].rate"]
    services = tuple(Service(f"s{index}", 1.0, 1.0, "a", min_replicas=10_000) for index in range(101))
    found = wrong_paths(deploy, wanted.replace(services=services), method)
    assert found == [f"services[{index}].min_replicas" for index in range(101)]


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
    overlapping = Deployment(
        ("A100-80GB",), (Segment("a", 0, "4g.40gb", 0, 1, 1, 1.0, 0.1), Segment("a", 0, "2g.20gb", 2, 1, 1, 1.0, 0.1))
    )
    with pytest.raises(InputError, match=r"running\.segments\[1\]"):
        deploy(SMALL, running=overlapping)


def test_too_many_processes_are_not_taken_for_too_little_memory() -> None:
    points = (Point(1, 1, 1, 5.0, 0.01), Point(2, 1, 3, 9.0, 0.01), Point(4, 1, 2, 9.0, 0.01))
    table = ProfileTable("large", A30.name, points, memory_gb=10.0)  # too large for the only one with one process
    demand = Demand((Service("chat", 1.0, 1.0, "large"),), (table,), (GpuPool(A30),), max_processes=1)
    reason = "service 'chat' fits on no instance: where it has enough memory its model 'large' was profiled with "
    assert why_unservable(demand) == [f"{reason}2 processes or more, and at most 1 may share an instance"]
    assert why_unservable(demand.replace(max_processes=2)) == []


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
