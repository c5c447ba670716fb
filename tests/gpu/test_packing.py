"""Numbers of GPUs that instances take, and their packings."""

from collections import Counter

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
