"""Distances of the bounds from the loads to the proven optimum: gaps beyond the reach of proofs consist of them.

Run: python -m bench.batch.load_bound. It takes about five minutes; with --cut seconds.
"""

import statistics
from collections.abc import Iterator, Sequence

from bench.report import Page, parser_of, start
from mig_opt import Batch, Schedule, Status, generate_batch, solve
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.instances.batch import SCALINGS
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.dual_price_bound import raise_bound_by_dual_prices
from mig_opt.models.batch.load_program import LoadProgram
from mig_opt.models.batch.portfolio import CpSearch
from mig_opt.models.solvers.backend import solve_program
from mig_opt.models.solvers.highs import Highs

SIZES = ((12, 1), (14, 1), (16, 1), (18, 1), (20, 1), (22, 1), (14, 2), (16, 2))  # tasks and GPUs


def distances(batch: Batch) -> dict[str, float]:
    """Return ``1 - bound / optimum`` by bound; nothing if there is no proof within 100 seconds."""
    result = solve(batch, "cp", time_limit=100)
    if result.status is not Status.OPTIMAL or result.makespan is None or result.schedule is None:
        return {}
    integer_batch = IntegerBatch(batch)
    program = LoadProgram(integer_batch, at_least=0, at_most=integer_batch.ticks.nearest(result.makespan))
    outcome = solve_program(program.linear.program, Highs(), Control[Schedule](RunOptions(time_limit=100)))
    control = Control[Schedule]()
    control.report_plan(result.schedule)
    search = CpSearch(batch, control)
    raise_bound_by_dual_prices(search, share=1.0)
    bounds = {"load program": program.bound(outcome.bound, Highs().tolerance), "dual prices": search.lower}
    return {name: 1 - integer_batch.ticks.seconds_below(bound) / result.makespan for name, bound in bounds.items()}


def measured(sizes: Sequence[tuple[int, int]], seeds: int) -> Iterator[list[str]]:
    """Measure some batches of each size and scaling."""
    for n, gpus in sizes:
        found = {
            scaling: [distances(generate_batch(n, scaling=scaling, seed=seed, gpus=gpus)) for seed in range(seeds)]
            for scaling in SCALINGS
        }
        for name in ("load program", "dual prices"):
            proven = {scaling: [one[name] for one in found[scaling] if one] for scaling in SCALINGS}
            every = [one for scaling in SCALINGS for one in proven[scaling]]
            means = [f"{statistics.mean(values):.2%}" if values else "-" for values in (every, *proven.values())]
            yield [f"{n}", f"{gpus}", f"{len(every)} of {seeds * len(SCALINGS)}", name, *means, f"{max(every):.2%}"]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    options = parser_of(__doc__, "the result", "one batch of 12 tasks for each scaling").parse_args(arguments)
    title = "Bounds from the loads, and the optimum"
    page = Page("load_bound", title, "mig-opt", "highspy", "ortools", folder=options.results)
    page.add("""Batches of the generator (A100, WideTimes, `p_sup` 0.5). The load program leaves placements whole and
        lets tasks be divided; the bound by dual prices leaves both whole, and may count a task more than once. The
        distance is `1 - bound / proven optimum`.""")
    rows = measured(SIZES[:1], 1) if options.cut else measured(SIZES, 3)
    page.table(["tasks", "GPUs", "proven", "bound", "mean", *SCALINGS, "worst"], rows, range(9))
    page.save()
