"""The block model on its own: every schedule satisfies it, its solutions are schedules, and its parts by hand."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import tiny
from block_models import GAPS, block_model, costs, optimum, solved, tasks, ticks_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from strategies import Decisions, decisions, tiny_batches
from whole_problems import whole_problem

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import nested_schedule, timed_schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_model import BlockModel
from mig_opt.models.batch.brute_force import brute_force
from mig_opt.models.solvers.backend import Request
from mig_opt.models.solvers.cpsat import run
from mig_opt.validation import validate

A30, A100 = get_gpu("A30"), get_gpu("A100")


# Batches in which the relaxed model finds something better than any schedule, found by random search.


@pytest.mark.parametrize(("batch", "relaxed", "true"), GAPS)
def test_the_relaxed_optimum_may_be_below_every_schedule(batch: Batch, relaxed: int, true: int) -> None:
    model = block_model(batch, relaxed=True)
    outcome = solved(model)
    assert outcome.objective == relaxed
    assert outcome.values is not None
    assert model.loose_places(outcome.values)
    assert optimum(block_model(batch, relaxed=False)) == true


@pytest.mark.parametrize(("batch", "relaxed", "true"), GAPS)
def test_more_copies_close_the_gap(batch: Batch, relaxed: int, true: int) -> None:
    everywhere = dict.fromkeys(range(len(IntegerBatch(batch).places)), len(batch.tasks))
    # With as many copies as tasks nothing can be loose: both forms hold exactly all schedules.
    assert optimum(block_model(batch, relaxed=True, copies=everywhere)) == true
    assert optimum(block_model(batch, relaxed=False, copies=everywhere)) == true


def test_every_last_instance_stays() -> None:
    # 4g 1 + 2, then destroyed 3, then on the same slice 1g 1 + 4: no destruction behind it. The other way round: 1 + 4,
    # destroyed 7, 1 + 2.
    batch = Batch(tasks({4: 2.0}, {1: 4.0}), A30, operations=costs((1, 1, 1), (7, 9, 3)))
    for relaxed in (True, False):
        assert optimum(block_model(batch, relaxed=relaxed)) == 11


# Soundness: a bound above a valid makespan is the worst that can happen


def holds(model: BlockModel, places: list[int], at_most: int) -> bool:
    """True if the model has a solution of at most that length that runs each task at its place."""
    fixed = model.model.clone()
    for choices, at in zip(model.assigned, places, strict=True):
        there = [choice for slot, choice in choices.items() if model.slots.lifetimes[slot].place == at]
        fixed.add_bool_or([fixed.get_bool_var_from_proto_index(choice.index) for choice in there])
    outcome = run(fixed, Control[Schedule](RunOptions(workers=1)), Request())
    return outcome.objective is not None and outcome.objective <= at_most


@pytest.mark.deep
@given(decisions(), st.data())
def test_every_schedule_satisfies_the_relaxed_model(case: Decisions, data: st.DataObject) -> None:
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    problem = whole_problem(case.batch)
    assume(problem.gpus[-1] == case.batch.gpus - 1)
    takes = ticks_of(problem, schedule.makespan)
    some = data.draw(st.dictionaries(st.sampled_from(range(len(problem.places))), st.integers(2, 3), max_size=3))
    model = BlockModel(problem, BlockForm(at_most=takes, relaxed=True, copies=some))
    assert holds(model, problem.places_of(schedule), takes)


@pytest.mark.deep
@given(decisions())
def test_with_enough_copies_every_schedule_satisfies_the_strict_model(case: Decisions) -> None:
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    problem = whole_problem(case.batch)
    assume(problem.gpus[-1] == case.batch.gpus - 1)
    takes = ticks_of(problem, schedule.makespan)
    places = problem.places_of(schedule)
    model = BlockModel(problem, BlockForm(at_most=takes, relaxed=False, copies={at: places.count(at) for at in places}))
    assert holds(model, places, takes)


@pytest.mark.deep
@given(tiny_batches)
def test_the_true_optimum_is_between_the_two_forms(batch: Batch) -> None:
    control = Control[Schedule]()
    brute_force(batch, control)
    assert control.objective is not None
    problem = IntegerBatch(batch)
    ticks = problem.ticks
    relaxed, strict = (optimum(block_model(batch, relaxed=relaxed)) for relaxed in (True, False))
    assert relaxed <= strict
    assert relaxed <= ticks_of(problem, control.objective)
    assert strict >= ticks.floor(control.objective) - 50 * (not ticks.exact)


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
    problem = whole_problem(case.batch)
    assume(problem.gpus[-1] == case.batch.gpus - 1)
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    places = problem.places_of(schedule)
    assert problem.symmetry_reduced(places) == places
    # Identical tasks may change places among themselves: what counts is how often each kind of task is on each profile.
    profiles = {run.task: run.profile.split("+")[0] for run in schedule.runs}
    kinds = {task.name: (*task.times.items(), task.memory_gb) for task in case.batch.tasks}
    able = {
        task: tuple(at for at, place in enumerate(problem.places) if index in place.durations)
        for index, task in enumerate(kinds)
    }
    before = Counter((kinds[name][:-1], able[name], profile) for name, profile in profiles.items())
    after = Counter(
        (kinds[task.name][:-1], able[task.name], problem.places[at].placement.profile.name.split("+")[0])
        for task, at in zip(case.batch.tasks, places, strict=True)
    )
    assert before == after
    for group in problem.interchangeable:
        areas = [
            sum(
                problem.places[at].placement.profile.memory_slices * problem.places[at].durations[task]
                for task, at in enumerate(places)
                if at in members
            )
            for members in group
        ]
        assert all(one >= two for one, two in pairwise(areas))


# Solutions are schedules


@pytest.mark.deep
@given(tiny_batches)
def test_a_solution_becomes_a_schedule_as_long_as_the_model_says(batch: Batch) -> None:
    model = block_model(batch, relaxed=False)
    outcome = solved(model)
    assert outcome.values is not None
    assert outcome.objective is not None
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
    outcome = solved(model)
    assert outcome.values is not None
    assert outcome.objective == 10
    assert model.schedule(outcome.values).makespan == 10.0


def test_re_creations_become_schedules_too() -> None:
    # 1g@0 0-0.11, t0 until 2.11, destroyed until 2.21; 2g@0 until 2.33, t1 until 5.33, destroyed until 5.43; 1g@0 again
    # until 5.54, t2 until 9.54.
    batch = Batch(tasks({1: 2.0}, {2: 3.0}, {1: 4.0}), A30)
    problem = IntegerBatch(batch)
    small, large = (
        next(at for at, place in enumerate(problem.places) if str(place.placement) == name)
        for name in ("1g.6gb@0", "2g.12gb@0")
    )
    model = BlockModel(problem, BlockForm(at_most=10_000, relaxed=False, copies={small: 2}))
    first, second = (slot for slot, lifetime in enumerate(model.slots.lifetimes) if lifetime.place == small)
    (between,) = (slot for slot, lifetime in enumerate(model.slots.lifetimes) if lifetime.place == large)
    for task, slot in enumerate((first, between, second)):
        model.model.add(model.assigned[task][slot] == 1)
    model.model.add(model.before[first, between] == 1)
    model.model.add(model.before[between, second] == 1)
    outcome = solved(model)
    assert outcome.values is not None
    schedule = model.schedule(outcome.values)
    assert validate(batch, schedule).valid
    assert [(run.task, run.begin, run.end) for run in schedule.runs] == [
        ("t0", 0.11, 2.11),
        ("t1", 2.33, 5.33),
        ("t2", 5.54, 9.54),
    ]
    assert outcome.objective == 954


# Limits


def test_places_that_are_too_slow_are_no_choice() -> None:
    batch = Batch(tasks({1: 9.0, 2: 2.0}), A30)
    problem = whole_problem(batch)
    model = BlockModel(problem, BlockForm(at_most=500, relaxed=True))
    profiles = {problem.places[model.slots.lifetimes[slot].place].placement.profile.name for slot in model.assigned[0]}
    assert profiles == {"2g.12gb"}
    slow = next(at for at, place in enumerate(problem.places) if place.placement.profile.name == "1g.6gb")
    assert run(model.fixed([slow]), Control[Schedule](RunOptions(workers=1)), Request()).infeasible


@pytest.mark.parametrize("relaxed", [True, False])
def test_the_best_schedule_is_a_complete_hint(relaxed: bool) -> None:
    problem = IntegerBatch(tiny.BATCH)
    model = BlockModel(problem, BlockForm(at_most=700, relaxed=relaxed))
    outcome = run(model.fixed(problem.places_of(tiny.BEST)), Control[Schedule](RunOptions(workers=1)), Request())
    assert outcome.values is not None
    model.hint(outcome.values)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.log_search_progress = True
    solver.parameters.log_to_stdout = False
    solver.parameters.catch_sigint_signal = False
    log: list[str] = []
    solver.log_callback = log.append
    solver.solve(model.model)
    assert "The solution hint is complete and is feasible. Its objective value is 634." in "".join(log)
