"""The block model and its twin, the mixed-integer program: schedules satisfy them, their solutions are schedules."""

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
import tiny
from block_models import GAPS, block_form, block_model, costs, optimum, solved, tasks, timed
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from strategies import A30, Decisions, decisions, tiny_batches
from whole_problems import whole_problem

from mig_opt import Batch, LiveInstance, OperationCosts, Schedule, Status, Task, get_gpu
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.timing import nested_schedule
from mig_opt.method.control import Control
from mig_opt.models.batch.block_formulation import BlockForm, distinct_names
from mig_opt.models.batch.block_model import BlockModel
from mig_opt.models.batch.block_program import BlockProgram
from mig_opt.models.solvers.backend import Backend, ProgramOutcome, solve_program
from mig_opt.models.solvers.cbc import Cbc
from mig_opt.models.solvers.highs import Highs
from mig_opt.validation import validate


@pytest.mark.parametrize(("batch", "relaxed", "true"), GAPS)
def test_the_relaxed_optimum_may_be_below_every_schedule(batch: Batch, relaxed: int, true: int) -> None:
    model = block_model(batch, relaxed=True)
    outcome = solved(model.model)
    assert outcome.objective == relaxed
    assert model.loose_places(outcome.values)
    # With as many copies as tasks nothing can be loose: both forms hold exactly all schedules.
    everywhere = dict.fromkeys(range(len(model.problem.places)), len(batch.tasks))
    for form in ({"relaxed": False}, *({"relaxed": each, "copies": everywhere} for each in (True, False))):
        assert optimum(block_model(batch, **form)) == true


def holds(model: BlockModel, places: list[int], at_most: int) -> bool:
    """True if the model has a solution of at most that length that runs each task at its place."""
    fixed = model.model.clone()
    for choices, at in zip(model.assigned, places, strict=True):
        there = [choice for slot, choice in choices.items() if model.slots.lifetimes[slot].place == at]
        fixed.add_bool_or([fixed.get_bool_var_from_proto_index(choice.index) for choice in there])
    outcome = solved(fixed)
    return outcome.objective is not None and outcome.objective <= at_most


@pytest.mark.deep
@given(decisions(), st.data())
def test_every_schedule_satisfies_the_relaxed_model(case: Decisions, data: st.DataObject) -> None:
    problem, schedule, takes = timed(case)
    some = data.draw(st.dictionaries(st.sampled_from(range(len(problem.places))), st.integers(2, 3), max_size=3))
    model = BlockModel(problem, BlockForm(at_most=takes, relaxed=True, copies=some))
    assert holds(model, problem.places_of(schedule), takes)


@pytest.mark.deep
@given(decisions())
def test_with_enough_copies_every_schedule_satisfies_the_strict_model(case: Decisions) -> None:
    problem, schedule, takes = timed(case)
    places = problem.places_of(schedule)
    model = BlockModel(problem, BlockForm(at_most=takes, relaxed=False, copies={at: places.count(at) for at in places}))
    assert holds(model, places, takes)


@pytest.mark.deep
@given(tiny_batches)
@settings(max_examples=30)
def test_symmetry_breaking_changes_no_optimum(batch: Batch) -> None:
    broken = [optimum(block_model(batch, relaxed=relaxed)) for relaxed in (True, False)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IntegerBatch, "interchangeable", ())
        patch.setattr(IntegerBatch, "identical", ())
        free = [optimum(block_model(batch, relaxed=relaxed)) for relaxed in (True, False)]
    assert broken == free


@given(decisions())
def test_canonical_assignments_run_the_same_in_the_order_of_the_model(case: Decisions) -> None:
    problem, schedule, _ = timed(case)
    places = problem.places_of(schedule)
    assert problem.symmetry_reduced(places) == places
    # Identical tasks may change places among themselves: what counts is how often each kind of task is on each profile.
    able = [
        tuple(at for at, place in enumerate(problem.places) if task in place.durations) for task in range(len(places))
    ]
    kinds = {task.name: (*task.times.items(), own) for task, own in zip(case.batch.tasks, able, strict=True)}
    before = Counter((kinds[run.task], run.profile.split("+")[0]) for run in schedule.runs)
    after = [problem.places[at].placement.profile.name.split("+")[0] for at in places]
    assert before == Counter(zip(kinds.values(), after, strict=True))

    def area(task: int, at: int) -> int:
        return problem.places[at].placement.profile.memory_slices * problem.places[at].durations[task]

    for group in problem.interchangeable:
        areas = [sum(area(task, at) for task, at in enumerate(places) if at in members) for members in group]
        assert all(one >= two for one, two in pairwise(areas))


@pytest.mark.deep
@given(tiny_batches)
def test_a_solution_becomes_a_schedule_as_long_as_the_model_says(batch: Batch) -> None:
    model = block_model(batch, relaxed=False)
    outcome = solved(model.model)
    if model.problem.operations_take_no_time:  # the model has no order in time then
        at = [model.problem.places[index] for index in model.places_of(outcome.values)]
        schedule = nested_schedule(batch, [(place.gpu, place.placement) for place in at])
    else:
        schedule = model.schedule(outcome.values)
    assert validate(batch, schedule).valid
    ticks = model.problem.ticks
    if ticks.exact:
        assert ticks.nearest(schedule.makespan) == outcome.objective
    else:
        assert outcome.objective <= ticks.floor(schedule.makespan) + 1


def test_operations_that_take_no_time_do_not_wait_for_those_that_begin_with_them() -> None:
    # A free creation at the moment at which a long operation begins: were it behind, t0 would be late.
    batch = Batch(
        (Task("t0", {1: 4.0, 2: 1.0, 4: 3.0}, 12), Task("t1", {1: 3.0, 2: 3.0, 4: 3.0}), Task("t2", {4: 3.0}, 12)),
        A30,
        operations=costs((0, 3, 3), (0, 0, 2)),
        initial=(LiveInstance(0, "1g.6gb", 1),),
    )
    model = block_model(batch, relaxed=False)
    outcome = solved(model.model)
    assert outcome.objective == 10
    assert model.schedule(outcome.values).makespan == 10.0


def test_re_creations_become_schedules_too() -> None:
    # 1g@0 0-0.11, t0 until 2.11, destroyed until 2.21; 2g@0 until 2.33, t1 until 5.33, destroyed until 5.43; 1g@0 again
    # until 5.54, t2 until 9.54.
    batch = Batch(tasks({1: 2.0}, {2: 3.0}, {1: 4.0}), A30)
    problem = IntegerBatch(batch)
    placements = [str(place.placement) for place in problem.places]
    small, large = map(placements.index, ("1g.6gb@0", "2g.12gb@0"))
    model = BlockModel(problem, BlockForm(at_most=10_000, relaxed=False, copies={small: 2}))
    first, second = (slot for slot, lifetime in enumerate(model.slots.lifetimes) if lifetime.place == small)
    (between,) = (slot for slot, lifetime in enumerate(model.slots.lifetimes) if lifetime.place == large)
    for task, slot in enumerate((first, between, second)):
        model.model.add(model.assigned[task][slot] == 1)
    model.model.add(model.before[first, between] == 1)
    model.model.add(model.before[between, second] == 1)
    outcome = solved(model.model)
    schedule = model.schedule(outcome.values)
    assert validate(batch, schedule).valid
    assert [(run.begin, run.end) for run in schedule.runs] == [(0.11, 2.11), (2.33, 5.33), (5.54, 9.54)]
    assert outcome.objective == 954


def test_places_that_are_too_slow_are_no_choice() -> None:
    batch = Batch(tasks({1: 9.0, 2: 2.0}), A30)
    problem = whole_problem(batch)
    model = BlockModel(problem, BlockForm(at_most=500, relaxed=True))
    profiles = {problem.places[model.slots.lifetimes[slot].place].placement.profile.name for slot in model.assigned[0]}
    assert profiles == {"2g.12gb"}
    slow = next(at for at, place in enumerate(problem.places) if place.placement.profile.name == "1g.6gb")
    assert solved(model.fixed([slow])).infeasible


@pytest.mark.parametrize("relaxed", [True, False])
def test_the_best_schedule_is_a_complete_hint(relaxed: bool) -> None:
    problem = IntegerBatch(tiny.BATCH)
    model = BlockModel(problem, BlockForm(at_most=700, relaxed=relaxed))
    model.hint(solved(model.fixed(problem.places_of(tiny.BEST))).values)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.log_search_progress = True
    solver.parameters.log_to_stdout = False
    solver.parameters.catch_sigint_signal = False
    log: list[str] = []
    solver.log_callback = log.append
    solver.solve(model.model)
    assert "The solution hint is complete and is feasible. Its objective value is 634." in "".join(log)


def block_program(batch: Batch, **form: Any) -> BlockProgram:
    problem = IntegerBatch(batch)
    return BlockProgram(problem, block_form(problem, **form))


def solved_program(program: BlockProgram, backend: Backend | None = None) -> ProgramOutcome:
    return solve_program(program.linear.program, backend or Highs(), Control[Schedule]())


def ticks(program: BlockProgram, backend: Backend | None = None) -> int:
    """The optimum in ticks; it is whole within the tolerance, where that is far below a tick."""
    outcome = solved_program(program, backend)
    assert outcome.status is Status.OPTIMAL
    exact = program.ticks(outcome.objective)
    assert abs(exact - round(exact)) <= max(1e-3, float(program.ticks(1e-6)))
    return round(exact)


def alike(program: BlockProgram, model_optimum: int, backend: Backend | None = None) -> None:
    assert abs(ticks(program, backend) - model_optimum) <= float(program.ticks(1e-6))


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
@given(tiny_batches)
@settings(max_examples=30)
def test_a_solution_becomes_a_schedule_as_long_as_the_program_says(batch: Batch) -> None:
    program = block_program(batch, relaxed=False)
    outcome = solved_program(program)
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
    operations = OperationCosts({1: 12.8, 2: 0.0, 4: 0.0}, {1: 8.61, 2: 0.0, 4: 24.67})
    batch = Batch(tasks(same, {1: 9.3, 4: 13.2}, same), gpu, 2, operations)
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
        outcome = solved_program(program)
    values = program.whole(outcome.values)
    assert program.places_of(values) == places
    assert program.schedule(values).makespan == tiny.OPTIMUM
    program.hint(values)
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
    profiles = [place.placement.profile.name for place in program.problem.places]
    chosen = [slots[profiles.index(name)] for name in ("1g.6gb", "2g.12gb", "4g.24gb")]
    one, two, three = chosen
    true = [program.before[pair] for pair in ((one, two), (two, three), (three, one))]
    for task, slot in enumerate(chosen):
        true += [program.assigned[task][slot], program.used[slot]]
    values = [0] * len(program.linear.variables)
    for variable in true:
        values[program._at(variable)] = 1
    assert validate(batch, program.schedule(values)).valid


@pytest.mark.parametrize("at_most", [1, 7, 634, 12345, 2**28])
def test_times_have_three_digits(at_most: int) -> None:
    program = BlockProgram(IntegerBatch(tiny.BATCH), BlockForm(at_most=at_most, relaxed=True))
    assert 100 <= program.amount(at_most) < 1000
    assert program.ticks(program.amount(at_most)) == pytest.approx(at_most)
    # The next makespan is out of reach, unless the solver cannot tell the two apart.
    latest = program.ticks(program._makespan.upBound)
    assert at_most < latest < at_most + max(1, at_most * 3e-6)


def test_names_are_readable_and_distinct() -> None:
    names = ("lu-1", "LU 1", "lu.1", "ä", "1e5", "x" * 300)
    named = Batch(tuple(Task(name, {1: 1.0 + at}) for at, name in enumerate(names)), A30)
    readable = ["lu_1", "LU_1_2", "lu_1_3", "unnamed", "1e5", "x" * 30]
    assert distinct_names((task.name for task in named.tasks), 30) == readable
    live = (LiveInstance(0, "2g.12gb", 0),)
    program = block_program(named.replace(gpus=2, initial=live), relaxed=True, copies={0: 2})
    names = [variable.name for variable in program.linear.variables]
    assert len({name.casefold() for name in names}) == len(names)
    assert all(re.fullmatch(r"[a-df-z][a-z0-9A-Z_]{0,98}", name) for name in names)
    assert {"run_lu_1_on_gpu1_1g_6gb_at_3", "use_gpu0_2g_12gb_at_0_live"} <= set(names)
