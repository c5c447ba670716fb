"""Shared parts of the studies: their arguments, their progress, their tables, and the file of their results."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date
from pathlib import Path

from mig_opt.studies import StudyProgress, StudyRows
from mig_opt.studies.environment import environment
from mig_opt.studies.execution import SourcesChangedError
from mig_opt.studies.rows import Row
from mig_opt.studies.runs import StudyRun

RESULTS = Path(__file__).parent / "results"


def describe(*packages: str) -> str:
    """Return a line with the date, the machine and the versions of some packages, those that are installed."""
    here = environment(packages)
    installed = ", ".join(f"{package} {version}" for package, version in here["packages"].items())
    return (
        f"{date.today().isoformat()}, {here['system']}, {here['processor']}, {here['cores']} cores, "
        f"Python {here['python']}, {installed}"
    )


def save(name: str, text: str, folder: Path = RESULTS) -> None:
    """Write the result of a study beside the others and show it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table; columns other than the ``texts`` are aligned to the right."""
    rule = ["---" if index in texts else "---:" for index in range(len(head))]
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]


def remarks(found: StudyRows) -> list[str]:
    """Return what a reader has to know about the rows of a study: how many are missing, or made with other sources."""
    return missing_rows(found) + foreign_rows(found.foreign)


def missing_rows(found: StudyRows) -> list[str]:
    """Return a remark if some rows are missing."""
    if not found.missing:
        return []
    return [f"**{len(found.missing)} of {len(found.missing) + len(found.rows)} runs are missing.**", ""]


def foreign_rows(count: int) -> list[str]:
    """Return a remark if some rows were made with other sources or versions."""
    return [f"**{count} of these runs were made with other sources or versions.**", ""] if count else []


def something_wrong(messages: Sequence[str]) -> list[str]:
    """Return a warning with these messages, if there are any."""
    return ["**Something is wrong:**", "", *(f"* {message}" for message in messages), ""] if messages else []


def parser_of(description: str | None, results: str, cut: str = "") -> argparse.ArgumentParser:
    """Return a parser with ``--results``, the folder of the files that are named, and ``--cut`` with its help."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder for {results}")
    if cut:
        parser.add_argument("--cut", action="store_true", help=cut)
    return parser


def resumable(description: str | None, results: str, cut: str = "") -> argparse.ArgumentParser:
    """Return a parser with ``--table`` and ``--keep`` as well, for a study whose rows are in a file."""
    parser = parser_of(description, results, cut)
    parser.add_argument("--table", action="store_true", help="run nothing, only write the results again")
    parser.add_argument("--keep", action="store_true", help="let rows of other sources or versions count")
    return parser


def some_of(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Return the type of an argument that takes some of the known names, with commas between them."""

    def split(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
        return names

    return split


class Told(StudyProgress):
    """Says how many runs are done, on standard error."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._numbers = itertools.count(1)
        self._missing = 0

    def on_start(self, missing: Sequence[StudyRun], known: int) -> None:
        """Note how many runs there are."""
        self._missing = len(missing)

    def on_row(self, row: Row[StudyRun]) -> None:
        """Say that one was done."""
        print(f"{self._part}: {next(self._numbers)} of {self._missing}, {row.run.label}", file=sys.stderr, flush=True)


def start(main: Callable[[], int | None]) -> None:
    """Run a study that goes on where it was stopped, and exit with what it returns."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted; the same command goes on from here.")
    except SourcesChangedError as error:
        sys.exit(str(error))
