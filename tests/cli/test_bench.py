"""``mig-opt bench``: resumed, interrupted, killed; its table, its messages, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import refuses
from study_jobs import cluster_of_two

STUDY = {
    "schema": "mig-opt/study/1",
    "batches": [{"n": [3, 4], "seeds": 2, "scaling": ["PoorScaling", "MixedScaling"]}, {"instance": "rodinia-a30"}],
    "methods": [{"method": "far"}, {"method": "cp", "time_limit": 5}],
}
RUNS = 18


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.json"
    path.write_text(json.dumps(STUDY))
    return path


def written(study: Path, *batches: dict[str, Any]) -> Path:
    """The file of a study, with FAR alone on some batches, or on its own."""
    study.write_text(json.dumps({**STUDY, "batches": batches or STUDY["batches"], "methods": [{"method": "far"}]}))
    return study


@pytest.mark.deep
def test_on_a_dask_cluster(narrow, study):
    written(study)
    with cluster_of_two() as scheduler:
        ending = narrow("bench", study, "--scheduler", scheduler)
    assert (ending.code, ending.err) == (0, "")
    assert len(study.with_suffix(".jsonl").read_text().splitlines()) == RUNS // 2


def begun(study: Path, *options: str) -> subprocess.Popen[str]:
    """A process that runs a study and has written three rows of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mig_opt", "bench", str(study), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    rows, end = study.with_suffix(".jsonl"), time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        if rows.exists() and rows.read_bytes().count(b"\n") >= 3:
            break
        time.sleep(0.01)
    return process


@pytest.fixture
def endless(study):
    """A study whose last runs take longer than any test."""
    batches = [{"n": [3, 4, 5]}, {"n": 60, "gpus": 4, "seeds": 4}]
    methods = [{"method": "cp", "time_limit": 600}]
    study.write_text(json.dumps({**STUDY, "batches": batches, "methods": methods}))
    return study


@pytest.mark.deep
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_only_runs_in_flight_are_lost(endless, narrow, number):
    with begun(endless) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    rows = endless.with_suffix(".jsonl")
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "Interrupted after 3 of 7 runs; the same command goes on from here." in out
        assert err == ""
    assert rows.read_bytes().count(b"\n") == 3
    with rows.open("a") as file:
        file.write('{"run": {"batch": {"n"')
    found = narrow("bench", endless, "--table", "--json").json
    assert (found["done"], found["missing"]) == (3, 4)


def test_a_file_of_something_else_is_not_touched(narrow, study, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("important\n")
    refuses(narrow("bench", study, "-o", other), "line 1: is no row of such a study")
    assert other.read_text() == "important\n"


def rewritten(rows: Path, **outcome: Any) -> None:
    """Change the outcomes of all rows."""
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    texts = (json.dumps({**line, "outcome": {**line["outcome"], **outcome}}) + "\n" for line in lines)
    rows.write_text("".join(texts))


@pytest.mark.deep
def test_failures_are_told_and_done_again_on_request(narrow, study):
    assert narrow("bench", written(study, {"n": 3, "seeds": 12})).code == 0
    broken = {"status": "crashed", "makespan": None, "lower_bound": None, "error": "broken \x1b[31m"}
    rewritten(study.with_suffix(".jsonl"), **broken)
    ending = narrow("bench", study)
    assert ending.code == 1
    assert "far on n=3, seed 9: broken \\x1b[31m" in ending.out
    assert "seed 10" not in ending.out
    assert "and 2 more" in ending.out
    assert "0/12" in ending.out
    assert narrow("bench", study, "--retry").code == 0


def test_contradictions_are_loud(narrow, study):
    assert narrow("bench", written(study, {"n": 3})).code == 0
    rewritten(study.with_suffix(".jsonl"), lower_bound=1e9)
    ending = narrow("bench", study, "--table")
    assert ending.code == 70
    assert "far on n=3, seed 0: no schedule is below 1e+09 s, but" in ending.err


def test_foreign_rows_are_told(narrow, study, monkeypatch):
    narrow("bench", written(study, {"n": 3}))
    monkeypatch.setattr("mig_opt.studies.studies.fingerprint", lambda: "other")
    assert "1 run was made with other sources or versions." in narrow("bench", study, "--keep", "--table").out
    assert "1 of 1 runs are missing" in narrow("bench", study, "--table").out


def test_a_number_of_gpus_that_the_pools_of_a_file_say_is_refused_with_its_place(run, study, tmp_path):
    pools = [{"gpu": gpu, "count": 1} for gpu in ("A30", "A100")]
    task = {"name": "a", "times": {"A30": {"1": 4.0}, "A100": {"1": 3.0}}}
    (tmp_path / "mixed.json").write_text(json.dumps({"schema": "mig-opt/batch/1", "pools": pools, "tasks": [task]}))
    written(study, {"file": "mixed.json", "gpus": 3})
    refuses(run("bench", study), f"error: {study}", "batches[0].gpus: is 3, but the pools have 2; leave it out")
