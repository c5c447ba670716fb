"""The mixed-integer program of a batch: the twin of the block model, whoever solves it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import tiny
from block_models import GAPS, block_form, block_model, costs, optimum, tasks, ticks_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import Decisions, decisions, tiny_batches
from whole_problems import whole_problem

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import nested_schedule, timed_schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import OperationCosts
from mig_opt.method.control import Control
from mig_opt.method.result import Status
from mig_opt.models.batch.block_formulation import BlockForm, distinct_names
from mig_opt.models.batch.block_program import BlockProgram
from mig_opt.models.solvers.backend import Backend, ProgramOutcome, solve_program
from mig_opt.models.solvers.cbc import Cbc
from mig_opt.models.solvers.highs import Highs
from mig_opt.validation import validate

A30 = get_gpu("A30")


def block_program(batch: Batch, **form: Any) -> BlockProgram:
    problem = IntegerBatch(batch)
    return BlockProgram(problem, block_form(problem, **form))


def solved(program: BlockProgram, backend: Backend | None = None) -> ProgramOutcome:
    return solve_program(program.linear.program, backend or Highs(), Control[Schedule]())


def ticks(program: BlockProgram, backend: Backend | None = None) -> int:
    """The optimum in ticks; it is whole within the tolerance, where that is far below a tick."""
    outcome = solved(program, backend)
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective is not None
    exact = program.ticks(outcome.objective)
    assert abs(exact - round(exact)) <= max(1e-3, float(program.ticks(1e-6)))
    return round(exact)


def alike(program: BlockProgram, model_optimum: int, backend: Backend | None = None) -> None:
    assert abs(ticks(program, backend) - model_optimum) <= float(program.ticks(1e-6))


# The same as the constraint model


@pytest.mark.deep
@given(tiny_batches, st.booleans(), st.data())
@settings(max_examples=30)
def test_both_forms_have_the_optima_of_the_constraint_model(batch: Batch, relaxed: bool, data: st.DataObject) -> None:
    places = st.sampled_from(range(len(IntegerBatch(batch).places)))
    copies = data.draw(st.dictionaries(places, st.just(2), max_size=2))
    expected = optimum(block_model(batch, relaxed=relaxed, copies=copies))
    alike(block_program(batch, relaxed=relaxed, copies=copies), expected)


@given(tiny_batches, st.booleans())
@settings(max_examples=15)
def test_cbc_finds_the_same(batch: Batch, relaxed: bool) -> None:
    alike(block_program(batch, relaxed=relaxed), optimum(block_model(batch, relaxed=relaxed)), Cbc())


@pytest.mark.deep
@pytest.mark.parametrize(("batch", "relaxed", "true"), GAPS)
def test_the_relaxed_optimum_may_be_below_every_schedule(batch: Batch, relaxed: int, true: int) -> None:
    program = block_program(batch, relaxed=True)
    outcome = solved(program)
    assert outcome.objective == pytest.approx(program.amount(relaxed))
    assert outcome.values is not None
    assert program.loose_places(program.whole(outcome.values))
    assert ticks(block_program(batch, relaxed=False)) == true
    everywhere = dict.fromkeys(range(len(IntegerBatch(batch).places)), len(batch.tasks))
    assert ticks(block_program(batch, relaxed=True, copies=everywhere)) == true


# Soundness


def place_tasks(program: BlockProgram, places: list[int]) -> None:
    """Demand that each task runs at its place, in any of its lifetimes."""
    for task, (at, choices) in enumerate(zip(places, program.assigned, strict=True)):
        there = [(choice, 1) for slot, choice in choices.items() if program.slots.lifetimes[slot].place == at]
        program.linear.equal(f"task{task}_at{at}", there, 1)


@pytest.mark.deep
@given(decisions(), st.data())
@settings(max_examples=30)
def test_every_schedule_satisfies_the_relaxed_program(case: Decisions, data: st.DataObject) -> None:
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    problem = whole_problem(case.batch)
    assume(problem.gpus[-1] == case.batch.gpus - 1)
    takes = ticks_of(problem, schedule.makespan)
    some = data.draw(st.dictionaries(st.sampled_from(range(len(problem.places))), st.integers(2, 3), max_size=3))
    program = BlockProgram(problem, BlockForm(at_most=takes, relaxed=True, copies=some))
    place_tasks(program, problem.places_of(schedule))
    outcome = solved(program)
    assert outcome.objective is not None
    assert program.ticks(outcome.objective) <= takes + program.ticks(1e-6)


# Solutions are schedules


@pytest.mark.deep
@given(tiny_batches)
@settings(max_examples=30)
def test_a_solution_becomes_a_schedule_as_long_as_the_program_says(batch: Batch) -> None:
    program = block_program(batch, relaxed=False)
    outcome = solved(program)
    assert outcome.values is not None
    assert outcome.objective is not None
    values = program.whole(outcome.values)
    at = [program.problem.places[index] for index in program.places_of(values)]
    if program.problem.operations_take_no_time:
        schedule = nested_schedule(batch, [(place.gpu, place.placement) for place in at])
    else:
        schedule = program.schedule(values)
    assert validate(batch, schedule).valid
    said, unit = program.ticks(outcome.objective), program.problem.ticks
    if unit.exact:
        assert abs(unit.nearest(schedule.makespan) - said) <= max(0.01, float(program.ticks(1e-6)))
    else:
        assert said <= unit.floor(schedule.makespan) + 1 + program.ticks(1e-6)


def test_every_integer_is_0_or_1() -> None:
    """With counts of tasks of one kind, CBC 2.10.3 calls 38.44 s the optimum of this batch."""
    gpu = get_gpu("RTX-PRO-6000")
    same = {1: 76.88, 2: 38.44, 4: 19.22}
    batch = Batch(
        tasks(same, {1: 9.3, 4: 13.2}, same),
        gpu,
        2,
        OperationCosts({1: 12.8, 2: 0.0, 4: 0.0}, {1: 8.61, 2: 0.0, 4: 24.67}),
    )
    program = block_program(batch, relaxed=True)
    whole = [variable for variable in program.linear.variables if variable.isInteger()]
    assert {(variable.lowBound, variable.upBound) for variable in whole} == {(0, 1)}
    for backend in (Highs(), Cbc()):
        assert ticks(program, backend) == 3242


def test_a_fixed_program_runs_every_task_at_its_place() -> None:
    problem = IntegerBatch(tiny.BATCH)
    program = BlockProgram(problem, BlockForm(at_most=2000, relaxed=True))
    places = problem.places_of(tiny.BEST)
    with program.fixed(places):
        outcome = solved(program)
    assert outcome.values is not None
    values = program.whole(outcome.values)
    assert program.places_of(values) == places
    assert program.schedule(values).makespan == tiny.OPTIMUM
    program.hint(values)
    assert program.start is not None
    assert {name: program.start[name] for name in outcome.values} == pytest.approx(outcome.values, abs=0.1)


def test_lifetimes_that_take_no_time_may_stand_in_a_circle() -> None:
    # In ticks of about 1e-2 s the tasks take no time at all, and so do the operations.
    batch = Batch(
        tasks({1: 1e-9}, {2: 1e-9}, {4: 1e-9}),
        A30,
        operations=costs((0, 0, 0), (0, 0, 0)),
        initial=(LiveInstance(0, "4g.24gb", 0, 3e6 + 1e-9),),
    )
    program = block_program(batch, relaxed=False)
    slots = {lifetime.place: slot for slot, lifetime in enumerate(program.slots.lifetimes) if not lifetime.initial}
    chosen = [
        next(slots[at] for at, place in enumerate(IntegerBatch(batch).places) if place.placement.profile.name == name)
        for name in ("1g.6gb", "2g.12gb", "4g.24gb")
    ]
    one, two, three = chosen
    true = [program.before[pair] for pair in ((one, two), (two, three), (three, one))]
    for task, slot in enumerate(chosen):
        true += [program.assigned[task][slot], program.used[slot]]
    values = [0] * len(program.linear.variables)
    for variable in true:
        values[program._at(variable)] = 1
    assert validate(batch, program.schedule(values)).valid


# Numbers and names


@pytest.mark.parametrize("at_most", [1, 7, 634, 12345, 2**28])
def test_times_have_three_digits(at_most: int) -> None:
    program = BlockProgram(IntegerBatch(tiny.BATCH), BlockForm(at_most=at_most, relaxed=True))
    assert 100 <= program.amount(at_most) < 1000
    assert program.ticks(program.amount(at_most)) == pytest.approx(at_most)
    # The next makespan is out of reach, unless the solver cannot tell the two apart.
    latest = program.ticks(program._makespan.upBound)
    assert at_most < latest < at_most + max(1, at_most * 3e-6)


def test_names_are_readable_and_distinct() -> None:
    named = Batch(
        tuple(Task(name, {1: 1.0 + at}) for at, name in enumerate(("lu-1", "LU 1", "lu.1", "ä", "1e5", "x" * 300))), A30
    )
    assert distinct_names((task.name for task in named.tasks), 30) == [
        "lu_1",
        "LU_1_2",
        "lu_1_3",
        "unnamed",
        "1e5",
        "x" * 30,
    ]
    live = (LiveInstance(0, "2g.12gb", 0),)
    program = block_program(named.replace(gpus=2, initial=live), relaxed=True, copies={0: 2})
    names = [variable.name for variable in program.linear.variables]
    assert len({name.casefold() for name in names}) == len(names)
    assert all(re.fullmatch(r"[a-df-z][a-z0-9A-Z_]{0,98}", name) for name in names)
    assert {"run_lu_1_on_gpu1_1g_6gb_at_3", "use_gpu0_2g_12gb_at_0_live"} <= set(names)
