"""Scripts that carry out migrations."""

import dataclasses
import socket
import subprocess

from scripts import Machine
from state_forms import state_from_text

from mig_opt import (
    Demand,
    FleetState,
    HeldInstance,
    Point,
    Pool,
    ProfileTable,
    Service,
    defragment,
    get_gpu,
    write,
)
from mig_opt.fleet.segments import deployment_in
from mig_opt.operations.rollout.changes import migration_script, migrations_as_change
from mig_opt.operations.rollout.slurm import slurm_scripts
from mig_opt.validation import validate_change

HOOKS = """
start_segment() { printf 'start|%s\\n' "$*" >>"$FOLDER/done"; }
stop_segment() { printf 'stop|%s\\n' "$*" >>"$FOLDER/done"; }
"""
A30 = get_gpu("A30")
STATE = FleetState(
    A30, 2, (HeldInstance(0, "1g.6gb", 0, "it's a"), HeldInstance(1, "1g.6gb", 1), HeldInstance(1, "2g.12gb", 2, "b"))
)


def test_the_validator_of_changes_finds_nothing_interrupted():
    """The same plan, seen by who checks changes of deployments: instances are disjoint, the driver does one thing."""
    result = defragment(STATE, ["4g.24gb"])
    change = migrations_as_change(STATE, result.migrations)
    before, after = change.state_after(0), change.state_after(len(change.steps))
    found = validate_change(before, after, change)
    assert (found.valid, found.interrupted) == (True, ()), str(found)


def test_a_script_migrates_without_an_interruption(tmp_path):
    result = defragment(STATE, ["4g.24gb"])
    assert [str(migration) for migration in result.migrations or ()] == ["1g.6gb@0 of GPU 0 to 0 of GPU 1"]
    machine = Machine(tmp_path, "A30", "A30")
    for held in STATE.instances:
        machine.add(held.gpu, held.profile, held.start)
    machine.run(migration_script(STATE, result.migrations or ()), HOOKS)
    assert machine.placements(0) == set()
    assert set(map(str, machine.placements(1))) == {"1g.6gb@0", "1g.6gb@1", "2g.12gb@2"}
    assert (tmp_path / "done").read_text().splitlines() == ["start|it's a 1 1g.6gb 0 1 1", "stop|it's a 0 1g.6gb 0 1 1"]


def test_the_gpus_of_an_imported_state_are_found_again(tmp_path):
    """GPUs 1 and 3 of a machine are 0 and 1 of the plan; their UUIDs find them even when the indices have shifted."""
    machine = Machine(tmp_path, *["A30"] * 4)
    for index in range(4):
        machine.change(index, uuid=f"GPU-{index}{index}")
    for index, held in ((1, STATE.instances[0]), (3, STATE.instances[1]), (3, STATE.instances[2])):
        machine.add(index, held.profile, held.start)
    asked = "nvidia-smi -L; for gpu in 1 3; do nvidia-smi mig -i $gpu -lgi; done"
    text = subprocess.check_output(["bash", "-c", asked], env=machine.environment, text=True)
    found = state_from_text(text).state  # GPUs 0 and 2 have no instances
    assert [str(device) for device in found.devices] == ["1", "3"]
    # The name of this machine is that of the node: no ssh is needed to get there.
    found = dataclasses.replace(found, nodes=(socket.gethostname(),) * 2)
    result = defragment(found, ["4g.24gb"])
    script = migration_script(found, result.migrations or ())
    here = socket.gethostname()
    assert f"\nGPUS=({here}/GPU-11 {here}/GPU-33)\n" in script
    machine.state = machine.state[::-1]
    machine.program("ssh", "exit 1")
    done = machine.run(script, HOOKS)
    assert [len(machine.placements(gpu)) for gpu in range(4)] == [3, 0, 0, 0]
    assert f"GPU 3 of {here}: create" in done.stderr
    assert all(f" -i GPU-{gpu} " in line for line, gpu in zip(machine.changes, ("33", "11", "11"), strict=True))


A100 = get_gpu("A100-80GB")
HELD = (
    HeldInstance(0, "1g.6gb", 0, "shop/chat-1", owner="shop/chat"),
    HeldInstance(0, "1g.6gb", 2, "shop/chat-3", owner="shop/chat"),
    HeldInstance(1, "1g.10gb", 0, "shop/chat-2", owner="shop/chat"),
    HeldInstance(1, "2g.20gb", 4, "shop/search-1", owner="shop/search"),
)
MIXED = FleetState(None, 2, HELD, nodes=("a", "b"), kinds=(A30, A100))


def test_scripts_name_the_profiles_of_each_kind():
    migrations = defragment(MIXED).migrations or ()
    assert {step.gpu for step in migrations} == {0, 1}
    assert migrations_as_change(MIXED, migrations).gpus == ("A30-24GB", "A100-80GB")
    script = migration_script(MIXED, migrations)
    assert "1g.6gb" in script
    assert "1g.10gb" in script
    files = slurm_scripts(MIXED, migrations)
    assert {"node-a.sh", "node-b.sh"} < files.keys()
    assert "1g.10gb" not in files["node-a.sh"]
    assert "[a]='1g.6gb:" in files["controller.sh"]


def test_what_runs_on_several_kinds_is_a_deployment(run, tmp_path):
    points = Point(1, 8, 1, 10.0, 0.01), Point(2, 8, 1, 21.0, 0.01)
    tables = tuple(ProfileTable(model, gpu.name, points) for model in ("chat", "search") for gpu in (A30, A100))
    pools = Pool(A30, 1), Pool(A100, 1, cost=2.2)
    wanted = Demand((Service("chat", 1.0, 19.0), Service("search", 1.0, 20.0)), tables, pools)
    running = deployment_in(MIXED, wanted)
    assert running.gpus == ("A30-24GB", "A100-80GB")
    assert {segment.service for segment in running.segments} == {"chat", "search"}
    services, state = tmp_path / "services.json", tmp_path / "state.json"
    write(wanted, services)
    write(MIXED, state)
    ended = run("deploy", services, "--from", state, "--json")
    # One A30 is enough for all of it: the A100 is left.
    assert (ended.code, ended.json["cost"], ended.json["status"]) == (0, 1, "optimal")
    assert ended.json["change"]["interrupted"] == []
