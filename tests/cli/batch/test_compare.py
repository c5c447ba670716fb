"""``mig-opt compare``: what it prints and writes, and how it ends."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Command

from mig_opt import Batch, generate_batch
from mig_opt.batch.schedule import Schedule
from mig_opt.files.batch.batches import BATCH
from mig_opt.heuristics.batch.far import far
from mig_opt.method.control import Control
from mig_opt.method.registry import Method


@pytest.fixture
def compare(narrow: Command) -> Command:
    return functools.partial(narrow, "compare")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    BATCH.write(generate_batch(4, gpu="A30"), path)
    return path


def method_that(monkeypatch: pytest.MonkeyPatch, runner: Callable[[Batch, Control[Schedule]], None]) -> None:
    monkeypatch.setattr(Method, "load", lambda method: runner)
    monkeypatch.setattr("mig_opt.studies.batch.warm_up", lambda method: None)


def test_a_method_that_fails_is_told(compare: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(batch: Batch, control: Control[Schedule]) -> None:
        raise ZeroDivisionError("broken")

    method_that(monkeypatch, failing)
    ending = compare(small, "--methods", "far")
    assert (ending.code, ending.err) == (1, "")
    assert "crashed" in ending.out
    assert "far on small: ZeroDivisionError: broken" in ending.out


def test_ctrl_c_shows_what_is_done(
    compare: Command, small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = 0

    def interrupted(batch: Batch, control: Control[Schedule]) -> None:
        nonlocal runs
        runs += 1
        if runs == 2:
            raise KeyboardInterrupt
        far(batch, control)

    method_that(monkeypatch, interrupted)
    table = tmp_path / "t.csv"
    ending = compare(small, "rodinia-a30", "--methods", "far", "-o", table)
    assert (ending.code, ending.err) == (130, "")
    assert "small" in ending.out
    assert "rodinia" not in ending.out
    assert "Interrupted: this is what was done so far." in ending.out
    assert len(table.read_text().splitlines()) == 2


def test_ctrl_c_before_anything_is_done(compare: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(batch: Batch, control: Control[Schedule]) -> None:
        raise KeyboardInterrupt

    method_that(monkeypatch, interrupted)
    ending = compare(small, "--methods", "far")
    assert (ending.code, ending.out) == (130, "Nothing was done.\n")


def test_contradictions_are_loud(compare: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.cli.batch.compare._on_record", lambda batches, arguments: {"small": 0.001})
    ending = compare(small, "--methods", "far")
    assert ending.code == 70
    assert "contradict each other" in ending.err
    assert "but the record has one of 0.001 s" in ending.err
