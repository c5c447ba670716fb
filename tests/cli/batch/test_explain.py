"""The command explain: what it prints, and how it ends."""

import functools
import re
import signal
from pathlib import Path

import pytest
from command_line import Command

import mig_opt.api.explain.explainer as explainer_module
from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import ScheduleResult
from mig_opt.files.batch.batches import BATCH
from mig_opt.gpu.catalogue import get_gpu


@pytest.fixture
def run(narrow: Command) -> Command:
    return functools.partial(narrow, "explain")


def written(tmp_path: Path, *tasks: Task) -> Path:
    path = tmp_path / "batch.json"
    BATCH.write(Batch(tasks, get_gpu("A30")), path)
    return path


def test_very_many_misfits_are_cut(run: Command, tmp_path: Path) -> None:
    batch = written(tmp_path, *(Task(f"t{index}", {1: 2.0}, 20.0) for index in range(50)))
    code, out, _ = run(batch)
    assert code == 1
    assert out.count("fits nowhere") == 10
    assert "40 more fit nowhere: --json has all." in out
    assert out.count("with at most") == 10


def test_very_many_tasks_share_a_line(run: Command, tmp_path: Path) -> None:
    batch = written(tmp_path, *(Task(f"t{index}", {1: 4.0, 2: 2.0, 4: 1.0}) for index in range(40)))
    _, out, _ = run(batch, "--target", 38)
    assert re.search(r"^ - (39|40) tasks must run.*: 't\d+', 't\d+'", out, re.MULTILINE)
    assert "more (--json" in " ".join(out.split())


def test_what_is_not_proven_is_marked(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same problem solved by FAR alone proves no requirement of a tight target to be needed."""

    def hasty(batch: Batch, method: str = "far", **options: object) -> ScheduleResult:
        return solve(batch, "far")

    monkeypatch.setattr("mig_opt.api.explain.conflicts.solve", hasty)
    code, out, _ = run("rodinia-a30", "--target", 24.7, "--time-limit", 5)
    assert code == 1
    assert "perhaps of fewer:" in " ".join(out.split())
    assert " (?)\n" in out
    assert "(?) is not proven to be needed: that takes longer than 5 s (--time-limit)." in " ".join(out.split())


def test_not_known(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.api.explain.conflicts.solve", lambda batch, *rest, **options: solve(batch, "far"))
    code, out, _ = run("rodinia-a30", "--target", 28)
    assert code == 1
    assert re.search("^answer +not known, the time is over$", out, re.MULTILINE)


def test_ctrl_c(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> ScheduleResult:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError

    monkeypatch.setattr("mig_opt.api.explain.conflicts.solve", interrupted)
    code, out, _ = run("rodinia-a30", "--target", 28)
    assert code == 130
    assert re.search("^answer +not known, interrupted$", out, re.MULTILINE)
    assert "Interrupted: not everything was looked at." in out
    assert explainer_module.solve is solve


def test_ctrl_c_later_on_shows_what_is_proven(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = []

    def interrupted(*arguments: object, **options: object) -> ScheduleResult:
        questions.append(arguments)
        if len(questions) == 3:
            signal.raise_signal(signal.SIGINT)
        return solve(*arguments, **options)

    monkeypatch.setattr("mig_opt.api.explain.conflicts.solve", interrupted)
    code, out, _ = run("rodinia-a30", "--target", 28)
    assert code == 130
    assert re.search("^answer +impossible$", out, re.MULTILINE)
    assert "is not proven to be needed: the work was interrupted." in " ".join(out.split())
