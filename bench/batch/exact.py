"""The study of exactness: proofs, gaps, memory, time limits, PyJobShop. Run: python -m bench.batch.exact --help."""

import argparse
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from bench.batch.exact_plan import GIB, SECTIONS, Group, exact_methods, overrun, plan
from bench.batch.runs import PACKAGES, PYJOBSHOP, Row, Run, contradictions, fingerprint, perform
from bench.report import Page, foreign_rows, markdown, resumable, some_of, start, tell
from mig_opt.instances.batch import SCALINGS
from mig_opt.studies.execution import run_missing
from mig_opt.studies.rows import Outcome, Records, pack

Find = Callable[[Run], Row | None]


def table(name: str, groups: Sequence[Group], find: Find) -> list[str]:
    """Return the table of a section, one line for each group; columns that stay empty are left out."""
    proven = (f"proven by `{name}`" for name in exact_methods())
    methods = ("GPU, n", "batches", *proven, "pairs compared", "differences")
    special = {"methods": (methods, _methods_line), "pyjobshop": (_PYJOBSHOP_HEAD, _pyjobshop_line)}
    head, line = special.get(name, (_HEAD, _line))
    lines = [line(group, _rows(group, find)) for group in groups]
    used = [any(column) for column in zip(*lines, strict=True)]
    rows = [list(itertools.compress(cells, used)) for cells in (head, *lines)]
    return markdown(rows[0], rows[1:], range(len(head)))


_HEAD = (
    *("n", "runs", "statuses", "seconds: median", "worst", "gap: median", "worst"),
    *("seconds to the goal's gap: median", "worst", "peak memory", "worst overrun", "goal", ""),
)


def _line(group: Group, rows: Sequence[Row]) -> list[str]:
    seconds = [row.outcome.seconds for row in rows]
    gaps = [row.outcome.gap for row in rows]
    reached = [row.outcome.seconds_to_gap.get(str(group.goal.gap), math.inf) for row in rows]
    peaks = [row.outcome.peak_bytes for row in rows if row.outcome.peak_bytes is not None]
    statuses = Counter(row.outcome.status for row in rows).most_common()
    missed = "; ".join(group.goal.misses(rows))
    return [
        group.label,
        _of(len(rows), len(group.runs)),
        ", ".join(f"{count} {status}" for status, count in statuses),
        *map(_seconds, _median_and_worst(seconds)),
        *map(_percent, _median_and_worst(gaps)),
        *(map(_seconds, _median_and_worst(reached)) if group.goal.gap else ("", "")),
        f"{max(peaks) / GIB:.2f} GiB" if peaks else "",
        _seconds(max(map(overrun, rows), default=math.nan)) if group.goal.overrun else "",
        str(group.goal),
        f"**missed**: {missed}" if missed else "met" if len(rows) == len(group.runs) else "not all run",
    ]


def _methods_line(group: Group, rows: Sequence[Row]) -> list[str]:
    finished = Counter(row.run.method for row in rows if row.outcome.status == "optimal")
    return [
        group.label,
        _of(len({row.run.instance for row in rows}), len({run.instance for run in group.runs})),
        *(_of(finished[name], sum(row.run.method == name for row in rows)) for name in exact_methods()),
        *_compared(rows),
    ]


_PYJOBSHOP_HEAD = (
    *("n", "batches", "`auto`: proven", "seconds: median", "worst", "gap: median", "worst"),
    *("PyJobShop: proven", "seconds: median", "worst", "gap: median", "worst"),
    *("ratio of seconds: median", "least", "greatest", "pairs compared", "differences"),
)


def _pyjobshop_line(group: Group, rows: Sequence[Row]) -> list[str]:
    ours = {row.run.instance: row for row in rows if row.run.method != PYJOBSHOP}
    theirs = {row.run.instance: row for row in rows if row.run.method == PYJOBSHOP}
    both = [(ours[instance], theirs[instance]) for instance in ours if instance in theirs]
    # Where only one of them has a proof, the limit of the other counts; where none has, nothing is known.
    known = [pair for pair in both if any(map(_proven, pair))]
    ratios = [(other.outcome.seconds / one.outcome.seconds, not _proven(other)) for one, other in known]
    return [
        group.label,
        _of(len(both), len({run.instance for run in group.runs})),
        *_side([one for one, _ in both]),
        *_side([other for _, other in both]),
        *_censored(ratios, "{:.1f}"),
        *_compared(rows),
    ]


def _side(rows: Sequence[Row]) -> list[str]:
    gaps = [row.outcome.gap for row in rows]
    median, _, worst = _censored([(row.outcome.seconds, not _proven(row)) for row in rows], "{:.2f}")
    proven = _of(sum(map(_proven, rows)), len(rows))
    return [proven, median, worst, *map(_percent, _median_and_worst(gaps))]


def _censored(values: Iterable[tuple[float, bool]], form: str) -> list[str]:
    """Return median, least and greatest of values of which some are known to be greater than the figure."""
    ordered = sorted(values)
    if not ordered:
        return ["", "", ""]
    figures = [value for value, _ in ordered]
    texts = []
    for figure in (_median(figures), figures[0], figures[-1]):
        greater = any(open_ended for value, open_ended in ordered if value <= figure)
        texts.append(("> " if greater else "") + form.format(figure))
    return texts


def _proven(row: Row) -> bool:
    return row.outcome.status == "optimal"


def _compared(rows: Sequence[Row]) -> list[str]:
    """Return how many pairs of runs proved an optimum of the same batch, and how many contradict each other."""
    proven, different = Counter(row.run.batch_key for row in rows if _proven(row)), len(contradictions(rows))
    pairs = sum(math.comb(count, 2) for count in proven.values())
    return [str(pairs), f"**{different}**" if different else "0"]


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


def _median_and_worst(values: Sequence[float]) -> tuple[float, float]:
    return _median(values), max(values, default=math.nan)


def _of(part: int, whole: int) -> str:
    return f"{part}" if part == whole else f"{part} of {whole}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if math.isfinite(seconds) else ("never" if seconds == math.inf else "")


def _percent(gap: float) -> str:
    return f"{gap:.3%}" if math.isfinite(gap) else ""


def _rows(group: Group, find: Callable[[Run], Row | None]) -> list[Row]:
    return [row for run in group.runs if (row := find(run))]


def _progress(run: Run, outcome: Outcome) -> str:
    makespan = "no schedule" if outcome.makespan is None else f"{outcome.makespan:.3f} s, gap {outcome.gap:.3%}"
    it, limit = run.instance, "" if run.time_limit is None else f", {run.time_limit:g} s"
    where = it.bundled or f"{it.gpu} n={it.n} {it.scaling} {it.seed}"
    return f"{run.method} {where} ({it.variant}{limit}): {outcome.status}, {makespan}, {outcome.seconds:.2f} s"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found, names = resumable(__doc__, "exact.jsonl.xz and exact.md"), ",".join(SECTIONS)
    found.add_argument("--only", type=some_of(SECTIONS), default=(), metavar="SECTIONS", help=f"some of {names}")
    found.add_argument("--seeds", type=int, default=10, help="batches of each scaling (default: 10)")
    found.add_argument("--scalings", type=some_of(SCALINGS), default=SCALINGS, help=f"some of {','.join(SCALINGS)}")
    found.add_argument("--sizes", type=_integers, default=(), help="only batches with these numbers of tasks, e.g. 6,8")
    found.add_argument("--limit-scale", type=float, default=1.0, help="factor for every time limit")
    until = "end runs of 50 tasks or more at this gap, or at that of their `goal` (default); 0: they use their time"
    found.add_argument("--until", type=_gap, default="goal", metavar="GAP", help=until)
    return found


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _gap(text: str) -> str:
    if text != "goal" and not 0 <= float(text) <= 1:
        raise argparse.ArgumentTypeError("must be `goal` or a share from 0 to 1")
    return text


@start
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is missing of the wanted sections, and write the tables; return 1 if results contradict each other."""
    options = parser().parse_args(arguments)
    wanted = plan(options, options.only)
    path = options.results / "exact.jsonl"
    records = Records(path, Run.read, keep=options.keep)
    current = fingerprint()

    def find(run: Run) -> Row | None:
        return records.find(run, current)

    if not wanted.get(PYJOBSHOP, True):
        print("PyJobShop is not installed (pip install -e '.[bench]'), or the cut leaves nothing to compare with it.")
    if not options.table:
        runs = [run for groups in wanted.values() for group in groups for run in group.runs]
        missing = [run for run in runs if find(run) is None]
        most = timedelta(seconds=round(sum(run.time_limit or 0 for run in missing)))
        tell(f"{len(missing)} of {len(runs)} runs to do, {most} at most")
        numbers = itertools.count(1)

        def told(row: Row) -> None:
            tell(f"{next(numbers)}/{len(missing)} {_progress(row.run, row.outcome)}")

        run_missing(missing, perform, records, sources=fingerprint, told=told)
    # The tables show all that is known of this cut, not just what was asked for now.
    every = plan(options, ()).items()
    sections = {name: groups for name, groups in every if any(_rows(group, find) for group in groups)}
    rows = [row for groups in sections.values() for group in groups for row in _rows(group, find)]
    wrong = contradictions(rows)
    page = Page("exact", "Exactness", *PACKAGES, folder=options.results)
    if rows:
        first, last = (choose(row.date for row in rows)[:10] for choose in (min, max))
        page.add(f"{len(rows)} runs, measured from {first} to {last}, 2 threads each.")
    page.lines += foreign_rows(sum(row.fingerprint != current for row in rows))
    page.wrong(wrong)
    for name, groups in sections.items():
        page.section(SECTIONS[name][0])
        page.lines += [*table(name, groups, find), ""]
    page.save()
    pack(path)
    return 1 if wrong else 0
