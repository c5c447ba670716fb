"""The steps of the fragmentation-aware scheduler, each on a trace made for it.

An A100 has 7 compute slices, so at the threshold of 0.4 a GPU with up to 2 busy slices is lazy. Creations take 1 s,
destructions 0.5 s.
"""

from __future__ import annotations

import typing
from random import Random

import pytest
from online_worlds import (
    NO_COSTS,
    PLAIN_COSTS,
    TABLES,
    arrivals,
    assert_sound,
    audit,
    first_places,
    job,
    operations,
    rows,
    trace,
)

from mig_opt import InputError, Job, Simulation, Trace, get_gpu, simulate
from mig_opt.gpu.geometry import members
from mig_opt.heuristics.fleet.fragmentation_aware import FragmentationAware
from mig_opt.simulation import Cluster, RunOutcome


def run(policy: str, wanted: Trace, **options: object) -> Simulation:
    done = simulate(wanted, policy, observer=audit, **options)
    assert_sound(done.log)
    return done


def aware(wanted: Trace, **options: object) -> Simulation:
    return run("fragmentation-aware", wanted, **options)


# Arrivals (section IV-C)


def test_least_fragmentation_decides_the_placement() -> None:
    """2g at 4 leaves 4g and 3g@0 (the driver's own choice, the paper says); 3g at 4 leaves everything of the left."""
    assert first_places(aware(trace(*arrivals("2g.10gb")))) == {"a": "0:2g.10gb@4"}
    assert first_places(aware(trace(*arrivals("3g.20gb")))) == {"a": "0:3g.20gb@4"}
    assert first_places(aware(trace(*arrivals("1g.5gb")))) == {"a": "0:1g.5gb@6"}


def test_lazy_gpus_come_before_busy_ones() -> None:
    """With 3 of 7 slices (0.43) GPU 0 is busy, so b goes to the empty GPU 1 even though both cost nothing."""
    wanted = trace(*arrivals("3g.20gb", "4g.20gb"), gpus=2, costs=NO_COSTS)
    assert first_places(aware(wanted)) == {"a": "0:3g.20gb@4", "b": "1:4g.20gb@0"}
    # At a threshold of 0.5 it is lazy still; equal costs leave the least index.
    assert first_places(aware(wanted, threshold=0.5)) == {"a": "0:3g.20gb@4", "b": "0:4g.20gb@0"}


def test_a_gpu_is_lazy_below_the_threshold_only() -> None:
    """2 of 7 slices are not below 2 / 7."""
    wanted = trace(*arrivals("2g.10gb", "1g.5gb"), gpus=2)
    assert first_places(aware(wanted, threshold=2 / 7))["b"].startswith("1:")
    assert first_places(aware(wanted))["b"].startswith("0:")


def test_busy_gpus_are_taken_if_no_lazy_one_has_room() -> None:
    wanted = trace(*arrivals("3g.20gb", "3g.20gb", "4g.20gb"), gpus=2)
    assert first_places(aware(wanted)) == {"a": "0:3g.20gb@4", "b": "1:3g.20gb@4", "c": "0:4g.20gb@0"}


def test_among_equal_costs_an_existing_instance_is_used() -> None:
    """a leaves 4g@0 idle on GPU 0, b leaves 3g@4 on GPU 1; at 10 another 3g@4 costs nothing on either: GPU 1 has it."""
    jobs = [job("a", 0, "4g.20gb", 5), job("b", 1, "3g.20gb", 5), job("c", 10, "3g.20gb", 5)]
    done = aware(trace(*jobs, gpus=2))
    assert first_places(done) == {"a": "0:4g.20gb@0", "b": "1:3g.20gb@4", "c": "1:3g.20gb@4"}
    assert done.metrics.creations == 2
    assert done.log.finished[2] == 15


def test_reuse_decides_only_among_equals() -> None:
    """c finds 1g@4 idle, which costs 1g.10gb a place (2 of 3), and creates 1g@5: beside a at 6 and b's that is less.

    a takes 1g@6, b takes 1g@4 and stays, a leaves 1g@6 idle. Beside 1g@4, 1g@5 leaves three 1g.10gb (0, 2, 6) of three;
    1g@6 leaves two.
    """
    jobs = [job("a", 0, "1g.5gb", 5), job("b", 1, "1g.5gb", 50), job("c", 10, "1g.5gb", 5)]
    done = aware(trace(*jobs), migration=False)
    assert first_places(done) == {"a": "0:1g.5gb@6", "b": "0:1g.5gb@4", "c": "0:1g.5gb@5"}


def test_first_come_first_served() -> None:
    """b needs the whole GPU and holds up c, which would fit; with backfill c passes it."""
    jobs = [job("a", 0, "4g.20gb", 10), job("b", 1, "7g.40gb", 10), job("c", 2, "1g.5gb", 10)]
    strict = aware(trace(*jobs, costs=NO_COSTS))
    assert [(row[0], *row[3:5]) for row in rows(strict.log)] == [("a", 0, 10), ("b", 10, 20), ("c", 20, 30)]
    passing = aware(trace(*jobs, costs=NO_COSTS), backfill=True)
    assert [(row[0], *row[3:5]) for row in rows(passing.log)] == [("a", 0, 10), ("c", 2, 12), ("b", 12, 22)]
    assert (strict.metrics.wait.most, passing.metrics.wait.most) == (18, 11)


# Departures: within a busy GPU (section IV-D)


def test_jobs_move_within_a_busy_gpu_when_that_lowers_fragmentation() -> None:
    """When a has left, b alone has 3 of 7 slices: busy. On 3g@0 it costs 1.75 / 6, on 3g@4 nothing."""
    jobs = [job("a", 0, "2g.10gb", 9), job("b", 1, "3g.20gb", 50)]
    done = aware(trace(*jobs))
    # a runs from 1 to 10; then 2g@4 is destroyed (0.5 s) and 3g@4 created (1 s), while b, begun at 2, runs on.
    assert rows(done.log) == [
        ("a", 0, "2g.10gb@4", 1, 10, "FINISHED"),
        ("b", 0, "3g.20gb@0", 2, 11.5, "MIGRATED"),
        ("b", 0, "3g.20gb@4", 11.5, 52, "FINISHED"),
    ]
    assert aware(trace(*jobs), migration=False).metrics.migrations == 0


def test_a_move_to_an_idle_instance_takes_no_time() -> None:
    jobs = [job("a", 0, "3g.20gb", 9), job("b", 1, "3g.20gb", 50)]
    assert rows(aware(trace(*jobs)).log)[1:] == [
        ("b", 0, "3g.20gb@0", 2, 10, "MIGRATED"),
        ("b", 0, "3g.20gb@4", 10, 52, "FINISHED"),
    ]


def test_a_move_that_does_not_help_is_not_made() -> None:
    """b is at 4g@0 and c at 2g@4 when a leaves 1g@6: nothing is fragmented."""
    jobs = [job("a", 0, "1g.5gb", 9), job("b", 1, "4g.20gb", 50), job("c", 2, "2g.10gb", 50)]
    assert aware(trace(*jobs)).metrics.migrations == 0


class Checked(FragmentationAware):
    """Looks after each departure whether a single migration within the GPU could still lower its fragmentation."""

    most_moves = 0
    looked = 0

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        elsewhere = bool(cluster.waiting) or self.lazy(cluster.states[gpu])
        moves = cluster.log.count(RunOutcome.MIGRATED)
        super().finished(cluster, job, gpu, placement)
        state = cluster.states[gpu]
        if elsewhere:
            return
        self.looked += 1
        self.most_moves = max(self.most_moves, cluster.log.count(RunOutcome.MIGRATED) - moves)
        for source in members(state.busy):
            for target in TABLES.usage(state.busy).available[TABLES.profile_of[source]]:
                after = TABLES.fragmentation(state.busy ^ 1 << source | 1 << target)
                assert after >= TABLES.fragmentation(state.busy) - 1e-12


@pytest.mark.deep
def test_moves_within_a_gpu_repeat_until_none_helps() -> None:
    random = Random(5)
    jobs = [
        job(f"j{n}", 3.0 * n, random.choice(["1g.5gb", "1g.5gb", "1g.5gb", "2g.10gb"]), random.uniform(5, 60))
        for n in range(400)
    ]
    wanted = trace(*jobs, gpus=3, costs=NO_COSTS)
    policy = Checked()
    done = simulate(wanted, policy, observer=audit)
    assert_sound(done.log)
    assert policy.looked > 50
    assert policy.most_moves > 1


# Departures: to a lazy GPU


def inter(gpus: int = 2, **options: object) -> Simulation:
    """GPU 0: 3g, GPU 1: 3g, then 4g (least index: GPU 0) and 2g (GPU 1: 5 of 7). GPU 0's jobs end at 20 and 21."""
    jobs = [
        job("a", 0, "3g.20gb", 20), job("b", 1, "3g.20gb", 60), job("c", 2, "4g.20gb", 18), job("d", 3, "2g.10gb", 60),
    ]  # fmt: skip
    return aware(trace(*jobs, gpus=gpus, costs=NO_COSTS), **options)


def test_a_lazy_gpu_takes_jobs_from_busy_ones() -> None:
    """At 20 both a and c end, GPU 0 is empty, GPU 1 has b (3) and d (2).

    d may move: 2 on GPU 0 against 3 on GPU 1 afterwards. b may not: 3 against 2. After that GPU 0 has 2, GPU 1 has 3:
    nothing moves.
    """
    done = inter()
    assert first_places(done) == {"a": "0:3g.20gb@4", "b": "1:3g.20gb@4", "c": "0:4g.20gb@0", "d": "1:2g.10gb@0"}
    assert [row for row in rows(done.log) if row[0] == "d"] == [
        ("d", 1, "2g.10gb@0", 3, 20, "MIGRATED"),
        ("d", 0, "2g.10gb@4", 20, 63, "FINISHED"),
    ]
    assert [row[5] for row in rows(done.log) if row[0] == "b"] == ["FINISHED"]


def test_loads_are_compared_after_the_migration() -> None:
    """One job of 4 slices on GPU 1 stays: the GPU that it leaves would have less load than the one that it joins."""
    jobs = [job("a", 0, "3g.20gb", 5), job("b", 1, "4g.20gb", 60)]
    done = aware(trace(*jobs, gpus=2, costs=NO_COSTS))
    assert first_places(done)["b"].startswith("1:")
    assert done.metrics.migrations == 0


def test_loads_before_the_migration_let_larger_jobs_move() -> None:
    """At 20 GPU 1 has b (3) and d (2): b moves, since 3 are less than the 5 that GPU 1 had with it."""
    done = inter(source_load="before")
    assert [row for row in rows(done.log) if row[5] == "MIGRATED"] == [("b", 1, "3g.20gb@4", 1, 20, "MIGRATED")]
    with pytest.raises(InputError, match="source_load: unknown 'later'; "):
        inter(source_load="later")


def test_the_replica_is_there_before_the_job_leaves() -> None:
    jobs = [
        job("a", 0, "3g.20gb", 20), job("b", 1, "3g.20gb", 60), job("c", 2, "4g.20gb", 18), job("d", 3, "2g.10gb", 60),
    ]  # fmt: skip
    done = aware(trace(*jobs, gpus=2))
    # a and c end at 21 (created 0-1, 2-3). GPU 0's driver: destroys 3g@4 (21-21.5), creates 2g@4 (21.5-22.5).
    assert operations(done.log)[4:] == [("destroy", 0, "3g.20gb@4", 21, 21.5), ("create", 0, "2g.10gb@4", 21.5, 22.5)]
    assert [row[1:] for row in rows(done.log) if row[0] == "d"] == [
        (1, "2g.10gb@0", 4, 22.5, "MIGRATED"),
        (0, "2g.10gb@4", 22.5, 64, "FINISHED"),
    ]


def test_the_queue_is_served_before_jobs_migrate() -> None:
    """e waits for 7 free slices and gets GPU 0 at 20; without it d would move there."""
    jobs = [
        job("a", 0, "3g.20gb", 20), job("b", 1, "3g.20gb", 60), job("c", 2, "4g.20gb", 18), job("d", 3, "2g.10gb", 60),
        job("e", 4, "7g.40gb", 5),
    ]  # fmt: skip
    done = aware(trace(*jobs, gpus=2, costs=NO_COSTS))
    assert ("e", 0, "7g.40gb@0", 20, 25, "FINISHED") in rows(done.log)
    # When e ends, GPU 0 is lazy again.
    assert next(row for row in rows(done.log) if row[0] == "d")[4:] == (25, "MIGRATED")


def test_each_technique_can_be_switched_off() -> None:
    jobs = [
        job("a", 0, "3g.20gb", 20), job("b", 1, "3g.20gb", 60), job("c", 2, "4g.20gb", 18), job("d", 3, "2g.10gb", 60),
    ]  # fmt: skip
    wanted = trace(*jobs, gpus=2)
    bare = aware(wanted, load_balancing=False, migration=False)
    assert rows(bare.log) == rows(run("first-fit", wanted).log)
    fixed = aware(wanted, load_balancing=False, migration=False, dynamic_partitioning=False, partition="3+3")
    assert rows(fixed.log) == rows(run("static", wanted, partition="3+3").log)
    # Migrations between static partitions use what is there.
    static = aware(wanted, dynamic_partitioning=False, partition=["3+3", "4+2+1"])
    assert static.metrics.creations == 5
    assert static.metrics.destructions == 0


# Other GPUs, and random jobs


@pytest.mark.parametrize("gpu", ["A30", "H100", "RTX-PRO-6000"])
def test_other_gpus(gpu: str) -> None:
    model = get_gpu(gpu)
    profiles = model.profiles_of("base")
    jobs = [
        Job(f"j{n}", n * 1.5, {profiles[n % len(profiles)].compute_slices: 20.0}, profiles[n % len(profiles)].name)
        for n in range(40)
    ]
    done = aware(Trace(tuple(jobs), model, 2))
    assert done.unfinished == ()


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

    def _inter_gpu_migration(self, cluster: Cluster, gpu: int) -> bool:
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
        moved = super()._inter_gpu_migration(cluster, gpu)
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
    done = simulate(trace(*jobs, gpus=6, costs=NO_COSTS if seed % 2 else PLAIN_COSTS), policy, observer=audit)
    assert_sound(done.log)
    assert policy.compared > 200
    assert done.metrics.migrations > 10
