"""Scripts that carry out migrations."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import Machine

from mig_opt import (
    Deployment,
    FleetState,
    HeldInstance,
    InputError,
    Migration,
    defragment,
    get_gpu,
    migration_script,
    validate_change,
)
from mig_opt.operations.rollout.changes import migrations_as_change

HOOKS = """
start_segment() { printf 'start|%s\\n' "$*" >>"$FOLDER/done"; }
stop_segment() { printf 'stop|%s\\n' "$*" >>"$FOLDER/done"; }
"""
A30 = get_gpu("A30")
STATE = FleetState(
    A30, 2, (HeldInstance(0, "1g.6gb", 0, "it's a"), HeldInstance(1, "1g.6gb", 1), HeldInstance(1, "2g.12gb", 2, "b"))
)


def test_the_validator_of_changes_finds_nothing_interrupted() -> None:
    """The same plan, seen by who checks changes of deployments: instances are disjoint, the driver does one thing."""
    result = defragment(STATE, ["4g.24gb"])
    assert result.migrations is not None
    change = migrations_as_change(STATE, result.migrations)
    before, after = change.state_after(0), change.state_after(len(change.steps))
    assert len(before.segments) == len(after.segments) == 3
    assert isinstance(after, Deployment)
    found = validate_change(before, after, change)
    assert found.valid, str(found)
    assert found.interrupted == ()


def test_a_script_migrates_without_an_interruption(tmp_path: Path) -> None:
    result = defragment(STATE, ["4g.24gb"])
    assert [str(migration) for migration in result.migrations or ()] == ["1g.6gb@0 of GPU 0 to 0 of GPU 1"]
    machine = Machine(tmp_path, "A30", "A30")
    for held in STATE.instances:
        machine.add(held.gpu, held.profile, held.start)
    done = machine.run(migration_script(STATE, result.migrations or ()), HOOKS)
    assert done.returncode == 0, done.stderr
    assert machine.placements(0) == set()
    assert machine.placements(1) == {
        A30.placement("1g.6gb", 0),
        A30.placement("1g.6gb", 1),
        A30.placement("2g.12gb", 2),
    }
    assert (tmp_path / "done").read_text().splitlines() == ["start|it's a 1 1g.6gb 0 1 1", "stop|it's a 0 1g.6gb 0 1 1"]


def test_migrations_that_cannot_be_done_are_refused() -> None:
    with pytest.raises(InputError, match="shares memory slices"):
        migration_script(STATE, [Migration(0, "1g.6gb", 0, 1, 2)])
    with pytest.raises(InputError, match="must be a FleetState"):
        migration_script("fleet.json", [])  # type: ignore[arg-type]
