"""Timelines: the times are those of the schedule, and slacks are how much a load can grow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import costs, gpus, states

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import OperationKind
from mig_opt.batch.timing import GpuTimeline, PlannedInstance, Times, timed_schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuModel, OperationCosts

A30 = get_gpu("A30")


@dataclass(frozen=True)
class Loaded:
    """A timeline with loads, and what it was made from."""

    gpu: GpuModel
    operations: OperationCosts
    parallel: bool
    instances: tuple[PlannedInstance, ...]
    driver_free: float
    clear: dict[int, float]
    loads: tuple[float, ...]

    @property
    def timeline(self) -> GpuTimeline:
        return GpuTimeline(
            self.instances,
            self.operations,
            parallel_operations=self.parallel,
            driver_free=self.driver_free,
            clear=self.clear,
        )

    def makespan(self, loads: tuple[float, ...], order: tuple[tuple[OperationKind, int], ...]) -> float:
        """The makespan that other code finds for some loads, with that order of operations."""
        tasks = [[Task("t", dict.fromkeys(self.gpu.sizes, load))] if load else [] for load in loads]
        instances = [replace(instance, tasks=planned) for instance, planned in zip(self.instances, tasks, strict=True)]
        batch = Batch(
            (Task("t", {self.gpu.sizes[0]: 1.0}),),
            self.gpu,
            operations=self.operations,
            parallel_operations=self.parallel,
        )
        driver_free = {} if self.parallel else {0: self.driver_free}
        clear = {(0, position): seconds for position, seconds in self.clear.items()}
        return timed_schedule(batch, instances, order, driver_free=driver_free, clear=clear).makespan


@st.composite
def loaded(draw: st.DrawFn) -> Loaded:
    gpu = draw(gpus)
    seconds = st.one_of(st.integers(0, 300).map(lambda n: n / 100), st.integers(0, 5).map(float))
    live = [
        PlannedInstance(0, placement, free=draw(seconds)) for placement in draw(st.sampled_from(states(gpu, "base")))
    ]
    created = [PlannedInstance(0, placement) for placement in gpu.placements()]
    if draw(st.booleans()):
        created.reverse()
    instances = (*live, *created)
    taken = {position for one in live for position in one.placement.footprint}
    clear = {position: draw(seconds) for position in range(gpu.memory_slices) if position not in taken}
    parallel = draw(st.booleans())
    loads = tuple(draw(st.one_of(st.just(0.0), seconds)) for _ in instances)
    driver_free = 0.0 if parallel else draw(seconds)
    return Loaded(gpu, draw(costs(gpu)), parallel, instances, driver_free, clear, loads)


# By hand


def created(*where: tuple[str, int]) -> list[PlannedInstance]:
    return [PlannedInstance(0, A30.placement(*place)) for place in where]


def test_slack_by_hand() -> None:
    # 4g created 0-0.13, 1 s; destroyed 1.13-1.23; 1g@2 (3 s) 1.23-1.34-4.34; 2g@0 (2 s) 1.34-1.46-3.46.
    timeline = GpuTimeline(created(("4g.24gb", 0), ("2g.12gb", 0), ("2g.12gb", 2), ("1g.6gb", 2)), A30.operation_costs)
    loads = [1.0, 2.0, 0.0, 3.0]
    times = timeline.times(loads)
    assert times == Times(
        (("create", 0), ("destroy", 0), ("create", 3), ("create", 1)),
        (pytest.approx(1.13), pytest.approx(3.46), 0.0, pytest.approx(4.34)),
        pytest.approx(4.34),
    )
    # 2g@2 would be created at 1.23-1.35, and destroyed for 0.1 s before the 1g that is created from 1.23 to 1.34.
    assert timeline.slacks(loads, times) == pytest.approx([0.0, 0.88, 1.23 - 0.1 - 1.35, 0.0])


def test_an_instance_that_waits_for_the_driver_has_slack() -> None:
    # Both halves 1 s; the second one is created 0.12 s later. Then 4g for 1 s: destroyed 1.12-1.22 and 1.24-1.34.
    timeline = GpuTimeline(created(("2g.12gb", 0), ("2g.12gb", 2), ("4g.24gb", 0)), A30.operation_costs)
    loads = [1.0, 1.0, 1.0]
    times = timeline.times(loads)
    assert times.makespan == pytest.approx(1.34 + 0.13 + 1.0)
    assert timeline.slacks(loads, times) == pytest.approx([0.02, 0.0, 0.0])


# Any loads


@given(loaded())
def test_the_times_are_those_of_the_schedule(case: Loaded) -> None:
    times = case.timeline.times(case.loads)
    assert times.makespan == pytest.approx(case.makespan(case.loads, times.order), abs=1e-8)
    assert times.makespan == max((end for end, load in zip(times.ends, case.loads, strict=True) if load), default=0.0)
    created = {index for kind, index in times.order if kind == "create"}
    assert created == {index for index, one in enumerate(case.instances) if one.free is None and case.loads[index]}


@given(st.data(), loaded())
def test_a_load_can_grow_by_its_slack_and_no_further(data: st.DataObject, case: Loaded) -> None:
    used = [index for index, load in enumerate(case.loads) if load]
    if not used:
        return
    timeline = case.timeline
    times = timeline.times(case.loads)
    grown = data.draw(st.sampled_from(used))
    slack = timeline.slacks(case.loads, times)[grown]
    assert -1e-9 <= slack < math.inf

    def with_more(seconds: float) -> float:
        loads = [load + seconds * (index == grown) for index, load in enumerate(case.loads)]
        return case.makespan(tuple(loads), times.order)

    assert with_more(slack) == pytest.approx(times.makespan, abs=1e-8)
    assert with_more(slack + 0.5) == pytest.approx(times.makespan + 0.5, abs=1e-8)
