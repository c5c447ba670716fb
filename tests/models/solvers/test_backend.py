"""Every way in which a run of a solver of mixed-integer programs can end, for each of them."""

from __future__ import annotations

import math
import os
import signal
import tempfile
import threading
from pathlib import Path
from random import Random
from typing import Any

import pulp
import pytest
from listening import presses_ctrl_c, solver_threads

from mig_opt.batch.schedule import Schedule
from mig_opt.errors import SolverError
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.method.result import Status
from mig_opt.models.solvers.backend import Backend, ProgramOutcome, ProgramRun, SolverOutcome, Values, solve_program
from mig_opt.models.solvers.cbc import Cbc, _below
from mig_opt.models.solvers.highs import Highs
from mig_opt.models.solvers.linear import LinearProgram


@pytest.fixture(params=[Highs, Cbc], ids=["highs", "cbc"])
def backend(request: pytest.FixtureRequest) -> Backend:
    chosen: Backend = request.param()
    return chosen


def knapsack() -> LinearProgram:
    """Two things of 5 and 4 have to be in for 9 at least; 3 alone is too little. The optimum is 7."""
    linear = LinearProgram("knapsack")
    one, two, three = (linear.choice(name) for name in ("one", "two", "three"))
    cost = linear.continuous("cost", 0, 100)
    linear.at_most("cost_of_all", [(one, 4), (two, 3), (three, 2), (cost, -1)], 0)
    linear.at_most("enough", [(one, -5), (two, -4), (three, -3)], -9)
    linear.minimise(cost)
    return linear


def makespan(n: int, machines: int = 4) -> tuple[LinearProgram, Values]:
    """Jobs on unlike machines, and a poor schedule: easy to solve somehow, hard to prove."""
    rng = Random(n)
    linear = LinearProgram("makespan")
    end = linear.continuous("end", 0, 1000 * n)
    loads: list[list[tuple[Any, float]]] = [[(end, -1)] for _ in range(machines)]
    start: dict[str, float] = {}
    for job in range(n):
        choices = [linear.choice(f"job{job}_on{machine}") for machine in range(machines)]
        linear.equal(f"once{job}", [(choice, 1) for choice in choices], 1)
        for load, choice in zip(loads, choices, strict=True):
            load.append((choice, rng.uniform(100, 999)))
        start |= {choice.name: float(choice is choices[0]) for choice in choices}
    for machine, load in enumerate(loads):
        linear.at_most(f"load{machine}", load, 0)
    linear.minimise(end)
    return linear, {**start, "end": sum(factor for _, factor in loads[0][1:])}


def market_split(rows: int = 5) -> LinearProgram:
    """Random equations in binaries: hardly any has a solution, and the search for one takes for ever."""
    rng = Random(7)
    linear = LinearProgram("market")
    choices = [linear.choice(f"x{at}") for at in range(10 * (rows - 1))]
    for row in range(rows):
        factors = [rng.randint(0, 99) for _ in choices]
        linear.equal(f"row{row}", list(zip(choices, factors, strict=True)), sum(factors) // 2)
    linear.minimise(choices[0])
    return linear


def solved(linear: LinearProgram, backend: Backend, seconds: float | None = None, **more: Any) -> ProgramOutcome:
    return solve_program(linear.program, backend, Control[Schedule](RunOptions(time_limit=seconds)), **more)


# How a run can end


def test_optimal(backend: Backend) -> None:
    outcome = solved(knapsack(), backend)
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(7)
    assert outcome.bound == pytest.approx(7)
    assert outcome.values == pytest.approx({"one": 1, "two": 1, "three": 0, "cost": 7})


def test_optimal_after_a_search(backend: Backend) -> None:
    linear, start = makespan(12)
    bounds: list[float] = []
    objectives: list[float] = []
    outcome = solved(linear, backend, on_bound=bounds.append, on_solution=lambda v: objectives.append(v["end"]))
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective is not None
    assert outcome.objective < start["end"]
    assert bounds == sorted(set(bounds))
    assert bounds[-1] == pytest.approx(outcome.objective)
    assert outcome.bound <= outcome.objective + 1e-6
    assert objectives[-1] == pytest.approx(outcome.objective)
    assert all(bound <= objectives[-1] + 1e-6 for bound in bounds)


def test_no_solution_of_the_relaxation(backend: Backend) -> None:
    linear = knapsack()
    linear.at_most("little", [(linear.variables[0], 1), (linear.variables[1], 1)], 0.5)
    assert solved(linear, backend) == SolverOutcome(Status.INFEASIBLE, None, math.inf, None)


def test_no_solution_in_integers(backend: Backend) -> None:
    linear = LinearProgram("odd")
    choices = [linear.choice(f"x{at}") for at in range(12)]
    linear.equal("odd", [(choice, 2 * at + 4) for at, choice in enumerate(choices)], 77)
    linear.minimise(choices[0])
    assert solved(linear, backend) == SolverOutcome(Status.INFEASIBLE, None, math.inf, None)


def test_a_row_without_variables_that_does_not_hold(backend: Backend) -> None:
    linear = knapsack()
    linear.equal("nothing", [], 1)
    assert solved(linear, backend).status is Status.INFEASIBLE


def test_the_time_is_up_without_a_solution(backend: Backend) -> None:
    seen: list[Values] = []
    outcome = solved(market_split(), backend, 0.5, on_solution=seen.append)
    assert outcome.status is Status.NO_SOLUTION
    assert (outcome.objective, outcome.values, seen) == (None, None, [])
    assert outcome.bound <= 1


def test_no_time_at_all(backend: Backend) -> None:
    linear, _ = makespan(200)
    outcome = solved(linear, backend, 1e-9)
    assert outcome.status in (Status.NO_SOLUTION, Status.FEASIBLE)
    assert (outcome.values is None) == (outcome.status is Status.NO_SOLUTION)
    assert outcome.bound < math.inf


def job(linear: LinearProgram, stop: threading.Event, **more: Any) -> ProgramRun:
    told = {"on_solution": lambda values: None, "on_bound": lambda bound: None, "start": None, **more}
    return ProgramRun(linear.program, None, None, 0, stop=stop, **told)


def test_interrupted_with_a_solution(backend: Backend) -> None:
    linear, start = makespan(120)
    stop = threading.Event()
    outcome = backend.run(job(linear, stop, start=start, on_bound=lambda bound: bound > 0 and stop.set()))
    assert outcome.status is Status.INTERRUPTED
    assert outcome.objective is not None
    assert outcome.objective <= start["end"] + 1e-6
    assert outcome.values is not None
    assert 0 < outcome.bound < outcome.objective


def test_interrupted_without_a_solution(backend: Backend) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    outcome = backend.run(job(market_split(), stop))
    assert outcome.status is Status.INTERRUPTED
    assert outcome.values is None


def test_an_objective_without_limit_is_an_error(backend: Backend) -> None:
    linear = LinearProgram("unbounded")
    one = linear.choice("one")
    other = linear.continuous("other", 0, 5)
    other.lowBound = None
    linear.at_most("together", [(one, 1), (other, 1)], 4)
    linear.minimise(other)
    with pytest.raises(SolverError, match=backend.name):
        solved(linear, backend)


# Ctrl-C, callbacks, what stays behind


def test_ctrl_c_reports_the_best_and_goes_on(backend: Backend) -> None:
    linear, start = makespan(120)
    seen: list[Values] = []

    def interrupt(bound: float) -> None:
        if bound > 0 and not pressed:
            pressed.append(bound)
            os.kill(os.getpid(), signal.SIGINT)

    pressed: list[float] = []
    with pytest.raises(KeyboardInterrupt):
        solved(linear, backend, start=start, on_solution=seen.append, on_bound=interrupt)
    assert seen[-1]["end"] <= start["end"] + 1e-6
    assert not solver_threads()


def test_ctrl_c_before_it_begins(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(self: Any, job: ProgramRun) -> ProgramOutcome:
        presses_ctrl_c()
        return run(self, job)

    run = type(backend).run
    monkeypatch.setattr(type(backend), "run", pressed)
    with pytest.raises(KeyboardInterrupt):
        solved(market_split(), backend)


class BrokenError(Exception):
    """Not an exception of anybody else."""


@pytest.mark.parametrize("which", ["on_solution", "on_bound"])
def test_what_a_callback_raises_ends_the_run(backend: Backend, which: str) -> None:
    def fail(_: object) -> None:
        raise BrokenError

    linear, start = makespan(30 if which == "on_solution" else 120)
    limit = 2.0 if which == "on_solution" else None  # CBC tells its solutions at the end
    with pytest.raises(BrokenError):
        solved(linear, backend, limit, start=start, **{which: fail})


def test_nothing_stays_behind(backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    linear, start = makespan(60)
    solved(linear, backend, 0.3, start=start)
    solved(market_split(), backend, 0.1)
    assert list(tmp_path.rglob("*")) == [here, temporary]


def test_a_solver_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch: Any) -> None:
    deaf = tmp_path / "cbc"
    deaf.write_text(
        "#!/bin/sh\ntrap '' INT\necho 'Continuous objective value is 12.5 - 0.00 seconds'\nexec sleep 100\n"
    )
    deaf.chmod(0o755)
    monkeypatch.setattr("mig_opt.models.solvers.cbc._program", lambda: deaf)
    monkeypatch.setattr("mig_opt.models.solvers.cbc._GRACE_SECONDS", 0.1)
    outcome = solved(knapsack(), Cbc(), 0.1)
    assert (outcome.status, outcome.values) == (Status.NO_SOLUTION, None)
    assert outcome.bound == pytest.approx(12.4)


def test_a_solver_that_fails_is_an_error(tmp_path: Path, monkeypatch: Any) -> None:
    broken = tmp_path / "cbc"
    broken.write_text("#!/bin/sh\necho out of memory\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr("mig_opt.models.solvers.cbc._program", lambda: broken)
    with pytest.raises(SolverError, match="out of memory"):
        solved(knapsack(), Cbc())


# What the solver is told


def test_there_is_no_gap_within_which_the_solver_stops(backend: Backend) -> None:
    # 1 part in 1e7 apart: by default HiGHS stops at 1 in 1e4.
    linear = LinearProgram("close")
    choices = [linear.choice(f"x{at}") for at in range(2)]
    value = linear.continuous("value", 0, 2000)
    linear.equal("one", [(choice, 1) for choice in choices], 1)
    linear.at_most("value_of", [(choices[0], 1000), (choices[1], 1000 - 1e-4), (value, -1)], 0)
    linear.minimise(value)
    start = {"x0": 1.0, "x1": 0.0, "value": 1000.0}
    assert solved(linear, backend, start=start).objective == pytest.approx(1000 - 1e-4, abs=1e-8)


def test_the_leeway_of_a_program() -> None:
    # cost_of_all: 1 + 4 + 3 + 2, enough: 1 + 5 + 4 + 3; the cost itself is no integer.
    assert knapsack().leeway(1e-3) == pytest.approx(23e-3)


def test_printed_numbers_are_rounded_down() -> None:
    assert [_below(text) for text in ("724.026", "12", "1.5e+06", "-0.25", "83.20000000")] == [
        724.025,
        11,
        1.4e6,
        -0.26,
        83.19999999,
    ]


def test_the_program_is_left_as_it_was(backend: Backend) -> None:
    linear = knapsack()
    with linear.fixed({linear.variables[0]: 0}):
        assert solved(linear, backend).status is Status.INFEASIBLE
    assert solved(linear, backend).objective == pytest.approx(7)
    assert isinstance(linear.program, pulp.LpProblem)
