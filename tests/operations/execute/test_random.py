"""Random plans with random faults, killed anywhere and resumed: the end is always that of the plan."""

import os
import random
from pathlib import Path

import pytest
from executions import Execution, Killed, World, random_batch, random_faults, true_times
from nvml_machine import Machine

from mig_opt import Batch, Journal, Schedule, solve
from mig_opt.files.batch.journals import read_journal
from mig_opt.validation import validate


def free_places(batch: Batch, schedule: Schedule, gpu: int) -> list[tuple[str, int]]:
    """Places where an instance of somebody else is not in the way."""
    parts = [*schedule.runs, *(schedule.operations or ()), *batch.initial]
    used = [batch.gpu.placement(part.profile, part.start) for part in parts if part.gpu == gpu]
    return [
        (place.profile.name, place.start)
        for place in batch.gpu.placements()
        if not any(place.excludes(other) for other in used)
    ]


def check(seed: int, folder: Path) -> str:
    """Execute a random plan in spite of everything; return how that ended."""
    rng = random.Random(seed)
    folder.mkdir(exist_ok=True)
    batch = random_batch(rng, ["A30", "A100", "H100"], [1, 1, 2], 9)
    schedule = solve(batch, rng.choice(["far", "lpt", "fixpart-best"])).schedule or solve(batch, "far").schedule
    machine = Machine(folder, *[batch.gpu.name] * batch.gpus)
    with machine.loaded():
        foreign = set()
        for gpu in range(batch.gpus):
            places = free_places(batch, schedule, gpu)
            if places and rng.random() < 0.7:
                foreign.add(machine.add(gpu, *rng.choice(places), pid=rng.choice([0, 4711])))
        initial = {machine.add(live.gpu, live.profile, live.start) for live in batch.initial}
        random_faults(machine, batch.gpus, rng)
        seconds = true_times(batch, rng, 0.3, 2.5)
        codes = {run.task: 3 for run in schedule.runs if rng.random() < 0.1}
        world = World(machine, batch, seconds, codes)
        execution = Execution(world, schedule, folder / "journal", replan=rng.choice([None, 0.0, 0.2]))
        undone = rebooted = False
        for _ in range(rng.randint(0, 4)):
            world.left, world.torn = rng.randint(1, 120), rng.random() < 0.5
            try:
                execution.go(undo=undone)
                break
            except Killed:
                world.left = -1
                world.advance(world.now + rng.choice([0.0, 0.5, 30.0]))
            if read_journal(execution.path).ended:
                break
            if rng.random() < 0.1 and not batch.initial:
                world.reboot()
                rebooted, foreign = True, set()
            undone = not read_journal(execution.path).ended and (undone or rng.random() < 0.1)
        world.left = -1
        journal = read_journal(execution.path)
        if not journal.ended:
            assert execution.go(undo=undone) in (True, [])
            journal = read_journal(execution.path)
        undone = journal.events[-1].kind == "undo"
        assert journal.ended
        check_end(world, schedule, journal, foreign, initial, undone=undone)
        if undone:
            return "undone"
        assert world.ended == {task.name: 1 for task in batch.tasks}
        assert {run.task: run.code for run in journal.runs() if run.code} == codes
        if rebooted:
            return "rebooted"
        replanned = any(event.kind == "replan" for event in journal.events)
        found = validate(*journal.measured())
        assert found.valid, found
        return "replanned" if replanned else "done"


def check_end(
    world: World, schedule: Schedule, journal: Journal, foreign: set[str], initial: set[str], *, undone: bool
) -> None:
    machine, batch = world.machine, world.batch
    own = {line[3] for line in machine.log if line[0] == "compute"}
    touched = {line[3] for line in machine.log if line[0] == "discompute"}
    assert not touched & foreign
    assert touched <= own | initial
    there = [(gpu, one) for gpu in range(batch.gpus) for one in machine.instances(gpu)]
    assert foreign <= {one.uuid for _, one in there}
    assert all(one.uuid for _, one in there), "a GPU instance without compute instance is left behind"
    assert not any(attempt.end > world.now for attempt in world.attempts.values())
    if undone:
        assert {one.uuid for _, one in there} <= foreign | initial
        return
    expected = {(live.gpu, live.profile, live.start) for live in batch.initial}
    for operation in sorted(schedule.operations or (), key=lambda each: (each.begin, each.kind == "create")):
        place = operation.gpu, operation.profile, operation.start
        (expected.add if operation.kind == "create" else expected.discard)(place)
    if any(event.kind == "replan" for event in journal.events):  # the last plan has an end of its own
        alive = {
            event.instance: event.kind in ("created", "found")
            for event in journal.events
            if event.instance is not None and event.kind in ("created", "found", "destroyed", "lost")
        }
        expected = {journal.lifetimes[index].location for index, there in alive.items() if there}
    assert {(gpu, one.profile, one.start) for gpu, one in there if one.uuid not in foreign} == expected


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """The deaths here are not those of the machine."""
    monkeypatch.setattr(os, "fdatasync", lambda file: None)


@pytest.mark.parametrize("seed", range(12))
def test_some_plans(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.deep
def test_a_thousand_plans(tmp_path):
    ends = [check(seed, tmp_path / str(seed)) for seed in range(100, 1100)]
    assert len(ends) == 1000
    assert min(ends.count(end) for end in ("done", "undone", "rebooted", "replanned")) >= 40
