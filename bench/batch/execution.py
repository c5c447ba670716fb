"""The plan of rodinia-a30 executed on the tests' GPU, with ``sleep`` for the kernels: planned against measured.

Run: python -m bench.batch.execution. It takes about a minute, needs a C compiler and the extra ``nvml``, but no
GPU: the library in tests/helpers/nvml.c takes its place.
"""

import getpass
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.report import Page, parser_of, start, there
from mig_opt import Batch, Commands, OperationCosts, Task, load, run_schedule, solve
from mig_opt.files.batch.journals import read_journal
from mig_opt.operations.execute.report import Execution
from mig_opt.validation import validate

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))
from nvml_machine import Machine  # type: ignore[import-not-found]  # a helper of the tests

REPEATS = 5


def scaled(batch: Batch, factor: float) -> Batch:
    """Return a batch in which everything takes a multiple of its time."""
    tasks = (Task(task.name, {size: time * factor for size, time in task.times.items()}) for task in batch.tasks)
    create, destroy = (
        {size: time * factor for size, time in table.items()}
        for table in (batch.operations.create, batch.operations.destroy)
    )
    return batch.replace(tasks=tuple(tasks), operations=OperationCosts(create, destroy))


def executed(factor: float) -> tuple[Execution, bool]:
    """Execute the optimal plan on a new GPU; return what came of it, and whether the validator finds no fault."""
    batch = scaled(load("rodinia-a30"), factor)
    plan = there(solve(batch).schedule)
    commands = Commands({run.task: ("sleep", f"{run.end - run.begin:.6f}") for run in plan.runs})
    with tempfile.TemporaryDirectory() as folder, Machine(Path(folder), "A30", scale=factor).loaded():
        journal = Path(folder, "run.journal")
        found = run_schedule(batch, plan, commands, journal=journal, user=getpass.getuser())
        return found, validate(*read_journal(journal).measured()).valid


def row(name: str, runs: Sequence[Execution]) -> list[str]:
    """Return a row of the table: medians, and the share by which the makespan is longer than planned."""
    late = [run.makespan / run.planned_makespan - 1 for run in runs]
    parts = [run.difference() for run in runs]
    figures = [statistics.median(getattr(part, key) for part in parts) for key in ("tasks", "operations", "waits")]
    cells = [str(len(runs)), f"{runs[0].planned_makespan:.3f}", f"{statistics.median(r.makespan for r in runs):.3f}"]
    cells += [f"{statistics.median(late):+.1%}", f"{max(late):+.1%}", *(f"{figure:+.3f}" for figure in figures)]
    return [name, *cells]


@start
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; the exit code is 1 if an execution is not complete, or not valid."""
    options = parser_of(__doc__, "execution.md", "one short run").parse_args(arguments)
    cases = {"20 times as fast": (0.05, 1 if options.cut else REPEATS), "as planned": (1.0, 0 if options.cut else 1)}
    valid: list[bool] = []

    def measured() -> Iterator[list[str]]:
        for name, (factor, repeats) in cases.items():
            runs = [executed(factor) for _ in range(repeats)]
            valid.extend(good and execution.complete for execution, good in runs)
            if runs:
                yield row(name, [execution for execution, _ in runs])

    page = Page("execution", "A plan and its execution", "mig-opt", "nvidia-ml-py", folder=options.results)
    page.add("""The optimal plan of rodinia-a30 on the tests' GPU (`tests/helpers/nvml.c`, by `nvidia-ml-py`), which
        takes the measured times for operations; `sleep` stands for the kernels. Medians, and the longest run. The parts
        are those of the report: by how many seconds tasks and operations on the critical path took longer, and how much
        more there was to wait for. Starts of programs take the longer the busier the machine is.""")
    head = ["speed", "runs", "planned s", "measured s", "longer", "longest", "tasks", "operations", "waits"]
    page.table(head, measured(), range(9))
    page.add(
        f"{sum(valid)} of {len(valid)} executions are complete and valid by `mig-opt validate`. Then "
        f"{os.getloadavg()[0]:.1f} processes wanted the {os.cpu_count()} cores on average."
    )
    page.save()
    return 0 if all(valid) else 1
