"""Scripts for Slurm: which nodes they change, and how they edit its files."""

import fcntl
import os
import shutil
import subprocess

import pytest
import scripts
from documents import refused
from scripts import Machine
from slurm_cluster import SYSTEM

from mig_opt import Deployment, Device, FleetState, HeldInstance, InputError, Migration, get_gpu, read, write
from mig_opt.files import documents
from mig_opt.operations.rollout.shell import functions_of
from mig_opt.operations.rollout.slurm import slurm_change, slurm_scripts

A100 = get_gpu("A100")
NODES = ("n1", "n1", "n2")
HELD = (
    HeldInstance(0, "1g.5gb", 0, "job 1"),
    HeldInstance(0, "1g.5gb", 1, "job 2"),
    HeldInstance(1, "3g.20gb", 4, "job 3"),
    HeldInstance(2, "2g.10gb", 0, "job 4"),
)
STATE = FleetState(A100, 3, HELD, nodes=NODES)
MOVE = Migration(0, "1g.5gb", 1, 2, 6, "job 2")


def counts(files: dict[str, str]) -> list[str]:
    lines = files["controller.sh"].splitlines()
    begin = lines.index("declare -A COUNTS=(")
    return [line.strip() for line in lines[begin + 1 : lines.index(")", begin)]]


def test_states_name_their_nodes():
    refused(slurm_scripts, FleetState(A100, 3, HELD), [MOVE], match="add its nodes")
    with pytest.raises(InputError, match=r"nodes\[0\]: is no name of a node in Slurm: .*, is 'n1;touch x'"):
        slurm_scripts(FleetState(A100, 3, HELD, nodes=("n1;touch x", "n1", "n2")), [MOVE])


def test_only_nodes_that_change_have_scripts():
    assert "node-n2.sh" not in slurm_scripts(STATE, [Migration(0, "1g.5gb", 1, 1, 0, "job 2")])
    assert slurm_scripts(STATE, []) == {}


def test_types_of_autodetect_have_the_memory_that_the_driver_tells():
    state = FleetState(get_gpu("A100-80GB"), 1, (HeldInstance(0, "3g.40gb", 0),), nodes=("n1",))
    assert counts(slurm_scripts(state, [], room=[(0, "1g.10gb", 4)])) == [
        "[n1]='1g.10gb:1g.10gb:0:1 3g.40gb:3g.39gb:1:1'"
    ]


def test_wanted_instances_are_created_and_idle_ones_stay_unless_they_are_in_the_way():
    idle = (HeldInstance(0, "1g.5gb", 5, idle=True), HeldInstance(2, "2g.10gb", 4, idle=True))
    state = FleetState(A100, 3, (*HELD, *idle), nodes=NODES)
    assert counts(slurm_scripts(state, [MOVE]))[0] == "[n2]='1g.5gb:1g.5gb:0:1 2g.10gb:2g.10gb:2:2'"
    assert counts(slurm_scripts(state, [MOVE], room=[(2, "1g.5gb", 5)])) == [
        "[n2]='1g.5gb:1g.5gb:0:2 2g.10gb:2g.10gb:2:1'",
        "[n1]='1g.5gb:1g.5gb:3:2 3g.20gb:3g.20gb:1:1'",
    ]


def done(folder, lines, **environment):
    (folder / "script").write_text("\n".join(["set -euo pipefail", *lines]))
    words = ["bash", folder / "script"]
    return subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, timeout=10, check=False)


def test_nothing_changes_before_slurm_has_said_that_no_job_is_on_a_node(tmp_path):
    answers = "echo >>asked; case $(wc -l <asked) in 1 | 3) return 1 ;; 2) echo 7 ;; esac"
    stubs = ["scontrol() { echo State=IDLE+DRAIN; }", f"squeue() {{ {answers}; }}", f"cd {tmp_path}", "drain n1"]
    ended = done(tmp_path, [*functions_of("slurm.sh"), *stubs], POLL_SECONDS="0.1")
    assert (ended.returncode, ended.stderr) == (0, "n1: waiting for the jobs 7\nn1: waiting for the jobs \n")
    assert (tmp_path / "asked").read_text() == "\n" * 4


def test_one_script_at_a_time_works_on_the_files_of_slurm(tmp_path):
    conf = tmp_path / "slurm.conf"
    conf.touch()

    def ended(*lines):
        stubs = ["scontrol() { echo is UP; }", "of() { :; }", "on() { :; }", "restarted() { :; }", "NODES=()"]
        return done(tmp_path, [*functions_of("slurm.sh"), *stubs, *lines], SLURM_CONF=str(conf))

    with conf.open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)  # as one does that checks
        assert ended("main check").returncode == 0
        for line in ("main", "main undo"):
            second = ended(line)
            assert (second.returncode, second.stdout) == (1, "")
            assert f"error: another controller.sh is at work on {conf}; wait until it has ended" in second.stderr
    # A daemon that it starts does not go on with the lock.
    assert ended("lock", "RESTART=(bash -c 'sleep 5 &>/dev/null &')", "bring_up n1 gpu:1").returncode == 0
    assert ended("main").returncode == 0


def test_the_driver_may_have_much_to_say_of_a_gpu(tmp_path):
    stubs = ["GPUS=(0) NAMES=(0)", *functions_of("functions.sh", "slurm_node.sh"), "instances() { :; }"]
    stubs += ['smi() { echo "Minor Number : 3"; seq 100000; }', "SMI=(smi)", "files"]
    ended = done(tmp_path, stubs)
    assert (ended.returncode, ended.stdout) == (0, "3\n"), ended.stderr


def test_what_is_taken_back_computes_again(tmp_path):
    """A destruction that stopped half way has left an instance without its compute instance."""
    machine = Machine(tmp_path, "A100", "A100")
    for held in HELD[:3]:
        machine.add(held.gpu, held.profile, held.start)
    machine.change(0, instances=[one | {"compute": one["start"] != 1} for one in machine.state[0]["instances"]])
    (tmp_path / "node.sh").write_text(slurm_scripts(STATE, [MOVE])["node-n1.sh"])
    scripts.ended("bash", tmp_path / "node.sh", "restore", env=machine.environment)
    assert [one["compute"] for one in machine.state[0]["instances"]] == [True, True]


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("NodeName=n2 CPUs=4 Gres=gpu:1", "NodeName=n2 CPUs=4 Gres=new"),
        ("nodename=n2 gres=gpu:1 CPUs=4 # a comment", "nodename=n2 Gres=new CPUs=4 "),
        ("NodeName=n2 CPUs=4", "NodeName=n2 CPUs=4 Gres=new"),
        ("NodeName=n2 \\\n  CPUs=4 \\\n  Gres=gpu:1", "NodeName=n2    CPUs=4    Gres=new"),
        ("NodeName=n[1-4] Gres=gpu:1", "NodeName=n[1,3-4] Gres=gpu:1\nNodeName=n2 Gres=new"),
        ("NodeName=n[1-4] Gres=gpu:1 Port=[1-4]", ""),
        ("NodeName=n[3-12] Gres=gpu:1", None),
        ("NodeName=DEFAULT Gres=gpu:1", None),
        ("NodeName=n2 \\ # a comment\n CPUs=4 \\ \n Gres=gpu:1", "NodeName=n2   CPUs=4   Gres=new"),
        ("# a comment \\\nNodeName=n2 Gres=gpu:1", "# a comment \\\nNodeName=n2 Gres=new"),
        ("# NodeName=n2 Gres=gpu:1\n\nGresTypes=gpu \\\n # n2", None),
    ],
)
def test_lines_of_other_nodes_stay_as_they_are(tmp_path, line, changed):
    path = os.pathsep.join([os.environ["PATH"], *SYSTEM])
    if shutil.which("scontrol", path=path) is None:
        pytest.skip("needs Slurm: apt-get install slurm-wlm")
    (tmp_path / "conf").write_text(f"First=1\n{line}\nLast=1\n")
    (tmp_path / "slurm.conf").write_text("ClusterName=test\nSlurmctldHost=localhost\n")
    script = [*functions_of("slurm.sh"), "gres=new", f"edited {tmp_path}/conf n2 with_gres"]
    ended = done(tmp_path, script, PATH=path, SLURM_CONF=str(tmp_path / "slurm.conf"))
    if changed == "":
        assert ended.returncode == 1
        assert "n2 shares its line with n1,n3,n4, with a list in Port; give it a line of its own" in ended.stderr
    else:
        assert ended.stdout == f"First=1\n{line if changed is None else changed}\nLast=1\n"


def test_a_deployment_is_changed_as_a_state_is(run, tmp_path, monkeypatch):
    services, state, new, out = (tmp_path / name for name in ("services.json", "state.json", "new.json", "change"))
    assert run("init", "services", services).code == 0
    write(FleetState(get_gpu("A100-80GB"), 1, (HeldInstance(0, "1g.10gb", 0, "chat"),), nodes=("n1",)), state)
    assert run("deploy", services, "--from", state, "-o", new, "--quiet").code == 0
    given = ["services", "export", services, new, out, "--format", "slurm"]
    assert "--from: is needed for --format slurm" in run(*given).err
    read_bytes, seen = documents.read_bytes, list[object]()
    monkeypatch.setattr(documents, "read_bytes", lambda path: seen.append(path) or read_bytes(path))
    assert f"bash {out}/controller.sh check" in run(*given, "--from", state).out
    assert seen.count(state) + seen.count(str(state)) == 2  # to see what it is, and for what it holds
    assert "# + GPU 0: 2g.20gb@4\n" in (out / "node-n1.sh").read_text()
    assert "- GPU 0" not in (out / "node-n1.sh").read_text()
    deployment = read(Deployment, new)
    assert slurm_change(deployment, deployment) == {}
    elsewhere = Deployment(deployment.gpus, deployment.segments, (Device(1, "n1"),))
    for running in (Deployment(deployment.gpus, ()), elsewhere):
        with pytest.raises(InputError, match=r"gpus\[0\]: is none of those that are known, each on its node"):
            slurm_change(running, deployment)
    write(Deployment(deployment.gpus, ()), bare := tmp_path / "bare.json")
    assert f"error: {bare}\n  gpus[0]: is none of those that are known" in run(*given, "--from", bare).err
    # Idle instances stay, or make way, or are taken.
    held = (HeldInstance(0, "1g.10gb", 0, "chat"), *(HeldInstance(0, "1g.10gb", at, idle=True) for at in (1, 4)))
    write(FleetState(get_gpu("A100-80GB"), 1, held, nodes=("n1",)), state)
    assert run(*given, "--from", state).code == 0
    expected = ["[n1]='1g.10gb:1g.10gb:3:2 2g.20gb:2g.20gb:0:1'"]
    assert counts({"controller.sh": (out / "controller.sh").read_text()}) == expected
    assert "# - GPU 0: 1g.10gb@4\n# + GPU 0: 2g.20gb@4\n" in (out / "node-n1.sh").read_text()


def test_gpus_with_mig_off_stay_as_they_are():
    off = get_gpu("A100-40GB without MIG")
    held = (*HELD[:1], HeldInstance(1, off.profiles[-1].name, 0, "job 9"))
    state = FleetState(None, 0, held, nodes=("n1", "n1"), kinds=(A100, off))
    files = slurm_scripts(state, [Migration(0, "1g.5gb", 0, 0, 6, "job 1")])
    assert counts(files) == ["[n1]='1g.5gb:1g.5gb:1:1'"]
    assert "GPUS=(0)" in files["node-n1.sh"]


def test_the_command_writes_a_folder_of_programs(run, tmp_path):
    path, out = tmp_path / "state.json", tmp_path / "change"
    write(STATE, path)
    assert run("defragment", path, "--free", "nodes", "--slurm", out).code == 0
    assert os.access(out / "controller.sh", os.X_OK)
    write(FleetState(A100, 3, HELD), path)
    assert "--slurm: the state does not say which GPUs are on which node" in run("defragment", path, "--slurm", out).err
