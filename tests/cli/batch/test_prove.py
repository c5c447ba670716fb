"""The commands prove and check: what they print, what they write, and how they end."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import tiny
from command_line import Command, Outcome

import mig_opt.api.prove.prover as prover_module
from mig_opt.api.prove import prove
from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import ScheduleResult
from mig_opt.files.batch.batches import write_batch
from mig_opt.files.batch.certificates import certificate_from_json, read_certificate, write_certificate
from mig_opt.files.batch.schedules import read_schedule, write_schedule
from mig_opt.method.result import TrajectoryPoint
from mig_opt.validation import validate


@pytest.fixture
def run(run: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line, on a narrow screen that everything has to fit."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Outcome:
        outcome = run(*arguments)
        if not outcome.out.startswith("{"):
            assert max((len(line) for line in outcome.out.splitlines()), default=0) <= 80
        return outcome

    return call


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tiny batch, its best schedule, and that of FAR without the refinement."""
    monkeypatch.chdir(tmp_path)
    write_batch(tiny.BATCH, "batch.json")
    write_schedule(tiny.BEST, "best.json")
    far = solve(tiny.BATCH, "far-unrefined").schedule
    assert far is not None
    write_schedule(far, "far.json")
    return tmp_path


def test_proved_and_checked(run: Command, there: Path) -> None:
    code, out, err = run("prove", "batch.json", "best.json", "-o", "c.json", "-b", "better.json")
    assert (code, err) == (0, "")
    assert re.sub(r"(?<=runtime {6})\S+", "...", out) == (
        "batch        batch (3 tasks)\n"
        "GPU          1 x A30-24GB\n"
        "makespan     6.340 s\n"
        "shorter by   a tick (1/100 s)\n"
        "answer       proved, no schedule is that much shorter\n"
        "lower bound  6.340 s\n"
        "method       milp\n"
        "runtime      ... s\n"
        "\n"
        "Certificate written to c.json.\n"
        "There is no shorter schedule to write to better.json.\n"
    )
    assert read_certificate("c.json").claim == "proved"
    assert not (there / "better.json").exists()
    code, out, err = run("check", "batch.json", "best.json", "c.json")
    assert (code, err) == (0, "")
    card, trust = out.split("\n\n")
    assert card == (
        "batch        batch (3 tasks)\n"
        "GPU          1 x A30-24GB\n"
        "certificate  right\n"
        "claim        proved\n"
        "shorter by   a tick (1/100 s)\n"
        "makespan     6.340 s\n"
        "lower bound  6.340 s\n"
        "no solver    4.360 s (68.8% of the makespan)"
    )
    assert trust.startswith("Recomputed and right. What remains to be trusted:\n - the rules and the arithmetic of mig")
    assert "\n - milp with " in trust
    code, out, _ = run("check", "batch.json", "best.json", "c.json", "--rerun", "--method", "brute-force")
    assert code == 0
    assert re.search(r"^asked again  brute-force: proved, ", out, re.MULTILINE)


def test_refuted(run: Command, there: Path) -> None:
    code, out, _ = run("prove", "batch.json", "far.json", "-b", "better.json")
    assert code == 1
    assert "answer       refuted, there is a shorter schedule\n" in out
    assert "(create)" in out
    assert "Shorter schedule written to better.json.\n" in out
    better = read_schedule("better.json")
    assert validate(tiny.BATCH, better).valid
    assert better.makespan < tiny.FAR - 0.005
    code, out, _ = run("prove", "batch.json", "far.json", "--within", 0.12)
    assert code == 0
    assert "shorter by   a tick (1/100 s) and more than 0.12 s\n" in out
    assert "between      0.12 s\n" in out


def test_open(run: Command, there: Path) -> None:
    code, out, _ = run("prove", "batch.json", "best.json", "--time-limit", 1e-6, "-o", "c.json")
    assert code == 1
    assert "answer       open\n" in out
    assert "Stopped after 1e-06 s; --time-limit S allows for more.\n" in out
    assert run("check", "batch.json", "best.json", "c.json")[0] == 0
    code, out, _ = run("check", "batch.json", "far.json", "c.json", "--json")
    assert code == 1
    assert {entry["path"] for entry in json.loads(out)["mismatches"]} == {"schedule", "makespan"}


def test_a_method_that_can_tell_no_more(run: Command, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover_module, "solve", lambda batch, *rest, **options: solve(batch, "far"))
    code, out, _ = run("prove", "batch.json", "best.json")
    assert code == 1
    assert (
        "milp can tell no more: 1.98 s are left. Another --method may, or --within S if so little does not matter."
    ) in " ".join(out.split())


def test_ctrl_c(run: Command, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(batch: Batch, method: str, **options: Any) -> ScheduleResult:
        def press(point: TrajectoryPoint) -> bool:
            signal.raise_signal(signal.SIGINT)
            return False

        return solve(batch, method, stop=press)

    monkeypatch.setattr(prover_module, "solve", interrupted)
    code, out, _ = run("prove", "batch.json", "best.json", "-o", "c.json")
    assert code == 130
    assert "answer       open, interrupted\n" in out
    assert read_certificate("c.json").interrupted
    assert read_certificate("c.json").lower_bound >= 4.36


def test_json(run: Command, there: Path) -> None:
    code, out, err = run("prove", "batch.json", "best.json", "--json", "-o", "c.json")
    assert (code, err) == (0, "")
    assert certificate_from_json(out) == read_certificate("c.json")
    code, out, _ = run("check", "batch.json", "best.json", "c.json", "--json", "--rerun")
    assert code == 0
    found = json.loads(out)
    assert list(found) == [
        "holds", "claim", "makespan", "lower_bound", "bound_without_solver", "needs_solver", "mismatches", "trusted",
        "rerun",
    ]  # fmt: skip
    assert (found["holds"], found["claim"], found["needs_solver"], found["mismatches"]) == (True, "proved", True, [])
    assert (found["rerun"]["method"], found["rerun"]["claim"]) == ("milp", "proved")


def test_a_schedule_that_is_not_valid(run: Command, there: Path) -> None:
    write_schedule(tiny.BEST.replace(runs=tiny.BEST.runs[1:]), "short.json")
    code, out, _ = run("prove", "batch.json", "short.json", "-o", "c.json")
    assert code == 1
    assert "not valid, 1 violation" in out
    assert " - tasks[0]: " in out
    assert not (there / "c.json").exists()
    code, out, _ = run("prove", "batch.json", "short.json", "--json")
    assert code == 1
    violations = json.loads(out)["violations"]
    assert [(entry["code"], entry["path"]) for entry in violations] == [("missing-task", "tasks[0]")]


def test_tampering(run: Command, there: Path) -> None:
    run("prove", "batch.json", "best.json", "-o", "c.json")
    text = (there / "c.json").read_text()
    (there / "c.json").write_text(text.replace('"makespan": 6.34', '"makespan": 6.3'))
    code, out, err = run("check", "batch.json", "best.json", "c.json")
    assert (code, err) == (1, "")
    assert "certificate  not right, 2 x\n" in out
    assert " - makespan: is 6.3, but follows from batch and schedule as 6.34\n" in out
    assert " - digest: is not that of the certificate" in out
    assert "trusted" not in out
    (there / "c.json").write_text(
        text.replace('"claim": "proved"', '"claim": "true"').replace('"seed": 0', '"seed": "x"')
    )
    code, out, err = run("check", "batch.json", "best.json", "c.json")
    assert (code, out) == (2, "")
    assert "  claim: must be 'proved', 'refuted' or 'open', is \"true\"\n" in err
    assert "  seed: must be a whole number" in err
    code, _, err = run("check", "batch.json", "best.json", "best.json")
    assert code == 2
    assert "this is a schedule (mig-opt/schedule/1), but a certificate is wanted" in err


def test_every_wrong_argument_is_named(run: Command, there: Path) -> None:
    code, out, err = run(
        *("prove", "rodinia-a3", "none.json", "--method", "far", "--time-limit", 0, "--within", -1),
        *("-o", "best.json", "-b", "no/such.json"),
    )
    assert (code, out) == (2, "")
    for named in ("--method: must be exact", "--time-limit: ", "--within: ", "did you mean rodinia-a30", "none.json"):
        assert named in err
    assert "no/such.json: cannot be written" in err
    code, _, err = run("prove", "batch.json", "best.json", "-o", "best.json")
    assert (code, "best.json: is read as well" in err) == (2, True)
    code, _, err = run("prove", "batch.json", "best.json", "-o", "x.json", "-b", "x.json")
    assert (code, "x.json: is wanted for both" in err) == (2, True)
    code, _, err = run("check", "batch.json", "best.json", "none.json", "--method", "cp")
    assert (code, "--method: is for --rerun" in err, "none.json: no such file" in err) == (2, True, True)


def test_the_number_of_gpus_is_part_of_the_question(run: Command, there: Path) -> None:
    write_certificate(prove(tiny.BATCH, tiny.BEST), "c.json")
    code, out, _ = run("check", "batch.json", "best.json", "c.json", "--gpus", 2)
    assert code == 1
    assert " - batch: the certificate is about another batch, or GPU, or number of GPUs\n" in out


def test_schema(run: Command) -> None:
    code, out, _ = run("schema", "certificate")
    assert code == 0
    assert json.loads(out)["title"] == "mig-opt/certificate/1"
