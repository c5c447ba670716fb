"""Tables of a GPU and its partition state machine: states, placements, fragmentation, reach, against enumeration."""

from fractions import Fraction
from functools import cache

import pytest
from online_worlds import A100, TABLES, place

from mig_opt import GpuModel, InputError, Placement, catalogue, get_gpu
from mig_opt.gpu.geometry import geometry_of
from mig_opt.gpu.reachability import Reachability, partition_state_machine, reachable_configurations


def busy(*names: str) -> int:
    return TABLES.mask(map(place, names))


@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
def test_tables_against_the_definition(gpu: GpuModel) -> None:
    """Every placed state, with the formula in fractions over the objects of the catalogue."""
    tables = geometry_of(gpu)
    profiles = gpu.profiles_of("double-memory")
    for state in gpu.placed_states("double-memory"):
        mask = tables.mask(tables.index(placement.profile.name, placement.start) for placement in state)
        usage = tables.usage(mask)
        compute = gpu.compute_slices - sum(placement.profile.compute_slices for placement in state)
        memory = gpu.memory_slices - sum(placement.profile.memory_slices for placement in state)
        cost = Fraction(0)
        for number, profile in enumerate(profiles):
            free = [
                placement
                for placement in tables.placements
                if placement.profile == profile and not any(placement.conflicts(other) for other in state)
            ]
            assert [tables.placements[index] for index in usage.available[number]] == free
            ideal = min(compute // profile.compute_slices, memory // profile.memory_slices)
            cost += 1 - Fraction(len(free), ideal) if ideal else 0
        assert Fraction(usage.cost, tables.unit) == cost / len(profiles)
        assert 0 <= tables.fragmentation(mask) <= 1


def test_profiles_with_attributes_take_part_only_if_wanted() -> None:
    with pytest.raises(InputError, match="not among the profiles"):
        TABLES.index("1g.5gb+me", 0)
    tables = geometry_of(A100, "all")
    one, two = tables.index("1g.5gb+me", 0), tables.index("1g.5gb+me", 6)
    assert tables.conflicts[one] >> two & 1, "only one with media engines may exist"
    assert tables.fragmentation(0) == 0


def test_options_of_a_state() -> None:
    """3g on an empty GPU: at 4 it costs nothing, at 0 it costs 1.75 / 6; an idle instance comes first among equals."""
    state = TABLES.state(0, busy("1g.5gb@5"))
    halves, ones = (state.options(TABLES.profile_of[place(name)]) for name in ("3g.20gb@0", "1g.5gb@0"))
    assert [TABLES.placements[option.placement].start for option in halves] == [4, 0]
    found = [(TABLES.placements[option.placement].start, option.creates) for option in ones]
    assert found[:2] == [(6, True), (5, False)]


GPUS = ("A100", "A30", "H100", "RTX-PRO-6000")


@cache
def finals_by_force(gpu: GpuModel) -> list[frozenset[Placement]]:
    """Full configurations: sets of placements without an overlap to which no placement can be added."""

    def extend(chosen: frozenset[Placement], left: tuple[Placement, ...]) -> set[frozenset[Placement]]:
        found = {chosen}
        for index, placement in enumerate(left):
            rest = tuple(other for other in left[index + 1 :] if not set(other.footprint) & set(placement.footprint))
            found |= extend(chosen | {placement}, rest)
        return found

    states = extend(frozenset(), gpu.placements())
    return [
        state
        for state in states
        if not any(all(not set(new.footprint) & set(old.footprint) for old in state) for new in gpu.placements())
    ]


@pytest.mark.parametrize("name", GPUS)
def test_reachability_is_that_of_all_enumerated_configurations(name: str) -> None:
    gpu = get_gpu(name)
    tables = geometry_of(gpu)
    reachability, finals = Reachability(tables), finals_by_force(gpu)
    assert reachability.of(0) == len(finals) == len(gpu.maximal_partitions())
    for state in gpu.placed_states():
        mask = tables.mask(tables.index(placement.profile.name, placement.start) for placement in state)
        assert reachability.of(mask) == sum(final.issuperset(state) for final in finals), state


def test_the_machine_of_an_a100() -> None:
    machine = partition_state_machine(A100)
    assert len(machine) == 298
    assert {frozenset(state) for state in machine if not machine.out_degree(state)} == set(finals_by_force(A100))
    # Each state is reached by adding any of its instances last.
    assert all(machine.in_degree(state) == len(state) for state in machine)
    for one, two, data in machine.edges(data=True):
        assert set(two) - set(one) == {data["placement"]}


def test_instances_that_are_not_counted_take_up_room() -> None:
    """1g.10gb@6 takes the slices 6 and 7: right of slice 3, 2g@4 or two 1g are left. 6 x 2 = 12."""
    assert Reachability(TABLES).of(TABLES.mask([place("1g.10gb@6")])) == 12
    both = [A100.placement("1g.10gb", 6)]
    assert len(reachable_configurations(A100, both, "double-memory")) == Reachability(TABLES, "double-memory").of(
        TABLES.mask([place("1g.10gb@6")])
    )


def test_what_is_no_state() -> None:
    with pytest.raises(InputError, match=r"4g\.20gb@0 \+ 2g\.10gb@2 is no state of A100"):
        reachable_configurations(A100, [A100.placement("2g.10gb", 2), A100.placement("4g.20gb", 0)])
    with pytest.raises(InputError, match=r"1g\.10gb@0 is no state of A100-40GB with the profiles 'base'"):
        reachable_configurations(A100, [A100.placement("1g.10gb", 0)])
