"""A result of ``deploy``, or anything else, where a deployment is wanted: one line says what to give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mig_opt
from mig_opt import Deployment, InputError, deploy
from mig_opt.files.serving.demands import DEMAND as DEMAND_FILE
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.instances.bundled import load
from mig_opt.operations.rollout.changes import change_script
from mig_opt.operations.rollout.kubernetes import kubernetes_resources, mig_parted_config
from mig_opt.operations.rollout.nvidia_smi import deployment_script
from mig_opt.validation import validate_deployment

DEMAND = load("parvagpu-s1")
RESULT = deploy(DEMAND, "first-fit")
NOTHING = Deployment((), ())
TABLE, POOL, SERVICE = DEMAND.tables[0], DEMAND.pools[0], DEMAND.services[0]

CALLS: dict[str, Callable[[Any], object]] = {
    "align": lambda wrong: mig_opt.align(NOTHING, wrong),
    "plan_change": lambda wrong: mig_opt.plan_change(NOTHING, wrong),
    "validate_deployment": lambda wrong: validate_deployment(DEMAND, wrong),
    "deployment_script": deployment_script,
    "mig_parted_config": mig_parted_config,
    "kubernetes_resources": kubernetes_resources,
    "DEPLOYMENT.to_json": DEPLOYMENT.to_json,
    "DEPLOYMENT.to_csv": DEPLOYMENT.to_csv,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", [RESULT, None])
def test_only_deployments_are_deployments(name: str, wrong: object) -> None:
    with pytest.raises(InputError) as error:
        CALLS[name](wrong)
    (problem,) = error.value.problems
    assert problem.path == "deployment"
    assert problem.message.startswith("must be a Deployment, for example the attribute deployment of a Deployment")


def test_nothing_is_written_for_a_result(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a Deployment"):
        DEPLOYMENT.write(RESULT, tmp_path / "fleet.json")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_only_demands_are_demands() -> None:
    wrong: Any = "parvagpu-s1"
    with pytest.raises(InputError, match="demand: must be a Demand, for example"):
        validate_deployment(wrong, NOTHING)
    with pytest.raises(InputError, match="demand: must be a Demand, for example"):
        mig_opt.plan_change(NOTHING, NOTHING, demand=wrong)


def test_one_name_is_no_list_of_gpus() -> None:
    with pytest.raises(InputError, match="gpus: must be a tuple, each entry the name of a GPU, is 'A30'"):
        Deployment("A30", ())  # type: ignore[arg-type]


WRONG: dict[str, tuple[Callable[[], object], list[str]]] = {
    "path of a demand": (
        lambda: mig_opt.read(mig_opt.Demand, 3),  # type: ignore[arg-type]
        ["path: must be the name of a file, as str or Path, is 3 (int)"],
    ),
    "path of a deployment": (
        lambda: mig_opt.read(mig_opt.Deployment, None),  # type: ignore[arg-type]
        ["path: must be the name of a file, as str or Path, is None (NoneType)"],
    ),
    "path of profiles": (
        lambda: mig_opt.read(mig_opt.ProfileTable, []),  # type: ignore[arg-type]
        ["path: must be the name of a file, as str or Path, is [] (list)"],
    ),
    "path of a batch": (
        lambda: mig_opt.read(mig_opt.Batch, 3),  # type: ignore[arg-type]
        ["path: must be the name of a file, as str or Path, is 3 (int)"],
    ),
    "path of a trace": (
        lambda: mig_opt.read(mig_opt.Trace, 3),  # type: ignore[arg-type]
        ["path: must be the name of a file, as str or Path, is 3 (int)"],
    ),
    "path of a fleet state": (
        lambda: mig_opt.read(mig_opt.FleetState, None),  # type: ignore[arg-type]
        ["path: must be the name of a file, as str or Path, is None (NoneType)"],
    ),
    "tables beside a document": (
        lambda: DEMAND_FILE.from_json("{}", tables="profiles.json"),  # type: ignore[arg-type]
        [
            "tables: must be a tuple, each entry a ProfileTable, for example one of read(ProfileTable, ...), is "
            "'profiles.json' (str)"
        ],
    ),
    "pool": (
        lambda: mig_opt.GpuPool("A100", 0),  # type: ignore[arg-type]
        [
            "gpu: must be a GpuModel, for example get_gpu('A100'), is 'A100' (str)",
            "count: must be from 1 to 2147483647, is 0",
        ],
    ),
    "parts of a demand": (
        lambda: mig_opt.Demand((SERVICE, "chat"), (1,), 2),  # type: ignore[arg-type]
        [
            "services[1]: must be a Service, is 'chat' (str)",
            "tables[0]: must be a ProfileTable, for example one of read(ProfileTable, ...), is 1 (int)",
            "pools: must be a tuple, each entry a Pool, for example Pool(get_gpu('A100')), is 2 (int)",
        ],
    ),
    "parts of a deployment": (
        lambda: Deployment((7,), [1]),  # type: ignore[arg-type]
        ["gpus[0]: must be the name of a GPU, is 7 (int)", "segments[0]: must be a Segment, is 1 (int)"],
    ),
    "change": (
        lambda: change_script("plan"),  # type: ignore[arg-type]
        ["change: must be a ChangePlan, like plan_change().plan, is 'plan' (str)"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_argument_of_a_wrong_type_is_a_line_that_says_what_is_wanted(name: str) -> None:
    call, expected = WRONG[name]
    with pytest.raises(InputError) as error:
        call()
    assert [f"{problem.path}: {problem.message}" for problem in error.value.problems] == expected


@pytest.mark.parametrize("wrong", [RESULT, RESULT.deployment])
def test_only_changes_have_scripts_of_changes(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"change: must be a ChangePlan, like plan_change\(\)\.plan, is Deployment"):
        change_script(wrong)


def test_any_iterable_of_parts_will_do() -> None:
    demand = mig_opt.Demand(iter([*DEMAND.services]), [*DEMAND.tables], iter([POOL]))  # type: ignore[arg-type]
    assert (demand.services, demand.tables, demand.pools) == (DEMAND.services, DEMAND.tables, (POOL,))
