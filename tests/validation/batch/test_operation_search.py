"""The search for operations, against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import inf
from random import Random

import pytest

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import OperationCosts, Placement
from mig_opt.validation import validate
from mig_opt.validation.batch.operation_search import DriverJob, _parts, _Search
from mig_opt.validation.placed import Placed

A30 = get_gpu("A30")


def exclude(one: Placement, two: Placement) -> bool:
    return one.conflicts(two) or (one.profile == two.profile and one.profile.max_count == 1)


def operation_sequences(batch: Batch, runs: tuple[Run, ...]) -> Iterator[tuple[Operation, ...]]:
    """Yield sequences of operations that may serve the runs, in the order of their begins, each as early as it may.

    Knows nothing of shared instances: at any moment it creates whatever has room, and destroys whatever exists, now or
    after any of the runs there. It only gives up what has left a run without an instance already.
    """
    places = {(r.profile, r.start): batch.gpu.placement(r.profile, r.start) for r in (*batch.initial, *runs)}
    here = {place: [run for run in runs if (run.profile, run.start) == key] for key, place in places.items()}
    horizon = max(run.begin for run in runs)

    def extend(
        done: tuple[Operation, ...], live: dict[Placement, float], gone: dict[Placement, float], served: frozenset[Run]
    ) -> Iterator[tuple[Operation, ...]]:
        if all(run in served or live.get(place, inf) <= run.begin for place, there in here.items() for run in there):
            yield done
            return
        now = done[-1].begin if done else 0
        driver = done[-1].end if done and not batch.parallel_operations else now
        for place, there in here.items():
            if place in live:
                begins = {max(driver, live[place], end) for end in (0, *(run.end for run in there))}
                options = [("destroy", begin) for begin in sorted(begins)]
            elif any(exclude(place, other) for other in live):
                continue
            else:
                options = [("create", max([driver, *(end for p, end in gone.items() if exclude(place, p))]))]
            for kind, begin in options:
                end = begin + batch.operations.of(kind, place.profile)
                operation = Operation(kind, 0, place.profile.name, place.start, begin, end)
                after, rest = served, {p: ready for p, ready in live.items() if p != place}
                if kind == "destroy":
                    after |= {run for run in there if live[place] <= run.begin and run.end <= begin}
                else:
                    rest[place] = end
                lost = any(
                    run.begin < begin and run not in after and rest.get(p, inf) > run.begin
                    for p, runs_there in here.items()
                    for run in runs_there
                )
                if not lost and end <= horizon:
                    yield from extend(
                        (*done, operation), rest, {**gone, place: end} if kind == "destroy" else gone, after
                    )

    return extend((), {places[one.profile, one.start]: one.free for one in batch.initial}, {}, frozenset())


def random_case(random: Random, parallel: bool) -> tuple[Batch, Schedule]:
    """Whole seconds, so that begins and ends coincide often; tight, so that both answers are common."""
    costs = OperationCosts(*({size: random.randint(1, 3) for size in A30.sizes} for _ in range(2)))
    placements = random.sample(A30.placements(random.choice(["base", "all"])), 4)
    initial = [LiveInstance(0, "2g.12gb", 2, random.randint(0, 4))] if random.random() < 0.3 else []
    runs: list[Run] = []
    for index in range(random.randint(2, 4)):
        placement = random.choice(placements)
        busy = [run.end for run in runs if exclude(A30.placement(run.profile, run.start), placement)]
        begin = max(busy, default=0) + random.choice([0, 1, 2, 3, 4, 5, 6])
        if random.random() < 0.03:
            begin = max(begin - 2, 0)
        runs.append(Run(f"t{index}", 0, placement.profile.name, placement.start, begin, begin + random.randint(1, 4)))
    tasks = tuple(Task(run.task, {A30.profile(run.profile).compute_slices: run.end - run.begin}, None) for run in runs)
    batch = Batch(tasks, A30, operations=costs, initial=tuple(initial), parallel_operations=parallel)
    return batch, Schedule(tuple(runs))


@pytest.mark.parametrize(("parallel", "cases"), [(False, 800), (True, 250)], ids=["serial", "parallel"])
def test_agrees_with_brute_force(parallel: bool, cases: int) -> None:
    random = Random(20240 + parallel)
    answers = {True: 0, False: 0}
    for _ in range(cases):
        batch, schedule = random_case(random, parallel)
        expected = any(
            validate(batch, schedule.replace(operations=operations)).valid
            for operations in operation_sequences(batch, schedule.runs)
        )
        assert validate(batch, schedule).valid == expected, (batch, schedule)
        answers[expected] += 1
    assert min(answers.values()) > cases / 8, answers


# The one-machine problem alone: many more ways to be tight than schedules of this size have.

ANY = Placed(0, Run("any", 0, "4g.24gb", 0, 0.0, 1.0), A30.placement("4g.24gb", 0))


def job(release: float, seconds: float, limit: float, after: tuple[DriverJob, ...] = ()) -> DriverJob:
    return DriverJob("create", ANY.placement, release, seconds, limit, limit, ANY, after)


def numbered(jobs: list[DriverJob]) -> list[DriverJob]:
    jobs.sort(key=lambda job: job.release)
    for position, one in enumerate(jobs):
        one.position = position
    return jobs


def random_jobs(random: Random) -> list[DriverJob]:
    jobs: list[DriverJob] = []
    for _ in range(random.randint(2, 6)):
        after = tuple(one for one in jobs if random.random() < 0.15)
        release = max([random.randint(0, 12), *(one.release + one.seconds for one in after)])
        seconds = random.choice([0, 1, 2, 3, 4])
        jobs.append(job(release, seconds, release + seconds + random.randint(0, 7), after))
    return numbered(jobs)


def in_time(order: tuple[DriverJob, ...]) -> bool:
    time = 0.0
    done: set[int] = set()
    for one in order:
        time = max(time, one.release) + one.seconds
        if time > one.limit or any(other.position not in done for other in one.after):
            return False
        done.add(one.position)
    return True


def check_begins(jobs: list[DriverJob], begins: list[float]) -> None:
    order = sorted(zip(begins, jobs, strict=True), key=lambda pair: (pair[0], pair[0] + pair[1].seconds))
    assert all(one.release <= begin and begin + one.seconds <= one.limit for begin, one in order)
    assert all(begin + one.seconds <= following for (begin, one), (following, _) in itertools.pairwise(order))
    assert all(begins[other.position] + other.seconds <= begins[one.position] for one in jobs for other in one.after)


def test_the_driver_agrees_with_all_permutations() -> None:
    random = Random(7)
    answers = {True: 0, False: 0}
    for _ in range(1500):
        jobs = random_jobs(random)
        expected = any(map(in_time, itertools.permutations(jobs)))
        search = _Search(jobs)
        begins = search.run()
        assert (begins is not None) == expected, jobs
        if begins is None:
            assert search.late is not None
        else:
            check_begins(jobs, begins)
        answers[expected] += 1
        parts = [_Search(part).run() is not None for part in _parts(jobs)]
        assert all(parts) == expected
    assert min(answers.values()) > 200, answers


def test_one_impossible_spot_among_many_tight_ones_is_found_without_trying_all_combinations() -> None:
    # 60 spots with two ways each (2^60 combinations), and one that no order serves; one lazy job links them all.
    lazy = [job(0, 0.5, 10_000)]
    spots = [one for k in range(60) for one in (job(10 * k, 5, 10 * k + 8), job(10 * k + 1, 1, 10 * k + 9))]
    assert len(list(_parts(numbered([*lazy, *spots])))) == 1
    possible = numbered([*lazy, *spots])
    begins = _Search(possible).run()
    assert begins is not None
    check_begins(possible, begins)
    blocked = numbered([*lazy, *spots, job(600, 3, 604), job(602, 1, 603)])
    assert _Search(blocked).run() is None
