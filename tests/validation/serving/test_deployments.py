"""The rules for deployments: each mistake is found, once, where it is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mig_opt import Demand, Deployment, GpuPool, Point, ProfileTable, Segment, Service, SloRule, get_gpu
from mig_opt.validation import DeploymentValidation, DeploymentViolationCode, validate_deployment

A100, A30 = get_gpu("A100"), get_gpu("A30")

# Half of the SLO is 0.05 s for chat and 0.1 s for search.
#   GPU 0 (A100)  chat  4g@0 300/s, 1g@4 60/s            360/s for 350/s, two replicas
#   GPU 1 (A30)   search 2g@0 100/s                      100/s for 100/s
TABLES = (
    ProfileTable(
        "bert",
        "A100",
        (Point(1, 4, 1, 60.0, 0.03), Point(1, 8, 2, 90.0, 0.09), Point(4, 8, 2, 300.0, 0.05)),
        memory_gb=5,
    ),
    ProfileTable("vgg", "A30", (Point(2, 8, 1, 100.0, 0.1), Point(1, 8, 1, 50.0, 0.1)), memory_gb=8),
)
DEMAND = Demand(
    (Service("chat", 0.1, 350.0, "bert", min_replicas=2), Service("search", 0.2, 100.0, "vgg")),
    TABLES,
    (GpuPool(A100, 2), GpuPool(A30, 1)),
    max_processes=2,
)
SEGMENTS = (
    Segment("chat", 0, "4g.20gb", 0, 8, 2, 300.0, 0.05),
    Segment("chat", 0, "1g.5gb", 4, 4, 1, 60.0, 0.03),
    Segment("search", 1, "2g.12gb", 0, 8, 1, 100.0, 0.1),
)
GPUS = ("A100-40GB", "A30-24GB")
GOOD = Deployment(GPUS, SEGMENTS)
MORE = Segment("chat", 0, "1g.5gb", 5, 4, 1, 60.0, 0.03)


def found(deployment: Deployment, demand: Demand = DEMAND) -> list[tuple[str, str]]:
    return [(str(violation.code), violation.path) for violation in validate_deployment(demand, deployment).violations]


def changed(index: int, **changes: object) -> Deployment:
    segments = list(SEGMENTS)
    segments[index] = replace(segments[index], **changes)
    return Deployment(GPUS, tuple(segments))


def also(*more: Segment, gpus: tuple[str, ...] = GPUS) -> Deployment:
    return Deployment(gpus, (*SEGMENTS, *more))


TINY_MEMORY = Demand(
    DEMAND.services, (replace(TABLES[0], memory_gb=10), TABLES[1]), DEMAND.pools, max_processes=DEMAND.max_processes
)
SMALL = {"profile": "1g.5gb", "batch": 4, "processes": 1, "throughput": 60.0, "latency": 0.03}
TWICE = DEMAND.replace(services=(DEMAND.services[0], Service("search", 0.2, 100.0, "vgg", min_replicas=2)))
HOPPER = DEMAND.replace(
    tables=(*TABLES, replace(TABLES[0], gpu="H100")), pools=(GpuPool(get_gpu("H100")), GpuPool(A30))
)
CASES: list[tuple[str, str, Deployment, Demand]] = [
    ("unknown-service", "segments[3].service", also(replace(MORE, service="chta")), DEMAND),
    ("unknown-gpu", "segments[1].gpu", changed(1, gpu=2), DEMAND),
    ("unknown-gpu", "segments[1].gpu", changed(1, gpu=-1), DEMAND),
    ("unknown-gpu-kind", "gpus[2]", Deployment((*GPUS, "A101"), SEGMENTS), DEMAND),
    ("unknown-placement", "segments[1].profile", changed(1, profile="1g.6gb"), DEMAND),
    ("unknown-placement", "segments[0].start", changed(0, start=4), DEMAND),
    ("instances-overlap", "segments[1]", changed(1, start=3), DEMAND),
    ("instance-used-twice", "segments[3]", also(replace(MORE, start=4)), DEMAND),
    (
        "too-many-instances",
        "segments[4].profile",
        also(replace(MORE, profile="1g.5gb+me"), replace(MORE, profile="1g.5gb+me", start=6)),
        DEMAND,
    ),
    ("model-not-profiled", "segments[3].gpu", also(Segment("chat", 1, "1g.6gb", 2, 4, 1, 9.0, 0.01)), DEMAND),
    ("size-not-profiled", "segments[1].profile", changed(1, profile="2g.10gb"), DEMAND),
    ("way-not-profiled", "segments[1]", changed(1, batch=5), DEMAND),
    ("way-not-profiled", "segments[1]", changed(1, processes=2), DEMAND),
    ("wrong-throughput", "segments[1].throughput", changed(1, throughput=60.01), DEMAND),
    ("wrong-throughput", "segments[1].throughput", changed(1, throughput=float("nan")), DEMAND),
    ("wrong-latency", "segments[1].latency", changed(1, latency=0.02), DEMAND),
    ("too-slow", "segments[1]", changed(1, batch=8, processes=2, throughput=90.0, latency=0.09), DEMAND),
    ("too-many-processes", "segments[0].processes", GOOD, DEMAND.replace(max_processes=1)),
    ("insufficient-memory", "segments[1].profile", GOOD, TINY_MEMORY),
    ("unserved", "services[1]", Deployment(GPUS, SEGMENTS[:2]), DEMAND),
    ("rate-not-met", "services[0]", changed(0, **SMALL), DEMAND),
    ("too-few-replicas", "services[1]", GOOD, TWICE),
    ("no-pool", "gpus[0]", GOOD, HOPPER),
    ("pool-exceeded", "gpus[2]", also(replace(SEGMENTS[2], gpu=2), gpus=(*GPUS, "A30")), DEMAND),
]  # fmt: skip


def test_the_deployment_that_the_cases_spoil_is_valid() -> None:
    result = validate_deployment(DEMAND, GOOD)
    assert result == DeploymentValidation(2, ())
    assert str(result) == "valid, 2 GPUs"


@pytest.mark.parametrize(("code", "path", "deployment", "demand"), CASES, ids=[f"{c[0]} {c[1]}" for c in CASES])
def test_each_mistake_is_found_where_it_is(code: str, path: str, deployment: Deployment, demand: Demand) -> None:
    assert found(deployment, demand) == [(code, path)]


def test_every_code_has_a_case() -> None:
    assert {code for code, *_ in CASES} == {str(code) for code in DeploymentViolationCode}
    assert all(code.description and "\n" not in code.description for code in DeploymentViolationCode)


def test_the_rule_of_the_published_program_excludes_the_limit_itself() -> None:
    demand = DEMAND.replace(rule=SloRule(0.5, whole_ms=True))
    assert found(GOOD, demand) == [("too-slow", "segments[0]"), ("too-slow", "segments[2]")]


@given(st.sets(st.tuples(st.integers(0, 1), st.sampled_from(A100.placements("all"))), max_size=9))
def test_overlaps_are_those_of_the_placed_states(places: set[tuple[int, object]]) -> None:
    """A GPU's set of instances is accepted exactly if it is one of the GPU's placed states."""
    segments = tuple(Segment("chat", gpu, p.profile.name, p.start, 4, 1, 60.0, 0.03) for gpu, p in places)
    state_codes = {"instances-overlap", "too-many-instances"}
    codes = {code for code, _ in found(Deployment(("A100", "A100"), segments))} & state_codes
    states = {frozenset(state) for state in A100.placed_states("all")}
    assert bool(codes) == any(frozenset(p for gpu, p in places if gpu == of) not in states for of in (0, 1))
