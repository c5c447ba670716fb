"""FAR beside its authors' program: how its schedules are judged, and what the stored result says."""

import json
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from places import BENCH

from bench.batch import far_authors
from bench.report import Page
from mig_opt import Batch, Task, get_gpu


def node(size: int, *tasks: tuple[int, float, float], below: Sequence[SimpleNamespace] = ()) -> SimpleNamespace:
    """An instance on the left of a tree like that of the program, with index, begin and seconds of its tasks."""
    runs = [SimpleNamespace(index=index, start=start, time=time) for index, start, time in tasks]
    slices = [SimpleNamespace(num_slice=at) for at in range(size)]
    return SimpleNamespace(size=size, slices=slices, tasks=runs, children=below)


@pytest.mark.parametrize(("begin", "valid"), [(1.5, True), (1.2, False)])  # no time to destroy and to create
def test_schedules_of_the_program_are_judged_like_others(begin, valid):
    batch = Batch((Task("wide", {4: 1.0}), Task("narrow", {1: 2.0})), get_gpu("A30"))
    tree = node(4, (0, 0.13, 1.0), below=[node(2, below=[node(1, (1, begin, 2.0))])])
    timed = pytest.approx(0.13 + 1.0 + 0.10 + 0.11 + 2.0)
    assert far_authors.judge(batch, tree) == (begin + 2, timed, valid)
    assert far_authors.Outcome(batch, "", {}, 3.2, 3.34, valid).theirs == (3.2 if valid else 3.34)


def test_there_are_a_thousand_batches():
    assert sum(1 for _ in far_authors.batches()) == 1008


def test_a_folder_without_the_program(tmp_path):
    with pytest.raises(SystemExit, match="is not there"):
        far_authors.main([str(tmp_path)])


STORED = BENCH / "results" / "far_authors.json"


def test_no_batch_and_no_pair_ends_later_than_with_the_program():
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


def test_the_tables_are_made_from_the_stored_figures():
    page = Page("far_authors", "")
    far_authors.write(page, json.loads(STORED.read_text(encoding="utf-8")))
    stored = STORED.with_suffix(".md").read_text(encoding="utf-8").splitlines()
    assert [line for line in page.lines if line[:1] == "|"] == [line for line in stored if line[:1] == "|"]
