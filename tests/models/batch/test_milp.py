"""The methods ``milp``, ``milp-highs`` and ``milp-cbc``: the same optima as the others, and bounds that hold."""

from __future__ import annotations

import builtins
import math
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import tiny
from block_models import FREE_DESTRUCTIONS, LATE_INSTANCE
from hypothesis import given, settings
from hypothesis import strategies as st
from listening import Listener, solver_threads
from strategies import batches, scaled, tiny_batches

from mig_opt import Batch, InputError, LiveInstance, Result, SolverError, Status, Task, generate_batch, get_gpu, solve
from mig_opt.batch.integer_batch import IntegerBatch, Ticks
from mig_opt.models.batch import milp as milp_module
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_program import BlockProgram
from mig_opt.models.solvers.backend import ProgramOutcome, ProgramRun, SolverOutcome
from mig_opt.validation import validate

A30, A100, RTX = (get_gpu(name) for name in ("A30", "A100", "RTX-PRO-6000"))
METHODS = ["milp-highs", "milp-cbc"]


def agree(batch: Batch, *names: str) -> None:
    """Check that methods find the same optimum, as far as they prove one, and that no bound is above a makespan."""
    results = [solve(batch, name, workers=1) for name in names]
    makespans = [result.makespan for result in results if result.makespan is not None]
    assert len(makespans) == len(names)
    best = min(makespans)
    for result, makespan in zip(results, makespans, strict=True):
        assert result.schedule is not None
        assert validate(batch, result.schedule).valid
        assert result.lower_bound <= best * (1 + 1e-12) + 2e-9
        # Where a schedule has millions of ticks, the solvers cannot tell them apart: there is a gap, but a small one.
        assert result.status is Status.OPTIMAL or result.gap is None or result.gap < 1e-5
        assert makespan <= best * (1 + 1e-5) + 2e-9
        if result.status is Status.OPTIMAL and Ticks.of(batch).exact:
            assert makespan == pytest.approx(best, rel=1e-12, abs=2e-9)


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
@pytest.mark.parametrize("batch", [pytest.param(LATE_INSTANCE, id="late"), pytest.param(FREE_DESTRUCTIONS, id="empty")])
def test_a_relaxed_bound_below_every_schedule_is_refined(
    method: str, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[bool] = []

    class Recorded(BlockProgram):
        def __init__(self, problem: IntegerBatch, form: BlockForm) -> None:
            built.append(bool(form.copies))
            super().__init__(problem, form)

    monkeypatch.setattr(milp_module, "BlockProgram", Recorded)
    result = solve(batch, method)
    assert result.status is Status.OPTIMAL
    assert result.makespan == solve(batch, "cp").makespan
    assert built[-1]


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


# Bounds in floating-point numbers


LONG = Batch((Task("a", {1: 1234.6789}), Task("b", {1: 2345.6891, 2: 1345.6891}), Task("c", {4: 1.0001})), A30)
"""A schedule takes 1.3e7 ticks of 0.0001 s: more than a solver with tolerances can tell apart."""


@pytest.mark.parametrize("method", METHODS)
def test_a_bound_stays_one_whatever_the_solver_says_within_its_tolerance(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def optimistic(program: Any, backend: Any, control: Any, **arguments: Any) -> ProgramOutcome:
        outcome: ProgramOutcome = run(program, backend, control, **arguments)
        return SolverOutcome(outcome.status, outcome.objective, outcome.bound * (1 + 1e-8), outcome.values)

    run = milp_module.solve_program
    monkeypatch.setattr(milp_module, "solve_program", optimistic)
    true = solve(LONG, "brute-force").makespan
    result = solve(LONG, method)
    assert Ticks.of(LONG).exact
    assert true is not None
    assert result.makespan == true
    assert result.lower_bound < true
    # The search has ended without a proof, and says how far it got.
    assert result.status is Status.FEASIBLE
    assert result.gap is not None
    assert result.gap < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_a_solver_that_loses_solutions_is_noticed(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(*args: Any, **arguments: Any) -> ProgramOutcome:
        return SolverOutcome(Status.INFEASIBLE, None, math.inf, None)

    monkeypatch.setattr(milp_module, "solve_program", lossy)
    with pytest.raises(SolverError, match=r"(HiGHS|CBC) finds no solution of a model that has one"):
        solve(tiny.BATCH, method)


# Limits and interruptions


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_keeps_the_best_schedule(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = generate_batch(12, seed=3)
    pressed: list[float] = []

    def watched(program: Any, backend: Any, control: Any, **arguments: Any) -> ProgramOutcome:
        def press(bound: float) -> None:
            # The solver is at work, in a thread of its own, and has told its first bound.
            if not pressed and threading.current_thread() is not threading.main_thread():
                pressed.append(bound)
                os.kill(os.getpid(), signal.SIGINT)
            arguments["on_bound"](bound)

        outcome: ProgramOutcome = run(program, backend, control, **{**arguments, "on_bound": press})
        return outcome

    run = milp_module.solve_program
    monkeypatch.setattr(milp_module, "solve_program", watched)
    listener = Listener()
    result = solve(batch, method, callbacks=listener)
    assert pressed
    assert result.status is Status.INTERRUPTED
    assert result.makespan == [makespan for kind, makespan, _ in listener.calls if kind == "incumbent"][-1]
    assert result.schedule is not None
    assert validate(batch, result.schedule).valid
    assert not solver_threads()


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_beyond_what_solvers_can_count(method: str) -> None:
    result = solve(generate_batch(5, gpu="A30", seed=3), method, time_limit=1e300, deterministic=True)
    assert result.status is Status.OPTIMAL


# Which solver runs


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    def find(name: str, *args: Any, **arguments: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}")
        return original(name, *args, **arguments)

    original = builtins.__import__
    monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(builtins, "__import__", find)


def backends_of(method: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, set[str]]:
    used: set[str] = set()

    def watched(program: Any, backend: Any, control: Any, **arguments: Any) -> ProgramOutcome:
        used.add(backend.name)
        outcome: ProgramOutcome = run(program, backend, control, **arguments)
        return outcome

    run = milp_module.solve_program
    monkeypatch.setattr(milp_module, "solve_program", watched)
    return solve(tiny.BATCH, method), used


@pytest.mark.parametrize(("method", "backend"), [("milp", "HiGHS"), ("milp-highs", "HiGHS"), ("milp-cbc", "CBC")])
def test_each_method_has_its_solver(method: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result, used = backends_of(method, monkeypatch)
    assert used == {backend}
    assert result.makespan == tiny.OPTIMUM
    assert set(result.versions) == {"mig-opt", "python", "pulp", *(["highspy"] if backend == "HiGHS" else [])}


def test_cbc_stands_in_for_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "highspy")
    result, used = backends_of("milp", monkeypatch)
    assert used == {"CBC"}
    assert (result.method, result.makespan) == ("milp", tiny.OPTIMUM)


def test_a_missing_highs_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "highspy")
    with pytest.raises(InputError, match=r'pip install "highspy>=1\.10,<1\.15"') as caught:
        solve(tiny.BATCH, "milp-highs")
    assert [problem.path for problem in caught.value.problems] == ["method"]


def test_a_missing_cbc_says_what_to_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.models.solvers.cbc._program", lambda: tmp_path / "cbc")
    with pytest.raises(InputError, match="use HiGHS"):
        solve(tiny.BATCH, "milp-cbc")


def test_the_start_is_given_to_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[ProgramRun] = []

    def watched(self: Any, job: ProgramRun) -> ProgramOutcome:
        starts.append(job)
        outcome: ProgramOutcome = run(self, job)
        return outcome

    run = milp_module.Highs.run
    monkeypatch.setattr(milp_module.Highs, "run", watched)
    solve(tiny.BATCH, "milp-highs")
    assert [job.start is not None for job in starts][:2] == [False, True]
    names = {variable.name for variable in starts[1].program.variables()}
    assert starts[1].start is not None
    assert names <= set(starts[1].start)
