"""FAR beside its authors' program: how its schedules are judged, and what the stored result says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from places import BENCH, DOCS

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

import far_authors

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
    assert sum(1 for _ in far_authors.batches(far_authors.SEEDS, far_authors.SIZES)) == 1008


def test_a_folder_without_the_program(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is not there"):
        far_authors.main([str(tmp_path)])


def test_what_the_docs_say_is_the_stored_result() -> None:
    stored = json.loads((BENCH / "results" / "far_authors.json").read_text(encoding="utf-8"))
    assert stored["batches"] >= 1000
    assert stored["above"] == 0
    text = (DOCS / "explanation" / "far.md").read_text(encoding="utf-8")
    assert f"{stored['batches']:,} batches" in text
    mean, best = (f"{(1 - stored[name]) * 100:.{digits}f} %" for name, digits in (("mean", 1), ("best", 0)))
    assert f"its makespan is {mean} shorter in the mean, up to {best} shorter, and on none" in text.replace("\n", " ")
    assert stored["worst"] <= 1 + 1e-9
    same, stream = (stored["joins"][name] for name in ("same", "stream"))
    assert max(same["mean"], stream["mean"]) < 1
    earlier = [f"{(1 - each['mean']) * 100:.1f} %" for each in (same, stream)]
    said = text.replace("\n", " ")
    assert (
        f"Of {same['pairs']:,} pairs of batches that are joined behind the same schedule, ours end {earlier[0]}" in said
    )
    assert f"{same['above']} later by more than 0.1 %, the worst by {(same['worst'] - 1) * 100:.1f} %" in said
    assert f"they end {earlier[1]} earlier in the mean, but {stream['above']} end later by more than 0.1 %" in said
    assert f"the worst by {(stream['worst'] - 1) * 100:.0f} %: a shorter schedule" in said
