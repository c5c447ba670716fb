"""FAR's speed for one batch, for two and for a stream, and what joining costs against exact planning of the next batch.

Run: python -m bench.batch.far_speed. It takes about ten minutes.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from bench.report import describe, parser_of, save
from mig_opt import Batch, Schedule, concatenate, generate_batch, handover, plan_stream, solve
from mig_opt.heuristics.batch.far import best_plans, far
from mig_opt.heuristics.batch.far.concatenation import JOINS, EndState, joined
from mig_opt.instances.batch import ScalingName, TimesName
from mig_opt.method.control import Control

SCALINGS: tuple[ScalingName, ...] = ("PoorScaling", "MixedScaling", "GoodScaling")
TIMES: tuple[TimesName, ...] = ("WideTimes", "NarrowTimes")


def milliseconds(action: Callable[[], object], repeats: int) -> float:
    """Return the median of some runs of an action, in processor time: machines are shared."""
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        action()
        taken.append(time.process_time() - begin)
    return statistics.median(taken) * 1e3


def scheduled(batch: Batch) -> Schedule:
    """Return FAR's schedule."""
    schedule = solve(batch, "far").schedule
    assert schedule is not None
    return schedule


def _plan(batch: Batch) -> object:
    return best_plans(batch, Control[Schedule]())


def _far(batch: Batch) -> None:
    far(batch, Control[Schedule]())


def one_batch(n: int, repeats: int) -> list[str]:
    """Measure FAR with and without its refinement."""
    rows = ["| scaling | times | phases 1 and 2 | whole FAR | goal |", "|---|---|---|---|---|"]
    for scaling in SCALINGS:
        for times in TIMES:
            batch = generate_batch(n, scaling=scaling, times=times, seed=1)
            unrefined = milliseconds(partial(_plan, batch), repeats)
            whole = milliseconds(partial(_far, batch), repeats)
            rows.append(f"| {scaling} | {times} | {unrefined:.0f} ms | {whole:.0f} ms | < 150 ms |")
    return rows


def two_batches(n: int, repeats: int) -> list[str]:
    """Measure joining two schedules, alone and with three runs of the validator (both, and the whole)."""
    rows = ["| scaling | times | join | goal | `concatenate`, with the validator |", "|---|---|---|---|---|"]
    for scaling in SCALINGS:
        for times in TIMES:
            first, second = (generate_batch(n, scaling=scaling, times=times, seed=seed) for seed in (1, 2))
            plans = [(first, scheduled(first)), (second, scheduled(second))]

            def alone(plans: list[tuple[Batch, Schedule]] = plans) -> object:
                state = EndState().after(plans[0][0].gpu, plans[0][1])
                return joined(*plans[1], state, "moved")

            join = milliseconds(alone, repeats)
            whole = milliseconds(partial(concatenate, plans), repeats)
            rows.append(f"| {scaling} | {times} | {join:.1f} ms | < 25 ms | {whole:.0f} ms |")
    return rows


def stream(batches: int) -> list[str]:
    """Measure streams from the batches to the validated schedule."""
    rows = ["| scaling | seconds | goal | against `trivial` |", "|---|---|---|---|"]
    for scaling in SCALINGS:
        coming = [generate_batch(30, scaling=scaling, seed=seed) for seed in range(batches)]
        begin = time.process_time()
        plan = plan_stream(coming)
        seconds = time.process_time() - begin
        trivial = concatenate([(batch, scheduled(batch)) for batch in coming], join="trivial")
        gain = trivial.makespan / plan.makespan - 1
        rows.append(f"| {scaling} | {seconds:.1f} s | < 60 s | {gain:.2%} better |")
    return rows


def exact_next(sizes: Sequence[tuple[str, int]], seeds: int, limit: float) -> list[str]:
    """Compare the joins with the exact solution of the second batch from the state that the first one leaves."""
    heads = [*JOINS, "FAR from the handover"]
    rows = [
        f"| GPU | scaling | n | proven | {' | '.join(heads)} | moved: worst | exact ends later |",
        "|---|---|---|---|" + "---|" * (len(heads) + 2),
    ]
    for (gpu, n), scaling in itertools.product(sizes, SCALINGS):
        gaps: dict[str, list[float]] = {head: [] for head in heads}
        proven = 0
        for seed in range(seeds):
            first, second = (generate_batch(n, gpu=gpu, scaling=scaling, seed=2 * seed + at) for at in (0, 1))
            plans = [(first, scheduled(first)), (second, scheduled(second))]
            following, begin = handover(*plans[0], second)
            best = solve(following, time_limit=limit)
            assert best.makespan is not None
            proven += best.status == "optimal"
            # What is still running counts as well.
            last = plans[0][1].makespan
            exact = max(last, begin + best.makespan)
            ends: dict[str, float] = {join: concatenate(plans, join=join).makespan for join in JOINS}
            ends[heads[-1]] = max(last, begin + scheduled(following).makespan)
            for head, end in ends.items():
                gaps[head].append(end / exact - 1)
        means = " | ".join(f"{statistics.mean(gaps[head]):.1%}" for head in heads)
        worst = max(gaps["moved"])
        later = sum(gap < -1e-6 for gap in gaps["moved"])
        rows.append(f"| {gpu} | {scaling} | {n} | {proven} of {seeds} | {means} | {worst:.1%} | {later} of {seeds} |")
    return rows


def main(arguments: Sequence[str]) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "far_speed.md")
    parser.add_argument("--tasks", type=int, default=1000, help="tasks of a large batch (1000)")
    parser.add_argument("--batches", type=int, default=1001, help="batches of a stream (1001)")
    parser.add_argument("--sizes", default="A30:6,A30:8,A100:4,A100:6", help="GPU and tasks of small batches")
    parser.add_argument("--seeds", type=int, default=5, help="pairs of small batches of each kind (5)")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for the exact solution of a batch (10)")
    parser.add_argument("--repeats", type=int, default=9, help="runs of which the median counts (9)")
    options = parser.parse_args(arguments)
    sizes = [(gpu, int(n)) for gpu, n in (size.split(":") for size in options.sizes.split(","))]
    lines = [
        "# FAR's speed",
        "",
        describe("mig-opt"),
        "",
        "Times are processor times of one thread.",
        "",
        f"## One batch of {options.tasks} tasks",
        "",
        *one_batch(options.tasks, options.repeats),
        "",
        f"## Two batches of {options.tasks} tasks",
        "",
        *two_batches(options.tasks, options.repeats),
        "",
        f"## A stream of {options.batches} batches of 30 tasks",
        "",
        "Each FAR schedule passes the validator, and the schedule of the whole stream as well; that is in the seconds.",
        "",
        *stream(options.batches),
        "",
        "## Against the exact solution of the next batch",
        "",
        "Two batches, the first one planned by FAR. The gap is that of the end of both to the end with the second one",
        f"solved exactly ({options.limit:g} s at most) from the state at the handover, when the last operation of the",
        "first one has ended. A join may use instances that become free before, so it can end earlier: the last column",
        "counts how often.",
        "",
        *exact_next(sizes, options.seeds, options.limit),
        "",
    ]
    save("far_speed", "\n".join(lines), options.results)


if __name__ == "__main__":
    main(sys.argv[1:])
