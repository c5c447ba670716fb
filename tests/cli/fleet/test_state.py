"""Plans that start from a state, also of several kinds of GPUs: solve --from and deploy --from."""

import dataclasses
import re

import pytest
from command_line import refuses
from documents import complaints, refused

from mig_opt import Batch, Device, FleetState, HeldInstance, LiveInstance, get_gpu, load, read, write
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.fleet.states import STATE as STATE_FILE
from mig_opt.fleet.segments import deployment_in

A30, A100 = get_gpu("A30"), get_gpu("A100-80GB")
HELD = HeldInstance(0, "1g.6gb", 3, idle=True), HeldInstance(1, "2g.12gb", 0, "job 7", owner="ada")
STATE = FleetState(A30, 2, HELD)


@pytest.fixture
def state_file(tmp_path):
    path = tmp_path / "state.json"
    STATE_FILE.write(STATE, path)
    return path


def test_the_batch_as_planned_is_what_other_commands_take(run, state_file, tmp_path):
    table, saved, plan = tmp_path / "runs.csv", tmp_path / "saved.json", tmp_path / "plan.json"
    table.write_text("task,t1_s,t2_s\na,4,2.5\nb,3,2\n")
    given = ("solve", table, "--from", state_file, "--busy-until", 2, "-o", plan)  # the state names the GPU
    without = run(*given)
    assert without.code == 0
    assert "validate, plot, script and run need the instances too: add --save-batch FILE." in without.out
    assert run("validate", table, plan, "--gpu", "A30").code == 1
    ended = run(*given, "--save-batch", saved)
    assert f"Batch written to {saved}." in ended.out
    assert "add --save-batch" not in ended.out
    assert BATCH.read(saved).initial == STATE.live_instances(2)
    assert run("validate", saved, plan).code == 0
    assert run("script", saved, plan, tmp_path / "plan.sh").code == 0
    assert "1g.6gb at 3 exists" in (tmp_path / "plan.sh").read_text()
    refuses(run(*given, "--save-batch", plan), "is wanted for both schedule and batch")


def test_plans_keep_the_gpus_of_the_state(run, batch_file, state_file, tmp_path):
    """GPUs 1 and 3 of a node: on screens, in the batch that is saved, and in the script for it."""
    state = dataclasses.replace(STATE, nodes=("n1", "n1"), indices=(1, 3), uuids=("GPU-b", "GPU-d"))
    STATE_FILE.write(state, state_file)
    saved, plan, out = tmp_path / "saved.json", tmp_path / "plan.json", tmp_path / "plan.sh"
    given = ("--from", state_file, "--busy-until", 2, "--save-batch", saved, "-o", plan)
    assert "3 of n1  2g.12gb@0" in run("solve", batch_file, *given).out
    assert BATCH.read(saved).devices == state.devices
    assert run("script", saved, plan, out).code == 0
    assert "\nGPUS=(n1/GPU-b n1/GPU-d)\n" in out.read_text()
    assert run("script", saved, plan, out, "--devices", "0,1").code == 0
    assert "\nGPUS=(0 1)\n" in out.read_text()
    assert run("validate", saved, plan).code == 0
    assert "(2g.12gb@0 of GPU 3 of n1)" in run("solve", batch_file, "--from", state_file).err
    assert "on GPU 3 of n1 exists" in run("explain", saved, "--time-limit", 5).out
    moved = run("defragment", state_file, "--for", "4g.24gb")
    assert "room for       4g.24gb@0 of GPU 1 of n1" in moved.out
    assert run("defragment", state_file, "--for", "4g.24gb", "--script", out).code == 0
    assert "\nGPUS=(n1/GPU-b n1/GPU-d)\n" in out.read_text()


def test_deployments_keep_the_gpus_of_the_state(run, tmp_path):
    path, plan, out = tmp_path / "state.json", tmp_path / "plan.json", tmp_path / "plan.sh"
    held = (HeldInstance(0, "2g.20gb", 0, "densenet121"), HeldInstance(1, "1g.10gb", 4, "inceptionv3"))
    STATE_FILE.write(FleetState(A100, 2, held, indices=(1, 3), uuids=("GPU-b", "GPU-d")), path)
    ended = run("deploy", "parvagpu-s1", "--from", path, "-o", plan)
    assert re.search(r"^3    1g\.10gb@\d +inceptionv3 ", ended.out, re.MULTILINE)
    assert "GPUS=(GPU-b GPU-d)\n" in run("deploy", "parvagpu-s1", "--from", path, "--export", "nvidia-smi").out
    assert run("services", "script", "parvagpu-s1", plan, out).code == 0
    assert "\nGPUS=(GPU-b GPU-d)\nNAMES" in out.read_text().replace("\n# What messages call each of them.", "")
    assert run("services", "script", "parvagpu-s1", plan, out, "--devices", "5,6").code == 0
    assert "\nGPUS=(5 6)\n" in out.read_text()
    parted = run("deploy", "parvagpu-s1", "--from", path, "--export", "mig-parted")
    assert re.findall(r"devices: \[(.*)\]", parted.out) == ["1", "3"]
    # The second GPU that is needed is a new one, of which nobody knows where it is.
    STATE_FILE.write(FleetState(A100, 1, held[:1], indices=(3,)), path)
    unknown = run("deploy", "parvagpu-s1", "--from", path, "--export", "mig-parted")
    refuses(unknown, "--devices: must name 2, one for each GPU, and only those of the first 1 are known")


def test_instances_of_others_are_named():
    demand = load("parvagpu-s1")
    held = HeldInstance(0, "2g.20gb", 0, "lab/train", owner="lab/train"), HeldInstance(0, "1g.10gb", 2)
    first, second = complaints(deployment_in, FleetState(A100, 1, held), demand)
    assert first.startswith("instances[0]: is in use by lab/train, which is no service; known: ")
    assert second.startswith("instances[1]: is in use by nobody that the state names")
    state = FleetState(get_gpu("A100"), 1, (HeldInstance(0, "2g.10gb", 0, "bert"),))
    refused(deployment_in, state, demand, match=r"no figures of bert on 2g\.10gb of A100-40GB")


A100_40 = get_gpu("A100")
TABLE = "task,gpu,t1_s,t2_s\na,A30,5,3\na,A100,3,2\nb,A100,3,2\nc,A30,9,8\n"
MIXED = (HeldInstance(2, "2g.12gb", 0, "x"), HeldInstance(1, "1g.5gb", 0, idle=True))


@pytest.mark.parametrize(
    ("kinds", "order"), [((A30, A100_40, A30), (0, 2, 1)), ((A30, A30, A100_40), ()), ((A100_40, A30, A30), ())]
)
def test_a_table_is_planned_on_the_gpus_of_a_mixed_state(run, tmp_path, kinds, order):
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    held = tuple(one for one in MIXED if one.profile in {profile.name for profile in kinds[one.gpu].profiles})
    write(FleetState(None, 3, held, kinds=kinds), tmp_path / "s.json")
    given = ("--from", tmp_path / "s.json", "--busy-until", 5, "--save-batch", tmp_path / "b.json")
    assert run("solve", tmp_path / "t.csv", *given, "--method", "lpt").code == 0
    batch = read(Batch, tmp_path / "b.json")
    assert {pool.gpu: pool.count for pool in batch.pools} == {A30: 2, A100_40: 1}
    assert batch.devices == tuple(map(Device, order))
    if order:
        assert batch.initial == (LiveInstance(1, "2g.12gb", 0, 5.0), LiveInstance(2, "1g.5gb", 0))
    # The batch that was written is planned on another state likewise.
    write(batch, tmp_path / "other.json")
    again = run("solve", tmp_path / "other.json", *given, "--method", "lpt")
    assert (again.code, read(Batch, tmp_path / "b.json")) == (0, batch)


@pytest.mark.parametrize("command", [("simulate",), ("trace", "describe")])
def test_a_job_that_can_run_nowhere_is_told_with_its_file(run, tmp_path, command):
    job = '{"name": "a", "arrival": 0, "times": {"A30": {"1": 5}}, "memory_gb": 7}'
    pools = '[{"gpu": "A100", "count": 1}, {"gpu": "A30", "count": 1}]'
    path = tmp_path / "t.json"
    path.write_text(f'{{"schema": "mig-opt/trace/1", "pools": {pools}, "jobs": [{job}]}}', encoding="utf-8")
    refuses(run(*command, path), str(path), "give it seconds on a larger size, or leave it out")
