"""Tables of a GPU: placed states, available placements, fragmentation."""

from fractions import Fraction

import pytest
from online_worlds import A100, TABLES, place

from mig_opt import GpuModel, InputError, catalogue
from mig_opt.gpu.geometry import geometry_of, members


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


def test_members() -> None:
    assert list(members(0)) == []
    assert list(members(TABLES.mask([5, 0, 17]))) == [0, 5, 17]


def test_options_of_a_state() -> None:
    """3g on an empty GPU: at 4 it costs nothing, at 0 it costs 1.75 / 6; an idle instance comes first among equals."""
    state = TABLES.state(0, busy("1g.5gb@5"))
    assert [
        TABLES.placements[option.placement].start for option in state.options(TABLES.profile_of[place("3g.20gb@0")])
    ] == [4, 0]
    ones = state.options(TABLES.profile_of[place("1g.5gb@0")])
    assert [(TABLES.placements[option.placement].start, option.creates) for option in ones][:2] == [
        (6, True),
        (5, False),
    ]
