"""The line that shows the progress of a method on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from mig_opt.cli.screens import seconds as spelled
from mig_opt.control import Callbacks
from mig_opt.result import relative_gap

REFRESHES_PER_SECOND = 4


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
            parts.append(f"gap {relative_gap(makespan, bound):.3%}")
        return Text("   ".join(parts), no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def shown_progress(method: str = "", *, quiet: bool) -> Iterator[list[Callbacks]]:
    """Show the progress of a method on standard error, if that is wanted and a terminal; gone at the end.

    Yields what the method has to tell. Of one that reports nothing, the name is given and its time is shown.
    """
    if quiet or not can_take_lines_back():
        yield []
        return
    line = LiveLine()
    if method:
        line.on_start(None, method)
    with Live(
        console=Console(stderr=True, highlight=False),
        get_renderable=line.line,
        refresh_per_second=REFRESHES_PER_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:
        live.refresh()
        yield [line]


def can_take_lines_back() -> bool:
    """Return True if standard error is a terminal on which a line can be replaced."""
    return sys.stderr.isatty() and not Console(stderr=True).is_dumb_terminal
