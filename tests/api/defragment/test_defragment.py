"""The fewest migrations: by hand, with limits, and what is wrong."""

import math
from typing import Any

import pytest
from held_fleets import fleet, random_fleet

import mig_opt.api.defragment.plans as planning
from mig_opt import FleetState, HeldInstance, InputError, Status, defragment, get_gpu
from mig_opt.api.defragment.order import ordered
from mig_opt.gpu.geometry import geometry_of
from mig_opt.models.fleet.defragmentation import TargetChoice, choose_targets
from mig_opt.validation import validate_migrations

A100, A30 = get_gpu("A100"), get_gpu("A30")


# By hand


def test_as_little_fragmentation_as_is_enough() -> None:
    state = fleet(["2g.10gb@0", "1g.5gb@5"])
    one = defragment(state, most_migrations=1)
    assert one.fragmentation is not None
    assert defragment(state, fragmentation=one.fragmentation).lower_bound == 1
    assert defragment(state, fragmentation=one.fragmentation - 1e-6).lower_bound == 2
    assert defragment(state, fragmentation=1.0).migrations == ()
    assert defragment(state, fragmentation=0.0, most_migrations=1).status is Status.INFEASIBLE


def test_a_fragmentation_is_as_low_as_it_is_when_rounded() -> None:
    """A figure with nine digits is enough for the validator, so it is for the plan."""
    state = fleet(["1g.5gb@1"], [], [])
    before = defragment(state, ["1g.5gb"]).fragmentation_before
    stated = math.floor(before * 1e9) / 1e9
    assert stated < before
    assert validate_migrations(state, (), fragmentation=stated).valid
    assert defragment(state, fragmentation=stated).migrations == ()


def test_a_swap_takes_a_detour() -> None:
    """On two A30s 2g@0 and two 1g are to change places, and 2g@2 stays. Only GPU 2 has a place for 2g on the way."""
    tables = geometry_of(A30)

    def mask(*places: tuple[str, int]) -> int:
        return tables.mask(tables.index(profile, start) for profile, start in places)

    stays = ("2g.12gb", 2)
    before = [mask(stays, ("2g.12gb", 0)), mask(stays, ("1g.6gb", 0), ("1g.6gb", 1)), mask(stays)]
    after = [before[1], before[0], before[2]]
    assert ordered(tables, before, after) is None
    found = ordered(tables, before, after, detours=True)
    assert found is not None
    # 2g to GPU 2, two times 1g to GPU 0, 2g to GPU 1: one more than the three instances that change their GPU.
    assert [move.target[0] for move in found] == [2, 0, 0, 1]
    full = [*before[:2], mask(stays, ("1g.6gb", 0))]
    assert ordered(tables, full, [*after[:2], full[2]], detours=True) is None


def test_variants_of_profiles_count_too() -> None:
    """Of 1g.5gb+me one may exist on a GPU, so room for a second one is on another GPU."""
    held = HeldInstance(0, "1g.5gb+me", 0)
    assert defragment(FleetState(A100, 1, (held,)), ["1g.5gb+me"]).status is Status.INFEASIBLE
    assert defragment(FleetState(A100, 2, (held,)), ["1g.5gb+me"]).room == ((1, "1g.5gb+me", 0),)
    assert defragment(fleet(["1g.5gb@0"]), ["1g.5gb+me"]).status is Status.OPTIMAL


# Limits and arguments


def test_without_time_there_is_a_plan_but_no_proof() -> None:
    state = random_fleet(10, 0.7, seed=3)
    result = defragment(state, time_limit=1e-9)
    assert (result.status, result.migrations, result.proven) == (Status.FEASIBLE, (), ())
    assert result.lower_bound == 0
    full = defragment(random_fleet(10, 0.9, seed=3), ["7g.40gb"], time_limit=1e-9)
    assert (full.status, full.migrations) == (Status.NO_SOLUTION, None)


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_bound_counts_only_for_as_little_fragmentation(monkeypatch: pytest.MonkeyPatch, interrupted: bool) -> None:
    """The run ends where the fewest migrations for the least fragmentation are sought: the plan so far is to stay."""
    goals = []

    def end_early(columns: object, task: object, limits: object, goal: str, *_: object, share: float) -> TargetChoice:
        goals.append(goal)
        if goal == "cost":
            return choose_targets(columns, task, limits, goal)  # type: ignore[arg-type]
        if interrupted:
            raise KeyboardInterrupt
        return TargetChoice(Status.NO_SOLUTION, {}, 3)

    monkeypatch.setattr(planning, "choose_targets", end_early)
    result = defragment(random_fleet(10, 0.7, seed=3))
    assert goals == ["cost", "weight"]
    assert (result.migrations, result.lower_bound, result.proven) == ((), 0, ())
    assert result.status is (Status.INTERRUPTED if interrupted else Status.FEASIBLE)
    assert result.least_fragmentation < (result.fragmentation or 0.0)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    limits: dict[str, Any] = {"within_gpus": 1, "most_migrations": -1, "time_limit": 0, "seed": -1}
    with pytest.raises(InputError) as caught:
        defragment(fleet([]), ["3g.2gb", "1g.5gb", "x"], fragmentation=2.0, **limits)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["room[0]", "room[2]", "fragmentation", "fragmentation", *limits]
    for wrong in ({"room": "3g.20gb"}, {"room": []}, {"state": "fleet.json"}):
        with pytest.raises(InputError):
            defragment(**{"state": fleet([]), **wrong})  # type: ignore[arg-type]
