"""The tables of the study of exactness."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from bench.batch.exact_plan import GIB, Group, exact_methods, overrun
from bench.batch.runs import PYJOBSHOP, Row, Run, contradictions, pairs_of_optima
from bench.report import markdown

Find = Callable[[Run], Row | None]


def table(name: str, groups: Sequence[Group], find: Find) -> list[str]:
    """Return the table of a section, one line for each group; columns that stay empty are left out."""
    head, line = {"methods": (_methods_head(), _methods_line), "pyjobshop": (_PYJOBSHOP_HEAD, _pyjobshop_line)}.get(
        name, (_HEAD, _line)
    )
    lines = [line(group, [row for run in group.runs if (row := find(run))]) for group in groups]
    used = [column for column in range(len(head)) if any(cells[column] for cells in lines)]
    rows = [[cells[column] for column in used] for cells in (head, *lines)]
    return markdown(rows[0], rows[1:], range(len(used)))


_HEAD = (
    "n",
    "runs",
    "statuses",
    "seconds: median",
    "worst",
    "gap: median",
    "worst",
    "seconds to the goal's gap: median",
    "worst",
    "peak memory",
    "worst overrun",
    "goal",
    "",
)


def _line(group: Group, rows: Sequence[Row]) -> list[str]:
    seconds = [row.outcome.seconds for row in rows]
    gaps = [row.outcome.gap for row in rows]
    reached = [row.outcome.seconds_to_gap.get(str(group.goal.gap), math.inf) for row in rows]
    peaks = [row.outcome.peak_bytes for row in rows if row.outcome.peak_bytes is not None]
    to_gap = [_seconds(_median(reached)), _seconds(max(reached, default=math.nan))] if group.goal.gap else ["", ""]
    return [
        group.label,
        _of(len(rows), len(group.runs)),
        _statuses(rows),
        _seconds(_median(seconds)),
        _seconds(max(seconds, default=math.nan)),
        _percent(_median(gaps)),
        _percent(max(gaps, default=math.nan)),
        *to_gap,
        f"{max(peaks) / GIB:.2f} GiB" if peaks else "",
        _seconds(max(map(overrun, rows), default=math.nan)) if group.goal.overrun else "",
        str(group.goal),
        _verdict(group, rows),
    ]


def _verdict(group: Group, rows: Sequence[Row]) -> str:
    missed = group.goal.misses(rows)
    if missed:
        return "**missed**: " + "; ".join(missed)
    return "met" if len(rows) == len(group.runs) else "not all run"


def _methods_head() -> tuple[str, ...]:
    return ("GPU, n", "batches", *(f"proven by `{name}`" for name in exact_methods()), "pairs compared", "differences")


def _methods_line(group: Group, rows: Sequence[Row]) -> list[str]:
    finished = Counter(row.run.method for row in rows if row.outcome.status == "optimal")
    return [
        group.label,
        _of(len({row.run.instance for row in rows}), len({run.instance for run in group.runs})),
        *(_of(finished[name], sum(row.run.method == name for row in rows)) for name in exact_methods()),
        *_compared(rows),
    ]


_PYJOBSHOP_HEAD = (
    "n",
    "batches",
    "`auto`: proven",
    "seconds: median",
    "worst",
    "gap: median",
    "worst",
    "PyJobShop: proven",
    "seconds: median",
    "worst",
    "gap: median",
    "worst",
    "ratio of seconds: median",
    "least",
    "greatest",
    "pairs compared",
    "differences",
)


def _pyjobshop_line(group: Group, rows: Sequence[Row]) -> list[str]:
    ours = {row.run.instance: row for row in rows if row.run.method != PYJOBSHOP}
    theirs = {row.run.instance: row for row in rows if row.run.method == PYJOBSHOP}
    both = [(ours[instance], theirs[instance]) for instance in ours if instance in theirs]
    # Where only one of them has a proof, the limit of the other counts; where none has, nothing is known.
    ratios = [
        (other.outcome.seconds / one.outcome.seconds, not _proven(other))
        for one, other in both
        if _proven(one) or _proven(other)
    ]
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
    return [proven, median, worst, _percent(_median(gaps)), _percent(max(gaps, default=math.nan))]


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
    different = len(contradictions(rows))
    return [str(pairs_of_optima(rows)), f"**{different}**" if different else "0"]


def _statuses(rows: Sequence[Row]) -> str:
    counts = Counter(row.outcome.status for row in rows)
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


def _of(part: int, whole: int) -> str:
    return f"{part}" if part == whole else f"{part} of {whole}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if math.isfinite(seconds) else ("never" if seconds == math.inf else "")


def _percent(gap: float) -> str:
    return f"{gap:.3%}" if math.isfinite(gap) else ""
