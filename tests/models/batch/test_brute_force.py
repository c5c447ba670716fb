"""Brute force: by hand, against the textbook model, and within its limits."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
import tiny
from controlled import controlled
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_model import optimum
from strategies import Decisions, batches, costs, decimal_seconds, decisions, initial_states, tasks, whole_seconds

from mig_opt import Batch, GpuModel, OperationCosts, Schedule, Task, get_gpu
from mig_opt.batch.timing import timed_schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.brute_force import brute_force
from mig_opt.validation import validate

A30, A100, RTX = get_gpu("A30"), get_gpu("A100"), get_gpu("RTX-PRO-6000")


def searched(batch: Batch) -> Control[Schedule]:
    control = controlled(brute_force, batch)
    assert validate(batch, control.plan).valid
    return control


def test_rounded_times_give_a_bound_just_below() -> None:
    control = searched(Batch((Task("a", {4: 1 / 3}),), A30))
    assert control.objective == pytest.approx(0.13 + 1 / 3)
    assert control.objective - 1e-7 <= control.lower_bound < control.objective


def hundredths(table: Mapping[int, float], least: float = 0.0) -> dict[int, float]:
    return {size: max(least, round(seconds, 2)) for size, seconds in table.items()}


@st.composite
def small_batches(draw: st.DrawFn, gpu: GpuModel, max_tasks: int, max_gpus: int) -> Batch:
    """Times in multiples of 0.01 s, with few or many ties."""
    times = draw(st.sampled_from([whole_seconds, decimal_seconds]))
    count = draw(st.integers(1, max_gpus))
    drawn = draw(costs(gpu))
    live = draw(initial_states(gpu, count)) if draw(st.booleans()) else ()
    wanted = [draw(tasks(gpu, f"t{at}", times)) for at in range(draw(st.integers(1, max_tasks)))]
    return Batch(
        tuple(replace(task, times=hundredths(task.times, 0.01)) for task in wanted),
        gpu,
        count,
        OperationCosts(hundredths(drawn.create), hundredths(drawn.destroy)),
        tuple(replace(one, free=round(one.free, 2)) for one in live[:3]),
        draw(st.booleans()),
    )


SMALL = (small_batches(A30, 3, 1), small_batches(A30, 2, 2), small_batches(RTX, 3, 1))


@pytest.mark.parametrize("kinds", [SMALL, pytest.param((small_batches(A100, 2, 1),), marks=pytest.mark.deep)])
@given(data=st.data())
@settings(max_examples=40)
def test_the_textbook_model_finds_the_same_optimum(kinds, data: st.DataObject) -> None:
    batch = data.draw(st.one_of(kinds))
    assert searched(batch).objective == pytest.approx(optimum(batch), abs=1e-6)


@pytest.mark.deep
@given(decisions(st.just(A30)).filter(lambda case: len(case.batch.tasks) <= 3))
@settings(max_examples=30)
def test_no_decisions_give_a_shorter_schedule(case: Decisions) -> None:
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    control = searched(case.batch)
    assert max(control.objective, control.lower_bound) <= schedule.makespan + 2e-9


@given(batches(st.just(A30), max_tasks=3, max_gpus=1))
@settings(max_examples=30)
def test_what_makes_no_difference(batch: Batch) -> None:
    # Not the order of the tasks, nor that of the live instances.
    other = searched(batch.replace(tasks=batch.tasks[::-1], initial=batch.initial[::-1]))
    assert searched(batch).objective == pytest.approx(other.objective, abs=1e-8)


def test_one_gpu_searched_in_part_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    control = Control[Schedule](RunOptions(time_limit=1000))
    moments = iter(range(10**9))
    # The time is up after some 30 looks at the clock.
    monkeypatch.setattr(Control, "expired", property(lambda _: next(moments) > 30))
    brute_force(tiny.BATCH, control)
    assert control.lower_bound == 0.0
    assert control.plan is None or validate(tiny.BATCH, control.plan).valid
