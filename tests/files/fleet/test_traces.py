"""Traces as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from documents import DELETE, TRACE, changed, complaints, flaws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mig_opt import OperationCosts, get_gpu
from mig_opt.files.fleet.traces import (
    read_trace,
    trace_from_csv,
    trace_from_json,
    trace_to_csv,
    trace_to_json,
    write_trace,
)
from mig_opt.files.schema import schema
from mig_opt.fleet.trace import PCIE_LIMIT, Job, Trace
from mig_opt.gpu.model import Profile

A30 = get_gpu("A30")
names = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), max_size=3)
figures = st.floats(min_value=1e-6, max_value=1e9)


@st.composite
def traces(draw: st.DrawFn, *, growth: bool = True) -> Trace:
    jobs = []
    for index in range(draw(st.integers(1, 5))):
        profile: Profile | None = draw(st.none() | st.sampled_from(A30.profiles))
        times = draw(st.dictionaries(st.sampled_from(A30.sizes), figures, min_size=1))
        if profile is not None:
            times.setdefault(profile.compute_slices, draw(figures))
        shares = sorted(draw(st.sets(st.floats(0, 0.99), max_size=3))) if growth else []
        growing = tuple((share, draw(figures)) for share in shares)
        needed = max((gb for _, gb in growing), default=0.0)
        memory = draw(st.none() | st.floats(max(needed, 1e-6), 1e10))
        jobs.append(
            Job(
                f"{draw(names)}{index}",
                draw(st.floats(0, 1e6)),
                times,
                None if profile is None else profile.name,
                memory,
                growing,
                draw(st.just(0.0) | figures),
                draw(st.just(0.0) | figures),
            )
        )
    return Trace(tuple(jobs), A30, draw(st.integers(1, 9)), pcie_limit=draw(st.just(PCIE_LIMIT) | figures))


@pytest.mark.deep
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traces())
def test_round_trip(trace: Trace) -> None:
    text = trace_to_json(trace)
    assert trace_from_json(text) == trace
    assert trace_from_json(json.loads(text)) == trace
    assert flaws(schema("trace"), json.loads(text)) == []


@pytest.mark.deep
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traces(growth=False))
def test_round_trip_of_tables(trace: Trace) -> None:
    read = trace_from_csv(trace_to_csv(trace), gpu="A30", gpus=trace.gpus)
    assert read == trace.replace(pcie_limit=PCIE_LIMIT)


def test_everything_is_read() -> None:
    trace = trace_from_json(TRACE, name="mine")
    assert trace.jobs == (
        Job("chat", 3.0, {1: 4.0}, memory_growth=((0.0, 2.5), (0.5, 4.0)), pcie_gbps=5.7, sensitivity=1.25),
        Job("train", 12.5, {1: 30.0, 2: 16.0}, "2g.12gb", 9.5),
    )
    assert (trace.gpu, trace.gpus, trace.pcie_limit, trace.name) == (A30, 2, 24.5, "mine")
    assert trace.operations == OperationCosts({1: 0.11, 2: 0.12, 4: 0.13}, {1: 0.1, 2: 0.1, 4: 0.0})
    assert trace_from_json(TRACE, gpus=7).gpus == 7


def test_files_round_trip(tmp_path: Path) -> None:
    trace = trace_from_json(TRACE)
    write_trace(trace, tmp_path / "mine.json")
    assert read_trace(tmp_path / "mine.json") == trace
    assert read_trace(str(tmp_path / "mine.json")).name == "mine"
    steady = Trace(trace.jobs[1:], A30)
    write_trace(steady, tmp_path / "mine.csv")
    assert read_trace(tmp_path / "mine.csv", gpu="A30") == steady
    assert complaints(write_trace, trace, tmp_path / "other.csv") == [
        "jobs[0].memory_growth: a CSV file cannot hold how memory grows; write a JSON file"
    ]
    assert not (tmp_path / "other.csv").exists()


def test_a_table_asks_for_profiles_where_it_can() -> None:
    jobs = (Job("a", 0.0, {1: 4.0}, "1g.6gb"), Job("b", 1.0, {2: 2.5}, "2g.12gb", memory_gb=7.0))
    assert trace_to_csv(Trace(jobs, A30)) == (
        "job,arrival_s,profile,work_s,memory_gb\na,0.0,1g.6gb,4.0,\nb,1.0,2g.12gb,2.5,7.0\n"
    )


def test_own_figures_of_jobs_are_kept() -> None:
    jobs = (Job("a", 0.0, {1: 4.0}, energy_j=0.0), Job("b", 1.0, {2: 2.5}, sms=14), Job("c", 2.0, {1: 1.0}))
    trace = Trace(jobs, A30)
    assert trace_to_csv(trace) == (
        "job,arrival_s,t1_s,t2_s,energy_j,sms\na,0.0,4.0,,0.0,\nb,1.0,,2.5,,14\nc,2.0,1.0,,,\n"
    )
    assert trace_from_csv(trace_to_csv(trace), gpu="A30") == trace == trace_from_json(trace_to_json(trace))


def test_declared_times_are_kept() -> None:
    asking = Trace((Job("a", 0.0, {1: 4.0}, "1g.6gb", declared={1: 9.0}), Job("b", 1.0, {2: 2.5}, "2g.12gb")), A30)
    assert trace_to_csv(asking) == (
        "job,arrival_s,profile,work_s,declared_s\na,0.0,1g.6gb,4.0,9.0\nb,1.0,2g.12gb,2.5,\n"
    )
    assert trace_from_csv(trace_to_csv(asking), gpu="A30") == asking == trace_from_json(trace_to_json(asking))
    free = Trace((Job("a", 0.0, {1: 4.0, 2: 3.0}, declared={1: 9.0, 2: 9.0}),), A30)
    assert trace_from_json(trace_to_json(free)) == free
    assert complaints(trace_to_csv, free) == [
        "jobs[0].declared: a CSV file can hold declared times only if all jobs ask for profiles; write a JSON file"
    ]


def test_another_gpu_than_the_catalogues_cannot_be_written() -> None:
    import dataclasses

    other = dataclasses.replace(A30, name="A31")
    assert complaints(trace_to_json, Trace((Job("a", 0.0, {1: 4.0}),), other)) == [
        "gpu: A31 is not a GPU of the catalogue; a file names its GPU and cannot describe another"
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("jobs", [])], ["jobs: needs at least one job, is empty"]),
        ([("jobs/0/arrival", -1)], ["jobs[0].arrival: must be a finite number of seconds >= 0, is -1.0"]),
        ([("jobs/0/times/3", 1.0)], ["jobs[0].times.3: A30-24GB has no instances of 3 compute slices; its sizes are "]),
        ([("jobs/0/profile", "4g.24gb")], ["jobs[0].profile: times has no seconds for its 4 compute slices; add them"]),
        ([("jobs/0/profile", "2g.10gb")], ["jobs[0].profile: A30-24GB has no profile '2g.10gb'; did you mean"]),
        ([("jobs/1/memory_growth/0/0", 0.7)], ["jobs[1].memory_growth: shares of the work must rise"]),
        ([("jobs/1/memory_gb", 3)], ["jobs[1].memory_gb: 3 GB is less than memory_growth reaches"]),
        ([("jobs/1/name", "train")], ["jobs[1].name: 'train' is the name of jobs[0] already; give each job its own"]),
        ([("jobs/1/memory_growth/0", [0.1])], ["jobs[1].memory_growth[0][1]: is missing; add it"]),
        (
            [("jobs/0/energy_j", -2), ("jobs/1/sms", 0)],
            [
                "jobs[0].energy_j: must be a finite number of joules >= 0 (or left out), is -2.0",
                "jobs[1].sms: must be from 1 to 1000000, is 0",
            ],
        ),
        (
            [("jobs/0/declared", {"1": 5, "2": -1}), ("jobs/1/declared", {"1": 2, "4": 3})],
            [
                "jobs[0].declared.2: must be a finite number of seconds > 0, is -1.0",
                "jobs[1].declared: must have the sizes of times (1), has 1, 4",
            ],
        ),
        ([("jobs/0/declared", 3)], ["jobs[0].declared: must be an object"]),
        ([("gpus", 0)], ["gpus: must be from 1 to 1000000, is 0"]),
        ([("pcie_limit", 0)], ["pcie_limit: must be a finite number of GB/s > 0, is 0.0"]),
        ([("operations/create/2", DELETE)], ["operations.create: has no seconds for size 2 of A30-24GB; add them"]),
        ([("gpu", "A31"), ("jobs/0/times/3", 1.0)], ["gpu: unknown GPU 'A31'"]),
        (
            [("jobs/0/arival", 3), ("jobs/0/times/1", 0), ("jobs/1/sensitivity", -1), ("pcie_limit", "x")],
            [
                "jobs[0].arival: unknown key; did you mean arrival?",
                "jobs[0].times.1: must be a finite number of seconds > 0, is 0.0",
                "jobs[1].sensitivity: must be a finite number >= 0, is -1.0",
                'pcie_limit: must be a number, is "x"',
            ],
        ),
    ],
)
def test_everything_that_is_wrong_is_said_at_once(changes: list[tuple[str, object]], expected: list[str]) -> None:
    found = complaints(trace_from_json, changed(TRACE, *changes))
    assert len(found) == len(expected), found
    for problem, start in zip(found, expected, strict=True):
        assert problem.startswith(start)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("", ["is empty; a line with the columns is wanted: job,arrival_s,profile,work_s,..."]),
        ("job,arrival_s,t1_s\n", ["has no rows; add at least one job below the header"]),
        ("job,t1_s\na,3\n", ["line 1: has no column arrival_s; add one with the seconds at which they arrive"]),
        ("job,arrival_s\na,3\n", ["line 1: has no column with times; add work_s (on the profile that is asked for)"]),
        ("job,arrival_s,work_s\na,3,4\n", ["line 1: has work_s but no column profile; add one, since work_s"]),
        (
            "job,arrival_s,t1_s,declared_s\na,3,4,5\n",
            ["line 2, declared_s: is for rows with work_s; write a JSON file for times by size"],
        ),
        (
            "job,arrival_s,profile,work_s,declared_s\na,3,1g.6gb,4,-5\n",
            ["line 2, declared_s: must be a finite number of seconds > 0, is -5.0"],
        ),
        ("job,arrival_s,t3_s\na,3,4\n", ["line 1, t3_s: A30-24GB has no instances of 3", "line 2: has no time"]),
        ("job,arrival_s,t1_s,memory\na,3,4,5\n", ["line 1, memory: unknown column \"memory\"; did you mean"]),
        ("job,arrival_s,t1_s\na,x,0\n\na,1,\n", [
            'line 2, arrival_s: must be a number, is "x"',
            "line 2, t1_s: must be a finite number of seconds > 0, is 0.0",
            "line 4: has no time; fill in work_s or t<k>_s",
            "line 4, job: 'a' is the name of line 2 already; give each job its own",
        ]),
        ("job,arrival_s,profile,work_s,t1_s\na,1,1g.6gb,2,3\nb,1,,2,\nc,1,9g,2,\nd,1,2g.12gb,-2,\n", [
            "line 2, work_s: the row has times by size as well; keep one of the two",
            "line 3, profile: is empty, but work_s is the seconds on a profile",
            "line 4, profile: A30-24GB has no profile '9g'",
            "line 5, work_s: must be a finite number of seconds > 0, is -2.0",
        ]),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_with_a_table_is_said_at_once(table: str, expected: list[str]) -> None:
    found = complaints(trace_from_csv, table, gpu="A30")
    assert len(found) == len(expected), found
    for problem, start in zip(found, expected, strict=True):
        assert problem.startswith(start)


def test_a_table_needs_a_gpu() -> None:
    found = complaints(trace_from_csv, "job,arrival_s,t1_s\na,3,0\n")
    assert found[0].startswith("gpu: a CSV file does not name its GPU; give it")
    assert found[1] == "line 2, t1_s: must be a finite number of seconds > 0, is 0.0"


def test_weights_and_due_dates_are_kept(tmp_path: Path) -> None:
    jobs = (Job("a", 0.0, {1: 2.0}, "1g.5gb", weight=2.5, due=9.0), Job("b", 1.0, {1: 2.0}, "1g.5gb"))
    trace = Trace(jobs, get_gpu("A100"))
    for name in ("t.json", "t.csv"):
        write_trace(trace, tmp_path / name)
        assert read_trace(tmp_path / name, gpu="A100").jobs == jobs
    (tmp_path / "t.csv").write_text("job,arrival_s,t1_s,weight,due\na,0,1,0,-1\n")
    assert [complaint.split(":")[0] for complaint in complaints(read_trace, tmp_path / "t.csv", gpu="A100")] == [
        "line 2, due",
        "line 2, weight",
    ]
