"""Studies of schedulers on traces: which runs they mean, what rows say, what goes wrong, and who wins."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, called
from hypothesis import given
from hypothesis import strategies as st
from online_worlds import Scripted, job, trace
from study_jobs import cluster_of_two
from study_parts import FAR, problems, resumed

from mig_opt import Trace, generate_trace, trace_bounds, write_trace
from mig_opt.online import PolicyEntry, Simulation, simulate
from mig_opt.online.bounds import TraceBounds
from mig_opt.studies import (
    GeneratedBatches,
    GeneratedTraces,
    PolicySettings,
    Study,
    TraceFromFile,
    read_study,
    run_study,
    study_from_json,
    study_rows,
)
from mig_opt.studies.outcome import Outcome
from mig_opt.studies.summary import Entry
from mig_opt.studies.trace_runs import read_trace_run, trace_runs_of
from mig_opt.studies.trace_summary import best, summarise_traces, winners

FIRST_FIT = PolicySettings("first-fit")
SMALL = Study(
    traces=(GeneratedTraces(("normal-25", "migm-ht1"), seeds=(0, 1), parameters={"jobs": (6,)}),),
    policies=(FIRST_FIT, PolicySettings("best-fit")),
)


def document(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "mig-opt/study/1",
        "traces": [{"family": "normal-25"}],
        "policies": [{"policy": "first-fit"}],
        **changes,
    }


def two_jobs(folder: Path) -> Study:
    """One after the other on a whole GPU; a creation takes 1 s."""
    write_trace(trace(job("a", 0.0, "7g.40gb", 10.0), job("b", 1.0, "7g.40gb", 5.0)), folder / "two.json")
    return Study(traces=(TraceFromFile("two.json"),), policies=(FIRST_FIT,))


# Runs


def test_every_combination_is_a_run(tmp_path: Path) -> None:
    thresholds = PolicySettings("fragmentation-aware", {"threshold": (0.2, 0.4, 0.6), "migration": (False,)})
    study = Study(
        traces=(
            GeneratedTraces(("normal-25", "long-25"), (0, 1, 2), gpus=(None, 2), parameters={"jobs": (5, 6)}),
            GeneratedTraces(("pcie-4",), (7,), group="PCIe"),
        ),
        policies=(FIRST_FIT, thresholds, PolicySettings("static", {"partition": (("4+3", "7"), "7")}, label="S")),
    )
    runs = trace_runs_of(study, tmp_path)
    assert len(runs) == len({run.key for run in runs}) == (2 * 3 * 2 * 2 + 1) * (1 + 3 + 2)
    assert {run.column for run in runs} == {
        "first-fit",
        *(f"fragmentation-aware:threshold={share}:migration=false" for share in ("0.2", "0.4", "0.6")),
        "S:partition=4+3/7",
        "S:partition=7",
    }
    assert {run.cell for run in runs} == {
        "PCIe",
        *(
            f"{family}, {gpus}, jobs={jobs}"
            for family in ("normal-25", "long-25")
            for gpus in ("usual GPUs", "2 GPUs")
            for jobs in (5, 6)
        ),
    }
    assert runs[-1].label == "S:partition=7 on pcie-4 (PCIe), seed 7"
    assert runs[0].label == "first-fit on normal-25, usual GPUs, jobs=5, seed 0"
    assert all(read_trace_run(json.loads(run.key)).key == run.key for run in runs)


def test_cells_say_what_differs(tmp_path: Path) -> None:
    costs = GeneratedTraces(("normal-25",), gpu=("A30", "A100"), operation_costs=(True, False))
    study = Study(traces=(costs, GeneratedTraces(("long-25",), parameters={"jobs": (9,)})), policies=(FIRST_FIT,))
    assert [run.cell for run in trace_runs_of(study, tmp_path)] == [
        "normal-25, A30",
        "normal-25, A30, no operation costs",
        "normal-25, A100",
        "normal-25, A100, no operation costs",
        "long-25, A100, jobs=9",
    ]


def test_a_trace_that_comes_twice_is_simulated_once(tmp_path: Path) -> None:
    study = Study(traces=(GeneratedTraces(("normal-25", "normal-25")), GeneratedTraces(("normal-25",))), policies=())
    options = ({"threshold": (0.4,), "migration": (True,)}, {"migration": (True,), "threshold": (0.4,)})
    policies = tuple(PolicySettings("fragmentation-aware", given, label=str(given)) for given in options)
    assert len(trace_runs_of(Study(traces=study.traces, policies=policies), tmp_path)) == 1


def test_runs_depend_on_what_is_in_a_file(tmp_path: Path) -> None:
    alone = two_jobs(tmp_path)
    more = TraceFromFile("two.json", gpus=3, operation_costs=False)
    first, other = trace_runs_of(Study(traces=(*alone.traces, more), policies=(FIRST_FIT,)), tmp_path)
    assert (first.cell, other.cell) == ("two", "two, 3 GPUs, no operation costs")
    assert other.trace is not None
    assert (other.trace.gpus, any(other.trace.operations.create.values())) == (3, False)
    assert first.key != other.key
    write_trace(trace(job("a", 0.0, "7g.40gb", 11.0)), tmp_path / "two.json")
    assert trace_runs_of(alone, tmp_path)[0].key != first.key


# Rows


def test_a_row_says_all_of_a_simulation(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    found = run_study(two_jobs(tmp_path), path, folder=tmp_path)
    (row,) = map(json.loads, path.read_text().splitlines())
    assert set(row) == {"run", "outcome", "fingerprint", "date", "environment"}
    assert row["run"]["trace"]["file"] == "two"
    assert (row["run"]["policy"], row["run"]["options"], row["run"]["fresh"]) == ("first-fit", {}, False)
    outcome, figures = row["outcome"], row["outcome"]["figures"]
    # The instance is there from 1 s on: a runs until 11, b until 16. b waits from 1 to 11.
    assert (outcome["status"], outcome["error"]) == ("feasible", "")
    assert outcome["makespan"] == figures["makespan"] == pytest.approx(16.0)
    assert figures["wait"]["mean"] == pytest.approx((0 + 10) / 2)
    assert figures["completion"]["mean"] == pytest.approx((11 + 15) / 2)
    assert (figures["jobs"], figures["finished"], figures["unfinished"], figures["creations"]) == (2, 2, 0, 1)
    # All work from 1 s on takes until 16. The sum of ends is least if b goes first: 6 + 16, less the arrivals 0 + 1.
    assert figures["lower_bounds"]["makespan"] == outcome["lower_bound"] == pytest.approx(16.0)
    assert figures["lower_bounds"]["mean_completion"] == pytest.approx((6 + 16 - 1) / 2)
    assert figures["gaps"]["mean_completion"] == pytest.approx((13 - 10.5) / 13)
    assert figures["gaps"]["makespan"] == pytest.approx(0, abs=1e-8)
    (line,) = found.trace_summary()
    assert (line.cell, line.policy, line.runs, line.complete, line.failed) == ("two", "first-fit", 1, 1, 0)
    assert line.wait is not None
    assert line.wait.mean == pytest.approx(5.0)
    assert found.summary() == []


def test_rows_are_those_of_simulate() -> None:
    study = Study(traces=(GeneratedTraces(("long-25",), (3,), ("A30",), (2,), {"jobs": (8,)}),), policies=(FIRST_FIT,))
    (row,) = run_study(study).rows
    wanted = simulate(generate_trace("long-25", gpu="A30", gpus=2, seed=3, jobs=8), "first-fit").metrics
    assert row.outcome.makespan == wanted.makespan
    assert row.outcome.figures["energy"] == wanted.energy


def test_jobs_that_wait_for_ever_are_a_result(tmp_path: Path) -> None:
    write_trace(trace(job("a", 0.0, "1g.5gb", 10.0), job("b", 0.0, "7g.40gb", 5.0)), tmp_path / "t.json")
    static = PolicySettings("static", {"partition": ("4+3", "7")})
    study = Study(traces=(TraceFromFile("t.json"),), policies=(FIRST_FIT, static))
    found = run_study(study, folder=tmp_path)
    # On 4+3 there is room for neither, on 7 only for b, which waits behind a.
    assert [row.outcome.status for row in found.rows] == ["feasible", "unfinished", "unfinished"]
    figures = found.rows[1].outcome.figures
    assert (figures["unfinished"], figures["unfinished_names"], figures["gaps"]["makespan"]) == (2, ["a", "b"], None)
    assert not found.failures
    lines = found.trace_summary()
    assert [(line.complete, line.unfinished, line.makespan is None) for line in lines[1:]] == [(0, 2, True)] * 2
    assert [entry.policies for entry in found.winners()] == [("first-fit",)] * 2


# Running


def test_a_study_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    found = resumed(SMALL, path, monkeypatch)
    assert study_rows(SMALL, path).rows == found.rows
    more = Study(traces=SMALL.traces, policies=(*SMALL.policies, PolicySettings("first-fit", {"backfill": (True,)})))
    assert [run.column for run in study_rows(more, path).missing] == ["first-fit:backfill=true"] * 4
    monkeypatch.setattr("mig_opt.studies.running.fingerprint", lambda: "other")
    assert len(study_rows(SMALL, path).missing) == 8
    assert study_rows(SMALL, path, keep=True).foreign == 8


def test_a_cluster_gives_the_same(tmp_path: Path) -> None:
    study = Study(traces=(*two_jobs(tmp_path).traces, *SMALL.traces), policies=(FIRST_FIT,))
    here = run_study(study, folder=tmp_path)
    with cluster_of_two() as scheduler:
        there = run_study(study, folder=tmp_path, scheduler=scheduler)
    assert not there.failures
    assert [row.outcome.figures for row in there.rows] == [row.outcome.figures for row in here.rows]


def test_fresh_runs_measure_memory(tmp_path: Path) -> None:
    study = two_jobs(tmp_path)
    (row,) = run_study(Study(traces=study.traces, policies=study.policies, fresh=True), folder=tmp_path).rows
    assert (row.outcome.peak_bytes or 0) > 2**24
    assert row.outcome.makespan == pytest.approx(16.0)


def test_methods_and_schedulers_share_a_study(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    study = Study((GeneratedBatches(n=(3,)),), (FAR,), 2, traces=SMALL.traces, policies=SMALL.policies)
    found = run_study(study, path)
    assert len(found.rows) == 2 + 8, "simulations are not repeated"
    assert [(line.method, line.runs) for line in found.summary()] == [("far", 2)]
    assert [line.policy for line in found.trace_summary()] == ["first-fit", "best-fit"] * 2
    assert study_rows(study, path).rows == found.rows
    kinds = ["figures" in json.loads(line)["outcome"] for line in path.read_text().splitlines()]
    assert kinds == [False] * 2 + [True] * 8, "rows of methods are what they were"


# What goes wrong


class Broken(Scripted):
    def arrived(self, cluster: object, job: int) -> None:
        raise ZeroDivisionError("broken")


def test_a_scheduler_that_crashes_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, path = two_jobs(tmp_path), tmp_path / "rows.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(PolicyEntry, "load", lambda entry, **options: Broken({}))
        found = run_study(study, path, folder=tmp_path)
    assert found.failures == ["first-fit on two: ZeroDivisionError: broken"]
    assert [(line.runs, line.complete, line.failed, line.makespan) for line in found.trace_summary()] == [
        (1, 0, 1, None)
    ]
    assert run_study(study, path, folder=tmp_path).failures, "a row is a row"
    assert not run_study(study, path, folder=tmp_path, retry=True).failures


def test_options_that_do_not_fit_the_trace_are_a_failure(tmp_path: Path) -> None:
    one_for_each = PolicySettings("static", {"partition": (("4+3", "7"),)})
    found = run_study(Study(traces=two_jobs(tmp_path).traces, policies=(one_for_each,)), folder=tmp_path)
    assert "partition: must be one for all GPUs or one for each, has 2" in found.failures[0]


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda log: log.run_begin.__setitem__(1, 0.5), "violations of the log: runs[1]: 'b' begins at 0.5, before 1"),
        (lambda log: log.operation_begin.__setitem__(0, 0.25), "violations: "),
    ],
)
def test_logs_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tamper: Any, message: str) -> None:
    def tampered(trace: Trace, policy: str, **options: object) -> Simulation:
        done = simulate(trace, policy, **options)
        tamper(done.log)
        return done

    study = two_jobs(tmp_path)
    monkeypatch.setattr("mig_opt.studies.trace_outcome.simulate", tampered)
    (failure,) = run_study(study, folder=tmp_path).failures
    assert message in failure


def test_what_beats_a_lower_bound_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(trace: Trace) -> TraceBounds:
        bounds = trace_bounds(trace)
        more = tuple(type(bound)(bound.name, 2 * bound.value, bound.reason) for bound in bounds.completion)
        return TraceBounds(bounds.makespan, more, bounds.jobs, bounds.arrivals)

    study = two_jobs(tmp_path)
    monkeypatch.setattr("mig_opt.studies.trace_outcome._LATEST_BOUNDS", {})
    monkeypatch.setattr("mig_opt.online.bounds.trace_bounds", doubled)
    (failure,) = run_study(study, folder=tmp_path).failures
    assert failure == "first-fit on two: jobs end after 13 s on the average, which is below the lower bound of 21.5 s"


def test_a_bound_above_a_simulation_is_a_contradiction(tmp_path: Path) -> None:
    path, study = tmp_path / "rows.jsonl", two_jobs(tmp_path)
    run_study(study, path, folder=tmp_path)
    row = json.loads(path.read_text())
    row["outcome"]["lower_bound"] = 17.0
    path.write_text(json.dumps(row) + "\n")
    (said,) = study_rows(study, path, folder=tmp_path).contradictions
    assert said == "first-fit on two: no schedule is below 17 s, but first-fit on two has one of 16 s"


# Files


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'schema = "mig-opt/study/1"\n'
        '[[traces]]\nfamily = ["normal-25", "pcie-4"]\nseeds = 2\ngpus = 3\nparameters = { jobs = [5, 6] }\n'
        'group = "g"\n[[traces]]\nfile = "two.json"\n'
        '[[policies]]\npolicy = "static"\noptions = { partition = ["7", ["4+3", "7"]], backfill = true }\n'
        'label = "S"\n'
    )
    two_jobs(tmp_path)
    wanted = document(
        traces=[
            {"family": ["normal-25", "pcie-4"], "seeds": [0, 1], "gpus": [3], "parameters": {"jobs": [5, 6]},
             "group": "g"},
            {"file": "two.json"},
        ],
        policies=[
            {"policy": "static", "options": {"partition": ["7", ["4+3", "7"]], "backfill": [True]}, "label": "S"}
        ],
    )  # fmt: skip
    expected = Study(
        traces=(
            GeneratedTraces(("normal-25", "pcie-4"), (0, 1), gpus=(3,), parameters={"jobs": (5, 6)}, group="g"),
            TraceFromFile("two.json"),
        ),
        policies=(PolicySettings("static", {"partition": ("7", ["4+3", "7"]), "backfill": (True,)}, "S"),),
    )
    assert read_study(tmp_path / "s.toml") == study_from_json(wanted, folder=tmp_path) == expected


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"schema": "mig-opt/trace/1", "gpu": "A31", "jobs": []}')
    wrong = document(
        traces=[
            {"family": ["normal-25", "nrmal"], "seeds": 0, "gpu": ["A100", "A31"], "gpus": [1, 0]},
            {"family": "normal-25", "parameters": {"jobs": [5, 0], "batches": 3, "sigma": []}},
            {"family": ["normal-25", "far-stream"], "parameters": {"jobs": [1000000, 0]}},
            {"family": "migm-qwen2", "parameters": {"iterations": 10}},
            {"file": "nope.json"},
            {"file": "bad.json", "gpus": 0},
            {"file": "x", "family": "normal-25"},
            {"family": "normal-25", "colour": 1, "parameters": 3},
        ],
        policies=[
            {"policy": "first-fot"},
            {"policy": "fragmentation-aware", "options": {"threshold": [0.4, 7], "patition": "7"}},
            {"policy": "fragmentation-aware", "options": {"threshold": [0.4, 7], "migration": [True, 3]}},
            {"policy": "best-fit"},
            {"policy": "best-fit"},
            {"polcy": "best-fit"},
        ],
    )
    found = problems(lambda: study_from_json(wrong, folder=tmp_path))
    assert set(found) == {
        "policies[0].policy",
        "policies[1].options.patition",
        "policies[2].options.migration",
        "policies[2].options.threshold",
        "policies[4].label",
        "policies[5].polcy",
        "policies[5].policy",
        "traces[0].family[1]",
        "traces[0].gpu[1]",
        "traces[0].gpus[1]",
        "traces[0].seeds",
        "traces[1].parameters.sigma",
        "traces[2].parameters.jobs",
        "traces[3].parameters.fails_at",
        "traces[4].file",
        "traces[5].file",
        "traces[5].gpus",
        "traces[6]",
        "traces[7].colour",
        "traces[7].parameters",
    }
    assert found["traces[0].family[1]"].endswith("did you mean normal-50 or normal-25?")
    assert found["policies[0].policy"].endswith("did you mean first-fit or best-fit?")
    assert found["policies[2].options.threshold"] == "must be a share from 0 to 1 (0.01 is one percent), is 7"
    assert found["policies[4].label"].startswith("tables would call this 'best-fit', like policies[3]")
    wrong = document(traces=[{"family": "normal-25", "parameters": {"jobs": [5, 0], "batches": 3}}])
    assert set(problems(lambda: study_from_json(wrong))) == {
        "traces[0].parameters.jobs",
        "traces[0].parameters.batches",
    }


def test_traces_need_schedulers_and_the_other_way_round() -> None:
    for key in ("traces", "policies"):
        for value in ([], 3):
            assert key in problems(lambda key=key, value=value: study_from_json(document(**{key: value})))
        alone = document()
        del alone[key]
        assert problems(lambda alone=alone: study_from_json(alone)) == {key: "needs at least one entry"}
    neither = problems(lambda: study_from_json({"schema": "mig-opt/study/1"}))
    assert neither == dict.fromkeys(
        ("batches", "methods"), "needs at least one entry, or the study needs traces and policies"
    )
    assert set(problems(lambda: study_from_json(document(batches=[{"n": 3}])))) == {"methods"}


def test_studies_made_in_python_are_checked_too() -> None:
    wrong = Study(
        traces=(GeneratedTraces(()), GeneratedTraces(("normal-25",), parameters={"jobs": 5})),  # type: ignore[dict-item]
        policies=(PolicySettings(3), PolicySettings("first-fit", {"backfill": True})),  # type: ignore[arg-type,dict-item]
    )
    assert set(problems(lambda: run_study(wrong))) == {
        "policies[0].policy",
        "policies[1].options.backfill",
        "traces[0].family",
        "traces[1].parameters.jobs",
    }


# Winners


def test_ties_are_what_the_spread_explains() -> None:
    # Logarithms of the ratios to a: 0.1 each time has no spread, so that is no tie.
    values = {"a": {"x": 1.0, "y": 2.0, "z": 4.0}}
    values["b"] = {trace: 1.10517 * value for trace, value in values["a"].items()}
    assert best(values) == ("a",)
    # 0.3, 0.1, -0.1: mean 0.1, deviation 0.2, so 0.1 - 4.303 * 0.2 / sqrt(3) < 0: a tie.
    values["c"] = {"x": 1.0 * 1.34986, "y": 2.0 * 1.10517, "z": 4.0 * 0.904837}
    assert best(values) == ("a", "c")
    # 0.12, 0.1, 0.08: 0.1 - 4.303 * 0.02 / sqrt(3) = 0.05 > 0: none.
    values["c"] = {"x": 1.0 * 1.127497, "y": 2.0 * 1.10517, "z": 4.0 * 1.083287}
    assert best(values) == ("a",)
    values["d"] = dict(values["a"])
    assert best(values) == ("a", "d"), "equal values tie"


def test_a_single_trace_has_no_spread() -> None:
    assert best({"a": {"x": 2.0}, "b": {"x": 1.9}, "c": {"x": 1.9}}) == ("b", "c")
    assert best({}) == best({"a": {}}) == ()


@given(
    st.dictionaries(st.sampled_from("abcd"), st.lists(st.floats(0.1, 1e4), min_size=4, max_size=4), min_size=1),
    st.lists(st.floats(0.1, 1e3), min_size=4, max_size=4),
)
def test_units_of_traces_do_not_matter(values: dict[str, list[float]], units: list[float]) -> None:
    found = best({name: dict(zip("wxyz", own, strict=True)) for name, own in values.items()})
    scaled = {name: [value * unit for value, unit in zip(own, units, strict=True)] for name, own in values.items()}
    again = best({name: dict(zip("wxyz", own, strict=True)) for name, own in scaled.items()})
    products = {name: math.prod(own) for name, own in values.items()}
    assert products[found[0]] <= min(products.values()) * (1 + 1e-9)
    assert products[again[0]] <= min(products.values()) * (1 + 1e-9)
    assert found[0] in again or again[0] in found


def entry(policy: str, trace: str, completion: float, makespan: float | None, cell: str = "cell") -> Entry:
    figures = {
        "completion": {"mean": completion},
        "wait": {"mean": 1.0},
        "makespan": makespan or 5.0,
        "unfinished": int(makespan is None),
        "gaps": {"mean_completion": 0.5, "makespan": 0.25},
    }
    return Entry(trace, cell, policy, Outcome("feasible", 0.5, makespan, 1.0, figures=figures))


def test_each_goal_and_each_group_has_its_winners() -> None:
    entries = [
        entry("a", "x", 10.0, 30.0),
        entry("b", "x", 12.0, 20.0),
        entry("c", "x", 1.0, None),
        entry("b", "y", 9.0, 9.0, "other"),
    ]
    assert [(won.cell, won.goal, won.policies) for won in winners(entries)] == [
        ("cell", "mean_completion", ("a",)),
        ("cell", "makespan", ("b",)),
        ("other", "mean_completion", ("b",)),
        ("other", "makespan", ("b",)),
    ]
    lines = summarise_traces(entries)
    assert [(line.cell, line.policy, line.complete, line.unfinished) for line in lines] == [
        ("cell", "a", 1, 0),
        ("cell", "b", 1, 0),
        ("cell", "c", 0, 1),
        ("other", "b", 1, 0),
    ]


# The command line


@pytest.fixture
def mig_opt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "80")
    return functools.partial(called, capsys)


def test_from_a_file_to_the_tables(mig_opt: Command, tmp_path: Path) -> None:
    write_trace(trace(job("a", 0.0, "7g.40gb", 10.0), job("b", 1.0, "1g.5gb", 5.0)), tmp_path / "two.json")
    study = tmp_path / "study.json"
    sweep = {"policy": "static", "options": {"partition": ["7", "4+3"]}}
    study.write_text(
        json.dumps(document(traces=[{"file": "two.json"}], policies=[{"policy": "first-fit"}, sweep], seed=1))
    )
    ending = mig_opt("bench", study)
    assert (ending.code, ending.err) == (0, "")
    lines = ending.out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert lines[0].split()[:6] == ["traces,", "policies", "done", "to", "end", "s"]
    # a ends at 11. b gets its place then: 0.5 s for the destruction, 1 s for the creation, so it ends at 17.5. The
    # means are (11 + 16.5) / 2 = 13.75 and (0 + 10) / 2. From 1 s on there is work for 10 + 5/7 s of the GPU: at best b
    # ends at 6 and a at 11.714, on the average 8.357 s after their arrivals.
    assert lines[2] == "two"
    assert lines[3].split()[:-1] == ["first-fit", "1/1", "13.8", "39.2", "5.0", "17.5", "33.1"]
    # Policies are called as `mig-opt simulate` takes them; 2 + 20 characters are a line of the first column.
    assert [line.split()[0] for line in lines[3:6]] == ["first-fit", "static:partition=7", "static:partition=4+3"]
    assert "static:partition=7 leaves 1 job waiting for ever: two" in ending.out
    assert "static:partition=4+3 leaves 2 jobs waiting for ever: two" in ending.out
    assert [line.split()[-1] for line in lines if line.startswith("two  ")] == ["first-fit"] * 2
    assert mig_opt("bench", study, "--table") == ending
    found = mig_opt("bench", study, "--json").json
    assert (found["done"], found["lines"], found["failures"]) == (3, [], [])
    assert [line["policy"] for line in found["simulated"]] == [
        "first-fit",
        "static:partition=7",
        "static:partition=4+3",
    ]
    assert [won["policies"] for won in found["winners"]] == [["first-fit"]] * 2


def test_both_tables_are_shown(mig_opt: Command, tmp_path: Path) -> None:
    study = tmp_path / "study.json"
    study.write_text(json.dumps(document(batches=[{"n": 3}], methods=[{"method": "far"}])))
    ending = mig_opt("bench", study)
    assert ending.code == 0
    assert ending.out.startswith("batches, methods")
    assert "\ntraces, policies" in ending.out
    assert ending.out.rstrip().replace("\n", "").endswith(f"2 rows in {study.with_suffix('.jsonl')}.")


def test_long_labels_in_a_narrow_terminal(mig_opt: Command, tmp_path: Path) -> None:
    """Lines of a label have 20 characters among the figures, and 40 in the last column. Both do the same to one job."""
    write_trace(trace(job("a", 0.0, "7g.40gb", 10.0)), tmp_path / "one.json")
    study = tmp_path / "study.json"
    options = {"threshold": [0.4, 0.125], "load_balancing": True, "migration": False}
    policies = [{"policy": "fragmentation-aware", "options": options}]
    study.write_text(json.dumps(document(traces=[{"file": "one.json"}], policies=policies)))
    lines = mig_opt("bench", study).out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert [line[:22].rstrip() for line in lines[3:9]] == [
        "  fragmentation-aware",
        "   :threshold=0.4",
        "   :load_balancing=",
        "    true",
        "   :migration=false",
        "  fragmentation-aware",
    ]
    first = next(index for index, line in enumerate(lines) if line.startswith("one     time to end  "))
    assert [line.removeprefix("one     time to end").strip() for line in lines[first : first + 4]] == [
        "fragmentation-aware:threshold=0.4",
        ":load_balancing=true:migration=false",
        "fragmentation-aware:threshold=0.125",
        ":load_balancing=true:migration=false",
    ]
