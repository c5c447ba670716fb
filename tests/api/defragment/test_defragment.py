"""The fewest migrations: by hand, with limits, against brute force, and against the paper's greedy rules."""

import dataclasses
import math
from typing import Any

import pytest
from documents import refused
from held_fleets import fleet, random_fleet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from migration_search import Look, Looks, distances, fewest, fragmentation, has_room, looks_of, state_of

import mig_opt.api.defragment.plans as planning
from mig_opt import FleetState, GpuModel, HeldInstance, OperationCosts, Status, get_gpu, simulate
from mig_opt.api.defragment import defragment, greedy_migrations
from mig_opt.api.defragment.order import ordered
from mig_opt.api.defragment.references import excess_fragmentation, least_fragmentation
from mig_opt.fleet.trace import Job, Trace
from mig_opt.gpu.geometry import geometry_of
from mig_opt.models.fleet.defragmentation import TargetChoice, choose_targets
from mig_opt.validation import validate_migrations

A100, A30 = get_gpu("A100"), get_gpu("A30")


@pytest.mark.deep
@pytest.mark.parametrize("gpu", [A30, A100], ids=lambda model: model.name)
def test_every_state_of_a_gpu_is_exact(gpu: GpuModel) -> None:
    """All placed states (298 on an A100), for the least fragmentation and for room for each profile."""
    names = [profile.name for profile in gpu.profiles_of("base")]
    for placed in gpu.placed_states("base"):
        look: Look = frozenset((placement.profile.name, placement.start) for placement in placed)
        state, reached = state_of(gpu, (look,)), distances(gpu, (look,))
        least = min(fragmentation(gpu, looks) for looks in reached)
        result = defragment(state)
        assert result.status is Status.OPTIMAL
        assert result.fragmentation == pytest.approx(least)
        best = {looks: moves for looks, moves in reached.items() if fragmentation(gpu, looks) <= least + 1e-9}
        assert result.lower_bound == len(result.migrations or ()) == min(best.values())
        for name in names:
            room = defragment(state, iter([name]))
            wanted = fewest(reached, lambda looks, name=name: has_room([gpu], looks, (name,)))
            assert room.status is (Status.INFEASIBLE if wanted is None else Status.OPTIMAL)
            assert (None if room.migrations is None else len(room.migrations)) == wanted


@st.composite
def small_fleets(draw: st.DrawFn) -> tuple[FleetState, frozenset[tuple[int, tuple[str, int]]]]:
    """Two or three A30s, or two A100s that are nearly full, some instances pinned."""
    gpu, count = draw(st.sampled_from([(A30, 2), (A30, 3), (A100, 2)]))
    least = 5 if gpu is A100 else 0
    states = [s for s in gpu.placed_states("base") if sum(p.profile.compute_slices for p in s) >= least]
    looks: Looks = tuple(
        frozenset((placement.profile.name, placement.start) for placement in draw(st.sampled_from(states)))
        for _ in range(count)
    )
    spots = [(index, place) for index, look in enumerate(looks) for place in sorted(look)]
    pinned = frozenset(draw(st.sets(st.sampled_from(spots), max_size=2))) if spots else frozenset()
    return state_of(gpu, looks, pinned), pinned


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(small_fleets(), st.booleans(), st.none() | st.integers(0, 3), st.data())
def test_small_fleets_are_exact(
    drawn: tuple[FleetState, frozenset[tuple[int, tuple[str, int]]]],
    within: bool,
    most: int | None,
    data: st.DataObject,
) -> None:
    state, pinned = drawn
    gpu = state.gpu
    names = [profile.name for profile in gpu.profiles_of("base")]
    wanted = tuple(data.draw(st.lists(st.sampled_from(names), max_size=2)))
    reached = distances(gpu, looks_of(state), pinned, within=within)
    allowed = {looks: count for looks, count in reached.items() if most is None or count <= most}
    levels = sorted({fragmentation(gpu, looks) for looks in reached})
    enough = None if wanted else data.draw(st.none() | st.sampled_from(levels))
    result = defragment(state, wanted or None, fragmentation=enough, within_gpus=within, most_migrations=most)
    if wanted:
        best = fewest(allowed, lambda looks: has_room([gpu] * state.gpus, looks, wanted))
    elif enough is not None:
        best = fewest(allowed, lambda looks: fragmentation(gpu, looks) <= enough + 1e-9)
    else:
        least = min(fragmentation(gpu, looks) for looks in allowed)
        best = fewest(allowed, lambda looks: fragmentation(gpu, looks) <= least + 1e-9)
        assert result.least_fragmentation <= least + 1e-9
        if result.status is Status.OPTIMAL:
            assert result.fragmentation == pytest.approx(least)
        if most is None and not within:
            assert least_fragmentation(state) <= least + 1e-9
    found = None if result.migrations is None else len(result.migrations)
    assert result.status in {Status.OPTIMAL, Status.INFEASIBLE}, "these are small enough to be settled"
    assert found == best
    assert (result.status is Status.INFEASIBLE) == (best is None)


@pytest.mark.deep
@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.9])
def test_fifty_gpus_are_proven(load: float) -> None:
    state = random_fleet(50, load, seed=1)
    result = defragment(state)
    assert result.status is Status.OPTIMAL
    assert result.fragmentation == pytest.approx(least_fragmentation(state))
    room = defragment(state, ["7g.40gb", "4g.20gb", "3g.20gb"])
    assert room.status is Status.OPTIMAL
    assert sorted(profile for _, profile, _ in room.room) == ["3g.20gb", "4g.20gb", "7g.40gb"]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.floats(0.2, 1.0), st.integers(0, 10**6), st.booleans(), st.none() | st.integers(0, 4))
def test_plans_are_valid_claim_what_is_true_and_move_no_more_than_the_greedy_rules(
    gpus: int, load: float, seed: int, within: bool, most: int | None
) -> None:
    state = random_fleet(gpus, load, seed)
    result = defragment(state, within_gpus=within, most_migrations=most)
    found = validate_migrations(state, result.migrations, within_gpus=within, most_migrations=most)
    assert found.valid
    assert found.fragmentation == pytest.approx(result.fragmentation)
    assert result.least_fragmentation <= found.fragmentation + 1e-9
    assert result.lower_bound <= len(result.migrations)
    assert len(result.after.instances if result.after else ()) == len(state.instances)
    # The paper's rules (section IV-D) beside the fewest migrations that leave as little fragmentation.
    greedy = greedy_migrations(state)
    reached = validate_migrations(state, greedy)
    assert reached.valid
    assert len(defragment(state, fragmentation=min(1.0, reached.fragmentation)).migrations) <= len(greedy)
    assert least_fragmentation(state) <= reached.fragmentation + 1e-9


def test_a_plan_without_proof_is_no_worse_than_the_greedy_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing finds an order, and nothing is searched; within their GPUs instances do not get as far as greedily."""
    state = random_fleet(4, 0.5, seed=6)
    greedy = validate_migrations(state, greedy_migrations(state)).fragmentation
    monkeypatch.setattr(planning, "ordered", lambda *_, **__: None)
    monkeypatch.setattr(planning, "FIRST_SEARCH", -1)
    monkeypatch.setattr(planning, "LAST_SEARCH", -1)
    result = defragment(state)
    assert result.status is Status.FEASIBLE
    assert result.least_fragmentation < result.fragmentation == pytest.approx(greedy)
    assert greedy < (defragment(state, within_gpus=True).fragmentation or 0.0)


def test_the_greedy_rules_by_hand() -> None:
    """GPU 0 is busy with 5 slices, so it is put in order: with 1g@6 instead of 1g@4 there is room for 2g@4.

    GPU 1 with 2 of 7 is lazy, so jobs of GPU 0 come over while that keeps more load: 1g makes it 4 and 3, and then any
    other would leave GPU 0 with less.
    """
    state = fleet(["2g.10gb@0", "2g.10gb@2", "1g.5gb@4"], ["2g.10gb@4"])
    found = [str(migration) for migration in greedy_migrations(state)]
    assert found == ["1g.5gb@4 of GPU 0 to 6 of GPU 0", "1g.5gb@6 of GPU 0 to 6 of GPU 1"]
    refused(greedy_migrations, fleet(["1g.5gb@0*"]), match="without pinned instances")


def test_least_fragmentation_depends_on_the_instances_only() -> None:
    one, other = fleet(["2g.10gb@0", "1g.5gb@5"], []), fleet(["1g.5gb@0"], ["2g.10gb@4"])
    assert least_fragmentation(one) == least_fragmentation(other)
    pinned = fleet(["2g.10gb@0*", "1g.5gb@5*"])
    assert least_fragmentation(pinned) == pytest.approx(defragment(pinned).fragmentation_before)


def test_how_far_a_scheduler_is_from_the_least() -> None:
    """First fit puts 1g@0 and 2g@2, both from 0 to 10 s: 4 compute and 5 memory slices are left.

    Of ideally one 4g there is none, of two 2g one: (1 + 1/2) / 6 = 1/4, where 2g@4 and 1g@6 would lose nothing.
    """
    jobs = Job("a", 0.0, {1: 10.0}, "1g.5gb"), Job("b", 0.0, {2: 10.0}, "2g.10gb")
    trace = Trace(jobs, A100, operations=OperationCosts.zero(A100))
    first_fit, aware = (simulate(trace, policy).log for policy in ("first-fit", "fragmentation-aware"))
    assert excess_fragmentation(first_fit) == pytest.approx(1 / 4)
    assert excess_fragmentation(aware) == pytest.approx(0.0)
    # On two GPUs the second one is empty: half of it.
    assert excess_fragmentation(simulate(dataclasses.replace(trace, gpus=2), "first-fit").log) == pytest.approx(1 / 8)


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
            return choose_targets(columns, task, limits, goal)
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
    paths = refused(defragment, fleet([]), ["3g.2gb", "1g.5gb", "x"], fragmentation=2.0, **limits)
    assert paths == ["room[0]", "room[2]", "fragmentation", "fragmentation", *limits]
    for wrong in ({"room": "3g.20gb"}, {"room": []}, {"state": "fleet.json"}):
        assert refused(defragment, **{"state": fleet([]), **wrong}) == [*wrong]
