"""Second proofs: what is claimed is true, no bound is above a valid schedule, and any change is found."""

import dataclasses
import json
import signal
from fractions import Fraction
from typing import Any

import pytest
import tiny
from documents import complaints, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import batches, realistic_batches

import mig_opt.api.prove.prover as prover_module
from mig_opt import Batch, LiveInstance, Run, Schedule, ScheduleResult, Task, generate_batch, get_gpu, load, solve
from mig_opt.api.prove import certify, check, prove
from mig_opt.api.prove.priced_work import priced_work_of, priced_work_value
from mig_opt.api.prove.prover import critical_task_of, slice_load_of, slice_load_value
from mig_opt.batch.bounds import lower_bounds
from mig_opt.batch.certificate import Certificate, Claim, SliceLoad, batch_digest, schedule_digest
from mig_opt.batch.integer_batch import Ticks
from mig_opt.errors import InputError, SolverError, UnknownMethodError
from mig_opt.files.batch.certificates import CERTIFICATE
from mig_opt.method.result import Status
from mig_opt.models.batch.dual_price_bound import DualPriceBound

ONE = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
ONE_BEST = Schedule((Run("a", 0, "4g.24gb", 0, 0.13, 2.13),))


@pytest.fixture(scope="module")
def far() -> Schedule:
    """A schedule of the tiny batch that is not optimal."""
    return solve(tiny.BATCH, "far-unrefined").schedule


@pytest.fixture(scope="module")
def proof() -> Certificate:
    return prove(tiny.BATCH, tiny.BEST)


@pytest.fixture(scope="module")
def refutation(far: Schedule) -> Certificate:
    return prove(tiny.BATCH, far)


def sealed(certificate: Certificate, **changes: Any) -> Certificate:
    """A certificate that was changed by someone who computes the digest anew."""
    changed = dataclasses.replace(certificate, **changes)
    return dataclasses.replace(changed, digest=changed.computed_digest())


def paths(batch: Batch, schedule: Schedule, certificate: Certificate) -> set[str]:
    found = check(batch, schedule, certificate)
    assert found.holds is not bool(found.mismatches)
    assert not (found.mismatches and found.trusted)
    return {problem.path for problem in found.mismatches}


def test_rodinia() -> None:
    """Its ticks are finer than floating-point numbers allow for: a proof within hundredths of a millisecond."""
    batch = load("rodinia-a30")
    schedule = solve(batch, "milp").schedule
    found = prove(batch, schedule, "milp-cbc", within=1e-5, time_limit=60)
    assert found.claim is Claim.PROVED
    assert found.makespan - 1e-5 <= found.lower_bound <= found.makespan
    assert check(batch, schedule, found).holds
    assert prove(batch, solve(batch, "far").schedule, time_limit=60).claim is Claim.REFUTED


def test_within(far: Schedule) -> None:
    """A schedule that is shorter by no more than that does not count: FAR is 0.12 s above the optimum."""
    assert prove(tiny.BATCH, far, within=0.12).claim is Claim.PROVED
    assert prove(tiny.BATCH, far, within=0.11).claim is Claim.REFUTED


def test_no_solver_is_needed_where_arithmetic_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover_module, "solve", lambda *rest, **options: pytest.fail("a solver was asked"))
    found = prove(ONE, ONE_BEST)
    assert (found.claim, found.runtime_s, found.lower_bound) == (Claim.PROVED, 0.0, 2.13)
    checked = check(ONE, ONE_BEST, found, rerun=True)
    assert (checked.holds, checked.needs_solver, checked.rerun, len(checked.trusted)) == (True, False, None, 1)


def test_ticks_that_are_not_exact() -> None:
    """A millionth of the makespan counts in place of a tick."""
    batch = Batch((Task("a", {1: 1 / 3, 2: 1 / 7}), Task("b", {1: 2**0.5})), get_gpu("A30"))
    assert not Ticks.of(batch).exact
    schedule = solve(batch, "brute-force").schedule
    assert prove(batch, schedule).claim is Claim.PROVED
    for shift, claim in ((1e-7, Claim.PROVED), (1e-3, Claim.REFUTED)):
        a, b = sorted(schedule.runs, key=lambda run: run.task)
        later = schedule.replace(runs=[a, dataclasses.replace(b, begin=b.begin + shift, end=b.end + shift)])
        found = prove(batch, later)
        assert (found.claim, found.exact) == (claim, False)
        assert check(batch, later, found).holds


def test_ctrl_c_while_prices_are_sought(far: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DualPriceBound, "round", lambda bound: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(prover_module, "solve", lambda *rest, **options: pytest.fail("a solver was asked"))
    found = prove(tiny.BATCH, far, seed=3)
    assert (found.claim, found.interrupted, found.seed, found.priced_work) == (Claim.OPEN, True, 3, None)
    assert 0 < found.lower_bound < far.makespan
    assert check(tiny.BATCH, far, found).holds


def test_ctrl_c_keeps_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = ScheduleResult(Status.INTERRUPTED, "milp", None, 5.5, 1.0, versions={"mig-opt": "1"})
    monkeypatch.setattr(prover_module, "solve", lambda *rest, **options: interrupted)
    found = prove(tiny.BATCH, tiny.BEST)
    assert (found.claim, found.lower_bound, found.interrupted) == (Claim.OPEN, 5.5, True)
    assert check(tiny.BATCH, tiny.BEST, found).holds


def test_a_bound_above_the_schedule_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ScheduleResult(Status.NO_SOLUTION, "milp", None, 6.4, 1.0)
    monkeypatch.setattr(prover_module, "solve", lambda *rest, **options: wrong)
    with pytest.raises(SolverError, match=r"method milp claims the lower bound 6\.4 s above a valid schedule"):
        prove(tiny.BATCH, tiny.BEST)


def test_wrong_arguments() -> None:
    found = complaints(prove, "x", 3, "far", time_limit=0, within=-1, seed=-1, workers=0)
    paths = ["batch", "schedule", "within", "method", "time_limit", "seed", "workers"]
    assert [text.partition(":")[0] for text in found] == paths
    assert "method: must be exact, far proves nothing" in found[3]
    with pytest.raises(UnknownMethodError):
        prove(ONE, ONE_BEST, "mlip")
    refused(prove, ONE, ONE_BEST, within=float("nan"), match=r"within: must be a finite number of seconds >= 0, is nan")
    refused(check, ONE, ONE_BEST, "x", match="certificate: must be a Certificate")
    assert "schedule.tasks[0]" in refused(prove, tiny.BATCH, tiny.BEST.replace(runs=tiny.BEST.runs[1:]))


tenths = st.integers(1, 40).map(lambda n: n / 10)


@settings(max_examples=12)
@given(st.lists(st.dictionaries(st.sampled_from([1, 2, 4]), tenths, min_size=1), min_size=1, max_size=3))
def test_two_methods_agree(rows: list[dict[int, float]]) -> None:
    """On the schedules of FAR, which are optimal or not, and on the shorter ones that are found."""
    batch = Batch(tuple(Task(f"t{at}", times) for at, times in enumerate(rows)), get_gpu("A30"))
    schedule = solve(batch, "far").schedule
    while True:
        one, two = (prove(batch, schedule, method) for method in ("milp", "brute-force"))
        assert one.claim is two.claim
        assert one.claim is not Claim.OPEN
        for certificate in (one, two):
            assert check(batch, schedule, certificate).holds
            assert CERTIFICATE.from_json(CERTIFICATE.to_json(certificate)) == certificate
        if one.claim is Claim.PROVED:
            return
        schedule = two.better


@settings(max_examples=60)
@given(batches())
def test_bounds_are_those_of_the_library(batch: Batch) -> None:
    """Computed along another way they are the same, but for the weights, which are rounded there."""
    known = {bound.name: bound.value for bound in lower_bounds(batch)}
    slack = 1e-5 * max(known.values())
    slice_load = Fraction(slice_load_of(batch).value)
    assert known["slice load"] - slack <= slice_load <= known["slice load"] + slack
    assert known["critical task"] == Ticks(0, 1, exact=True).seconds_below(Fraction(critical_task_of(batch).value))


@pytest.mark.parametrize("weights", [(), (1, 1, 1), (1, 1, 1, -1), (0, 0, 0, 0)])
def test_weights_that_mean_nothing(weights: tuple[int, ...], proof: Certificate) -> None:
    refused(slice_load_value, tiny.BATCH, weights, match=r"must be 4 whole numbers >= 0, not all 0")
    forged = sealed(proof, slice_load=SliceLoad(weights, "6"))
    assert paths(tiny.BATCH, tiny.BEST, forged) == {"slice_load.weights"}


def test_digests_see_what_matters() -> None:
    batch = tiny.BATCH
    a100 = {"gpu": get_gpu("A100"), "operations": get_gpu("A100").operation_costs}
    others = ({}, {"gpus": 2}, {"parallel_operations": True}, {"tasks": batch.tasks[:2]}, a100)
    assert len({batch_digest(batch.replace(**changes)) for changes in others}) == len(others)
    assert batch_digest(batch.replace(name="other")) == batch_digest(batch)
    backwards = tiny.BEST.replace(runs=tiny.BEST.runs[::-1])
    assert schedule_digest(backwards) == schedule_digest(tiny.BEST)
    assert schedule_digest(Schedule(tiny.BEST.runs)) != schedule_digest(tiny.BEST)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [place for key, entry in entries for place in places_in(entry, (*path, key))]
    return found or [path]


@settings(max_examples=150)
@given(data=st.data())
def test_any_change_is_found(data: st.DataObject, proof: Certificate, refutation: Certificate, far: Schedule) -> None:
    """Whatever leaf of the file is replaced by whatever else: it cannot be read, or does not hold."""
    certificate, schedule = data.draw(st.sampled_from([(proof, tiny.BEST), (refutation, far)]))
    document = json.loads(CERTIFICATE.to_json(certificate))
    place = data.draw(st.sampled_from([place for place in places_in(document) if place != ("better", "makespan")]))
    parent: Any = document
    for step in place[:-1]:
        parent = parent[step]
    old = parent[place[-1]]
    values = st.one_of(
        st.sampled_from(["proved", "refuted", "open", "cp", "", None, True, False, 0, 1, 2, -1, "1/10", "right"]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.integers(),
        st.text(max_size=3),
    )
    new = data.draw(values.filter(lambda value: value != old))
    parent[place[-1]] = new
    try:
        forged = CERTIFICATE.from_json(document)
    except InputError:
        return
    assert "digest" in paths(tiny.BATCH, schedule, forged)


def test_forgeries_that_can_be_seen_through(proof: Certificate) -> None:
    """The digest is that of the forgery."""
    alone: dict[str, tuple[Any, ...]] = {"claim": (Claim.OPEN, Claim.REFUTED), "makespan": (6.3,), "tick": ("1/10",)}
    alone |= {"batch": ("0" * 64,), "schedule": ("0" * 64,), "exact": (False,), "method": ("far", "mlip")}
    alone |= {"within": (-1.0,), "runtime_s": (-1.0,), "seed": (-1,), "lower_bound": (6.35,), "better": (tiny.BEST,)}
    forgeries = [({name: value}, {name}) for name, values in alone.items() for value in values]
    for weights, value in (((1, 1, 1, 1), "6"), ((1, 2, 1, 1), "109/25")):
        forgeries.append(({"slice_load": SliceLoad(weights, value)}, {"slice_load.value"}))
    critical = dataclasses.replace(proof.critical_task, task="big", value="6")
    forgeries += [({"lower_bound": 6.0}, {"claim"})]
    forgeries += [({"lower_bound": bound}, {"lower_bound", "claim"}) for bound in (4.0, float("inf"))]
    forgeries += [({"critical_task": critical}, {"critical_task.task", "critical_task.value"})]
    for changes, named in forgeries:
        assert paths(tiny.BATCH, tiny.BEST, sealed(proof, **changes)) == named, changes


def test_a_forged_refutation(refutation: Certificate, far: Schedule) -> None:
    assert paths(tiny.BATCH, far, sealed(refutation, better=None)) == {"claim"}
    endless = far.replace(runs=(dataclasses.replace(run, end=float("inf")) for run in far.runs))
    assert "makespan" in paths(tiny.BATCH, endless, refutation)
    broken = refutation.better.replace(runs=refutation.better.runs[1:])
    found = check(tiny.BATCH, far, sealed(refutation, better=broken))
    assert {problem.path.partition(".")[0] for problem in found.mismatches} >= {"better"}
    assert any("so it refutes nothing" in problem.message for problem in found.mismatches)


def test_a_bound_beside_a_refutation_is_not_passed_over(refutation: Certificate, far: Schedule) -> None:
    """The shorter schedule says nothing of it."""
    forged = sealed(refutation, lower_bound=refutation.better.makespan)
    checked = check(tiny.BATCH, far, forged)
    assert (checked.holds, checked.needs_solver, len(checked.trusted)) == (True, True, 2)


def test_what_only_a_solver_can_find(proof: Certificate, refutation: Certificate, far: Schedule) -> None:
    """A made-up bound passes until a method is asked again."""
    forged = sealed(refutation, claim=Claim.PROVED, better=None, lower_bound=far.makespan)
    checked = check(tiny.BATCH, far, forged)
    assert (checked.holds, checked.needs_solver) == (True, True)
    checked = check(tiny.BATCH, far, forged, rerun=True, method="brute-force", time_limit=60)
    assert not checked.holds
    assert {problem.path for problem in checked.mismatches} == {"lower_bound", "claim"}
    assert checked.rerun.claim is Claim.REFUTED


def test_rerun(proof: Certificate, refutation: Certificate, far: Schedule) -> None:
    checked = check(tiny.BATCH, tiny.BEST, proof, rerun=True, method="milp-cbc")
    assert checked.holds
    assert (checked.rerun.method, checked.rerun.claim) == ("milp-cbc", Claim.PROVED)
    assert "asked again" in checked.trusted[2]
    made_up = sealed(refutation, claim=Claim.OPEN, better=None, lower_bound=far.makespan - 0.1)
    for schedule, certificate, path in ((tiny.BEST, proof, "claim"), (far, made_up, "lower_bound")):
        checked = check(tiny.BATCH, schedule, certificate, rerun=True, time_limit=1e-6)
        (mismatch,) = checked.mismatches
        assert "highspy" not in checked.rerun.versions  # no time was left to ask it
        assert (mismatch.path, "could not confirm it" in mismatch.message) == (path, True)
    right = sealed(refutation, lower_bound=tiny.BEST.makespan)
    checked = check(tiny.BATCH, far, right, rerun=True)
    assert (checked.holds, checked.rerun.claim) == (True, Claim.PROVED)


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


@pytest.mark.parametrize("change", ["prices", "value"])
def test_a_changed_figure_is_found(proof: Certificate, change: str) -> None:
    prices = proof.priced_work.prices
    forged = {"prices": (prices[0] // 2, *prices[1:]), "value": "634/100"}[change]
    changed = dataclasses.replace(proof, priced_work=dataclasses.replace(proof.priced_work, **{change: forged}))
    assert paths(tiny.BATCH, tiny.BEST, changed) >= {"digest"}
    assert paths(tiny.BATCH, tiny.BEST, sealed(changed)) == {"priced_work.value"}


@pytest.mark.parametrize("prices", [(), (1, 1), (0, 0, 0), (1, -1, 1), (10**7, 1, 1)])
def test_prices_that_mean_nothing(prices: tuple[int, ...]) -> None:
    refused(priced_work_value, tiny.BATCH, prices, 6.34, match=r"must be 3 whole numbers from 0 to 10\^6, not all 0")


def test_a_bound_needs_gpus_that_start_empty_and_a_makespan() -> None:
    live = tiny.BATCH.replace(initial=(LiveInstance(0, "1g.6gb", 0),))
    for batch, most in ((live, 6.0), (tiny.BATCH, float("inf"))):
        refused(priced_work_value, batch, (1, 1, 1), most, match="for GPUs that start empty")
    assert priced_work_of(live, tiny.BEST, 0.1) is None
