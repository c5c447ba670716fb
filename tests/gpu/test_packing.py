"""How many GPUs instances take, and how they are packed."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from demands import A30, A100, RTX
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt.gpu.catalogue import catalogue
from mig_opt.gpu.model import GpuModel, ProfileSet
from mig_opt.gpu.packing import Packer, packer_for


def packer(gpu: GpuModel, profiles: ProfileSet = "base") -> Packer:
    return packer_for(gpu, gpu.profiles_of(profiles))


def counts_for(profiles: int, most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(0, most)] * profiles)


def test_an_a100_has_four_weights() -> None:
    """Of 7g, 4g, 3g, 2g, 1g: memory slices, compute slices, thirds of 2g and 3g, 4g alone."""
    expected = {
        (1, Fraction(1, 2), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)),
        (1, Fraction(4, 7), Fraction(3, 7), Fraction(2, 7), Fraction(1, 7)),
        (1, Fraction(2, 3), Fraction(1, 3), Fraction(1, 3), 0),
        (1, 1, 0, 0, 0),
    }
    found = {tuple(Fraction(share).limit_denominator(100) for share in row) for row in packer(A100).weights}
    assert found == expected


@pytest.mark.parametrize("profiles", ["base", "double-memory"])
@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
def test_no_partition_weighs_more_than_one(gpu: GpuModel, profiles: ProfileSet) -> None:
    """That is what makes the weight of all instances a lower bound."""
    found = packer(gpu, profiles)
    assert len(found.weights)
    for partition in gpu.maximal_partitions(profiles):
        held = Counter(placement.profile for placement in partition)
        weights = found.weights @ [held[profile] for profile in found.profiles]
        assert weights.max() <= 1 + 1e-12


@pytest.mark.parametrize("gpu", [A100, A30, RTX], ids=lambda gpu: gpu.name)
def test_each_pattern_fills_one_gpu(gpu: GpuModel) -> None:
    found = packer(gpu)
    for pattern in found.patterns:
        assert found.gpus_for(pattern) == 1
        assert Counter(p.profile for p in found.placed(pattern)) == Counter(
            {profile: count for profile, count in zip(found.profiles, pattern, strict=True) if count}
        )


@given(st.data())
@settings(max_examples=200)
def test_packing_places_everything_on_as_few_gpus_as_the_weights_allow(data: st.DataObject) -> None:
    found = packer(*data.draw(st.sampled_from([(A100, "base"), (A30, "base"), (RTX, "base"), (A100, "double-memory")])))
    counts = data.draw(counts_for(len(found.profiles), 12))
    packed = found.pack(counts)
    held = Counter(placement.profile for placements in packed for placement in placements)
    assert tuple(held[profile] for profile in found.profiles) == counts
    assert len(packed) == found.gpus_for(counts)
    for placements in packed:
        assert placements
        assert not any(one.conflicts(two) for index, one in enumerate(placements) for two in placements[index + 1 :])


def test_thousands_of_instances_are_packed_at_once() -> None:
    counts = (100, 300, 500, 2000, 7000)
    assert len(packer(A100).pack(counts)) == packer(A100).gpus_for(counts)


def test_instances_that_do_not_divide_evenly() -> None:
    """Two 4g cannot share a GPU, and neither can a 4g and three 2g: 4g + 2g, 4g + 2g, and so on."""
    two_and_four = packer_for(A100, tuple(A100.profile(name) for name in ("4g.40gb", "2g.20gb")))
    assert two_and_four.gpus_for((2, 0)) == 2
    assert two_and_four.gpus_for((1, 1)) == 1
    assert two_and_four.gpus_for((1, 2)) == 2
    assert two_and_four.gpus_for((0, 4)) == 2


def test_weights_of_one_profile() -> None:
    only_three = packer_for(A100, (A100.profile("3g.40gb"),))
    assert np.array_equal(only_three.weights, [[0.5]])
    assert only_three.gpus_for((5,)) == 3


def test_nothing_takes_no_gpu() -> None:
    assert packer(A100).pack((0, 0, 0, 0, 0)) == []
