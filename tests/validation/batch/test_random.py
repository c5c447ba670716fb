"""Random schedules: valid ones are, and what is changed in them is found."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from strategies import Decisions, decisions

from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import timed_schedule
from mig_opt.validation import validate


@given(decisions())
def test_timed_schedules_are_valid_and_stay_so_without_their_operations(case: Decisions) -> None:
    batch, schedule = case.batch, timed_schedule(case.batch, case.instances, case.operations)
    assert validate(batch, schedule).violations == ()
    stripped = validate(batch, Schedule(schedule.runs))
    assert stripped.violations == ()
    assert stripped.makespan == schedule.makespan
    again = validate(batch, stripped.schedule)
    assert again.violations == ()
    assert again.schedule is stripped.schedule
    needed, given_operations = len(stripped.schedule.operations or ()), len(schedule.operations or ())
    assert needed <= given_operations


@given(decisions(), st.randoms(use_true_random=False))
def test_the_order_of_entries_does_not_matter(case: Decisions, random: Random) -> None:
    batch, schedule = case.batch, timed_schedule(case.batch, case.instances, case.operations)
    runs, operations = list(schedule.runs), list(schedule.operations or ())
    random.shuffle(runs)
    random.shuffle(operations)
    assert validate(batch, Schedule(tuple(runs), tuple(operations))).valid
    assert validate(batch, Schedule(tuple(runs))).valid
