"""Start-up, FAR's speed, and the first proofs: one table against the goals.

Run: python -m bench.batch.foundation, which takes minutes; or with --cut, which takes seconds.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench.batch.far_measures import schedule
from bench.report import Page, parser_of, start, timed
from mig_opt import generate_batch, solve
from mig_opt.heuristics.batch.far import far
from mig_opt.instances.batch import SCALINGS
from mig_opt.instances.bundled import load
from mig_opt.validation import validate

REPEATS = 7
HELP = "import sys; from mig_opt.cli import main; sys.argv[1:] = ['--help']; main()"


def median(action: Callable[[], object], repeats: int) -> float:
    """Return the median of the seconds of some runs of an action."""
    return statistics.median(timed(action, time.perf_counter)[1] for _ in range(repeats))


def python(code: str) -> Callable[[], object]:
    """Return an action that runs a program in a fresh process."""
    return partial(subprocess.run, [sys.executable, "-c", code], check=True, capture_output=True)


def start_up(repeats: int) -> Iterator[list[str]]:
    """Measure what an import and the help cost beyond starting Python."""
    bare = median(python("pass"), repeats)
    for label, goal, code in (("`import mig_opt`", 0.4, "import mig_opt"), ("`mig-opt --help`", 0.8, HELP)):
        seconds = f"{median(python(code), repeats):.2f} s"
        yield [f"{label}, with Python's own {bare:.2f} s", seconds, f"< {goal} s"]


def far_speed(sizes: Sequence[tuple[int, float, int]]) -> Iterator[list[str]]:
    """Measure FAR on large batches, worst of the three scalings; sizes are tasks, goal in seconds, and repeats."""
    for n, goal, repeats in sizes:
        batches = [generate_batch(n, scaling=scaling, seed=1) for scaling in SCALINGS]
        worst = max(median(partial(schedule, batch, far), repeats) for batch in batches)
        yield [f"FAR, n = {n}, worst scaling", f"{worst:.3f} s", f"< {goal:g} s"]


def proofs(sizes: Sequence[int], seeds: int) -> Iterator[list[str]]:
    """Solve to the proof: the Rodinia kernels, and small batches of the generator."""
    result, seconds = timed(lambda: solve(load("rodinia-a30")), time.perf_counter)
    yield [f"`rodinia-a30`: {result.status.value}, {result.makespan} s", f"{seconds:.2f} s", "< 5 s"]
    for n in sizes:
        taken, proven = [], 0
        for scaling, seed in itertools.product(SCALINGS, range(seeds)):
            batch = generate_batch(n, scaling=scaling, seed=seed)
            result = solve(batch, time_limit=120)
            assert result.schedule is not None
            assert validate(batch, result.schedule).valid
            proven += result.status == "optimal"
            taken.append(result.runtime_s)
        shown = f"median {statistics.median(taken):.2f} s, worst {max(taken):.2f} s"
        yield [f"`cp`, A100, n = {n}: {proven} of {len(taken)} optimal", shown, "all, in a few seconds"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parser_of(__doc__, "foundation.md", "everything once, on small batches").parse_args(arguments)
    large = [(100, 0.1, 1)] if options.cut else [(1000, 0.1, REPEATS), (10_000, 3.0, 3)]
    small = ((4, 6), 1) if options.cut else ((4, 6, 8, 10, 12), 10)
    rows = itertools.chain(start_up(1 if options.cut else REPEATS), far_speed(large), proofs(*small))
    page = Page("foundation", "Foundation", "mig-opt", "ortools", folder=options.results)
    page.table(["what", "measured", "goal"], rows, range(3))
    page.save()


if __name__ == "__main__":
    start(main)
