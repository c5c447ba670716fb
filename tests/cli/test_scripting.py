"""The command script."""

from pathlib import Path

import pytest
from command_line import Command, without_operations
from scripts import Machine

HOOKS = 'run_task() { echo "$1" >>"$FOLDER/ran"; }'


@pytest.mark.deep
@pytest.mark.parametrize("bare", [False, True])
def test_the_script_carries_out_the_schedule(run: Command, batch_file: Path, plan_file: Path, bare: bool) -> None:
    folder = plan_file.parent
    plan, out = without_operations(plan_file) if bare else plan_file, folder / "go on.sh"
    outcome = run("script", batch_file, plan, out)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"Script written to {out}. Usage: bash '{out}' HOOKS\n"
    Machine(folder, "A30").run(out.read_text(), HOOKS)
    assert sorted((folder / "ran").read_text().split()) == ["a", "b", "c"]


# --- deployments -----------------------------------------------------------------------------------------------------
