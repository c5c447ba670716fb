"""The line that shows the progress of a method on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.cli.screens import seconds as spelled
from mig_opt.control import Callbacks
from mig_opt.result import relative_gap

REFRESHES_PER_SECOND = 4


class LiveLine(Callbacks):
    """Elapsed time, best makespan, lower bound and gap on one line of standard error, which disappears at the end.

    The method may report from any thread: what it reports is kept as one tuple, which is replaced as a whole.
    """

    def __init__(self) -> None:
        self._method = ""
        self._began = time.monotonic()
        self._known: tuple[float | None, float] = (None, 0.0)
        self._live = Live(
            console=Console(stderr=True, highlight=False),
            get_renderable=self.line,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    @staticmethod
    def possible() -> bool:
        """Whether standard error is a terminal that can take a line back."""
        return sys.stderr.isatty() and not Console(stderr=True).is_dumb_terminal

    def __enter__(self) -> LiveLine:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, method: str) -> None:
        """Note the method and the time."""
        self._method, self._began = method, time.monotonic()

    def on_start(self, batch: Batch, method: str) -> None:
        """Note the method and the time."""
        self.begin(method)

    def on_incumbent(self, seconds: float, schedule: Schedule, lower_bound: float) -> None:
        """Note the makespan."""
        self._known = (schedule.makespan, lower_bound)

    def on_bound(self, seconds: float, makespan: float | None, lower_bound: float) -> None:
        """Note the bound."""
        self._known = (makespan, lower_bound)

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
