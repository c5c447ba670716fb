"""Fleets shaped like a production cluster, and what is proven of their defragmentation."""

import csv
from collections import Counter

import pytest
from documents import refused
from places import PUBLISHED

from mig_opt import Status, defragment, least_fragmentation
from mig_opt.api.defragment import greedy_migrations
from mig_opt.instances.fleet.cluster import OPENB_NODES, openb_cluster
from mig_opt.validation.fleet.migrations import validate_migrations

NODES = PUBLISHED / "alibaba_openb" / "openb_node_list_gpu_node.csv"


@pytest.mark.skipif(not NODES.is_file(), reason="needs the published data: MIG_OPT_PUBLISHED")
def test_the_nodes_are_those_that_were_published():
    with NODES.open(encoding="utf-8", newline="") as file:
        counted = Counter((row["model"], int(row["gpu"])) for row in csv.DictReader(file))
    assert all(counted[model, gpus] == count for model, gpus, count, _ in OPENB_NODES)
    assert {model for model, _ in counted} - {model for model, *_ in OPENB_NODES} == {"T4", "P100", "A10"}


def test_a_cluster_is_drawn_again_from_its_seed():
    state = openb_cluster(40, load=0.6, seed=1)
    assert state == openb_cluster(40, load=0.6, seed=1) != openb_cluster(40, load=0.6, seed=2)
    assert len(set(state.nodes)) == 40
    assert len(set(state.names)) > 1
    assert refused(openb_cluster, 0, load=2, seed=-1) == ["nodes", "load", "seed"]


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(3, 40))])
def test_no_bound_is_above_a_plan(seed):
    """Neither above the proven one, nor above that of the greedy rules."""
    state = openb_cluster(3 + seed % 4, load=(0.3, 0.5, 0.7)[seed % 3], seed=seed)
    result = defragment(state, time_limit=20)
    least = least_fragmentation(state)
    assert max(least, result.least_fragmentation) <= result.plan.fragmentation + 1e-9
    assert result.lower_bound <= len(result.plan.migrations)
    greedy = greedy_migrations(state)
    reached = validate_migrations(state, greedy)
    assert reached.valid
    assert least <= reached.fragmentation + 1e-9
    same = defragment(state, fragmentation=min(1.0, reached.fragmentation), time_limit=20)
    assert same.status is not Status.OPTIMAL or len(same.migrations) <= len(greedy)
