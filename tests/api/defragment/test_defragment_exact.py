"""The fewest migrations against brute force, and on larger fleets against the paper's greedy rules."""

import dataclasses

import pytest
from held_fleets import fleet, random_fleet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from migration_search import Look, Looks, distances, fewest, fragmentation, has_room, looks_of, state_of

import mig_opt.api.defragment.plans as planning
from mig_opt import (
    FleetState,
    GpuModel,
    InputError,
    Job,
    OperationCosts,
    Status,
    Trace,
    defragment,
    excess_fragmentation,
    get_gpu,
    least_fragmentation,
    simulate,
)
from mig_opt.api.defragment import greedy_migrations
from mig_opt.validation import validate_migrations

A100, A30 = get_gpu("A100"), get_gpu("A30")


# Against brute force


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
            room = defragment(state, [name])
            wanted = fewest(reached, lambda looks, name=name: has_room(gpu, looks, (name,)))  # type: ignore[misc]
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
        best = fewest(allowed, lambda looks: has_room(gpu, looks, wanted))
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


# Larger fleets


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


@settings(max_examples=12, deadline=None)
@given(st.integers(2, 12), st.sampled_from([0.3, 0.5, 0.7, 0.9]), st.integers(0, 10**6))
def test_never_more_migrations_than_the_greedy_rules(gpus: int, load: float, seed: int) -> None:
    """The paper's rules (section IV-D) beside the fewest migrations that leave as little fragmentation."""
    state = random_fleet(gpus, load, seed)
    greedy = greedy_migrations(state)
    reached = validate_migrations(state, greedy)
    assert reached.valid
    result = defragment(state, fragmentation=min(1.0, reached.fragmentation))
    assert result.migrations is not None
    assert len(result.migrations) <= len(greedy)
    assert least_fragmentation(state) <= reached.fragmentation + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.floats(0.2, 1.0), st.integers(0, 10**6), st.booleans(), st.none() | st.integers(0, 4))
def test_what_comes_out_is_valid_and_says_no_more_than_is_true(
    gpus: int, load: float, seed: int, within: bool, most: int | None
) -> None:
    state = random_fleet(gpus, load, seed)
    result = defragment(state, within_gpus=within, most_migrations=most)
    assert result.migrations is not None
    found = validate_migrations(state, result.migrations, within_gpus=within, most_migrations=most)
    assert found.valid
    assert found.fragmentation == pytest.approx(result.fragmentation)
    assert result.least_fragmentation <= found.fragmentation + 1e-9
    assert result.lower_bound <= len(result.migrations)
    assert len(result.after.instances if result.after else ()) == len(state.instances)


def test_a_plan_without_proof_is_no_worse_than_the_greedy_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing finds an order, and nothing is searched; within their GPUs instances do not get as far as greedily."""
    state = random_fleet(4, 0.5, seed=6)
    greedy = validate_migrations(state, greedy_migrations(state)).fragmentation
    monkeypatch.setattr(planning, "ordered", lambda *_, **__: None)
    monkeypatch.setattr(planning, "FIRST_SEARCH", -1)
    monkeypatch.setattr(planning, "LAST_SEARCH", -1)
    result = defragment(state)
    assert result.status is Status.FEASIBLE
    assert result.fragmentation is not None
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
    with pytest.raises(InputError, match="without pinned instances"):
        greedy_migrations(fleet(["1g.5gb@0*"]))


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
