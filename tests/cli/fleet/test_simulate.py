"""mig-opt simulate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command, called, refuses

from mig_opt import Job, Trace, declare_times, get_gpu
from mig_opt.files.fleet.traces import write_trace
from mig_opt.fleet.declared_times import declared_error
from mig_opt.method.registry import get_policy
from mig_opt.simulation import simulate


@pytest.fixture
def mig_opt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_trace(trace(), tmp_path / "t.json")
    return lambda *arguments: called(capsys, "simulate", *arguments)


def trace(*more: Job) -> Trace:
    """Two jobs that cannot run at once on one GPU, the second one a second later."""
    return Trace((Job("a", 0.0, {7: 10.0}, "7g.40gb"), Job("b", 1.0, {4: 5.0}, "4g.20gb"), *more), get_gpu("A100"))


def test_policies_are_compared_in_a_table(mig_opt: Command) -> None:
    code, out, err = mig_opt("t.json")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for name in ("fragmentation-aware", "first-fit", "best-fit", "load-balancing", "lower bound"):
        assert f"\n{name} " in out
    assert "1 x A100-40GB" in out


def test_json_has_the_metrics_of_the_library(mig_opt: Command) -> None:
    document = mig_opt("t.json", "--policy", "first-fit", "--json").json
    expected = simulate(trace(), "first-fit").metrics
    (found,) = document["policies"]
    assert (found["policy"], found["unfinished"]) == ("first-fit", [])
    assert found["makespan"] == pytest.approx(expected.makespan)
    assert found["wait"]["mean"] == pytest.approx(expected.wait.mean)
    assert document["lower_bounds"]["makespan"] <= found["makespan"]
    assert document["lower_bounds"]["mean_completion"] <= found["completion"]["mean"]


def test_more_gpus_than_the_trace_names(mig_opt: Command) -> None:
    one, two = (mig_opt("t.json", "--policy", "first-fit", "--gpus", gpus, "--json").json for gpus in (1, 2))
    assert two["policies"][0]["makespan"] < one["policies"][0]["makespan"]


def test_schedulers_are_told_other_run_times(mig_opt: Command) -> None:
    arguments = ("t.json", "--policy", "first-fit", "--declared", "1", "--seed", "3")
    code, out, err = mig_opt(*arguments)
    assert (code, err) == (0, "")
    assert "declared  run times, on the median wrong by a factor of" in out
    told = declare_times(trace(), 1.0, seed=3)
    document = mig_opt(*arguments, "--json").json
    assert document["declared_error"] == pytest.approx(declared_error(told))
    assert document["policies"][0]["makespan"] == pytest.approx(simulate(told, "first-fit").metrics.makespan)
    assert "declared_error" not in mig_opt("t.json", "--policy", "first-fit", "--json").json


def test_the_way_to_tell_run_times_is_checked(mig_opt: Command) -> None:
    wanted = "--declared: must be a number from 0 to 5, or one of classes, one, is"
    refuses(mig_opt("t.json", "--declared", "clases", "--seed", -1), f"{wanted} 'clases'", "--seed: must be from 0 to")
    refuses(mig_opt("t.json", "--declared", "7"), f"{wanted} 7")
    refuses(mig_opt("t.json", "--seed", 3), "--seed: is for --declared; leave it out")


def test_jobs_left_waiting_are_named_and_the_answer_is_no(mig_opt: Command, tmp_path: Path) -> None:
    """The default partition of `static` has no 7g."""
    waiting = simulate(trace(), "static").unfinished
    code, out, _ = mig_opt("t.json", "--policy", "static")
    assert code == (1 if waiting else 0)
    assert waiting
    assert f"static leaves {len(waiting)} job" in out


def test_everything_wrong_is_told_at_once(mig_opt: Command) -> None:
    refuses(
        mig_opt("none.json", "--policy", "first-fit,bestfit"),
        "--policy: unknown policy 'bestfit'; did you mean best-fit",
        "none.json: no such file",
    )
    refuses(mig_opt("t.json", "--policy", ","), "--policy: names no policy")
    # What is wrong with one policy hides nothing of the others.
    refuses(
        mig_opt("t.json", "--policy", "bestfit,static:partition=5", "--policy", "static:partition=8"),
        "--policy: unknown policy 'bestfit'; did you mean best-fit",
        "--policy static:partition=5: A100-40GB has no partition '5'",
        "--policy static:partition=8: A100-40GB has no partition '8'",
    )


def test_policies_may_have_an_option_each(mig_opt: Command) -> None:
    found = mig_opt("t.json", "--policy", "best-fit", "--policy", "first-fit:backfill=true,best-fit", "--json").json
    assert [entry["label"] for entry in found["policies"]] == ["best-fit", "first-fit:backfill=true"]


def test_very_long_times_keep_the_table_narrow(mig_opt: Command) -> None:
    write_trace(Trace((Job("a", 1e300, {1: 1e300}, "1g.5gb"),), get_gpu("A100"), name="one"), "one.json")
    lines = mig_opt("one.json", "--policy", "first-fit").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if line.startswith("first-fit")).split()[3:5] == ["1.0000e+300", "2.0000e+300"]


def test_who_does_no_job_has_no_means(mig_opt: Command) -> None:
    write_trace(Trace((Job("a", 0.0, {1: 5.0}, "1g.5gb"),), get_gpu("A100"), name="one"), "one.json")
    code, out, _ = mig_opt("one.json", "--policy", "static:partition=7")
    assert code == 1
    line = next(line for line in out.splitlines() if line.startswith("static"))
    assert line.split() == ["static:partition=7", "0", "-", "-", "-", "0.0", "0.0", "0"]


def test_policies_with_options_side_by_side(mig_opt: Command) -> None:
    policies = "static:partition=7,static:partition=4+3,static:partition=4+3:backfill=true,static:partition=4+3"
    found = mig_opt("t.json", "--policy", policies, "--json").json["policies"]
    assert [entry["label"] for entry in found] == policies.split(",")[:3]
    assert [entry["policy"] for entry in found] == ["static"] * 3
    assert found[0]["options"] == {"partition": "7"}
    assert found[2]["options"] == {"partition": "4+3", "backfill": True}
    for entry in found:
        assert entry["unfinished"] == list(simulate(trace(), "static", **entry["options"]).unfinished)


def test_a_partition_for_each_gpu(mig_opt: Command) -> None:
    found = mig_opt("t.json", "--gpus", "2", "--policy", "static:partition=7/4+3", "--json").json["policies"][0]
    assert (found["options"], found["label"]) == ({"partition": ["7", "4+3"]}, "static:partition=7/4+3")
    assert found["unfinished"] == []


def test_numbers_and_switches(mig_opt: Command) -> None:
    policy = "fragmentation-aware:threshold=0.25:migration=False"
    (found,) = mig_opt("t.json", "--policy", policy, "--json").json["policies"]
    assert found["options"] == {"threshold": 0.25, "migration": False}
    _, out, _ = mig_opt("t.json", "--policy", policy)
    for line in ("\nfragmentation-aware ", "\n :threshold=0.25 ", "\n :migration=false "):
        assert line in out or line.rstrip() + "\n" in out


def test_an_option_that_may_be_none(mig_opt: Command) -> None:
    (found,) = mig_opt("t.json", "--policy", "pcie-aware:delay_threshold=None", "--json").json["policies"]
    assert (found["options"], found["label"]) == ({"delay_threshold": None}, "pcie-aware:delay_threshold=none")


def test_long_labels_in_a_narrow_terminal(mig_opt: Command) -> None:
    """A line of a label has 20 characters; then the tables have 80 columns at the most."""
    options = "load_balancing=false:dynamic_partitioning=false:threshold=0.123456789012345"
    policies = f"static:partition=4+3/4+3/4+2+1/2+2+3,static:backfill=true,fragmentation-aware:{options}"
    lines = mig_opt("t.json", "--gpus", "4", "--policy", policies).out.splitlines()
    assert max(map(len, lines)) <= 80
    start = next(index for index, line in enumerate(lines) if line.startswith("static"))
    assert [line[:20].rstrip() for line in lines[start : start + 11]] == [
        "static",
        " :partition=4+3/4+3/",
        "  4+2+1/2+2+3",
        "static:backfill=true",
        "fragmentation-aware",
        " :load_balancing=",
        "  false",
        " :dynamic_",
        "  partitioning=false",
        " :threshold=",
        "  0.123456789012345",
    ]


def test_wrong_options_are_told_at_once(mig_opt: Command) -> None:
    wrong = (
        "static:backfil=1:partition=3+4:x,fragmentation-aware:threshold=2:migration=1,first-fit:backfill=1:backfill=2"
    )
    refuses(
        mig_opt("none.json", "--policy", wrong, "--time-limit", "0", "--plot", "a.gif"),
        "--policy static:x: must be OPTION=VALUE, like static:backfill=true",
        "--policy static:backfil=1: is no option of the policy 'static'; did you mean backfill?",
        "--policy fragmentation-aware:threshold=2: must be a share from 0 to 1",
        "--policy fragmentation-aware:migration=1: must be True or False, is 1 (int)",
        "--policy first-fit:backfill=2: backfill is set more than once; keep one",
        "--time-limit: must be a finite number of seconds > 0",
        "a.gif: charts are written as",
        "none.json: no such file",
    )


def test_options_that_do_not_do_for_the_trace(mig_opt: Command) -> None:
    """They are found before anything is simulated."""
    policies = "static:partition=5,static:partition=3+4,static:partition=4+3/7"
    refuses(
        mig_opt("t.json", "--policy", policies, "--plot", "t.png"),
        "--policy static:partition=5: A100-40GB has no partition '5'; choose one of 7, 4+3, 4+2+1, ",
        "--policy static:partition=3+4: A100-40GB has no partition '3+4'; did you mean 4+3? Order counts",
        "--policy static:partition=4+3/7: must be one for all GPUs or one for each, has 2",
    )


def test_gaps_to_the_lower_bounds(mig_opt: Command) -> None:
    document = mig_opt("t.json", "--policy", "first-fit,static:partition=7", "--json").json
    first, static = document["policies"]
    bound = document["lower_bounds"]["makespan"]
    assert first["gaps"]["lower_bound"]["makespan"] == pytest.approx(1 - bound / first["makespan"])
    bound = document["lower_bounds"]["mean_completion"]
    assert first["gaps"]["lower_bound"]["mean_completion"] == pytest.approx(1 - bound / first["completion"]["mean"])
    # b finds no 4g, and who leaves out jobs is compared with nobody.
    assert static["unfinished"] == ["b"]
    assert static["gaps"] == {"lower_bound": {"makespan": None, "mean_completion": None}}
    assert "optimum" not in document


def test_gaps_to_the_optimum(mig_opt: Command) -> None:
    """Best for the mean is b first; a has to wait for it, unlike in order of arrival."""
    document = mig_opt("t.json", "--policy", "first-fit", "--optimum", "--json").json
    (found,) = document["policies"]
    costs = get_gpu("A100").operation_costs
    best = document["optimum"]
    assert best["makespan"]["proven"]
    assert best["mean_completion"]["proven"]
    a_first = [costs.create[7] + 10.0]
    a_first.append(a_first[0] + costs.destroy[7] + costs.create[4] + 5.0)
    b_first = [1.0 + 5.0]
    b_first.append(b_first[0] + costs.destroy[4] + costs.create[7] + 10.0)
    least = min(sum(a_first), sum(b_first))
    assert best["mean_completion"]["value"] == pytest.approx((least - 1.0) / 2, abs=1e-3)
    assert best["makespan"]["value"] == pytest.approx(min(a_first[1], b_first[1]), abs=1e-3)
    value = best["makespan"]["value"]
    assert found["gaps"]["optimum"]["makespan"] == pytest.approx((found["makespan"] - value) / found["makespan"])
    _, out, _ = mig_opt("t.json", "--policy", "first-fit", "--optimum")
    assert "\noptimum " in out
    assert "flow/optimum" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_optimum_is_for_few_jobs(mig_opt: Command, tmp_path: Path) -> None:
    write_trace(trace(*(Job(f"j{n}", 2.0, {1: 1.0}) for n in range(20))), tmp_path / "many.json")
    refuses(mig_opt("many.json", "--optimum"), "--optimum: is for traces of up to 20 jobs, this one has 22")


def test_a_chart_and_a_log(mig_opt: Command, tmp_path: Path) -> None:
    code, out, err = mig_opt("t.json", "--policy", "first-fit,best-fit", "--plot", "t.png", "--save-log", "t.jsonl")
    assert (code, err) == (0, "")
    assert out.endswith("Log written to t.jsonl.\nChart written to t.png.\n")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()]
    heads = [line for line in lines if "schema" in line]
    assert [(head["schema"], head["policy"]) for head in heads] == [
        ("mig-opt/log/1", "first-fit"),
        ("mig-opt/log/1", "best-fit"),
    ]
    first = lines[: lines.index(heads[1])]
    done = simulate(trace(), "first-fit")
    runs = [
        (line["run"], line["profile"], line["start"], line["begin"], line["end"]) for line in first if "run" in line
    ]
    assert runs == [
        (trace().jobs[run.job].name, run.placement.profile.name, run.placement.start, run.begin, run.end)
        for run in done.log.runs()
    ]
    assert [line["operation"] for line in first if "operation" in line] == [o.kind for o in done.log.operations()]


def test_json_stays_json_beside_files(mig_opt: Command) -> None:
    assert mig_opt("t.json", "--policy", "first-fit", "--plot", "t.svg", "--save-log", "t.jsonl", "--json").json


def test_log_and_chart_need_two_files(mig_opt: Command) -> None:
    refuses(mig_opt("t.json", "--save-log", "a.png", "--plot", "a.png"), "a.png: is wanted for both log and chart")
    refuses(mig_opt("t.json", "--save-log", "t.json"), "t.json: is read as well")


def test_an_impossible_action_of_a_policy_is_no_defect(mig_opt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = get_policy("first-fit").load()
    monkeypatch.setattr(chosen, "arrived", lambda policy, cluster, job: cluster.stop(job))
    code, out, err = mig_opt("t.json", "--policy", "first-fit")
    assert (code, out) == (2, "")
    assert "job 'a' was stopped, but has no place" in err
    assert "Traceback" not in err
    assert "report it" not in err


def test_operations_by_other_costs(mig_opt: Command) -> None:
    usual, slower = (
        mig_opt("t.json", "--policy", "first-fit", "--json", *more).json["policies"][0]["makespan"]
        for more in ([], ["--costs", "kubernetes"])
    )
    # Two creations and the destruction between them.
    assert slower - usual == pytest.approx(2 * 4.4 + 1.0 - (0.24 + 0.22 + 0.21))
