"""GPUs: the catalogue, pools, operation costs, and everything that is derived from the footprints."""

import itertools
import json
import pickle
from collections import Counter
from dataclasses import replace

import networkx as nx
import pytest
from documents import refused
from places import PUBLISHED
from strategies import PROFILE_SETS

from mig_opt import FleetState, Job, Pool, Trace, catalogue, cost_tables, defragment, get_costs, get_gpu, simulate
from mig_opt.gpu.model import GpuModel, OperationCosts, Placement, Profile, ProfileSet
from mig_opt.gpu.pools import pool_problems
from mig_opt.gpu.problems import operation_problems

GPUS = [pytest.param(gpu, id=gpu.name) for gpu in catalogue()]
FAMILY = [gpu.name for gpu in catalogue() if gpu.memory_slices == 8]


def together(state: tuple[Placement, ...]) -> bool:
    """The rule, from the slices themselves: no slice twice, no profile too often."""
    slices = Counter(position for placement in state for position in placement.footprint)
    profiles = Counter(placement.profile for placement in state)
    return all(count == 1 for count in slices.values()) and all(n <= p.max_count for p, n in profiles.items())


@pytest.mark.parametrize("profiles", PROFILE_SETS)
@pytest.mark.parametrize("gpu", GPUS)
def test_two_placements_coexist_iff_some_maximal_partition_has_both(gpu: GpuModel, profiles: ProfileSet) -> None:
    pairs = {pair for partition in gpu.maximal_partitions(profiles) for pair in itertools.permutations(partition, 2)}
    for one, two in itertools.combinations(gpu.placements(profiles), 2):
        may = together((one, two))
        assert ((one, two) in pairs) == may, (str(one), str(two))
        assert one.excludes(two) == (not may), (str(one), str(two))
        if one.profile != two.profile:
            assert one.conflicts(two) == two.conflicts(one) == (not may)


@pytest.mark.parametrize("profiles", PROFILE_SETS)
@pytest.mark.parametrize("gpu", GPUS)
def test_maximal_partitions_are_the_maximal_cliques_of_compatibility(gpu: GpuModel, profiles: ProfileSet) -> None:
    compatible: nx.Graph[Placement] = nx.Graph()
    compatible.add_nodes_from(gpu.placements(profiles))
    pairs = itertools.combinations(gpu.placements(profiles), 2)
    compatible.add_edges_from((one, two) for one, two in pairs if not one.excludes(two))
    cliques = list(map(frozenset, nx.find_cliques(compatible)))
    partitions = list(map(frozenset, gpu.maximal_partitions(profiles)))
    assert (set(partitions), len(partitions)) == (set(cliques), len(cliques)), "none comes twice"
    multisets = {tuple(sorted(p.profile.name for p in partition)) for partition in partitions}
    found = [tuple(sorted(names)) for names in gpu.partition_multisets(profiles)]
    assert (set(found), len(found)) == (multisets, len(multisets))


@pytest.mark.parametrize("name", ["A30", "A100", "RTX-PRO-6000"])
def test_placed_states_are_all_subsets_that_may_exist(name: str) -> None:
    gpu = get_gpu(name)
    placements = gpu.placements()
    subsets = (
        subset
        for size in range(8)  # seven compute slices at most
        for subset in itertools.combinations(placements, size)
    )
    expected = {frozenset(subset) for subset in subsets if together(subset)}
    found = list(gpu.placed_states())
    assert {frozenset(state) for state in found} == expected
    assert all(list(state) == sorted(state, key=lambda placement: placement.start) for state in found)
    assert len(found) == len(expected)
    assert () in found


A30_TREE = "4@0: 2@0 2@2; 2@0: 1@0 1@1; 2@2: 1@2 1@3"
A100_TREE = "7@0: 4@0 3@4; 4@0: 3@0; 3@0: 2@0 2@2; 3@4: 2@4 1@6; 2@0: 1@0 1@1; 2@2: 1@2 1@3; 2@4: 1@4 1@5"


@pytest.mark.parametrize(("name", "printed"), [("A30", A30_TREE), *((name, A100_TREE) for name in FAMILY)])
def test_figure_4_of_the_far_paper(name: str, printed: str) -> None:
    tree = get_gpu(name).repartition_tree()
    short = {p: f"{p.profile.compute_slices}@{p.start}" for p in tree}
    assert "; ".join(f"{short[p]}: {' '.join(short[child] for child in tree[p])}" for p in tree if tree[p]) == printed


@pytest.mark.parametrize("profiles", PROFILE_SETS)
@pytest.mark.parametrize("gpu", GPUS)
def test_footprints_are_laminar_and_the_tree_is_their_nesting(gpu: GpuModel, profiles: ProfileSet) -> None:
    tree = gpu.repartition_tree(profiles)
    assert nx.is_forest(tree)
    assert set(tree.nodes) == set(gpu.placements(profiles))
    for one, two in itertools.combinations(tree.nodes, 2):
        first, second = set(one.footprint), set(two.footprint)
        assert first <= second or second <= first or not first & second
        related = nx.has_path(tree, one, two) or nx.has_path(tree, two, one)
        assert related == bool(first & second)
    for parent, child in tree.edges:
        assert set(child.footprint) <= set(parent.footprint)


def test_a_size_without_a_plain_profile_has_that_with_the_fewest_attributes() -> None:
    profiles = (
        Profile("1g", 1, 1, 1, 10.0, 2, (0, 1)),
        Profile("2g-me", 2, 2, 2, 20.0, 1, (0,), attributes=("-me",)),
        Profile("2g+me+gfx", 3, 2, 2, 20.0, 1, (0,), attributes=("me", "gfx")),
    )
    gpu = GpuModel("odd", "odd", 20.0, 2, 2, profiles, OperationCosts({1: 0.1, 2: 0.1}, {1: 0.1, 2: 0.1}))
    assert [profile.name for profile in gpu.profiles_of("base")] == ["2g-me", "1g"]
    same = Profile("1g.12gb", 4, 1, 1, 12.0, 2, (0, 1))
    assert [profile.name for profile in replace(gpu, profiles=(*profiles, same)).profiles_of()] == ["2g-me", "1g.12gb"]
    assert replace(gpu, profiles=(*profiles, same)).profile_set(["1g"]) == "all"
    only_there, media = replace(same, max_count=1, starts=(0,)), replace(profiles[0], name="1g+me", attributes=("me",))
    for others in ((profiles[0], only_there), (media, only_there)):
        assert refused(replace, gpu, profiles=(*others, profiles[1])) == ["profiles[0].starts"]
    # Neither of these has all that the next one has.
    wide, large = replace(media, id=5, memory_slices=2, max_count=1, starts=(0,)), replace(media, id=5, memory_gb=15.0)
    for more, key in ((wide, "memory_slices"), (large, "memory_gb")):
        assert refused(replace, gpu, profiles=(*profiles, more)) == [f"profiles[3].{key}"]


def test_a_count_below_what_has_room_is_respected() -> None:
    profile = Profile("1g", 1, 1, 1, 10.0, 2, (0, 1, 2))
    gpu = GpuModel("odd", "odd", 30.0, 3, 3, (profile,), OperationCosts({1: 0.1}, {1: 0.1}))
    assert [[p.start for p in partition] for partition in gpu.maximal_partitions()] == [[0, 1], [0, 2], [1, 2]]
    assert len(list(gpu.placed_states())) == 7
    for call, given in ((simulate, Trace((Job("a", 0.0, {1: 1.0}),), gpu)), (defragment, FleetState(gpu, 1, ()))):
        assert refused(call, given, match="may have 2 of 1g at 3 start slices, and no method counts them") == [""]


def test_partitions_of_many_slices_are_not_looked_for_among_all_states() -> None:
    """There are 458,330 states, which took minutes."""
    sizes = (1, 2, 4, 8, 16)
    profiles = tuple(Profile(f"{s}g", s, s, s, s, 16 // s, tuple(range(0, 16, s))) for s in sizes)
    gpu = GpuModel("many", "many", 16.0, 16, 16, profiles, OperationCosts(*[dict.fromkeys(sizes, 0.1)] * 2))
    assert len(gpu.maximal_partitions()) == 1 + (1 + (1 + (1 + 1) ** 2) ** 2) ** 2


def test_costs_are_equal_whatever_the_order_of_sizes() -> None:
    one, two = OperationCosts({1: 0.1, 2: 0.2}, {2: 1, 1: 2}), OperationCosts({2: 0.2, 1: 0.1}, {1: 2.0, 2: 1.0})
    assert one == two
    assert hash(one) == hash(two)
    assert one != OperationCosts({1: 0.1, 2: 0.2}, {1: 2, 2: 1.5})
    given_costs = {1: 0.1}
    costs = OperationCosts(given_costs, {1: 0.1})
    given_costs[1] = 9.0
    assert costs.create == {1: 0.1}


def test_every_name_and_alias_leads_to_its_gpu_only() -> None:
    names = [name.casefold() for gpu in catalogue() for name in (gpu.name, *gpu.aliases)]
    assert len(names) == len(set(names))
    for gpu in catalogue():
        for name in (gpu.name, *gpu.aliases):
            assert get_gpu(name) is get_gpu(name.lower()) is gpu


TABLE_1 = {
    "A30-24GB": ({1: 0.11, 2: 0.12, 4: 0.13}, {1: 0.1, 2: 0.1, 4: 0.1}),
    "A100-40GB": ({1: 0.16, 2: 0.17, 3: 0.2, 4: 0.21, 7: 0.24}, {1: 0.2, 2: 0.2, 3: 0.21, 4: 0.21, 7: 0.22}),
    "H100-80GB": ({1: 0.16, 2: 0.21, 3: 0.33, 4: 0.38, 7: 0.42}, {1: 0.21, 2: 0.23, 3: 0.25, 4: 0.26, 7: 0.26}),
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
    # The area bounds of traces rest on this.
    for partition in gpu.maximal_partitions("double-memory"):
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


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", cost_tables())
def test_every_table_has_every_size_and_a_source(name, gpu):
    costs = get_costs(name, gpu)
    assert list(operation_problems(gpu, costs)) == []
    assert costs.source
    assert all(seconds > 0 for table in (costs.create, costs.destroy) for seconds in table.values())


def test_the_drivers_own_times_are_the_usual_ones_and_the_shortest():
    a100 = get_gpu("A100")
    assert get_costs("nvml", "A100") == a100.operation_costs
    slower = [get_costs(name, a100) for name in ("nvidia-smi", "kubernetes")]
    for size in a100.sizes:
        seconds = [costs.create[size] for costs in (a100.operation_costs, *slower)]
        assert seconds == sorted(set(seconds))
    assert all(costs.assumed for costs in slower)


def test_names_that_do_not_exist():
    refused(get_costs, "nvidia_smi", "A100", match="no table of costs is called 'nvidia_smi'; did you mean nvidia-smi")
    refused(get_costs, "nvml", "A101", match="unknown GPU")
    refused(get_costs, 7, "A100", match="must be a string")


@pytest.mark.parametrize("gpu", GPUS)
def test_without_mig_there_is_only_the_whole_gpu_and_it_is_free(gpu):
    kind = Pool(gpu, mig=False).kind
    (whole,) = kind.profiles
    assert whole.compute_slices == gpu.compute_slices
    assert kind.operation_costs.of("create", whole) == kind.operation_costs.of("destroy", whole) == 0
    assert get_gpu(kind.name) is kind
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert Pool(kind, mig=False).kind is kind
    assert Pool(gpu).kind is gpu


def test_a_kind_is_in_one_pool_with_mig_and_in_one_without():
    a30, a100 = get_gpu("A30"), get_gpu("A100")
    assert not list(pool_problems([Pool(a30), Pool(a100), None, Pool(a30, mig=False)]))
    (problem,) = pool_problems([Pool(a30, 1), Pool(a100), Pool(a30, 2)])
    assert str(problem) == "pools[2].gpu: 'A30-24GB' is that of pools[0] already; each needs its own"


def test_an_alias_of_an_unknown_gpu_is_unknown_without_mig_too():
    assert get_gpu("a100 Without mig").name == "A100-40GB without MIG"
    refused(get_gpu, "A31 without MIG", match="unknown GPU")
