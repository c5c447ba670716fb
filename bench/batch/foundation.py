"""Start-up, FAR's speed, and the first proofs: one table against the goals.

Run: python -m bench.batch.foundation, which takes minutes; or with --cut, which takes seconds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from bench.report import describe, parser_of, save
from mig_opt import Batch, generate_batch, solve
from mig_opt.batch.schedule import Schedule
from mig_opt.heuristics.batch.far import far
from mig_opt.instances.batch import ScalingName
from mig_opt.instances.bundled import load_instance
from mig_opt.method.control import Control
from mig_opt.validation import validate

SCALINGS: tuple[ScalingName, ...] = ("PoorScaling", "MixedScaling", "GoodScaling")
REPEATS = 7


def seconds(action: Callable[[], object], repeats: int) -> list[float]:
    """Return the seconds of some runs of an action."""
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return taken


def python(*arguments: str) -> Callable[[], object]:
    """Return an action that runs Python with some arguments in a fresh process."""
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def start_up(repeats: int) -> list[str]:
    """Measure what an import and the help cost beyond starting Python."""
    bare = statistics.median(seconds(python("-c", "pass"), repeats))
    rows = []
    for label, goal, arguments in (
        ("`import mig_opt`", 0.4, ("-c", "import mig_opt")),
        (
            "`mig-opt --help`",
            0.8,
            ("-c", "import sys; from mig_opt.cli import main; sys.argv[1:] = ['--help']; main()"),
        ),
    ):
        taken = seconds(python(*arguments), repeats)
        rows.append(f"| {label}, with Python's own {bare:.2f} s | {statistics.median(taken):.2f} s | < {goal} s |")
    return rows


def far_speed(sizes: Sequence[tuple[int, float, int]]) -> list[str]:
    """Measure FAR on large batches, worst of the three scalings; sizes are tasks, goal in seconds, and repeats."""

    def run(batch: Batch) -> Callable[[], object]:
        return lambda: far(batch, Control[Schedule]())

    rows = []
    for n, goal, repeats in sizes:
        worst = max(
            statistics.median(seconds(run(generate_batch(n, scaling=scaling, seed=1)), repeats)) for scaling in SCALINGS
        )
        rows.append(f"| FAR, n = {n}, worst scaling | {worst:.3f} s | < {goal:g} s |")
    return rows


def proofs(sizes: Sequence[int], seeds: int) -> list[str]:
    """Solve to the proof: the Rodinia kernels, and small batches of the generator."""
    begin = time.perf_counter()
    result = solve(load_instance("rodinia-a30"))
    rows = [
        f"| `rodinia-a30`: {result.status.value}, {result.makespan} s | {time.perf_counter() - begin:.2f} s | < 5 s |"
    ]
    for n in sizes:
        taken, proven = [], 0
        for scaling in SCALINGS:
            for seed in range(seeds):
                batch = generate_batch(n, scaling=scaling, seed=seed)
                result = solve(batch, time_limit=120)
                assert result.schedule is not None
                assert validate(batch, result.schedule).valid
                proven += result.status == "optimal"
                taken.append(result.runtime_s)
        rows.append(
            f"| `cp`, A100, n = {n}: {proven} of {len(taken)} optimal "
            f"| median {statistics.median(taken):.2f} s, worst {max(taken):.2f} s | all, in a few seconds |"
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parser_of(__doc__, "foundation.md", "everything once, on small batches").parse_args(arguments)
    table = ["| what | measured | goal |", "|---|---|---|"]
    if options.cut:
        table += [*start_up(1), *far_speed([(100, 0.1, 1)]), *proofs((4, 6), 1)]
    else:
        sizes = [(1000, 0.1, REPEATS), (10_000, 3.0, 3)]
        table += [*start_up(REPEATS), *far_speed(sizes), *proofs((4, 6, 8, 10, 12), 10)]
    save("foundation", "\n".join(["# Foundation", "", describe("mig-opt", "ortools"), "", *table, ""]), options.results)


if __name__ == "__main__":
    main()
