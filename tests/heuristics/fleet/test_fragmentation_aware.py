"""The steps of the fragmentation-aware scheduler, each on a trace made for it.

An A100 has 7 compute slices, so at the threshold of 0.4 a GPU with up to 2 busy slices is lazy. Creations take 1 s,
destructions 0.5 s.
"""

import typing
from random import Random

import pytest
from online_worlds import NO_COSTS, PLAIN_COSTS, TABLES, arrivals, first_places, job, rows, run, trace

from mig_opt import Simulation, Trace
from mig_opt.gpu.geometry import members
from mig_opt.heuristics.fleet.fragmentation_aware import FragmentationAware
from mig_opt.simulation import Cluster


def aware(wanted: Trace, **options: object) -> Simulation:
    return run("fragmentation-aware", wanted, **options)


def test_a_gpu_is_lazy_below_the_threshold_only() -> None:
    """2 of 7 slices are not below 2 / 7."""
    wanted = trace(*arrivals("2g.10gb", "1g.5gb"), gpus=2)
    assert first_places(aware(wanted, threshold=2 / 7))["b"].startswith("1:")
    assert first_places(aware(wanted))["b"].startswith("0:")


def test_a_move_to_an_idle_instance_takes_no_time() -> None:
    jobs = [job("a", 0, "3g.20gb", 9), job("b", 1, "3g.20gb", 50)]
    assert rows(aware(trace(*jobs)).log)[1:] == [
        ("b", 0, "3g.20gb@0", 2, 10, "MIGRATED"),
        ("b", 0, "3g.20gb@4", 10, 52, "FINISHED"),
    ]


def test_each_technique_can_be_switched_off() -> None:
    sizes = {"3g.20gb": (20, 60), "4g.20gb": (18,), "2g.10gb": (60,)}
    lengths = [(profile, seconds) for profile, own in sizes.items() for seconds in own]
    wanted = trace(*(job(f"j{at}", at, *length) for at, length in enumerate(lengths)), gpus=2)
    bare = aware(wanted, load_balancing=False, migration=False)
    assert rows(bare.log) == rows(run("first-fit", wanted).log)
    fixed = aware(wanted, load_balancing=False, migration=False, dynamic_partitioning=False, partition="3+3")
    assert rows(fixed.log) == rows(run("static", wanted, partition="3+3").log)
    # Migrations between static partitions use what is there.
    static = aware(wanted, dynamic_partitioning=False, partition=["3+3", "4+2+1"])
    assert static.metrics.creations == 5
    assert static.metrics.destructions == 0


class Literal(FragmentationAware):
    """Compares each decision with the paper's steps carried out over all GPUs, jobs and placements."""

    compared = 0

    def _place(self, cluster: Cluster, profile: int) -> bool:
        job = self._queue.first(profile)
        feasible = []
        for gpu, state in enumerate(cluster.states):
            busy = sum(TABLES.placements[index].profile.compute_slices for index in members(state.busy)) >= 2.8
            for index, placement in enumerate(TABLES.placements):
                if placement.profile == TABLES.profiles[profile] and not TABLES.conflicts[index] & state.busy:
                    cost = TABLES.usage(state.busy | 1 << index).cost
                    feasible.append((busy, cost, not state.idle >> index & 1, gpu, index))
        placed = super()._place(cluster, profile)
        self.compared += 1
        assert cluster.place(job) == (min(feasible)[3:] if feasible else None)
        return placed

    def _to_lazy_gpu(self, cluster: Cluster, gpu: int) -> bool:
        state = cluster.states[gpu]
        ways = []
        for number in range(len(cluster.trace.jobs)):
            where = cluster.place(number)
            if where is None or not cluster.movable(number) or cluster.load(where[0]) < 0.4:
                continue
            profile = TABLES.profile_of[where[1]]
            size = TABLES.profiles[profile].compute_slices
            source, target = (cluster.states[index].usage.used_compute for index in (where[0], gpu))
            if target + size < source - (size if self.source_load == "after" else 0):
                ways += [
                    (TABLES.usage(state.busy | 1 << index).cost, not state.idle >> index & 1, index)
                    for index in TABLES.usage(state.busy).available[profile]
                ]
        moved = super()._to_lazy_gpu(cluster, gpu)
        self.compared += 1
        assert moved == bool(ways)
        if moved:
            new = cluster.states[gpu].busy ^ state.busy
            assert new == 1 << min(ways)[2]
        return moved


@pytest.mark.parametrize("source_load", ["after", "before"])
@pytest.mark.parametrize("seed", range(6))
def test_decisions_are_those_of_the_paper(seed: int, source_load: typing.Literal["after", "before"]) -> None:
    random = Random(seed)
    profiles = ["1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"][: 3 + seed % 4]
    jobs = [job(f"j{n}", 2.0 * n, random.choice(profiles), random.uniform(5, 60)) for n in range(150)]
    policy = Literal(source_load=source_load)
    done = run(policy, trace(*jobs, gpus=6, costs=NO_COSTS if seed % 2 else PLAIN_COSTS))
    assert policy.compared > 200
    assert done.metrics.migrations > 10
