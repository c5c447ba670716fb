"""Best-known values of the bundled instances are recorded with who, when, how and with what proof."""

from __future__ import annotations

import datetime as dt
import json
import math
from pathlib import Path

import pytest

from mig_opt.batch.schedule import Run, Schedule, ScheduleResult
from mig_opt.errors import InputError
from mig_opt.instances import bundled
from mig_opt.instances.bundled import BestKnown, FewestGpus, Finding, load_demand, load_instance
from mig_opt.instances.records import record_best_known
from mig_opt.method.result import Status
from mig_opt.serving.deployment import Deployment, DeploymentResult, Segment

DATA = Path(bundled.__file__).with_name("data")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    content = json.loads((DATA / "index.json").read_text(encoding="utf-8"))
    for entry in content["instances"]:
        entry.update(dict.fromkeys({"best_known", "fewest_gpus"} & entry.keys()))
    path = tmp_path / "index.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def result(
    makespan: float | None,
    bound: float,
    status: Status = Status.FEASIBLE,
    method: str = "cp",
    name: str = "rodinia-a30",
) -> ScheduleResult:
    schedule = None
    if makespan is not None:
        schedule = Schedule(tuple(Run(t.name, 0, "", 0, 0.0, makespan) for t in load_instance(name).tasks))
    return ScheduleResult(status, method, schedule, bound, 1.0, versions={"mig_opt": "0.1.0", "ortools": "9.15"})


def record(index: Path, outcome: ScheduleResult, day: int = 1) -> tuple[str, ...]:
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


def serving(name: str = "parvagpu-s1") -> Deployment:
    """A deployment that gives each segment a GPU of its own."""
    demand = load_demand(name)
    segments: list[Segment] = []
    for service, options in zip(demand.services, demand.options, strict=True):
        profile, point = options[-1].profile.name, options[-1].point
        figures = (point.batch, point.processes, point.throughput, point.latency)
        for _ in range(math.ceil(service.rate / point.throughput)):
            segments.append(Segment(service.name, len(segments), profile, 0, *figures))
    return Deployment(("A100-80GB",) * len(segments), tuple(segments))


def fleet(deployment: Deployment | None, bound: int, status: Status = Status.FEASIBLE) -> DeploymentResult:
    versions = {"mig_opt": "0.1.0"}
    return DeploymentResult(status, "exact", deployment, bound, 1.0, reason="slices are full", versions=versions)


def record_fleet(index: Path, outcome: DeploymentResult, name: str = "parvagpu-s1") -> FewestGpus | None:
    record_best_known({name: outcome}, found_by="someone", on=dt.date(2025, 1, 1), index=index)
    entry = next(entry for entry in json.loads(index.read_text("utf-8"))["instances"] if entry["name"] == name)
    return bundled.recorded(FewestGpus, entry["fewest_gpus"])


def test_records_the_fewest_gpus_of_a_demand(index: Path) -> None:
    known = record_fleet(index, fleet(None, 2, Status.NO_SOLUTION))
    assert known is not None
    assert (known.status, known.gpus) == (Status.NO_SOLUTION, None)
    assert known.lower_bound == Finding(2, "exact", "someone", "2025-01-01", "mig_opt 0.1.0", "slices are full")
    known = record_fleet(index, fleet(serving(), 1))
    assert known is not None
    assert known.status is Status.FEASIBLE
    assert known.gpus == Finding(
        6, "exact", "someone", "2025-01-01", "mig_opt 0.1.0", "the deployment passes the validator"
    )
    assert known.lower_bound
    assert known.lower_bound.value == 2
    known = record_fleet(index, fleet(None, 6, Status.NO_SOLUTION))
    assert known is not None
    assert known.status is Status.OPTIMAL


def test_wrong_results_of_demands_are_refused(index: Path) -> None:
    record_fleet(index, fleet(serving(), 1))
    before = index.read_bytes()
    results = {
        "parvagpu-s1": fleet(None, 7),
        "parvagpu-s2": fleet(serving(), 1),
        "parvagpu-s3": result(9.0, 8.0),
        "miso-a100-32": fleet(serving(), 1),
        "rodinia-a30": result(30.0, 28.0),
    }
    with pytest.raises(InputError) as caught:
        record_best_known(results, found_by="someone", index=index)
    found = {problem.path: problem.message for problem in caught.value.problems}
    assert found.keys() == {"parvagpu-s1", "parvagpu-s2", "parvagpu-s3.name", "miso-a100-32.name"}
    assert found["parvagpu-s1"].startswith("6 GPUs (exact, 2025-01-01) is below the lower bound of 7 GPUs (exact, ")
    assert found["parvagpu-s2"].startswith("the deployment has too little throughput for densenet169, densenet201")
    with pytest.raises(InputError, match="serves other services than those of the instance"):
        record_best_known({"parvagpu-s1": fleet(serving("parvagpu-s2"), 1)}, found_by="someone", index=index)
    assert index.read_bytes() == before
