"""The commands of services alone: the same answers as under the names that they share with batches."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Command
from services_file import fleet, services


@pytest.fixture
def arguments(tmp_path: Path) -> dict[str, tuple[object, ...]]:
    """Arguments that each command needs."""
    demand, plan = services(tmp_path), fleet(tmp_path)
    return {
        "validate": (demand, plan),
        "bound": (demand,),
        "plot": (demand, plan, tmp_path / "plan.svg"),
        "script": (demand, plan, tmp_path / "plan.sh"),
    }


@pytest.mark.parametrize("options", [(), ("--slo-share", "0.4", "--max-processes", "1"), ("--no-whole-ms",)])
@pytest.mark.parametrize("command", ["validate", "bound", "plot", "script"])
def test_both_spellings_are_the_same(
    run: Command, arguments: dict[str, tuple[object, ...]], command: str, options: tuple[str, ...]
) -> None:
    old = run(command, *arguments[command], *options)
    made = {path: path.read_bytes() for path in arguments[command][2:] if isinstance(path, Path) and path.exists()}
    assert run("services", command, *arguments[command], *options) == old
    assert {path: path.read_bytes() for path in made} == made
    if command in ("validate", "bound"):
        assert run("services", command, *arguments[command], *options, "--json") == run(
            command, *arguments[command], *options, "--json"
        )


@pytest.mark.parametrize("command", ["services validate", "services bound", "services plot", "services script"])
def test_help_shows_what_concerns_services_only(run: Command, command: str) -> None:
    own, shared = (run(*words, "--help").out for words in (command.split(), command.split()[1:]))
    for option in ("--slo-share", "--profiles", "--scenario", "--max-processes", "--whole-ms"):
        assert option in own
        assert option not in shared
    for option in ("--cost-free", "--gpus", "BATCH"):
        assert option not in own
        assert option in shared
    assert f"mig-opt {command}" in " ".join(shared.split()), "the shared one says where services are"
