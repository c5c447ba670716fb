"""Capacities under a promise: what they mean, what pooling gains, the search for them, and what is kept of them."""

import contextlib
import dataclasses
import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Arrivals, Batching, Point, Promise, RateTable
from mig_opt.api.deploy.capacities import capacity_in_service
from mig_opt.simulation.serving import capacity_cache
from mig_opt.simulation.serving.capacity import CAPACITY_ERROR, held_rate, late_alone, pool_capacity
from mig_opt.simulation.serving.capacity_cache import remembered
from mig_opt.simulation.serving.requests import worker_at
from mig_opt.simulation.serving.service import LATE_REQUESTS, REQUESTS, ServedRequests, Worker

POINT = Point(1, 8, 2, 400.0, 0.04)


def servers(point: Point, slo: float, batching: Batching | None = None) -> tuple[Worker, ...]:
    return (worker_at(point, slo, batching or Batching()),)


def late_share(points, slo, rate, seed=1, requests=400_000) -> float:
    rng = np.random.default_rng(seed)
    seconds = requests / rate
    workers = [worker_at(point, slo, Batching()) for point in points]
    served = ServedRequests(workers, slo, (0.1 * seconds, seconds), rng=rng)
    served.run(Arrivals("poisson").stream("a", rate, seconds, rng))
    counts = served.counted.batches.sum(axis=0)
    return counts[LATE_REQUESTS] / counts[REQUESTS]


@pytest.mark.deep
@pytest.mark.parametrize("slo", [0.09, 0.15])
@pytest.mark.parametrize("segments", [1, 4])
def test_a_capacity_is_where_the_promise_ends(slo, segments):
    """With random numbers that the search does not know: kept at the capacity, broken a little beyond its reserve."""
    capacity = pool_capacity(POINT, slo, segments, Promise(0.99))
    assert 0.5 < capacity / (400 * segments) < 1
    assert late_share([POINT] * segments, slo, capacity * (1 - CAPACITY_ERROR), requests=4_000_000) <= 0.01
    assert late_share([POINT] * segments, slo, min(capacity * 1.04, 399.5 * segments)) > 0.01


@pytest.mark.parametrize("share", [0.99, 0.999, 0.9999])
def test_capacities_below_a_tenth_of_the_throughput(share):
    """Of a queue that has room for one request: (1 - load) e^load of them find it within one service (Crommelin)."""
    late = 0.8 * (1 - share)
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - (1 - middle) * np.exp(middle) <= late else (low, middle)
    found = pool_capacity(Point(1, 1, 1, 100.0, 0.01), 0.02, 1, Promise(share, reserve=0.0))
    assert found / 100 == pytest.approx(low, rel=0.1)


@pytest.mark.parametrize("kind", ["even", "poisson", "bursty"])
def test_batches_that_take_nearly_the_slo_have_some_capacity(kind):
    lengths = (0.55, 1.0)
    promise = Promise(0.99, Arrivals(kind))
    found = [pool_capacity(Point(1, 8, 1, 8 / (0.3 * one), 0.3 * one), 0.3, 1, promise) for one in lengths]
    assert found == sorted(found, reverse=True)
    assert 0 < found[-1] < 10


def test_a_promise_that_cannot_be_kept_alone_has_no_capacity():
    """Lognormal times of batches: 2.3 % of those that take half the SLO on average take longer than it."""
    varied = Promise(0.95, batching=Batching(patience=0.0, spread=0.4))
    point = Point(1, 1, 1, 10.0, 0.1)
    assert late_alone(servers(point, 0.2, varied.batching), 0.2, varied) == pytest.approx(0.0228, rel=0.1)
    assert pool_capacity(point, 0.2, 1, varied) > 0
    assert pool_capacity(point, 0.2, 1, dataclasses.replace(varied, share=0.98)) == 0.0
    assert late_alone(servers(Point(1, 8, 1, 10.0, 0.1), 0.2), 0.2, Promise()) == 1.0


def test_where_few_segments_hold_little_as_few_as_are_needed_count():
    point, promise = Point(1, 8, 1, 50.0, 0.16), Promise(0.999)
    for rate in (0.05, 8.0):
        needed = math.ceil(rate / capacity_in_service(servers(point, 0.2), 0.2, rate, promise, 0.0))
        few, enough = (pool_capacity(point, 0.2, count, promise) for count in (needed - 1, needed))
        assert few < rate <= enough


@pytest.mark.deep
@settings(max_examples=12)
@given(st.lists(st.tuples(st.sampled_from([1, 4, 16]), st.integers(1, 3), st.integers(10, 45)), min_size=2, max_size=5))
def test_segments_together_hold_the_sum_of_what_they_hold_alone(figures):
    """For sets of different segments: pooled, the promise is kept at the sum of their capacities."""
    points = [
        Point(1, batch, processes, batch * processes / (ms / 1000), ms / 1000) for batch, processes, ms in figures
    ]
    promise = Promise(0.99)
    total = sum(pool_capacity(point, 0.1, 1, promise) for point in points)
    if total > 0:
        workers = [worker_at(point, 0.1, Batching()) for point in points]
        assert held_rate(workers, 0.1, promise) >= total * 0.99


def test_a_service_gets_the_capacity_of_as_many_segments_as_it_needs():
    few, many = (capacity_in_service(servers(POINT, 0.1), 0.1, rate, Promise(), 0.0) for rate in (300.0, 2500.0))
    assert few == pytest.approx(pool_capacity(POINT, 0.1, 1, Promise()))
    assert many > few
    assert capacity_in_service(servers(POINT, 0.1), 0.1, 2500.0, Promise(), 399.9) == 0.0


@pytest.mark.parametrize(
    ("figures", "path"),
    [
        ({"share": 1.0}, "promise"),
        ({"share": float("nan")}, "promise"),
        ({"arrivals": "poisson"}, "arrivals"),
        ({"arrivals": Arrivals(rates=RateTable((0.0, 1.0), {"a": (1.0,)}))}, "arrivals"),
        ({"reserve": -0.1}, "reserve"),
        ({"router": "nearest"}, "router"),
        ({"batching": 0.5}, "batching"),
    ],
)
def test_wrong_promises_are_refused(figures, path):
    assert refused(Promise, **figures) == [path]


def test_wrong_arguments_are_refused_all_at_once():
    assert refused(pool_capacity, "1g", 0.0, 0, 0.99) == ["slo", "segments", "point", "promise"]


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("MIG_OPT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "capacities.sqlite"


def fails() -> float:
    raise AssertionError("computed again")


def test_a_value_is_computed_once(file: Path) -> None:
    assert remembered(("a", POINT), lambda: 1.5) == 1.5
    assert file.is_file()
    assert remembered(("a", POINT), fails) == 1.5
    assert remembered(("a", Point(1, 8, 2, 400.0, 0.041)), lambda: 2.5) == 2.5


def test_another_method_computes_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered(("a",), lambda: 1.5)
    monkeypatch.setattr(capacity_cache, "METHOD", -1)
    assert remembered(("a",), lambda: 2.5) == 2.5


def test_a_capacity_is_that_of_the_simulation(file: Path) -> None:
    alone = servers(Point(1, 8, 1, 400.0, 0.02), 0.1)
    first, again = (capacity_in_service(alone, 0.1, 300.0, Promise(0.99), 0.0) for _ in range(2))
    assert first == again
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM capacities").fetchone()[0] >= 1
    assert 0 < first < 400


@pytest.mark.parametrize("content", [b"no database at all, whatever its name says" * 100, b""])
def test_a_damaged_file_is_written_anew(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    assert remembered(("a",), lambda: 1.5) == 1.5
    assert remembered(("a",), fails) == 1.5


def test_a_folder_that_cannot_be_used_does_no_harm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (str(tmp_path / "file"), "x" * 300):
        monkeypatch.setenv("MIG_OPT_CACHE", folder)
        assert [remembered(("a",), lambda: 1.5) for _ in range(2)] == [1.5, 1.5]


def test_processes_write_at_the_same_time(file: Path) -> None:
    code = (
        "import sys; from mig_opt.simulation.serving.capacity_cache import remembered\n"
        "for number in range(20): remembered((sys.argv[1], number), lambda: float(number))"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    assert all(remembered((name, number), lambda: -1.0) in {number, -1.0} for name in "ab" for number in range(20))
    assert remembered(("a", 19), fails) == 19.0
