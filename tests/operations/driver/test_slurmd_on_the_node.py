"""Nodes on which slurmd runs: partitions change in a job that has the whole node, and where it is drained."""

import os
import socket
import sys
from pathlib import Path

import pytest
from scripts import program
from slurm_cluster import cluster

from mig_opt.operations.driver.surroundings import slurm_in_the_way

HOST = socket.gethostname()
NODE = f"NodeName=n1 Arch=x86_64 NodeHostName={HOST} State={{}} ThreadsPerCore=1"
JOB = "JobId=7 JobName=x UserId=ada({}) JobState={} NodeList={} ReqNodeList=n9 OverSubscribe={} Contiguous=0"


def node_with(folder: Path, monkeypatch: pytest.MonkeyPatch, node: str, job: str = "", number: str = "") -> Path:
    """A machine with a slurmd, and a ``scontrol`` that says what is wanted; return its root."""
    process = folder / "root" / "proc" / "7"
    process.mkdir(parents=True)
    (process / "comm").write_text("slurmd\n")
    (folder / "bin").mkdir()
    said = f'case "$*" in "-ao show node") echo "{node}";; "-ao show job "*) echo "{job}";; *) echo n1;; esac'
    program(folder / "bin", "scontrol", said)
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")
    for name in ("SLURMD_NODENAME", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    if number:
        monkeypatch.setenv("SLURM_JOB_ID", number)
    return folder / "root"


@pytest.mark.parametrize(
    ("state", "job", "way"),
    [
        ("IDLE+DRAIN", "", ""),
        ("DOWN+DRAIN+NOT_RESPONDING", "", ""),
        ("IDLE", "", "n1 is IDLE; do it in a job that has the whole node"),
        ("MIXED+DRAIN", "", "n1 is MIXED+DRAIN"),
        ("ALLOCATED", JOB.format(os.getuid(), "RUNNING", "n1", "NO"), ""),
        ("ALLOCATED", JOB.format(os.getuid(), "RUNNING", "n1", "NO Exclusive=NODE"), ""),
        ("MIXED", JOB.format(os.getuid(), "RUNNING", "n1", "OK"), "job 7 shares its node with others"),
        ("MIXED", JOB.format(os.getuid(), "RUNNING", "n1", "NO Exclusive=NO"), "job 7 shares its node with others"),
        ("MIXED", JOB.format(os.getuid(), "COMPLETED", "n1", "NO"), "job 7 is COMPLETED"),
        ("MIXED", JOB.format(os.getuid() + 1, "RUNNING", "n1", "NO"), "job 7 is of ada("),
    ],
)
def test_what_slurm_says_counts(tmp_path, monkeypatch, state, job, way):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() or 0)
    if "ada(" in way:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
    root = node_with(tmp_path, monkeypatch, NODE.format(state), job, "7" if job else "")
    found = slurm_in_the_way(root)
    assert way in found if way else found == ""
    assert not found or "salloc --exclusive -w n1" in found


def test_a_job_on_other_nodes_and_a_slurm_that_does_not_answer(tmp_path, monkeypatch):
    root = node_with(
        tmp_path,
        monkeypatch,
        f"NodeName=n2 NodeHostName={HOST} State=IDLE",
        JOB.format(os.getuid(), "RUNNING", "n1", "NO"),
        "7",
    )
    assert "job 7 is on n1" in slurm_in_the_way(root)
    (tmp_path / "bin" / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    assert "scontrol gives no answer" in slurm_in_the_way(root)
    (root / "proc" / "7" / "comm").write_text("sshd\n")
    assert slurm_in_the_way(root) == ""


@pytest.mark.deep
def test_a_real_slurm(tmp_path):
    with cluster(tmp_path / "s", {"n1": ("A100",), "n2": ("A100",)}) as slurm:
        slurm.describe({"n1": "gpu:1", "n2": "gpu:1"}, "NodeName=n[1-2] Name=gpu File=DEV/nvidia0\n")
        slurm.start()
        script = "from mig_opt.operations.driver.surroundings import slurm_in_the_way as there; print(there())"
        ask = [sys.executable, "-c", script]
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        assert "n1 is IDLE, n2 is IDLE; do it in a job" in slurm.run(*ask, **path)
        assert "shares its node with others" in slurm.run("srun", "-w", "n1", *ask, **path)
        assert slurm.run("srun", "--exclusive", "-w", "n1", *ask, **path).strip() == ""
        slurm.run("scontrol", "update", "NodeName=n1,n2", "State=DRAIN", "Reason=test")
        slurm.until(lambda: set(slurm.states().values()) == {"IDLE+DRAIN"})
        assert slurm.run(*ask, **path).strip() == ""
