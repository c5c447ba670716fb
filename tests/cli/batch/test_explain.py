"""The command explain: what it prints, and how it ends."""

import functools
import itertools
import re
import signal
from pathlib import Path

import pytest

from mig_opt import Batch, ScheduleResult, Task, get_gpu, solve
from mig_opt.files.batch.batches import BATCH


@pytest.fixture
def run(narrow):
    return functools.partial(narrow, "explain")


def written(tmp_path: Path, *tasks: Task) -> Path:
    path = tmp_path / "batch.json"
    BATCH.write(Batch(tasks, get_gpu("A30")), path)
    return path


def test_very_many_misfits_are_cut(run, tmp_path):
    batch = written(tmp_path, *(Task(f"t{index}", {1: 2.0}, 20.0) for index in range(50)))
    code, out, _ = run(batch)
    assert (code, out.count("fits nowhere"), out.count("with at most")) == (1, 10, 10)
    assert "40 more fit nowhere: --json has all." in out


def test_very_many_tasks_share_a_line(run, tmp_path):
    batch = written(tmp_path, *(Task(f"t{index}", {1: 4.0, 2: 2.0, 4: 1.0}) for index in range(40)))
    _, out, _ = run(batch, "--target", 38)
    assert re.search(r"^ - (39|40) tasks must run.*: 't\d+', 't\d+'", out, re.MULTILINE)
    assert "more (--json" in " ".join(out.split())


def test_what_is_not_proven_is_marked_and_what_is_not_known_told(run, monkeypatch):
    """The same problem solved by FAR alone proves no requirement of a tight target to be needed."""
    monkeypatch.setattr("mig_opt.api.explain.conflicts.solve", lambda batch, *rest, **options: solve(batch, "far"))
    code, out, _ = run("rodinia-a30", "--target", 24.7, "--time-limit", 5)
    assert (code, " (?)\n" in out) == (1, True)
    assert "perhaps of fewer:" in " ".join(out.split())
    assert "(?) is not proven to be needed: that takes longer than 5 s (--time-limit)." in " ".join(out.split())
    code, out, _ = run("rodinia-a30", "--target", 28)
    assert (code, bool(re.search("^answer +not known, the time is over$", out, re.MULTILINE))) == (1, True)


@pytest.mark.parametrize(
    ("question", "answer", "remark"),
    [
        (1, "not known, interrupted", "Interrupted: not everything was looked at."),
        (3, "impossible", "is not proven to be needed: the work was interrupted."),
    ],
)
def test_ctrl_c_shows_what_is_proven(run, monkeypatch, question, answer, remark):
    questions = itertools.count(1)

    def interrupted(*arguments: object, **options: object) -> ScheduleResult:
        if next(questions) == question:
            signal.raise_signal(signal.SIGINT)
        return solve(*arguments, **options)

    monkeypatch.setattr("mig_opt.api.explain.conflicts.solve", interrupted)
    code, out, _ = run("rodinia-a30", "--target", 28)
    assert (code, bool(re.search(f"^answer +{answer}$", out, re.MULTILINE))) == (130, True)
    assert remark in " ".join(out.split())
