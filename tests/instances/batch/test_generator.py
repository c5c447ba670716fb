"""The synthetic generator does what section 6.3 of the FAR paper says."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from documents import refused
from hypothesis import given
from hypothesis import strategies as st

from mig_opt import Task, catalogue
from mig_opt.instances.batch import SCALINGS, TIME_RANGES, VARIANTS, generate_batch, task_counts

SIZES = (1, 2, 3, 4, 7)
EPS = 1e-9

shares = (
    st.dictionaries(st.sampled_from(SIZES), st.integers(0, 20), min_size=1)
    .filter(lambda weights: sum(weights.values()) > 0)
    .map(lambda weights: {size: weight / sum(weights.values()) for size, weight in weights.items()})
)


def r_of(task: Task, size: int) -> float:
    """The r of the step from ``size`` to ``size + 1``, from t(s + 1) = (s + r) / (s + 1) * t(s)."""
    return task.times[size + 1] / task.times[size] * (size + 1) - size


def within(low: float, value: float, high: float) -> bool:
    return low - EPS <= value <= high + EPS


def raw(n: int, exploited: int, **options: object) -> tuple[Task, ...]:
    """Tasks that all exploit the same size, with times that are not rounded."""
    return generate_batch(n, scaling={exploited: 1.0}, decimals=None, seed=3, **options).tasks


@given(st.integers(0, 500), shares)
def test_task_counts_are_the_exact_shares_within_one(n, given_shares):
    counts = task_counts(n, given_shares)
    assert sum(counts.values()) == n
    for size, share in given_shares.items():
        assert abs(counts[size] - n * share) < 1 + EPS
        assert share > 0 or counts[size] == 0


@pytest.mark.parametrize(("p_sup", "n", "memory_bound"), [(0.5, 5, 3), (0.1, 30, 3), (0.0, 5, 0), (1.0, 5, 5)])
def test_memory_bound_tasks_are_counted_by_rounding_up(p_sup, n, memory_bound):
    # r = 0 may be drawn for both kinds, so each position is judged by what it gets over many seeds.
    batches = [generate_batch(n, scaling={2: 1.0}, p_sup=p_sup, decimals=None, seed=seed).tasks for seed in range(20)]
    drawn = [[r_of(tasks[index], 1) for tasks in batches] for index in range(n)]
    assert [min(rs) < -0.1 for rs in drawn] == [True] * memory_bound + [False] * (n - memory_bound)
    assert [max(rs) > 0.1 for rs in drawn] == [False] * memory_bound + [True] * (n - memory_bound)


@pytest.mark.parametrize(("variant", "high"), [("paper", 0.2), ("published-program", 0.1)])
@pytest.mark.parametrize("exploited", [2, 3, 4])
def test_compute_bound_tasks_are_near_linear_up_to_their_size(exploited, variant, high):
    for task in raw(200, exploited, p_sup=0.0, variant=variant):
        for size in (1, 2, 3):
            low_r, high_r = (0.0, high) if size < exploited else (0.5, 1.0)
            assert within(low_r, r_of(task, size), high_r)


def test_memory_bound_tasks_start_super_linear_and_stay_so_with_probability_0_7():
    n = 4000
    super_until = Counter()
    for task in raw(n, 4, p_sup=1.0):
        drawn = [r_of(task, size) for size in (1, 2, 3)]
        assert all(within(-0.5, r, 0.0) or within(0.5, r, 1.0) for r in drawn)
        kinds = [r < 0.25 for r in drawn]
        assert kinds == sorted(kinds, reverse=True), "once compute-bound, always compute-bound"
        super_until[sum(kinds)] += 1
    assert super_until[0] == 0
    # Four standard deviations of a share among 4000 draws are at most 0.032.
    assert super_until[1] / n == pytest.approx(0.3, abs=0.032)
    assert super_until[2] / n == pytest.approx(0.7 * 0.3, abs=0.032)
    assert super_until[3] / n == pytest.approx(0.49, abs=0.032)


@pytest.mark.parametrize(
    ("exploited", "p_sup", "variant", "mean", "deviation", "low", "high"),
    [
        (2, 1.0, "paper", -0.25, 0.25, -0.5, 0.0),
        (2, 0.0, "paper", 0.1, 0.1, 0.0, 0.2),
        (2, 0.0, "published-program", 0.05, 0.05, 0.0, 0.1),
        (1, 0.0, "paper", 0.75, 0.25, 0.5, 1.0),
    ],
)
def test_r_is_normal_and_clipped(exploited, p_sup, variant, mean, deviation, low, high):
    drawn = [r_of(task, 1) for task in raw(4000, exploited, p_sup=p_sup, variant=variant)]
    assert math.fsum(drawn) / len(drawn) == pytest.approx(mean, abs=deviation / 12)
    # Clipping at one standard deviation puts 15.9 % on each end; drawing again instead would leave none there.
    assert sum(r <= low + EPS for r in drawn) / len(drawn) == pytest.approx(0.159, abs=0.024)
    assert sum(r >= high - EPS for r in drawn) / len(drawn) == pytest.approx(0.159, abs=0.024)
    # 38.3 % of a normal distribution lie within half a standard deviation; of a uniform one 50 % would.
    inner = sum(abs(r - mean) < deviation / 2 for r in drawn) / len(drawn)
    assert inner == pytest.approx(0.383, abs=0.032)


def test_published_program_has_memory_bound_tasks_of_its_own():
    published = generate_batch(50, variant="published-program", p_sup=1.0, decimals=None)
    assert published == generate_batch(50, variant="published-program", p_sup=0.0, decimals=None)
    assert all(r_of(task, 1) >= -EPS for task in published.tasks)
    assert any(r_of(task, 1) < -0.1 for task in generate_batch(50, variant="paper", p_sup=1.0, decimals=None).tasks)
    # Half of seven rounded down; a task that exploits one slice is sub-linear all the same.
    half = raw(7, 2, variant="published-program", memory_bound=0.5)
    assert sum(r_of(task, 1) < -EPS for task in half) <= 3
    for task in raw(300, 1, variant="published-program", memory_bound=1.0):
        assert all(within(0.5, r_of(task, size), 1.0) for size in (1, 2, 3))


@pytest.mark.parametrize(("decided_by", "mixed"), [("slice", True), ("size", False)])
def test_tasks_become_compute_bound_with_a_slice_or_between_sizes(decided_by, mixed):
    # On an A30 there is nothing between 2 and 4 slices: as a whole that step is super-linear or sub-linear.
    tasks = raw(4000, 4, gpu="A30", p_sup=1.0, decided_by=decided_by)
    ratios = [task.times[4] / task.times[2] for task in tasks]
    # Super-linear at most 2/4, sub-linear at least 2.5/3 * 3.5/4; in between one step of each kind.
    between = sum(0.5 + EPS < ratio < 2.5 / 3 * 3.5 / 4 - EPS for ratio in ratios)
    assert (between > 0.1 * len(tasks)) is mixed
    if not mixed:
        assert between == 0
        assert sum(ratio <= 0.5 + EPS for ratio in ratios) / len(tasks) == pytest.approx(0.49, abs=0.032)


@given(
    st.integers(1, 30),
    st.sampled_from([model.name for model in catalogue()]),
    st.sampled_from(SCALINGS),
    st.sampled_from(list(TIME_RANGES)),
    st.floats(0, 1),
    st.sampled_from(VARIANTS),
    st.integers(0, 2**64),
    st.sampled_from([None, 0, 1, 3]),
)
def test_batches_for_every_gpu(n, gpu, scaling, times, p_sup, variant, seed, decimals):
    batch = generate_batch(
        n, scaling=scaling, times=times, p_sup=p_sup, gpu=gpu, seed=seed, decimals=decimals, variant=variant
    )
    assert len(batch.tasks) == n
    assert batch.gpu.name == gpu
    low, high = TIME_RANGES[times]
    for task in batch.tasks:
        assert tuple(task.times) == batch.gpu.sizes
        assert low <= task.times[1] <= high
        assert all(type(seconds) is float for seconds in task.times.values())
        assert all(later <= earlier for earlier, later in pairwise(task.times.values()))
        if decimals is not None:
            assert all(seconds == round(seconds, decimals) for seconds in task.times.values())


def test_times_are_never_rounded_to_zero():
    batch = generate_batch(20, times=(0.0001, 0.001), decimals=2)
    assert {seconds for task in batch.tasks for seconds in task.times.values()} == {0.01}


def test_all_problems_at_once():
    wrong = {"p_sup": 1.5, "gpus": 0, "seed": -1, "decimals": -2, "memory_bound": 2.0}
    wrong |= {"variant": "papr", "decided_by": "slices", "times": (5.0, 2.0), "scaling": {1: 0.5, 5: 0.2, 9: 0.1}}
    found = refused(generate_batch, 0, match="(?s)did you mean paper.*sum to 0.8", **wrong)
    assert found == ["n", *wrong, "scaling.5", "scaling.9"]


def test_task_counts_rejects_what_it_cannot_share_out():
    refused(task_counts, -1, {1: 0.5, 2: 0.6}, match=r"(?s)^shares.*n: must be >= 0")
