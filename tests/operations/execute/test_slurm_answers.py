"""Answers of Slurm's programs, and what the engine makes of them; the programs are stand-ins."""

import signal
import subprocess
import sys
from functools import partial
from importlib import metadata

import pytest
from node_plans import BATCH, DEVICES, PLAN, commands, until
from scripts import program

from mig_opt.batch.journal import Journal
from mig_opt.operations.execute.parts import cut
from mig_opt.operations.execute.slurm_engine import SlurmEngine

SQUEUE = """case "$*" in
*states=all*) cat {0}/last ;;
*Format=*) cat {0}/jobs ;;
*) cut -d'|' -f3 {0}/jobs ;;
esac"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Programs that print what is in files, and the folder for both."""

    programs = partial(program, tmp_path)
    for name, text in {"sbatch": "", "scancel": "", "scontrol": "", "squeue": SQUEUE.format(tmp_path)}.items():
        programs(name, text)
    (tmp_path / "jobs").touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("MIG_OPT_STATE", str(tmp_path / "state"))
    return programs


@pytest.fixture
def part(tmp_path):
    return cut(Journal(BATCH, PLAN, commands(tmp_path, 0), tuple(DEVICES), str(tmp_path), "a1"))["n1"]


@pytest.mark.parametrize(("code", "undo"), [(None, False), (130, False), (137, False), (143, True)])
def test_slurm_says_whether_a_program_that_was_killed_is_begun_again(slurm, part, tmp_path, code, undo):
    engine, kind = SlurmEngine(), "undo" if undo else "run"
    engine.submit("n1", part, undo=undo)
    if code is not None:
        (tmp_path / "state" / "a1" / "n1" / f"{kind}.code").symlink_to(str(code))
    (tmp_path / "jobs").write_text(f"mig-opt-a1-n1-{kind}|7|COMPLETING|None|0|\n")
    until(lambda: engine.progress("n1", part, 0, undo=undo) is not None)
    assert not engine.progress("n1", part, 0, undo=undo).ended
    (tmp_path / "jobs").write_text("")
    (tmp_path / "last").write_text("CANCELLED\n")
    until(lambda: (found := engine.progress("n1", part, 0, undo=undo)) and found.ended)
    text = engine.progress("n1", part, 0, undo=undo).text
    assert text == f"its job has been cancelled in Slurm; --{'undo' if undo else 'resume'} goes on"


def test_a_job_that_cannot_be_told_to_stop_just_now_is_told_again(slurm, part, tmp_path):
    """Slurm does not let go of a job that it requeues; then the job waits, and can be cancelled."""
    later = "echo 'scancel: error: Kill job error on job id 7: Job can not be altered now, try again later' >&2; exit 1"
    slurm("scancel", f'echo "$*" >>{tmp_path}/told\n[[ "$*" != *TERM* || -e {tmp_path}/ready ]] || {{ {later}; }}')
    engine = SlurmEngine()
    engine.cancel("n1", part)
    assert engine.progress("n1", part, 0) is None
    (tmp_path / "ready").touch()
    until(lambda: engine.progress("n1", part, 0))
    told = ["TERM" if "TERM" in line else "PENDING" for line in (tmp_path / "told").read_text().splitlines()]
    assert told[:3] == ["PENDING", "TERM", "PENDING"]
    assert told[-2:] == ["PENDING", "TERM"]


@pytest.mark.parametrize(
    "text",
    ["Batch job submission failed: Protocol authentication error", "If munged is up, restart with --num-threads=10"],
)
def test_an_order_is_given_again_where_munged_is_just_restarted(slurm, part, tmp_path, text):
    slurm("sbatch", f"[[ -e {tmp_path}/ready ]] || {{ echo 'sbatch: error: {text}' >&2; exit 1; }}")
    engine = SlurmEngine()
    engine.submit("n1", part)
    assert engine.progress("n1", part, 0) is None
    for name in ("ready", "last"):
        (tmp_path / name).touch()
    until(lambda: engine.progress("n1", part, 0))


@pytest.mark.parametrize(
    ("state", "begins"),
    [("IDLE+POWERED_DOWN", True), ("IDLE+POWERING_DOWN", True), ("IDLE+POWER_DOWN", True), ("DOWN*", False)],
)
def test_nodes_that_save_power_begin_jobs(slurm, part, state, begins):
    slurm("scontrol", f"printf 'NodeName=n1 State={state} Owner=N/A Reason=\\374'")
    assert (SlurmEngine().check({"n1": part}, begun=False) == []) == begins


@pytest.mark.parametrize("answer", [metadata.version("mig-opt"), ""])
def test_a_job_that_is_told_to_stop_while_it_compares_versions(slurm, part, tmp_path, monkeypatch, answer):
    folder = tmp_path / "state" / "a1" / "n1"
    python = f'[[ $1 == -c ]] || exec sleep 100\ntouch {tmp_path}/asked\nsleep 0.5\necho "{answer}"'
    monkeypatch.setattr(sys, "executable", str(slurm("python", python)))
    SlurmEngine().submit("n1", part)
    job = subprocess.Popen(["sh", folder / "run.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until((tmp_path / "asked").exists)
    job.send_signal(signal.SIGTERM)
    out, _ = job.communicate(timeout=30)
    assert "not at all" not in out
    assert (folder / "run.code").readlink().name == str(job.returncode) == "143"
