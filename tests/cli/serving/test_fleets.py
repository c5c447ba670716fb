"""The commands validate, bound and plot for services, and how they tell services from batches."""

from command_line import refuses
from services_file import CHAT, PROFILES, SEARCH, fleet, services, written

# --- validate --------------------------------------------------------------------------------------------------------


def test_validate_with_the_rule_of_deploy(run, tmp_path):
    services_file, path = services(tmp_path), fleet(tmp_path)
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


# --- serve and export ------------------------------------------------------------------------------------------------


def test_bursts_and_starts_that_would_not_be_simulated_are_refused(run, tmp_path):
    outcome = run("serve", fleet(tmp_path), "--services", services(tmp_path), "--burst", "3,10%,1", "--start-up", 5)
    refuses(outcome, "--burst: is for --arrivals bursty; give that", "--start-up: is for --from; give OLD")


def test_the_usage_of_an_export_can_be_pasted(run, tmp_path):
    outcome = run("services", "export", services(tmp_path), fleet(tmp_path), tmp_path / "a b", "--format", "haproxy")
    assert f"Usage: cd '{tmp_path}/a b' && haproxy -f haproxy.cfg\n" in outcome.err + outcome.out


# --- services or a batch ---------------------------------------------------------------------------------------------


def test_services_in_a_table_are_told_from_tasks(run, batch_file, tmp_path):
    profiles = written(tmp_path, "profiles.json", {"schema": "mig-opt/profiles/1", "gpu": "A30", "profiles": PROFILES})
    table = tmp_path / "services.csv"
    table.write_text("\nmodel,rate_rps,slo_ms\nbert,90,200\n")
    assert "lower bound  1 GPU\n" in run("bound", table, "--gpu", "A30", "--profiles", profiles).out
    tasks = tmp_path / "tasks.csv"
    tasks.write_text("task,t1_s\na,2.5\n")
    assert "lower bound  2.610 s" in run("bound", tasks, "--gpu", "A30").out
