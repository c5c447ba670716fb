"""Tables of a GPU: placed states, available placements, fragmentation."""

from __future__ import annotations

from fractions import Fraction

import pytest
from online_worlds import A100, TABLES, place

from mig_opt import GpuModel, InputError, catalogue, get_gpu
from mig_opt.gpu.geometry import geometry_of, members


def busy(*names: str) -> int:
    return TABLES.mask(map(place, names))


def test_an_empty_gpu_is_not_fragmented() -> None:
    # ideal = available = 1 7g, 1 4g, 2 3g, 3 2g, 4 1g.10gb, 7 1g.
    assert [len(places) for places in TABLES.usage(0).available] == [1, 1, 2, 3, 4, 7]
    assert TABLES.fragmentation(0) == 0


@pytest.mark.parametrize(
    ("names", "lost"),
    [
        # 6 compute, 7 memory slices left. 4g: 1 of 1, 3g@0: 1 of 1, 2g at 0 and 2: 2 of 3, 1g.10gb at 0, 2, 6: 3 of 3,
        # 1g: 6 of 6; 7g has no ideal.
        (["1g.5gb@4"], Fraction(1, 3)),
        # 6 and 7 left. 4g 1/1, 3g@0 1 of min(6 // 3, 7 // 4) = 1, 2g 3/3, 1g.10gb at 0, 2, 4 3/3, 1g 6/6.
        (["1g.5gb@6"], Fraction(0)),
        # 3 and 4 left. 3g 1/1, 2g 1/1, 1g.10gb 2/2, 1g 3/3; 4g has no ideal.
        (["4g.20gb@0"], Fraction(0)),
        # 4 and 4 left in slices 4-7. 4g 0/1, 3g 1/1, 2g 1/2, 1g.10gb 2/2, 1g 3/4.
        (["3g.20gb@0"], 1 + Fraction(1, 2) + Fraction(1, 4)),
        # 4 and 4 left in slices 0-3: all.
        (["3g.20gb@4"], Fraction(0)),
        # 5 and 6 left (1, 3-7): 4g 0/1, 3g@4 1/1, 2g@4 1/2, 1g.10gb@4,6 2/3, 1g 5/5.
        (["1g.5gb@0", "1g.5gb@2"], 1 + Fraction(1, 2) + Fraction(1, 3)),
        # Nothing is left.
        (["7g.40gb@0"], Fraction(0)),
    ],
)
def test_fragmentation_by_hand(names: list[str], lost: Fraction) -> None:
    assert Fraction(TABLES.usage(busy(*names)).cost, TABLES.unit) == lost / 6


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


def test_equal_states_are_one_object() -> None:
    states = TABLES
    assert states.state(1, 2) is states.state(1, 2)
    assert states.state(1, 2) is not states.state(2, 1)


def test_geometry_is_kept() -> None:
    assert geometry_of(get_gpu("A100")) is geometry_of(A100)
