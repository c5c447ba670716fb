"""The scripts for Slurm change a real cluster, unedited: what a site has elsewhere is in the environment."""

import os
import signal
import subprocess
from collections.abc import Mapping

import pytest
from scripts import ended
from slurm_cluster import Cluster, cluster

from mig_opt import FleetState, HeldInstance, Migration, get_gpu
from mig_opt.operations.rollout.slurm import slurm_scripts

HELD = (
    HeldInstance(0, "1g.5gb", 0, "job 1"),
    HeldInstance(0, "1g.5gb", 1, "job 2"),
    HeldInstance(0, "3g.20gb", 4, "job 3"),
    HeldInstance(1, "2g.10gb", 0, "job 4"),
    HeldInstance(2, "2g.10gb", 0, "job 5"),
)
STATE = FleetState(get_gpu("A100"), 3, HELD, nodes=("n1", "n1", "n2"))
MOVE = [Migration(0, "1g.5gb", 1, 2, 6, "job 2")]
ROOM = [(1, "3g.20gb", 4)]
WHOLE = "File=DEV/nvidia2 Cores=0-3"
OLD = {"n1": "gpu:a100,gpu:a100_1g.5gb:2,gpu:a100_2g.10gb:1,gpu:a100_3g.20gb:1,shard:4", "n2": "gpu:a100_2g.10gb:1"}
NEW = {
    "n1": "gpu:a100,gpu:a100_1g.5gb:1,gpu:a100_2g.10gb:1,gpu:a100_3g.20gb:2,shard:4",
    "n2": "gpu:a100_2g.10gb:1,gpu:a100_1g.5gb:1",
}


@pytest.fixture
def slurm(tmp_path):
    """Two GPUs with instances and one that is whole, and divided by shards, on the first node."""
    with cluster(tmp_path / "s", {"n1": ("A100", "A100", "A100"), "n2": ("A100",)}) as made:
        lines = ["# the site's \\"]
        for held in HELD:
            node, gpu = STATE.nodes[held.gpu], STATE.devices[held.gpu].index
            made.machines[node].add(gpu, held.profile, held.start)
            number = made.machines[node].state[gpu]["instances"][-1]["id"]
            files = f"MultipleFiles={made.caps(gpu, number)} Cores=0-3 AutoDetect=off"
            lines.append(f"NodeName={node} Name=gpu Type=a100_{held.profile} \\ # goes on\n  {files}")
        lines += [f"NodeName=n1 Name=gpu Type=a100 \\\n  {WHOLE}", f"NodeName=n1 Name=shard Count=4 {WHOLE}"]
        made.describe(OLD, "\n".join(lines) + "\n", kinds="gpu,shard")
        made.start()
        _write(made, slurm_scripts(STATE, MOVE, room=ROOM))
        yield made


def _write(slurm: Cluster, files: Mapping[str, str]) -> None:
    folder = slurm.root.parent / "scripts"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def controller(slurm: Cluster, *words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    environment = slurm.environment | {"POLL_SECONDS": "0.2", "START_SECONDS": "60"} | more
    return ended("bash", slurm.root.parent / "scripts" / "controller.sh", *words, code=code, env=environment)


def layouts(slurm: Cluster) -> list[set[str]]:
    return [
        {str(one) for one in slurm.machines[node].placements(gpu)} for node, gpu in (("n1", 0), ("n1", 1), ("n2", 0))
    ]


def conf(slurm: Cluster) -> list[str]:
    return [(slurm.root / "etc" / name).read_text() for name in ("nodes.conf", "gres.conf")]


BEFORE = [{"1g.5gb@0", "1g.5gb@1", "3g.20gb@4"}, {"2g.10gb@0"}, {"2g.10gb@0"}]
AFTER = [{"1g.5gb@0", "3g.20gb@4"}, {"2g.10gb@0", "3g.20gb@4"}, {"2g.10gb@0", "1g.5gb@6"}]


def test_a_change_is_carried_out_node_by_node(slurm):
    before = conf(slurm)
    checked = controller(slurm, "check")
    assert checked.stderr == ""
    assert checked.stdout.splitlines() == [f"n1: Gres={NEW['n1']}", f"n2: Gres={NEW['n2']}"]
    assert (layouts(slurm), conf(slurm)) == (BEFORE, before)
    # The node with this job is drained until it has ended; the job on the other node goes on and is waited for later.
    drained = "scontrol show node $SLURMD_NODENAME 2>&1 | grep -q DRAIN"
    jobs = [
        slurm.submit(f"until {drained}; do sleep 0.3; done; sleep 4; echo done", f"--gres={kind}", "-w", node)
        for kind, node in (("gpu:a100:1", "n1"), ("gpu:a100_2g.10gb:1", "n2"))
    ]
    slurm.until(lambda: all(slurm.job(job) == "RUNNING" for job in jobs))
    stranded = slurm.submit("echo late", "--gres=gpu:a100_1g.5gb:2", "--begin=now+1hour")
    ended = controller(slurm)
    told = f"Job {stranded}, which is pending, wants 2 of a100_1g.5gb: no node will have them any more."
    assert told in ended.stdout.splitlines()
    assert f"n1: waiting for the jobs {jobs[0]}" in ended.stderr
    assert [slurm.output(job) for job in jobs] == ["done", "done"]
    assert layouts(slurm) == AFTER
    slurm.until(lambda: set(slurm.states().values()) == {"IDLE"})
    after = conf(slurm)
    assert [line.partition(" Gres=")[2] for line in after[0].splitlines() if line.startswith("NodeName")] == [
        *NEW.values()
    ]
    kept = [
        "# the site's \\",
        "NodeName=n1 Name=gpu Type=a100 \\",
        f"  {WHOLE}",
        f"NodeName=n1 Name=shard Count=4 {WHOLE}",
    ]
    kept = [line.replace("DEV", str(slurm.root / "dev")) for line in kept]
    assert [line for line in after[1].splitlines() if "MultipleFiles" not in line] == kept
    instances = [line for line in after[1].splitlines() if "MultipleFiles" in line]
    assert len(instances) == 6
    assert all("Cores=0-3" in line and "AutoDetect=off" in line for line in instances)
    # What is new can be used, and so can what was kept.
    wanted = (("n1", "gpu:a100_3g.20gb:2"), ("n2", "gpu:a100_1g.5gb:1"), ("n1", "gpu:a100:1"), ("n1", "shard:3"))
    for node, kind in wanted:
        assert slurm.output(slurm.submit("echo $SLURMD_NODENAME", f"--gres={kind}", "-w", node)) == node
    again = controller(slurm)
    assert again.stderr == ""
    assert "as it is" in again.stdout


@pytest.mark.deep
def test_what_fails_is_taken_back(slurm):
    before = conf(slurm)
    # The driver refuses the second creation.
    machine = slurm.machines["n1"]
    machine.first('[[ "$*" == *"-cgi 9:4"* ]] && { echo Insufficient Resources; exit 6; }')
    ended = controller(slurm, code=1)
    assert ended.stdout.splitlines()[2:] == []
    assert "Insufficient Resources" in ended.stderr
    last = "n1: the change failed and was taken back; the nodes after it have not been touched."
    assert ended.stderr.splitlines()[-1] == last
    assert (layouts(slurm), conf(slurm)) == (BEFORE, before)
    slurm.until(lambda: set(slurm.states().values()) == {"IDLE"})
    assert slurm.output(slurm.submit("echo ran", "--gres=gpu:a100_1g.5gb:2", "-w", "n1")) == "ran"
    machine.first("")
    controller(slurm)
    assert layouts(slurm) == AFTER


@pytest.mark.deep
def test_a_node_that_slurm_takes_for_invalid_is_taken_back(slurm):
    # A program of the site writes another file before slurmd starts, which finds less than Slurm expects.
    before = conf(slurm)
    once = f"[[ -e {slurm.root}/spoilt ]] || sed -i /n1.*MultipleFiles/d {slurm.root}/etc/gres.conf"
    slurm.program("spoil", f"{once}\ntouch {slurm.root}/spoilt")
    ended = controller(slurm, code=1, SHARE_CONF=str(slurm.root / "bin" / "spoil"))
    assert "error: Slurm takes n1 for invalid; the log of slurmctld says why" in ended.stderr
    assert (layouts(slurm), conf(slurm)) == (BEFORE, before)
    slurm.until(lambda: set(slurm.states().values()) == {"IDLE"})


@pytest.mark.deep
@pytest.mark.parametrize("end", [signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_the_end_of_a_run_that_waits_for_jobs_gives_the_node_back(slurm, end):
    before = conf(slurm)
    job = slurm.submit("sleep 100", "--gres=gpu:a100:1", "-w", "n1")
    slurm.until(lambda: slurm.job(job) == "RUNNING")
    path = slurm.root.parent / "scripts" / "controller.sh"
    process = subprocess.Popen(["bash", path], env=slurm.environment, start_new_session=True)
    slurm.until(lambda: "DRAIN" in slurm.states()["n1"])
    os.killpg(process.pid, end)
    assert process.wait(timeout=30) != 0
    if end == signal.SIGKILL:
        controller(slurm, "undo")
    slurm.until(lambda: slurm.states() == {"n1": "MIXED", "n2": "IDLE"})
    assert slurm.job(job) == "RUNNING"
    assert (layouts(slurm), conf(slurm)) == (BEFORE, before)


@pytest.mark.deep
@pytest.mark.parametrize("stage", ["destroy", "restart"])
def test_a_run_that_is_killed_is_taken_back_by_undo(slurm, stage):
    before, drained = conf(slurm), stage == "destroy"
    if drained:
        slurm.run("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=broken fan")
    hang = f"touch {slurm.root}/hangs; sleep 1000"
    machine = slurm.machines["n1"]
    if drained:
        machine.first(f'if [[ "$*" == *-cgi* ]]; then {hang}; fi')
    path = slurm.root.parent / "scripts" / "controller.sh"
    slurm.program("hang", hang)
    more = {"RESTART_SLURMCTLD": str(slurm.root / "bin" / "hang")} if stage == "restart" else {}
    process = subprocess.Popen(["bash", path], env=slurm.environment | more, start_new_session=True)
    slurm.until((slurm.root / "hangs").exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    slurm.run("flock", slurm.root / "etc" / "slurm.conf", "true")  # its group holds the lock until all of it has ended
    machine.first("")
    refused = controller(slurm, code=1)
    assert "n1: a change has begun and not ended; take it back with:" in refused.stderr
    controller(slurm, "undo")
    assert (layouts(slurm), conf(slurm)) == (BEFORE, before)
    slurm.until(lambda: slurm.states() == {"n1": "IDLE+DRAIN" if drained else "IDLE", "n2": "IDLE"})


def test_nothing_begins_where_something_has_changed(slurm):
    before = conf(slurm)
    slurm.machines["n2"].add(0, "1g.5gb", 4)
    ended = controller(slurm, code=1)
    assert "error: GPU 0 of n2 (0): instance 3 (profile 19 at slice 4) is in the way; destroy it first" in ended.stderr
    assert ended.stderr.splitlines()[-1] == "Nothing has been changed."
    (slurm.root / "etc" / "nodes.conf").write_text(before[0].replace("a100_3g.20gb:1", "a100_3g.20gb:3"))
    ended = controller(slurm, code=1)
    assert "error: n1 has 3 of a100_3g.20gb in Slurm, and 1 in the plan" in ended.stderr
    assert set(slurm.states().values()) == {"IDLE"}


@pytest.mark.deep
def test_a_node_that_was_drained_stays_so(slurm):
    slurm.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=broken fan")
    ended = controller(slurm)
    assert "n2 stays drained, as it was" in ended.stderr
    slurm.until(lambda: slurm.states() == {"n1": "IDLE", "n2": "IDLE+DRAIN"})
    assert "Reason=broken fan" in slurm.run("scontrol", "show", "node", "n2")
    assert layouts(slurm) == AFTER


DETECT = r"""sed 's/NodeName=\([^ ]*\).*Gres=\(.*\)/\1 \2/' ROOT/etc/nodes.conf | while read -r node value; do
  for gres in ${value//,/ }; do
    IFS=: read -r name kind count <<<"$gres"
    for ((count = ${count:-1}; count > 0; count--)); do
      echo "NodeName=$node Name=gpu Type=$kind File=ROOT/dev/nvidia-caps/nvidia-cap$((3 + n++))"
    done
  done
done >ROOT/etc/gres.conf"""


@pytest.mark.deep
def test_where_autodetect_finds_the_instances_only_the_line_of_the_node_changes(slurm):
    """This Slurm is built without NVML: a program writes what AutoDetect would find, before each start."""
    etc, changed = slurm.root / "etc", [text.replace("a100_", "nvidia_a100_") for text in conf(slurm)]
    (etc / "nodes.conf").write_text(changed[0].replace(",shard:4", ""))
    (etc / "slurm.conf").write_text((etc / "slurm.conf").read_text().replace("GresTypes=gpu,shard", "GresTypes=gpu"))
    (etc / "auto.conf").write_text("AutoDetect=nvml\n")
    slurm.program("detect", DETECT.replace("ROOT", str(slurm.root)))
    slurm.run(slurm.root / "bin" / "detect")
    for name in ("slurmctld", "slurmd-n1", "slurmd-n2"):
        slurm.service("restart", name)
    slurm.until(lambda: set(slurm.states().values()) == {"IDLE"}, 10)
    own = {"GRES_CONF": str(etc / "auto.conf"), "SHARE_CONF": str(slurm.root / "bin" / "detect")}
    _write(slurm, slurm_scripts(STATE, [Migration(1, "2g.10gb", 0, 2, 2, "job 4")]))
    refused = controller(slurm, code=1, **own)
    message = "error: n1: GPU 1 would have no instance, and AutoDetect takes it for a whole GPU then; keep one on it"
    assert message in refused.stderr.splitlines()
    (etc / "auto.conf").write_text("AutoDetect=nvml\nNodeName=n[1-2] AutoDetect=off\n")
    assert message not in controller(slurm, "check", **own).stderr
    (etc / "auto.conf").write_text("AutoDetect=nvml\n")
    _write(slurm, slurm_scripts(STATE, MOVE, room=ROOM))
    controller(slurm, **own)
    assert (etc / "auto.conf").read_text() == "AutoDetect=nvml\n"
    lines = [line.partition(" Gres=")[2] for line in conf(slurm)[0].splitlines()]
    assert lines == [value.replace("a100_", "nvidia_a100_").replace(",shard:4", "") for value in NEW.values()]
    assert layouts(slurm) == AFTER
    slurm.until(lambda: set(slurm.states().values()) == {"IDLE"})
    assert slurm.output(slurm.submit("echo ran", "--gres=gpu:nvidia_a100_3g.20gb:2", "-w", "n1")) == "ran"
    (etc / "auto.conf").write_text("NodeName=n1 AutoDetect=nvml Name=gpu Type=nvidia_a100_1g.5gb Count=2\n")
    refused = controller(slurm, "check", code=1, **own)
    assert "gres.conf has Count beside AutoDetect for n1, which Slurm does not support for instances" in refused.stderr


@pytest.mark.deep
def test_numbers_without_types_and_the_first_instances_of_a_node(tmp_path):
    held = (HeldInstance(0, "1g.5gb", 0), HeldInstance(0, "2g.10gb", 2))
    state = FleetState(get_gpu("A100"), 2, held, nodes=("n1", "n2"))
    with cluster(tmp_path / "s", {"n1": ("A100",), "n2": ("A100",)}) as slurm:
        for one in held:
            slurm.machines["n1"].add(0, one.profile, one.start)
        lines = [f"NodeName=n1 Name=gpu MultipleFiles={slurm.caps(0, number)}\n" for number in (2, 3)]
        slurm.describe({"n1": "gpu:2", "n2": ""}, "".join(lines))
        slurm.start()
        _write(slurm, slurm_scripts(state, [], room=[(0, "1g.5gb", 1), (1, "3g.20gb", 4)]))
        controller(slurm)
        assert [line.partition(" Gres=")[2] for line in conf(slurm)[0].splitlines()] == [
            "gpu:3",
            "gpu:nvidia_a100-40gb_3g.20gb:1",
        ]
        slurm.until(lambda: set(slurm.states().values()) == {"IDLE"})
        for node, kind in (("n1", "gpu:3"), ("n2", "gpu:nvidia_a100-40gb_3g.20gb:1")):
            assert slurm.output(slurm.submit("echo $SLURMD_NODENAME", f"--gres={kind}", "-w", node)) == node
