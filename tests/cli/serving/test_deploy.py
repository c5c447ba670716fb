"""The command deploy: what it prints, what it writes and exports, and what it refuses."""

from __future__ import annotations

import io
import sys

import pytest
from command_line import method_that, refuses
from services_file import CHAT, PROFILES, SEARCH, fleet, services, written

from mig_opt.api.deploy import deploy
from mig_opt.cli.serving.exporting import FORMATS
from mig_opt.files.serving.demands import read_demand
from mig_opt.files.serving.deployments import (
    deployment_from_json,
    deployment_to_csv,
    deployment_to_json,
    read_deployment,
)
from mig_opt.heuristics.serving.fill import first_fit
from mig_opt.instances.bundled import load_demand
from mig_opt.operations.rollout import deployment_script, kubernetes_resources, mig_parted_config
from mig_opt.validation import validate_deployment


@pytest.fixture
def services_file(tmp_path):
    return services(tmp_path)


# --- what is printed -------------------------------------------------------------------------------------------------


def test_deploy_prints_card_fleet_and_services(run, services_file):
    outcome = run("deploy", services_file)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    for line in (
        "services       services (2 services)",
        "fleet          A30-24GB, as many as it takes",
        "status         optimal",
        "method         exact",
        "GPUs           1",
        "slices         4 of 4 compute slices",
        "fragmentation  0.0% external",
        # Two slices for 10 of 12 requests per second of chat, two for 90 of 100 of search.
        "slack          13.3% internal",
        "proven         fewest GPUs, then fewest compute slices",
    ):
        assert line in lines
    assert any(line.startswith("lower bound    1 GPU: ") for line in lines)
    assert "0    2g.12gb@0  chat         2      1   12.0      0.150" in lines
    # One 2g or two 1g: as many slices.
    assert any(line.startswith("search    90.0 ") and line.endswith(" 0.100") for line in lines)


def test_the_services_are_those_of_the_deployment(run, services_file, tmp_path):
    path = tmp_path / "fleet.json"
    out = run("deploy", services_file, "-o", path).out
    deployment = read_deployment(path)
    for service in read_demand(services_file).services:
        given = deployment.throughput(service.name)
        row = next(line.split() for line in out.splitlines() if line.startswith(service.name))
        held = [segment for segment in deployment.segments if segment.service == service.name]
        worst = max(segment.latency for segment in held)
        slack = 100 * (1 - service.rate / given)
        figures = [f"{service.rate:.1f}", f"{given:.1f}", f"{slack:.1f}", str(len(held)), f"{worst:.3f}"]
        assert row[1:] == [*figures, f"{service.slo / 2:.3f}"]


def test_json_has_the_keys_of_the_contract(run):
    outcome = run("deploy", "parvagpu-s2", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    shares = ["external_fragmentation", "internal_slack"]
    keys = ["status", "method", "gpus", "lower_bound", "compute_slices", *shares, "runtime_s", "deployment"]
    assert list(outcome.json) == keys
    assert [outcome.json[key] for key in keys[:4]] == ["optimal", "exact", 3, 3]
    deployment = outcome.json["deployment"]
    found = deployment_from_json(outcome.out)
    measured = found.external_fragmentation, found.internal_slack(load_demand("parvagpu-s2"))
    assert [outcome.json[key] for key in shares] == pytest.approx(measured)
    assert len({segment["gpu"] for segment in deployment["segments"]}) == 3


def test_json_is_a_deployment_file_as_well(run, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(run("deploy", "parvagpu-s1", "--json").out)
    assert validate_deployment(load_demand("parvagpu-s1"), read_deployment(path)).valid
    assert run("validate", "parvagpu-s1", path).code == 0


def test_quiet_shows_the_card_only(run, services_file):
    out = run("deploy", services_file, "-q").out
    assert "status" in out
    assert "2g.12gb@0" not in out


def test_options_reach_the_method(run, monkeypatch):
    given = {}
    original = deploy

    def recording(demand, method, **more):
        given.update(more, method=method, demand=demand)
        return original(demand, method, **more)

    monkeypatch.setattr("mig_opt.api.deploy.deploy", recording)
    options = ("--method", "search", "--time-limit", 5, "--seed", 7, "--slo-share", 0.45, "--whole-ms")
    assert run("deploy", "parvagpu-s1", *options, "--max-processes", 2).code == 0
    demand = given.pop("demand")
    assert given == {"method": "search", "time_limit": 5.0, "seed": 7, "running": None, "only": None, "initial": None}
    assert (demand.rule.share, demand.rule.whole_ms, demand.max_processes) == (0.45, True, 2)
    run("deploy", "parvagpu-s1")
    assert given["time_limit"] == 60.0
    run("deploy", "parvagpu-s1", "--method", "first-fit", "--no-whole-ms")
    assert given["time_limit"] is None
    assert not given["demand"].rule.whole_ms


@pytest.mark.parametrize(("options", "told"), [([], True), (["--time-limit", 5], False)])
def test_a_run_that_is_cut_short_says_how_to_go_on(run, monkeypatch, options, told):
    method_that(monkeypatch, first_fit)
    monkeypatch.setattr("mig_opt.cli.outcome.DEFAULT_TIME_LIMIT", 1e-9)
    outcome = run("deploy", "parvagpu-s2", "-q", *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert "status         feasible" in outcome.out
    assert ("Stopped after the default of 1e-09 s; --time-limit S allows for more." in outcome.out) == told


# --- inputs ----------------------------------------------------------------------------------------------------------


def test_profiles_of_files_and_folders_take_the_place_of_those_in_the_file(run, tmp_path):
    slower = [{**PROFILES[0], "points": [{**PROFILES[0]["points"][0], "throughput": 25.0}]}]
    folder = tmp_path / "profiles"
    folder.mkdir()
    written(folder, "bert.json", {"schema": "mig-opt/profiles/1", "gpu": "A30", "profiles": slower})
    gpt = tmp_path / "gpt.csv"
    gpt.write_text("Mig instance,Batch size,Workload Number,Throughput,Latency\n2,2,1,12,0.15\n")
    bare = services(tmp_path, profiles=None)
    outcome = run("deploy", bare, "--profiles", folder, "--profiles", gpt, "--json")
    assert outcome.code == 0, outcome.err
    served = [segment["service"] for segment in outcome.json["deployment"]["segments"]]
    assert served.count("search") == 4
    own = run("deploy", services(tmp_path), "--profiles", folder, "--json")
    assert [segment["service"] for segment in own.json["deployment"]["segments"]].count("search") == 4


def test_services_as_csv(run, tmp_path):
    table = tmp_path / "services.csv"
    table.write_text("service,model,slo_s,rate_rps,scenario\nchat,gpt,0.5,10,day\nsearch,bert,0.2,90,night\n")
    profiles = written(tmp_path, "profiles.json", {"schema": "mig-opt/profiles/1", "gpu": "A30", "profiles": PROFILES})
    outcome = run("deploy", table, "--gpu", "A30", "--profiles", profiles, "--scenario", "night", "--json")
    assert outcome.code == 0, outcome.err
    assert {segment["service"] for segment in outcome.json["deployment"]["segments"]} == {"search"}
    refuses(run("deploy", table, "--gpu", "A30", "--profiles", profiles), "choose one", "--scenario day")
    refuses(run("deploy", table), "--gpu: a CSV file does not name its GPU", "--profiles: a CSV file holds no profile")


def test_services_from_standard_input(run, services_file, tmp_path, monkeypatch):
    for command in (("deploy", "-", "-q"), ("bound", "-"), ("validate", "-", fleet(tmp_path))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(services_file.read_bytes())))
        outcome = run(*command)
        assert (outcome.code, outcome.err) == (0, "")
        assert "standard input (2 services)" in outcome.out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    refuses(run("deploy", "-"), "error: standard input: is empty")


def test_gpu_in_place_of_those_in_the_file(run, tmp_path):
    pools = [{"gpu": "A30", "count": 1}, {"gpu": "A100-80GB", "count": 2}]
    profiles = [{**table, "gpu": gpu} for table in PROFILES for gpu in ("A30-24GB", "A100-80GB")]
    path = services(tmp_path, gpu=None, pools=pools, profiles=profiles)
    assert "fleet          1 x A30-24GB; 2 x A100-80GB" in run("deploy", path).out
    assert "fleet          A100-80GB, as many as it takes" in run("deploy", path, "--gpu", "A100-80GB").out
    refuses(run("deploy", "parvagpu-s1", "--gpu", "H100"), "none is for H100-80GB; they are for A100-80GB")


def test_everything_that_is_wrong_is_named_at_once(run, tmp_path):
    path = services(tmp_path, services=[{**CHAT, "rate": -1}, {**SEARCH, "slo": "x"}, {**CHAT, "model": "gbt"}])
    outcome = run("deploy", path, "--method", "exat", "--time-limit", 0, "--export", "yml", "-o", tmp_path / "no" / "x")
    refuses(
        outcome,
        "--method: unknown method 'exat'; did you mean exact",
        "--time-limit: must be",
        "--export: unknown format 'yml'",
        "services[0].rate: must be",
        "services[1].slo: must be",
        "services[2].model: no profile table for 'gbt'",
        "there is no folder",
    )
    outcome = run("deploy", "parvagpu-s1", "--gpu", "A31", "--slo-share", 2, "--max-processes", 0, "--seed", -1)
    refuses(outcome, "--gpu: unknown GPU 'A31'", "--slo-share: must be", "--max-processes: must be", "--seed: must be")


def test_problems_of_profiles_do_not_bring_others(run, tmp_path):
    table = {**PROFILES[0], "points": [{**PROFILES[0]["points"][0], "batch": 0}]}
    bad = written(tmp_path, "bad.json", {"schema": "mig-opt/profiles/1", "gpu": "A30", "profiles": [table]})
    bare = services(tmp_path, profiles=None, services=[CHAT, {**SEARCH, "rate": 0}])
    outcome = run("deploy", bare, "--profiles", bad)
    refuses(outcome, "profiles[0].points[0].batch: must be", "services[1].rate: must be")
    assert "missing" not in outcome.err


def test_the_same_table_twice_names_both_files(run, tmp_path):
    content = {"schema": "mig-opt/profiles/1", "gpu": "A30", "profiles": PROFILES}
    one, two = written(tmp_path, "one.json", content), written(tmp_path, "two.json", content)
    outcome = run("deploy", services(tmp_path), "--profiles", one, "--profiles", two)
    refuses(outcome, f"{two}: has a table of 'bert' on A30-24GB, as {one} has")


def test_what_is_no_demand(run, batch_file):
    refuses(
        run("deploy", "rodinia-a30"), "is a batch of tasks, not a demand of services; its command is: mig-opt solve"
    )
    refuses(run("deploy", batch_file), "but a file of services is wanted", "its command is: mig-opt solve")
    refuses(run("deploy", "parvagpu-s9"), "no bundled demand of that name; did you mean parvagpu-s")
    refuses(run("deploy", "nowhere.json"), "error: nowhere.json: no such file\n")
    refuses(run("deploy", "parvagpu-s1", "--scenario", "S1"), "--scenario: parvagpu-s1 is no CSV file")


def test_a_file_of_services_is_not_solved(run, services_file):
    refuses(run("solve", services_file), "but a batch is wanted", "its command is: mig-opt deploy")


def test_a_demand_for_too_many_segments(run, tmp_path):
    path = services(tmp_path, services=[CHAT, {**SEARCH, "rate": 1e12}])
    refuses(run("deploy", path), f"error: {path}\n  services[1].rate: needs at least 5e+09 segments")


# --- no deployment ---------------------------------------------------------------------------------------------------


def test_a_service_that_cannot_be_served_in_time(run, tmp_path):
    path = services(tmp_path, services=[{**CHAT, "slo": 0.1}, SEARCH])
    reason = (
        "service 'chat' needs a latency of at most 0.05 s (0.5 of its SLO of 0.1 s); the best is 0.15 s, on 2g.12gb"
    )
    outcome = run("deploy", path, "-o", tmp_path / "fleet.json", "--plot", tmp_path / "fleet.png")
    assert (outcome.code, outcome.err) == (1, "")
    assert "status    infeasible\n" in outcome.out
    assert reason in " ".join(outcome.out.split())
    assert f"There is no deployment to write to {tmp_path / 'fleet.json'}." in outcome.out
    assert f"There is no deployment to draw in {tmp_path / 'fleet.png'}." in outcome.out
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    as_json = run("deploy", path, "--json")
    assert (as_json.code, as_json.json["status"], as_json.json["deployment"]) == (1, "infeasible", None)
    assert as_json.err == f"infeasible:\n  {reason}\n"
    for form in FORMATS:
        exported = run("deploy", path, "--export", form)
        assert (exported.code, exported.out, exported.err) == (1, "", as_json.err)


def test_pools_that_are_too_small(run, tmp_path):
    many = [{**SEARCH, "name": f"s{index}", "rate": 200.0} for index in range(3)]
    path = services(tmp_path, gpu=None, pools=[{"gpu": "A30", "count": 2}], services=many)
    for method in ("exact", "parvagpu"):
        outcome = run("deploy", path, "--method", method)
        assert (outcome.code, outcome.err) == (1, "")
        assert "the services need at least 3 GPUs" in outcome.out
        assert "there are 2 A30-24GB" in " ".join(outcome.out.split())


def test_a_heuristic_that_finds_nothing_says_who_can_tell(run, services_file, monkeypatch):
    method_that(monkeypatch, lambda demand, control: None)
    outcome = run("deploy", services_file, "--method", "first-fit")
    hint = "first-fit finds no deployment; that there is none, only --method exact can tell."
    assert (outcome.code, outcome.err) == (1, "")
    assert "status       no solution" in outcome.out
    assert hint in outcome.out
    piped = run("deploy", services_file, "--method", "first-fit", "--export", "csv")
    assert (piped.code, piped.out, piped.err) == (1, "", f"no deployment was found\n{hint}\n")


def test_ctrl_c_keeps_the_best_deployment(run, services_file, tmp_path, monkeypatch):
    def interrupted(demand, control):
        first_fit(demand, control)
        raise KeyboardInterrupt

    method_that(monkeypatch, interrupted)
    path = tmp_path / "kept.json"
    outcome = run("deploy", services_file, "-o", path, "--from", fleet(tmp_path))
    assert (outcome.code, outcome.err) == (130, "")
    assert "status         interrupted" in outcome.out
    assert "Change\n" in outcome.out
    assert validate_deployment(read_demand(services_file), read_deployment(path)).valid
    as_json = run("deploy", services_file, "--json")
    assert (as_json.code, as_json.json["status"]) == (130, "interrupted")
    assert as_json.json["deployment"]["segments"]


# --- files and exports -----------------------------------------------------------------------------------------------


def test_the_deployment_as_a_file(run, services_file, tmp_path):
    paths = tmp_path / "fleet.json", tmp_path / "fleet.csv"
    for path in paths:
        outcome = run("deploy", services_file, "-o", path)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.endswith(f"Deployment written to {path}.\n")
    deployment = read_deployment(paths[0])
    assert validate_deployment(read_demand(services_file), deployment).valid
    assert paths[1].read_text() == deployment_to_csv(deployment)


def test_a_chart(run, services_file, tmp_path):
    chart = tmp_path / "fleet.svg"
    outcome = run("deploy", services_file, "--plot", chart)
    assert outcome.out.endswith(f"\nChart written to {chart}.\n")
    assert 'id="segment:0"' in chart.read_text()
    assert run("deploy", services_file, "--plot", chart, "--json").json["gpus"] == 1
    refuses(run("deploy", services_file, "--plot", tmp_path / "x.gif"), "charts are written as")


@pytest.mark.deep
def test_exports_are_those_of_the_library(run, tmp_path):
    path = tmp_path / "fleet.json"
    run("deploy", "parvagpu-s1", "-o", path)
    deployment = read_deployment(path)
    expected = {
        "json": (deployment_to_json(deployment), ()),
        "csv": (deployment_to_csv(deployment), ()),
        "mig-parted": (str(config := mig_parted_config(deployment)), config.remarks),
        "nvidia-smi": (deployment_script(deployment), ()),
        "kubernetes": (str(resources := kubernetes_resources(deployment)), resources.remarks),
    }
    assert set(expected) == set(FORMATS)
    assert config.remarks
    for form, (text, remarks) in expected.items():
        said = "".join(f"note: {remark}\n" for remark in remarks)
        assert run("deploy", "parvagpu-s1", "--export", form) == (0, text, said)
        target = tmp_path / f"exported-{form}"
        outcome = run("deploy", "parvagpu-s1", "--export", form, "-o", target)
        assert (outcome.code, outcome.err, target.read_text()) == (0, said, text)
        assert outcome.out.endswith(f"Deployment written to {target} for {form}.\n")


def test_an_export_beside_json_needs_a_file(run, services_file, tmp_path):
    refuses(run("deploy", services_file, "--export", "csv", "--json"), "--json: standard output is for the export")
    outcome = run("deploy", services_file, "--export", "csv", "--json", "-o", tmp_path / "fleet.csv")
    assert (outcome.code, outcome.json["gpus"]) == (0, 1)
    assert (tmp_path / "fleet.csv").read_text().startswith("gpu,kind,service")


def test_devices_of_exports(run, services_file, tmp_path):
    outcome = run("deploy", services_file, "--export", "nvidia-smi", "--devices", "node-2/3")
    assert "GPUS=(node-2/3)\n" in outcome.out
    target = tmp_path / "x.sh"
    refuses(run("deploy", services_file, "--devices", "0"), "--devices: is for --export mig-parted, nvidia-smi, kub")
    refuses(run("deploy", services_file, "--export", "nvidia-smi", "--devices", "0,0"), "--devices[1]: '0' is")
    refuses(run("deploy", services_file, "--export", "nvidia-smi", "--devices", "0,1", "-o", target), "devices: ")
    assert not target.exists()


def test_names_that_no_script_can_hold(run, tmp_path):
    path = services(tmp_path, services=[CHAT, {**SEARCH, "name": "nul\0", "rate": 900.0}])
    outcome = run("deploy", path, "--export", "nvidia-smi", "-o", tmp_path / "x.sh")
    refuses(outcome, f"error: {path}\n  services[1].name: has a character that no program can be given")
    assert outcome.err.count("has a character") == 1
    assert run("deploy", path, "--export", "csv").code == 0
    segments = [
        {"service": "\0", "gpu": 0, "profile": "1g.6gb", "start": at, "batch": 1, "processes": 1} for at in (0, 1)
    ]
    old = fleet(tmp_path, "old.json", segments=segments)
    outcome = run("deploy", services(tmp_path), "--from", old, "--export", "nvidia-smi")
    refuses(outcome, f"error: {old}\n  segments[0].service: has a character")
    assert outcome.err.count("has a character") == 1
