"""The catalogue: names, figures against their sources, and operation costs."""

import json

import pytest
from places import PUBLISHED

from mig_opt import GpuModel, catalogue, get_gpu

GPUS = [pytest.param(gpu, id=gpu.name) for gpu in catalogue()]
FAMILY = [gpu.name for gpu in catalogue() if gpu.memory_slices == 8]


def test_the_family_of_the_a100_has_eleven_members() -> None:
    assert len(FAMILY) == 11
    assert set(FAMILY) | {"A30-24GB", "RTX-PRO-6000-96GB"} == {gpu.name for gpu in catalogue()}


def test_every_name_and_alias_leads_to_its_gpu_only() -> None:
    names = [name.casefold() for gpu in catalogue() for name in (gpu.name, *gpu.aliases)]
    assert len(names) == len(set(names))
    for gpu in catalogue():
        for name in (gpu.name, *gpu.aliases):
            assert get_gpu(name) is get_gpu(name.lower()) is gpu


TABLE_1 = {
    "A30-24GB": ({1: 0.11, 2: 0.12, 4: 0.13}, {1: 0.1, 2: 0.1, 4: 0.1}),
    "A100-40GB": (
        {1: 0.16, 2: 0.17, 3: 0.2, 4: 0.21, 7: 0.24},
        {1: 0.2, 2: 0.2, 3: 0.21, 4: 0.21, 7: 0.22},
    ),
    "H100-80GB": (
        {1: 0.16, 2: 0.21, 3: 0.33, 4: 0.38, 7: 0.42},
        {1: 0.21, 2: 0.23, 3: 0.25, 4: 0.26, 7: 0.26},
    ),
}


@pytest.mark.parametrize("name", TABLE_1)
def test_measured_operation_costs_are_table_1_of_the_far_paper(name: str) -> None:
    costs = get_gpu(name).operation_costs
    assert (costs.create, costs.destroy) == TABLE_1[name]
    assert not costs.assumed
    assert "10.1016/j.jpdc.2025.105128" in costs.source


@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS if gpu.id not in TABLE_1])
def test_elsewhere_those_of_the_h100_are_assumed(gpu: GpuModel) -> None:
    create, destroy = TABLE_1["H100-80GB"]
    assert gpu.operation_costs.create == {size: create[size] for size in gpu.sizes}
    assert gpu.operation_costs.destroy == {size: destroy[size] for size in gpu.sizes}
    assert gpu.operation_costs.assumed
    assert gpu.name in gpu.operation_costs.source


@pytest.mark.parametrize("gpu", GPUS)
def test_the_catalogue_makes_sense(gpu: GpuModel) -> None:
    assert gpu.label
    assert gpu.sources
    assert gpu.profiles_status
    assert gpu.placements_status
    assert max(gpu.sizes) == gpu.compute_slices
    for partition in gpu.maximal_partitions():
        assert sum(placement.profile.compute_slices for placement in partition) <= gpu.compute_slices


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs the published data: MIG_OPT_PUBLISHED")
def test_profiles_as_collected() -> None:
    collected = json.loads((PUBLISHED / "mig_profiles.json").read_text(encoding="utf-8"))
    assert set(collected) == {gpu.name for gpu in catalogue()}
    for name, entry in collected.items():
        gpu = get_gpu(name)
        assert (gpu.memory_gb, gpu.memory_slices, gpu.compute_slices) == tuple(
            entry[key] for key in ("memory_gb", "memory_slices", "compute_slices")
        )
        assert set(entry["aliases"]) <= set(gpu.aliases)
        fields = ("name", "id", "compute_slices", "memory_slices", "memory_gb", "max_count")
        assert [
            (*(getattr(p, key) for key in fields), list(p.starts), list(p.attributes), p.usable_mib, p.sm_count)
            for p in gpu.profiles
        ] == [
            (
                *(row[key] for key in fields),
                row["placements"],
                row["attributes"],
                row.get("memory_mib_usable"),
                row.get("sm_count"),
            )
            for row in entry["profiles"]
        ]
        printed = entry["counts_base_profiles"]
        assert len(gpu.maximal_partitions()) == printed["maximal_placed"]
        assert len(gpu.partition_multisets()) == printed["maximal_multisets"]
        assert len(list(gpu.placed_states())) == printed["all_placed_states_incl_empty"]
