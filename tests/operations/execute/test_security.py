"""Security of executions: no text becomes code, nobody else has the locks, tasks are not of root, versions agree."""

import os
import pwd
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from dask_nodes import dask_nodes
from documents import refused
from node_plans import USER, Client, ran, until
from scripts import ended
from slurm_nodes import SlurmNodes

from mig_opt import Batch, Commands, Journal, Run, Task, get_gpu, resume_schedule, run_schedule, undo_schedule
from mig_opt.batch.timing import retimed_schedule
from mig_opt.files.batch.journals import read_journal, write_journal
from mig_opt.operations.execute import engines
from mig_opt.operations.execute.engines import folder_of, state_folder

BATCH = Batch((Task("a", {2: 0.1}),), get_gpu("A30"))
PLAN = retimed_schedule(BATCH, [Run("a", 0, "2g.12gb", 0, 0, 1)])
EVIL = "x;touch pwned; $(touch pwned) `touch pwned` '%j %%j"


def told(folder: Path) -> Commands:
    """A command that tells its user, its folder, and whether it may enter the folder of the locks."""
    script = f'(id -un; pwd; ls "{folder}/j.tasks/state" >/dev/null 2>&1 && echo in || echo out) >{folder}/told'
    return Commands({"a": ("sh", "-c", script)})


@pytest.mark.parametrize("gpu", ["-oProxyCommand=touch pwned/0", "n1;touch pwned/0", "n1 x/0", "../n1/0", "$(x)/0"])
@pytest.mark.parametrize("engine", ["", "dask://127.0.0.1:1"])
def test_hosts_in_journals_are_checked(tmp_path, gpu, engine):
    plan = Journal(BATCH, PLAN, Commands({"a": ("true",)}), (gpu,), run="ab", engine=engine)
    write_journal(plan, tmp_path / "j")
    for go_on in (resume_schedule, undo_schedule):
        refused(go_on, tmp_path / "j", match=r"devices\[0\]: must be index, UUID or PCI address")


def test_a_journal_of_another_machine_needs_an_engine(tmp_path):
    write_journal(Journal(BATCH, PLAN, Commands({"a": ("true",)}), ("n1/GPU-1",), run="one"), tmp_path / "j")
    refused(resume_schedule, tmp_path / "j", match=r"gpus\[0\]: is on n1, which is another machine: .* --engine")


@pytest.mark.parametrize("run", ["", "../x", "a b", "x;y"])
def test_names_of_executions_are_no_paths(run):
    refused(folder_of, run, "n1", match="run: must be the name of an execution")


@pytest.mark.parametrize("wrong", ["open", "link", "foreign"])
def test_state_is_kept_in_no_folder_that_others_may_enter(tmp_path, monkeypatch, wrong):
    monkeypatch.undo()  # of the user
    monkeypatch.setenv("MIG_OPT_STATE", str(tmp_path / "state"))
    (tmp_path / "other").mkdir(mode=0o700)
    if wrong == "link":
        (tmp_path / "state").symlink_to(tmp_path / "other")
    else:
        assert state_folder() == tmp_path / "state"
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    if wrong == "open":
        (tmp_path / "state").chmod(0o750)
    if wrong == "foreign":
        monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    refused(state_folder, match=r"state: must be a folder of this user that nobody else may enter \(mode 0700\)")


@pytest.mark.deep
def test_each_deed_on_a_node_may_be_done_twice(machine, tmp_path, monkeypatch):
    monkeypatch.undo()  # of the user
    for key, value in (machine.environment | {"MIG_OPT_STATE": str(tmp_path / "state")}).items():
        monkeypatch.setenv(key, value)
    words = Commands({"a": ("sh", "-c", f'echo "ran in $PWD" >>{tmp_path}/ran; sleep 0.5')})
    part = Journal(BATCH, PLAN, words, ("0",), str(tmp_path / ("that the node has not" * 500)), "ab", USER)
    engines.interrupt("n1", "ab")
    for _ in range(2):
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda _: engines.begin("n1", part, undo=False), range(3)))
        until(lambda: engines.look("n1", "ab", 0, undo=False).ended)
        found = engines.look("n1", "ab", 0, undo=False)
        assert found.code == 0, found.text
        assert (tmp_path / "ran").read_text() == f"ran in {Path(f'~{USER}').expanduser()}\n"
    assert engines.look("n1", "ab", len(found.journal), undo=False).journal == b""
    assert len(machine.instances(0)) == 1
    for _ in range(2):
        engines.begin("n1", part, undo=True)
        until(lambda: engines.look("n1", "ab", 0, undo=True).ended)
        assert engines.look("n1", "ab", 0, undo=True).code == 0
        assert machine.instances(0) == []


@pytest.mark.parametrize("wrong", ["open", "link"])
def test_files_of_tasks_are_in_no_folder_that_others_write_to(machine, tmp_path, wrong):
    (tmp_path / "other").mkdir()
    (tmp_path / "other").chmod(0o777)
    (tmp_path / "other").rename(tmp_path / "j.tasks") if wrong == "open" else (tmp_path / "j.tasks").symlink_to("other")
    match = r"j\.tasks: must be a folder of this user that nobody else may write to"
    refused(run_schedule, BATCH, PLAN, told(tmp_path), match=match, journal=tmp_path / "j", user=USER)
    assert machine.instances(0) == []
    assert not (tmp_path / "j").exists()


def test_root_runs_tasks_as_somebody_who_is_named(machine, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    given, journal = (BATCH, PLAN, told(tmp_path)), tmp_path / "j"
    for caller in ("", "root"):
        monkeypatch.setenv("SUDO_USER", caller)
        unnamed = r"user: tasks would run as root; name the user .* --user NAME"
        refused(run_schedule, *given, match=unnamed, journal=journal)
    nobody = "user: there is no user 'nobody-at-all' on this machine"
    refused(run_schedule, *given, match=nobody, journal=journal, user="nobody-at-all")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    only = "user: only root can run tasks as root; use sudo"
    refused(run_schedule, *given, match=only, journal=journal, user="root")
    assert machine.log == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run tasks as others")
@pytest.mark.parametrize("way", ["named", "sudo", "root"])
def test_tasks_of_root_run_as_others(machine, tmp_path, monkeypatch, way):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    user = "root" if way == "root" else "nobody"
    monkeypatch.setenv("SUDO_USER", "nobody")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o777)
    found = run_schedule(BATCH, PLAN, told(tmp_path), journal=tmp_path / "j", user="" if way == "sudo" else user)
    assert (found.complete, bool(found.failed)) == (True, False)
    who, *_, entered = (tmp_path / "told").read_text().split()
    assert (who, entered) == (user, "in" if way == "root" else "out")
    assert pwd.getpwuid((tmp_path / "told").stat().st_uid).pw_name == user
    assert read_journal(tmp_path / "j").user == user


@pytest.mark.deep
def test_no_folder_becomes_code(nodes, tmp_path):
    """Neither to a shell nor to ``sbatch``, which has patterns of its own for names of files."""
    folder = tmp_path / EVIL
    folder.mkdir()
    if isinstance(nodes, SlurmNodes):  # its files are below the folder in which the plan is begun
        nodes.environment = {key: text for key, text in nodes.environment.items() if key != "MIG_OPT_STATE"}
    client = Client(nodes, folder, 0.2)
    client.ends(client.start())
    assert {line[3] for line in ran(folder, "begin")} == {str(folder)}
    client.check()
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.deep
def test_versions_are_compared(tmp_path):
    with dask_nodes(tmp_path, "n1", "n2") as nodes:
        options = {"devices": ["n2/0"], "engine": nodes.engine, "user": USER}
        old = tmp_path / "old" / "mig_opt-0.0.1.dist-info"
        old.mkdir(parents=True)
        (old / "METADATA").write_text("Metadata-Version: 2.1\nName: mig-opt\nVersion: 0.0.1\n")
        nodes.workers["n2"].kill()
        nodes.workers["n2"].wait()
        path = f"{old.parent}{os.pathsep}{nodes.environment['PYTHONPATH']}"
        nodes.workers["n2"] = nodes.start_worker("n2", PYTHONPATH=path)
        until(lambda: nodes.log("n2").count("Registered to") == 2)
        old, given = r"{} has mig_opt 0.0.1, and here is .*: pip install mig-opt==", (BATCH, PLAN, told(tmp_path))
        refused(run_schedule, *given, match=old.format("n2:"), journal=tmp_path / "k", **options)
        nodes.scheduler.kill()
        nodes.environment["PYTHONPATH"] = path
        nodes.start_again("controller")
        until(lambda: nodes.log("scheduler").count("Scheduler at:") == 2)
        refused(run_schedule, *given, match=old.format("engine: the scheduler"), journal=tmp_path / "k", **options)
        assert nodes.machines["n2"].log == []
        assert not (tmp_path / "k").exists()


def made_certificates(folder: Path) -> dict[str, str]:
    """An authority and a certificate of it, as Dask finds them."""

    openssl = partial(ended, "openssl", cwd=folder)
    new = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(*new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
    openssl(*new, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=node")
    openssl("x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "own.pem")
    names = {"CA_FILE": "ca.pem"}
    for who in ("SCHEDULER", "WORKER", "CLIENT"):
        names |= {f"{who}__CERT": "own.pem", f"{who}__KEY": "own.key"}
    return {f"DASK_DISTRIBUTED__COMM__TLS__{key}": str(folder / name) for key, name in names.items()}


@pytest.mark.deep
def test_a_cluster_with_tls_takes_no_stranger(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "strange").mkdir()
    own, strange = made_certificates(tmp_path / "own"), made_certificates(tmp_path / "strange")
    write_journal(Journal(BATCH, PLAN, told(tmp_path), ("n1/0",), str(tmp_path), "ab", USER), tmp_path / "j")
    with dask_nodes(tmp_path, "n1", security=own) as nodes:
        program = [sys.executable, "-m", "mig_opt", "run", "--resume", str(tmp_path / "j")]
        program += ["--engine", nodes.engine]
        for certificates, code in ((strange, 2), (own, 0)):
            environment = {**nodes.environment, **certificates}
            done = ended(*program, code=code, env=environment)
            assert ("no Dask scheduler answers at tls://" in done.stderr) == (code == 2)
    assert (tmp_path / "told").read_text().split()[0] == USER
