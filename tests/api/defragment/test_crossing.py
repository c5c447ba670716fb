"""Defragmentation with jobs that may move to GPUs of other kinds, compared with trying every migration."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from command_line import Command
from documents import complaints
from migration_search import cost, fits, has_room

from mig_opt import FleetState, HeldInstance, Migration, defragment, get_gpu, read, write
from mig_opt.api.defragment import crossing
from mig_opt.operations.rollout.changes import migrations_as_change
from mig_opt.validation import validate_migrations

A30, A100, H100 = get_gpu("A30"), get_gpu("A100"), get_gpu("H100")
SAME_SIZE = {
    "A30-24GB": {1: "1g.6gb", 2: "2g.12gb", 4: "4g.24gb"},
    "A100-40GB": {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb"},
}
SMALL = {"A30": "1g.6gb"}
CHAT = tuple(HeldInstance(0, "1g.5gb", start, f"chat-{start}", elsewhere=SMALL) for start in (0, 3, 5))
WEIGHTED = (
    HeldInstance(0, "2g.12gb", 0, "heavy", weight=5),
    *(HeldInstance(1, "1g.6gb", 1 + at, f"light-{at}") for at in (1, 2)),
)
MIXED = FleetState(None, 2, CHAT, kinds=(A100, A30))

Places = tuple[tuple[int, str, int], ...]
"""The place of each job."""


def looks(state: FleetState, places: Places) -> list[frozenset[tuple[str, int]]]:
    return [frozenset((p, s) for gpu, p, s in places if gpu == own) for own in range(state.gpus)]


def steps(state: FleetState, places: Places) -> list[tuple[int, Places]]:
    """Each migration that is possible: the number of the job, and where all are then."""
    found, there = [], looks(state, places)
    for job, held in enumerate(state.instances):
        names = {state.kind(held.gpu).name: held.profile, **held.elsewhere}
        for gpu in range(state.gpus) if not held.pinned else ():
            if profile := names.get(state.kind(gpu).name):
                for start in fits(state.kind(gpu), there[gpu], profile):
                    found.append((job, (*places[:job], (gpu, profile, start), *places[job + 1 :])))
    return found


def weights(state: FleetState, most: float = math.inf) -> dict[Places, int]:
    """The least weight of at most so many migrations that lead to each state that can be reached."""
    last = {tuple((held.gpu, held.profile, held.start) for held in state.instances): 0}
    done = dict(last)
    while last and most > 0:
        before, last, most = last, {}, most - 1
        for places, weight in before.items():
            for job, after in steps(state, places):
                total = weight + state.instances[job].weight
                if total < done.get(after, math.inf):
                    done[after] = last[after] = total
    return done


def fragmentation(state: FleetState, places: Places) -> float:
    return sum(cost(state.kind(gpu), look) for gpu, look in enumerate(looks(state, places))) / state.gpus


def random_state(rng: Random) -> FleetState:
    kinds = rng.choice([(A100, A30), (A30, A100), (A100, A30, A30)])
    state = FleetState(None, len(kinds), (), kinds=kinds)
    held: list[HeldInstance] = []
    weighed = rng.random() < 0.3
    for number in range(rng.randint(1, 4)):
        gpu = rng.randrange(len(kinds))
        sizes = SAME_SIZE[kinds[gpu].name]
        there = frozenset((one.profile, one.start) for one in held if one.gpu == gpu)
        profile = rng.choice([*sizes.values()])
        if starts := fits(kinds[gpu], there, profile):
            size = next(size for size, name in sizes.items() if name == profile)
            other = A30 if kinds[gpu] == A100 else A100
            elsewhere = {other.name: SAME_SIZE[other.name].get(size, "1g.6gb")} if rng.random() < 0.7 else {}
            weight = rng.randint(1, 3) if weighed else 1
            pinned = rng.random() < 0.15
            place = (gpu, profile, rng.choice(starts), f"job-{number}", pinned)
            held.append(HeldInstance(*place, weight=weight, elsewhere=elsewhere))
    return dataclasses.replace(state, instances=tuple(held))


def seeds(count: int, *, deep: int) -> list[Any]:
    return [*range(count), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(count, deep))]


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_where_the_search_ends_early(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossing, "_MOST_WORK", 20)
    state = random_state(Random(seed))
    reached = weights(state)
    least = min((round(fragmentation(state, places), 9), weight) for places, weight in reached.items())
    result = defragment(state)
    assert result.least_fragmentation <= least[0] + 1e-9
    assert result.lower_bound <= (result.objective or 0)
    assert result.status.value == "feasible" or (round(result.fragmentation or 0.0, 9), result.objective) == least
    used = min((len({gpu for gpu, _, _ in places}), weight) for places, weight in reached.items())
    result = defragment(state, free="gpus")
    assert state.gpus - result.most_free <= used[0] <= state.gpus - len(result.free)
    assert result.status.value == "feasible" or (state.gpus - len(result.free), result.objective) == used
    rooms = [weight for places, weight in reached.items() if has_room(state.kinds, looks(state, places), ("7g.40gb",))]
    result = defragment(state, ["7g.40gb"])
    assert result.status.value != "infeasible" or not rooms
    assert result.status.value != "optimal" or result.objective == min(rooms)
    assert result.lower_bound <= min(rooms, default=0)


@pytest.mark.parametrize("seed", seeds(25, deep=300))
def test_plans_are_as_good_as_trying_everything(seed: int) -> None:
    rng = Random(seed)
    state = random_state(rng)
    room = tuple(rng.choices(["1g.6gb", "2g.12gb", "4g.24gb", "3g.20gb", "4g.20gb", "7g.40gb"], k=rng.randint(1, 2)))
    for most in (None, rng.randint(0, 3)):
        reached = weights(state, math.inf if most is None else most)
        with_room = [weight for places, weight in reached.items() if has_room(state.kinds, looks(state, places), room)]
        result = defragment(state, room, most_migrations=most)
        expected = ("optimal", min(with_room)) if with_room else ("infeasible", None)
        assert (result.status.value, result.objective) == expected, room
        least = min((round(fragmentation(state, places), 9), weight) for places, weight in reached.items())
        result = defragment(state, most_migrations=most)
        assert (result.status.value, round(result.fragmentation, 9), result.objective) == ("optimal", *least)
        assert result.least_fragmentation == pytest.approx(least[0])
        used = min((len({gpu for gpu, _, _ in places}), weight) for places, weight in reached.items())
        result = defragment(state, free="gpus", most_migrations=most)
        assert (result.status.value, state.gpus - len(result.free), result.objective) == ("optimal", *used)
        assert result.most_free == len(result.free)


def test_of_plans_of_two_kinds_that_are_as_good_the_lighter_one_is_taken() -> None:
    """Their fragmentation is the same but for the rounding of sums."""
    weights = {0: (2, 0, 0, 3), 1: (0, 1, 1), 2: (0, 0, 0, 3, 1, 1), 3: (0, 0, 3, 0, 3, 2)}
    held = (
        HeldInstance(gpu, "1g.6gb" if gpu < 2 else "1g.5gb", start, weight=weight)
        for gpu, own in weights.items()
        for start, weight in enumerate(own)
        if weight
    )
    result = defragment(FleetState(None, 4, tuple(held), kinds=(A30, A30, A100, A100)), most_migrations=1)
    assert (result.status.value, result.objective) == ("optimal", 1)


def test_jobs_move_only_where_the_state_allows_it() -> None:
    result = defragment(MIXED, ["7g.40gb"])
    assert [(step.to_gpu, step.new_profile) for step in result.migrations or ()] == [(1, "1g.6gb")] * 3
    assert result.after.instances[0].elsewhere == {"A100-40GB": "1g.5gb"}
    assert defragment(MIXED, ["7g.40gb"], within_gpus=True).plan is None
    assert defragment(staying(MIXED), ["7g.40gb"]).status.value == "infeasible"
    assert defragment(MIXED, ["7g.40gb"], most_migrations=2).status.value == "infeasible"


def staying(state: FleetState) -> FleetState:
    held = (dataclasses.replace(one, elsewhere={}) for one in state.instances)
    return dataclasses.replace(state, instances=tuple(held))


@pytest.mark.parametrize("goal", [{"room": ["7g.40gb"] * 6}, {"free": "gpus"}, {"free": "nodes"}, {}])
def test_a_large_fleet_has_a_plan_without_proof(goal: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossing, "_MOST_WORK", 1000)
    kinds = (A100,) * 6 + (A30,) * 8
    held = [HeldInstance(gpu, "1g.5gb", at, f"{gpu}-{at}", elsewhere=SMALL) for gpu in range(6) for at in (1, 4)]
    nodes = tuple(f"n{gpu}" for gpu in range(14))
    state = FleetState(None, 14, tuple(held), kinds=kinds, nodes=nodes)
    result, apart = defragment(state, **goal), defragment(staying(state), **goal)
    assert result.plan is not None
    assert validate_migrations(state, result.migrations or (), room=result.room).valid
    if "room" in goal:
        assert apart.plan is None
        assert defragment(state, ["7g.40gb"] * 7).reason.endswith("on these GPUs has that room")
    else:
        assert len(result.free) >= len(apart.free)
        assert (result.fragmentation or 0.0) <= (apart.fragmentation or 0.0) + 1e-9 or "free" in goal


def test_the_validator_knows_what_is_allowed() -> None:
    def codes(step: Migration) -> list[str]:
        return [str(violation.code) for violation in validate_migrations(MIXED, [step]).violations]

    assert codes(Migration(0, "1g.5gb", 0, 1, 0, to_profile="1g.6gb")) == []
    assert codes(Migration(0, "1g.5gb", 0, 1, 0, to_profile="2g.12gb")) == ["other-kind"]
    assert codes(Migration(0, "1g.5gb", 0, 0, 6, to_profile="1g.10gb")) == ["other-kind"]
    assert codes(Migration(0, "1g.5gb", 0, 1, 0)) == ["unknown-placement"]
    back = [Migration(0, "1g.5gb", 0, 1, 0, to_profile="1g.6gb"), Migration(1, "1g.6gb", 0, 0, 1, to_profile="1g.5gb")]
    assert validate_migrations(MIXED, back, rounds=(1, 2)).valid
    change = migrations_as_change(MIXED, back[:1])
    assert [(step.gpu, step.profile) for step in change.steps] == [(1, "1g.6gb"), (0, "1g.5gb")]
    create, destroy = A30.operation_costs.create[1], A100.operation_costs.destroy[1]
    assert change.duration == pytest.approx(create + destroy)


def test_files_and_the_command_line_know_it(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write(MIXED, path)
    assert read(FleetState, path) == MIXED
    outcome = run("defragment", path, "--for", "7g.40gb", "--json")
    assert outcome.code == 0
    assert {(step["profile"], step["to_profile"]) for step in outcome.json["steps"]} == {("1g.5gb", "1g.6gb")}
    assert "1g.5gb to 1g.6gb" in run("defragment", path, "--for", "7g.40gb").out
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["instances"][0]["elsewhere"] = {"A31": "1g.6gb", "A30": "3g.20gb", "a30-24gb": "1g.6gb"}
    path.write_text(json.dumps(raw), encoding="utf-8")
    told = complaints(read, FleetState, path)
    parts = ("A31", "did you mean"), ("A30", "3g.20gb"), ("a30-24gb", "has its profile already")
    assert len(told) == len(parts)
    for kind, words in parts:
        assert any(text.startswith(f"instances[0].elsewhere.{kind}: ") and words in text for text in told), told


def test_weights_beside_a_number_of_migrations_leave_no_false_bound() -> None:
    """Two light migrations in place of a heavy one are no reason to claim that nothing else can be freed."""
    whole = HeldInstance(2, "7g.40gb", 0, "whole", elsewhere={"A30": "4g.24gb"})
    state = FleetState(None, 3, (*WEIGHTED, whole), kinds=(A30, A30, A100), nodes=("n1", "n1", "n2"))
    found = defragment(state, free="nodes", most_migrations=2)
    assert (found.status.value, found.free, found.objective) == ("optimal", ("n2",), 6)


def test_of_few_migrations_one_kind_leaves_enough_for_the_other() -> None:
    """Two light ones of the A30 and one of the A100 are too many; with the heavy one in their place two are enough."""
    held = (*WEIGHTED, HeldInstance(2, "1g.5gb", 0, "a"), HeldInstance(2, "2g.10gb", 4, "b"))
    state, room = FleetState(None, 3, held, kinds=(A30, A30, A100)), ["4g.24gb", "4g.20gb"]
    found = [defragment(state, room, most_migrations=most) for most in (1, 2, 3)]
    assert [result.objective for result in found] == [None, 6, 3]
    assert [result.status.value for result in found] == ["infeasible", "optimal", "optimal"]
    assert found[0].reason.endswith("of their kinds with at most 1 migration has that room")


def test_weights_do_not_count_where_jobs_stay_on_their_gpus() -> None:
    heavy = HeldInstance(0, "1g.5gb", 0, "heavy", weight=3)
    for kinds in ((A100, A30), (A100, A100)):
        result = defragment(FleetState(None, 2, (heavy,), kinds=kinds), within_gpus=True)
        assert (result.objective, result.lower_bound) == (1, 1)


def test_weights_count_on_a_gpu_that_is_the_only_one_of_its_kind() -> None:
    """Either job of the A30 may leave the other half of it: the light one does."""
    held = HeldInstance(1, "1g.6gb", 0, "heavy", weight=3), HeldInstance(1, "1g.6gb", 2, "light", weight=2)
    state = FleetState(None, 2, held, kinds=(A100, A30))
    for goal in ({}, {"fragmentation": 0.0}, {"room": ["2g.12gb"]}):
        result = defragment(state, **goal)
        assert (result.status.value, result.objective, result.lower_bound) == ("optimal", 2, 2), goal
    assert defragment(state, free="gpus").free == (0,)
    # Nothing moves on one that is full: that says nothing against the proof of the others.
    held = HeldInstance(0, "1g.5gb", 6, "a"), HeldInstance(1, "4g.24gb", 0, "b", weight=2)
    full = FleetState(None, 2, held, kinds=(A100, A30))
    assert defragment(full, most_migrations=0).proven == ("fragmentation", "migrations")
