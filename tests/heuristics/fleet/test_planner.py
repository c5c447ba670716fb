"""The planner on traces whose best plan is plain to see.

Creations take 1 s and destructions 0.5 s, or nothing at all. Sizes are free where a job names no profile.
"""

from collections.abc import Mapping
from functools import partial

import pytest
from online_worlds import NO_COSTS, assert_sound, job, rows, trace
from online_worlds import run as run_policy

from mig_opt import Job, Simulation, Trace, generate_batch, generate_trace, get_gpu, simulate, solve
from mig_opt.heuristics.fleet.planner import Planner
from mig_opt.heuristics.fleet.plans import search
from mig_opt.heuristics.fleet.plans.choice import Choice
from mig_opt.heuristics.fleet.plans.problem import PlanningProblem
from mig_opt.heuristics.fleet.plans.search import Coming
from mig_opt.simulation import Cluster, check_log

run = partial(run_policy, "planner")


def free(name: str, arrival: float, times: Mapping[int, float], **details: object) -> Job:
    return Job(name, arrival, times, **details)


def places(done: Simulation) -> list[tuple[str, str, float, float]]:
    """Job, profile, begin and end of each run, by end."""
    found = [(name, where.split("@")[0], begin, end) for name, _, where, begin, end, _ in rows(done.log)]
    return sorted(found, key=lambda row: (row[3], row[0]))


def test_a_job_waits_for_a_better_place_if_it_ends_sooner_there() -> None:
    """The only 4g is taken until 10: b ends at 10 + 5 there, on 1g it would end at 2 + 20."""
    jobs = [job("a", 0, "4g.20gb", 10), free("b", 2, {1: 20.0, 4: 5.0})]
    done = run(trace(*jobs, costs=NO_COSTS))
    assert places(done) == [("a", "4g.20gb", 0, 10), ("b", "4g.20gb", 10, 15)]
    assert places(simulate(trace(*jobs, costs=NO_COSTS), "best-fit"))[1] == ("b", "1g.5gb", 2, 22)


@pytest.mark.parametrize(
    ("balance", "ends"),
    [
        (0.0, [6, 12]),  # one after the other on 7g: the mean is 9; side by side on 3g it is 10
        (0.2, [6, 12]),  # 0.8 x 9 + 0.2 x 12 = 9.6
        (0.4, [10, 10]),  # 0.6 x 9 + 0.4 x 12 = 10.2
        (1.0, [10, 10]),  # the last end
    ],
)
def test_sizes_are_chosen_by_the_balance(balance: float, ends: list[float]) -> None:
    jobs = [free(name, 0, {3: 10.0, 7: 6.0}) for name in "ab"]
    assert [row[3] for row in places(run(trace(*jobs, costs=NO_COSTS), balance=balance))] == ends


def test_nobody_waits_for_ever() -> None:
    """A job of 1 s each 0.99 s, and one of 4 s: with little patience it has its turn, with much it is the last one.

    With a patience of 1 the long one counts 1 + t / 4 at second t, as if it took 4 / (1 + t / 4) s. Short ones that
    have waited for a second count double, as if they took 0.5 s. So it is ahead of them from t = 28 on.
    """
    arrivals = [number * 0.99 for number in range(60)]
    jobs = [job("long", 0, "7g.40gb", 4), *(job(f"j{at}", at, "7g.40gb", 1) for at in arrivals)]
    wanted = trace(*jobs, costs=NO_COSTS)
    options = {"method": "list", "rounds": 0}
    assert run(wanted, patience=1.0, **options).log.finished[0] < 35
    assert run(wanted, patience=1e6, **options).log.finished[0] > arrivals[-1]


def test_an_instance_that_is_there_is_used() -> None:
    """On the idle 2g, b ends at 20 + 5 = 25; a new 3g would take 1 s to create, and end at 20 + 1 + 4.5."""
    jobs = [job("a", 0, "2g.10gb", 5), free("b", 20, {2: 5.0, 3: 4.5})]
    done = run(trace(*jobs))
    assert places(done)[1] == ("b", "2g.10gb", 20, 25)
    assert done.metrics.creations == 1


def test_what_is_planned_first_is_what_is_shortest() -> None:
    """One at a time: the plan for b is made, carried out and only then that for the next one."""
    jobs = [job(name, 0, "7g.40gb", seconds) for name, seconds in (("a", 5), ("b", 1), ("c", 2))]
    done = run(trace(*jobs, costs=NO_COSTS), most=1)
    assert [(row[0], row[3]) for row in places(done)] == [("b", 1), ("c", 3), ("a", 8)]


def test_in_a_window_jobs_are_planned_together() -> None:
    """Without a window a begins at 0 and b, one second later, ends at 11; planned at 2, b ends at 3 and a at 13."""
    jobs = [job("a", 0, "7g.40gb", 10), job("b", 1, "7g.40gb", 1)]
    wanted = trace(*jobs, costs=NO_COSTS)
    assert [(row[0], row[3]) for row in places(run(wanted))] == [("a", 10), ("b", 11)]
    assert [(row[0], row[3]) for row in places(run(wanted, window=2.0))] == [("b", 3), ("a", 13)]


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_ends_when_solve_says(seed: int) -> None:
    """All arrive at once on one GPU, and the last end is all that counts: nobody ends earlier than the optimum."""
    batch = generate_batch(7, gpu="A30", seed=seed)
    optimum = solve(batch, "cp")
    assert optimum.status.value == "optimal"
    jobs = tuple(Job(task.name, 0.0, task.times) for task in batch.tasks)
    done = run(Trace(jobs, batch.gpu, 1, batch.operations), method="cp", work=5.0, balance=1.0)
    assert done.metrics.makespan == pytest.approx(optimum.makespan, abs=1e-6)


class Listening(Planner):
    """Notes how many later jobs each plan counts with."""

    def begin(self, cluster: Cluster) -> None:
        self.heard: list[tuple[float, float]] = []
        super().begin(cluster)

    def _coming(self, cluster: Cluster, problem: PlanningProblem, choice: Choice) -> Coming:
        found = super()._coming(cluster, problem, choice)
        self.heard.append((cluster.now, found.arrivals + found.others))
        return found


def test_no_arrivals_are_expected_long_after_the_last_one() -> None:
    """One GPU, a job of 10 s every 4 s: from 8 s after the last one on nothing is counted with but what waits."""
    jobs = [job(f"j{number}", 4.0 * number, "7g.40gb", 10.0) for number in range(6)]
    planner = Listening(rounds=20)
    assert_sound(simulate(trace(*jobs, costs=NO_COSTS), planner).log)
    assert max(second for second, _ in planner.heard) == 40.0
    for second, later in planner.heard:
        assert (later > 0) == (0 < second <= 28.0)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [0, 3])
def test_pcie_bound_jobs_end_nearly_as_early_as_with_the_best_simple_scheduler(seed: int) -> None:
    wanted = generate_trace("pcie-4", gpu="A100", gpus=None, seed=seed)
    simple = simulate(wanted, "fragmentation-aware", backfill=True, patience=None).metrics
    found = simulate(wanted, "planner").metrics
    assert found.makespan <= 1.04 * simple.makespan
    assert found.completion.mean <= 0.95 * simple.completion.mean


def test_a_job_that_ran_out_of_memory_gets_as_much_as_it_needed() -> None:
    """1g is quickest, but at half of its 4 s there a needs 8 GB; then it takes 4 s on 1g with 10 GB, from 2 on."""
    wanted = trace(free("a", 0, {1: 4.0, 2: 5.0}, memory_growth=((0.5, 8.0),)), costs=NO_COSTS)
    done = run(wanted)
    ran = [row[2:] for row in rows(done.log)]
    assert ran == [("1g.5gb@6", 0, 2, "OUT_OF_MEMORY"), ("1g.10gb@6", 2, 6, "FINISHED")]


def test_a_job_whose_profile_is_too_small_holds_nobody_up() -> None:
    grows = job("a", 0, "1g.5gb", 4, memory_growth=((0.5, 8.0),))
    done = run(trace(grows, *(job(f"b{number}", 1, "7g.40gb", 3) for number in range(2)), costs=NO_COSTS))
    assert done.unfinished == ("a",)
    # a fails at 2.
    assert [row[3] for row in places(done)] == [2, 5, 8]


def test_a_profile_with_media_engines_exists_once_on_a_gpu() -> None:
    """Plans do not know that, yet each gets it: one after the other."""
    jobs = tuple(Job(name, 0.0, {1: 2.0}, "1g.5gb+me") for name in "abc")
    done = run(Trace(jobs, get_gpu("A100"), 1, NO_COSTS))
    assert not done.unfinished
    assert {row[1] for row in places(done)} == {"1g.5gb+me"}
    assert [row[3] for row in places(done)] == [2, 4, 6]


def test_many_gpus_and_a_long_queue() -> None:
    """Of 100 GPUs only some are looked at for each plan, and 48 jobs of 200: all are done, on all GPUs."""
    jobs = tuple(Job(f"j{number}", 0.0, {1: 10.0 + number % 7, 2: 6.0, 4: 4.0}) for number in range(200))
    done = simulate(Trace(jobs, get_gpu("A100"), 100), "planner", rounds=0)
    assert not done.unfinished
    assert not check_log(done.log)
    assert len({run.gpu for run in done.log.runs()}) == 100


def test_ctrl_c_in_a_solver_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken for the end of that solver alone: the next plan would start another one."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate(trace(*(free(name, 0, {1: 20.0, 4: 5.0}) for name in "abc")), "planner", method="list")


@pytest.mark.parametrize(("light", "heavy"), [(1e-300, 1e150), (1e-308, 1e3), (1e-10, 1e300)])
def test_weights_that_are_far_apart(light: float, heavy: float) -> None:
    jobs = [free(f"j{at}", 0.0, {1: 9.0 + at, 2: 5.0}, weight=light if at < 3 else heavy) for at in range(6)]
    done = run(Trace(tuple(jobs), get_gpu("A30"), 1))
    first = sorted(done.log.finished)[:2]
    assert {job for job, end in enumerate(done.log.finished) if end in first} <= {3, 4, 5}
