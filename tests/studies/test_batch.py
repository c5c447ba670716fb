"""Studies: which runs they mean, what is done again, and what goes wrong on the way."""

import json

from study_parts import FAR, FIRST_FIT, SMALL, document, failing, method_that, problems, resumed

from mig_opt import Batch, Study, Task, generate_batch, get_gpu, run_study, solve
from mig_opt.files.batch.batches import BATCH
from mig_opt.studies import BundledBatch, GeneratedBatches, GeneratedTraces, MethodSettings, study_from_json, study_rows
from mig_opt.studies.studies import read_run, runs_of


def test_every_combination_is_a_run(tmp_path):
    drawn = GeneratedBatches(n=(3, 4), seeds=(0, 1, 2), gpu=("A30", "A100"), operation_costs=(True, False))
    methods = (FAR, MethodSettings("cp", time_limit=(1.0, None), workers=(1, 2)))
    study = Study((BundledBatch("rodinia-a30"), drawn), methods, repetitions=2, seed=10)
    runs = runs_of(study, tmp_path)
    assert len(runs) == len({run.key for run in runs}) == (1 + 2 * 3 * 2 * 2) * (1 + 2 * 2) * 2
    assert {run.arguments["seed"] for run in runs} == {10, 11}
    own = (f"cp, {limit}, {threads}" for limit in ("1 s", "no limit") for threads in ("1 thread", "2 threads"))
    assert {run.column for run in runs} == {"far", *own}
    assert "n=3, A30, no operation costs" in {run.cell for run in runs}
    assert all(read_run(json.loads(run.key)) == run for run in runs)


def test_partitions_are_arguments(tmp_path):
    study = Study((GeneratedBatches(n=(5,)),), (FAR, MethodSettings("fixpart", partition=("7", "4+2+1"))))
    far_run, *runs = runs_of(study, tmp_path)
    assert {run.column: run.arguments["partition"] for run in runs} == {"fixpart, 7": "7", "fixpart, 4+2+1": "4+2+1"}
    assert all(read_run(json.loads(run.key)) == run for run in runs)
    assert "partition" not in far_run.key, "rows of methods without a partition keep their keys"
    makespans = [row.outcome.makespan for row in run_study(study).rows[1:]]
    assert makespans == [solve(generate_batch(5), "fixpart", partition=name).makespan for name in ("7", "4+2+1")]
    (alone,) = runs_of(study_from_json(document(methods=[{"method": "fixpart", "partition": "7"}])), tmp_path)
    assert (alone.column, alone.key.endswith('"partition": "7"}')) == ("fixpart, 7", True)


def test_partitions_are_checked_with_every_batch(tmp_path):
    BATCH.write(Batch((Task("wide", {4: 1.0}),), get_gpu("A30")), tmp_path / "wide.json")
    batches = [{"n": 3, "gpu": ["A30", "A100"]}, {"instance": "rodinia-a30"}, {"file": "wide.json"}, {"instance": "x"}]
    needs = "batches[0]: fixpart needs one; the partitions of A30-24GB are 4, 2+2, 2+1+1, 1+1+2, 1+1+1+1"
    wide = "batches[1]: 2+2 has no instance for task 'wide'; choose one of 4"
    for settings, sources, path, message in (
        ({}, batches, "partition", needs),
        ({"partition": ["4", "2+2", "1+1+1+1", 5]}, batches, "partition[3]", ""),
        ({"partition": "4", "method": "far"}, batches, "partition", "is for the method fixpart; leave it out"),
        ({"partition": []}, batches, "partition", "needs at least one value"),
        ({"partition": ["4", "2+2"]}, batches, "partition[0]", "batches[0]: A100-40GB has no partition '4'"),
        ({"partition": ["4", "2+2"]}, batches[1:3], "partition[1]", wide),
    ):
        wrong = document(batches=sources, methods=[{"method": "fixpart", **settings}])
        found = problems(lambda wrong=wrong: study_from_json(wrong, folder=tmp_path))
        assert found[f"methods[0].{path}"].startswith(message)


def test_a_run_is_of_the_batch_that_it_names(tmp_path, monkeypatch):
    seen: list[Batch] = []
    method_that(monkeypatch, lambda batch, control: seen.append(batch))
    settings = GeneratedBatches(n=(5,), seeds=(3,), scaling=("GoodScaling",), times=("NarrowTimes",), gpu=("A30",))
    (run,) = runs_of(Study((settings,), (FAR,)), tmp_path)
    assert run.perform().status == "no_solution"
    assert seen == [generate_batch(5, seed=3, scaling="GoodScaling", times="NarrowTimes", gpu="A30")]


def test_a_study_is_resumed(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    found = resumed(SMALL, path)
    assert study_rows(SMALL, path) == found
    monkeypatch.setattr("mig_opt.studies.runs.StudyRun.perform", None)
    run_study(SMALL, path)  # nothing is left to do


def test_rows_of_other_sources_are_done_again_or_kept(tmp_path, monkeypatch):
    path, study = tmp_path / "rows.jsonl", Study((GeneratedBatches(n=(3,)),), (FAR,))
    run_study(study, path)
    monkeypatch.setattr("mig_opt.studies.studies.fingerprint", lambda: "other")
    assert len(study_rows(study, path).missing) == 1
    kept = run_study(study, path, keep=True)
    assert (len(kept.rows), kept.foreign) == (1, 1)
    assert len(path.read_text().splitlines()) == 1
    assert run_study(study, path).foreign == 0
    assert len(path.read_text().splitlines()) == 2


def test_a_method_that_crashes_is_a_row(tmp_path, monkeypatch):
    path, study = tmp_path / "rows.jsonl", Study((GeneratedBatches(n=(3,), seeds=(0, 1)),), (FAR,))
    with monkeypatch.context() as patch:
        method_that(patch, failing)
        found = run_study(study, path)
        assert found.failures == [f"far on n=3, seed {seed}: ZeroDivisionError: broken" for seed in (0, 1)]
        assert [(line.runs, line.answered, line.failed, line.gap) for line in found.summary()] == [(2, 0, 2, None)]
    assert run_study(study, path).failures, "a row is a row"
    assert not run_study(study, path, retry=True).failures
    assert len(path.read_text().splitlines()) == 4


def test_fresh_runs_measure_memory():
    traces = (GeneratedTraces(("normal-25",), parameters={"jobs": (3,)}),)
    study = Study((GeneratedBatches(n=(3,)),), (FAR,), fresh=True, traces=traces, policies=(FIRST_FIT,))
    for row in run_study(study).rows:
        assert (row.outcome.peak_bytes or 0) > 2**24
        assert row.outcome.status == "feasible"
