"""The figures of the FAR paper (Villarrubia et al., JPDC 204, 2025), printed and measured.

``printed.toml`` has the printed tables, ``far_measures.py`` the measurements. What the authors' program itself comes to
is in the results of ``far_authors.py``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

from claims import Claim, Group, Paper, Reading, Verdict, compare
from far_measures import (
    ONES,
    Cell,
    Figures,
    far_to_area,
    joins,
    milliseconds,
    refinement,
    rivals_to_far,
    schedule,
    stream,
)
from report import RESULTS

from mig_opt import generate_batch, get_gpu, load_instance
from mig_opt.heuristics.batch.far import far, far_published
from mig_opt.heuristics.batch.far.concatenation import EndState, arranged

PRINTED: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("printed.toml").read_text(encoding="utf-8"))
AUTHORS = RESULTS / "far_authors.json"

_BATCHES = 100
_BY_PROGRAM = (
    f"Batches of the authors' generator in random order, {_BATCHES} for a cell (the paper: 1000), planned by "
    "`far-published`, which decides like their program. "
)
_NEAR = "In direction: within a factor of two."


def near(printed: float, measured: float, within: float) -> tuple[str, str, Verdict]:
    """Compare two figures that are in direction if they are within a factor of two."""
    return compare(printed, measured, within=within, direction=0 < printed / 2 <= measured <= 2 * printed)


@cache
def measured(measure: Callable[[Cell], Figures], cell: Cell) -> Figures:
    """Measure a cell once for all groups that need it."""
    return measure(cell)


def cells(
    table: str, generator: str, measure: Callable[[Cell], Figures], cut: bool
) -> list[tuple[str, str, float, Figures]]:
    """Return for each printed figure of a table its name, what it is, its value and the figures of its cell."""
    printed = PRINTED[table]
    found = []
    for scaling, times, figure, *values in printed["rows"]:
        for n, value in zip(printed["n"], values, strict=True):
            if cut and n != printed["n"][0]:
                continue
            cell = Cell(generator, scaling, times, n, 3 if cut else _BATCHES)
            found.append((figure, f"{figure}, {scaling}, {times}, n = {n}", value, measured(measure, cell)))
    return found


def of_program(figure: str, table: str) -> Reading:
    """Return the reading of the authors' program itself: the largest and least of its figures beside the printed."""
    rows = {(row["scaling"], row["times"], row["n"]): row for row in json.loads(AUTHORS.read_text("utf-8"))["studies"]}
    parts = []
    for n in (10, 20, 30):
        if n in PRINTED[table]["n"]:
            column = PRINTED[table]["n"].index(n)
            pairs = [
                (values[column], rows[scaling, times, n][figure])
                for scaling, times, name, *values in PRINTED[table]["rows"]
                if name == figure
            ]
            ours, theirs = ([pair[at] for pair in pairs] for at in (1, 0))
            parts.append(f"n = {n}: {min(ours):g} to {max(ours):g} (printed {min(theirs):g} to {max(theirs):g})")
    return Reading(f"the authors' program itself, {figure} (bench/far_authors.py)", "; ".join(parts))


def partitions(_cut: bool) -> Group:
    """Return what the text says of the geometry (Figures 1 and 4, section 3.2)."""
    claims = []
    for name, printed, splits in (("A30", 5, 3), ("A100", 19, 7), ("H100", 19, 7)):
        gpu = get_gpu(name)
        found = len(gpu.maximal_partitions())
        claims.append(Claim(f"partitions of an {name}", *compare(printed, found, within=0, digits=0)))
        tree = gpu.repartition_tree("base")
        inner = sum(tree.out_degree(node) > 0 for node in tree.nodes)
        claims.append(Claim(f"most reconfigurations of an {name}", *compare(splits, inner, within=0, digits=0)))
    return Group("Figures 1 and 4", "Partitions, and nodes of the tree that can be repartitioned", tuple(claims))


def reconfiguration(_cut: bool) -> Group:
    """Return what creations and destructions take (Table 1), and how isolated instances are (Table 2)."""
    printed = {
        "A30, sizes 1, 2, 4": "0.11, 0.12, 0.13 and 0.10, 0.10, 0.10 s",
        "A100, sizes 1, 2, 3, 4, 7": "0.16, 0.17, 0.20, 0.21, 0.24 and 0.20, 0.20, 0.21, 0.21, 0.22 s",
        "H100, sizes 1, 2, 3, 4, 7": "0.16, 0.21, 0.33, 0.38, 0.42 and 0.21, 0.23, 0.25, 0.26, 0.26 s",
        "largest difference when other tasks run beside a kernel": "1.96 %",
    }
    return Group(
        "Tables 1 and 2",
        "Seconds to create and to destroy an instance; isolation",
        tuple(Claim(what, value, "", Verdict.CANNOT) for what, value in printed.items()),
        reason="They are measured on GPUs. The catalogue has just these seconds, and every method plans with them.",
    )


def guarantees(_cut: bool) -> Group:
    """Return the factors of section 5, computed from its own bounds."""
    a30 = Fraction(1, 4) * 4 + Fraction(3, 4)
    a100 = max(Fraction(7, 6) + Fraction(5, 6), Fraction(7, 4), Fraction(7, 5) + Fraction(3, 5))
    two = Fraction(1, 8) * 8 + Fraction(7, 8)
    factors = (
        ("approximation factor of an A30", "7/4", a30),
        ("of two A30s, (8g - 1) / (4g)", "15/8", two),
        ("of an A100 or H100", "2", a100),
        ("competitive ratio of a stream of batches, A30", "7/2", 2 * a30),
        ("competitive ratio of a stream of batches, A100 or H100", "4", 2 * a100),
    )
    return Group(
        "Section 5",
        "Approximation factors and competitive ratios",
        tuple(
            Claim(what, printed, str(value), Verdict.AGREES if Fraction(printed) == value else Verdict.DOES_NOT)
            for what, printed, value in factors
        ),
        assumed="The factors follow from the bounds of the section by its Theorem 1; the ratios are twice that (the "
        "paper's reference 38). The tests compare schedules with proven optima: none is farther away.",
    )


def rodinia_a30(_cut: bool) -> Group:
    """Return the batch of kernels on an A30 (Table 3)."""
    printed = {
        "pathfinder": 21.09,
        "lavaMD": 21.72,
        "gaussian": 22.45,
        "nw": 22.79,
        "huffman": 23.01,
        "heartwall": 23.05,
        "particlefilter": 23.23,
        "lu": 28.86,
    }
    runs = {run.task: run for run in schedule(load_instance("rodinia-a30"), far_published).runs}
    claims = []
    for name, value in printed.items():
        texts = compare(value, runs[name].end, within=0.02 * value, direction=True)
        claims.append(Claim(f"simulated end of {name}, s", *texts))
    claims.append(Claim("simulated end of hotspot, s", "22.31", "", Verdict.CANNOT))
    claims.append(Claim("real ends of all nine", "within 2.25 % of the simulated", "", Verdict.CANNOT))
    return Group(
        "Table 3",
        "Ends of nine Rodinia kernels on an A30",
        tuple(claims),
        assumed="The published times (`rodinia-a30`) have eight of the nine kernels. Within 2 %, about the deviation "
        "that the paper finds between simulation and GPU.",
        reason="HotSpot has no published times; real ends need a GPU.",
    )


def rodinia_a100(_cut: bool) -> Group:
    """Return the figures of the sixteen kernels on an A100 (sections 6.4.1 and 6.5.1)."""
    printed = {
        "rho of FAR": "1.22",
        "MISO-opt by FAR": "2.10",
        "FixPart(1,...,1) by FAR": "2.18",
        "FixPartBest by FAR": "1.16",
        "FixPart(7) by FAR": "1.26",
    }
    return Group(
        "Sections 6.4.1 and 6.5.1",
        "Sixteen Rodinia kernels on an A100",
        tuple(Claim(what, value, "", Verdict.CANNOT) for what, value in printed.items()),
        reason="The times of the kernels on an A100 are not public: the authors' repository names files that it does "
        "not have.",
    )


def table4(cut: bool) -> Group:
    """Return FAR by the area bound."""
    found = cells("table4", "program", far_to_area, cut)
    claims = [
        Claim(what, *compare(value, figures["rho"], within=0.02, direction=True), note=f"`far` {figures['far']:.2f}")
        for _, what, value, figures in found
    ]
    large = max(figures["rho"] for _, what, _, figures in found if cut or not what.endswith("n = 10"))
    claims.append(
        Claim(
            "synthetic inputs, error at most (n >= 15)",
            "1.10",
            f"{large:.2f}",
            Verdict.AGREES if large <= 1.10 else Verdict.DOES_NOT,
        )
    )
    a30 = Cell("program", "MixedScaling", "WideTimes", 10, 3 if cut else _BATCHES, "A30")
    rho = measured(far_to_area, a30)
    claims.append(
        Claim(
            "rho on an A30, MixedScaling, n = 10",
            *compare(1.01, rho["rho"], within=0.02, direction=False),
            note=f"`far` {rho['far']:.2f}",
        )
    )
    text = measured(far_to_area, Cell("text", "MixedScaling", "WideTimes", 10, 3 if cut else _BATCHES, "A30"))
    large_a30 = measured(far_to_area, Cell("program", "MixedScaling", "WideTimes", 30, 3 if cut else _BATCHES, "A30"))
    return Group(
        "Table 4 and section 6.4.2",
        "FAR's makespan by the area bound",
        tuple(claims),
        assumed=_BY_PROGRAM + "Without memory-bound tasks, as in its study. Within 0.02; else in direction: the ratio "
        "falls with the number of tasks.",
        reason="The remark on the A30 names no configuration. With ten tasks on four slices imbalance alone costs more "
        "than 1 %.",
        readings=(
            Reading("A30, n = 10, generator of the text", f"{text['rho']:.2f}"),
            Reading("A30, n = 30, authors' generator", f"{large_a30['rho']:.2f}"),
        ),
    )


def table5(cut: bool) -> Group:
    """Return the rivals by FAR."""
    found = cells("table5", "program, memory-bound", rivals_to_far, cut)
    claims = [
        Claim(
            what.replace(ONES, "(1,...,1)"),
            *compare(value, figures[figure], within=0.05, direction=(value > 1.02) == (figures[figure] > 1.02)),
            note=f"by phases 1 and 2: {figures[f'unrefined, {figure}']:.2f}",
        )
        for figure, what, value, figures in found
    ]
    readings = []
    for name, prefix, generator in (
        ("divided by FAR without its refinement, as the authors' study does", "unrefined, ", "program, memory-bound"),
        ("generator of the text, p_sup 0.5, decided with each slice", "", "text"),
        ("generator of the text, p_sup 0.5, decided between sizes", "", "text, by size"),
    ):
        others = cells("table5", generator, rivals_to_far, cut)
        off = [abs(figures[prefix + figure] - value) for figure, _, value, figures in others]
        readings.append(Reading(name, f"{sum(off) / len(off):.2f} off in the mean, {max(off):.2f} at most"))
    own = [abs(figures[figure] - value) for figure, _, value, figures in found]
    return Group(
        "Table 5",
        "Makespans of the rivals by FAR's",
        tuple(claims),
        assumed=_BY_PROGRAM + "Half of the tasks memory-bound, as in its study. The rivals' operations take no time, "
        "as there. Within 0.05; else in direction: which of the two is longer (by 2 %). "
        f"{sum(own) / len(own):.2f} off in the mean.",
        reason="MISO-opt and FixPart(1,...,1) are longer in print with tasks that scale well: tasks must have had less "
        "work on large instances than either generator gives them.",
        readings=tuple(readings),
    )


def table6(cut: bool) -> Group:
    """Return what the refinement gains."""
    found = cells("table6", "program", refinement, cut)
    claims = [
        Claim(
            what.replace("improvement", "improvement (%)"),
            *near(value, figures[figure], 0.5),
            note=f"most possible {figures['possible']:.1f} %" if figure == "improvement" else "",
        )
        for figure, what, value, figures in found
    ]
    return Group(
        "Table 6",
        "What the refinement gains, and its steps",
        tuple(claims),
        assumed=_BY_PROGRAM + f"Within 0.5. {_NEAR} *Most possible* is how far the schedule of phase 2 is above the "
        "area bound: no refinement gains more.",
        reason="With 20 and 30 tasks the printed gains are above what is possible, so the paper's refinement must have "
        "begun with longer schedules than those of phases 1 and 2. The steps with NarrowTimes are as many as printed.",
        readings=(
            Reading(
                "moves and swaps exchanged in the rows of WideTimes",
                "their swaps here are then within 0.5 of the printed moves in all cells, and their moves of the swaps",
                searched=True,
            ),
            Reading("first allocation of the family only (30 batches, an earlier version)", "gains of 1 to 3 %"),
            Reading("only batches in which there is a step (30 batches, an earlier version)", "0.6 to 4 %"),
            Reading(
                "list scheduling in random order instead of longest first (200 batches, an earlier version)",
                "12.5 and 9.4 % with 20 tasks, WideTimes, PoorScaling and MixedScaling; nothing near elsewhere",
                searched=True,
            ),
        ),
    )


def table7(cut: bool) -> Group:
    """Return what joining batches gains."""
    found = cells("table7", "program", joins, cut)
    claims = [
        Claim(
            what.replace(figure, f"{figure} (%)"),
            *near(value, figures[figure], 1.0),
            note=f"most possible {figures['possible']:.1f} %; with the next batch {figures[f'next, {figure}']:.1f} %",
        )
        for figure, what, value, figures in found
    ]
    return Group(
        "Table 7",
        "What joining batches gains over one after the other",
        tuple(claims),
        assumed=_BY_PROGRAM + "Each is joined with itself, as its study does; the text says 1001 different ones. Joins "
        f"are those of `plan_stream`. Within one point. {_NEAR}",
        reason="The printed gains with ten tasks are out of reach for the authors' program as well, as it is "
        "published. Two copies of a batch end alike, so the gain of reversing alone is small there.",
        readings=(
            Reading("each batch joined with the next one", "see the notes"),
            Reading(
                "without refinement, p_sup 0.25, gains relative to the second batch (41 batches, an earlier version)",
                "4 points off on average with ten tasks; GoodScaling below 8 % in each combination that was tried",
                searched=True,
            ),
            of_program("reversed", "table7"),
            of_program("moved", "table7"),
        ),
    )


def table8(cut: bool) -> Group:
    """Return the steps of joins."""
    found = cells("table8", "program", joins, cut)
    return Group(
        "Table 8",
        "Moves and swaps of a join",
        tuple(Claim(what, *near(value, figures[figure], 0.5)) for figure, what, value, figures in found),
        assumed=_BY_PROGRAM + f"Each is joined with itself. Within 0.5. {_NEAR}",
        reason="Steps are judged here and may lead to several instances, in both directions of a batch; those of the "
        "direction that ends first are counted. The program stops after twenty rounds and judges none.",
        readings=(
            Reading(
                "moves and swaps exchanged in the rows of NarrowTimes with ten tasks",
                "the program's own 10.2, 9.4 and 6.6 moves are then beside the printed 9.7, 9.5 and 9.6 swaps, and its "
                "0.6, 0.3 and 0.1 swaps beside 0.5, 0.3 and 0.7 moves",
                searched=True,
            ),
            of_program("moves", "table8"),
            of_program("swaps", "table8"),
        ),
    )


def table9(cut: bool) -> Group:
    """Return how far streams are above the area bound."""
    found = cells("table9", "program", stream, cut)
    claims = [
        Claim(
            what.replace("above", "above (%)"),
            *near(value, figures["above"], 2.0),
            note=f"as the text says it: {figures['stream']:.1f} %",
        )
        for _, what, value, figures in found
    ]
    rows = json.loads(AUTHORS.read_text("utf-8"))["studies"]
    own = {n: [row["above"] for row in rows if row["n"] == n and row["times"] == "WideTimes"] for n in (10, 20, 30)}
    return Group(
        "Table 9",
        "How far the end of a stream is above the area bound of all its tasks",
        tuple(claims),
        assumed=_BY_PROGRAM + "As in its study of streams: the ends of all pairs of neighbours are summed, in which "
        f"each batch stands twice, and each bound once. Within two points. {_NEAR}",
        reason="That explains the size of the printed figures, about twice the ratio of Table 4 less one, but not "
        "their values: a sum of pairs is at least 100 % above. What is missing is of the size of the gains that "
        "Table 7 prints. A stream itself ends some percent above the bound.",
        readings=(
            Reading(
                "the authors' program itself, with its own joins (bench/far_authors.py)",
                "; ".join(f"n = {n}: {min(values):.0f} to {max(values):.0f} %" for n, values in own.items()),
            ),
            Reading("the stream, as the text says it", "see the notes"),
        ),
    )


def times(cut: bool) -> Group:
    """Return what planning takes (sections 6.4.2, 6.5.2 and 6.7.1)."""
    repeats = 2 if cut else 15
    claims = []
    for n, printed in {15: "19.43 (and 1 to 2)", 100: "12.32", 500: "532.21", 1000: "1620.82"}.items():
        if cut and n > 100:
            continue
        batches = [generate_batch(n, variant="published-program", seed=seed) for seed in range(repeats)]
        found = [milliseconds(partial(schedule, batch, method) for batch in batches) for method in (far, far_published)]
        texts = f"{found[0]:.1f} (`far-published` {found[1]:.1f})"
        claims.append(Claim(f"FAR, {n} tasks, ms", printed, texts, Verdict.CANNOT))
    for n, printed in {30: "below 0.5", 1000: "23.76"}.items():
        if cut and n > 100:
            continue
        batches = [generate_batch(n, variant="published-program", seed=seed) for seed in range(repeats)]
        plans = [schedule(batch, far) for batch in batches]
        actions = [
            partial(arranged, batch, plan, EndState().after(batch.gpu, plan), moved=True)
            for batch, plan in zip(batches, plans, strict=True)
        ]
        claims.append(Claim(f"join, {n} tasks, ms", printed, f"{milliseconds(actions):.1f}", Verdict.CANNOT))
    return Group(
        "Sections 6.4.2, 6.5.2 and 6.7.1",
        "Time to plan",
        tuple(claims),
        assumed="Processor time in a warm process, median, MixedScaling with WideTimes.",
        reason="The paper's machine and program are others, so there is no verdict; it names 1 to 2 ms for 15 tasks in "
        "one place and 19.43 ms in another. Ours skip allocations that cannot win.",
    )


PAPER = Paper(
    "far",
    "FAR: moldable tasks on MIG",
    'J. Villarrubia, L. Costero, F. D. Igual, K. Olcoz: "Leveraging Multi-Instance GPUs through moldable task '
    'scheduling", JPDC 204 (2025), doi:10.1016/j.jpdc.2025.105128.',
    {
        "figure1": partitions,
        "table1": reconfiguration,
        "section5": guarantees,
        "table3": rodinia_a30,
        "rodinia-a100": rodinia_a100,
        "table4": table4,
        "table5": table5,
        "table6": table6,
        "table7": table7,
        "table8": table8,
        "table9": table9,
        "times": times,
    },
)
