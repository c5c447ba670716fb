"""Traces as files."""

import dataclasses

import online_worlds
import pytest
from documents import TRACE, complaints, round_trip
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mig_opt import Job, get_gpu
from mig_opt.files.fleet.traces import TRACE as TRACE_FILE
from mig_opt.fleet.trace import PCIE_LIMIT, Trace

A30 = get_gpu("A30")
names = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), max_size=3)
figures = st.floats(min_value=1e-6, max_value=1e9)


@st.composite
def traces(draw: st.DrawFn, drawn: st.SearchStrategy[Trace]) -> Trace:
    """Drawn traces with any names and any limit of the link."""
    trace = draw(drawn)
    jobs = (dataclasses.replace(job, name=f"{draw(names)}{at}") for at, job in enumerate(trace.jobs))
    return trace.replace(jobs=tuple(jobs), pcie_limit=draw(st.just(PCIE_LIMIT) | figures))


@pytest.mark.deep
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traces(online_worlds.disturbed(5)))
def test_round_trip(trace):
    round_trip(TRACE_FILE, trace)


@pytest.mark.deep
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traces(online_worlds.traces(5)))
def test_round_trip_of_tables(trace):
    trace = trace.replace(jobs=tuple(dataclasses.replace(job, memory_growth=()) for job in trace.jobs))
    read = TRACE_FILE.from_csv(TRACE_FILE.to_csv(trace), gpu="A100", gpus=trace.gpus)
    assert read == trace.replace(operations=read.operations, pcie_limit=PCIE_LIMIT)


def test_files_round_trip(tmp_path):
    trace = TRACE_FILE.from_json(TRACE)
    TRACE_FILE.write(trace, tmp_path / "mine.json")
    assert TRACE_FILE.read(tmp_path / "mine.json") == trace
    assert TRACE_FILE.read(str(tmp_path / "mine.json")).name == "mine"
    steady = Trace((dataclasses.replace(trace.jobs[1], name="two\rlines"),), A30)
    TRACE_FILE.write(steady, tmp_path / "mine.csv")
    assert TRACE_FILE.read(tmp_path / "mine.csv", gpu="A30") == steady
    other = Trace((trace.jobs[0], dataclasses.replace(trace.jobs[1], name=" b")), A30)
    assert complaints(TRACE_FILE.write, other, tmp_path / "other.csv") == [
        "jobs[0].memory_growth: a CSV file cannot hold how memory grows; write a JSON file",
        "jobs[1].name: a CSV file loses the space around it; write a JSON file",
    ]
    assert not (tmp_path / "other.csv").exists()


def test_a_table_asks_for_profiles_where_it_can():
    jobs = (Job("a", 0.0, {1: 4.0}, "1g.6gb"), Job("b", 1.0, {2: 2.5}, "2g.12gb", memory_gb=7.0))
    assert TRACE_FILE.to_csv(Trace(jobs, A30)) == (
        "job,arrival_s,profile,work_s,memory_gb\na,0.0,1g.6gb,4.0,\nb,1.0,2g.12gb,2.5,7.0\n"
    )


def test_own_figures_of_jobs_are_kept():
    first = Job("a", 0.0, {1: 4.0}, energy_j=0.0, weight=2.5, due=9.0)
    trace = Trace((first, Job("b", 1.0, {2: 2.5}, sms=14), Job("c", 2.0, {1: 1.0})), A30)
    assert TRACE_FILE.to_csv(trace) == (
        "job,arrival_s,t1_s,t2_s,energy_j,sms,weight,due\na,0.0,4.0,,0.0,,2.5,9.0\nb,1.0,,2.5,,14,,\nc,2.0,1.0,,,,,\n"
    )
    assert TRACE_FILE.from_csv(TRACE_FILE.to_csv(trace), gpu="A30") == trace
    round_trip(TRACE_FILE, trace)


def test_declared_times_are_kept():
    asking = Trace((Job("a", 0.0, {1: 4.0}, "1g.6gb", declared={1: 9.0}), Job("b", 1.0, {2: 2.5}, "2g.12gb")), A30)
    text = "job,arrival_s,profile,work_s,declared_s\na,0.0,1g.6gb,4.0,9.0\nb,1.0,2g.12gb,2.5,\n"
    assert TRACE_FILE.to_csv(asking) == text
    assert TRACE_FILE.from_csv(TRACE_FILE.to_csv(asking), gpu="A30") == asking
    round_trip(TRACE_FILE, asking)
    free = Trace((Job("a", 0.0, {1: 4.0, 2: 3.0}, declared={1: 9.0, 2: 9.0}),), A30)
    round_trip(TRACE_FILE, free)
    assert complaints(TRACE_FILE.to_csv, free) == [
        "jobs[0].declared: a CSV file can hold declared times only if all jobs ask for profiles; write a JSON file"
    ]


def test_another_gpu_than_the_catalogues_is_written_with_its_model():
    other = dataclasses.replace(A30, name="A31", aliases=())
    trace = Trace((Job("a", 0.0, {1: 4.0}),), other)
    assert TRACE_FILE.from_json(TRACE_FILE.to_json(trace)) == trace
    assert TRACE_FILE.document(trace)["gpu"]["schema"] == "mig-opt/gpu/1"
