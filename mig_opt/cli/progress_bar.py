"""The bar that shows the progress of a study on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from mig_opt.studies import Row, StudyProgress, StudyRun
from mig_opt.texts import printable

_REST = Column(ratio=1, no_wrap=True, overflow="ellipsis")
"""What the other columns leave."""


class ProgressBar(StudyProgress):
    """Runs that are done and failed, time so far and to go, and the last run: on standard error, gone at the end."""

    def __init__(self) -> None:
        self._failed = 0
        self._progress = Progress(
            BarColumn(16),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False, table_column=_REST),
            console=Console(stderr=True, highlight=False),
            expand=True,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("runs", total=None)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_start(self, missing: Sequence[StudyRun], known: int) -> None:
        """Begin with what is known."""
        self._progress.update(self._task, total=known + len(missing), completed=known)

    def on_row(self, row: Row[StudyRun]) -> None:
        """Show the run that was done."""
        self._failed += bool(row.outcome.error)
        failed = f", {self._failed} failed" if self._failed else ""
        last = printable(f"runs{failed}, last: {row.run.label}")
        self._progress.update(self._task, advance=1, description=last)

    @property
    def text(self) -> str:
        """What stands beside the bar, without the times."""
        task = self._progress.tasks[self._task]
        return f"{task.completed:.0f}/{task.total:.0f} {task.description}"
