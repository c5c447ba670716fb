"""Times that follow from decisions, and timelines: by hand, always valid, never later than they have to be."""

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from strategies import A30, Decisions, batches, costs, decisions, gpus, places, states

from mig_opt import Batch, GpuModel, LiveInstance, Operation, OperationCosts, Placement, Run, Schedule, Task
from mig_opt.batch import timing
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.schedule import OperationKind
from mig_opt.batch.timing import GpuTimeline, PlannedInstance, nested_schedule, sequenced_schedule, timed_schedule
from mig_opt.validation import validate

EPS = 2e-9
"""Times are rounded to nanoseconds."""


def instances(*entries: tuple[str, int, str], gpu: int = 0) -> list[PlannedInstance]:
    """Instances of the tiny batch, each from its profile, start and the names of its tasks."""
    task = {task.name: task for task in tiny.BATCH.tasks}
    return [
        PlannedInstance(gpu, A30.placement(profile, start), [task[name] for name in names.split()])
        for profile, start, names in entries
    ]


def test_a_live_variant_serves_like_the_plain_profile() -> None:
    batch = Batch((Task("a", {2: 2.0}),), A30, initial=(LiveInstance(0, "2g.12gb+me", 2, 0.5),))
    schedule = nested_schedule(batch, [(0, A30.placement("2g.12gb", 2))])
    assert schedule.runs == (Run("a", 0, "2g.12gb+me", 2, 0.5, 2.5),)
    assert schedule.operations == ()


def test_sums_of_decimals_read_as_decimals() -> None:
    tasks = tuple(Task(f"t{index}", {4: 0.1}) for index in range(50))
    batch = Batch(tasks, A30, operations=OperationCosts.zero(A30))
    schedule = nested_schedule(batch, [(0, A30.placement("4g.24gb", 0))] * 50)
    assert [run.end for run in schedule.runs] == [(index + 1) / 10 for index in range(50)]


def test_the_driver_first_serves_what_has_the_most_behind_it() -> None:
    at = [A30.placement("4g.24gb", 0), A30.placement("2g.12gb", 0), A30.placement("1g.6gb", 2)]
    assert nested_schedule(tiny.BATCH, [(0, placement) for placement in at]) == tiny.BEST


def test_a_short_instance_comes_first_if_long_ones_wait_for_its_place() -> None:
    # Behind one (1 s) waits two (5 s), behind three (3 s) nothing. 2g@0 0-0.12, one until 1.12, destroyed 1.22, 1g@0
    # 1.33, two until 6.33; 2g@2 is created second and done at 3.24. The other way round two would end at 6.45.
    batch = Batch((Task("one", {2: 1.0}), Task("two", {1: 5.0}), Task("three", {2: 3.0})), A30)
    at = [(0, A30.placement("2g.12gb", 0)), (0, A30.placement("1g.6gb", 0)), (0, A30.placement("2g.12gb", 2))]
    schedule = nested_schedule(batch, at)
    assert [(run.task, run.end) for run in schedule.runs] == [("one", 1.12), ("three", 3.24), ("two", 6.33)]


@given(decisions())
def test_any_decisions_give_a_valid_schedule(case: Decisions) -> None:
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    assert validate(case.batch, schedule).violations == ()
    assert schedule.makespan >= best_lower_bound(case.batch) - EPS
    assert list(schedule.runs) == sorted(schedule.runs, key=lambda run: (run.begin, run.gpu, run.start))
    assert [o.begin for o in schedule.operations or ()] == sorted(o.begin for o in schedule.operations or ())


@given(decisions())
def test_nothing_could_begin_earlier(case: Decisions) -> None:
    """Every begin is 0, or the end of something that has to be over: so no such schedule ends earlier."""
    batch = case.batch
    schedule = timed_schedule(batch, case.instances, case.operations)
    operations = schedule.operations or ()

    def place(entry: Operation | Run | LiveInstance) -> tuple[int, str, int]:
        return entry.gpu, entry.profile, entry.start

    ends: dict[int, set[float]] = defaultdict(lambda: {0.0})
    there: dict[tuple[int, str, int], set[float]] = defaultdict(set)
    for entry in (*schedule.runs, *operations):
        ends[entry.gpu].add(entry.end)
        if not isinstance(entry, Operation) or entry.kind == "create":
            there[place(entry)].add(entry.end)
    for live in batch.initial:
        ends[live.gpu].add(live.free)
        there[place(live)].add(live.free)
    for operation in operations:
        before = ends[operation.gpu]
        if batch.parallel_operations and operation.kind == "create":
            own = batch.gpu.placement(operation.profile, operation.start)
            gone = (other for other in operations if (other.kind, other.gpu) == ("destroy", operation.gpu))
            conflicting = (other for other in gone if batch.gpu.placement(other.profile, other.start).conflicts(own))
            before = {0.0, *(other.end for other in conflicting)}
        assert any(abs(operation.begin - end) <= EPS for end in before)
    for run in schedule.runs:
        assert any(abs(run.begin - end) <= EPS for end in there[place(run)])


def nested(data: st.DataObject, **options: object) -> tuple[Batch, list[tuple[int, Placement]], Schedule]:
    batch = data.draw(batches(max_gpus=3, **options))
    chosen = data.draw(places(batch))
    return batch, chosen, nested_schedule(batch, chosen)


@given(st.data())
def test_nested_schedules_are_valid_and_keep_the_assignment(data: st.DataObject) -> None:
    batch, chosen, schedule = nested(data)
    assert validate(batch, schedule).violations == ()
    assert schedule.makespan >= best_lower_bound(batch) - EPS
    where = {run.task: (run.gpu, batch.gpu.placement(run.profile, run.start).shape) for run in schedule.runs}
    assert [where[task.name] for task in batch.tasks] == [(gpu, placement.shape) for gpu, placement in chosen]


@given(st.data())
def test_nested_schedules_create_nothing_twice_and_destroy_nothing_for_nothing(data: st.DataObject) -> None:
    batch, _, schedule = nested(data)
    operations = schedule.operations or ()
    created = Counter((o.gpu, batch.gpu.placement(o.profile, o.start).shape) for o in operations if o.kind == "create")
    assert all(count == 1 for count in created.values())
    used = {(run.gpu, batch.gpu.placement(run.profile, run.start).shape) for run in schedule.runs}
    live = {(entry.gpu, batch.gpu.placement(entry.profile, entry.start).shape) for entry in batch.initial}
    assert set(created) == used - live
    for index, one in enumerate(operations):
        later = (two for two in operations[index + 1 :] if (two.kind, two.gpu) == ("create", one.gpu))
        own = batch.gpu.placement(one.profile, one.start)
        assert one.kind == "create" or any(batch.gpu.placement(two.profile, two.start).conflicts(own) for two in later)


@given(st.data())
def test_without_operation_costs_the_fullest_slice_decides(data: st.DataObject) -> None:
    """The reason why block models work: outer before inner instances leaves no slice idle before its end."""
    batch, chosen, schedule = nested(data, initial=False, zero_costs=True)
    load: dict[tuple[int, int], float] = defaultdict(float)
    for task, (gpu, placement) in zip(batch.tasks, chosen, strict=True):
        for position in placement.footprint:
            load[gpu, position] += task.times[placement.profile.compute_slices]
    assert schedule.makespan == pytest.approx(max(load.values()), abs=1e-8)


def test_an_operation_that_has_to_wait_does_not_hold_up_the_driver() -> None:
    # right runs until 4.23, and only then its slice is destroyed for big's 4g; left's 2g has gone at 3.22 already.
    planned = instances(("2g.12gb", 0, "left"), ("1g.6gb", 2, "right"), ("4g.24gb", 0, "big"))
    schedule = sequenced_schedule(tiny.BATCH, planned)
    found = [(o.kind[0], o.profile[:2], o.begin) for o in schedule.operations or ()]
    assert found == [("c", "2g", 0.0), ("c", "1g", 0.12), ("d", "2g", 3.12), ("d", "1g", 4.23), ("c", "4g", 4.33)]


@given(decisions())
def test_any_sequence_has_a_schedule_that_is_valid(decided: Decisions) -> None:
    """Instances come and go in any order; what is destroyed without need stays."""
    batch = decided.batch
    schedule = sequenced_schedule(batch, decided.instances)
    assert validate(batch, schedule).violations == ()
    pairs = itertools.combinations(enumerate(decided.instances), 2)
    clashes = ((at, one, later) for (at, one), (_, later) in pairs if later.gpu == one.gpu)
    needed = len({at for at, one, later in clashes if later.placement.conflicts(one.placement)})
    kinds = Counter(operation.kind for operation in schedule.operations or ())
    assert kinds["destroy"] == needed
    assert kinds["create"] == sum(instance.free is None for instance in decided.instances)


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
        options = {"parallel_operations": self.parallel, "driver_free": self.driver_free, "clear": self.clear}
        return GpuTimeline(self.instances, self.operations, **options)

    def makespan(self, loads: tuple[float, ...], order: tuple[tuple[OperationKind, int], ...]) -> float:
        """The makespan that other code finds for some loads, with that order of operations."""
        tasks = [[Task("t", dict.fromkeys(self.gpu.sizes, load))] if load else [] for load in loads]
        instances = [replace(instance, tasks=planned) for instance, planned in zip(self.instances, tasks, strict=True)]
        task = Task("t", {self.gpu.sizes[0]: 1.0})
        batch = Batch((task,), self.gpu, operations=self.operations, parallel_operations=self.parallel)
        driver_free = {} if self.parallel else {0: self.driver_free}
        clear = {(0, position): seconds for position, seconds in self.clear.items()}
        return timed_schedule(batch, instances, order, driver_free=driver_free, clear=clear).makespan


@st.composite
def loaded(draw: st.DrawFn) -> Loaded:
    gpu = draw(gpus)
    seconds = st.one_of(st.integers(0, 300).map(lambda n: n / 100), st.integers(0, 5).map(float))
    live = [PlannedInstance(0, place, free=draw(seconds)) for place in draw(st.sampled_from(states(gpu, "base")))]
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


def created(*where: tuple[str, int]) -> list[PlannedInstance]:
    return [PlannedInstance(0, A30.placement(*place)) for place in where]


def test_slack_by_hand() -> None:
    # 4g created 0-0.13, 1 s; destroyed 1.13-1.23; 1g@2 (3 s) 1.23-1.34-4.34; 2g@0 (2 s) 1.34-1.46-3.46.
    timeline = GpuTimeline(created(("4g.24gb", 0), ("2g.12gb", 0), ("2g.12gb", 2), ("1g.6gb", 2)), A30.operation_costs)
    loads = [1.0, 2.0, 0.0, 3.0]
    times = timeline.times(loads)
    assert times == timing.Times(
        (("create", 0), ("destroy", 0), ("create", 3), ("create", 1)),
        (pytest.approx(1.13), pytest.approx(3.46), 0.0, pytest.approx(4.34)),
        pytest.approx(4.34),
    )
    # 2g@2 would be created at 1.23-1.35, and destroyed for 0.1 s before the 1g that is created from 1.23 to 1.34.
    assert timeline.slacks(loads, times) == pytest.approx([0.0, 0.88, 1.23 - 0.1 - 1.35, 0.0])


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
