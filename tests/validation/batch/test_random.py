"""Random schedules: valid ones are, and what is changed in them is found."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from small_schedule import exclude

from mig_opt import Batch, LiveInstance, Task, get_gpu
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, timed_schedule
from mig_opt.validation import validate


@st.composite
def valid_schedules(draw: st.DrawFn, *, parallel: bool | None = None) -> tuple[Batch, Schedule]:
    """Random decisions, timed: instances are used one after the other, each makes room for the next."""
    gpu = get_gpu(draw(st.sampled_from(["A30", "A100", "RTX-PRO-6000-96GB"])))
    gpus = draw(st.integers(1, 2))
    seconds = st.integers(1, 400).map(lambda n: n / 100)
    count = draw(st.integers(1, 9))
    tasks = tuple(Task(f"t{i}", {size: draw(seconds) for size in gpu.sizes}) for i in range(count))
    parallel = draw(st.booleans()) if parallel is None else parallel
    # `timed_schedule` makes room for footprints; that a media engine is free follows from the driver's order only.
    placements = st.sampled_from(gpu.placements("double-memory" if parallel else "all"))
    initial: list[LiveInstance] = []
    instances: list[PlannedInstance] = []
    live: list[int] = []
    if draw(st.booleans()):
        placement = draw(placements)
        free = draw(st.sampled_from([0.0, 0.7]))
        initial.append(LiveInstance(0, placement.profile.name, placement.start, free))
        instances.append(PlannedInstance(0, placement, free=free))
        live.append(0)
    operations: list[tuple[OperationKind, int]] = []
    for task in tasks:
        wanted = draw(st.tuples(st.integers(0, gpus - 1), placements))
        same = [i for i in live if (instances[i].gpu, instances[i].placement) == wanted]
        if not same:
            for i in list(live):
                if instances[i].gpu == wanted[0] and exclude(instances[i].placement, wanted[1]):
                    operations.append(("destroy", i))
                    live.remove(i)
            same = [len(instances)]
            live += same
            instances.append(PlannedInstance(*wanted))
            operations.append(("create", same[0]))
        instances[same[0]].tasks.append(task)
    batch = Batch(tasks, gpu, gpus, initial=tuple(initial), parallel_operations=parallel)
    return batch, timed_schedule(batch, instances, operations)


@given(valid_schedules())
def test_timed_schedules_are_valid_and_stay_so_without_their_operations(case: tuple[Batch, Schedule]) -> None:
    batch, schedule = case
    assert validate(batch, schedule).violations == ()
    stripped = validate(batch, Schedule(schedule.runs))
    assert stripped.violations == ()
    assert stripped.makespan == schedule.makespan
    again = validate(batch, stripped.schedule)
    assert again.violations == ()
    assert again.schedule is stripped.schedule
    needed, given_operations = len(stripped.schedule.operations or ()), len(schedule.operations or ())
    assert needed <= given_operations


@given(valid_schedules(), st.randoms(use_true_random=False))
def test_the_order_of_entries_does_not_matter(case: tuple[Batch, Schedule], random: Random) -> None:
    batch, schedule = case
    runs, operations = list(schedule.runs), list(schedule.operations or ())
    random.shuffle(runs)
    random.shuffle(operations)
    assert validate(batch, Schedule(tuple(runs), tuple(operations))).valid
    assert validate(batch, Schedule(tuple(runs))).valid
