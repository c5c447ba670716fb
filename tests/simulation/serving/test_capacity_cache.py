"""Capacities that are kept between runs."""

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from mig_opt import Batching, Point, Promise
from mig_opt.api.deploy.capacities import capacity_in_service
from mig_opt.simulation.serving import capacity_cache
from mig_opt.simulation.serving.capacity_cache import remembered
from mig_opt.simulation.serving.requests import worker_at

POINT = Point(1, 8, 1, 400.0, 0.02)


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
    assert remembered(("a", Point(1, 8, 1, 400.0, 0.021)), lambda: 2.5) == 2.5


def test_another_method_computes_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered(("a",), lambda: 1.5)
    monkeypatch.setattr(capacity_cache, "METHOD", -1)
    assert remembered(("a",), lambda: 2.5) == 2.5


def test_a_capacity_is_that_of_the_simulation(file: Path) -> None:
    promise = Promise(0.99)
    servers = (worker_at(POINT, 0.1, Batching()),)
    first = capacity_in_service(servers, 0.1, 300.0, promise, 0.0)
    assert first == capacity_in_service(servers, 0.1, 300.0, promise, 0.0)
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
    monkeypatch.setenv("MIG_OPT_CACHE", str(tmp_path / "file"))
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
