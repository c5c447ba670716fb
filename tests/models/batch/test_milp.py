"""The methods ``milp``, ``milp-highs`` and ``milp-cbc``: the same optima as the others, and bounds that hold."""

import builtins
import functools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
from block_models import GAPS
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import A30, A100, RTX, batches, scaled, tiny_batches

from mig_opt import Batch, LiveInstance, SolverError, Status, Task, generate_batch, solve
from mig_opt.batch.integer_batch import IntegerBatch, Ticks
from mig_opt.models.batch import milp as milp_module
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_program import BlockProgram
from mig_opt.models.solvers.backend import ProgramOutcome, ProgramRun, SolverOutcome
from mig_opt.validation import validate

METHODS = ["milp-highs", "milp-cbc"]


def agree(batch: Batch, *names: str) -> None:
    """Check that methods find the same optimum, as far as they prove one, and that no bound is above a makespan."""
    results = [solve(batch, name, workers=1) for name in names]
    best = min(result.makespan for result in results)
    for result in results:
        assert validate(batch, result.schedule).valid
        assert result.lower_bound <= best * (1 + 1e-12) + 2e-9
        # Where a schedule has millions of ticks, the solvers cannot tell them apart: there is a gap, but a small one.
        assert result.status is Status.OPTIMAL or result.gap is None or result.gap < 1e-5
        assert result.makespan <= best * (1 + 1e-5) + 2e-9
        if result.status is Status.OPTIMAL and Ticks.of(batch).exact:
            assert result.makespan == pytest.approx(best, rel=1e-12, abs=2e-9)


@given(batches(st.sampled_from([A30, RTX, A100]), max_tasks=3, max_gpus=3))
@settings(max_examples=12)
def test_they_find_the_same_on_several_gpus(batch: Batch) -> None:
    agree(batch, "cp", *METHODS)


@pytest.mark.deep
@given(tiny_batches, st.sampled_from([1e-9, 1e-4, 1e3, 1e9]))
@settings(max_examples=15)
def test_very_short_and_very_long_times(batch: Batch, scale: float) -> None:
    agree(scaled(batch, scale, costs_too=True), "cp", *METHODS)


@pytest.mark.deep
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("batch", "relaxed", "true"), GAPS)
def test_a_relaxed_bound_below_every_schedule_is_refined(
    method: str, batch: Batch, relaxed: int, true: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[bool] = []

    class Recorded(BlockProgram):
        def __init__(self, problem: IntegerBatch, form: BlockForm) -> None:
            built.append(bool(form.copies))
            super().__init__(problem, form)

    monkeypatch.setattr(milp_module, "BlockProgram", Recorded)
    result = solve(batch, method)
    assert (result.status, result.makespan, built[-1]) == (Status.OPTIMAL, true, True)


@pytest.mark.deep
def test_cbc_may_see_at_first_sight_that_nothing_is_shorter() -> None:
    """It then crashes instead of writing a file: here for the assignment of the relaxed optimum."""
    batch = Batch(
        (
            Task("t0", {1: 12.0, 2: 6.0, 4: 3.0}, 12),
            Task("t1", {1: 4.0, 2: 4.0, 4: 5.0}),
            Task("t2", {1: 4.0, 2: 2.0}),
            Task("t3", {1: 12.0, 2: 6.0, 4: 3.0}, 12),
        ),
        A30,
        initial=(LiveInstance(0, "1g.6gb", 0, 6.0), LiveInstance(0, "1g.6gb", 2)),
        parallel_operations=True,
    )
    agree(batch, "cp", "milp-cbc")


@pytest.fixture
def solver(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., ProgramOutcome]], None]:
    """Lets a function stand in for the solver; it is given the true one, and its arguments."""

    def stand_in(function: Callable[..., ProgramOutcome]) -> None:
        monkeypatch.setattr(milp_module, "solve_program", functools.partial(function, true))

    true = milp_module.solve_program
    return stand_in


LONG = Batch((Task("a", {1: 1234.6789}), Task("b", {1: 2345.6891, 2: 1345.6891}), Task("c", {4: 1.0001})), A30)
"""A schedule takes 1.3e7 ticks of 0.0001 s: more than a solver with tolerances can tell apart."""


@pytest.mark.parametrize("method", METHODS)
def test_a_bound_stays_one_whatever_the_solver_says_within_its_tolerance(method: str, solver: Any) -> None:
    def optimistic(run: Any, *given: Any, **arguments: Any) -> ProgramOutcome:
        outcome = run(*given, **arguments)
        return SolverOutcome(outcome.status, outcome.objective, outcome.bound * (1 + 1e-8), outcome.values)

    true = solve(LONG, "brute-force").makespan
    solver(optimistic)
    result = solve(LONG, method)
    assert Ticks.of(LONG).exact
    assert result.lower_bound < result.makespan == true
    # The search has ended without a proof, and says how far it got.
    assert result.status is Status.FEASIBLE
    assert result.gap < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_a_solver_that_loses_solutions_is_noticed(method: str, solver: Any) -> None:
    solver(lambda *_, **__: SolverOutcome(Status.INFEASIBLE, None, math.inf, None))
    with pytest.raises(SolverError, match=r"(HiGHS|CBC) finds no solution of a model that has one"):
        solve(tiny.BATCH, method)


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_beyond_what_solvers_can_count(method: str) -> None:
    result = solve(generate_batch(5, gpu="A30", seed=3), method, time_limit=1e300, deterministic=True)
    assert result.status is Status.OPTIMAL


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    def find(name: str, *args: Any, **arguments: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}")
        return original(name, *args, **arguments)

    original = builtins.__import__
    monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(builtins, "__import__", find)


@pytest.mark.parametrize(
    ("method", "backend", "missing"),
    [("milp", "HiGHS", ""), ("milp-highs", "HiGHS", ""), ("milp-cbc", "CBC", ""), ("milp", "CBC", "highspy")],
)
def test_each_method_has_its_solver(
    method: str, backend: str, missing: str, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: set[str] = set()
    solver(lambda run, *given, **arguments: used.add(given[1].name) or run(*given, **arguments))
    if missing:
        without(monkeypatch, missing)
    result = solve(tiny.BATCH, method)
    assert (used, result.method, result.makespan) == ({backend}, method, tiny.OPTIMUM)
    own = {"highspy"} if backend == "HiGHS" else set()
    assert missing or set(result.versions) == {"mig-opt", "python", "pulp"} | own


def test_a_missing_highs_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "highspy")
    assert refused(solve, tiny.BATCH, "milp-highs", match=r'pip install "highspy>=1\.10,<1\.15"') == ["method"]


def test_a_missing_cbc_says_what_to_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.models.solvers.cbc._program", lambda: tmp_path / "cbc")
    assert refused(solve, tiny.BATCH, "milp-cbc", match="use HiGHS") == ["method"]


def test_the_start_is_given_to_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[ProgramRun] = []
    run = milp_module.Highs.run
    monkeypatch.setattr(milp_module.Highs, "run", lambda self, job: starts.append(job) or run(self, job))
    solve(tiny.BATCH, "milp-highs")
    assert [job.start is not None for job in starts][:2] == [False, True]
    names = {variable.name for variable in starts[1].program.variables()}
    assert names <= set(starts[1].start)


def test_deterministic_limits_are_nodes_for_about_as_many_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes: list[int] = []
    run = milp_module.Highs.run
    monkeypatch.setattr(milp_module.Highs, "run", lambda self, job: nodes.append(job.nodes) or run(self, job))
    solve(tiny.BATCH, "milp-highs", time_limit=10.0, deterministic=True)
    # Of 12 and 16 tasks 18 nodes take ten seconds.
    assert 9 <= max(nodes) <= 36


def test_deterministic_limits_end_in_a_first_node_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[ProgramOutcome] = []
    run = milp_module.Highs.run
    monkeypatch.setattr(milp_module.Highs, "run", lambda self, job: ended.append(run(self, job)) or ended[-1])
    solve(generate_batch(12, seed=1), "milp-highs", time_limit=0.5, deterministic=True)
    assert ended[-1].status is Status.INTERRUPTED
