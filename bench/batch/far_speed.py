"""FAR's speed for one batch, for two and for a stream, and what joining costs against exact planning of the next batch.

Run: python -m bench.batch.far_speed. It takes about ten minutes; with --cut seconds.
"""

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench.batch.far_measures import milliseconds, schedule
from bench.report import Page, parser_of, start, timed
from mig_opt import Batch, Schedule, concatenate, generate_batch, handover, plan_stream, solve
from mig_opt.heuristics.batch.far import best_plans, far
from mig_opt.heuristics.batch.far.concatenation import JOINS, EndState, joined
from mig_opt.instances.batch import SCALINGS, TIME_RANGES
from mig_opt.method.control import Control

_far = partial(schedule, method=far)
KINDS = list(itertools.product(SCALINGS, TIME_RANGES))
HEADS = [*JOINS, "FAR from the handover"]
LIMIT = 10.0  # seconds for the exact solution of a batch


def _planned(method: Callable[[Batch, Control[Schedule]], object], batch: Batch) -> None:
    method(batch, Control[Schedule]())


def one_batch(n: int, repeats: int) -> Iterator[list[str]]:
    """Measure FAR with and without its refinement."""
    for scaling, times in KINDS:
        batch = generate_batch(n, scaling=scaling, times=times, seed=1)
        unrefined, whole = (milliseconds([partial(_planned, method, batch)] * repeats) for method in (best_plans, far))
        yield [scaling, times, f"{unrefined:.0f} ms", f"{whole:.0f} ms", "< 150 ms"]


def two_batches(n: int, repeats: int) -> Iterator[list[str]]:
    """Measure joining two schedules, alone and with three runs of the validator (both, and the whole)."""
    for scaling, times in KINDS:
        batches = (generate_batch(n, scaling=scaling, times=times, seed=seed) for seed in (1, 2))
        plans = [(batch, _far(batch)) for batch in batches]

        def alone(plans: list[tuple[Batch, Schedule]] = plans) -> object:
            state = EndState().after(plans[0][0], plans[0][1])
            return joined(*plans[1], state, "moved")

        join, whole = (milliseconds([action] * repeats) for action in (alone, partial(concatenate, plans)))
        yield [scaling, times, f"{join:.1f} ms", "< 25 ms", f"{whole:.0f} ms"]


def stream(batches: int) -> Iterator[list[str]]:
    """Measure streams from the batches to the validated schedule."""
    for scaling in SCALINGS:
        coming = [generate_batch(30, scaling=scaling, seed=seed) for seed in range(batches)]
        plan, seconds = timed(partial(plan_stream, coming))
        trivial = concatenate([(batch, _far(batch)) for batch in coming], join="trivial")
        yield [scaling, f"{seconds:.1f} s", "< 60 s", f"{trivial.makespan / plan.makespan - 1:.2%} better"]


def exact_next(sizes: Sequence[tuple[str, int]], seeds: int) -> Iterator[list[str]]:
    """Compare the joins with the exact solution of the second batch from the state that the first one leaves."""
    for (gpu, n), scaling in itertools.product(sizes, SCALINGS):
        gaps: dict[str, list[float]] = {head: [] for head in HEADS}
        proven = 0
        for seed in range(seeds):
            first, second = (generate_batch(n, gpu=gpu, scaling=scaling, seed=2 * seed + at) for at in (0, 1))
            plans = [(first, _far(first)), (second, _far(second))]
            following, begin = handover(*plans[0], second)
            best = solve(following, time_limit=LIMIT)
            assert best.makespan is not None
            proven += best.status == "optimal"
            # What is still running counts as well.
            last = plans[0][1].makespan
            exact = max(last, begin + best.makespan)
            ends: dict[str, float] = {join: concatenate(plans, join=join).makespan for join in JOINS}
            ends[HEADS[-1]] = max(last, begin + _far(following).makespan)
            for head, end in ends.items():
                gaps[head].append(end / exact - 1)
        means = [f"{statistics.mean(gaps[head]):.1%}" for head in HEADS]
        later = sum(gap < -1e-6 for gap in gaps["moved"])
        shown = [f"{max(gaps['moved']):.1%}", f"{later} of {seeds}"]
        yield [gpu, scaling, f"{n}", f"{proven} of {seeds}", *means, *shown]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parser_of(__doc__, "far_speed.md", "few and small batches").parse_args(arguments)
    tasks, batches, seeds, repeats = (12, 3, 2, 1) if options.cut else (1000, 1001, 5, 9)
    sizes = [("A30", 3)] if options.cut else [("A30", 6), ("A30", 8), ("A100", 4), ("A100", 6)]
    page = Page("far_speed", "FAR's speed", "mig-opt", folder=options.results)
    page.add("Times are processor times of one thread.")
    page.section(f"One batch of {tasks} tasks")
    head = ["scaling", "times", "phases 1 and 2", "whole FAR", "goal"]
    page.table(head, one_batch(tasks, repeats), range(5))
    page.section(f"Two batches of {tasks} tasks")
    head = ["scaling", "times", "join", "goal", "`concatenate`, with the validator"]
    page.table(head, two_batches(tasks, repeats), range(5))
    page.section(f"A stream of {batches} batches of 30 tasks")
    page.add(
        "Each FAR schedule passes the validator, and the schedule of the whole stream as well; that is in the seconds."
    )
    page.table(["scaling", "seconds", "goal", "against `trivial`"], stream(batches), range(4))
    page.section("Against the exact solution of the next batch")
    page.add(f"""Two batches, the first one planned by FAR. The gap is that of the end of both to the end with the
        second one solved exactly ({LIMIT:g} s at most) from the state at the handover, when the last operation
        of the first one has ended. A join may use instances that become free before, so it can end earlier: the last
        column counts how often.""")
    head = ["GPU", "scaling", "n", "proven", *HEADS, "moved: worst", "exact ends later"]
    page.table(head, exact_next(sizes, seeds), range(len(head)))
    page.save()
