"""The command profile."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Command
from nvml_machine import Machine

from mig_opt.files.serving.profiles import PROFILES

pytestmark = pytest.mark.usefixtures("nobody_else")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Machine(tmp_path, "A30").loaded() as found:
        yield found


def commands(folder: Path, **tables: dict[str, list[str]]) -> Path:
    path = folder / "commands.json"
    path.write_text(json.dumps({"schema": "mig-opt/commands/1", **tables}))
    return path


def test_models_and_failures(run: Command, machine: Machine, tmp_path: Path) -> None:
    path, out = commands(tmp_path, models={"r": ["echo", "throughput=3 latency=0.5"]}), tmp_path / "profiles.json"
    words = ["--commands", path, "--gpu", "A30", "-o", out, "--repetitions", 1, "--sizes", "2", "--batches", "1,2"]
    outcome = run("profile", *words)
    assert outcome.code == 0, outcome.err
    assert "r: 6 points" in outcome.out
    assert len(PROFILES.read(out)[0].points) == 6
    path = commands(tmp_path, tasks={"a": ["false"]})
    outcome = run("profile", "--commands", path, "--gpu", "A30", "-o", tmp_path / "b.json", "--sizes", "4")
    assert outcome.code == 1
    assert "a on 4g: exit code 1" in outcome.out
    assert "Nothing written" in outcome.out
