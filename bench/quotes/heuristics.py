"""What the pages about heuristics for batches quote: the studies of gaps, FAR, search."""

from __future__ import annotations

import functools
import json
import lzma
import math
import statistics
from collections.abc import Mapping, Sequence

from bench.quotes.quoting import Entry, Given, Part, Quote, Source
from bench.quotes.result_tables import NoFigureError, Table, said, table
from bench.report import RESULTS, markdown

SMALL = ("n = 6", "n = 8", "n = 10", "n = 12", "n = 15")


LARGE = ("n = 20", "n = 30", "n = 50", "n = 100", "n = 1000")


# Heuristics beside the optimum


def gaps_of(method: str, sizes: Sequence[str], number: int = 0) -> list[float]:
    """Return the mean gaps of a method in % for these sizes, or its worst ones (``number`` 1)."""
    return [gap_of(method, size, number) for size in sizes]


def gap_of(method: str, size: str, number: int = 0) -> float:
    """Return the mean gap of a method in %, on batches of a size (0), or the worst (1)."""
    return _gap_table(size).where(method).number(size, number)


PARTS = ("6 to 15 tasks", "20 to 50 tasks", "100 and 1000 tasks")


def _gap_table(size: str, kind: int = 0) -> Table:
    """Return the table of gaps (0), of best known makespans found (1) or of seconds (2) that has this size."""
    for heading in PARTS:
        found = table("gaps", heading, kind)
        if size in found.head:
            return found
    raise NoFigureError(f"bench/results/gaps.md has no {size}")


def _found(method: str) -> tuple[float, float]:
    """Return of how many of the small batches a method found the optimum, and their number."""
    row = table("gaps", PARTS[0], 1).where(method)
    return sum(row.number(size, 0) for size in SMALL), sum(row.number(size, 1) for size in SMALL)


def proven_optima(heading: str) -> tuple[float, float]:
    """Return how many optima of the batches of 20 or 30 tasks `cp` proved: those with a gap of 0 at worst are all."""
    done, batches = said("gaps", rf"## {heading} .*?Optima are proven for (\d+) of (\d+) batches")
    return float(done), float(batches)


def gaps_table(sizes: Sequence[str], methods: Mapping[str, str]) -> list[str]:
    """Return the table of gaps of these sizes: mean, and the worst."""
    rows = [
        [name, *(f"{gap_of(method, size):.2f} ({gap_of(method, size, 1):.1f})" for size in sizes)]
        for method, name in methods.items()
    ]
    return markdown(["mean gap in %, and the worst", *sizes], rows)


HEURISTICS = (
    "far",
    "far-printed",
    "far-published",
    "far-unrefined",
    "search",
    "miso-opt",
    "fixpart-best",
    "lpt",
    "list",
)


def _names(search: str) -> dict[str, str]:
    return {method: f"`{method}`" + (search if method == "search" else "") for method in HEURISTICS}


def goals_table() -> list[str]:
    """Return the table of the goals of `search`, one row for each number of tasks."""
    rows = []
    for heading in ("10 to 35 tasks", "100 tasks", "1000 tasks", "10,000 tasks"):
        limit = said("search_goals", rf"## {heading} .*?`search` and FAR end after ([\d.]+ s)")[0]
        if heading == "10,000 tasks":
            limit += ", or a gap of " + said("search_goals", r"at a gap of ([\d.]+?)0* %")[0] + " %"
        found = table("search_goals", heading)
        for size in found.texts("n"):
            row = found.where({"n": size})
            to_bound = "to the best known" not in row.text(row.head.index("")) and int(size) >= 100
            worst = row.number("worst cell: gap") if to_bound else row.number("above best known")
            mean = row.number("mean gap") if to_bound else row.number("mean above best known")
            far = row.number("FAR: mean gap")
            rows.append(
                [
                    f"{int(size):,}" if int(size) > 9999 else size,
                    limit,
                    f"{row.number('goal'):g} %",
                    f"{worst:.2f} %" + (" (to the bound)" if to_bound else ""),
                    f"{mean:.2f} %",
                    f"{far:.1f} %",
                ]
            )
    return markdown(["tasks", "limit", "goal", "worst cell, to the best known", "mean", "FAR's mean gap"], rows, ())


def _goal(instance: str) -> float:
    return table("search_goals", "Measured times").where({"instance": instance}).number("mean gap")


# FAR


def authors(column: str, number: int = 0) -> float:
    """Return mean (0), worst (1) or best (2) of our makespans by those of the authors' program, over all batches."""
    return table("far_authors").where("all").number(column, number)


def joined(first: str, column: str) -> float:
    """Return a figure of joined batches: our ends by those with the program's joins."""
    return table("far_authors", "Two batches, joined").where(first).number(column)


AS_THEIRS, AS_OURS = "as the program plans it", "as plan_stream plans it"


FORESEEN = "as plan_stream plans it with foresight"


def _speed(heading: str, column: str) -> tuple[float, float]:
    found = table("far_speed", heading).numbers(column)
    return min(found), max(found)


def _about(value: float, low: float, high: float) -> bool:
    return low <= value <= high


def _points(far: str) -> float:
    """Return by how many percentage points a variant of FAR is farther from the optimum than `far`, in the mean."""
    return statistics.fmean(gaps_of(far, SMALL)) - statistics.fmean(gaps_of("far", SMALL))


NEXT = "Against the exact solution of the next batch"


@functools.cache
def _longer_than_far() -> int:
    """Return on how many batches of 100 and 1000 tasks the schedule of `search` is longer than that of FAR."""
    makespans: dict[str, dict[str, float]] = {}
    with lzma.open(RESULTS / "gaps_large.jsonl.xz", "rt", encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            own = makespans.setdefault(json.dumps(row["run"]["batch"]), {})
            own[row["run"]["method"]] = row["outcome"]["makespan"]
    return sum(own["search"] > own["far"] + 1e-9 for own in makespans.values())


def _newer_batches() -> int:
    """Return of how many batches of 1000 tasks the rows are newer: each has one row for every method."""
    return int(said("gaps", r"## 100 and 1000 tasks \*\*(\d+) of these")[0]) // len(table("gaps", PARTS[2]).rows)


PAGES: Mapping[str, Sequence[Entry]] = {
    "docs/explanation/studies.md": (
        Quote(
            "Here `cp` **proves the optimum of all {:.0f} batches of 6 to 15 tasks**, in {:.1f} s on average with "
            "15 tasks "
            "and below {:.1f} s with fewer.",
            lambda: (
                proven_optima(PARTS[0])[0],
                _gap_table("n = 15", 2).where("cp").number("n = 15"),
                0.2,
            ),
            holds=lambda: (
                len(set(proven_optima(PARTS[0]))) == 1
                and all(_gap_table(size, 2).where("cp").number(size) < 0.2 for size in SMALL[:-1])
            ),
        ),
        Part("small", lambda: gaps_table(SMALL, _names(", 0.2 s"))),
        Quote(
            "**FAR is {:.0f} to {:.0f} % from the optimum, and at worst {:.0f} %**, on batches of this size: "
            "{:.2f} % in the "
            "mean. It finds an optimum in {:.0f} of {:.0f}.",
            lambda: (
                min(gaps_of("far", SMALL)),
                max(gaps_of("far", SMALL)),
                max(gaps_of("far", SMALL, 1)),
                statistics.fmean(gaps_of("far", SMALL)),
                *_found("far"),
            ),
        ),
        Quote(
            "As it is printed, or as its authors' program does it, FAR is one percentage point farther away, and "
            "without "
            "its refinement {:.1f}.",
            lambda: (_points("far-unrefined"),),
            holds=lambda: all(_about(_points(name), 0.75, 1.35) for name in ("far-printed", "far-published")),
        ),
        Quote(
            "is {:.2f} % from the optimum after 0.2 s on one thread, and {:.1f} % at worst. It finds the optimum "
            "of {:.0f} "
            "of {:.0f} batches.",
            lambda: (statistics.fmean(gaps_of("search", SMALL)), max(gaps_of("search", SMALL, 1)), *_found("search")),
        ),
        Quote(
            "With six tasks one good partition for the whole batch is two percentage points behind FAR; from ten "
            "tasks on "
            "it is more than twice as far from the optimum.",
            holds=lambda: (
                _about(gap_of("fixpart-best", "n = 6") - gap_of("far", "n = 6"), 1.5, 2.5)
                and all(gap_of("fixpart-best", size) > 2 * gap_of("far", size) for size in (*SMALL[2:], *LARGE))
            ),
        ),
        Quote(
            "MISO-opt loses a third of the time with any number of tasks",
            holds=lambda: all(_about(gap, 30, 40) for gap in gaps_of("miso-opt", SMALL)),
        ),
        Quote(
            "Of the {:.0f} batches of 20, 30 and 50 tasks {:.0f} are proven.",
            lambda: proven_optima(PARTS[1])[::-1],
        ),
        Part("large", lambda: gaps_table(LARGE, {"cp": "`cp`, 10 s"} | _names(", 0.2 s; 1 s from 100 tasks on"))),
        Quote(
            "FAR's gap shrinks with the number of tasks, to a third of a percent with a thousand.",
            holds=lambda: (
                _about(gap_of("far", LARGE[-1]), 0.28, 0.38)
                and gaps_of("far", LARGE) == sorted(gaps_of("far", LARGE), reverse=True)
            ),
        ),
        Quote(
            "After 0.2 s `search` is {:.2f} to {:.2f} % from the bounds of 20 to 50 tasks, and after 1 s below "
            "{:.1f} % from "
            "those of 100 and 1000; `cp` needed 10 s for a little less.",
            lambda: (min(gaps_of("search", LARGE[:3])), max(gaps_of("search", LARGE[:3])), 0.1),
            holds=lambda: (
                max(gaps_of("search", LARGE[3:])) < 0.1
                and all(gap_of("cp", size) <= gap_of("search", size) for size in LARGE)
            ),
        ),
        Quote(
            "but for {:.0f} of the 600 with 100 and 1000 tasks: those of 11 batches of 1000 tasks are newer.",
            lambda: tuple(
                float(part)
                for part in said("gaps", r"## 100 and 1000 tasks \*\*(\d+) of these runs were made with other")
            ),
            holds=lambda: _newer_batches() == 11,
        ),
        Quote("On no batch of 100 or 1000 tasks `search` is longer than FAR.", holds=lambda: _longer_than_far() == 0),
        Quote(
            "Among the constructive heuristics, LPT on the sizes of least work is second to FAR from 12 tasks on.",
            holds=lambda: all(
                max(gap_of(name, size) for name in HEURISTICS if name.startswith("far"))
                < gap_of("lpt", size)
                < min(gap_of(name, size) for name in ("miso-opt", "fixpart-best", "list"))
                for size in (*SMALL[3:], *(size for size in LARGE if size != "n = 1000"))
            ),
        ),
        Quote(
            "Partitions that stay for the whole batch lose {:.0f} % even with a thousand tasks",
            lambda: (gap_of("fixpart-best", LARGE[-1]),),
        ),
        Part("goals", goals_table),
        Quote(
            "With 1 s `rodinia-a30` is solved to the optimum, `miso-a100-32` to {:.1f} % of the bound and "
            "`miso-a100-100` to "
            "{:.2f} %.",
            lambda: (_goal("miso-a100-32"), _goal("miso-a100-100")),
            holds=lambda: _goal("rodinia-a30") == 0,
        ),
        Quote(
            "No generated batch has a schedule worse than FAR's.",
            holds=lambda: all(
                number == 0
                for heading in ("10 to 35 tasks", "100 tasks", "1000 tasks", "10,000 tasks")
                for number in table("search_goals", heading).numbers("worse than FAR")
            ),
        ),
        Given(Source.SETTING, ("which `cp` finds in 10 s", "super-linear where they can be, ten seeds each")),
        Given(
            Source.PRINTED,
            ("JPDC 204 (2025)", "10.1016/j.jpdc.2025.105128", "(Dolan and Moré 2002)"),
        ),
    ),
    "docs/explanation/far.md": (
        Quote(
            "On all of the {:,.0f} batches of `python -m bench.batch.far_authors` it comes to the makespan of the "
            "program's own "
            "assignment.",
            lambda: (float(said("far_authors", r"`far-published` has the makespan of its assignment on (\d+)\.")[0]),),
            holds=lambda: authors("number") == float(said("far_authors", r"of its assignment on (\d+)\.")[0]),
        ),
        Quote(
            "on {:,.0f} batches, its makespan is {:.1f} % shorter in the mean, up to {:.0f} % shorter, and on none "
            "longer",
            lambda: (authors("number"), 100 * (1 - authors("far")), 100 * (1 - authors("far", 2))),
            holds=lambda: authors("far", 1) <= 1.00005,
        ),
        Quote(
            "Of {:,.0f} pairs of batches that are joined behind the program's own schedule of the first one, ours end "
            "{:.1f} % earlier in the mean than with the program's joins, and none later by more than 0.1 %:",
            lambda: (float(said("far_authors", r"Ends of (\d+) pairs")[0]), 100 * (1 - joined(AS_THEIRS, "mean"))),
            holds=lambda: joined(AS_THEIRS, "above 1.001") == 0,
        ),
        Quote(
            "they end {:.1f} % earlier in the mean, but {:.0f} end later by more than 0.1 %, the worst by {:.0f} %",
            lambda: (
                100 * (1 - joined(AS_OURS, "mean")),
                joined(AS_OURS, "above 1.001"),
                100 * (joined(AS_OURS, "worst") - 1),
            ),
        ),
        Quote(
            "With `foresight` they end {:.1f} % earlier in the mean, and none later by more than 0.1 %.",
            lambda: (100 * (1 - joined(FORESEEN, "mean")),),
            holds=lambda: joined(FORESEEN, "above 1.001") == 0,
        ),
        Quote(
            "FAR on 1000 tasks takes {:.0f} to {:.0f} ms of processor time, phases 1 and 2 alone {:.0f} to {:.0f} ms.",
            lambda: (
                *_speed("One batch of 1000 tasks", "whole FAR"),
                *_speed("One batch of 1000 tasks", "phases 1 and 2"),
            ),
        ),
        Quote(
            "Joining two batches of 1000 tasks takes {:.0f} to {:.0f} ms. `concatenate` takes {:.0f} to {:.0f} ms",
            lambda: (
                *_speed("Two batches of 1000 tasks", "join"),
                *_speed("Two batches of 1000 tasks", "concatenate, with the validator"),
            ),
        ),
        Quote(
            "is planned and validated in {:.1f} to {:.1f} s, and ends {:.1f} to {:.1f} % before `trivial`.",
            lambda: (
                *_speed("A stream of 301 batches of 30 tasks", "seconds"),
                *_speed("A stream of 301 batches of 30 tasks", "against trivial"),
            ),
        ),
        Quote(
            "end {:.0f} to {:.0f} % later in the mean with `moved` than with the second batch solved exactly from "
            "the "
            "handover, against {:.0f} to {:.0f} % with `trivial`. In none of {:.0f} pairs `moved` ends earlier.",
            lambda: (
                *_speed(NEXT, "moved"),
                *_speed(NEXT, "trivial"),
                sum(table("far_speed", NEXT).numbers("proven", 1)),
            ),
            holds=lambda: not any(table("far_speed", NEXT).numbers("exact ends later")),
        ),
    ),
    "docs/explanation/search.md": (
        Given(Source.ONCE, ("# The method `search`: why it works",)),
        Quote(
            "It is never worse than FAR, since it begins with FAR's schedule.",
            holds=lambda: not any(table("search_goals", "Measured times").numbers("worse than FAR")),
        ),
    ),
    "docs/explanation/heuristics.md": (
        Quote(
            "make a single schedule, of 1000 tasks in less than {:.1f} s",
            lambda: (
                math.ceil(
                    10
                    * max(
                        _gap_table(LARGE[-1], 2).where(name).number(LARGE[-1]) for name in ("miso-opt", "lpt", "list")
                    )
                    + 1e-9
                )
                / 10,
            ),
        ),
    ),
}
