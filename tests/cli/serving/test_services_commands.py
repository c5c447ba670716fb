"""The commands of services alone: the same answers as under the names that they share with batches."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Command, refuses
from services_file import PROFILES, fleet, services, written

from mig_opt.cli.commands import COMMANDS


@pytest.fixture
def arguments(tmp_path: Path) -> dict[str, tuple[object, ...]]:
    """What each command needs."""
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


def test_tables_and_scenarios(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "services.csv"
    path.write_text("scenario,service,model,slo_s,rate_rps\nday,chat,bert,0.4,10\nnight,chat,bert,0.4,100\n")
    tables = written(tmp_path, "profiles.json", {"schema": "mig-opt/profiles/1", "profiles": PROFILES})
    given = ("--gpu", "A100-80GB", "--profiles", tables, "--scenario", "night", "--json")
    assert run("services", "bound", path, *given) == run("bound", path, *given)
    assert run("bound", path, *given).code == 0


def test_a_batch_is_refused(run: Command, batch_file: Path) -> None:
    refuses(run("services", "bound", batch_file), f"error: {batch_file}", "schema: this is a batch")
    refuses(run("services", "bound", "rodinia-a30"), "is a batch of tasks, not a demand of services")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name.startswith("services ")])
def test_help_shows_what_concerns_services_only(run: Command, command: str) -> None:
    own, shared = (run(*words, "--help").out for words in (command.split(), command.split()[1:]))
    for option in ("--slo-share", "--profiles", "--scenario", "--max-processes", "--whole-ms"):
        assert option in own
        assert option not in shared
    for option in ("--cost-free", "--gpus", "BATCH"):
        assert option not in own
        assert option in shared
    assert f"mig-opt {command}" in " ".join(shared.split()), "the shared one says where services are"
