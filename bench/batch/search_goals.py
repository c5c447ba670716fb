"""The goals of the method `search`: how close to the best known schedules it has to be, and after how many seconds.

Run: python -m bench.batch.search_goals, which does what is missing and takes hours, or with --seeds 3 a tenth of it;
with --cut it takes seconds. A goal is one of the distance to the best known makespan, the optimum where that is proven;
the distance to the best lower bound is an upper limit of it.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

from bench.report import Page, completed, foreign_rows, markdown, resumable, some_of, start
from mig_opt.instances.batch import SCALINGS, TIME_RANGES
from mig_opt.method.result import Status
from mig_opt.studies import BundledBatch, GeneratedBatches, MethodSettings, Study, StudyRows
from mig_opt.studies.summary import Figures, Judged

SEEDS = 30  # batches of each number of tasks, scaling and range of times
_WORKERS = (2,)
_CUT = {"small": 10, "100": 100, "real": 8}  # the parts of a cut, and how many tasks their batches have


@dataclass(frozen=True, slots=True)
class Part:
    """Batches with the same goal."""

    title: str
    sizes: tuple[int, ...]  # numbers of tasks; none for the bundled instances
    limit: float  # seconds that `search` has, and FAR beside it
    gap: float  # the goal: the mean distance to the best known makespan in each cell, as a share
    reference_limit: float  # seconds that `cp` has to find the optimum, or bounds
    until: float = 0.0  # the gap to its own bound at which `search` ends, and FAR as well

    def study(self, seeds: int) -> Study:
        """Return the study, with a number of batches for a cell."""
        kind: Any = {"seeds": tuple(range(seeds)), "scaling": SCALINGS, "times": tuple(TIME_RANGES)}
        batches = tuple(GeneratedBatches(n=(n,), **kind) for n in self.sizes)
        reference = MethodSettings("cp", (self.reference_limit,), workers=_WORKERS, label="cp")
        ours = (MethodSettings(own, (self.limit,), (self.until,), _WORKERS, label=own) for own in ("far", "search"))
        return Study(batches or tuple(BundledBatch(name) for name in REAL), (reference, *ours))

    def cut(self, n: int) -> Self:
        """Return a part with batches of few tasks, and brief limits."""
        sizes = (n,) if self.sizes else ()
        return dataclasses.replace(self, sizes=sizes, limit=self.limit / 4, reference_limit=0.3)


REAL = {"rodinia-a30": 0.0, "miso-a100-32": 0.005, "miso-a100-100": 0.005}
"""The bundled instances with measured times, and the goal of each."""
PARTS: Mapping[str, Part] = {
    "small": Part("10 to 35 tasks", (10, 15, 20, 25, 30, 35), limit=0.2, gap=0.005, reference_limit=3),
    "100": Part("100 tasks", (100,), limit=1, gap=0.002, reference_limit=5),
    "1000": Part("1000 tasks", (1000,), limit=2, gap=0.001, reference_limit=5),
    "10000": Part("10,000 tasks", (10_000,), limit=20, gap=0.001, reference_limit=3, until=0.0005),
    "real": Part("Measured times", (), limit=1, gap=0.005, reference_limit=20),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """The batches of one kind on which all three methods were run: the runs of each method, batch by batch."""

    search: tuple[Judged, ...]
    far: tuple[Judged, ...]
    cp: tuple[Judged, ...]

    @classmethod
    def of(cls, runs: Iterable[Judged]) -> Self:
        """Return the cell of these runs; batches that lack one are left out."""
        found: dict[str, dict[str, Judged]] = {}
        for run in runs:
            found.setdefault(run.run.batch_key, {})[run.run.column] = run
        whole = [by_method for by_method in found.values() if len(by_method) == 3]
        return cls(*(tuple(by_method[name] for by_method in whole) for name in ("search", "far", "cp")))

    @property
    def proven(self) -> int:
        """On how many batches one of them proved its schedule optimal."""
        batches = zip(self.search, self.far, self.cp, strict=True)
        return sum(any(run.outcome.status == Status.OPTIMAL for run in runs) for runs in batches)

    @property
    def worse(self) -> int:
        """On how many batches `search` has no schedule as good as FAR's."""
        count = 0
        for mine, other in zip((run.outcome for run in self.search), (run.outcome for run in self.far), strict=True):
            least = other.makespan + other.tolerance if other.answered and other.makespan is not None else math.inf
            count += not mine.answered or mine.makespan is None or mine.makespan > least
        return count

    def overrun(self, limit: float) -> float:
        """Return the most seconds beyond the limit; negative if none was needed."""
        return max(run.outcome.seconds for run in self.search) - limit


def mean(values: Iterable[float | None]) -> float:
    """Return the mean; infinite if a value is missing or there is none."""
    found = list(values)
    figures = Figures.of(found)
    return float("inf") if figures is None or None in found else figures.mean


def cells_of(found: StudyRows) -> dict[tuple[str, ...], Cell]:
    """Return the cells by number of tasks, scaling and range of times, or by the name of the instance."""
    groups: dict[tuple[str, ...], list[Judged]] = {}
    for run in found.judged():
        source = run.run.source
        key = (source["instance"],) if "instance" in source else (str(source["n"]), source["scaling"], source["times"])
        groups.setdefault(key, []).append(run)
    cells = {key: Cell.of(runs) for key, runs in groups.items()}
    return {key: cell for key, cell in cells.items() if cell.search}


_FIGURES = (
    *("proven optima", "mean seconds", "worst overrun", "mean gap", "worst gap", "mean above best known"),
    *("FAR: mean gap", "worse than FAR", ""),
)
"""Columns behind those that name the batches; the last one is the verdict."""
_gap, _above_best = attrgetter("gap"), attrgetter("above_best")


def _figures(cell: Cell, limit: float) -> list[str]:
    return [
        str(cell.proven),
        f"{mean(run.outcome.seconds for run in cell.search):.2f}",
        f"{max(0.0, cell.overrun(limit)):.2f}",
        _percent(mean(map(_gap, cell.search))),
        _percent(max(float("inf") if run.gap is None else run.gap for run in cell.search)),
        _percent(mean(map(_above_best, cell.search))),
        _percent(mean(map(_gap, cell.far))),
        str(cell.worse),
    ]


def section(part: Part, seeds: int, found: StudyRows) -> list[str]:
    """Return the tables of a part: one line for each number of tasks, one for each cell."""
    cells = cells_of(found)
    lines = [f"## {part.title}", "", *foreign_rows(found.foreign)]
    ends = f" or at a gap of {_percent(part.until)}" if part.until else ""
    limits = f"`search` and FAR end after {part.limit:g} s{ends}, `cp` has {part.reference_limit:g} s for the bound."
    lines += [limits, ""]
    if not part.sizes:
        rows = [
            [name, _percent(REAL[name]), *_figures(cell, part.limit), verdict([cell], REAL[name])]
            for (name,), cell in cells.items()
        ]
        return [*lines, *_table(["instance", "goal", *_FIGURES], rows), ""]
    rows = []
    for n in dict.fromkeys(key[0] for key in cells):
        of = [cell for key, cell in cells.items() if key[0] == n]
        together = Cell(*(tuple(run for cell in of for run in getattr(cell, name)) for name in ("search", "far", "cp")))
        worst = [max(mean(map(figure, cell.search)) for cell in of) for figure in (_gap, _above_best)]
        count = f"{len(together.search)} of {seeds * len(SCALINGS) * len(TIME_RANGES)}"
        figures = _figures(together, part.limit)
        rows.append([n, count, _percent(part.gap), *map(_percent, worst), *figures, verdict(of, part.gap)])
    lines += [*_table(["n", "batches", "goal", "worst cell: gap", "above best known", *_FIGURES], rows), ""]
    rows = [
        [*key, f"{len(cell.search)} of {seeds}", *_figures(cell, part.limit), verdict([cell], part.gap)]
        for key, cell in cells.items()
    ]
    return [*lines, *_table(["n", "scaling", "times", "batches", *_FIGURES], rows), ""]


def verdict(cells: Sequence[Cell], goal: float) -> str:
    """Return whether the goal is met in each of the cells: mean distance to the best known, and never worse than FAR.

    Where the mean gap to the bound is small enough there is no doubt; else the best makespan of all methods decides.
    """
    doubtful = [cell for cell in cells if mean(map(_gap, cell.search)) > goal]
    missed = sum(mean(map(_above_best, cell.search)) > goal for cell in doubtful)
    reasons = [f"{missed} of {len(cells)} cells" if len(cells) > 1 else "too far"] if missed else []
    worse = sum(cell.worse for cell in cells)
    reasons += [f"worse than FAR on {worse}"] if worse else []
    if reasons:
        return f"**missed**: {'; '.join(reasons)}"
    return "met, to the best known" if doubtful else "met"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    texts = [index for index, title in enumerate(head) if title in ("instance", "scaling", "times", "")]
    return markdown(head, rows, texts)


def _percent(share: float) -> str:
    return f"{share:.3%}".replace("%", " %")


@start
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is missing and write the tables; return 1 if a run failed or results contradict each other."""
    cut, names = "one batch for a cell of 10 and of 100 tasks, brief limits", ",".join(PARTS)
    parser = resumable(__doc__, "search_goals.jsonl.xz and .md", cut)
    parser.add_argument("--only", type=some_of(PARTS), default=(), metavar="PARTS", help=f"some of {names}")
    counts = range(1, SEEDS + 1)
    parser.add_argument("--seeds", type=int, choices=counts, metavar="N", default=SEEDS, help="batches of each cell")
    options = parser.parse_args(arguments)
    parts, seeds = PARTS, SEEDS
    if options.cut:
        parts, seeds = {name: PARTS[name].cut(n) for name, n in _CUT.items()}, 1
    page = Page("search_goals", "The goals of `search`", "mig-opt", "ortools", folder=options.results)
    page.add("""Batches of the generator (A100, `p_sup` 0.5); two threads. A cell is one number of tasks, one scaling
        and one range of times. The gap is (makespan - bound) / makespan, to the greatest lower bound that any of the
        methods found: the distance to the optimum where that is proven, else more than that. The best known makespan is
        the shortest of all methods, and for bundled instances of those on record. A goal is one of the mean distance to
        the best known makespan in a cell: *met* says that even the gap is no greater.""")
    wrong: list[str] = []
    rows = options.results / "search_goals.jsonl"
    for name, part in parts.items():
        if name in (options.only or parts) and not options.table:
            completed(part.study(min(options.seeds, seeds)), rows, options, name)
        found = completed(part.study(seeds), rows, options, name, run=False)
        if found.rows:
            wrong += [*found.contradictions, *found.failures]
            page.lines += section(part, seeds, found)
    page.wrong(wrong)
    page.save()
    return 1 if wrong else 0
