"""The commands validate, bound and plot for services, and how they tell services from batches."""

from __future__ import annotations

import json

import pytest
from command_line import Outcome, refuses
from services_file import CHAT, PROFILES, SEARCH, fleet, services, written

from mig_opt.files.serving.demands import read_demand
from mig_opt.files.serving.deployments import read_deployment
from mig_opt.instances.bundled import load_demand
from mig_opt.serving.bounds import fleet_bounds
from mig_opt.validation import validate_deployment


@pytest.fixture
def services_file(tmp_path):
    return services(tmp_path)


def broken(tmp_path):
    """A deployment of which one segment is gone, and another is where none can be."""
    content = json.loads(fleet(tmp_path).read_text())
    del content["segments"][2]
    content["segments"][0]["start"] = 1
    return written(tmp_path, "broken.json", content)


# --- validate --------------------------------------------------------------------------------------------------------


def test_validate_a_valid_deployment(run, services_file, tmp_path):
    outcome = run("validate", services_file, fleet(tmp_path))
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert "deployment     valid" in lines
    assert "GPUs           1; 1 more without segments" in lines
    assert "search    90.0     100.0     10.0         2      0.080    0.100" in lines
    as_json = run("validate", services_file, fleet(tmp_path), "--json")
    assert as_json.code == 0
    shares = {"external_fragmentation": 0.0, "internal_slack": pytest.approx((2 * (1 - 10 / 12) + 2 * 0.1) / 4)}
    assert as_json.json == {"valid": True, "gpus": 1, **shares, "violations": []}


def test_validate_lists_every_violation(run, services_file, tmp_path):
    path = broken(tmp_path)
    demand = read_demand(services_file)
    expected = validate_deployment(demand, read_deployment(path, demand=demand)).violations
    assert {violation.code.value for violation in expected} == {"unknown-placement", "rate-not-met"}
    outcome = run("validate", services_file, path)
    assert (outcome.code, outcome.err) == (1, "")
    assert "deployment  not valid, 2 violations\n" in outcome.out
    for violation in expected:
        assert f" - {violation.path}: " in outcome.out
        assert f"({violation.code})" in outcome.out
    as_json = run("validate", services_file, path, "--json")
    assert (as_json.code, as_json.json["valid"], as_json.json["gpus"]) == (1, False, 1)
    assert as_json.json["violations"] == [
        {"code": violation.code.value, "path": violation.path, "message": violation.message} for violation in expected
    ]


def test_validate_with_the_rule_of_deploy(run, services_file, tmp_path):
    path = fleet(tmp_path)
    assert run("validate", services_file, path, "--slo-share", 0.45).code == 0
    assert run("validate", services_file, path, "--slo-share", 0.4).code == 0
    assert run("validate", services_file, path, "--slo-share", 0.4, "--whole-ms").code == 1
    assert run("validate", services_file, path, "--max-processes", 1).code == 0
    less = services(tmp_path, "less.json", services=[CHAT, {**SEARCH, "rate": 101.0}])
    assert run("validate", less, path).code == 1
    assert run("validate", less, path, "--tolerance", 0.02).code == 0
    refuses(run("validate", services_file, path, "--tolerance", "nan"), "error: --tolerance: must be")


def test_validate_what_parvagpu_published(run, tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(
        "Num instance,Num GPU,Model,Placement,Instance size,Batch size,Num proc\n"
        "0,0,bert,0,1,128,3\n0,0,resnet50,0,2,32,2\n"
    )
    outcome = run("validate", "parvagpu-s1", path, "--json")
    codes = {violation["code"] for violation in outcome.json["violations"]}
    assert (outcome.code, codes) == (1, {"instances-overlap", "rate-not-met", "unserved"})


# --- bound -----------------------------------------------------------------------------------------------------------


def test_bound(run):
    as_json = run("bound", "parvagpu-s5", "--json")
    assert (as_json.code, as_json.err) == (0, "")
    bounds = fleet_bounds(load_demand("parvagpu-s5"))
    assert as_json.json["lower_bound"] == bounds[0].gpus == 12
    assert as_json.json["bounds"] == [
        {"name": bound.name, "value": bound.gpus, "not_rounded": bound.value, "reason": bound.reason}
        for bound in bounds
    ]
    text = run("bound", "parvagpu-s5").out
    assert "lower bound  12 GPUs\n" in text
    for bound in bounds:
        assert f"{bound.name} " in text
        assert f"{bound.value:.3f}" in text


def test_bound_where_there_is_no_deployment(run, tmp_path):
    late = services(tmp_path, "late.json", services=[{**CHAT, "slo": 0.1}])
    outcome = run("bound", late)
    assert (outcome.code, outcome.err) == (1, "")
    assert "deployment  there is none\n" in outcome.out
    assert "the best is 0.15 s" in " ".join(outcome.out.split())
    as_json = run("bound", late, "--json")
    assert (as_json.code, as_json.json) == (1, {"lower_bound": None, "bounds": []})
    assert as_json.err.startswith("infeasible:\n  service 'chat' needs a latency of at most 0.05 s")
    pools = [{"gpu": "A30", "count": 2}]
    few = services(tmp_path, "few.json", gpu=None, pools=pools, services=[{**SEARCH, "rate": 600.0}])
    outcome = run("bound", few, "--json")
    assert (outcome.code, outcome.json["lower_bound"]) == (1, 3)
    assert "the services need at least 3 GPUs" in outcome.err


# --- plot ------------------------------------------------------------------------------------------------------------


def test_plot(run, services_file, tmp_path):
    chart = tmp_path / "chart.svg"
    outcome = run("plot", services_file, fleet(tmp_path), chart)
    assert outcome == Outcome(0, f"Chart written to {chart}.\n", "")
    assert 'id="segment:2"' in chart.read_text()


def test_plot_draws_what_is_not_valid_with_a_warning(run, services_file, tmp_path):
    less = services(tmp_path, "less.json", services=[CHAT, {**SEARCH, "rate": 101.0}])
    outcome = run("plot", less, fleet(tmp_path), tmp_path / "chart.png")
    assert outcome.code == 0
    assert outcome.err == "warning: the deployment is not valid (1 violation); see: mig-opt validate\n"
    assert (tmp_path / "chart.png").stat().st_size > 0
    refuses(run("plot", services_file, fleet(tmp_path), tmp_path / "c.gif"), "charts are written as")


# --- services or a batch ---------------------------------------------------------------------------------------------


def test_options_for_the_other_kind_are_refused(run, services_file, batch_file, plan_file, tmp_path):
    path = fleet(tmp_path)
    outcome = run("validate", services_file, path, "--gpus", 2, "--cost-free", "-o", tmp_path / "x.json")
    message = f"is for batches, but {services_file} has services; leave it out"
    refuses(outcome, *(f"{option}: {message}" for option in ("--gpus", "--cost-free", "-o")))
    refuses(run("plot", services_file, path, tmp_path / "x.png", "--lower-bound", 1), f"--lower-bound: {message}")
    rule = ("--slo-share", 0.5, "--no-whole-ms", "--max-processes", 3, "--scenario", "S", "--profiles", services_file)
    message = f"is for services, but {batch_file} is a batch; leave it out"
    options = ("--slo-share", "--whole-ms", "--max-processes", "--scenario", "--profiles")
    for command in (("validate", batch_file, plan_file), ("bound", batch_file)):
        refuses(run(*command, *rule), *(f"{option}: {message}" for option in options))


def test_plans_of_the_other_kind_are_refused(run, services_file, plan_file, batch_file, tmp_path):
    refuses(run("validate", services_file, plan_file), "this is a schedule", "but a deployment is wanted")
    refuses(run("validate", batch_file, fleet(tmp_path)), "this is a deployment", "but a schedule is wanted")
    refuses(run("validate", "rodinia-a30", fleet(tmp_path)), "this is a deployment", "but a schedule is wanted")


def test_a_typo_brings_no_other_complaint(run, plan_file, tmp_path):
    for plan, known in ((fleet(tmp_path), "parvagpu-s1"), (plan_file, "rodinia-a30")):
        outcome = run("validate", f"{known[:-1]}x", plan)
        refuses(outcome, f"error: {known[:-1]}x: no such file, and no bundled", f"did you mean {known[:-1]}")
        assert outcome.err.count("error") == 1
        assert run("validate", "nowhere.json", plan).err == "error: nowhere.json: no such file\n"


def test_services_in_a_table_are_told_from_tasks(run, batch_file, tmp_path):
    profiles = written(tmp_path, "profiles.json", {"schema": "mig-opt/profiles/1", "gpu": "A30", "profiles": PROFILES})
    table = tmp_path / "services.csv"
    table.write_text("\nmodel,rate_rps,slo_ms\nbert,90,200\n")
    assert "lower bound  1 GPU\n" in run("bound", table, "--gpu", "A30", "--profiles", profiles).out
    tasks = tmp_path / "tasks.csv"
    tasks.write_text("task,t1_s\na,2.5\n")
    assert "lower bound  2.610 s" in run("bound", tasks, "--gpu", "A30").out


def test_a_file_without_its_schema_is_known_by_its_keys(run, services_file):
    refuses(run("bound", services(services_file.parent, schema=None)), "schema: is missing")
