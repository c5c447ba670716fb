"""``mig-opt compare``: what it prints and writes, and how it ends."""

import functools
from unittest.mock import Mock

import pytest
from study_parts import failing, method_that

from mig_opt import generate_batch
from mig_opt.files.batch.batches import BATCH
from mig_opt.heuristics.batch.far import far


@pytest.fixture
def compare(narrow):
    return functools.partial(narrow, "compare")


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.json"
    BATCH.write(generate_batch(4, gpu="A30"), path)
    return path


def test_a_method_that_fails_is_told(compare, small, monkeypatch):
    method_that(monkeypatch, failing)
    ending = compare(small, "--methods", "far")
    assert (ending.code, ending.err) == (1, "")
    assert "crashed" in ending.out
    assert "far on small: ZeroDivisionError: broken" in ending.out


def test_ctrl_c_shows_what_is_done(compare, small, monkeypatch, tmp_path):
    runs = Mock(side_effect=[None, KeyboardInterrupt])
    method_that(monkeypatch, lambda batch, control: runs() or far(batch, control))
    table = tmp_path / "t.csv"
    ending = compare(small, "rodinia-a30", "--methods", "far", "-o", table)
    assert (ending.code, ending.err) == (130, "")
    assert "small" in ending.out
    assert "rodinia" not in ending.out
    assert "Interrupted: this is what was done so far." in ending.out
    assert len(table.read_text().splitlines()) == 2


def test_ctrl_c_before_anything_is_done(compare, small, monkeypatch):
    method_that(monkeypatch, Mock(side_effect=KeyboardInterrupt))
    ending = compare(small, "--methods", "far")
    assert (ending.code, ending.out) == (130, "Nothing was done.\n")


def test_contradictions_are_loud(compare, small, monkeypatch):
    monkeypatch.setattr("mig_opt.cli.batch.compare._on_record", lambda batches, arguments: {"small": 0.001})
    ending = compare(small, "--methods", "far")
    assert ending.code == 70
    assert "contradict each other" in ending.err
    assert "but the record has one of 0.001 s" in ending.err
