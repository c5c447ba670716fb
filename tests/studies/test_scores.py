"""Scores: whatever a solver does is told as what it is, and the next instance follows."""

import dataclasses
import math
import shutil
import subprocess
import sys

import pytest
from documents import refused
from study_jobs import cluster_of_two

from mig_opt import Batch, InputError, Schedule, solve
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.instances.bundled import DATA, Library, library
from mig_opt.instances.library import sealed, write_entry
from mig_opt.studies.scores import FACTORS, Score, Scores, score

EASY = "far-1xa30-006-mixed-2"
TWO = (EASY, "far-1xa100-008-mixed-1")

SOLVER = """
import json, pathlib, sys
instance, plan, how = sys.argv[1:4]
known = pathlib.Path(__file__).with_name(pathlib.Path(instance).name).read_text()
if how == "crash":
    print("out of ideas", file=sys.stderr)
    sys.exit(3)
if how == "garbage":
    open(plan, "wb").write(b"\\xff\\xfe no plan")
elif how == "other":
    open(plan, "w").write('{"schema": "mig-opt/batch/1"}')
elif how == "invalid":
    open(plan, "w").write(json.dumps(json.loads(known) | {"runs": json.loads(known)["runs"][1:]}))
elif how != "nothing":
    open(plan, "w").write(known)
if how == "sloppy":
    sys.exit(1)
"""


def far(batch: Batch, seconds: float) -> Schedule | None:
    """A solver that is a function."""
    assert seconds == 60
    return solve(batch, "far").schedule


def failing(_: Batch, __: float) -> Schedule:
    raise RuntimeError("no idea")


@pytest.fixture
def command(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOLVER)
    for name in TWO:
        (tmp_path / f"{name}.json").write_text(library().text("plans", name) or "")
    return f"{sys.executable} {path} {{instance}} {{plan}}"


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ("well", "valid", ""),
        ("sloppy", "valid", ""),
        ("crash", "crashed", "exit code 3: out of ideas"),
        ("garbage", "garbage", "not valid JSON"),
        ("other", "garbage", "this is a batch"),
        ("invalid", "invalid", "has no run (missing-task)"),
        ("nothing", "no plan", "it printed nothing"),
    ],
)
def test_what_solvers_do(command, how, status, reason, tmp_path):
    found = score(f"{command} {how}", names=[EASY], time_limit=60, output=tmp_path / "plans")
    (one,) = found.scores
    assert (one.status, one.valid, one.new_best) == (status, status == "valid", False)
    assert reason in one.reason
    assert (one.value is None) == (status != "valid")
    assert (tmp_path / "plans" / f"{EASY}.json").exists() == (status == "valid")


def test_arguments_that_make_no_sense():
    """The others are among the commands whose output is on record."""
    for arguments, message in (
        ({"time_limit": 0}, "time_limit"),
        ({"names": [EASY], "methods": ["parvagpu"]}, "methods: unknown 'parvagpu'"),
        ({"kind": "nix"}, "kind: unknown 'nix'; known: batch, demand, trace, state"),
    ):
        refused(score, "sh {instance} {plan}", match=message, **arguments)


def test_a_function_beside_methods_of_our_own(tmp_path):
    found = score(far, names=TWO, time_limit=60, methods=["auto"], output=tmp_path, jobs=2)
    assert not found.interrupted
    mine, auto = sorted(found.lines, key=lambda line: line.solver)
    assert (mine.runs, mine.valid, auto.valid, auto.best) == (2, 2, 2, 2)
    assert auto.mean_ratio == pytest.approx(1)
    assert mine.mean_ratio > 1
    assert auto.profile == (1.0,) * len(FACTORS)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}{end}.json" for name in TWO for end in ("", ".auto")}
    again = {one.instance: one.value for one in score(tmp_path).scores}
    assert again == {one.instance: one.value for one in found.scores if one.solver == "far"}


def test_the_choice_of_instances():
    classes = ["1 s", "10 s", "10 min", "open"]
    assert sum(len(library().chosen(difficulty=name)) for name in classes) == len(library().chosen())
    said = r"difficulty: unknown '10min'; did you mean 10 min\?"
    assert refused(library().chosen, match=said, kind="nix", difficulty="10min") == ["kind", "difficulty"]
    with pytest.raises(InputError, match=r"^difficulty: unknown 'foo'; known: 1 s, 10 s, 10 min, 1 h, closed, open$"):
        library().chosen(difficulty="foo")


def test_methods_run_on_the_instances_that_they_are_for(tmp_path):
    names = [EASY, "services-005-1", EASY]
    found = score("true {instance} {plan}", names=names, methods=["far", "far"], output=tmp_path)
    assert sorted((one.instance, one.solver, one.status) for one in found.scores) == [
        (EASY, "mig-opt far", "valid"),
        (EASY, "true", "no plan"),
        ("services-005-1", "true", "no plan"),
    ]


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            "if __name__ == '__main__':\n    def far(batch): ...\n    score(far, names=[{easy!r}])",
            'solver: is far, which other processes do not find; define it above if __name__ == "__main__"',
        ),
        (
            "def far(batch): ...\nprint(score(far, names=[{easy!r}]))",
            'is used at the top of a file that other processes run, too; use it below if __name__ == "__main__"',
        ),
        (
            "if __name__ == '__main__':\n    pass\nelse:\n    far = None\ndef far(batch): ...\n"
            "if __name__ == '__main__':\n    print(score(far, names=[{easy!r}]))",
            "status='no plan'",
        ),
    ],
)
def test_functions_of_the_main_program(program, told, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(f"from mig_opt import score\n{program.format(easy=EASY)}\n")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert told in done.stdout + done.stderr


def test_functions_that_fail_or_cannot_be_found():
    (one,) = score(failing, names=[EASY], time_limit=30).scores
    assert one.status == "crashed"
    assert "RuntimeError: no idea" in one.reason
    refused(score, lambda batch, seconds: None, match="at the top of a file", names=[EASY])


def test_a_new_best_is_told_and_kept(tmp_path, command):
    """In a library whose best is worse than what is found."""
    shutil.copytree(DATA, tmp_path / "data")
    info = library().info(EASY)
    worse = sealed(info, best=dataclasses.replace(info.best, value=info.best.value * 2))
    write_entry(Library(tmp_path / "data"), worse)
    found = score(f"{command} well", names=[EASY], time_limit=20, output=tmp_path / "plans", library=tmp_path / "data")
    (one,) = found.scores
    assert one.new_best
    assert found.lines[0].new_best == 1
    kept = SCHEDULE.read(tmp_path / "plans" / f"{EASY}.json")
    assert kept.makespan == pytest.approx(one.value)
    (again,) = score(EASY, tmp_path / "plans" / f"{EASY}.json").scores
    assert not again.new_best
    assert again.value == one.value


@pytest.mark.deep
def test_on_a_cluster(command, tmp_path):
    with cluster_of_two() as scheduler:
        found = score(f"{command} well", names=TWO, time_limit=30, output=tmp_path / "plans", scheduler=scheduler)
    assert sorted(one.instance for one in found.scores) == sorted(TWO)
    assert all(one.valid for one in found.scores)
    assert len(list((tmp_path / "plans").iterdir())) == 2


def test_a_folder_with_plans_of_all_sorts(tmp_path):
    """One that cannot be read hides none of the others."""
    good, garbage, folder, large = "services-005-1", EASY, "rodinia-a30", "far-1xa100-008-mixed-1"
    (tmp_path / f"{good}.json").write_text(Library().text("plans", good) or "")
    (tmp_path / f"{garbage}.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / f"{folder}.json").mkdir()
    with (tmp_path / f"{large}.json").open("wb") as file:
        file.truncate(2**28)
    (tmp_path / "unknown.json").write_text("{}")
    statuses = {one.instance: one.status for one in score(tmp_path).scores}
    assert statuses == {good: "valid", garbage: "garbage", folder: "garbage", large: "garbage"}


def test_figures_of_a_score():
    def made(value: float | None, best: float) -> Score:
        return Score("a", value is not None, value, 9.0, None, best, False)

    ratios = [made(*each).ratio for each in ((11.0, 10.0), (0.0, 0.0), (0.0, 10.0), (None, 10.0))]
    assert ratios == pytest.approx([1.1, 1, 0, math.inf])
    assert Scores((made(0.0, 10.0),)).lines[0].mean_ratio is None
    (line,) = Scores((made(11.0, 10.0), made(10.0, 10.0), dataclasses.replace(made(None, 10.0), status="late"))).lines
    assert line.mean_ratio == pytest.approx(1.1**0.5)
    assert line.failed == {"late": 1}
    assert line.profile[FACTORS.index(1.0)] == pytest.approx(1 / 3)
    assert line.profile[FACTORS.index(1.1)] == pytest.approx(2 / 3)
