"""Arrivals of requests: how many, how far apart, and at which rates."""

import itertools
import pickle

import numpy as np
import pytest
from documents import refused
from hypothesis import given
from hypothesis import strategies as st

from mig_opt import Arrivals, RateTable
from mig_opt.serving import arrivals as module


def times(arrivals: Arrivals, rate: float, seconds: float, seed: int = 0) -> np.ndarray:
    parts = list(arrivals.stream("a", rate, seconds, np.random.default_rng(seed)))
    return np.concatenate(parts) if parts else np.zeros(0)


@given(
    st.sampled_from(["even", "poisson", "bursty"]),
    st.floats(0.1, 3000),
    st.floats(0.01, 100),
    st.integers(0, 5),
    st.booleans(),
)
def test_times_ascend_within_the_time(kind, rate, seconds, seed, stepped):
    table = RateTable((0.0, 0.3 * seconds, 0.5 * seconds, 2 * seconds), {"a": (rate, 0.0, 2 * rate)})
    found = times(Arrivals(kind, rates=table if stepped else None), rate, seconds, seed)
    assert (np.diff(found) >= 0).all()
    assert not len(found) or (found[0] >= 0 and found[-1] <= seconds)
    if kind == "even":
        expected = rate * seconds * (1.3 if stepped else 1)
        assert abs(len(found) - expected) <= 1 + 1e-6 * expected
    if stepped:
        assert not ((found > 0.3 * seconds * (1 + 1e-9)) & (found < 0.5 * seconds * (1 - 1e-9))).any()


def test_poisson_arrivals_are_independent():
    found = times(Arrivals("poisson"), 1000.0, 500.0)
    distances = np.diff(found)
    assert distances.mean() == pytest.approx(1e-3, rel=0.01)
    assert distances.std() == pytest.approx(1e-3, rel=0.01)
    counts = np.bincount((found / 0.5).astype(int), minlength=1000)
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.15)


def test_bursts_have_their_rate_share_and_length():
    arrivals = Arrivals("bursty", peak=5.0, burst_share=0.15, burst_seconds=1.0)
    found = times(arrivals, 1000.0, 4000.0)
    assert len(found) == pytest.approx(4e6, rel=0.03)
    counts = np.bincount((found / 0.05).astype(int), minlength=80_000)
    # Calm: 1000 x (1 - 0.75) / 0.85 requests a second; bursts: 5000.
    high = counts > 130
    assert high.mean() == pytest.approx(0.15, abs=0.015)
    assert counts[~high].mean() / 0.05 == pytest.approx(294, rel=0.08)
    lengths = [len(list(group)) * 0.05 for is_high, group in itertools.groupby(high) if is_high]
    assert np.mean(lengths) == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("figures", [{}, {"peak": 5.0, "burst_share": 0.2}, {"peak": 3.0, "burst_share": 0.2}])
def test_rare_requests_come_in_the_same_bursts(monkeypatch, figures):
    """Made from one arrival to the next, and burst by burst: as many, as far apart, and as many in some seconds."""
    arrivals = Arrivals("bursty", **figures)
    found = []
    for sparse in (0.0, 1e9):
        monkeypatch.setattr(module, "_SPARSE", sparse)
        moments = times(arrivals, 3.0, 100_000.0, seed=7)
        counts = [np.bincount((moments / seconds).astype(int)).var() for seconds in (0.1, 1.0, 10.0)]
        found.append([len(moments), *np.quantile(np.diff(moments), [0.1, 0.5, 0.9, 0.99]), *counts])
    assert found[0] == pytest.approx(found[1], rel=0.05)


def test_arrivals_that_are_far_apart_come_at_once():
    """There are 10^12 bursts without a request between two with one."""
    assert len(times(Arrivals("bursty"), 1e-12, 1e16)) == pytest.approx(10_000, rel=0.05)


def test_rates_over_time_are_followed():
    table = RateTable((100.0, 110.0, 120.0, 130.0), {"a": (100.0, 0.0, 50.0), "b": (1.0, 1.0, 1.0)})
    found = times(Arrivals("poisson", rates=table), 1.0, 25.0)
    counts = np.histogram(found, [0, 10, 20, 25])[0]
    assert counts[1] == 0
    assert counts[0] == pytest.approx(1000, rel=0.1)
    assert counts[2] == pytest.approx(250, rel=0.2)
    assert (table.mean("a"), table.durations, Arrivals(rates=table).end) == (50.0, (10.0, 10.0, 10.0), 30.0)
    assert hash(pickle.loads(pickle.dumps(table))) == hash(table)


def test_recorded_requests_come_as_they_did():
    arrivals = Arrivals(recorded={"a": iter([0.0, 0.5, 0.5, 3.0])})
    assert times(arrivals, 99.0, 1.0).tolist() == [0.0, 0.5, 0.5]
    assert arrivals.end == 3.0


@pytest.mark.parametrize(
    ("figures", "path"),
    [
        ({"kind": "evn"}, "arrivals"),
        ({"peak": 0.5}, "peak"),
        ({"peak": 20.0}, "peak"),
        ({"burst_share": 0.0}, "burst_share"),
        ({"burst_seconds": float("inf")}, "burst_seconds"),
        ({"recorded": {"a": (1.0, 0.5)}}, "recorded['a'][1]"),
        ({"recorded": {"a": (1.0, float("inf"))}}, "recorded['a'][1]"),
        ({"recorded": {"a": (-1.0,)}}, "recorded['a'][0]"),
    ],
)
def test_wrong_arrivals_are_refused(figures, path):
    assert refused(Arrivals, **figures) == [path]


@pytest.mark.parametrize(
    ("moments", "rates", "paths"),
    [
        ((0.0,), {"a": ()}, ["times"]),
        ((0.0, 1.0), {}, ["rates"]),
        ((0.0, 2.0, 1.0), {"a": (1.0, 1.0)}, ["times[2]"]),
        ((0.0, 1.0, float("inf")), {"a": (1.0, 1.0)}, ["times[2]"]),
        ((0.0, 1.0), {"a": (-1.0,)}, ["rates.a[0]"]),
        ((0.0, 1.0), {"a": (1.0, 2.0)}, ["rates.a"]),
    ],
)
def test_wrong_tables_are_refused(moments, rates, paths):
    assert refused(RateTable, moments, rates) == paths
