"""Summaries of rows: gaps to the best of all, lines that summarise, the best schedulers on traces, and ties."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_parts import FAR

from mig_opt.instances.bundled import instance_info
from mig_opt.studies import BundledBatch, Study, run_study
from mig_opt.studies.batch import BatchRun
from mig_opt.studies.fleet import TraceRun
from mig_opt.studies.rows import Outcome, Row
from mig_opt.studies.summary import best, judge, winners


def row(method: str, makespan: float | None, bound: float | None = 8.0, batch: str = "b", **more: Any) -> Row[BatchRun]:
    outcome = Outcome(more.pop("status", "feasible"), 1.0, makespan, bound, **more)
    return Row(BatchRun({"name": batch}, {}, "cell", method), outcome)


def test_gaps_are_to_the_best_of_all():
    wrong_row = row("d", 1.0, 20.0, error="not valid")
    one, two, none, wrong = judge([row("a", 10.0, 5.0), row("b", 12.5, 8.0), row("c", None, 9.0), wrong_row])
    assert (one.best_bound, one.best_known) == (9.0, 10.0)
    assert (one.gap, one.above_best) == (pytest.approx(0.1), 0.0)
    assert (two.gap, two.above_best) == (pytest.approx(0.28), pytest.approx(0.25))
    assert none.gap is none.above_best is wrong.gap is wrong.above_best is None


def test_makespans_on_record_count():
    (one,) = judge([row("a", 10.0)], {row("a", 10.0).run.batch_key: 8.0})
    assert (one.best_known, one.above_best) == (8.0, 0.25)
    (run,) = run_study(Study((BundledBatch("rodinia-a30"),), (FAR,))).judged()
    assert run.best_known == instance_info("rodinia-a30").best.value


def test_ties_are_what_the_spread_explains():
    # Logarithms of the ratios to a: 0.1 each time has no spread, so that is no tie.
    values = {"a": {"x": 1.0, "y": 2.0, "z": 4.0}}
    values["b"] = {trace: 1.10517 * value for trace, value in values["a"].items()}
    assert best(values) == ("a",)
    # 0.3, 0.1, -0.1: mean 0.1, deviation 0.2, so 0.1 - 4.303 * 0.2 / sqrt(3) < 0: a tie.
    values["c"] = {"x": 1.0 * 1.34986, "y": 2.0 * 1.10517, "z": 4.0 * 0.904837}
    assert best(values) == ("a", "c")
    # 0.12, 0.1, 0.08: 0.1 - 4.303 * 0.02 / sqrt(3) = 0.05 > 0: none.
    values["c"] = {"x": 1.0 * 1.127497, "y": 2.0 * 1.10517, "z": 4.0 * 1.083287}
    assert best(values) == ("a",)
    values["d"] = dict(values["a"])
    assert best(values) == ("a", "d"), "equal values tie"


def test_a_single_trace_has_no_spread():
    assert best({"a": {"x": 2.0}, "b": {"x": 1.9}, "c": {"x": 1.9}}) == ("b", "c")
    assert best({}) == best({"a": {}}) == ()


@pytest.mark.deep
@given(
    st.dictionaries(st.sampled_from("abcd"), st.lists(st.floats(0.1, 1e4), min_size=4, max_size=4), min_size=1),
    st.lists(st.floats(0.1, 1e3), min_size=4, max_size=4),
)
def test_units_of_traces_do_not_matter(values, units):
    found = best({name: dict(zip("wxyz", own, strict=True)) for name, own in values.items()})
    scaled = {name: [value * unit for value, unit in zip(own, units, strict=True)] for name, own in values.items()}
    again = best({name: dict(zip("wxyz", own, strict=True)) for name, own in scaled.items()})
    products = {name: math.prod(own) for name, own in values.items()}
    assert products[found[0]] <= min(products.values()) * (1 + 1e-9)
    assert products[again[0]] <= min(products.values()) * (1 + 1e-9)
    assert found[0] in again or again[0] in found


def of_trace(policy: str, trace: str, completion: float, makespan: float | None, cell: str = "cell") -> Row[TraceRun]:
    figures = {
        "completion": {"mean": completion},
        "wait": {"mean": 1.0},
        "makespan": makespan or 5.0,
        "unfinished": int(makespan is None),
        "gaps": {"mean_completion": 0.5, "makespan": 0.25},
    }
    outcome = Outcome("feasible", 0.5, makespan, 1.0, figures=figures)
    return Row(TraceRun({"file": trace}, {}, cell, policy), outcome)


def test_each_goal_and_each_group_has_its_winners():
    rows = [
        of_trace("a", "x", 10.0, 30.0),
        of_trace("b", "x", 12.0, 20.0),
        of_trace("c", "x", 1.0, None),
        of_trace("b", "y", 9.0, 9.0, "other"),
    ]
    assert [(won.cell, won.goal, won.policies) for won in winners(rows)] == [
        ("cell", "mean_completion", ("a",)),
        ("cell", "makespan", ("b",)),
        ("other", "mean_completion", ("b",)),
        ("other", "makespan", ("b",)),
    ]
