"""The command deploy with what is running: changes, their steps, and who is interrupted."""

from __future__ import annotations

import _thread
import json
import time

import pytest
from command_line import refuses
from services_file import CHAT, PROFILES, SEARCH, SERVICES, fleet, services

from mig_opt.api.change import plan_change
from mig_opt.api.change.greedy import greedy
from mig_opt.files.serving.demands import read_demand
from mig_opt.files.serving.deployments import read_deployment
from mig_opt.operations.rollout import change_script


@pytest.fixture
def services_file(tmp_path):
    return services(tmp_path)


def test_from_a_running_deployment_nothing_changes_that_need_not(run, services_file, tmp_path):
    path = tmp_path / "new.json"
    outcome = run("deploy", services_file, "--from", fleet(tmp_path), "-o", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert "proven         fewest GPUs, then fewest compute slices, then fewest changes" in outcome.out
    assert "GPUs           1; 1 more without segments" in outcome.out
    assert "kept         3 segments as they are" in outcome.out
    assert "duration     0.000 s" in outcome.out
    old, new = read_deployment(fleet(tmp_path), demand=read_demand(services_file)), read_deployment(path)
    assert old.changes_to(new) == 0


def test_the_steps_of_a_change(run, tmp_path):
    old = fleet(tmp_path)
    path = services(tmp_path, services=[{**CHAT, "rate": 11.0}, {**SEARCH, "rate": 190.0}])
    target = tmp_path / "new.json"
    outcome = run("deploy", path, "--from", old, "-o", target)
    demand = read_demand(path)
    plan = plan_change(read_deployment(old, demand=demand), read_deployment(target), demand=demand)
    assert plan.steps
    assert f"kept         {len(plan.kept)} segment" in outcome.out
    assert f"duration     {plan.duration:.3f} s" in outcome.out
    table = outcome.out.partition("begin s  end s")[2].splitlines()[2:]
    assert [line.split()[:5] for line in table[: len(plan.steps)]] == [
        [f"{step.begin:.3f}", f"{step.end:.3f}", str(step.gpu), f"{step.profile}@{step.start}", step.kind]
        for step in plan.steps
    ]
    script = run("deploy", path, "--from", old, "--export", "nvidia-smi")
    assert (script.code, script.err) == (0, "")
    assert script.out == change_script(plan.plan)


def test_ctrl_c_while_the_steps_are_planned_keeps_the_deployment(run, tmp_path, monkeypatch):
    def interrupted(*problem):
        _thread.interrupt_main()
        time.sleep(0.2)  # Ctrl-C arrives meanwhile
        return greedy(*problem)

    monkeypatch.setattr("mig_opt.api.change.plans.greedy", interrupted)
    path = services(tmp_path, services=[{**CHAT, "rate": 11.0}, {**SEARCH, "rate": 190.0}])
    outcome = run("deploy", path, "--from", fleet(tmp_path), "-o", tmp_path / "new.json")
    assert outcome.code == 130
    assert "Interrupted while the steps were planned" in outcome.out
    assert read_deployment(tmp_path / "new.json").segments


def test_the_change_as_json(run, tmp_path):
    old = fleet(tmp_path)
    path = services(tmp_path, services=[{**CHAT, "rate": 11.0}, {**SEARCH, "rate": 190.0}])
    target = tmp_path / "new.json"
    outcome = run("deploy", path, "--from", old, "--json", "-o", target)
    assert outcome.code == 0
    shares = ["external_fragmentation", "internal_slack"]
    keys = ["status", "method", "gpus", "lower_bound", "compute_slices", *shares, "runtime_s", "deployment"]
    assert list(outcome.json) == [*keys, "change"]
    assert list(run("deploy", path, "--json").json) == keys
    demand = read_demand(path)
    plan = plan_change(read_deployment(old, demand=demand), read_deployment(target), demand=demand)
    change = outcome.json["change"]
    assert list(change) == ["kept", "interrupted", "duration_s", "proven", "steps"]
    assert (change["kept"], change["interrupted"], change["duration_s"]) == (len(plan.kept), [], plan.duration)
    assert change["proven"] == list(plan.proven)
    assert {step["kind"] for step in change["steps"]} >= {"create"}
    assert change["steps"] == [
        {
            **{key: getattr(step, key) for key in ("kind", "gpu", "profile", "start", "begin", "end")},
            "ends": step.ends and step.ends.service,
            "begins": step.begins and step.begins.service,
        }
        for step in plan.steps
    ]
    printed = tmp_path / "printed.json"
    printed.write_text(outcome.out)
    assert read_deployment(printed) == read_deployment(target)
    late = services(tmp_path, "late.json", services=[{**CHAT, "slo": 0.1}])
    nothing = run("deploy", late, "--from", old, "--json")
    assert (nothing.code, nothing.json["deployment"], nothing.json["change"]) == (1, None, None)


def test_services_that_are_interrupted_are_named(run, tmp_path):
    segments = [{"service": "search", "gpu": 0, "profile": "4g.24gb", "start": 0, "batch": 8, "processes": 3}]
    old = fleet(tmp_path, gpus=["A30"], segments=segments)
    pools = [{"gpu": "A30", "count": 1}]
    path = services(tmp_path, gpu=None, pools=pools, profiles=[{**table, "gpu": "A30"} for table in PROFILES])
    outcome = run("deploy", path, "--from", old)
    assert "interrupted  search\n" in outcome.out
    assert run("deploy", path, "--from", old, "--json").json["change"]["interrupted"] == ["search"]
    assert "interrupts search" in outcome.out


def test_what_cannot_run_is_refused(run, services_file, tmp_path):
    segments = [
        {"service": "chat", "gpu": 0, "profile": "2g.12gb", "start": 0, "batch": 2, "processes": 1},
        {"service": "chat", "gpu": 0, "profile": "1g.6gb", "start": 1, "batch": 2, "processes": 1},
    ]
    old = fleet(tmp_path, "old.json", segments=segments)
    refuses(run("deploy", services_file, "--from", old), f"error: {old}\n  segments[1]: 1g.6gb@1 of GPU 0")
    refuses(run("deploy", services_file, "--from", tmp_path / "nix.json"), "nix.json: no such file")
    refuses(
        run("deploy", services_file, "--from", services_file), "this is a file of services", "a deployment is wanted"
    )
    assert json.loads(services_file.read_text()) == SERVICES
    refuses(run("deploy", services_file, "--from", fleet(tmp_path), "-o", fleet(tmp_path)), "is read as well")


def test_a_wrong_rule_does_not_hide_other_problems(run):
    outcome = run("deploy", "parvagpu-s9", "--slo-share", 3)
    refuses(outcome, "--slo-share: must be a share of the SLO", "parvagpu-s9")
    outcome = run("deploy", "parvagpu-s1", "--slo-share", 3, "--profiles", "nowhere.json")
    refuses(outcome, "--slo-share: must be a share of the SLO", "nowhere.json")


def test_only_one_service_changes(run, tmp_path):
    old = fleet(tmp_path)
    path = services(tmp_path, services=[{**CHAT, "rate": 11.0}, {**SEARCH, "rate": 190.0}])
    target = tmp_path / "new.json"
    outcome = run("deploy", path, "--from", old, "--only", "search", "-o", target)
    assert (outcome.code, outcome.err) == (0, "")
    assert "method         parvagpu\n" in outcome.out
    assert "\nkept         " in outcome.out
    before, after = read_deployment(old, demand=read_demand(path)), read_deployment(target)
    changed = {segment.identity for segment in before.segments} ^ {segment.identity for segment in after.segments}
    assert {service for service, *_ in changed} == {"search"}
    assert run("validate", path, target).code == 0
    script = run("deploy", path, "--from", old, "--only", "search", "--only", "chat", "--export", "nvidia-smi")
    assert (script.code, script.out[:2]) == (0, "#!")


def test_what_else_would_have_to_change_is_refused(run, tmp_path):
    old = fleet(tmp_path)
    path = services(tmp_path, services=[{**CHAT, "rate": 13.0}, {**SEARCH, "rate": 190.0}])
    refuses(
        run("deploy", path, "--from", old, "--only", "search"),
        "--only: the segments of 'chat' answer 12 requests/s together, but 13 requests/s arrive; name this service as "
        "well",
    )
    refuses(run("deploy", path, "--only", "search"), "--only: nothing is running that could stay")
    refuses(
        run("deploy", path, "--from", old, "--only", "search", "--only", "chat", "--method", "exact"),
        "--only: method 'exact' cannot leave segments where they are; parvagpu, ",
    )
    refuses(run("deploy", path, "--from", old, "--only", "serch"), "--only: there is no service 'serch'; did you mean")


def test_a_change_by_other_costs(run, tmp_path):
    path = services(tmp_path, services=[{**CHAT, "rate": 11.0}, {**SEARCH, "rate": 190.0}])
    usual, slower = (
        run("deploy", path, "--from", fleet(tmp_path), "--json", *more).json["change"]["duration_s"]
        for more in ([], ["--costs", "kubernetes"])
    )
    assert slower > 2 * usual
    refuses(run("deploy", path, "--costs", "kubernetes"), "--costs: is for the steps of --from; leave it out")
