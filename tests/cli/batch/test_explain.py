"""The command explain: what it prints, and how it ends."""

from __future__ import annotations

import functools
import json
import re
import signal
from pathlib import Path

import pytest
from command_line import Command

import mig_opt.api.explain.explainer as explainer_module
from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import ScheduleResult
from mig_opt.files.batch.batches import write_batch
from mig_opt.gpu.catalogue import get_gpu


@pytest.fixture
def run(run: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, on a narrow screen."""
    monkeypatch.setenv("COLUMNS", "80")
    return functools.partial(run, "explain")


def written(tmp_path: Path, *tasks: Task) -> Path:
    path = tmp_path / "batch.json"
    write_batch(Batch(tasks, get_gpu("A30")), path)
    return path


def test_a_target_that_cannot_be_met(run: Command) -> None:
    code, out, err = run("rodinia-a30", "--target", 28)
    assert (code, err) == (1, "")
    why, offer = out.split("What would make the target possible:\n")
    assert why == (
        "batch        rodinia-a30 (8 tasks)\n"
        "GPU          1 x A30-24GB\n"
        "target       28.000 s\n"
        "answer       impossible\n"
        "best known   28.434 s\n"
        "lower bound  28.434 s\n"
        "\n"
        "No schedule ends within 28.000 s, because of 5 requirements. Without any one of\n"
        "them the others could be met:\n"
        " - there is 1 x A30-24GB\n"
        " - task 'lu' must run: 8.59878 s on 1 slice, 8.10589 s on 2, 8.53057 s on 4\n"
        " - task 'lavaMD' must run: 21.697 s on 2 slices, 17.3214 s on 4\n"
        " - task 'gaussian' must run: 22.3109 s on 1 slice, 11.517 s on 2, 6.38692 s on 4\n"
        " - task 'pathfinder' must run: 20.5527 s on 1 slice, 20.4842 s on 2, 20.6617 s\n"
        "   on 4\n"
        "They take 28.084 s, 0.084 s more than the target.\n"
        "\n"
    )
    lines = offer.splitlines()
    assert lines[0] == " - a target of 28.43392 s"
    # Which schedule is found first with the others may differ from run to run.
    assert [re.sub(r"\(at most 2\d\.\d{3} s\)", "(...)", line) for line in lines[1:]] == [
        " - 2 x A30-24GB (...)",
        *(f" - without task {name!r} (...)" for name in ("lavaMD", "gaussian", "pathfinder", "lu")),
    ]


def test_a_target_that_can_be_met(run: Command) -> None:
    code, out, _ = run("rodinia-a30", "--target", 28.5)
    assert code == 0
    assert re.search("^answer +possible$", out, re.MULTILINE)
    assert "requirement" not in out


def test_without_a_target(run: Command) -> None:
    code, out, _ = run("rodinia-a30")
    assert code == 0
    assert "No schedule ends before 28.434 s, because of 6 requirements." in out
    assert "What would make a shorter schedule possible:\n - 2 x A30-24GB (" in out


def test_one_requirement_alone(run: Command) -> None:
    code, out, _ = run("rodinia-a30", "--target", 20)
    assert code == 1
    assert "because of this requirement alone:\n - task 'pathfinder' must run" in out


def test_json(run: Command) -> None:
    code, out, err = run("rodinia-a30", "--target", 28, "--json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    assert list(found) == [
        "verdict", "target", "makespan", "lower_bound", "conflicts", "remedies", "interrupted", "runtime_s"
    ]  # fmt: skip
    assert (found["verdict"], found["target"], found["interrupted"]) == ("impossible", 28.0, False)
    (conflict,) = found["conflicts"]
    assert list(conflict) == ["target", "lower_bound", "makespan", "minimal", "requirements"]
    assert conflict["minimal"] is True
    assert conflict["requirements"][0] == {
        "kind": "target", "path": "target", "text": "the makespan must be at most 28 s", "task": None, "needed": True
    }  # fmt: skip
    assert conflict["requirements"][2]["task"] == "lu"
    assert found["remedies"][0] == {"path": "target", "text": "a target of 28.43392 s", "makespan": found["makespan"]}


def test_infeasible(run: Command, tmp_path: Path) -> None:
    batch = written(tmp_path, Task("ok", {1: 1.0}), Task("big", {1: 2.0}, 20.0))
    code, out, _ = run(batch)
    assert code == 1
    assert "answer  infeasible" in out
    assert (
        "Task 'big' fits nowhere:\n"
        " - task 'big' must run: 2 s on 1 slice\n"
        " - task 'big' has no time on 2 or 4 slices\n"
        " - task 'big' needs 20 GB\n"
        "\n"
        "What would mend it:\n"
        " - task 'big' with at most 6 GB\n"
    ) in out
    code, out, _ = run(batch, "--json")
    assert code == 1
    assert json.loads(out)["lower_bound"] is None
    assert json.loads(out)["conflicts"][0]["target"] is None


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

    monkeypatch.setattr("mig_opt.api.explain.oracle.solve", hasty)
    code, out, _ = run("rodinia-a30", "--target", 24.7, "--time-limit", 5)
    assert code == 1
    assert "perhaps of fewer:" in " ".join(out.split())
    assert " (?)\n" in out
    assert "(?) is not proven to be needed: that takes longer than 5 s (--time-limit)." in " ".join(out.split())


def test_not_known(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.api.explain.oracle.solve", lambda batch, *rest, **options: solve(batch, "far"))
    code, out, _ = run("rodinia-a30", "--target", 28)
    assert code == 1
    assert re.search("^answer +not known, the time is over$", out, re.MULTILINE)


def test_ctrl_c(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> ScheduleResult:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError

    monkeypatch.setattr("mig_opt.api.explain.oracle.solve", interrupted)
    code, out, _ = run("rodinia-a30", "--target", 28)
    assert code == 130
    assert re.search("^answer +not known, interrupted$", out, re.MULTILINE)
    assert explainer_module.solve is solve


def test_ctrl_c_later_on_shows_what_is_proven(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = []

    def interrupted(*arguments: object, **options: object) -> ScheduleResult:
        questions.append(arguments)
        if len(questions) == 3:
            signal.raise_signal(signal.SIGINT)
        return solve(*arguments, **options)

    monkeypatch.setattr("mig_opt.api.explain.oracle.solve", interrupted)
    code, out, _ = run("rodinia-a30", "--target", 28)
    assert code == 130
    assert re.search("^answer +impossible$", out, re.MULTILINE)
    assert "is not proven to be needed: the work was interrupted." in " ".join(out.split())


def test_every_wrong_argument_is_named(run: Command) -> None:
    code, out, err = run("rodinia-a3", "--target", "nan", "--time-limit", 0, "--seed", -1, "--workers", 0)
    assert (code, out) == (2, "")
    for name in ("--target", "--time-limit", "--seed", "--workers"):
        assert f"  {name}: must be " in err
    assert "rodinia-a3: no such file, and no bundled instance of that name; did you mean rodinia-a30?" in err


@pytest.mark.parametrize("target", ["0", "-5", "inf"])
def test_a_target_is_a_number_of_seconds(run: Command, target: str) -> None:
    code, _, err = run("rodinia-a30", f"--target={target}")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("error: --target: must be a finite number of seconds > 0, is ")
