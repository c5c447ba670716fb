"""The relaxation of a fleet to one machine, against everything that such a machine can do."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Job, OperationCosts, Trace, get_gpu
from mig_opt.fleet.capacity_prices import priced_ends
from mig_opt.fleet.relaxation import Capacity, Relaxation, ends_in_order, last_end, mean_busy_times

A30, A100 = get_gpu("A30"), get_gpu("A100")
COSTS = OperationCosts({1: 1.0, 2: 1.5, 3: 2.0, 4: 2.5, 7: 5.0}, dict.fromkeys(A100.sizes, 0.0))

job_lists = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=4)


def relaxation(jobs: list[tuple[int, int]], capacity: Capacity | None = None, slower: float = 1.0) -> Relaxation:
    """Jobs of a second and an area, each at most ``1 / slower`` times as fast as the machine."""
    ready, areas = ([float(each) for each in column] for column in zip(*jobs, strict=True))
    seconds = [slower * area for area in areas]
    return Relaxation(capacity or Capacity(), ready, areas, seconds, [1 / slower] * len(jobs))


def every_schedule(jobs: list[tuple[int, int]]) -> list[list[list[int]]]:
    """Every way to give the seconds of one machine to jobs, as the seconds that each job has."""
    horizon = max(start for start, _ in jobs) + sum(area for _, area in jobs)
    found: list[list[list[int]]] = [[[] for _ in jobs]]
    for second in range(horizon):
        longer = []
        for given_ in found:
            able = [i for i, (start, area) in enumerate(jobs) if start <= second and len(given_[i]) < area]
            for chosen in able or [-1]:
                longer.append([[*own, second] if i == chosen else own for i, own in enumerate(given_)])
        found = longer
    return found


@settings(max_examples=25, deadline=None)
@given(job_lists.map(lambda jobs: jobs[:3]))
def test_shortest_remaining_first_has_ended_most_at_every_moment(jobs: list[tuple[int, int]]) -> None:
    ends = ends_in_order(relaxation(jobs))
    assert ends == sorted(ends)
    others = [sorted(own[-1] + 1 for own in each) for each in every_schedule(jobs)]
    assert all(end <= least for other in others for end, least in zip(ends, other, strict=True))
    assert ends in others
    assert last_end(relaxation(jobs))[0] == pytest.approx(min(other[-1] for other in others))


@settings(max_examples=25, deadline=None)
@given(job_lists.map(lambda jobs: jobs[:3]))
def test_no_schedule_has_earlier_mean_busy_times(jobs: list[tuple[int, int]]) -> None:
    found = math.fsum(mean_busy_times(relaxation(jobs)))
    others = [math.fsum(sum(own) / len(own) + 0.5 for own in each) for each in every_schedule(jobs)]
    assert found == pytest.approx(min(others))


@settings(max_examples=60, deadline=None)
@given(jobs=job_lists, machines=st.integers(1, 3))
def test_no_schedule_of_several_machines_ends_before_the_priced_ends(
    jobs: list[tuple[int, int]], machines: int
) -> None:
    """Each list in which machines take the jobs is a schedule, and one of them is the best without preemption."""
    relaxed = relaxation(jobs, slower=float(machines))
    best = math.inf
    for order in itertools.permutations(jobs):
        free = [0.0] * machines
        total = 0.0
        for start, area in order:
            free.sort()
            free[0] = max(free[0], float(start)) + machines * area
            total += free[0]
        best = min(best, total)
    shortest = math.fsum(start + machines * area for start, area in jobs)
    busy = math.fsum(mean_busy_times(relaxed)) + math.fsum(machines * area / 2 for _, area in jobs)
    assert max(priced_ends(relaxed), busy) <= best * (1 + 1e-12)
    assert priced_ends(relaxed) >= shortest * (1 - 1e-12)  # nothing may cost anything


def test_capacity_rises_with_the_instances() -> None:
    """Only 3g and 1g are used: a 3g after 2 s, another after 4 s, or up to three 1g before."""
    trace = Trace((Job("a", 0.0, {1: 1.0, 3: 1.0}),), A100, 1, COSTS)
    capacity = Capacity.of(trace, {A100.name: {1: 1 / 7, 3: 3 / 7}}, {A100: 1.0})
    # 1g, 2 x 1g or 3g, 3g and 1g, 3g and 3g; five 1g take as long as 3g, 3g and 1g, whose slices are taken.
    assert capacity.seconds[:5] == (0.0, 1.0, 2.0, 3.0, 4.0)
    assert [round(7 * speed) for speed in capacity.speeds[:5]] == [0, 1, 3, 4, 6]
    assert capacity.by(1.0) == 0.0
    assert capacity.by(2.5) == pytest.approx((1 + 0.5 * 3) / 7)
    for second in (1.25, 2.0, 3.5, 40.0):
        assert capacity.when(capacity.by(second)) == pytest.approx(second)


def test_prices_that_rise_beyond_what_numbers_can_tell() -> None:
    """One job that has the machine for itself: it wants more than there is by rounding only."""
    for at in range(60):
        ready, area = 1.4540726711482603 + at / 7, 5.322 + at / 11
        capacity = Capacity((0.0, ready), (0.0, 1.0), (0.0, 0.0))
        relaxed = Relaxation(capacity, [0.16959076306230436, ready], [0.0, area], [7.442, area], [0.0, 1.0])
        alone = 0.16959076306230436 + 7.442 + ready + area
        assert alone * (1 - 1e-9) <= priced_ends(relaxed) <= alone * (1 + 1e-12)
