"""Bounds from prices of tasks: never above a valid schedule, close where tasks are few, and any change is found."""

import dataclasses
from fractions import Fraction

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import batches, realistic_batches

from mig_opt.api.prove import certify, check, prove
from mig_opt.api.prove.priced_work import priced_work_of, priced_work_value
from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.certificate import Certificate
from mig_opt.errors import InputError
from mig_opt.instances.batch import generate_batch

ROUNDING = 1e-5
"""Seconds that the times of a valid schedule may be short of what the batch says, all together."""

SEVERAL = generate_batch(24, gpus=4, seed=1)


@settings(max_examples=40)
@given(st.one_of(batches(initial=False), realistic_batches(max_tasks=12)), st.data())
def test_no_bound_is_above_a_schedule(batch: Batch, data: st.DataObject) -> None:
    """Whatever the prices, and however far above the schedule a bound is looked for."""
    batch = batch.replace(initial=())
    count = len(batch.tasks)
    prices = data.draw(st.lists(st.integers(0, 1000), min_size=count, max_size=count).filter(any), label="prices")
    shortest = solve(batch, "far").makespan
    for factor in (1.0, 3.0):
        assert priced_work_value(batch, prices, factor * shortest) <= Fraction(shortest + ROUNDING)


@settings(max_examples=15)
@given(realistic_batches(max_tasks=5, max_gpus=2))
def test_the_best_prices_stay_below_the_optimum(batch: Batch) -> None:
    result = solve(batch.replace(initial=()), time_limit=2, workers=1)
    found = priced_work_of(result.batch, result.schedule, 0.3)
    if found is not None:
        value = priced_work_value(result.batch, found.prices, 2 * result.makespan)
        assert value <= Fraction(result.makespan + ROUNDING)


def test_several_gpus_get_a_bound_that_slices_alone_do_not_tell() -> None:
    schedule = solve(SEVERAL, "far").schedule
    certificate = certify(SEVERAL, schedule, seconds=30)
    assert certificate.priced_work is not None
    by_prices, by_slices = (Fraction(one.value) for one in (certificate.priced_work, certificate.slice_load))
    assert by_slices < Fraction("0.95") * by_prices
    assert by_prices > Fraction("0.85") * Fraction(schedule.makespan)
    found = check(SEVERAL, schedule, certificate)
    assert found.holds
    assert found.bound == pytest.approx(float(by_prices))


@pytest.fixture(scope="module")
def proof() -> Certificate:
    return prove(tiny.BATCH, tiny.BEST)


@pytest.mark.parametrize("change", ["prices", "value"])
def test_a_changed_figure_is_found(proof: Certificate, change: str) -> None:
    prices = proof.priced_work.prices
    forged = {"prices": (prices[0] // 2, *prices[1:]), "value": "634/100"}[change]
    changed = dataclasses.replace(proof, priced_work=dataclasses.replace(proof.priced_work, **{change: forged}))
    sealed = dataclasses.replace(changed, digest=changed.computed_digest())
    assert {problem.path for problem in check(tiny.BATCH, tiny.BEST, changed).mismatches} >= {"digest"}
    assert {problem.path for problem in check(tiny.BATCH, tiny.BEST, sealed).mismatches} == {"priced_work.value"}


@pytest.mark.parametrize("prices", [(), (1, 1), (0, 0, 0), (1, -1, 1), (10**7, 1, 1)])
def test_prices_that_mean_nothing(prices: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"must be 3 whole numbers from 0 to 10\^6, not all 0"):
        priced_work_value(tiny.BATCH, prices, 6.34)


def test_a_bound_needs_gpus_that_start_empty_and_a_makespan() -> None:
    live = tiny.BATCH.replace(initial=(LiveInstance(0, "1g.6gb", 0),))
    for batch, most in ((live, 6.0), (tiny.BATCH, float("inf"))):
        with pytest.raises(InputError, match="for GPUs that start empty"):
            priced_work_value(batch, (1, 1, 1), most)
    assert priced_work_of(live, tiny.BEST, 0.1) is None
