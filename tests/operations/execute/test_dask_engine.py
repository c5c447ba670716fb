"""Plans of two nodes on a Dask cluster: what is refused, what has not begun, new plans."""

import os
import signal

import pytest
from documents import refused
from node_plans import BATCH, DEVICES, NOTHING, PLAN, USER, Client, commands, places

from mig_opt import Batch, Commands, InputError, Journal, Run, Task, get_gpu, run_schedule, undo_schedule
from mig_opt.batch.timing import retimed_schedule
from mig_opt.files.batch.journals import read_journal, write_journal
from mig_opt.operations.execute.schedules import engine_of
from mig_opt.validation import validate

pytestmark = [pytest.mark.deep, pytest.mark.parametrize("nodes", ["dask"], indirect=True)]


def test_what_speaks_against_it_is_told_of_all_nodes_before_anything_is_changed(nodes, tmp_path):
    nodes.machines["n1"].mode(0, 0)
    nodes.machines["n2"].add(0, "1g.6gb", 1, pid=7)
    options = {"journal": tmp_path / "j", "engine": nodes.engine}
    with pytest.raises(InputError) as error:
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), devices=DEVICES, user="nobody-at-all", **options)
    text = str(error.value)
    for part in ("n1: devices[0]: MIG mode is off", "n2: devices[0]: an instance is in the way", "no user 'nobody-at"):
        assert part in text
    with pytest.raises(
        InputError, match=r"n3: has no worker; start there: dask worker tcp://127.0.0.1:\d+ --resources"
    ):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), devices=["n1/0", "n3/0"], user=USER, **options)
    os.kill(nodes.worker_of("n2"), signal.SIGSTOP)
    with pytest.raises(InputError, match=r"n2: its worker has not answered for 8 s"):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), devices=DEVICES, user=USER, **options)
    assert not (tmp_path / "j").exists()
    assert [machine.log for machine in nodes.machines.values()] == [[], []]


def test_what_has_not_begun_is_taken_back_and_a_stopped_scheduler_is_told(nodes, tmp_path):
    client = Client(nodes, tmp_path)
    words = commands(tmp_path, 0)
    write_journal(Journal(BATCH, PLAN, words, tuple(DEVICES), str(tmp_path), "ab", USER, nodes.engine), client.journal)
    assert undo_schedule(client.journal) == []
    assert places(nodes) == NOTHING
    client.ends(client.start("--dry-run"))
    assert [machine.log for machine in nodes.machines.values()] == [[], []]
    engine = engine_of(nodes.engine)
    os.kill(nodes.scheduler.pid, signal.SIGSTOP)
    refused(engine.check, {}, begun=True, match="engine: no Dask scheduler answers at tcp://127.0.0.1")
    assert "no Dask scheduler answers at tcp://127.0.0.1" in client.ends(client.start("--undo", str(client.journal)), 2)


def test_nodes_plan_anew_and_the_whole_knows(nodes, tmp_path):
    tasks = Task("late", {1: 0.3}), Task("next", {1: 0.3}), Task("short", {1: 0.5}), Task("other", {1: 0.3})
    batch = Batch(tasks, get_gpu("A30"), 2)
    places_of = {"late": (0, 0, 0), "short": (0, 1, 0), "other": (1, 0, 0), "next": (0, 0, 1)}
    runs = [Run(task, gpu, "1g.6gb", start, at, at + 1) for task, (gpu, start, at) in places_of.items()]
    slept = {"late": "4", "next": "0.3", "short": "0.5", "other": "0.3"}
    words = Commands({name: ("sleep", seconds) for name, seconds in slept.items()})
    journal = tmp_path / "run.journal"
    options = {"journal": journal, "devices": DEVICES, "engine": nodes.engine, "user": USER, "replan": 0.2}
    told: list[str] = []
    observe = lambda _, event: told.append(event.kind)  # noqa: E731
    assert run_schedule(batch, retimed_schedule(batch, runs), words, observe=observe, **options).complete
    whole = read_journal(journal)
    assert [event.kind for event in whole.events] == told
    (moved,) = (run for run in whole.runs() if run.task == "next")
    assert whole.lifetimes[moved.instance].location[0] == 0
    assert whole.lifetimes[moved.instance].start in (1, 2)  # the slice behind them is somebody else's
    assert [event.others for event in whole.events if event.kind == "replan"] == [(0,)]
    assert validate(*whole.measured()).valid
    assert undo_schedule(journal) == []
    assert places(nodes) == NOTHING
