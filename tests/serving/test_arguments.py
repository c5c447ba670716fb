"""A result of ``deploy``, or anything else, where a deployment is wanted: one line says what to give."""

from typing import Any

import pytest
from documents import complaints

import mig_opt
from mig_opt import Deployment, deploy, load
from mig_opt.files.serving.demands import DEMAND as DEMAND_FILE
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.operations.rollout.changes import change_script
from mig_opt.operations.rollout.kubernetes import kubernetes_resources, mig_parted_config
from mig_opt.operations.rollout.nvidia_smi import deployment_script
from mig_opt.validation import validate, validate_change, validate_deployment

face: Any = mig_opt  # of types that nobody checks
DEMAND: Any = load("parvagpu-s1")
RESULT = deploy(DEMAND, "first-fit")
NOTHING, KINDS = Deployment((), ()), (face.get_gpu("A30"), face.get_gpu("A100"))
CHANGE = face.plan_change(NOTHING, NOTHING).plan
WANTED = "must be a Deployment, for example the attribute deployment of a Deployment"


@pytest.mark.parametrize("wrong", [RESULT, None])
@pytest.mark.parametrize(
    "call",
    [
        lambda wrong: face.align(NOTHING, wrong),
        lambda wrong: face.plan_change(NOTHING, wrong),
        lambda wrong: validate_deployment(DEMAND, wrong),
        deployment_script,
        mig_parted_config,
        kubernetes_resources,
        DEPLOYMENT.to_json,
        DEPLOYMENT.to_csv,
    ],
)
def test_only_deployments_are_deployments(call, wrong):
    (problem,) = complaints(call, wrong)
    assert problem.startswith(f"deployment: {WANTED}")


def test_nothing_is_written_for_a_result(tmp_path):
    assert WANTED in complaints(DEPLOYMENT.write, RESULT, tmp_path / "fleet.json")[0]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["Demand", "Deployment", "ProfileTable", "Batch", "Trace", "FleetState"])
@pytest.mark.parametrize(("path", "told"), [(3, "3 (int)"), (None, "None (NoneType)"), ([], "[] (list)")])
def test_only_paths_are_read(kind, path, told):
    wanted = f"path: must be the name of a file, as str or Path, is {told}"
    assert complaints(face.read, getattr(face, kind), path) == [wanted]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: validate_deployment("parvagpu-s1", NOTHING), ["demand: must be a Demand, for example "]),
        (lambda: face.plan_change(NOTHING, NOTHING, demand="x"), ["demand: must be a Demand, for example "]),
        (lambda: validate_change(NOTHING, NOTHING, CHANGE, demand="x"), ["demand: must be a Demand, for example "]),
        (lambda: validate_deployment(DEMAND, NOTHING, tolerance="much"), ["tolerance: must be a finite number >= 0"]),
        (lambda: validate("rodinia-a30", face.Schedule(())), ["batch: must be a Batch"]),
        (lambda: DEMAND.replace(rule=0.5), ["rule: must be an SloRule, is 0.5 (float)"]),
        (lambda: face.Service("a", 1.0, 1.0, [1]), ["model: must be a text, is [1] (list)"]),
        (
            lambda: face.Arrivals(rates="x", recorded={"a": ["y"]}),
            ["rates: must be a RateTable, is 'x' (str)", "recorded['a'][0]: must be a number, is 'y' (str)"],
        ),
        (
            lambda: DEMAND_FILE.from_json("{}", tables="profiles.json"),
            ["tables: must be a tuple, each entry a ProfileTable, for example one of read(ProfileTable, ...), is "],
        ),
        (
            lambda: face.GpuPool("A100", 0, 1e308),
            [
                "gpu: must be a GpuModel, for example get_gpu('A100'), is 'A100' (str)",
                "count: must be from 1 to 2147483647, is 0",
                "cost: must be a number from 0 (at no further cost) to 1e20, is 1e+308",
            ],
        ),
        (
            lambda: face.Demand((DEMAND.services[0], "chat"), (1,), 2),
            [
                "services[1]: must be a Service, is 'chat' (str)",
                "tables[0]: must be a ProfileTable, for example one of read(ProfileTable, ...), is 1 (int)",
                "pools: must be a tuple, each entry a Pool, for example Pool(get_gpu('A100')), is 2 (int)",
            ],
        ),
        (
            lambda: face.Deployment((7,), [1]),
            ["gpus[0]: must be the name of a GPU, is 7 (int)", "segments[0]: must be a Segment, is 1 (int)"],
        ),
        (lambda: face.Deployment("A30", ()), ["gpus: must be a tuple, each entry the name of a GPU, is 'A30'"]),
        (lambda: face.RateTable((0, 1e308), {"a": (1.0,)}), ["times[1]: must be a number of seconds from -1e15 "]),
        (lambda: NOTHING.model(0), ["gpu: there is no GPU 0 among 0 GPUs, numbered from 0"]),
        (lambda: face.FleetState(None, 2, (), kinds=KINDS).kind(2), ["gpu: there is no GPU 2 among 2 GPUs, numbered"]),
        (lambda: change_script("plan"), ["change: must be a ChangePlan, like plan_change().plan, is 'plan' (str)"]),
        (lambda: change_script(RESULT), ["change: must be a ChangePlan, like plan_change().plan, is Deployment"]),
    ],
)
def test_each_argument_of_a_wrong_type_is_a_line_that_says_what_is_wanted(call, expected):
    found = complaints(call)
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


def test_any_iterable_of_parts_will_do():
    demand = face.Demand(iter([*DEMAND.services]), [*DEMAND.tables], iter(DEMAND.pools))
    assert (demand.services, demand.tables, demand.pools) == (DEMAND.services, DEMAND.tables, DEMAND.pools)
