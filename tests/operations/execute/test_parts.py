"""Plans of several nodes, cut into parts, carried out, and merged: the same as if they had been carried out in one."""

import getpass
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import refuses
from documents import refused
from executions import Execution, World, random_batch, true_times
from hypothesis import given, settings
from hypothesis import strategies as st
from nvml_machine import Machine
from scripts import program

from mig_opt import Batch, Commands, Journal, Schedule, Task, get_gpu, solve
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.journals import COMMANDS, read_journal, write_journal
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.operations.execute.parts import Gathering, alone, cut, gather, merged, split
from mig_opt.validation import validate


def far(batch: Batch) -> Schedule:
    return solve(batch, "far").schedule


def random_plan(rng: random.Random) -> tuple[Batch, Schedule]:
    """A batch on two to four GPUs, sometimes with an instance that exists, and a schedule."""
    batch = random_batch(rng, ["A30", "A100"], range(2, 5), 12)
    batch = batch.replace(initial=tuple(replace(each, gpu=rng.randrange(batch.gpus)) for each in batch.initial))
    return batch, far(batch)


def carried_out(batch: Batch, schedule: Schedule, seconds: Any, folder: Path, *, replan: Any = None) -> Journal:
    """The journal of a plan carried out in simulated time."""
    folder.mkdir()
    machine = Machine(folder, *[batch.gpu.name] * batch.gpus)
    with machine.loaded():
        for live in batch.initial:
            machine.add(live.gpu, live.profile, live.start)
        execution = Execution(World(machine, batch, seconds), schedule, folder / "journal", replan=replan)
        assert execution.go()
    return read_journal(execution.path)


def places(journal: Journal, gpu: int) -> dict[str, tuple[str, int]]:
    """The profile and the start of the instance on which each task of a GPU has run."""
    there = [(run.task, journal.lifetimes[run.instance].location) for run in journal.runs()]
    return {task: (profile, start) for task, (own, profile, start) in there if own == gpu}


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_nodes_that_plan_anew_are_merged_as_they_come(rng):
    batch, schedule = random_plan(rng)
    hosts = tuple(f"n{gpu}/0" for gpu in range(batch.gpus))
    plan = Journal(batch, schedule, Commands({task.name: ("true",) for task in batch.tasks}), hosts, replan=0.1)
    seconds = true_times(batch, rng, 0.2, 4)
    busy = {run.gpu for run in schedule.runs}
    if any(each.gpu not in busy for each in schedule.operations or ()):
        return
    with tempfile.TemporaryDirectory() as name:
        plans = cut(plan)
        assert {part.replan for part in plans.values()} == {0.1}
        parts = {
            host: carried_out(part.batch, part.schedule, seconds, Path(name, host), replan=0.1)
            for host, part in plans.items()
        }
    found = merged(plan, parts)
    told = Journal(batch, schedule, plan.commands, hosts)  # as an engine tells them, node by node
    told.append(found.events[0])
    gathering = Gathering(told)
    for host, part in parts.items():
        for event in gathering.news(host, part):
            told.append(event)
        assert gathering.news(host, part) == []
    with tempfile.TemporaryDirectory() as name:
        write_journal(found, Path(name, "journal"))
        again = Gathering(read_journal(Path(name, "journal")))
    assert [event for host, part in parts.items() for event in again.news(host, part)] == []
    replanned = sum(event.kind == "replan" for part in parts.values() for event in part.events)
    for whole in (found, told):
        assert sum(event.kind == "replan" for event in whole.events) == replanned
        for host, part in parts.items():
            assert places(whole, hosts.index(f"{host}/0")) == places(part, 0)
        assert validate(*whole.measured()).valid


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_cut_carried_out_and_merged_is_the_whole(rng):
    batch, schedule = random_plan(rng)
    seconds = {run.task: (run.end - run.begin) * rng.uniform(0.3, 2.5) for run in schedule.runs}
    hosts = [f"n{rng.randint(1, 3)}/{gpu}" for gpu in range(batch.gpus)]
    plan = Journal(batch, schedule, Commands({task.name: ("true",) for task in batch.tasks}), tuple(hosts))
    busy = {hosts[run.gpu].partition("/")[0] for run in schedule.runs}
    if any(hosts[each.gpu].partition("/")[0] not in busy for each in schedule.operations or ()):
        refused(cut, plan, match="has no task there")
        return
    plans = cut(plan)
    assert plans.keys() == busy
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = carried_out(batch, schedule, seconds, folder / "whole")
        parts, set_back = {}, {}
        for host, part in plans.items():
            assert validate(part.batch, part.schedule).valid
            done = carried_out(part.batch, part.schedule, seconds, folder / host)
            late = rng.uniform(-1000, 1000)  # clocks do not agree
            parts[host] = replace(done, events=[replace(each, time=each.time + late) for each in done.events])
            at = rng.randrange(len(done.events))
            back = [*parts[host].events[:at], *(replace(one, time=one.time - 9) for one in parts[host].events[at:])]
            set_back[host] = replace(done, events=back)
    found = merged(plan, parts)
    assert found.ended
    assert sorted(found.runs(), key=str) == sorted(whole.runs(), key=str)
    assert sorted(found.operations(), key=str) == sorted(whole.operations(), key=str)
    assert found.measured()[1].makespan == whole.measured()[1].makespan
    assert {gpu.partition("/")[0] for gpu in found.gpus} == {host.partition("/")[0] for host in hosts}

    def facts(journal: Journal) -> list[tuple[object, ...]]:
        # "found" may be where nothing is to be done.
        told = (each for each in journal.events if each.kind not in ("begin", "end", "found"))
        return sorted((each.kind, str(each.instance), str(each.task), each.attempt) for each in told)

    assert facts(found) == facts(whole)
    changed = merged(plan, set_back)  # with clocks that have been set back meanwhile
    assert changed.runs()
    assert min(changed.costs().create.values()) >= 0
    first = next(iter(plans))
    alone_ = merged(plan, {first: parts[first]})
    assert alone_.ended == (len(plans) == 1)
    assert {run.task for run in alone_.runs()} == {run.task for run in plans[first].schedule.runs}


USER = getpass.getuser()
TWO = Batch((Task("a", {4: 0.1}), Task("b", {4: 0.2})), get_gpu("A30"), 2)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The arguments of a plan for two nodes."""
    monkeypatch.chdir(tmp_path)
    BATCH.write(TWO, "batch.json")
    SCHEDULE.write(far(TWO), "plan.json")
    COMMANDS.write(Commands({"a": ("sh", "-c", "echo a >>ran"), "b": ("sh", "-c", "echo b >>ran")}), "commands.json")
    return ["batch.json", "plan.json", "--commands", "commands.json"]


def test_parts_are_carried_out_by_what_stands_beside_them(run, files, tmp_path):
    assert run("run", *files, "--devices", "n1/0,n2/0", "--split", "parts; touch pwned").code == 0
    folder = tmp_path / "parts; touch pwned"
    assert run("run", "--gather", folder).code == 2
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "mig-opt", f'exec {sys.executable} -m mig_opt "$@"')
    for host in ("n1", "n2"):
        (tmp_path / host).mkdir()
        machine = Machine(tmp_path / host, "A30")
        path = f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"
        for _ in range(2):  # the second time there is nothing to do
            script = folder / "nodes" / host / "run.sh"
            environment = {**machine.environment, "PATH": path}
            subprocess.run([script, "--user", USER], check=True, env=environment, capture_output=True)
        if host == "n1":
            assert run("run", "--gather", folder, "--quiet").code == 1
            assert not gather(folder).ended
            for way in (["--resume"], ["--undo"], ["--engine", "slurm", "--resume"], ["--engine", "slurm", "--undo"]):
                refuses(run("run", *way, folder / "run.journal"), "is of parts (--split)", "start run.sh there again")
    assert sorted((tmp_path / "ran").read_text().split()) == ["a", "b"]
    assert run("run", "--gather", folder, "--journal", "whole.journal", "--quiet").code == 0
    whole = read_journal(tmp_path / "whole.journal")
    assert (whole.ended, set(whole.gpus)) == (True, {f"n1/{Machine.uuid(0)}", f"n2/{Machine.uuid(0)}"})
    assert validate(*whole.measured()).valid
    assert not (tmp_path / "pwned").exists()


def test_a_folder_with_something_in_it_is_left_alone(run, files, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "mine").touch()
    given = [*files, "--devices", "n1/0,n2/0", "--split"]
    for more in (["--dry-run"], ["--engine", "slurm"]):
        assert f"{more[0]}: and --split exclude each other" in run("run", *given, "new", *more).err
    assert run("run", *given, "parts").code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["batch.json", "commands.json", "parts", "plan.json"]
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["mine"]


def test_the_journal_of_another_plan_is_refused(tmp_path):
    words, plans = Commands({task.name: ("true",) for task in TWO.tasks}), []
    for name, batch in (("one", TWO), ("two", TWO.replace(tasks=(Task("a", {2: 3.0}), Task("b", {1: 2.0, 4: 1.0}))))):
        plans.append(Journal(batch, far(batch), words, ("n1/0", "n2/0")))
        split(plans[-1], tmp_path / "new" / name)
    nodes = tmp_path / "new" / "one" / "nodes"
    shutil.copy(tmp_path / "new" / "two" / "plan.journal", nodes / "n1" / "run.journal")
    refused(gather, tmp_path / "new" / "one", match="n1: is the journal of another plan")


def test_a_second_process_waits_and_sigterm_is_ctrl_c(tmp_path):
    journal = tmp_path / "run.journal"
    journal.write_text('{"schema": "mig-op')
    script = f"""
import os, time
from pathlib import Path
from mig_opt.operations.execute.parts import alone
with alone(Path({str(journal)!r})):
    Path({str(tmp_path / "in")!r}).touch()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        Path({str(tmp_path / "out")!r}).touch()
os.kill(os.getpid(), {int(signal.SIGTERM)})
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    while not (tmp_path / "in").exists():
        assert process.poll() is None
    assert not journal.exists(), "what was killed in its first line is nothing"
    process.send_signal(signal.SIGTERM)
    with alone(journal):
        assert (tmp_path / "out").exists()
    assert process.wait() == 0, "a signal that is sent twice, as by Slurm and by its script, does no more than once"
