"""Goals of the planner: what each makes least, beside the others, and that it is no worse than simple schedulers."""

import pytest
from online_worlds import NO_COSTS, job, trace
from online_worlds import run as run_policy

from mig_opt import Simulation, Trace, generate_trace, simulate


def run(wanted: Trace, goal: str, **options: object) -> Simulation:
    return run_policy("planner", wanted, goal=goal, **options)


def test_long_jobs_begin_in_time_unless_the_flow_time_is_all() -> None:
    """A job of 60 s beside twenty of 10 s on seven instances: it begins at 0 or, as the longest of all, at 20."""
    jobs = [job("long", 0, "1g.5gb", 60), *(job(f"j{at}", 0, "1g.5gb", 10) for at in range(20))]
    wanted = trace(*jobs, costs=NO_COSTS)
    makespans = {goal: run(wanted, goal).metrics.makespan for goal in ("makespan", "balanced", "flow")}
    assert makespans == pytest.approx({"makespan": 60, "balanced": 60, "flow": 80})


def test_of_the_tardiness_a_second_counts_more() -> None:
    """With b first, a is late by 1 s and the mean end is 3.5 s; with a first nobody is late, and it is 5.5 s."""
    wanted = trace(job("a", 0, "7g.40gb", 5, due=5.0), job("b", 0, "7g.40gb", 1), costs=NO_COSTS)
    assert list(run(wanted, "balanced").log.finished) == [6, 1]
    assert list(run(wanted, "tardiness").log.finished) == [5, 6]


def test_the_slowdown_counts_short_jobs_more() -> None:
    """Seven small jobs of 10 s, then one of 3 s: ends are 83 s together, slowdowns 11.3; turned round 94 and 10.1."""
    jobs = [*(job(f"j{at}", 0, "1g.5gb", 10) for at in range(7)), job("whole", 0, "7g.40gb", 3)]
    wanted = trace(*jobs, costs=NO_COSTS)
    assert run(wanted, "flow").log.finished[-1] == 13
    assert run(wanted, "slowdown").log.finished[-1] == 3


@pytest.mark.parametrize("seed", [0, 1])
def test_no_goal_is_far_behind_the_best_simple_scheduler(seed: int) -> None:
    wanted = generate_trace("migm-ml2", gpu="A100", gpus=None, seed=seed)
    simple = [simulate(wanted, name, backfill=True, patience=None).metrics for name in ("first-fit", "best-fit")]
    makespan, flow = min(own.makespan for own in simple), min(own.completion.mean for own in simple)
    assert run(wanted, "makespan").metrics.makespan <= 1.01 * makespan
    assert run(wanted, "flow").metrics.completion.mean <= 1.01 * flow
    balanced = run(wanted, "balanced").metrics
    assert balanced.makespan <= 1.03 * makespan
    assert balanced.completion.mean <= 1.01 * flow


def test_a_simple_scheduler_is_followed_where_it_comes_to_more() -> None:
    """Jobs that PCIe holds up migrate to empty GPUs at the end: no plan has migrations, `fragmentation-aware` has."""
    wanted = generate_trace("pcie-4", jobs=40, gpu="A100", gpus=None, seed=1)
    done = run(wanted, "makespan", rounds=200)
    assert done.metrics.migrations > 0
