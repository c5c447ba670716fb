"""Plans of two nodes on a real Slurm: what is taken back, and what is refused."""

import shutil
from importlib import metadata

import pytest
from node_plans import NOTHING, Client, places, ran, running

pytestmark = [pytest.mark.deep, pytest.mark.parametrize("nodes", ["slurm"], indirect=True)]


def test_what_is_taken_back_is_ended_first(nodes, tmp_path):
    """Also by a user with own ways to look at jobs, a name of somebody else's, and a folder told from this one on."""
    own = {"SQUEUE_STATES": "PENDING", "SCANCEL_INTERACTIVE": "1", "LOGNAME": "nobody", "MIG_OPT_STATE": "state"}
    nodes.environment = {**nodes.environment, **own}
    client, process = running(nodes, tmp_path, 60.0)
    process.kill()
    process.communicate()
    client.ends(client.start("--undo", str(client.journal)))
    assert places(nodes) == NOTHING
    assert ran(tmp_path, "end") == []


def test_a_job_that_is_cancelled_in_slurm_is_not_begun_again(nodes, tmp_path):
    # The first question what has become of the job has no answer; jobs of hidden partitions are shown when asked for.
    squeue, once = shutil.which("squeue", path=nodes.environment["PATH"]), tmp_path / "once"
    busy = f"echo Unable to contact slurm controller >&2; touch {once}; exit 1"
    hidden = '[[ "$*" == *--all* ]] || exit 0'
    busy = f'if [[ "$*" == *states=all* && ! -e {once} ]]; then {busy}; fi'
    nodes.slurm.program("squeue", f'{hidden}\n{busy}\nexec {squeue} "$@"')
    path = f"{nodes.slurm.root}/bin:{nodes.environment['PATH']}"
    nodes.environment = {**nodes.environment, "PATH": path}
    client, process = running(nodes, tmp_path, 3.0)
    nodes.slurm.run("scancel", nodes.slurm.run("squeue", "-h", "-w", "n1", "-o", "%i").strip())
    assert "n1: its job has been cancelled in Slurm; --resume goes on" in client.ends(process, 1)
    assert [line[0] for line in ran(tmp_path, "end")] == ["c"]
    client.ends(client.start("--resume", str(client.journal)))
    client.check(again="a")
    assert once.exists()


def test_a_job_that_has_no_more_time_is_not_begun_again(nodes, tmp_path):
    nodes.environment = {**nodes.environment, "SBATCH_TIMELIMIT": "1"}
    client, process = running(nodes, tmp_path, 0.5, a=200.0)
    assert "n1: its job has come to the end of its time in Slurm; give it more (SBATCH" in client.ends(process, 1)
    assert [line[0] for line in ran(tmp_path, "begin")].count("a") == 1
    client.ends(client.start("--undo", str(client.journal)))
    assert places(nodes) == NOTHING


def test_nodes_that_begin_no_job_are_told_before_anything_is_changed(nodes, tmp_path):
    nodes.slurm.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=fan")
    client = Client(nodes, tmp_path)
    err = client.ends(client.start(), 2)
    assert "n2: is IDLE+DRAIN in Slurm, and begins no job; see: scontrol show node n2" in err
    assert not client.journal.exists()
    assert places(nodes) == NOTHING


def test_what_slurm_refuses_is_told(nodes, tmp_path):
    nodes.environment = {**nodes.environment, "SBATCH_PARTITION": "nowhere"}
    client = Client(nodes, tmp_path)
    err = client.ends(client.start(), 1)
    assert all(f"{host}: sbatch: error: invalid partition specified: nowhere" in err for host in ("n1", "n2"))
    assert places(nodes) == NOTHING
    nodes.environment = {**nodes.environment, "SBATCH_PARTITION": "main"}
    client.ends(client.start("--resume", str(client.journal)))
    client.check()


def test_a_node_with_another_version_changes_nothing(nodes, tmp_path):
    other = tmp_path / "other" / "mig_opt-0.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: mig-opt\nVersion: 0.9\n")
    with (nodes.slurm.root / "n2" / "environment").open("a") as file:
        file.write(f"export PYTHONPATH={other.parent}\n")
    client = Client(nodes, tmp_path, 0.2)
    err = client.ends(client.start(), 1)
    version = metadata.version("mig-opt")
    assert f"n2: error: has mig_opt 0.9, and here is {version}: pip install mig-opt=={version}" in err
    assert places(nodes)["n2"] == set()
