"""Partitions by name: each has a name of its own, and what has no partition is told which there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import any_gpu

from mig_opt import InputError, catalogue, get_gpu
from mig_opt.gpu.model import GpuModel, ProfileSet
from mig_opt.gpu.partitions import find_partition, partition_name

A30, A100 = get_gpu("A30"), get_gpu("A100")
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
    with pytest.raises(InputError):
        find_partition(A100, "4+1g.10gb+1")


@pytest.mark.parametrize(
    "wanted",
    ["", "+", "3", "2+1", "4+", "2+2+2", "2g", "4g.24gb@2", "2 2", "4;", A30.maximal_partitions()[1][:1], ()],
)
def test_what_is_no_partition_is_told_which_there_are(wanted: object) -> None:
    with pytest.raises(InputError) as caught:
        find_partition(A30, wanted)
    (problem,) = caught.value.problems
    assert problem.path == "partition"
    assert problem.message.startswith("A30-24GB has no partition '")
    assert problem.message.endswith("; choose one of 4, 2+2, 2+1+1, 1+1+2, 1+1+1+1")


@pytest.mark.parametrize("wanted", [4, 2.0, None, True, [4], ("2", "2"), {"4"}, b"4"])
def test_what_cannot_be_a_partition_at_all(wanted: object) -> None:
    with pytest.raises(InputError, match=r"must be a partition such as '4\+2\+1'") as caught:
        find_partition(A30, wanted)
    assert [problem.path for problem in caught.value.problems] == ["partition"]
