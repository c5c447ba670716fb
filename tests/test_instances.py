"""The bundled instances hold the published figures, and say where they come from."""

from __future__ import annotations

import csv
import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pytest

from mig_opt.batch import Task
from mig_opt.errors import InputError
from mig_opt.instances import (
    BestKnown,
    Finding,
    bundled,
    instance_info,
    instance_names,
    load_instance,
    record_best_known,
)
from mig_opt.result import Result, Status
from mig_opt.schedule import Run, Schedule

DATA = Path(bundled.__file__).with_name("data")
PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published figures are not here")


def rows(name: str) -> list[dict[str, str]]:
    with (PUBLISHED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# Every instance


def test_names() -> None:
    assert instance_names() == ("rodinia-a30", "miso-a100-32", "miso-a100-100")
    files = {path.stem for path in DATA.glob("*.json")} - {"index"}
    assert files == set(instance_names())


@pytest.mark.parametrize("name", instance_names())
def test_loads_and_every_task_has_an_option(name: str) -> None:
    batch, info = load_instance(name), instance_info(name)
    assert batch.name == name
    assert (len(batch.tasks), batch.gpu.name) == (info.n, info.gpu)
    assert batch.gpus == 1
    assert batch.operations == batch.gpu.operation_costs
    assert all(batch.options(task) for task in batch.tasks)


@pytest.mark.parametrize("name", instance_names())
def test_says_where_it_comes_from(name: str) -> None:
    info = instance_info(name)
    assert info.name == name
    assert info.licence.startswith("MIT, Copyright (c) 20")
    assert info.url.startswith("https://github.com/")
    assert info.source.split(",")[0] == info.url.removeprefix("https://github.com/")
    assert info.title
    assert info.derivation
    assert info.notes


@pytest.mark.parametrize("load", [load_instance, instance_info])
def test_unknown_name_offers_the_nearest(load) -> None:
    with pytest.raises(InputError, match="did you mean rodinia-a30") as caught:
        load("rodinia-a3")
    assert caught.value.problems[0].path == "name"


@pytest.mark.parametrize("name", instance_names())
def test_best_known_values_do_not_cross_and_are_signed(name: str) -> None:
    known = instance_info(name).best_known
    if known is None:
        pytest.skip("nothing on record")
    findings = [finding for finding in (known.makespan, known.lower_bound) if finding]
    assert findings
    for finding in findings:
        assert finding.value > 0
        assert finding.method
        assert finding.found_by
        assert finding.versions
        assert finding.proof
        dt.date.fromisoformat(finding.date)
    if known.makespan and known.lower_bound:
        assert known.lower_bound.value <= known.makespan.value + 1e-6
    if known.status is Status.OPTIMAL:
        assert known.makespan
        assert known.lower_bound


# The figures


def test_figures_are_exact_decimals() -> None:
    by_name = {task.name: task for task in load_instance("miso-a100-32").tasks}
    assert dict(by_name["bert-b2"].times) == {2: 121.4, 3: 75.3, 4: 68.7, 7: 47.2}
    assert by_name["bert-b2"].memory_gb is None


def test_a_missing_figure_is_a_missing_size() -> None:
    by_name = {task.name: task for task in load_instance("rodinia-a30").tasks}
    assert dict(by_name["lavaMD"].times) == {2: 21.697, 4: 17.3214}


def test_notes_on_non_monotone_and_super_linear_times_are_true() -> None:
    def slower(name: str, less: int, more: int) -> set[str]:
        tasks = load_instance(name).tasks
        return {t.name for t in tasks if less in t.times and more in t.times and t.times[more] > t.times[less]}

    def super_linear(name: str, less: int, more: int) -> set[str]:
        tasks = [t for t in load_instance(name).tasks if less in t.times and more in t.times]
        return {t.name for t in tasks if Decimal(repr(t.times[less])) * less > Decimal(repr(t.times[more])) * more}

    rodinia = {task.name for task in load_instance("rodinia-a30").tasks}
    assert slower("rodinia-a30", 2, 4) == rodinia - {"gaussian", "lavaMD"}
    assert slower("rodinia-a30", 1, 4) == {"huffman", "pathfinder"}
    assert not super_linear("rodinia-a30", 1, 2)
    assert not super_linear("rodinia-a30", 2, 4)
    assert slower("miso-a100-32", 3, 4) == {"resnet-b64"}
    assert len(super_linear("miso-a100-32", 2, 3)) == 11
    assert super_linear("miso-a100-32", 1, 2) == {"deepspeech2-b8"}
    assert super_linear("miso-a100-32", 4, 7) == {"transformer-b128"}
    assert slower("miso-a100-100", 3, 4) == {f"resnet-b64-{job}" for job in (21, 22, 59, 81)}
    assert len(super_linear("miso-a100-100", 2, 3)) == 20
    assert len(super_linear("miso-a100-100", 4, 7)) == 9


def test_memory_of_the_trace_agrees_with_what_the_profiles_can_use() -> None:
    batch = load_instance("miso-a100-100")
    assert batch.profile_set == "double-memory"
    beyond = [task for task in batch.tasks if task.memory_gb and task.memory_gb > 5 and 1 in task.times]
    assert len(beyond) == 51
    for task in batch.tasks:
        assert task.memory_gb is not None
        for profile in batch.gpu.profiles_of("double-memory"):
            assert profile.usable_mib is not None
            fits = task.memory_gb * 1024 <= profile.usable_mib
            assert (task.memory_gb <= profile.memory_gb) == fits


@needs_published
def test_rodinia_matches_what_was_published() -> None:
    published = {
        row["task"]: {size: float(row[f"t{size}_s"]) for size in (1, 2, 4) if row[f"t{size}_s"]}
        for row in rows("rodinia_a30/times.csv")
    }
    assert {task.name: dict(task.times) for task in load_instance("rodinia-a30").tasks} == published


@needs_published
def test_miso_32_matches_what_was_published() -> None:
    published: dict[str, dict[int, float]] = {}
    for row in rows("miso/iteration_times.csv"):
        times = published.setdefault(f"{row['model']}-b{row['batch']}", {})
        times[int(row["gpcs"])] = float(1000 * Decimal(row["mean_iter_s_excl_first"]))
    assert len(published) == 32
    assert {task.name: dict(task.times) for task in load_instance("miso-a100-32").tasks} == published


@needs_published
def test_miso_100_matches_what_was_published() -> None:
    published = tuple(
        Task(
            f"{row['model']}-b{row['batch']}-{row['job']}",
            {size: float(row[f"t{size}_s"]) for size in (1, 2, 3, 4, 7) if row[f"t{size}_s"]},
            int(row["mem_mib"]) / 1024,
        )
        for row in rows("miso/jobs_100.csv")
    )
    assert len(published) == 100
    assert load_instance("miso-a100-100").tasks == published


@needs_published
@pytest.mark.parametrize(
    ("name", "folder"), [("rodinia-a30", "rodinia_a30"), ("miso-a100-32", "miso"), ("miso-a100-100", "miso")]
)
def test_licences_match_what_was_published(name: str, folder: str) -> None:
    lines = (PUBLISHED / folder / "LICENSE").read_text(encoding="utf-8").splitlines()
    assert instance_info(name).licence == f"MIT, {lines[2]}"


# Recording best-known values


@pytest.fixture
def index(tmp_path: Path) -> Path:
    content = json.loads((DATA / "index.json").read_text(encoding="utf-8"))
    for entry in content["instances"]:
        entry["best_known"] = None
    path = tmp_path / "index.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def result(
    makespan: float | None,
    bound: float,
    status: Status = Status.FEASIBLE,
    method: str = "cp",
    name: str = "rodinia-a30",
) -> Result:
    schedule = None
    if makespan is not None:
        schedule = Schedule(tuple(Run(t.name, 0, "", 0, 0.0, makespan) for t in load_instance(name).tasks))
    return Result(status, method, schedule, bound, 1.0, versions={"mig_opt": "0.1.0", "ortools": "9.15"})


def record(index: Path, outcome: Result, day: int = 1) -> tuple[str, ...]:
    return record_best_known({"rodinia-a30": outcome}, found_by="someone", on=dt.date(2025, 1, day), index=index)


def recorded(index: Path) -> BestKnown | None:
    entries = json.loads(index.read_text(encoding="utf-8"))["instances"]
    entry = next(entry["best_known"] for entry in entries if entry["name"] == "rodinia-a30")
    if entry is None:
        return None
    findings = [Finding(**entry[key]) if entry[key] else None for key in ("makespan", "lower_bound")]
    return BestKnown(Status(entry["status"]), *findings)


def test_records_who_when_how_and_with_what_proof(index: Path) -> None:
    assert record(index, result(30.0, 28.0)) == ("rodinia-a30",)
    known = recorded(index)
    assert known is not None
    assert known.status is Status.FEASIBLE
    assert known.makespan == Finding(
        30.0, "cp", "someone", "2025-01-01", "mig_opt 0.1.0, ortools 9.15", "the schedule passes the validator"
    )
    assert known.lower_bound is not None
    assert known.lower_bound.value == 28.0
    assert "every schedule" in known.lower_bound.proof


def test_only_better_values_replace(index: Path) -> None:
    record(index, result(30.0, 28.0))
    assert record(index, result(30.0, 28.0, method="later"), day=2) == ()
    assert record(index, result(31.0, 27.0), day=2) == ()
    assert record(index, result(29.0, 27.0, method="search"), day=3) == ("rodinia-a30",)
    known = recorded(index)
    assert known is not None
    assert known.makespan
    assert known.lower_bound
    assert (known.makespan.value, known.makespan.method, known.makespan.date) == (29.0, "search", "2025-01-03")
    assert (known.lower_bound.value, known.lower_bound.method, known.lower_bound.date) == (28.0, "cp", "2025-01-01")


def test_status_is_optimal_by_proof_or_when_the_values_meet(index: Path) -> None:
    def status() -> Status | None:
        known = recorded(index)
        return known.status if known else None

    record(index, result(None, 0.0, Status.NO_SOLUTION))
    assert status() is None
    record(index, result(None, 20.0, Status.NO_SOLUTION))
    assert status() is Status.NO_SOLUTION
    record(index, result(31.0, 28.0))
    assert status() is Status.FEASIBLE
    record(index, result(None, 31.0, Status.NO_SOLUTION))
    assert status() is Status.OPTIMAL


def test_a_proof_of_optimality_stays_on_record(index: Path) -> None:
    record(index, result(30.0, 29.999, Status.OPTIMAL))
    record(index, result(31.0, 28.0))
    known = recorded(index)
    assert known is not None
    assert known.status is Status.OPTIMAL
    assert known.makespan
    assert known.makespan.value == 30.0


@pytest.mark.parametrize(("makespan", "bound"), [(27.0, 0.0), (None, 31.0)])
def test_values_that_cross_are_an_error_and_nothing_is_written(
    index: Path, makespan: float | None, bound: float
) -> None:
    record(index, result(30.0, 28.0))
    before = index.read_bytes()
    results = {
        "miso-a100-32": result(9.0, 8.0, name="miso-a100-32"),
        "rodinia-a30": result(makespan, bound),
        "miso-a100": result(9.0, 8.0),
    }
    with pytest.raises(InputError) as caught:
        record_best_known(results, found_by="someone", index=index)
    assert [problem.path for problem in caught.value.problems] == ["rodinia-a30", "miso-a100"]
    assert "one of them is wrong" in str(caught.value)
    assert "did you mean miso-a100-" in str(caught.value)
    assert index.read_bytes() == before


def test_a_schedule_of_other_tasks_is_an_error(index: Path) -> None:
    with pytest.raises(InputError, match="other tasks") as caught:
        record(index, result(9.0, 8.0, name="miso-a100-32"))
    assert caught.value.problems[0].path == "rodinia-a30"
    assert recorded(index) is None


def test_records_for_today_unless_told_otherwise(index: Path) -> None:
    before = dt.datetime.now(tz=dt.UTC).date() - dt.timedelta(days=1)
    record_best_known({"rodinia-a30": result(30.0, 28.0)}, found_by="someone", index=index)
    known = recorded(index)
    assert known is not None
    assert known.makespan
    assert before <= dt.date.fromisoformat(known.makespan.date) <= before + dt.timedelta(days=3)
