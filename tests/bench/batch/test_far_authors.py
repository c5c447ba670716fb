"""FAR beside its authors' program: how its schedules are judged, and what the stored result says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from places import BENCH

from bench.batch import far_authors
from bench.report import Page
from mig_opt import Batch, Task, get_gpu


@dataclass
class Node:
    """An instance of a tree like that of the program."""

    first: int
    size: int
    tasks: list[SimpleNamespace] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    @property
    def slices(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(num_slice=self.first + at) for at in range(self.size)]


def run(index: int, start: float, time: float) -> SimpleNamespace:
    return SimpleNamespace(index=index, start=start, time=time)


def test_schedules_of_the_program_are_judged_like_others() -> None:
    batch = Batch((Task("wide", {4: 1.0}), Task("narrow", {1: 2.0})), get_gpu("A30"))
    late = Node(0, 4, [run(0, 0.13, 1.0)], [Node(0, 2, children=[Node(0, 1, [run(1, 1.5, 2.0)])])])
    printed, timed, valid = far_authors.judge(batch, late)
    assert (printed, valid) == (3.5, True)
    assert timed == pytest.approx(0.13 + 1.0 + 0.10 + 0.11 + 2.0)
    early = Node(0, 4, [run(0, 0.13, 1.0)], [Node(0, 2, children=[Node(0, 1, [run(1, 1.2, 2.0)])])])
    printed, again, valid = far_authors.judge(batch, early)
    assert (again, valid) == (timed, False), "no time to destroy and to create"
    outcome = far_authors.Outcome(batch, "", {}, printed, timed, valid)
    assert outcome.theirs == timed


def test_there_are_a_thousand_batches() -> None:
    assert sum(1 for _ in far_authors.batches()) == 1008


def test_a_folder_without_the_program(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is not there"):
        far_authors.main([str(tmp_path)])


STORED = BENCH / "results" / "far_authors.json"


def test_no_batch_and_no_pair_ends_later_than_with_the_program() -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    batches, joins = stored["batches"], stored["joins"]
    assert batches["batches"] >= 1000
    for found in (batches, joins["same"], joins["foresight"]):
        assert found["mean"] < 1
        assert found["worst"] <= far_authors.TOLERANCE
        assert found["above"] == 0
    # Who does not know the next batch may plan a shorter one that is worse to follow.
    assert joins["stream"]["mean"] < 1
    assert joins["foresight"]["mean"] < joins["stream"]["mean"]


def test_the_tables_are_made_from_the_stored_figures() -> None:
    page = Page("far_authors", "")
    far_authors.write(page, json.loads(STORED.read_text(encoding="utf-8")))
    stored = STORED.with_suffix(".md").read_text(encoding="utf-8").splitlines()
    assert [line for line in page.lines if line[:1] == "|"] == [line for line in stored if line[:1] == "|"]
