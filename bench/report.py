"""Parts that all benchmarks share: arguments, progress, what was measured before, and the page of results.

A benchmark is a module that ends with its ``main``, decorated with :func:`start`, which reads its arguments, measures,
and writes a :class:`Page`::

    options = parser_of(__doc__, "speed.md", "a few jobs").parse_args(arguments)
    page = Page("speed", "Speed of the simulator", "mig-opt", folder=options.results)
    page.section("A million jobs", "Seconds of the processor.")
    page.table(["policy", "seconds"], measured(...))
    page.save()

Rows are told as they are measured. Those of :class:`Kept`, and those of an earlier page, are not measured again.
"""

import argparse
import itertools
import json
import lzma
import re
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from mig_opt.studies import Study, StudyProgress, StudyRows, run_study, study_rows
from mig_opt.studies.environment import environment
from mig_opt.studies.execution import SourcesChangedError
from mig_opt.studies.rows import Row, pack
from mig_opt.studies.runs import StudyRun

RESULTS = Path(__file__).parent / "results"
T = TypeVar("T")
Main = TypeVar("Main", bound=Callable[..., int | None])


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


def start(main: Main) -> Main:
    """Run a study, the last function of its module, if ``python -m`` was given this module; exit with what it returns.

    A decorator. A study goes on where it was stopped.
    """
    if main.__module__ != "__main__":
        return main
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted; the same command goes on from here.")
    except SourcesChangedError as error:
        sys.exit(str(error))


def tell(*words: object) -> None:
    """Say how far a benchmark is, on standard error."""
    print(*words, file=sys.stderr, flush=True)


def there(value: T | None) -> T:
    """Return a value that has to be there."""
    assert value is not None
    return value


def timed(action: Callable[[], T], clock: Callable[[], float] = time.process_time) -> tuple[T, float]:
    """Return what an action returns, and its seconds: of the processor, since machines are shared."""
    begin = clock()
    done = action()
    return done, clock() - begin


# Studies of mig_opt.studies


def completed(
    study: Study, rows: Path, options: argparse.Namespace, part: str, *, run: bool = True, **settings: Any
) -> StudyRows:
    """Do what is missing of a study, unless only tables are wanted; pack its rows, and return them."""
    if run and not options.table:
        run_study(study, rows, keep=options.keep, progress=_Told(part), **settings)
    found = study_rows(study, rows, keep=options.keep or options.table, folder=settings.get("folder", "."))
    pack(rows)
    return found


class _Told(StudyProgress):
    """Says how many runs are done."""

    def __init__(self, part: str) -> None:
        self._part, self._numbers, self._missing = part, itertools.count(1), 0

    def on_start(self, missing: Sequence[StudyRun], known: int) -> None:
        self._missing = len(missing)

    def on_row(self, row: Row[StudyRun]) -> None:
        tell(f"{self._part}: {next(self._numbers)} of {self._missing}, {row.run.label}")


def missing_rows(found: StudyRows) -> list[str]:
    """Return a remark if some rows are missing."""
    missing, done = len(found.missing), len(found.rows)
    return [f"**{missing} of {missing + done} runs are missing.**", ""] if missing else []


def foreign_rows(count: int) -> list[str]:
    """Return a remark if some rows were made with other sources or versions."""
    return [f"**{count} of these runs were made with other sources or versions.**", ""] if count else []


class Kept:
    """Figures of a benchmark by their keys, a line of JSON each: what is known is not measured again.

    Lines of a compressed file beside it, which :meth:`pack` writes, count as well.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._packed = path, path.with_name(f"{path.name}.xz")
        lines = lzma.decompress(self._packed.read_bytes()).decode("utf-8") if self._packed.exists() else ""
        lines += path.read_text(encoding="utf-8") if path.exists() else ""
        self.known: dict[str, Any] = dict(map(json.loads, lines.splitlines()))

    def pack(self) -> None:
        """Move all lines to the compressed file."""
        lines = "".join(f"{json.dumps(row)}\n" for row in self.known.items())
        self._packed.write_bytes(lzma.compress(lines.encode("utf-8"), preset=9))
        self._path.unlink(missing_ok=True)

    def get(self, key: str, measure: Callable[[], T]) -> T:
        """Return the figures of a key; when this returns they are in the file."""
        if key not in self.known:
            self.known[key] = measure()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                print(json.dumps([key, self.known[key]]), file=file)
            tell(key)
        found: T = self.known[key]
        return found


# Pages


def describe(*packages: str) -> str:
    """Return a line with the date, the machine and the versions of some packages, those that are installed."""
    here = environment(packages)
    installed = ", ".join(f"{package} {version}" for package, version in here["packages"].items())
    return (
        f"{date.today().isoformat()}, {here['system']}, {here['processor']}, {here['cores']} cores, "
        f"Python {here['python']}, {installed}"
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], texts: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table; columns other than the ``texts`` are aligned to the right."""
    rule = ["---" if index in texts else "---:" for index in range(len(head))]
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in (head, rule, *rows)]


class Page:
    """A page of results, saved as ``name`` in a folder; at its top are date, machine and versions of the packages.

    A page that is made of other results names no packages.
    """

    def __init__(self, name: str, title: str, *packages: str, folder: Path = RESULTS) -> None:
        self._path = folder / f"{name}.md"
        self.lines = [f"# {title}", "", *([describe(*packages), ""] if packages else [])]

    def add(self, *paragraphs: str) -> None:
        """Add paragraphs, whose lines are broken anew."""
        for text in paragraphs:
            filled = textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)
            self.lines += [filled, ""]

    def section(self, heading: str, *paragraphs: str) -> None:
        """Begin a section."""
        self.lines += [f"## {heading}", ""]
        self.add(*paragraphs)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]], texts: Collection[int] = (0,)) -> None:
        """Add a table; each row is told as soon as it is there."""
        shown = []
        for row in rows:
            tell(*row)
            shown.append(row)
        self.lines += [*markdown(head, shown, texts), ""]

    def wrong(self, messages: Sequence[str]) -> bool:
        """Warn of what cannot be true, if there is any, and tell if there is."""
        if messages:
            self.lines += ["**Something is wrong:**", "", *(f"* {message}" for message in messages), ""]
        return bool(messages)

    def earlier(self, heading: str) -> list[str]:
        """Return the lines of a section of the page that was saved before, without its heading."""
        found = re.search(rf"^## {re.escape(heading)}\n\n(.*?)(?=^## |\Z)", self._text(), re.DOTALL | re.MULTILINE)
        return [*found[1].rstrip().splitlines(), ""] if found else []

    def keep(self, heading: str) -> None:
        """Add a section as it was saved before, if there is one."""
        if earlier := self.earlier(heading):
            self.section(heading)
            self.lines += earlier

    def earlier_rows(self, keys: int) -> dict[tuple[str, ...], list[str]]:
        """Return the rows of the tables that were saved before, by their first cells."""
        lines = (line for line in self._text().splitlines() if line.startswith("| "))
        rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
        return {tuple(cells[:keys]): cells for cells in rows}

    def _text(self) -> str:
        return self._path.read_text(encoding="utf-8") if self._path.is_file() else ""

    def save(self) -> None:
        """Write the page beside the others, and show it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(self.lines).rstrip() + "\n"
        self._path.write_text(text, encoding="utf-8")
        print(text)
