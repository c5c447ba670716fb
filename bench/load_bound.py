"""How far the bound of the load program is from the proven optimum: what gaps beyond the reach of proofs consist of.

Run: python bench/load_bound.py. It takes about three minutes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from machine import RESULTS, describe, save

from mig_opt import Batch, Status, generate_batch, solve
from mig_opt.control import Control
from mig_opt.instances import ScalingName
from mig_opt.models.highs import Highs
from mig_opt.models.load_program import LoadProgram
from mig_opt.models.lpsolvers import solve_program
from mig_opt.ticked import TickedBatch

SCALINGS: tuple[ScalingName, ...] = ("PoorScaling", "MixedScaling", "GoodScaling")
SIZES = ((12, 1), (14, 1), (16, 1), (18, 1), (20, 1), (22, 1), (20, 2))
"""Tasks and GPUs."""


def distance(batch: Batch) -> float | None:
    """Return ``1 - bound / optimum``; None if there is no proof within 100 seconds."""
    result = solve(batch, "cp", time_limit=100)
    if result.status is not Status.OPTIMAL or result.makespan is None:
        return None
    ticked = TickedBatch(batch)
    program = LoadProgram(ticked, at_least=0, at_most=ticked.ticks.nearest(result.makespan))
    outcome = solve_program(program.linear.program, Highs(), Control(time_limit=100))
    bound = ticked.ticks.seconds_below(program.bound(outcome.bound, Highs().tolerance))
    return 1 - bound / result.makespan


def table(sizes: Sequence[tuple[int, int]], seeds: int) -> list[str]:
    """Measure some batches of each size and scaling."""
    rows = ["| tasks | GPUs | proven | mean | PoorScaling | MixedScaling | GoodScaling | worst |"]
    rows.append("|---|---|---|---|---|---|---|---|")
    for n, gpus in sizes:
        found = {
            scaling: [distance(generate_batch(n, scaling=scaling, seed=seed, gpus=gpus)) for seed in range(seeds)]
            for scaling in SCALINGS
        }
        proven = {scaling: [one for one in found[scaling] if one is not None] for scaling in SCALINGS}
        every = [one for scaling in SCALINGS for one in proven[scaling]]
        means = [f"{statistics.mean(values):.2%}" if values else "-" for values in (every, *proven.values())]
        rows.append(
            f"| {n} | {gpus} | {len(every)} of {seeds * len(SCALINGS)} | {' | '.join(means)} | {max(every):.2%} |"
        )
        print(rows[-1], file=sys.stderr)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="batches of each size and scaling")
    parser.add_argument("--most", type=int, default=22, help="sizes of at most so many tasks")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the result")
    options = parser.parse_args(arguments)
    rows = table([size for size in SIZES if size[0] <= options.most], options.seeds)
    text = [
        "# The bound of the load program and the optimum",
        "",
        describe("mig-opt", "highspy", "ortools"),
        "",
        "Batches of the generator (A100, WideTimes, `p_sup` 0.5). The bound leaves placements whole and lets tasks be",
        "divided; the distance is `1 - bound / proven optimum`.",
        "",
        *rows,
    ]
    save("load_bound", "\n".join(text) + "\n", options.results)


if __name__ == "__main__":
    main()
