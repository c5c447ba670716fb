"""Studies: what files say, which runs they mean, what is done again, and what the tables say."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mig_opt import Batch, InputError, Task, generate_batch, get_gpu, load_instance, solve, write_batch
from mig_opt.control import Control
from mig_opt.heuristics.far import far
from mig_opt.instances import instance_info
from mig_opt.registry import Method
from mig_opt.schedule import Schedule
from mig_opt.studies import (
    BatchFromFile,
    BundledBatch,
    Figures,
    GeneratedBatches,
    MethodSettings,
    Outcome,
    Row,
    Study,
    StudyProgress,
    StudyRun,
    compare,
    read_study,
    run_study,
    study_from_json,
    study_rows,
)
from mig_opt.studies.comparing import comparison_rows, comparison_to_csv, default_methods
from mig_opt.studies.outcome import measure
from mig_opt.studies.runs import perform, read_run, runs_of
from mig_opt.studies.summary import Entry, judge, summarise

FAR = MethodSettings("far")
SMALL = Study((GeneratedBatches(n=(3, 4), seeds=(0, 1)),), (FAR, MethodSettings("cp", time_limit=(5.0,))))


def document(**changes: Any) -> dict[str, Any]:
    return {"schema": "mig-opt/study/1", "batches": [{"n": 3}], "methods": [{"method": "far"}], **changes}


def problems(call: Callable[[], object]) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        call()
    return {problem.path: problem.message for problem in caught.value.problems}


def method_that(monkeypatch: pytest.MonkeyPatch, runner: Callable[[Batch, Control], None]) -> None:
    monkeypatch.setattr(Method, "load", lambda method: runner)
    monkeypatch.setattr("mig_opt.studies.runs.warm_up", lambda method: None)
    monkeypatch.setattr("mig_opt.studies.comparing.warm_up", lambda method: None)


class Heard(StudyProgress):
    def __init__(self) -> None:
        self.missing: list[StudyRun] = []
        self.known = -1
        self.rows: list[Row[StudyRun]] = []

    def on_start(self, missing: Sequence[StudyRun], known: int) -> None:
        self.missing, self.known = list(missing), known

    def on_row(self, row: Row[StudyRun]) -> None:
        self.rows.append(row)


# Files


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    wanted = document(
        batches=[
            {"instance": "rodinia-a30", "gpus": 2},
            {"n": [3, 4], "seeds": 2, "gpu": "A30"},
            {"n": 5, "seeds": [7]},
        ],
        methods=[{"method": "far", "label": "F"}, {"method": "cp", "time_limit": [1, 2.5], "gap": 0.01}],
        repetitions=3,
        seed=5,
        fresh=True,
    )
    (tmp_path / "s.json").write_text(json.dumps(wanted))
    (tmp_path / "s.toml").write_text(
        'schema = "mig-opt/study/1"\nrepetitions = 3\nseed = 5\nfresh = true\n'
        '[[batches]]\ninstance = "rodinia-a30"\ngpus = 2\n'
        '[[batches]]\nn = [3, 4]\nseeds = 2\ngpu = "A30"\n[[batches]]\nn = 5\nseeds = [7]\n'
        '[[methods]]\nmethod = "far"\nlabel = "F"\n[[methods]]\nmethod = "cp"\ntime_limit = [1, 2.5]\ngap = 0.01\n'
    )
    expected = Study(
        (
            BundledBatch("rodinia-a30", gpus=2),
            GeneratedBatches(n=(3, 4), seeds=(0, 1), gpu=("A30",)),
            GeneratedBatches(n=(5,), seeds=(7,)),
        ),
        (MethodSettings("far", label="F"), MethodSettings("cp", time_limit=(1.0, 2.5), gap=(0.01,))),
        repetitions=3,
        seed=5,
        fresh=True,
    )
    assert read_study(tmp_path / "s.json") == read_study(tmp_path / "s.toml") == expected


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"schema": "mig-opt/batch/1", "gpu": "A31", "tasks": []}')
    wrong = document(
        batches=[
            {"n": [6, 0, 2.5], "seeds": 0, "scaling": "PorScaling", "gpu": ["A100", "A31"], "p_sup": 2},
            {"instance": "rodinia"},
            {"file": "nope.json"},
            {"file": "bad.json", "gpus": 0},
            {"n": 3, "file": "x"},
            {"n": 1, "colour": 1, "seeds": [], "variant": "papr", "times": "Wide", "gpus": 0},
            5,
        ],
        methods=[
            {"method": "fr"},
            {"method": "cp", "time_limit": [1, -2], "gap": 7, "workers": 0},
            {"method": "far"},
            {"method": "far"},
            {"metod": "far"},
        ],
        repetitions=0,
        seed=-1,
        fresh=1,
        colour=2,
    )
    found = problems(lambda: study_from_json(wrong, folder=tmp_path))
    assert set(found) == {
        "batches[0].gpu[1]",
        "batches[0].n[2]",
        "batches[0].p_sup",
        "batches[0].scaling",
        "batches[0].seeds",
        "batches[1].instance",
        "batches[2].file",
        "batches[3].file",
        "batches[3].gpus",
        "batches[4]",
        "batches[5].colour",
        "batches[5].gpus",
        "batches[5].seeds",
        "batches[5].times",
        "batches[5].variant",
        "batches[6]",
        "colour",
        "fresh",
        "methods[0].method",
        "methods[1].gap",
        "methods[1].time_limit[1]",
        "methods[1].workers",
        "methods[3].label",
        "methods[4].method",
        "methods[4].metod",
        "repetitions",
        "seed",
    }
    assert found["batches[1].instance"].endswith("did you mean rodinia-a30?")
    assert found["methods[0].method"].endswith("did you mean far?")
    assert found["batches[2].file"] == "nope.json: no such file"
    assert found["methods[3].label"].startswith("tables would call this 'far', like methods[2]")


@pytest.mark.parametrize("key", ["batches", "methods"])
def test_lists_must_be_there_and_not_empty(key: str) -> None:
    assert key in problems(lambda: study_from_json(document(**{key: []})))
    assert key in problems(lambda: study_from_json(document(**{key: 3})))
    missing = document()
    del missing[key]
    assert key in problems(lambda: study_from_json(missing))


def test_toml_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("a = \n")
    assert "not valid TOML" in problems(lambda: read_study(tmp_path / "s.toml"))[""]
    (tmp_path / "s.toml").write_text("schema = 2026-01-01\n")
    assert problems(lambda: read_study(tmp_path / "s.toml"))


def test_studies_made_in_python_are_checked_too() -> None:
    wrong = Study((GeneratedBatches(n=(0,)), BundledBatch("x")), (MethodSettings("cp", time_limit=()),), repetitions=0)
    assert set(problems(lambda: run_study(wrong))) == {
        "batches[0].n",
        "batches[1].instance",
        "methods[0].time_limit",
        "repetitions",
    }
    assert set(problems(lambda: run_study(Study((), ())))) == {"batches", "methods"}
    assert set(problems(lambda: run_study(SMALL, jobs=0))) == {"jobs"}


# Runs


def test_every_combination_is_a_run(tmp_path: Path) -> None:
    study = Study(
        (
            BundledBatch("rodinia-a30"),
            GeneratedBatches(n=(3, 4), seeds=(0, 1, 2), gpu=("A30", "A100"), operation_costs=(True, False)),
        ),
        (FAR, MethodSettings("cp", time_limit=(1.0, None), workers=(1, 2))),
        repetitions=2,
        seed=10,
    )
    runs = runs_of(study, tmp_path)
    assert len(runs) == len({run.key for run in runs}) == (1 + 2 * 3 * 2 * 2) * (1 + 2 * 2) * 2
    assert {run.seed for run in runs} == {10, 11}
    assert {run.column for run in runs} == {
        "far",
        *(f"cp, {limit}, {threads}" for limit in ("1 s", "no limit") for threads in ("1 thread", "2 threads")),
    }
    assert "n=3, A30, no operation costs" in {run.cell for run in runs}
    assert all(read_run(json.loads(run.key)) == run for run in runs)


def test_partitions_are_arguments(tmp_path: Path) -> None:
    study = Study((GeneratedBatches(n=(5,)),), (FAR, MethodSettings("fixpart", partition=("7", "4+2+1"))))
    far_run, *runs = runs_of(study, tmp_path)
    assert [(run.column, run.partition) for run in runs] == [("fixpart, 7", "7"), ("fixpart, 4+2+1", "4+2+1")]
    assert all(read_run(json.loads(run.key)) == run for run in runs)
    assert "partition" not in far_run.key, "rows of methods without a partition keep their keys"
    makespans = [row.outcome.makespan for row in run_study(study).rows[1:]]
    assert makespans == [solve(generate_batch(5), "fixpart", partition=name).makespan for name in ("7", "4+2+1")]
    alone = document(methods=[{"method": "fixpart", "partition": "7"}])
    assert runs_of(study_from_json(alone), tmp_path)[0].column == "fixpart, 7"
    assert runs_of(study_from_json(alone), tmp_path)[0].key.endswith('"partition": "7"}')


def test_partitions_are_checked_with_every_batch(tmp_path: Path) -> None:
    write_batch(Batch((Task("wide", {4: 1.0}),), get_gpu("A30")), tmp_path / "wide.json")
    batches = [{"n": 3, "gpu": ["A30", "A100"]}, {"instance": "rodinia-a30"}, {"file": "wide.json"}, {"instance": "x"}]
    wrong = document(
        batches=batches,
        methods=[
            {"method": "fixpart"},
            {"method": "fixpart", "partition": ["4", "2+2", "1+1+1+1", 5]},
            {"method": "far", "partition": "4"},
            {"method": "fixpart", "partition": []},
        ],
    )
    found = problems(lambda: study_from_json(wrong, folder=tmp_path))
    assert found["methods[0].partition"] == "batches[0]: fixpart needs one; the partitions of A30-24GB are " + (
        "4, 2+2, 2+1+1, 1+1+2, 1+1+1+1"
    )
    assert "methods[1].partition[3]" in found
    assert found["methods[2].partition"] == "is for the method fixpart; leave it out"
    assert "methods[3].partition" in found
    wrong["methods"] = [{"method": "fixpart", "partition": ["4", "2+2"]}]
    found = problems(lambda: study_from_json(wrong, folder=tmp_path))
    assert found["methods[0].partition[0]"].startswith("batches[0]: A100-40GB has no partition '4'")
    wrong["batches"] = batches[1:3]
    found = problems(lambda: study_from_json(wrong, folder=tmp_path))
    assert found == {
        "methods[0].partition[1]": "batches[1]: 2+2 has no instance for task 'wide'; choose one of 4",
    }


def test_a_batch_that_comes_twice_runs_once(tmp_path: Path) -> None:
    study = Study((GeneratedBatches(n=(3, 3)), GeneratedBatches(n=(3,))), (FAR,))
    assert len(runs_of(study, tmp_path)) == 1


def test_runs_depend_on_what_is_in_a_file(tmp_path: Path) -> None:
    write_batch(generate_batch(3), tmp_path / "b.json")
    study = Study((BatchFromFile("b.json"), BatchFromFile("b.json", gpus=2, operation_costs=False)), (FAR,))
    first, more = runs_of(study, tmp_path)
    assert (first.cell, more.cell) == ("b", "b, 2 GPUs, no operation costs")
    assert more.batch is not None
    assert more.batch.gpus == 2
    assert not any(more.batch.operations.create.values())
    write_batch(generate_batch(3, seed=1), tmp_path / "b.json")
    assert first.key != runs_of(study, tmp_path)[0].key


def test_a_run_is_of_the_batch_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Batch] = []
    method_that(monkeypatch, lambda batch, control: seen.append(batch))
    settings = GeneratedBatches(n=(5,), seeds=(3,), scaling=("GoodScaling",), times=("NarrowTimes",), gpu=("A30",))
    (run,) = runs_of(Study((settings,), (FAR,)), tmp_path)
    assert perform(run).status == "no_solution"
    assert seen == [generate_batch(5, seed=3, scaling="GoodScaling", times="NarrowTimes", gpu="A30")]


# Running


def test_a_study_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, heard = tmp_path / "rows.jsonl", Heard()

    def stop(row: Row[StudyRun]) -> None:
        if len(path.read_text().splitlines()) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(heard, "on_row", stop)
    with pytest.raises(KeyboardInterrupt):
        run_study(SMALL, path, progress=heard)
    before = path.read_text()
    with path.open("a") as file:
        file.write('{"run": {"ba')  # killed while it wrote
    assert len(study_rows(SMALL, path).missing) == 5
    again = Heard()
    found = run_study(SMALL, path, progress=again)
    assert (again.known, len(again.missing), len(again.rows)) == (3, 5, 5)
    assert (len(found.rows), found.missing, found.failures, found.contradictions) == (8, (), [], [])
    assert path.read_text().startswith(before)
    assert len(path.read_text().splitlines()) == 8
    assert study_rows(SMALL, path) == found
    monkeypatch.setattr("mig_opt.studies.running.perform", None)
    run_study(SMALL, path)  # nothing is left to do


def test_rows_hold_what_was_run_and_where(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    run_study(Study((BundledBatch("rodinia-a30"),), (FAR,)), path)
    (row,) = map(json.loads, path.read_text().splitlines())
    assert row["run"]["batch"]["instance"] == "rodinia-a30"
    assert row["outcome"]["makespan"] == pytest.approx(29.2615, abs=1e-3)
    assert row["outcome"]["status"] == "feasible"
    assert row["environment"]["cores"] >= 1
    assert set(row) == {"run", "outcome", "fingerprint", "date", "environment"}


def test_rows_of_other_sources_are_done_again_or_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, study = tmp_path / "rows.jsonl", Study((GeneratedBatches(n=(3,)),), (FAR,))
    run_study(study, path)
    monkeypatch.setattr("mig_opt.studies.running.fingerprint", lambda: "other")
    assert len(study_rows(study, path).missing) == 1
    kept = run_study(study, path, keep=True)
    assert (len(kept.rows), kept.foreign) == (1, 1)
    assert len(path.read_text().splitlines()) == 1
    assert run_study(study, path).foreign == 0
    assert len(path.read_text().splitlines()) == 2


def failing(batch: Batch, control: Control) -> None:
    raise ZeroDivisionError("broken")


def test_a_method_that_crashes_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, study = tmp_path / "rows.jsonl", Study((GeneratedBatches(n=(3,), seeds=(0, 1)),), (FAR,))
    with monkeypatch.context() as patch:
        method_that(patch, failing)
        found = run_study(study, path)
        assert found.failures == [f"far on n=3, seed {seed}: ZeroDivisionError: broken" for seed in (0, 1)]
        assert [(line.runs, line.answered, line.failed, line.gap) for line in found.summary()] == [(2, 0, 2, None)]
    assert run_study(study, path).failures, "a row is a row"
    assert not run_study(study, path, retry=True).failures
    assert len(path.read_text().splitlines()) == 4


def invalid(batch: Batch, control: Control) -> None:
    control.offer(Schedule((), ()))


def test_an_invalid_schedule_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    method_that(monkeypatch, invalid)
    (failure,) = run_study(Study((GeneratedBatches(n=(3,)),), (FAR,))).failures
    assert "returned an invalid schedule" in failure


def test_outcomes_are_validated_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.solving._verify", lambda *arguments: None)
    monkeypatch.setattr(Method, "load", lambda method: invalid)
    outcome = measure(generate_batch(3), "far")
    assert "3 violations" in outcome.error
    assert not outcome.answered


def test_runs_in_processes_give_the_same(tmp_path: Path) -> None:
    here, there = run_study(SMALL), run_study(SMALL, jobs=2)
    assert [row.outcome.makespan for row in here.rows] == [row.outcome.makespan for row in there.rows]


def test_fresh_runs_measure_memory() -> None:
    study = Study((GeneratedBatches(n=(3,)),), (FAR,), fresh=True)
    (row,) = run_study(study).rows
    assert (row.outcome.peak_bytes or 0) > 2**24
    assert row.outcome.status == "feasible"


# Summaries


def entry(method: str, makespan: float | None, bound: float | None = 8.0, batch: str = "b", **more: Any) -> Entry:
    return Entry(batch, "cell", method, Outcome(more.pop("status", "feasible"), 1.0, makespan, bound, **more))


def test_gaps_are_to_the_best_of_all() -> None:
    one, two, none, wrong = judge(
        [
            entry("a", 10.0, 5.0),
            entry("b", 12.5, 8.0),
            entry("c", None, 9.0),
            entry("d", 1.0, 20.0, error="not valid"),
        ]
    )
    assert (one.best_bound, one.best_known) == (9.0, 10.0)
    assert (one.gap, one.above_best) == (pytest.approx(0.1), 0.0)
    assert (two.gap, two.above_best) == (pytest.approx(0.28), pytest.approx(0.25))
    assert none.gap is none.above_best is wrong.gap is wrong.above_best is None


def test_makespans_on_record_count() -> None:
    (one,) = judge([entry("a", 10.0)], {"b": 8.0})
    assert (one.best_known, one.above_best) == (8.0, 0.25)
    (row,) = run_study(Study((BundledBatch("rodinia-a30"),), (FAR,))).judged()
    best = instance_info("rodinia-a30").best_known
    assert best is not None
    assert best.makespan is not None
    assert row.best_known == best.makespan.value


def test_makespans_within_the_tolerance_are_the_best() -> None:
    judged = judge([entry("a", 10.0), entry("b", 10.0004, tolerance=0.0005)])
    assert [run.above_best for run in judged] == [0.0, 0.0]


def test_lines_summarise() -> None:
    entries = [
        entry("a", 10.0, 10.0, "one", status="optimal"),
        entry("a", 20.0, 10.0, "two"),
        entry("b", 12.5, 1.0, "one"),
        entry("b", None, None, "two", status="crashed", error="broken"),
    ]
    first, second = summarise(judge(entries))
    assert (first.method, first.runs, first.answered, first.proven, first.best, first.failed) == ("a", 2, 2, 1, 2, 0)
    assert first.gap == Figures(0.25, 0.25, 0.5)
    assert (second.runs, second.answered, second.proven, second.best, second.failed) == (2, 1, 0, 0, 1)
    assert second.above_best == Figures(0.25, 0.25, 0.25)


# Comparisons


def test_compare() -> None:
    batches = {"rodinia": load_instance("rodinia-a30"), "small": generate_batch(4)}
    found = compare(batches, ["far", "cp", "auto"])
    assert [compared.name for compared in found.batches] == list(batches)
    assert [[run.entry.method for run in compared.runs] for compared in found.batches] == [["far", "cp"]] * 2
    assert [(line.method, line.proven) for line in found.methods] == [("far", 0), ("cp", 2)]
    assert (found.interrupted, found.failures, found.contradictions) == (False, [], [])
    rows = comparison_rows(found)
    assert rows[0]["above_best"] == pytest.approx(rows[0]["makespan_s"] / rows[1]["makespan_s"] - 1)
    assert rows[0]["gap"] == pytest.approx(1 - rows[1]["lower_bound_s"] / rows[0]["makespan_s"])
    text = comparison_to_csv(found).splitlines()
    assert text[0].startswith("batch,gpu,gpus,tasks,method,status,makespan_s")
    assert [line.split(",")[4] for line in text[1:]] == ["far", "cp"] * 2


def test_compare_refuses_all_at_once() -> None:
    found = problems(lambda: compare({}, ["far", "fr"], time_limit=0, seed=-1, workers=0))
    assert set(found) == {"methods", "time_limit", "seed", "workers"}
    assert set(problems(lambda: compare({}, []))) == {"methods"}


def test_every_heuristic_is_compared_by_default() -> None:
    assert default_methods()[0] == "cp"
    assert "far" in default_methods()
    assert "brute-force" not in default_methods()


@pytest.mark.parametrize("with_schedule", [True, False])
def test_ctrl_c_keeps_what_was_compared(monkeypatch: pytest.MonkeyPatch, with_schedule: bool) -> None:
    runs = 0

    def interrupted(batch: Batch, control: Control) -> None:
        nonlocal runs
        runs += 1
        if runs < 3 or with_schedule:
            far(batch, control)
        if runs == 3:
            raise KeyboardInterrupt

    method_that(monkeypatch, interrupted)
    found = compare({"a": generate_batch(3), "b": generate_batch(4), "c": generate_batch(5)}, ["far", "brute-force"])
    assert found.interrupted
    statuses = [[run.entry.outcome.status for run in compared.runs] for compared in found.batches]
    assert statuses == [["feasible", "feasible"], *([["interrupted"]] if with_schedule else [])]


def test_a_method_that_crashes_is_a_line_of_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    method_that(monkeypatch, failing)
    found = compare({"a": generate_batch(3)}, ["far"])
    assert found.failures == ["far on a: ZeroDivisionError: broken"]
    assert found.batches[0].best_found is None


def test_a_bound_above_a_schedule_of_another_method_is_told() -> None:
    found = compare({"a": generate_batch(3)}, ["far"], on_record={"a": 0.5})
    assert len(found.contradictions) == 1
    assert "but the record has one of 0.5 s" in found.contradictions[0]


# The page about it

PAGE = Path(__file__).parents[1] / "docs" / "bench.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not PAGE.is_file(), reason="the tests run without the checkout")
def test_the_studies_of_the_page_are_one_and_the_same() -> None:
    (as_json,), (as_toml,) = blocks("json"), blocks("toml")
    study = study_from_json(as_json)
    assert study == study_from_json(tomllib.loads(as_toml))
    assert len(runs_of(study, PAGE.parent)) == (3 * 30 * 3 + 1) * 3


@pytest.mark.skipif(not PAGE.is_file(), reason="the tests run without the checkout")
@pytest.mark.parametrize("block", blocks("python") if PAGE.is_file() else ())
def test_the_python_of_the_page_runs(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, str(PAGE), "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) in (2, 6)
