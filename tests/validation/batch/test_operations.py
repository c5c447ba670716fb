"""Schedules without operations: the validator finds them, as brute force does, or says why there are none."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from random import Random

import pytest
from small_schedule import A30, BATCH, OPERATIONS, RUNS, codes, exclude, found

from mig_opt import Batch, LiveInstance, Operation, OperationCosts, Placement, Run, Schedule, Task
from mig_opt.validation import validate
from mig_opt.validation.batch.operation_search import DriverJob, _parts, _Search
from mig_opt.validation.placed import Placed


def test_operations_are_found_and_the_stated_makespan_is_kept() -> None:
    result = validate(BATCH, Schedule(RUNS, stated_makespan=6.46))
    assert result.valid
    assert result.schedule.stated_makespan == 6.46
    operations = result.schedule.operations or ()
    assert [(o.kind, o.profile, o.start) for o in operations] == [(o.kind, o.profile, o.start) for o in OPERATIONS]
    assert [o.begin for o in operations] == pytest.approx([o.begin for o in OPERATIONS])


def test_without_a_sequence_the_message_names_gpu_operation_and_task() -> None:
    late = Schedule((RUNS[0], replace(RUNS[1], begin=2.34, end=5.34)))
    result = validate(BATCH.replace(tasks=BATCH.tasks[:2]), late)
    assert result.schedule is late
    assert [violation.message for violation in result.violations] == [
        "GPU 0: no sequence of operations is in time for the runs: the destruction of 4g.24gb@0 has to end by 2.22 s, "
        "so that 2g.12gb@0 exists when task 'left' begins on it at 2.34 s, but it cannot end before 2.23 s"
    ]


def test_one_gpu_without_a_sequence_does_not_hide_what_is_wrong_on_another() -> None:
    batch = Batch((Task("a", {1: 1.0}), Task("b", {1: 1.0}), Task("c", {1: 1.0})), A30, gpus=2)
    runs = (
        Run("a", 0, "1g.6gb", 0, 0.05, 1.05),
        Run("b", 1, "1g.6gb", 0, 0.11, 1.11),
        Run("c", 1, "1g.6gb", 0, 0.6, 1.6),
    )
    result = validate(batch, Schedule(runs))
    assert sorted(found(result)) == [("no-operation-sequence", "runs[0]"), ("runs-overlap", "runs[2]")]
    assert result.schedule.operations is None


def test_a_media_engine_profile_exists_once() -> None:
    batch = Batch((Task("a", {1: 1.0}), Task("b", {1: 1.0}), Task("c", {1: 1.0})), A30)
    me = "1g.6gb+me"
    at_once = (Run("a", 0, me, 0, 1.0, 2.0), Run("b", 0, me, 1, 1.5, 2.5), Run("c", 0, me, 0, 4.0, 5.0))
    assert found(validate(batch, Schedule(at_once))) == [("too-many-instances", "runs[1]")]
    # One after the other, each is destroyed (0.1 s) before the next is created (0.11 s).
    in_turn = (Run("a", 0, me, 0, 1.0, 2.0), Run("b", 0, me, 1, 2.21, 3.21), Run("c", 0, me, 0, 4.0, 5.0))
    result = validate(batch, Schedule(in_turn))
    assert result.valid
    assert [o.kind for o in result.schedule.operations or ()] == ["create", "destroy", "create", "destroy", "create"]
    too_soon = (in_turn[0], Run("b", 0, me, 1, 2.2, 3.2), in_turn[2])
    assert codes(validate(batch, Schedule(too_soon))) == {"no-operation-sequence"}


def test_thousands_of_recreations_need_no_recursion() -> None:
    count = 3000
    batch = Batch(tuple(Task(f"t{i}", {2: 1.0, 4: 1.0}) for i in range(count)), A30)
    runs = []
    for i in range(count):
        profile, start = (("4g.24gb", 0), ("2g.12gb", 2))[i % 2]
        begin = round(0.13 + 1.23 * i, 9)  # 1 s, then 0.1 s to destroy and at most 0.13 s to create
        runs.append(Run(f"t{i}", 0, profile, start, begin, round(begin + 1, 9)))
    result = validate(batch, Schedule(tuple(runs)))
    assert result.valid
    assert len(result.schedule.operations or ()) == 2 * count - 1


def test_operations_that_take_no_time_may_share_a_moment() -> None:
    batch = Batch(BATCH.tasks, A30, operations=OperationCosts.zero(A30))
    runs = (
        replace(RUNS[0], begin=0.0, end=2.0),
        replace(RUNS[1], begin=2.0, end=5.0),
        replace(RUNS[2], begin=2.0, end=6.0),
    )
    result = validate(batch, Schedule(runs))
    assert result.valid
    backwards = result.schedule.replace(operations=reversed(result.schedule.operations or ()))
    assert validate(batch, backwards).valid


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
    check_begins(possible, begins)
    blocked = numbered([*lazy, *spots, job(600, 3, 604), job(602, 1, 603)])
    assert _Search(blocked).run() is None
