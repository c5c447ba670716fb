"""Bounds from prices and from the load program: never above an optimum, and higher where whole tasks matter."""

import tracemalloc
from random import Random

import numpy as np
import pytest
from block_models import most_ticks, search_from
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed import A30, A100, SLOW_A30, mixed_batch
from strategies import tiny_batches

from mig_opt import Batch, LiveInstance, OperationCosts, Pool, Schedule, Status, Task, generate_batch, handover, solve
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.dual_bound import DualBound, GpuPricing
from mig_opt.batch.loads.starts import FilledStarts, PatternStarts
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch import portfolio
from mig_opt.models.batch.dual_price_bound import FINE_GRAINS, DualPriceBound, DualPrices, raise_bound_by_dual_prices
from mig_opt.models.batch.load_program import LoadProgram, raise_bound_by_loads
from mig_opt.models.batch.portfolio import CpSearch
from mig_opt.models.batch.subset_proof import SubsetTables
from mig_opt.models.solvers.backend import solve_program
from mig_opt.models.solvers.highs import Highs


def bound(problem: IntegerBatch, at_most: int) -> int:
    program, backend = LoadProgram(problem, at_least=0, at_most=at_most), Highs()
    bounds = [0]
    found = solve_program(
        program.linear.program,
        backend,
        Control[Schedule](RunOptions(workers=1)),
        share=1.0,
        on_bound=lambda units: bounds.append(program.bound(units, backend.tolerance)),
    )
    # There is a schedule within the limit, so there is a solution.
    assert found.status is not Status.INFEASIBLE
    return max(bounds)


@pytest.mark.deep
@given(tiny_batches, st.sampled_from(["brute-force", "far", "lpt"]))
@settings(max_examples=60, deadline=None)
def test_neither_the_load_program_nor_marks_are_above_the_optimum(batch: Batch, method: str) -> None:
    most = most_ticks(batch)
    assert bound(IntegerBatch(batch), most) <= most
    search = search_from(batch, method)
    raise_bound_by_loads(search, share=1.0)
    assert search.lower <= most


def test_a_task_as_long_as_the_schedule_tells_much() -> None:
    """If b, c and d run for 9.5 s on a slice each, a has 10 s on the fourth, or leaves too little to them.

    On two slices a takes 9 s and 46.5 slice-seconds are 11.6 s of the GPU. So nothing ends before a on one slice, which
    is created after 0.1 s.
    """
    others = tuple(Task(name, {1: 9.5}) for name in "bcd")
    batch = Batch((Task("a", {1: 10.0, 2: 9.0}), *others), A30)
    search = search_from(batch)
    raise_bound_by_loads(search, share=1.0)
    assert seconds(search) == pytest.approx(10.0 + batch.operations.create[1])
    assert bound(search.problem, most_ticks(batch)) < search.lower


@pytest.mark.deep
def test_live_instances_count() -> None:
    first, second = (generate_batch(24, gpu="A30", seed=seed) for seed in (0, 10))
    batch, _ = handover(first, solve(first, "far").schedule, second)
    problem = IntegerBatch(batch)
    most = most_ticks(batch, "search", time_limit=2.0, deterministic=True)
    # Without them it is a third too low.
    assert 0.99 * most < bound(problem, most) <= most


def test_whole_tasks_are_at_least_as_high() -> None:
    for seed in range(4):
        batch = generate_batch(9, seed=seed)
        problem = IntegerBatch(batch)
        most = most_ticks(batch, "far")
        tables = SubsetTables(problem, most)
        assert tables.fill(1, lambda: False)
        # All destructions of these batches are of some tenths of a second; the program knows the last ones better.
        longest = max(place.destroy for place in problem.places)
        assert 0.7 * tables.least < bound(problem, most) <= tables.least + longest


def raised(batch: Batch, method: str = "far") -> CpSearch:
    """A search whose bound was raised with coarse grains and then finer ones."""
    search = search_from(batch, method)
    found = raise_bound_by_dual_prices(search, share=1.0)
    if found is not None:
        raise_bound_by_dual_prices(search, share=1.0, start=found)
    return search


def seconds(search: CpSearch) -> float:
    return search.problem.ticks.seconds_below(search.lower)


@given(tiny_batches, st.sampled_from(["brute-force", "far", "lpt"]))
@settings(max_examples=60, deadline=None)
def test_never_above_the_optimum_of_brute_force(batch: Batch, method: str) -> None:
    assert raised(batch, method).lower <= most_ticks(batch)


@given(tiny_batches)
@settings(max_examples=15, deadline=None)
def test_each_bound_on_the_way_holds(batch: Batch) -> None:
    """Whatever the prices are, and however coarse the grain."""
    problem = IntegerBatch(batch)
    optimum = most_ticks(batch)
    groups = [branches_of(problem, gpus) for gpus in problem.groups]
    for grain in (max(1, optimum // 500), max(1, optimum // 7)):
        prices = GpuPricing(problem, groups, optimum + 1, optimum // grain + 1)
        rule = DualBound(prices, 0, optimum)
        rng = np.random.default_rng(grain)
        for _ in range(3):
            prices.set_dual_prices(rng.random(prices.rows))
            rule.update(optimum // 2, optimum)
            assert rule.ticks < optimum
            # Some order of an optimal schedule is never ruled out.
            assert rule.out.min() < optimum


def test_whole_tasks_do_not_fill_what_divided_ones_do() -> None:
    batch = Batch(tuple(Task(name, {1: 6.0 + at / 10}) for at, name in enumerate("abcde")), A30)
    batch = batch.replace(operations=OperationCosts.zero(batch.gpu))
    search = search_from(batch)
    raise_bound_by_loads(search, share=1.0)
    assert seconds(search) < 8.0
    assert seconds(raised(batch)) == pytest.approx(12.1)


def test_a_task_that_ends_as_late_wherever_it_runs() -> None:
    search = raised(Batch((Task("a", {1: 9.0, 2: 9.0, 4: 9.0}), Task("b", {1: 1.0})), A30), "brute-force")
    assert search.lower == search.upper


def test_creations_queue_up() -> None:
    """Each of four tasks has a slice of its own, and the last one waits for three creations."""
    batch = Batch(tuple(Task(name, {1: 6.0}) for name in "abcd"), A30)
    search = raised(batch)
    assert seconds(search) == pytest.approx(6.0 + 4 * batch.operations.create[1])
    assert search.lower == search.upper


@pytest.mark.deep
def test_several_gpus_gain_by_whole_tasks() -> None:
    batch = generate_batch(20, scaling="PoorScaling", gpus=2, seed=0)
    search = search_from(batch, "search")
    raise_bound_by_loads(search, share=1.0)
    divided = search.lower
    raise_bound_by_dual_prices(search, share=1.0)
    assert divided * 1.01 < search.lower <= search.upper


@pytest.mark.deep
@pytest.mark.parametrize("gpus", [3, 4])
def test_the_best_patterns_fit_on_a_gpu_and_fill_it(gpus: int) -> None:
    batch = generate_batch(15 * gpus, gpus=gpus, seed=5)
    search = search_from(batch)
    found = raise_bound_by_dual_prices(search, share=1.0)
    assert found.patterns
    for _, tasks in found.patterns:
        assert len(set(tasks)) == len(tasks)
        part = batch.replace(tasks=tuple(batch.tasks[task] for task in tasks), gpus=1)
        # Times are rounded down to grains, and the bound of the part has divided tasks.
        assert 0.95 * seconds(search) < best_lower_bound(part) < 1.004 * seconds(search)


@pytest.mark.deep
@pytest.mark.parametrize("gpus", [1, 2])
def test_finer_grains_raise_the_bound(gpus: int) -> None:
    batch = generate_batch(26 * gpus, scaling="PoorScaling", gpus=gpus, seed=2)
    search = search_from(batch, "search")
    found = raise_bound_by_dual_prices(search, share=1.0)
    coarse = search.lower
    finer = raise_bound_by_dual_prices(search, share=1.0, start=found)
    assert coarse < search.lower <= search.upper
    assert finer is None or (finer.ruled_out >= found.ruled_out).all()


def test_what_coarse_grains_rule_out_remains() -> None:
    """Also where the first prices are of no use any more."""
    batch = generate_batch(8, seed=3)
    search = search_from(batch)
    found = raise_bound_by_dual_prices(search, share=1.0)
    before = search.lower
    even = DualPrices(found.groups, np.ones(8), [], found.ruled_out, [], 0)
    raise_bound_by_dual_prices(search, share=1.0, start=even)
    assert before <= search.lower <= most_ticks(batch, "cp")


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=40, deadline=None)
def test_never_above_the_optimum_on_several_kinds_of_gpus(seed: int, live: bool) -> None:
    rng = Random(seed)
    batch = mixed_batch(rng, rng.randint(2, 3), [Pool(A30, 1), Pool(SLOW_A30, 1)], live=live)
    assert raised(batch).lower <= most_ticks(batch)


@pytest.mark.deep
@pytest.mark.parametrize("live", [False, True])
def test_never_above_a_schedule_of_many_tasks(live: bool) -> None:
    for seed in range(12):
        batch = mixed_batch(Random(seed), 24, [Pool(A30, 2), Pool(A100, 1)], live=live)
        assert raised(batch).lower <= most_ticks(batch, "search", time_limit=2)


def test_tables_of_many_groups_fit_into_memory() -> None:
    live = tuple(LiveInstance(gpu, "1g.5gb", 0, 1.0) for gpu in range(16))
    search = CpSearch(Batch(generate_batch(100, seed=0).tasks, A100, 16, initial=live), Control(RunOptions(workers=1)))
    tracemalloc.start()
    try:
        DualPriceBound(search, grains=FINE_GRAINS)
        assert tracemalloc.get_traced_memory()[1] < 2**31, "bytes; it was more than twice as much"
    finally:
        tracemalloc.stop()


def test_kinds_gain_by_whole_tasks() -> None:
    """Four tasks have a slice each on one kind, one is alone on the other; divided ones would all be done sooner."""
    tasks = [Task(name, {"A30-24GB": {1: 6.0}, "slow-A30": {4: 7.0}}) for name in "abcdef"]
    batch = Batch(tuple(tasks), pools=(Pool(A30, 1), Pool(SLOW_A30, 1)))
    search = raised(batch)
    assert 12.0 < seconds(search) < 13.0
    assert search.lower <= search.upper


def test_what_is_busy_beyond_the_end_lengthens_nothing() -> None:
    rng = Random(20)
    batch = generate_batch(14, gpu="A30", gpus=2, seed=20)
    longest = solve(batch, "far").makespan
    two, one = (longest * share * rng.uniform(1, 1.3) for share in (1.3, 1.1))
    batch = batch.replace(initial=(LiveInstance(0, "2g.12gb", 0, two), LiveInstance(1, "1g.6gb", 3, one)))
    assert raised(batch).lower <= most_ticks(batch, "search", time_limit=0.5)


def test_what_is_live_runs_until_it_is_free() -> None:
    """It needs no creation, and has to be destroyed before something wider comes."""
    live = LiveInstance(0, "2g.12gb", 0, 5.0)
    batch = Batch((Task("a", {4: 6.0}), Task("b", {2: 3.0})), A30, initial=(live,))
    # What is busy counts as far as all schedules last, so bounds rise in turn.
    search, costs = raised(batch, "brute-force"), batch.operations
    assert seconds(search) == pytest.approx(5.0 + costs.destroy[2] + costs.create[4] + 6.0)
    assert search.lower == search.upper


def test_it_counts_its_time() -> None:
    batch = generate_batch(20, gpus=2, seed=0)
    before = search_from(batch).lower
    found = []
    for _ in range(2):
        search = search_from(batch, time_limit=5.0, deterministic=True)
        raise_bound_by_dual_prices(search, share=0.5)
        assert before < search.lower
        assert 0 < search.control.clock < 3
        found.append((search.lower, search.control.clock))
    assert found[0] == found[1]


@pytest.mark.deep
@pytest.mark.parametrize("tasks", [26, 63])
def test_the_load_program_is_for_many_tasks(tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = generate_batch(tasks, gpu="A30", seed=0)
    told: list[float] = []
    monkeypatch.setattr(portfolio, "raise_bound_by_loads", lambda search, share: told.append(share))
    solve(batch, "cp", time_limit=5.0, deterministic=True)
    assert bool(told) is (tasks > 60)


@pytest.mark.deep
@pytest.mark.parametrize(("source", "tasks", "gpus"), [(PatternStarts, 24, 3), (FilledStarts, 40, 2)])
def test_the_search_starts_from_the_best_patterns(
    source: type[PatternStarts | FilledStarts], tasks: int, gpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same on every run, too."""
    starts = []
    draw = source.draw
    monkeypatch.setattr(source, "draw", lambda *given: starts.append(given) or draw(*given))
    batch = generate_batch(tasks, scaling="GoodScaling", gpus=gpus, seed=1)
    first, second = (solve(batch, "cp", time_limit=12.0, deterministic=True) for _ in range(2))
    assert starts
    assert len(starts) % 2 == 0
    assert first.schedule == second.schedule
