"""``mig-opt compare``: what it prints and writes, and how it ends."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Command, called

from mig_opt import Batch, Task, generate_batch, get_gpu, solve
from mig_opt.batch.schedule import Schedule
from mig_opt.files.batch.batches import write_batch
from mig_opt.heuristics.batch.far import far
from mig_opt.method.control import Control
from mig_opt.method.registry import Method


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "80")
    return functools.partial(called, capsys, "compare")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    write_batch(generate_batch(4, gpu="A30"), path)
    return path


def method_that(monkeypatch: pytest.MonkeyPatch, runner: Callable[[Batch, Control[Schedule]], None]) -> None:
    monkeypatch.setattr(Method, "load", lambda method: runner)
    monkeypatch.setattr("mig_opt.studies.batch.warm_up", lambda method: None)


def test_one_table_for_all(compare: Command, small: Path) -> None:
    ending = compare("rodinia-a30", small, "--methods", "cp,far")
    assert (ending.code, ending.err) == (0, "")
    lines = ending.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == [
        *("batches,", "methods", "status", "makespan", "s", "gap", "%", "above", "%", "time", "s")
    ]
    assert lines[2] == "rodinia-a30"
    assert lines[3].split()[:5] == ["cp", "optimal", "28.434", "0.000", "0.000"]
    assert lines[4].split()[:5] == ["far", "feasible", "29.261", "2.828", "2.910"]
    assert lines[5].split() == ["best", "bound", "28.434"]
    assert lines[6].split() == ["best", "known", "28.434"]
    summary = ending.out.split("\n\n")[1].splitlines()
    assert summary[2].split()[:4] == ["cp", "2/2", "2", "2"]
    assert summary[3].split()[:4] == ["far", "2/2", "0", "1"]


def test_json_and_csv_have_the_figures_in_full(compare: Command, small: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    ending = compare(small, "--methods", "far,cp", "--json", "-o", table, "--seed", 3, "--workers", 1)
    assert (ending.code, ending.err) == (0, "")
    found = ending.json
    assert [run["method"] for run in found["runs"]] == ["far", "cp"]
    assert (found["interrupted"], found["contradictions"]) == (False, [])
    assert [line["method"] for line in found["methods"]] == ["far", "cp"]
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["makespan_s"]) for row in rows] == [run["makespan_s"] for run in found["runs"]]
    assert rows[0]["gpu"] == "A30-24GB"
    assert rows[0]["error"] == ""
    best = min(run["makespan_s"] for run in found["runs"])
    assert found["runs"][0]["best_known_s"] == best


def test_batches_of_the_same_name_are_told_apart(compare: Command, small: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "small.json"
    write_batch(generate_batch(5, gpu="A30"), other)
    found = compare(small, other, "--methods", "far", "--json").json
    assert [run["batch"] for run in found["runs"]] == [str(small), str(other)]


def test_records_count_for_bundled_instances_as_they_are(compare: Command) -> None:
    best = compare("miso-a100-32", "--methods", "far", "--json").json["runs"][0]
    assert best["best_known_s"] == pytest.approx(2506.85)
    changed = compare("miso-a100-32", "--gpus", 2, "--methods", "far", "--json").json["runs"][0]
    assert changed["best_known_s"] == changed["makespan_s"]


def test_everything_wrong_is_told_at_once(compare: Command, small: Path, tmp_path: Path) -> None:
    before = small.read_text()
    wrong = ("--methods", "cp,fr", "--time-limit", 0, "--seed", -1, "-o", tmp_path / "no" / "x.csv")
    ending = compare("rodinia", "gone.json", small, small, *wrong)
    assert (ending.code, ending.out) == (2, "")
    for part in (
        "--methods: unknown method 'fr'; did you mean far",
        "--time-limit: must be",
        "--seed: must be",
        "did you mean rodinia-a30?",
        "gone.json: no such file",
        "small.json is given 2 times",
        "there is no folder",
    ):
        assert part in ending.err
    assert compare(small, "--methods", ",").code == 2
    assert compare(small, "-o", small).code == 2
    assert small.read_text() == before


def test_fixpart_needs_a_partition_of_every_batch(compare: Command, small: Path) -> None:
    ending = compare(small, "--methods", "far,fixpart")
    assert (ending.code, ending.out) == (2, "")
    assert ending.err.startswith("error: --partition: small: fixpart needs one; the partitions of A30-24GB are 4, 2+2,")
    ending = compare(small, "miso-a100-32", "--methods", "fixpart", "--partition", "2+2", "--seed", -1)
    assert (ending.code, ending.out) == (2, "")
    assert [line.split(":")[0].strip() for line in ending.err.splitlines()[1:]] == ["--partition", "--seed"]
    assert "miso-a100-32: A100-40GB has no partition '2+2'" in ending.err
    ending = compare(small, "--methods", "far", "--partition", "2+2")
    assert ending.code == 2
    assert "--partition: is for the method fixpart, which is not compared" in ending.err


def test_fixpart_beside_others(compare: Command, small: Path) -> None:
    ending = compare(small, "--methods", "fixpart,far,fixpart-best", "--partition", "2+2", "--json")
    assert (ending.code, ending.err) == (0, "")
    expected = solve(generate_batch(4, gpu="A30"), "fixpart", partition="2+2").makespan
    assert ending.json["runs"][0]["makespan_s"] == expected


def test_no_schedule_is_an_answer(compare: Command, tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    write_batch(Batch((Task("big", {1: 1.0}, memory_gb=20),), get_gpu("A30")), path)
    ending = compare(path, "rodinia-a30", "--methods", "far")
    assert ending.code == 1
    assert "infeasible" in ending.out
    assert "29.261" in ending.out


def test_a_method_that_fails_is_told(compare: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(batch: Batch, control: Control[Schedule]) -> None:
        raise ZeroDivisionError("broken")

    method_that(monkeypatch, failing)
    ending = compare(small, "--methods", "far")
    assert (ending.code, ending.err) == (1, "")
    assert "crashed" in ending.out
    assert "far on small: ZeroDivisionError: broken" in ending.out


def test_ctrl_c_shows_what_is_done(
    compare: Command, small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = 0

    def interrupted(batch: Batch, control: Control[Schedule]) -> None:
        nonlocal runs
        runs += 1
        if runs == 2:
            raise KeyboardInterrupt
        far(batch, control)

    method_that(monkeypatch, interrupted)
    table = tmp_path / "t.csv"
    ending = compare(small, "rodinia-a30", "--methods", "far", "-o", table)
    assert (ending.code, ending.err) == (130, "")
    assert "small" in ending.out
    assert "rodinia" not in ending.out
    assert "Interrupted: this is what was done so far." in ending.out
    assert len(table.read_text().splitlines()) == 2


def test_ctrl_c_before_anything_is_done(compare: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(batch: Batch, control: Control[Schedule]) -> None:
        raise KeyboardInterrupt

    method_that(monkeypatch, interrupted)
    ending = compare(small, "--methods", "far")
    assert (ending.code, ending.out) == (130, "Nothing was done.\n")


def test_contradictions_are_loud(compare: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.cli.batch.comparing._on_record", lambda batches, arguments: {"small": 0.001})
    ending = compare(small, "--methods", "far")
    assert ending.code == 70
    assert "contradict each other" in ending.err
    assert "but the record has one of 0.001 s" in ending.err
