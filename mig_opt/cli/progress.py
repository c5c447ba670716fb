"""The line that shows the progress of a method on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from mig_opt.cli.errors import log_is_shown
from mig_opt.method.options import Callbacks
from mig_opt.method.report import spelled_gap
from mig_opt.method.result import relative_gap
from mig_opt.texts import printable
from mig_opt.texts import seconds as spelled

REFRESHES_PER_SECOND = 4
_ASIDE: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}


class LiveLine(Callbacks):
    """Elapsed time, best makespan, lower bound and gap on one line.

    The method may report from any thread: what it reports is kept as one tuple, which is replaced as a whole.
    """

    def __init__(self) -> None:
        self._method = ""
        self._began = time.monotonic()
        self._known: tuple[float | None, float] = (None, 0.0)

    def on_start(self, problem: Any, method: str) -> None:
        """Note the method and the time."""
        self._method, self._began = method, time.monotonic()

    def on_incumbent(self, seconds: float, plan: Any, lower_bound: float) -> None:
        """Note the makespan."""
        self._known = (plan.makespan, lower_bound)

    def on_bound(self, seconds: float, objective: float | None, lower_bound: float) -> None:
        """Note the bound."""
        self._known = (objective, lower_bound)

    def line(self) -> Text:
        """Return the line as it is now: empty before the method begins."""
        if not self._method:
            return Text()
        makespan, bound = self._known
        parts = [f"{self._method} {time.monotonic() - self._began:.1f} s"]
        if makespan is not None:
            parts.append(f"makespan {spelled(makespan)} s")
        if bound > 0:
            parts.append(f"bound {spelled(bound)} s")
        if makespan is not None:
            parts.append(f"gap {spelled_gap(relative_gap(makespan, bound))}")
        return Text("   ".join(parts), no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def shown_progress(method: str = "") -> Iterator[list[Callbacks]]:
    """Show the progress of a method on standard error, if that is a terminal; gone at the end.

    Yields what the method has to tell. Of one that reports nothing, the name is given and its time is shown.
    """
    if not can_take_lines_back():
        yield []
        return
    line = LiveLine()
    if method:
        line.on_start(None, method)
    console = Console(stderr=True, highlight=False)
    with Live(console=console, get_renderable=line.line, refresh_per_second=REFRESHES_PER_SECOND, **_ASIDE) as live:
        live.refresh()
        yield [line]


class Bar:
    """Line of standard error with a bar of the work that is done (of all of it, if that is known), time, and a text."""

    shown = False

    def __init__(self, text: str, total: int | None = None) -> None:
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self.display = Progress(
            BarColumn(16),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False, table_column=rest),
            console=Console(stderr=True, highlight=False),
            expand=True,
            **_ASIDE,
        )
        self._task = self.display.add_task(printable(text), total=total)

    def show(self, text: str | None = None, **progress: Any) -> None:
        """Show another text; ``total``, ``completed`` and ``advance`` say how much is done."""
        described = None if text is None else printable(text)
        self.display.update(self._task, description=described, **progress)


class RunsBar(Callbacks):
    """A bar of runs of methods on problems, one after the other; of the one in progress the incumbent and its gap."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._method = ""
        self._begun = 0

    def on_start(self, problem: Any, method: str) -> None:
        """Count the run before as done, also if it failed."""
        self._method = f"{method} on {problem.name}"
        self._bar.show(f"runs, now: {self._method}", completed=self._begun)
        self._begun += 1

    def on_incumbent(self, seconds: float, plan: Any, lower_bound: float) -> None:
        """Show the makespan."""
        gap = f", gap {spelled_gap(relative_gap(plan.makespan, lower_bound))}" if lower_bound > 0 else ""
        self._bar.show(f"runs, now: {self._method}, {spelled(plan.makespan)} s{gap}")


@contextlib.contextmanager
def shown_bar(text: str, total: int | None = None, *, quiet: bool) -> Iterator[Bar]:
    """Show a bar on standard error, if that is wanted and a terminal; gone at the end."""
    bar = Bar(text, total)
    bar.shown = not quiet and can_take_lines_back()
    with bar.display if bar.shown else contextlib.nullcontext():
        yield bar


def can_take_lines_back() -> bool:
    """Return True if standard error is a terminal on which a line can be replaced, and no log is written to it."""
    return sys.stderr.isatty() and not Console(stderr=True).is_dumb_terminal and not log_is_shown()
