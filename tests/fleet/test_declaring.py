"""Run times that schedulers are told: errors, means of classes, one time for all."""

import dataclasses
import math
from statistics import fmean

import pytest
from documents import complaints
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import traces

from mig_opt import Job, Trace, declare_times, generate_trace, get_gpu
from mig_opt.fleet.declared_times import declared_error

A30 = get_gpu("A30")


def declared(trace: Trace) -> list[dict[int, float]]:
    return [dict(job.declared or {}) for job in trace.jobs]


@settings(max_examples=50, deadline=None)
@given(traces(), st.sampled_from([0.0, 0.5, 2.0, "classes", "one"]), st.integers(0, 10**6))
def test_only_what_is_declared_differs(trace: Trace, knowledge: float | str, seed: int) -> None:
    found = declare_times(trace, knowledge, seed=seed)
    assert found == declare_times(trace, knowledge, seed=seed)
    assert found.replace(jobs=trace.jobs) == trace
    assert [dataclasses.replace(job, declared=None) for job in found.jobs] == list(trace.jobs)
    assert all(job.declared is not None and job.declared.keys() == job.times.keys() for job in found.jobs)
    assert [job.times for job in found.as_declared().jobs] == declared(found)
    if knowledge == 0.0:
        assert declared(found) == [job.times for job in trace.jobs]


def test_errors_are_the_same_factor_at_all_sizes_and_differ_by_seed() -> None:
    trace = generate_trace("far-stream", batches=1, tasks=12, seed=3)
    found = declare_times(trace, 1.0, seed=1)
    for job in found.jobs:
        factors = [(job.declared or {})[size] / seconds for size, seconds in job.times.items()]
        assert factors == pytest.approx([factors[0]] * len(factors))
    assert declared(found) != declared(declare_times(trace, 1.0, seed=2))


def test_classes_are_jobs_that_ask_for_the_same() -> None:
    jobs = (
        Job("a", 0.0, {1: 10.0, 2: 6.0}, memory_gb=3.0),
        Job("b", 1.0, {1: 30.0, 2: 10.0}, memory_gb=5.0),
        Job("c", 2.0, {1: 50.0, 2: 40.0}, memory_gb=11.0),  # the small profile has 6 GB
        Job("d", 3.0, {1: 70.0, 2: 50.0}, memory_gb=3.0, pcie_gbps=5.0, sensitivity=1.0),
        Job("e", 4.0, {2: 7.0}, "2g.12gb"),
    )
    trace = Trace(jobs, A30)
    means = [{1: 20.0, 2: 8.0}, {1: 20.0, 2: 8.0}, {1: 50.0, 2: 40.0}, {1: 70.0, 2: 50.0}, {2: 7.0}]
    assert declared(declare_times(trace, "classes")) == means
    mean = fmean([10.0, 30.0, 50.0, 70.0, 7.0])
    assert declared(declare_times(trace, "one")) == [dict.fromkeys(job.times, mean) for job in jobs]


def test_the_median_error_of_what_is_declared() -> None:
    jobs = tuple(Job(name, 0.0, {1: 10.0}) for name in "abc")
    trace = Trace(jobs, A30)
    assert declared_error(trace) is None
    assert declared_error(declare_times(trace, 0.0)) == 1.0
    told = (Job("a", 0.0, {1: 10.0}, declared={1: 2.0}), Job("b", 0.0, {1: 10.0}, declared={1: 40.0}), jobs[2])
    assert declared_error(Trace(told, A30)) == pytest.approx(4.0)


def test_what_is_wrong_with_the_arguments_is_said_at_once() -> None:
    trace = Trace((Job("a", 0.0, {1: 10.0}),), A30)
    wanted = "must be a number from 0 to 5, or one of classes, one, is"
    assert complaints(declare_times, trace, "clases", seed=-1) == [
        f"knowledge: {wanted} 'clases'; did you mean classes?",
        f"seed: must be from 0 to {2**63 - 1}, is -1",
    ]
    for knowledge in (-0.5, 6, math.nan):
        assert complaints(declare_times, trace, knowledge) == [f"knowledge: {wanted} {knowledge}"]
    assert complaints(Job, "a", 0.0, {1: 10.0}, declared={1: 0.0, 2: 3.0}) == [
        "declared.1: must be a finite number of seconds > 0, is 0.0",
        "declared: must have the sizes of times (1), has 1, 2",
    ]
