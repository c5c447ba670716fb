"""Figures as the texts of screens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from mig_opt.method.report import Table, Toned, bad, good
from mig_opt.texts import plural, printable, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mig_opt.batch.bounds import Bound
    from mig_opt.studies.summary import Figures

MOST_ROWS = 40
"""Rows up to which a plan is shown in full."""


def tenths(value: float) -> str:
    """Return a figure with one decimal, a very large one with five digits."""
    return f"{value:.1f}" if abs(value) < 1e9 else f"{value:.4e}"


def rate(value: float) -> str:
    """Return a rate with one decimal, very small and very large ones with four digits."""
    return f"{value:.1f}" if 0.1 <= value < 1e7 or value == 0 else f"{value:.3e}"


def percent(share: float | None, decimals: int = 3) -> str:
    """Return a share in percent as a bare number, ``-`` if there is none; the header has to say what it is."""
    return "-" if share is None else f"{100 * share:.{decimals}f}"


def percents(figures: Figures | None, *names: Literal["mean", "median", "worst"]) -> list[str]:
    """Return some of the figures in percent."""
    return [percent(getattr(figures, name) if figures else None) for name in names]


def verdict(violations: Sequence[object]) -> Toned:
    """Return that a plan is valid, or how many violations there are."""
    return bad(f"not valid, {plural(len(violations), 'violation')}") if violations else good("valid")


def first_of(total: int, noun: str, rest: str = ".") -> list[str]:
    """Return the note on a table that shows the first rows only, if there are more, with where the rest is."""
    return [f"The first {MOST_ROWS} of {total} {noun} are shown{rest}"] if total > MOST_ROWS else []


def joined(notes: Sequence[str]) -> list[str]:
    """Return notes as one, if there are any."""
    return [" ".join(notes)] if notes else []


def bounds_table(bounds: Iterable[Bound], heading: str = "") -> Table:
    """Return lower bounds on seconds with their reasons."""
    rows = [[bound.name, seconds(bound.value), bound.reason] for bound in bounds]
    return Table(["bound", ">seconds", "~because"], rows, heading=heading)


def broken_label(label: str, indent: str = "", longest: int = 20) -> tuple[str, ...]:
    """Return the label of a policy in lines of at most ``longest`` characters.

    A line ends before an option; one that is too long for a line is continued further in.
    """
    lines = [indent]

    def add(part: str, margin: str) -> bool:
        fits = len(lines[-1] + part) <= len(indent) + longest
        if not fits and lines[-1].strip():
            lines.append(indent + margin)
            fits = len(margin + part) <= longest
        if fits:
            lines[-1] += part
        return fits

    for option in re.findall(r":?[^:]+", printable(label)):
        if not add(option, " "):
            for piece in re.findall(r"[^=_/]*[=_/]?", option):
                if not add(piece, "  "):
                    lines[-1] += piece
    return tuple(lines)
