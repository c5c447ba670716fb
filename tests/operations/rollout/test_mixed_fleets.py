"""Fleets with several kinds of GPUs: scripts of their migrations, and services that run on them."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Command

from mig_opt import Demand, FleetState, HeldInstance, Point, Pool, ProfileTable, Service, defragment, get_gpu, write
from mig_opt.fleet.segments import deployment_in
from mig_opt.operations.rollout.changes import migration_script, migrations_as_change
from mig_opt.operations.rollout.slurm import slurm_scripts

A30, A100 = get_gpu("A30"), get_gpu("A100-80GB")
HELD = (
    HeldInstance(0, "1g.6gb", 0, "shop/chat-1", owner="shop/chat"),
    HeldInstance(0, "1g.6gb", 2, "shop/chat-3", owner="shop/chat"),
    HeldInstance(1, "1g.10gb", 0, "shop/chat-2", owner="shop/chat"),
    HeldInstance(1, "2g.20gb", 4, "shop/search-1", owner="shop/search"),
)
STATE = FleetState(None, 2, HELD, nodes=("a", "b"), kinds=(A30, A100))


def test_scripts_name_the_profiles_of_each_kind() -> None:
    result = defragment(STATE)
    assert {step.gpu for step in result.migrations or ()} == {0, 1}
    change = migrations_as_change(STATE, result.migrations or ())
    assert change.gpus == ("A30-24GB", "A100-80GB")
    script = migration_script(STATE, result.migrations or ())
    assert "1g.6gb" in script
    assert "1g.10gb" in script
    files = slurm_scripts(STATE, result.migrations or ())
    assert {"node-a.sh", "node-b.sh"} < files.keys()
    assert "1g.10gb" not in files["node-a.sh"]
    assert "[a]='1g.6gb:" in files["controller.sh"]


def demand(*pools: Pool) -> Demand:
    points = Point(1, 8, 1, 10.0, 0.01), Point(2, 8, 1, 21.0, 0.01)
    tables = [ProfileTable(model, gpu.name, points) for model in ("chat", "search") for gpu in (A30, A100)]
    return Demand((Service("chat", 1.0, 19.0), Service("search", 1.0, 20.0)), tuple(tables), pools)


def test_what_runs_on_several_kinds_is_a_deployment(run: Command, tmp_path: Path) -> None:
    wanted = demand(Pool(A30, 1), Pool(A100, 1, cost=2.2))
    running = deployment_in(STATE, wanted)
    assert running.gpus == ("A30-24GB", "A100-80GB")
    assert {segment.service for segment in running.segments} == {"chat", "search"}
    write(wanted, tmp_path / "services.json")
    write(STATE, tmp_path / "state.json")
    ended = run("deploy", str(tmp_path / "services.json"), "--from", str(tmp_path / "state.json"), "--json")
    found = json.loads(ended.out)
    # One A30 is enough for all of it: the A100 is left.
    assert (ended.code, found["cost"], found["status"]) == (0, 1, "optimal")
    assert found["change"]["interrupted"] == []
