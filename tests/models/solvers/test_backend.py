"""Every way in which a run of a solver of mixed-integer programs can end, for each of them, and runs of CP-SAT."""

import math
import os
import signal
import tempfile
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from listening import presses_ctrl_c, solver_threads
from ortools.sat.python import cp_model

from mig_opt import Schedule, SolverError, Status
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.solvers.backend import Backend, ProgramRun, Request, SolverOutcome, Values, solve_program
from mig_opt.models.solvers.cbc import Cbc, _below
from mig_opt.models.solvers.cpsat import run
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


def solved(linear: LinearProgram, backend: Backend, seconds: float | None = None, **more: Any) -> SolverOutcome:
    return solve_program(linear.program, backend, Control[Schedule](RunOptions(time_limit=seconds)), **more)


def test_optimal(backend: Backend) -> None:
    outcome, seven = solved(knapsack(), backend), pytest.approx(7)
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.OPTIMAL, seven, seven)
    assert outcome.values == pytest.approx({"one": 1, "two": 1, "three": 0, "cost": 7})


def test_optimal_after_a_search(backend: Backend) -> None:
    linear, start = makespan(12)
    bounds: list[float] = []
    objectives: list[float] = []
    outcome = solved(linear, backend, on_bound=bounds.append, on_solution=lambda v: objectives.append(v["end"]))
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective < start["end"]
    assert bounds == sorted(set(bounds))
    assert bounds[-1] == pytest.approx(outcome.objective)
    assert outcome.bound <= outcome.objective + 1e-6
    assert objectives[-1] == pytest.approx(outcome.objective)
    assert all(bound <= objectives[-1] + 1e-6 for bound in bounds)


def test_no_solution(backend: Backend) -> None:
    """Neither of the relaxation, nor in integers, nor where a row without variables does not hold."""
    relaxed, odd, empty = knapsack(), LinearProgram("odd"), knapsack()
    relaxed.at_most("little", [(relaxed.variables[0], 1), (relaxed.variables[1], 1)], 0.5)
    choices = [odd.choice(f"x{at}") for at in range(12)]
    odd.equal("odd", [(choice, 2 * at + 4) for at, choice in enumerate(choices)], 77)
    odd.minimise(choices[0])
    empty.equal("nothing", [], 1)
    for linear in (relaxed, odd, empty):
        assert solved(linear, backend) == SolverOutcome(Status.INFEASIBLE, None, math.inf, None)


def test_the_time_is_up_without_a_solution(backend: Backend) -> None:
    seen: list[Values] = []
    outcome = solved(market_split(), backend, 0.5, on_solution=seen.append)
    assert outcome.status is Status.NO_SOLUTION
    assert (outcome.objective, outcome.values, seen) == (None, None, [])
    assert outcome.bound <= 1


def test_no_time_at_all(backend: Backend) -> None:
    linear, _ = makespan(200)
    outcome = backend.run(job(linear, threading.Event(), 1e9, begun=-1e9))  # building has taken it all
    assert outcome.status in (Status.NO_SOLUTION, Status.FEASIBLE)
    assert (outcome.values is None) == (outcome.status is Status.NO_SOLUTION)
    assert outcome.bound < math.inf


def job(linear: LinearProgram, stop: threading.Event, seconds: float | None = None, **more: Any) -> ProgramRun:
    told = {"on_solution": lambda values: None, "on_bound": lambda bound: None, "start": None, **more}
    return ProgramRun(linear.program, seconds, None, 0, stop=stop, **told)


def test_interrupted_with_a_solution(backend: Backend) -> None:
    linear, start = makespan(120)
    stop = threading.Event()
    outcome = backend.run(job(linear, stop, start=start, on_bound=lambda bound: bound > 0 and stop.set()))
    assert outcome.status is Status.INTERRUPTED
    assert outcome.objective <= start["end"] + 1e-6
    assert outcome.values is not None
    assert 0 < outcome.bound < outcome.objective


def test_interrupted_without_a_solution(backend: Backend) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    outcome = backend.run(job(market_split(), stop))
    assert (outcome.status, outcome.values) == (Status.INTERRUPTED, None)


def test_an_objective_without_limit_is_an_error(backend: Backend) -> None:
    linear = LinearProgram("unbounded")
    one = linear.choice("one")
    other = linear.continuous("other", 0, 5)
    other.lowBound = None
    linear.at_most("together", [(one, 1), (other, 1)], 4)
    linear.minimise(other)
    with pytest.raises(SolverError, match=backend.name):
        solved(linear, backend)


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
    run = type(backend).run
    monkeypatch.setattr(type(backend), "run", lambda self, job: presses_ctrl_c() or run(self, job))
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


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of CBC's, still to be written."""
    path = tmp_path / "cbc"
    path.touch(0o755)
    monkeypatch.setattr("mig_opt.models.solvers.cbc._program", lambda: path)
    return path


def test_a_solver_that_does_not_listen_is_killed(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "echo 'Continuous objective value is 12.5 - 0.00 seconds'"
    program.write_text(f"#!/bin/sh\ntrap '' INT\n{said}\nexec sleep 100\n")
    monkeypatch.setattr("mig_opt.models.solvers.cbc._GRACE_SECONDS", 0.1)
    outcome = solved(knapsack(), Cbc(), 0.1)
    assert (outcome.status, outcome.values) == (Status.NO_SOLUTION, None)
    assert outcome.bound == pytest.approx(12.4)


def test_a_solver_that_fails_is_an_error(program: Path) -> None:
    program.write_text("#!/bin/sh\necho out of memory\nexit 3\n")
    with pytest.raises(SolverError, match="out of memory"):
        solved(knapsack(), Cbc())


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
    below = {"724.026": 724.025, "12": 11, "1.5e+06": 1.4e6, "-0.25": -0.26, "83.20000000": 83.19999999}
    assert {text: _below(text) for text in below} == below


def test_the_program_is_left_as_it_was(backend: Backend) -> None:
    linear = knapsack()
    with linear.fixed({linear.variables[0]: 0}):
        assert solved(linear, backend).status is Status.INFEASIBLE
    assert solved(linear, backend).objective == pytest.approx(7)


def even_split(numbers: list[int]) -> cp_model.CpModel:
    """Model of numbers on two sides, whose larger sum is to be small."""
    model = cp_model.CpModel()
    largest = model.new_int_var(0, sum(numbers), "largest")
    left = [model.new_bool_var(f"{number} is left") for number in numbers]
    model.add(sum(number * here for number, here in zip(numbers, left, strict=True)) <= largest)
    model.add(sum(number * (1 - here) for number, here in zip(numbers, left, strict=True)) <= largest)
    model.minimize(largest)
    return model


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(
    "request_", [Request(), Request(for_proof=True), Request(tight=True)], ids=["plain", "proof", "tight"]
)
def test_the_optimum_is_the_same_however_it_searches(request_: Request, workers: int) -> None:
    control = Control[None](RunOptions(workers=workers))
    outcome = run(even_split([41, 37, 30, 22, 17, 11, 5]), control, request_)
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == outcome.bound == 82
