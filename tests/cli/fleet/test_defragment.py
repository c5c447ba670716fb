"""mig-opt defragment."""

import dataclasses
import functools
from typing import Any

import pytest

from mig_opt import DefragmentationResult, FleetState, HeldInstance, Status, defragment, get_gpu
from mig_opt.files.fleet.states import STATE as STATE_FILE

A100 = get_gpu("A100")
HELD = (
    HeldInstance(0, "1g.5gb", 2, "chat"),
    HeldInstance(0, "2g.10gb", 4, "train"),
    HeldInstance(1, "2g.10gb", 0, "stays", pinned=True),
    HeldInstance(2, "7g.40gb", 0, "large"),
)
STATE = FleetState(A100, 3, HELD)


@pytest.fixture
def mig_opt(narrow):
    STATE_FILE.write(STATE, "fleet.json")
    return functools.partial(narrow, "defragment")


def test_ctrl_c_before_a_plan_is_found(mig_opt, monkeypatch):
    def interrupted(*arguments: Any, **options: Any) -> DefragmentationResult:
        found = defragment(*arguments, **options)
        return dataclasses.replace(found, status=Status.INTERRUPTED, plan=None)

    monkeypatch.setattr("mig_opt.api.defragment.defragment", interrupted)
    code, out, _ = mig_opt("fleet.json", "-o", "after.json")
    assert code == 130
    assert "\ninterrupted before a plan was found\n\nThere is no plan to write to after.json.\n" in out


def test_many_gpus_and_migrations_are_cut(mig_opt):
    held = tuple(HeldInstance(gpu, "1g.5gb", 0) for gpu in range(60))
    STATE_FILE.write(FleetState(A100, 60, held), "many.json")
    _, out, _ = mig_opt("many.json", "--within-gpus")
    assert "The first 40 of 60 GPUs that change are shown." in out
    assert "The first 40 of 60 migrations are shown; --json has all." in out
