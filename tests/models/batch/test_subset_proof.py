"""Tables of the loads by definition, and proofs by subsets: the optima of brute force and of the block model."""

import math
import random
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from block_models import ticks_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from load_paths import LongestPaths, image
from strategies import Decisions, batches, decisions, realistic_batches, tiny_batches, whole_seconds

from mig_opt import Batch, OperationCosts, Schedule, Status, Task, generate_batch, get_gpu, solve
from mig_opt.batch.integer_batch import IntegerBatch, equal_within_resolution
from mig_opt.batch.loads.subsets import NEVER
from mig_opt.batch.timing import nested_schedule, timed_schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.portfolio import CpSearch
from mig_opt.models.batch.subset_proof import Assignments, Siblings, SubsetTables, prove_by_subsets, split_tasks

A30, A100, H100, RTX = (get_gpu(name) for name in ("A30", "A100", "H100", "RTX-PRO-6000"))
FAR_TOO_LONG = 2**28


def filled(problem: IntegerBatch, at_most: int, workers: int = 1) -> SubsetTables:
    tables = SubsetTables(problem, at_most)
    assert tables.fill(workers, lambda: False)
    return tables


def without_costs(times: list[dict[int, float]], gpu: str) -> Batch:
    model = get_gpu(gpu)
    tasks = tuple(Task(f"t{at}", {size: float(time) for size, time in row.items()}) for at, row in enumerate(times))
    return Batch(tasks, model, operations=OperationCosts.zero(model))


def agree(problem: IntegerBatch, least: int) -> None:
    """Check a length from the tables. With odd costs they are allowed to be lower: an empty place may spare more."""
    expected = LongestPaths(problem).least()
    assert least <= expected
    pairs = [(place, other) for place in problem.places for other in problem.places]
    if all(
        place.create + place.destroy >= other.destroy and (place.free is None or place.destroy <= other.destroy)
        for place, other in pairs
    ):
        assert least == expected


@pytest.mark.deep
@given(batches(st.sampled_from([A30, RTX]), max_tasks=4, max_gpus=1, times=whole_seconds))
@settings(max_examples=60)
def test_the_least_length_by_definition(batch: Batch) -> None:
    assume(not batch.unplaceable())
    problem = IntegerBatch(batch)
    assume(len(problem.places) ** len(batch.tasks) <= 30_000)
    least = filled(problem, FAR_TOO_LONG).least
    agree(problem, least)
    if least >= 0:
        assert filled(problem, least).least == least
        assert filled(problem, least + 1).least == least
        assert filled(problem, max(0, least - 1)).least >= (NEVER if least else 0)


@given(batches(st.sampled_from([A100, H100, A30]), max_tasks=2, max_gpus=2))
@settings(max_examples=40)
def test_the_least_length_by_definition_on_larger_gpus(batch: Batch) -> None:
    problem = IntegerBatch(batch)
    agree(problem, filled(problem, FAR_TOO_LONG).least)


@given(realistic_batches(max_tasks=7, max_gpus=2))
@settings(max_examples=40)
def test_the_limit_and_the_threads_change_nothing(batch: Batch) -> None:
    problem = IntegerBatch(batch)
    least = filled(problem, FAR_TOO_LONG).least
    for limit in {max(0, least), math.ceil(max(1, least) * 1.03), max(1, least) * 2}:
        assert filled(problem, limit, workers=3).least == least
    if least > 0:
        assert filled(problem, least - 1).least >= NEVER


@given(decisions())
@settings(max_examples=60)
def test_never_above_a_schedule_with_re_creations(chosen: Decisions) -> None:
    schedule = timed_schedule(chosen.batch, chosen.instances, chosen.operations)
    problem = IntegerBatch(chosen.batch)
    most = ticks_of(problem, schedule.makespan)
    assert filled(problem, most).least <= most


def test_it_ends_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = SubsetTables(IntegerBatch(without_costs([{1: 3, 2: 2, 4: 1}] * 8, "A30")), FAR_TOO_LONG)
    assert not tables.fill(2, lambda: True)
    counted = list[int]()
    every = SubsetTables._worthwhile
    monkeypatch.setattr(SubsetTables, "_worthwhile", lambda *given: counted.append(1) or every(*given))
    control = Control[Schedule](RunOptions(time_limit=1e-4, deterministic=True))
    prove_by_subsets(CpSearch(generate_batch(16, seed=1), control))
    assert len(counted) == 1


@given(
    st.one_of(
        batches(st.sampled_from([A30, RTX]), max_tasks=4, max_gpus=1, times=whole_seconds),
        batches(st.sampled_from([A30, A100]), max_tasks=2, max_gpus=2),
    ),
    st.sampled_from([0, 0.1, 0.2, 0.5, 1]),
)
def test_all_assignments_within_a_length(batch: Batch, share: float) -> None:
    problem = IntegerBatch(batch)
    assume(len(problem.places) ** len(batch.tasks) <= 1000)
    paths = LongestPaths(problem)
    lengths = {places: paths.length(places) for places in paths.assignments()}
    shortest, longest = min(lengths.values()), max(lengths.values())
    limit = max(0, round(shortest + share * (longest - shortest)))
    tables = SubsetTables(problem, limit)
    assert tables.fill(1, lambda: False)
    found = [tuple(places) for places in Assignments(problem, tables).within(limit)]
    assert len(set(found)) == len(found)
    expected = {image(problem, places) for places, length in lengths.items() if length <= limit}
    # With odd destructions a part of an assignment can be longer than the whole; then no schedule is so short.
    odd = any(place.create + place.destroy < other.destroy for place in problem.places for other in problem.places)
    assert odd or expected <= {image(problem, places) for places in found}
    waits = any(node.wait_one or node.wait_two for node in tables.tree.nodes)
    # Where either of two siblings can wait, some are listed for which neither is enough: they do no harm.
    assert waits or {image(problem, places) for places in found} <= expected


def by_subsets(batch: Batch) -> Control[Schedule]:
    control = Control[Schedule](RunOptions(workers=1))
    prove_by_subsets(CpSearch(batch, control))
    return control


@given(tiny_batches)
@settings(max_examples=40)
def test_brute_force_finds_the_same_optimum(batch: Batch) -> None:
    makespan = solve(batch, "brute-force").makespan
    control = by_subsets(batch)
    # The worst possible start is proven, too, if nothing is better.
    assert control.lower_bound <= makespan * (1 + 1e-12) + 2e-9
    assert equal_within_resolution(control.objective, makespan + 2e-9)


@given(realistic_batches(max_tasks=5, max_gpus=2))
@settings(max_examples=15)
def test_the_block_model_as_a_whole_finds_the_same_optimum(batch: Batch) -> None:
    one, two = Control[Schedule](RunOptions(workers=1)), by_subsets(batch)
    CpSearch(batch, one).run()
    assert one.objective == pytest.approx(two.objective, rel=2e-6, abs=2e-9)
    assert max(one.lower_bound, two.lower_bound) <= min(one.objective, two.objective) * (1 + 1e-9) + 2e-9


SAME = Batch(tuple(Task(f"t{at}", {1: 4.0, 2: 2.5, 4: 1.5}) for at in range(13)), A30)
MANY = [generate_batch(n, gpus=gpus, seed=n) for n, gpus in ((22, 1), (26, 1), (16, 4))]


@pytest.mark.deep
@pytest.mark.parametrize("batch", [SAME, *MANY])
def test_where_the_time_is_up_all_is_consistent(batch: Batch) -> None:
    result = solve(batch, workers=2, time_limit=0.8)
    assert result.lower_bound <= result.makespan
    assert (result.status is Status.OPTIMAL) == equal_within_resolution(result.makespan, result.lower_bound)
    assert all(thread.daemon for thread in threading.enumerate()[1:])


def test_counting_assignments_ends_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    told, control = 0, Control[Schedule](RunOptions(time_limit=0.5, deterministic=True))

    def slowly(self: Assignments, at_most: int) -> Iterator[list[int]]:
        nonlocal told
        while True:
            control.spend(0.01)
            told += 1
            yield [0] * 8

    monkeypatch.setattr(Assignments, "within", slowly)
    prove_by_subsets(CpSearch(generate_batch(8, seed=1), control))
    assert 1 < told < 1000


def test_each_decision_is_counted_with_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, decided = random.Random(1), list[list[int]]()
    times = [float(draw.randint(3, 9)) for _ in range(14)]
    tasks = (Task(f"t{at}", {k: round(one / k**0.9, 1) for k in A100.sizes}) for at, one in enumerate(times))
    search = CpSearch(Batch(tuple(tasks), A100), Control[Schedule](RunOptions(time_limit=0.5, deterministic=True)))
    search.control.report_plan(solve(search.batch, "far").schedule)
    monkeypatch.setattr(search, "decide", lambda places: decided.append(places) or CpSearch.decide(search, places))
    prove_by_subsets(search)
    # One takes 8 ms and more; half of that was counted, and less.
    assert len(decided) > 10
    assert search.control.clock > 0.006 * len(decided)


def test_short_times_in_instances_with_too_little_memory_do_not_hide_schedules() -> None:
    draw = random.Random(1)
    times = [(one := round(draw.uniform(118, 128), 6), round(one * draw.uniform(0.9, 1.1), 6)) for _ in range(10)]
    tasks = [Task(f"t{at}", {1: 0.1, 4: one, 7: two}, memory_gb=15.0) for at, (one, two) in enumerate(times)]
    batch = Batch(tuple(tasks), get_gpu("A100"))
    outer = {placement.profile.compute_slices: placement for placement in batch.placements()}
    faster = [(0, outer[4 if one < two else 7]) for one, two in times]
    assert solve(batch, "cp", workers=1).lower_bound <= nested_schedule(batch, faster).makespan


@st.composite
def siblings_and_tables(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], Siblings]:
    """Draw tables of two branches, the sets to look at, and how the branches wait for each other."""
    sets = 1 << draw(st.integers(0, 5))
    ticks = st.one_of(st.integers(0, 60), st.sampled_from([NEVER, NEVER + 1]))
    one = draw(st.lists(ticks, min_size=sets, max_size=sets))
    same = draw(st.booleans())
    two = one if same else draw(st.lists(ticks, min_size=sets, max_size=sets))
    waits, busy = draw(st.tuples(*[st.sampled_from([0, 3, 2 * NEVER])] * 2)), draw(st.tuples(*[st.booleans()] * 2))
    if same:
        waits, busy = waits[:1] * 2, busy[:1] * 2
    return one, two, sorted(draw(st.sets(st.integers(0, sets - 1)))), Siblings(same, *busy, *waits)


@given(siblings_and_tables())
def test_sets_are_split_by_definition(drawn: tuple[list[int], list[int], list[int], Siblings]) -> None:
    # Where subsets were skipped, a smaller one may be longer than a larger one: tables are drawn without any order.
    one, two, subsets, siblings = drawn
    result = np.full(len(one), -1, np.int32)
    split_tasks(np.array(one, np.int32), np.array(two, np.int32), np.array(subsets, np.int32), siblings, 70, result)
    assert (np.delete(result, subsets) == -1).all()
    for whole in subsets:
        lengths = []
        for part in (part for part in range(whole + 1) if part & whole == part):
            first, second = one[part], two[whole ^ part]
            waits = (part or siblings.busy_one) and (whole ^ part or siblings.busy_two)
            late_one, late_two = (siblings.wait_one, siblings.wait_two) if waits else (0, 0)
            lengths.append(min(max(first + late_one, second), max(first, second + late_two)))
        assert result[whole] == (min(lengths) if min(lengths) <= 70 else NEVER)
