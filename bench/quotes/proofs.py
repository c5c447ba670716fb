"""What README and the pages about proofs quote: optimality, bounds, models."""

from __future__ import annotations

import functools
import math
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.quotes.heuristics import PARTS, SMALL, gap_of, gaps_of, proven_optima
from bench.quotes.quoting import Entry, Given, Part, Quote, Source
from bench.quotes.result_tables import NoFigureError, Table, numbers_of, said, table
from bench.report import markdown
from mig_opt import generate_batch, solve
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.layouts import number_of_layouts
from mig_opt.instances.bundled import load_instance

# From the shell, and in a process where all is loaded


def _shell(tasks: str, run: str) -> Table:
    return table("first_run", "Proofs").where({"tasks": tasks, "run": run})


def _both(tasks: str, run: str) -> str:
    row = _shell(tasks, run)
    return f"{row.text('median')}, {row.text('worst')}"


def _proven(count: str) -> str:
    done, runs = (int(number) for number in numbers_of(count))
    return "all proven optimal" if done == runs else f"{done} of {runs} proven optimal"


def shell_table() -> list[str]:
    """Return the table of whole commands."""
    rows = []
    for tasks in dict.fromkeys(table("first_run", "Proofs").texts("tasks")):
        runs = table("first_run", "Proofs").where({"tasks": tasks}).texts("run")
        busy = [_both(tasks, run) for run in ("first, busy", "second, busy") if run in runs]
        counts = [numbers_of(text) for text in table("first_run", "Proofs").where({"tasks": tasks}).texts("proven")]
        proven = _proven(f"{sum(done for done, _ in counts):.0f} of {sum(number for _, number in counts):.0f}")
        rows.append([tasks, proven, _both(tasks, "first"), _both(tasks, "second"), "; ".join(busy) or "-"])
    return markdown(
        ["tasks", "result", "first run: median, worst", "later runs", "both beside two busy processes"], rows
    )


class Proofs(NamedTuple):
    """Row of the table of proofs: what it is called, and the rows of a section of ``exact.md`` that it is made of."""

    heading: str
    label: str
    rows: tuple[str, ...]
    apart: bool = False  # whether each of these rows has seconds of its own


LIVE = "With the live instances of the batch before"


EXACT = (
    Proofs("Small batches", "6 to 12", ("6", "8", "10", "12")),
    Proofs("15 tasks", "15", ("15",)),
    Proofs("20 tasks", "20", ("20",)),
    Proofs("25 tasks", "25", ("25",)),
    *(Proofs("30 to 100 tasks", size, (size,)) for size in ("30", "50", "100")),
    Proofs("1000 tasks", "1000", ("1000",)),
    Proofs("10,000 tasks", "10,000", ("10000",)),
    Proofs("Two GPUs", "20 on 2 GPUs", ("20, 2 GPUs",)),
    Proofs("Several GPUs", "60 on 4 GPUs", ("60, 4 GPUs",)),
    Proofs("Eight GPUs", "200 on 8 GPUs", ("200, 8 GPUs",)),
    Proofs(
        LIVE, "6, 8 with the live instances of an earlier batch (A30, A100)", ("A30, 6", "A30, 8", "A100, 6", "A100, 8")
    ),
    Proofs(LIVE, "20 with the live instances of an earlier batch (A30, A100)", ("A30, 20", "A100, 20"), apart=True),
)


def _rows_of(heading: str, labels: Sequence[str]) -> Table | None:
    """Return those rows of a section of ``exact.md`` that have been run; None if the section or one row has not."""
    try:
        found = table("exact", heading).where({"n": lambda label: label in labels})
    except NoFigureError:
        return None
    return found if len(found.rows) == len(labels) and all(found.texts("statuses")) else None


def _seconds(seconds: float) -> str:
    return f"{seconds * (1 + 1e-12):.{2 if seconds < 1 else 1 if seconds < 10 else 0}f}"


def _column(found: Table, name: str, later: int) -> list[float]:
    """Return the numbers of a column, or of the one ``later`` places behind it: several columns are called worst."""
    return found.numbers(found.head.index(name) + later)


def _statuses(found: Table) -> str:
    """Return how many runs were proven, and how large the gap of the others is."""
    runs = int(sum(found.numbers("runs")))
    optimal = sum(int(number) for text in found.texts("statuses") for number in numbers_of(_part(text, "optimal")))
    gaps = _column(found, "gap: median", 0), _column(found, "gap: median", 1)
    if optimal == runs:
        return "all proven optimal" + (f", {runs} batches" if runs != 30 and len(found.rows) > 1 else "")
    median, worst = max(gaps[0]), max(gaps[1])
    if worst <= (goal := _goal_gap(found)) and not any("missed" in text for text in found.texts("")):
        return f"all within {goal:g} % of the bound, where runs end"
    proven = f"{optimal} of {runs} proven optimal, " if optimal else ""
    batches = f", {runs} batches" if runs != 30 else ""
    return f"{proven}gap {median:.3f} %, at most {worst:.3f} %{batches}"


def _goal_gap(found: Table) -> float:
    """Return the gap in %, at which runs may end if no other is asked for; 0 if the goal is another one."""
    gaps = [numbers_of(goal.partition("gap <= ")[2]) for goal in found.texts("goal")]
    return max(numbers[0] for numbers in gaps) if all(gaps) else 0.0


def _part(statuses: str, status: str) -> str:
    return next((part for part in statuses.split(",") if status in part), "")


def proofs_table() -> list[str]:
    """Return the table of what is proven where all is loaded; sections that have not been run are not in it."""
    rows = []
    for heading, label, labels, apart in EXACT:
        if (found := _rows_of(heading, labels)) is None:
            continue
        medians, worsts = _column(found, "seconds: median", 0), _column(found, "seconds: median", 1)
        if apart:
            shown = [", ".join(map(_seconds, medians)), ", ".join(map(_seconds, worsts))]
        else:
            shown = [_seconds(max(medians)), _seconds(max(worsts))]
        rows.append([label, _statuses(found), *shown])
    return markdown(["tasks", "result", "seconds", "worst"], rows, (0, 1))


def proofs_in_short() -> list[str]:
    """Return README's sentences about proofs."""
    later = {tasks: _shell(tasks, "second").number("median") for tasks in ("7 to 12", "20")}
    first = max(_shell(tasks, "first").number("median") - later[tasks] for tasks in later)
    extra = "a second" if first <= 1 else f"{first:.1f} s"
    counts = [numbers_of(text) for text in table("first_run", "Proofs").texts("proven")]
    if any(done < runs for done, runs in counts):
        raise NoFigureError("bench/results/first_run.md: not all are proven, README says so")
    return textwrap.wrap(
        "From a shell on two cores, batches of up to 12 tasks for an A100 are proven in "
        f"[{later['7 to 12']:.1f} s](bench/results/first_run.md) and those of 20 in {later['20']:.1f} s (medians of "
        f"whole commands; the first run in a fresh environment takes up to {extra} longer); {_rest()}",
        width=120,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _rest() -> str:
    """Return what is known of 50 and 100 tasks: by the study of exactness, or else by the study of gaps."""
    if (found := _rows_of("30 to 100 tasks", ("50", "100"))) is not None:
        gap, worst = max(_column(found, "gap: median", 0)), max(_column(found, "gap: median", 1))
        if worst <= _goal_gap(found):
            return (
                f"those of 50 and 100 are within {_goal_gap(found):.2f} % of the bound after "
                f"[{_seconds(max(_column(found, 'seconds: median', 0)))} s](bench/results/exact.md)."
            )
        return (
            f"at 50 and 100 tasks a gap of {gap:.2f} % remains after [a minute](bench/results/exact.md) in the median, "
            f"{worst:.2f} % at most."
        )
    gaps = [gap_of("cp", size) for size in ("n = 50", "n = 100")]
    return (
        f"at 50 and 100 tasks a gap of {gaps[0]:.2f} % and {gaps[1]:.2f} % remains after [10 s](bench/results/gaps.md)."
    )


def heuristics_in_short() -> list[str]:
    """Return the table of means over all small batches."""
    methods = {"search": "`search`, 0.2 s"} | {name: f"`{name}`" for name in ("far", "fixpart-best", "lpt", "miso-opt")}
    cells = []
    for method in methods:
        mean, worst = statistics.fmean(gaps_of(method, SMALL)), max(gaps_of(method, SMALL, 1))
        cells.append(f"{mean:.2f} % ({worst:.1f} %)" if worst < 1 else f"{mean:.{2 * (mean < 10)}f} % ({worst:.0f} %)")
    return markdown(list(methods.values()), [cells], range(len(cells)))


@functools.cache
def _makespan_of_far() -> float:
    """Return FAR's makespan for the bundled instance of README, planned now: this takes a moment and never varies."""
    schedule = solve(load_instance("rodinia-a30"), method="far").schedule
    return float(schedule.makespan) if schedule else math.nan


# Bounds


@functools.cache
def layouts() -> int:
    """Return how many layouts an A100 has, counted now."""
    return number_of_layouts(branches_of(IntegerBatch(generate_batch(30, gpu="A100", seed=0))))


def _distance(tasks: int, bound: str, gpus: int = 1) -> float:
    return table("load_bound").where({"tasks": str(tasks), "GPUs": str(gpus), "bound": bound}).number("mean")


PAGES: Mapping[str, Sequence[Entry]] = {
    "README.md": (
        Quote(
            "ends with a proof: {:.3f} s is optimal, where the FAR heuristic takes {:.3f} s.",
            lambda: (
                float(said("foundation", r"`rodinia-a30`: optimal, ([\d.]+) s")[0]),
                _makespan_of_far(),
            ),
        ),
        Part("proofs", proofs_in_short),
        Given(Source.SETTING, ("Needs Python 3.11 or newer",)),
    ),
    "docs/explanation/optimality.md": (
        Given(Source.ONCE, ("## What is out of reach today",)),
        Part("shell", shell_table),
        Part("proofs", proofs_table),
        Part("heuristics", heuristics_in_short),
        Quote(
            "The gap of each to the **proven optimum** of {:.0f} synthetic batches with 6 to 15 tasks",
            lambda: (proven_optima(PARTS[0])[1],),
            holds=lambda: len(set(proven_optima(PARTS[0]))) == 1,
        ),
    ),
    "docs/explanation/bounds.md": (
        Quote(
            "{:.1f} % for 12 tasks on an A100, {:.1f} % for 18 and {:.1f} % for 22",
            lambda: tuple(_distance(tasks, "load program") for tasks in (12, 18, 22)),
        ),
        Quote(
            "bound is {:.1f} % below the optimum for 12 tasks, {:.1f} % for 20 and {:.1f} % for 22, and {:.1f} % "
            "for 14 on "
            "two GPUs, where the load program is {:.1f} % below.",
            lambda: (
                *(_distance(tasks, "dual prices") for tasks in (12, 20, 22)),
                _distance(14, "dual prices", 2),
                _distance(14, "load program", 2),
            ),
        ),
        Quote("An A100 has {:,} layouts; in a batch", lambda: (layouts(),)),
        Quote("Of the {:,} layouts some", lambda: (layouts(),)),
        Given(
            Source.SETTING,
            (
                "a 10,000th of a schedule",
                "to a 10,000th hides that",
                "with 80,000 grains",
                "are more than 0.05 % below the bound",
                "have 40,000 grains and then 160,000, and the sets 160,000",
            ),
        ),
        Given(
            Source.ONCE,
            (
                "was 12 to 30 % below the optimum",
                "the gap falls from 3.2 to 0.2 %",
                "rises from 174.621 to 174.642 s, with all 30 HiGHS reaches 174.635 s in 50 seconds",
                "0.48 s on average",
                "by 0.003 %",
                "some 100 to 4,000 are left",
                "in less than 0.1 ms",
                "rises by 0.01 to 0.04 %",
                "up to 0.03 % above the bound, 40,000 grains",
                "a schedule 0.024 % above it",
                "within 0.033 % of the bound",
                "had one assignment, in 0.1 s each",
            ),
        ),
    ),
    "docs/explanation/models.md": (
        Given(Source.SETTING, ("(1e-9 here", "a gap of more than 0.15 %")),
        Given(Source.ONCE, ("CBC 2.10.3 was seen",)),
    ),
    "docs/explanation/problem.md": (
        Given(Source.ONCE, ("OR-Tools 9.15 was seen to lose solutions when times exceed 1e9: in 2-3 % of random",)),
    ),
    "docs/explanation/glossary.md": (Given(Source.GEOMETRY, ("three compute slices and 20 GB",)),),
}
