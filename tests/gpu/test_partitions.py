"""Partitions by name, numbers of GPUs that instances take, and their packings."""

from collections import Counter

import pytest
from demands import RTX
from documents import complaints, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import A30, A100, any_gpu

from mig_opt import catalogue
from mig_opt.gpu.model import GpuModel, ProfileSet
from mig_opt.gpu.packing import Packer, packer_for
from mig_opt.gpu.partitions import find_partition, partition_name

SETS: tuple[ProfileSet, ...] = ("base", "double-memory")


@pytest.mark.parametrize("profiles", SETS)
@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
def test_every_partition_has_names_of_its_own(gpu: GpuModel, profiles: ProfileSet) -> None:
    for partition in gpu.maximal_partitions(profiles):
        names = [
            partition_name(gpu, partition),
            ", ".join(placement.profile.name for placement in partition),
            " + ".join(map(str, partition)),
        ]
        for name in names:
            assert find_partition(gpu, name, profiles) == partition
    assert find_partition(gpu, names[0].upper(), profiles) == partition


@given(st.data(), any_gpu)
def test_placements_come_in_any_order(data: st.DataObject, gpu: GpuModel) -> None:
    partition = data.draw(st.sampled_from(gpu.maximal_partitions()))
    assert find_partition(gpu, data.draw(st.permutations(partition))) == partition


def test_profiles_of_double_memory_only_where_they_count() -> None:
    found = find_partition(A100, "4+1g.10gb+1", "double-memory")
    assert [str(entry) for entry in found] == ["4g.20gb@0", "1g.10gb@4", "1g.5gb@6"]
    assert partition_name(A100, found) == "4+1g.10gb+1"
    refused(find_partition, A100, "4+1g.10gb+1")


@pytest.mark.parametrize(
    "wanted", ["", "+", "3", "2+1", "4+", "2+2+2", "2g", "4g.24gb@2", "2 2", "4;", A30.maximal_partitions()[1][:1], ()]
)
def test_what_is_no_partition_is_told_which_there_are(wanted: object) -> None:
    (found,) = complaints(find_partition, A30, wanted)
    assert found.startswith("partition: A30-24GB has no partition '")
    assert found.endswith("; choose one of 4, 2+2, 2+1+1, 1+1+2, 1+1+1+1")


@pytest.mark.parametrize("wanted", [4, 2.0, None, True, [4], ("2", "2"), {"4"}, b"4"])
def test_what_cannot_be_a_partition_at_all(wanted: object) -> None:
    assert refused(find_partition, A30, wanted, match=r"must be a partition such as '4\+2\+1'") == ["partition"]


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
