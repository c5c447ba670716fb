"""Claims of papers: what is printed, what is measured, and the verdict.

A paper is a module beside this one with a :class:`Paper` called ``PAPER``. Its groups (a table, a figure, a section)
are measured one by one by ``measure.py`` and kept in ``results/papers/<name>.json``, from where
``docs/explanation/papers/<name>.md`` shows them.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from bench.report import RESULTS
from mig_opt.files.documents import make_folder, write_text

STORED = RESULTS / "papers"


class Verdict(StrEnum):
    """Outcome of a comparison of a printed figure with a measured one, see docs/explanation/papers/README.md."""

    AGREES = "agrees"
    DIRECTION = "agrees in direction"
    DOES_NOT = "does not"
    CANNOT = "cannot be had"


@dataclass(frozen=True, slots=True)
class Claim:
    """A printed figure, or a sentence that can be checked, beside the measured one."""

    what: str  # clear within its group
    printed: str
    measured: str  # empty if it cannot be had
    verdict: Verdict
    note: str = ""  # a few words about this claim alone


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to understand what the paper leaves open, and what comes out with it."""

    name: str
    outcome: str
    searched: bool = False  # until its setting fits: it shows what would be needed, not that the paper did so


@dataclass(frozen=True, slots=True)
class Group:
    """Claims of one table, figure or section, with what they share; refuses one that lacks what is needed."""

    claims: tuple[Claim, ...]  # at least one
    command: str = ""  # what computes them, if not ``python -m bench.papers.measure <paper> --only <group>``
    assumed: str = ""  # what was decided here, as the paper does not say it; the tolerance within which figures agree
    reason: str = ""  # why figures differ, or cannot be had (then it is needed), as far as it is known
    readings: tuple[Reading, ...] = ()  # what was tried; needed where a verdict is "does not"
    where: str = ""  # place in the paper (``Table 4``, ``Section 6.1``), see :meth:`Paper.measure`
    title: str = ""  # what its figures are

    def __post_init__(self) -> None:
        verdicts = {claim.verdict for claim in self.claims}
        if not verdicts:
            raise ValueError("a group needs a claim")
        if Verdict.DOES_NOT in verdicts and not self.readings:
            raise ValueError("a verdict 'does not' needs the readings that were tried")
        if Verdict.CANNOT in verdicts and not self.reason:
            raise ValueError("what cannot be had needs a reason")

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Return the group with these fields, as they are stored."""
        claims = tuple(Claim(**{**claim, "verdict": Verdict(claim["verdict"])}) for claim in fields["claims"])
        readings = tuple(Reading(**reading) for reading in fields["readings"])
        return cls(**{**fields, "claims": claims, "readings": readings})


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and the functions that measure its groups, in its order.

    Each takes whether it is to be a quick run of the least size, and returns its group; it has the name of the group,
    and its docstring the place in the paper and the title.
    """

    name: str  # on the command line, of the result file and of the page
    title: str
    source: str  # its authors, and where it is published
    functions: tuple[Callable[[bool], Group], ...]

    @property
    def groups(self) -> dict[str, Callable[[bool], Group]]:
        """The functions by the names of their groups."""
        return {function.__name__.replace("_", "-"): function for function in self.functions}

    def measure(self, key: str, *, cut: bool) -> Group:
        """Return a group with its place in the paper and its title."""
        where, _, title = str(self.groups[key].__doc__).removesuffix(".").partition(": ")
        return dataclasses.replace(self.groups[key](cut), where=where, title=title)


@dataclass(frozen=True, slots=True)
class Measured:
    """A group as it was measured: when, on which machine, with which versions and sources."""

    group: Group
    made: str


def compare(
    printed: float, measured: float, *, within: float, digits: int = 2, direction: bool | None = None
) -> tuple[str, str, Verdict]:
    """Return the texts and the verdict of two figures.

    They agree if they differ by at most ``within``; else in direction, if ``direction`` says so; else they do not.
    """
    if abs(measured - printed) <= within + 1e-12:
        verdict = Verdict.AGREES
    else:
        verdict = Verdict.DIRECTION if direction else Verdict.DOES_NOT
    return f"{printed:.{digits}f}", f"{measured:.{digits}f}", verdict


def held(what: str, printed: str, measured: str, holds: bool, note: str = "", *, direction: bool = False) -> Claim:
    """Return a claim that holds, or else only in direction, or does not."""
    verdict = Verdict.AGREES if holds else Verdict.DIRECTION if direction else Verdict.DOES_NOT
    return Claim(what, printed, measured, verdict, note)


def listed(values: Iterable[float], digits: int = 0, unit: str = "") -> str:
    """Return figures, each with its unit, with commas between them."""
    return ", ".join(f"{value:.{digits}f}{unit}" for value in values)


def same(what: str, printed: str, measured: str) -> Claim:
    """Return a claim whose two texts should be the same."""
    return held(what, printed, measured, printed == measured)


class Store:
    """The measured groups of one paper, in a file."""

    def __init__(self, name: str, folder: Path = STORED) -> None:
        self.path = folder / f"{name}.json"
        self._found: dict[str, Measured] = {}
        if self.path.exists():
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            self._found = {
                key: Measured(Group.read(entry["group"]), entry["made"]) for key, entry in stored["groups"].items()
            }

    def in_order(self, keys: Iterable[str]) -> dict[str, Measured]:
        """Return those of the groups that are known, in this order."""
        return {key: self._found[key] for key in keys if key in self._found}

    def put(self, key: str, measured: Measured, order: Sequence[str]) -> None:
        """Keep a group; when this returns it is in the file. Groups that are not in ``order`` are dropped."""
        self._found[key] = measured
        groups = {
            name: {"made": entry.made, "group": dataclasses.asdict(entry.group)}
            for name, entry in self.in_order(order).items()
        }
        make_folder(self.path.parent)
        write_text(self.path, json.dumps({"groups": groups}, ensure_ascii=False, separators=(",", ":")) + "\n")
