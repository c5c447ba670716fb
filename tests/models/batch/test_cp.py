"""The method ``cp``: the same optima as brute force and the textbook model, and bounds that hold on the way there."""

from collections.abc import Mapping
from typing import Any

import pytest
import tiny
from block_models import GAPS, LATE_INSTANCE
from controlled import controlled
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from strategies import A30, RTX, batches, scaled, tiny_batches, whole_seconds

from mig_opt import Batch, OperationCosts, Result, Schedule, SolverError, Status, Task, generate_batch, handover, solve
from mig_opt.batch.integer_batch import IntegerBatch, equal_within_resolution
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch import block_search, portfolio
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_model import BlockModel
from mig_opt.models.batch.brute_force import brute_force
from mig_opt.models.solvers import cpsat
from mig_opt.models.solvers.backend import IntegerOutcome, Request, SolverOutcome
from mig_opt.validation import validate


def proven(batch: Batch) -> Result:
    result = solve(batch, "cp", workers=1)
    assert (result.status, validate(batch, result.schedule).valid) == (Status.OPTIMAL, True)
    return result


def agree(batch: Batch) -> None:
    """Check ``cp`` against brute force. Nothing but the rounding of the makespan may be below the bound."""
    one, two = solve(batch, "brute-force"), proven(batch)
    assert equal_within_resolution(max(one.makespan, two.makespan), min(one.makespan, two.makespan) + 2e-9)
    assert two.lower_bound <= one.makespan * (1 + 1e-12) + 2e-9


TIES = batches(st.just(A30), max_tasks=4, max_gpus=1, times=whole_seconds, initial=False)


@given(st.one_of(tiny_batches, batches(st.sampled_from([A30, RTX]), max_tasks=3, max_gpus=3), TIES))
@settings(max_examples=60)
def test_brute_force_finds_the_same_optimum_also_on_several_gpus_and_with_many_ties(batch: Batch) -> None:
    agree(batch)


@given(tiny_batches, st.sampled_from([1e-9, 1e-6, 1e-3]))
@settings(max_examples=15)
def test_times_far_below_the_operations_may_not_be_proven_but_are_bounded(batch: Batch, scale: float) -> None:
    batch = scaled(batch, scale, costs_too=False)
    one, two = solve(batch, "brute-force"), solve(batch, workers=1)
    assert one.makespan * (1 - 1e-12) - 1e-6 <= two.makespan <= one.makespan * (1 + 1e-12) + 1e-6
    assert max(one.lower_bound, two.lower_bound) <= min(one.makespan, two.makespan) * (1 + 1e-12)
    assert two.lower_bound >= one.makespan - 1e-5


def test_long_sums_of_floats_are_still_their_decimals() -> None:
    # Their sum in floating-point numbers is 6045285.199999999.
    times = (1956034.3, 1947827.5, 1056551.4, 1084872.0)
    batch = Batch(tuple(Task(f"t{at}", {4: t}) for at, t in enumerate(times)), A30, operations=OperationCosts.zero(A30))
    assert proven(batch).makespan == pytest.approx(6045285.2, abs=1e-6)
    control = controlled(brute_force, batch)
    assert (control.objective, control.lower_bound) == (6045285.199999999, 6045285.2)
    slower = batch.replace(operations=OperationCosts({1: 0.1, 2: 0.1, 4: 0.1}, {1: 0.1, 2: 0.1, 4: 0.1}))
    assert proven(slower).makespan == pytest.approx(6045285.3, abs=1e-6)


@pytest.mark.deep
@pytest.mark.parametrize(("n", "gpu"), [(6, "A30"), (8, "A30"), (7, "A100"), (16, "A30"), (14, "A100")])
def test_what_an_earlier_batch_has_left_is_no_obstacle(n: int, gpu: str) -> None:
    for seed in range(3):
        first, second = (generate_batch(n, gpu=gpu, seed=at) for at in (seed, seed + 100))
        batch, _ = handover(first, solve(first, "far").schedule, second)
        assert max(live.free for live in batch.initial) > 0
        # Work is counted, so it ends however slow the machine is.
        assert solve(batch, "cp", time_limit=20.0, deterministic=True).status is Status.OPTIMAL, seed


@pytest.fixture
def block_model_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave everything to the block model, without local search and without the proof by subsets."""
    monkeypatch.setattr(portfolio.TimedSearch, "possible", lambda *_: False)
    monkeypatch.setattr(portfolio, "prove_by_subsets", lambda search: None)


class Steps:
    """Records the models that the search builds."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.models: list[tuple[bool, Mapping[int, int]]] = []
        outer = self

        class Recorded(BlockModel):
            def __init__(self, problem: IntegerBatch, form: BlockForm) -> None:
                outer.models.append((form.relaxed, form.copies))
                super().__init__(problem, form)

        patch.setattr(portfolio, "BlockModel", Recorded)


@pytest.mark.usefixtures("block_model_only")
@pytest.mark.parametrize(("batch", "relaxed", "makespan"), GAPS)
def test_a_relaxed_bound_below_every_schedule_is_refined(
    batch: Batch, relaxed: int, makespan: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)
    assert proven(batch).makespan == makespan
    assert min(count for relaxed, copies in steps.models if relaxed for count in copies.values()) > 1
    assert (False, {}) in steps.models


@pytest.mark.parametrize(("gap", "sought"), [(1e-4, True), (1.0, False)])
def test_no_schedule_is_sought_just_above_the_relaxed_optimum(
    gap: float, sought: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_search, "_REFINED_AT_ONCE", gap)
    steps, control = Steps(monkeypatch), Control[Schedule](RunOptions(workers=1, time_limit=1000.0, deterministic=True))
    portfolio.CpSearch(LATE_INSTANCE, control).run()
    assert control.objective == control.lower_bound
    # One strict model is built to time what the relaxed model has found.
    assert [relaxed for relaxed, _ in steps.models].count(False) == 1 + sought


def test_a_relaxed_bound_that_is_reached_needs_no_refinement(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    assert proven(tiny.BATCH).makespan == tiny.OPTIMUM
    assert not any(copies for _, copies in steps.models)


@pytest.mark.usefixtures("block_model_only")
def test_the_solver_starts_from_the_best_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    hints: list[int] = []
    original = cpsat.run

    def watched(model: Any, control: Control[Schedule], request: Request, **arguments: Any) -> IntegerOutcome:
        if request.on_solution:
            assert len(model.proto.solution_hint.vars) == len(model.proto.variables)
            hints.append(len(model.proto.solution_hint.vars))
        return original(model, control, request, **arguments)

    monkeypatch.setattr(portfolio, "run", watched)
    # FAR's first schedule is 0.12 s too long, and its last one not yet proven: the search has to begin with it.
    result = proven(tiny.BATCH)
    assert hints
    assert tiny.FAR in [point.makespan for point in result.trajectory]


@pytest.mark.usefixtures("block_model_only")
def test_a_solver_that_loses_solutions_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "run", lambda *_, **__: SolverOutcome(Status.INFEASIBLE, None, 0, None))
    with pytest.raises(SolverError, match="no solution of a model that has one"):
        solve(tiny.BATCH)


@pytest.mark.parametrize("n", [40, 400])
def test_there_is_a_schedule_however_short_the_time(n: int) -> None:
    # Shorter than it takes to build the model.
    result = solve(generate_batch(n, seed=n), time_limit=1e-3)
    assert 0.5 * result.makespan < result.lower_bound < result.makespan


def test_where_each_task_has_a_gpu_of_its_own_no_time_is_needed() -> None:
    batch = generate_batch(60, gpus=60, scaling="GoodScaling", times="NarrowTimes", seed=3)
    assert solve(batch, time_limit=1e-3).status is Status.OPTIMAL


@pytest.mark.usefixtures("block_model_only")
@pytest.mark.parametrize(("seconds", "limit"), [(2.6, 10.0), (0.1, 0.3), (1e9, None)])
def test_no_model_is_begun_that_takes_too_long_to_build(
    seconds: float, limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)
    monkeypatch.setattr(portfolio, "seconds_to_build", lambda problem: seconds)
    assert solve(generate_batch(20, seed=6), time_limit=limit, deterministic=True).status is Status.FEASIBLE
    assert not steps.models


def test_the_local_search_needs_no_time_for_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "seconds_to_build", lambda problem: 1e9)
    batch = generate_batch(40, gpus=2, seed=6)
    shortest, far = solve(batch, time_limit=1.0, deterministic=True).makespan, solve(batch, "far").makespan
    assert shortest < 0.99 * far


@pytest.mark.deep
@pytest.mark.usefixtures("block_model_only")
def test_building_counts_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    monkeypatch.setattr(portfolio, "seconds_to_build", lambda problem: 0.2)
    # The second model would be done after the end.
    assert solve(generate_batch(20, seed=6), time_limit=1.0, deterministic=True).status is Status.FEASIBLE
    assert len(steps.models) == 1


def test_a_rejected_model_is_an_error() -> None:
    model = cp_model.CpModel()
    numbers = [model.new_int_var(0, 2**62, "") for _ in range(4)]
    model.minimize(sum(number * 2**20 for number in numbers))
    with pytest.raises(SolverError, match="rejects the model"):
        cpsat.run(model, Control[Schedule](RunOptions(workers=1)), Request())


def test_known_bounds_are_kept_where_the_solver_has_no_time() -> None:
    control = Control[Schedule](RunOptions(time_limit=1e-6))
    problem = IntegerBatch(generate_batch(30, seed=1))
    model = BlockModel(problem, BlockForm(at_least=123, at_most=10**7, relaxed=True))
    outcome = cpsat.run(model.model, control, Request(at_least=123))
    assert not outcome.infeasible
    assert outcome.bound >= 123
