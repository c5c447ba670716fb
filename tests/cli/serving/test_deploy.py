"""The commands deploy, validate, bound and plot for services, and how they tell services from batches."""

import _thread
import time

import pytest
from command_line import method_that, refuses
from services_file import CHAT, PROFILES, SEARCH, fleet, services, written

from mig_opt import deploy
from mig_opt.api.change.greedy import greedy
from mig_opt.files.serving.demands import DEMAND
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.heuristics.serving.fill import first_fit
from mig_opt.validation import validate_deployment

ONE_GPU = {
    "gpu": None,
    "pools": [{"gpu": "A30", "count": 1}],
    "profiles": [{**table, "gpu": "A30"} for table in PROFILES],
}


@pytest.fixture
def services_file(tmp_path):
    return services(tmp_path)


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
def test_a_run_that_is_cut_short_says_how_to_go_on(run, tmp_path, monkeypatch, options, told):
    method_that(monkeypatch, first_fit)
    monkeypatch.setattr("mig_opt.cli.answers.DEFAULT_TIME_LIMIT", 1e-9)
    outcome = run("deploy", "parvagpu-s2", "-q", *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert "status         feasible" in outcome.out
    daily = run("deploy", services(tmp_path), "--rates", rates(tmp_path, "0:00,10,90", "5:00,90,10"), *options)
    for shown in (outcome, daily):
        assert ("Stopped after the default of 1e-09 s; --time-limit S allows for more." in shown.out) == told


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


def test_gpu_in_place_of_those_in_the_file(run, tmp_path):
    pools = [{"gpu": "A30", "count": 1}, {"gpu": "A100-80GB", "count": 2}]
    profiles = [{**table, "gpu": gpu} for table in PROFILES for gpu in ("A30-24GB", "A100-80GB")]
    path = services(tmp_path, gpu=None, pools=pools, profiles=profiles)
    assert "fleet          1 x A30-24GB; 2 x A100-80GB" in run("deploy", path).out
    assert "fleet          A100-80GB, as many as it takes" in run("deploy", path, "--gpu", "A100-80GB").out
    refuses(run("deploy", "parvagpu-s1", "--gpu", "H100"), "none is for H100-80GB; they are for A100-80GB")


def test_the_same_table_twice_names_both_files(run, tmp_path):
    content = {"schema": "mig-opt/profiles/1", "gpu": "A30", "profiles": PROFILES}
    one, two = written(tmp_path, "one.json", content), written(tmp_path, "two.json", content)
    outcome = run("deploy", services(tmp_path), "--profiles", one, "--profiles", two)
    refuses(outcome, f"{two}: has a table of 'bert' on A30-24GB, as {one} has")


def test_a_heuristic_that_finds_nothing_says_who_can_tell(run, services_file, monkeypatch):
    method_that(monkeypatch, lambda demand, control: None)
    outcome = run("deploy", services_file, "--method", "first-fit")
    hint = "first-fit finds no deployment; that there is none, only --method exact can tell."
    assert (outcome.code, outcome.err, hint in outcome.out) == (1, "", True)
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
    assert validate_deployment(DEMAND.read(services_file), DEPLOYMENT.read(path)).valid
    as_json = run("deploy", services_file, "--json")
    assert (as_json.code, as_json.json["status"]) == (130, "interrupted")
    assert as_json.json["deployment"]["segments"]


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
    assert DEPLOYMENT.read(tmp_path / "new.json").segments


def test_services_that_are_interrupted_are_named(run, tmp_path):
    segments = [{"service": "search", "gpu": 0, "profile": "4g.24gb", "start": 0, "batch": 8, "processes": 3}]
    old = fleet(tmp_path, gpus=["A30"], segments=segments)
    path = services(tmp_path, **ONE_GPU)
    outcome = run("deploy", path, "--from", old)
    assert "interrupted  search\n" in outcome.out
    assert run("deploy", path, "--from", old, "--json").json["change"]["interrupted"] == ["search"]
    assert "interrupts search" in outcome.out


def rates(folder, *rows):
    path = folder / "rates.csv"
    path.write_text("\n".join(["time,chat,search", *rows, "10:00", ""]))
    return path


def test_a_time_that_cannot_be_served_is_named(run, tmp_path):
    outcome = run("deploy", services(tmp_path, **ONE_GPU), "--rates", rates(tmp_path, "0:00,10,90", "8:30,10,900"))
    assert (outcome.code, "at 8:30: " in outcome.err) == (1, True)


def test_each_step_has_a_file_of_its_own(run, services_file, tmp_path):
    run("deploy", services_file, "--rates", rates(tmp_path, "0,10,90", "1e-4,0,90", "5:00,10,0"), "-o", tmp_path / "d")
    assert {path.name for path in (tmp_path / "d").iterdir()} == {"00-00.json", "00-00-step-1.json", "05-00.json"}


def test_ctrl_c_is_not_called_a_lack_of_time(run, services_file, tmp_path, monkeypatch):
    def press(*rest, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("mig_opt.api.deploy.days.serving_alone", press)
    monkeypatch.chdir(tmp_path)
    outcome = run("deploy", services_file, "--rates", rates(tmp_path, "0:00,10,90"), "-o", "day")
    assert (outcome.code, outcome.err) == (130, "")
    assert "status    interrupted" in outcome.out
    assert "There is no plan to write to day." in outcome.out


def test_headroom_raises_the_rates_of_all_steps(run, services_file, tmp_path):
    daily = ("deploy", services_file, "--rates", rates(tmp_path, "0:00,10,100", "5:00,10,90"))
    assert [step["fewest_gpus"] for step in run(*daily, "--json").json["steps"]] == [1, 1]
    raised = run(*daily, "--headroom", "20%", "--json").json
    assert [step["fewest_gpus"] for step in raised["steps"]] == [2, 1]
    assert "margin       5.0" in run(*daily, "--margin", "2%", "--headroom", "2.9412%", "-q").out


UNKEPT = (
    "no instance keeps 90 % of the requests of 'chat' in time, at any rate",
    "'search' in time, at any rate: at best 0 % are, on 1g.6gb, where a batch of 8 takes 0.8 s",
    "what can be kept: an SLO of 0.8 s",
)


@pytest.mark.parametrize(
    ("processes", "throughput", "method", "texts"),
    [(1, 10, "exact", UNKEPT), (2, 100, "parvagpu-single", ("at most 1 may share an instance",))],
)
def test_why_a_promise_is_not_kept_is_told(run, tmp_path, processes, throughput, method, texts):
    """Exit code 1, and for every service what could be kept; with rates over time as well."""
    point = {"size": 1, "batch": 8, "processes": processes, "throughput": throughput, "latency": 0.08}
    asked = [{"name": name, "model": "a", "slo": 0.2, "rate": 7} for name in ("chat", "search")]
    path = services(tmp_path, services=asked, profiles=[{"model": "a", "points": [point]}])
    promised = ("deploy", path, "--promise", "90%", "--method", method)
    daily = ("--rates", rates(tmp_path, "0:00,7,1"))
    shown, document, day = (run(*promised, *more) for more in ((), ("--json",), daily))
    assert (shown.code, document.code, day.code) == (1, 1, 1)
    for told in (" ".join(shown.out.split()), document.err, day.err):
        assert all(text in told for text in texts)
    point["itl"], asked[1]["slo_itl"] = 0.01, 0.1
    services(tmp_path, services=asked, profiles=[{"model": "a", "points": [point]}])
    refuses(run(*promised), f"error: {path}\n  services[1]: 'search' has SLOs on tokens")


def test_demands_that_no_deployment_or_script_can_hold(run, tmp_path):
    path = services(tmp_path, services=[CHAT, {**SEARCH, "rate": 1e12}])
    refuses(run("deploy", path), f"error: {path}\n  services[1].rate: needs at least 5e+09 segments")
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


def test_rates_may_be_missed_by_the_tolerance(run, tmp_path):
    less, path = services(tmp_path, services=[CHAT, {**SEARCH, "rate": 101.0}]), fleet(tmp_path)
    assert run("validate", less, path).code == 1
    assert run("validate", less, path, "--tolerance", 0.02).code == 0
