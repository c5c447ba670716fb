"""The command script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import BATCH, Command, not_valid, refuses, without_operations
from scripts import Machine
from services_file import CHAT, SEARCH, fleet, services

from mig_opt.files.serving.demands import read_demand
from mig_opt.files.serving.deployments import read_deployment
from mig_opt.operations.rollout import deployment_script

HOOKS = 'run_task() { echo "$1" >>"$FOLDER/ran"; }'


@pytest.mark.deep
@pytest.mark.parametrize("bare", [False, True])
def test_the_script_carries_out_the_schedule(run: Command, batch_file: Path, plan_file: Path, bare: bool) -> None:
    folder = plan_file.parent
    plan, out = without_operations(plan_file) if bare else plan_file, folder / "go.sh"
    outcome = run("script", batch_file, plan, out)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"Script written to {out}. Usage: bash {out} HOOKS\n"
    done = Machine(folder, "A30").run(out.read_text(), HOOKS)
    assert done.returncode == 0, done.stderr
    assert sorted((folder / "ran").read_text().split()) == ["a", "b", "c"]


def test_devices_are_those_of_the_option(run: Command, batch_file: Path, plan_file: Path) -> None:
    out = plan_file.with_name("go.sh")
    assert run("script", batch_file, plan_file, out, "--gpus", 2, "--devices", "node-1/3, GPU-5").code == 0
    assert "\nGPUS=(node-1/3 GPU-5)\n" in out.read_text()


def test_a_schedule_that_is_not_valid_has_no_script(run: Command, batch_file: Path, plan_file: Path) -> None:
    out = plan_file.with_name("go.sh")
    outcome = run("script", batch_file, not_valid(plan_file), out)
    assert (outcome.code, outcome.out, out.exists()) == (1, "", False)
    assert outcome.err.startswith("The schedule is not valid (")


def test_all_that_is_wrong_is_said_at_once(run: Command, batch_file: Path, tmp_path: Path) -> None:
    batch_file.write_text(json.dumps(BATCH | {"gpu": "A31"}))
    outcome = run("script", batch_file, "no.json", tmp_path / "no" / "go.sh", "--devices", "0,$(reboot)")
    refuses(outcome, "unknown GPU 'A31'", "no.json: no such file", "there is no folder", "--devices[1]: must be index")


def test_devices_are_as_many_as_gpus(run: Command, batch_file: Path, plan_file: Path) -> None:
    outcome = run("script", batch_file, plan_file, plan_file.with_name("go.sh"), "--devices", "0,1")
    refuses(outcome, "error: --devices: must name 1, one for each GPU, names 2")


def test_inputs_are_not_overwritten(run: Command, batch_file: Path, plan_file: Path) -> None:
    refuses(run("script", batch_file, plan_file, batch_file), "is read as well")


def test_devices_of_an_export_are_as_many_as_gpus(run: Command) -> None:
    outcome = run("deploy", "parvagpu-s1", "--method", "search", "--export", "mig-parted", "--devices", "0")
    refuses(outcome, "error: --devices: must name 2, one for each GPU, names 1")


# --- deployments -----------------------------------------------------------------------------------------------------


def test_the_script_of_a_deployment_is_that_of_the_library(run: Command, tmp_path: Path) -> None:
    path, plan, out = services(tmp_path), fleet(tmp_path), tmp_path / "go.sh"
    outcome = run("script", path, plan, out)
    assert outcome == (0, f"Script written to {out}. Usage: bash {out} [HOOKS]\n", "")
    deployment = read_deployment(plan, demand=read_demand(path))
    assert out.read_text() == deployment_script(deployment)
    assert run("script", path, plan, out, "--devices", "node-1/3,GPU-5").code == 0
    assert out.read_text() == deployment_script(deployment, devices=["node-1/3", "GPU-5"])


@pytest.mark.parametrize("name", ["fleet.json", "fleet.csv", "result.json"])
def test_what_deploy_writes_becomes_a_script_without_a_new_plan(run: Command, tmp_path: Path, name: str) -> None:
    plan, out = tmp_path / name, tmp_path / "go.sh"
    if name == "result.json":
        plan.write_text(run("deploy", "parvagpu-s1", "--json").out)
    else:
        assert run("deploy", "parvagpu-s1", "-o", plan).code == 0
    assert run("script", "parvagpu-s1", plan, out).code == 0
    assert out.read_text() == run("deploy", "parvagpu-s1", "--export", "nvidia-smi").out


def test_a_deployment_that_is_not_valid_has_no_script(run: Command, tmp_path: Path) -> None:
    out, less = tmp_path / "go.sh", services(tmp_path, services=[CHAT, {**SEARCH, "rate": 101.0}])
    outcome = run("script", less, fleet(tmp_path), out)
    assert outcome == (1, "", "The deployment is not valid (1 violation); see: mig-opt validate\n")
    assert not out.exists()
    path = services(tmp_path)
    assert run("script", path, fleet(tmp_path), out, "--slo-share", 0.3).code == 1
    held = {"service": "chat", "gpu": 0, "profile": "2g.12gb", "batch": 2, "processes": 1}
    assert run("script", path, fleet(tmp_path, segments=[{**held, "start": 1}]), out).code == 1
    assert not out.exists()


def test_all_that_is_wrong_about_a_deployment_is_said_at_once(run: Command, tmp_path: Path) -> None:
    path, plan = services(tmp_path), fleet(tmp_path)
    outcome = run("script", path, "no.json", tmp_path / "no" / "go.sh", "--devices", "0,$(reboot)")
    refuses(outcome, "no.json: no such file", "there is no folder", "--devices[1]: must be index")
    outcome = run("script", path, plan, tmp_path / "go.sh", "--devices", "0")
    refuses(outcome, "error: --devices: must name 2, one for each GPU, names 1")
    refuses(run("script", path, plan, plan), "is read as well")
    outcome = run("script", path, plan, tmp_path / "go.sh", "--gpus", 2, "--cost-free")
    refuses(outcome, "--gpus: is for batches, but", "--cost-free: is for batches, but")
    assert not (tmp_path / "go.sh").exists()


def test_names_that_no_script_can_hold_are_refused(run: Command, tmp_path: Path) -> None:
    held = {"gpu": 0, "profile": "2g.12gb", "start": 0, "batch": 2, "processes": 1}
    plan = fleet(tmp_path, gpus=["A30"], segments=[{"service": "nul\0", **held}])
    path = services(tmp_path, services=[{**CHAT, "name": "nul\0"}])
    outcome = run("script", path, plan, tmp_path / "go.sh")
    refuses(outcome, f"error: {plan}\n  segments[0].service: has a character that no program can be given")
    assert not (tmp_path / "go.sh").exists()


def test_options_for_services_mean_nothing_for_a_batch(run: Command, batch_file: Path, plan_file: Path) -> None:
    outcome = run("script", batch_file, plan_file, plan_file.with_name("go.sh"), "--slo-share", 0.4)
    refuses(outcome, f"--slo-share: is for services, but {batch_file} is a batch")
