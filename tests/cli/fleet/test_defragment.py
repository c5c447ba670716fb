"""mig-opt defragment."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, called, refuses

from mig_opt import FleetState, HeldInstance, defragment, get_gpu
from mig_opt.files.fleet.states import read_state, write_state
from mig_opt.fleet.state import DefragmentationResult
from mig_opt.method.result import Status

A100 = get_gpu("A100")
STATE = FleetState(
    A100,
    3,
    (
        HeldInstance(0, "1g.5gb", 2, "chat"),
        HeldInstance(0, "2g.10gb", 4, "train"),
        HeldInstance(1, "2g.10gb", 0, "stays", pinned=True),
        HeldInstance(2, "7g.40gb", 0, "large"),
    ),
)


@pytest.fixture
def mig_opt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_state(STATE, tmp_path / "fleet.json")
    return lambda *arguments: called(capsys, "defragment", *arguments)


def test_room_is_shown_with_maps_and_steps(mig_opt: Command) -> None:
    code, out, err = mig_opt("fleet.json", "--for", "4g.20gb")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    # 1g@2 is in the way of 4g@0; a pinned instance holds 2g@0 of GPU 1.
    assert "  0  |..|..|1g|..|2g   |..|..|  |..|" in out
    assert "2 GPUs stay alike" in out or "1 GPU stays alike" in out
    for text in ("status         optimal", "migrations     1", "room for       4g.20gb@0 of GPU 0", "chat"):
        assert text in out


def test_json_has_the_whole_plan(mig_opt: Command) -> None:
    document = mig_opt("fleet.json", "--for", "7g.40gb", "--json").json
    assert (document["status"], document["migrations"], document["lower_bound"]) == ("optimal", 2, 2)
    assert [step["to_gpu"] for step in document["steps"]] == [1, 1]
    assert document["room"] == [{"gpu": 0, "profile": "7g.40gb", "start": 0}]


def test_least_fragmentation_is_the_goal_by_default(mig_opt: Command) -> None:
    document = mig_opt("fleet.json", "--json").json
    assert document["proven"] == ["fragmentation", "migrations"]
    assert document["fragmentation"] == document["least_fragmentation"] < document["fragmentation_before"]
    limited = mig_opt("fleet.json", "--fragmentation", "100%", "--json").json
    assert limited["steps"] == []
    within = mig_opt("fleet.json", "--within-gpus", "--most-migrations", 1, "--json").json
    assert all(step["gpu"] == step["to_gpu"] for step in within["steps"])


def test_without_a_plan_the_answer_is_no(mig_opt: Command) -> None:
    code, out, _ = mig_opt("fleet.json", "--for", "2x7g.40gb")
    assert code == 1
    assert "infeasible: no arrangement of these instances on these GPUs has that room" in out
    code, out, err = mig_opt("fleet.json", "--for", "2x7g.40gb", "--json", "-o", "after.json")
    assert (code, json.loads(out)["migrations"]) == (1, None)
    assert "infeasible" in err
    assert not Path("after.json").exists()


def test_ctrl_c_before_a_plan_is_found(mig_opt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> DefragmentationResult:
        found = defragment(*arguments, **options)
        return dataclasses.replace(found, status=Status.INTERRUPTED, plan=None)

    monkeypatch.setattr("mig_opt.api.defragment.defragment", interrupted)
    code, out, _ = mig_opt("fleet.json", "-o", "after.json")
    assert code == 130
    assert "\ninterrupted before a plan was found\n\nThere is no plan to write to after.json.\n" in out


def test_files_are_written(mig_opt: Command) -> None:
    code, out, _ = mig_opt("fleet.json", "--for", "7g.40gb", "-o", "after.json", "--script", "go.sh")
    assert code == 0
    assert "Script written to go.sh. Usage: bash go.sh HOOKS" in out
    assert mig_opt("after.json", "--for", "7g.40gb", "--json").json["migrations"] == 0
    assert {held.name for held in read_state("after.json").instances} == {"chat", "train", "stays", "large"}
    assert Path("go.sh").read_text().startswith("#!/usr/bin/env bash")


def test_a_table_needs_a_gpu(mig_opt: Command) -> None:
    Path("fleet.csv").write_text("gpu,profile,start\n0,1g.5gb,0\n")
    assert mig_opt("fleet.csv", "--gpu", "A100", "--for", "4g.20gb", "--json").json["migrations"] == 1
    refuses(mig_opt("fleet.csv"), "a CSV file does not name its GPU")


def test_everything_wrong_is_told_at_once(mig_opt: Command) -> None:
    refuses(
        mig_opt("none.json", "--for", ",", "--most-migrations", -1, "--devices", "0,0"),
        "--for: must name 1 to 10000 instances",
        "--most-migrations: must be from 0",
        "--devices: is for --script; leave it out",
        "none.json: no such file",
    )
    refuses(mig_opt("fleet.json", "--for", "2x3g.2gb"), "--for: A100-40GB has no profile '3g.2gb'; did you mean")
    refuses(
        mig_opt("fleet.json", "--for", "1g.5gb", "--fragmentation", "0.1", "-o", "fleet.json"),
        "--fragmentation: is another goal than --for",
        "fleet.json: is read as well",
    )
    refuses(mig_opt("fleet.json", "--script", "a.sh", "--devices", "0,1"), "--devices")
    refuses(mig_opt("fleet.json", "-o", "a", "--script", "./a"), "a: is wanted for both state and script; name two")


def test_many_gpus_and_migrations_are_cut(mig_opt: Command) -> None:
    held = tuple(HeldInstance(gpu, "1g.5gb", 0) for gpu in range(60))
    write_state(FleetState(A100, 60, held), "many.json")
    _, out, _ = mig_opt("many.json", "--within-gpus")
    assert "The first 40 of 60 GPUs that change are shown." in out
    assert "The first 40 of 60 migrations; --json gives every one." in out


def test_how_long_the_operations_take(mig_opt: Command, tmp_path: Path) -> None:
    # Two migrations to one GPU: it creates both, and then the other one destroys the second.
    plan = mig_opt("fleet.json", "--for", "7g.40gb", "--costs", "nvidia-smi")
    assert "operations     3.0 s (nvidia-smi)" in plan.out
    assert "operations" not in mig_opt("fleet.json", "--for", "7g.40gb").out
    document = mig_opt("fleet.json", "--for", "7g.40gb", "--costs", "kubernetes", "--json").json
    assert document["operations_s"] == pytest.approx(2 * 4.4 + 1)
    assert "not published" in document["operations_source"]
    refuses(mig_opt("fleet.json", "--costs", "tables"), "--costs: no such file, and no table of costs of that name")
