"""The live view of an execution."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mig_opt.batch.journal import Event, Journal
from mig_opt.cli.errors import say
from mig_opt.gpu.devices import gpu_name

if TYPE_CHECKING:
    from rich.text import Text

    from mig_opt.operations.execute.machines import Observer


class ExecutionView:
    """Progress of an execution: what runs now, and how far that is behind the plan.

    Time goes on from the last event by ``uptime``, a clock that nobody sets.
    """

    def __init__(self, uptime: Callable[[], float]) -> None:
        self._uptime, self._shift = uptime, -math.inf
        self._journal: Journal | None = None
        self._running: dict[str, float] = {}
        self._ended = 0
        self._late = 0.0
        self._doing: dict[int, str] = {}
        self._silent: dict[str, str] = {}

    def take(self, journal: Journal, event: Event) -> None:
        """Follow an event."""
        self._journal = journal
        self._shift = max(self._shift, event.time - self._uptime())
        if event.kind == "run" and event.task is not None:
            self._running = {**self._running, event.task: event.time}
        elif event.kind in ("ran", "died") and event.task is not None:
            self._running = {task: begun for task, begun in self._running.items() if task != event.task}
            self._ended += event.kind == "ran"
            self._late = event.time - journal.began - journal.planned_runs[event.task].end
            if event.text:
                _say_event(journal, event)
        elif event.kind in ("create", "destroy") and event.instance is not None:
            place = journal.lifetimes[event.instance]
            name = gpu_name(journal.batch.devices, place.gpu)
            self._doing = {**self._doing, place.gpu: f"{event.kind} {place} of GPU {name}"}
        elif event.kind in ("silent", "heard"):
            node = event.text.partition(":")[0]
            others = {key: text for key, text in self._silent.items() if key != node}
            self._silent = {**others, node: event.text} if event.kind == "silent" else others
        elif event.instance is not None:
            gpu = journal.lifetimes[event.instance].gpu
            self._doing = {key: text for key, text in self._doing.items() if key != gpu}

    def __rich__(self) -> Text:
        from rich.text import Text

        journal = self._journal
        if journal is None:
            return Text()
        now = self._shift + self._uptime() - journal.began
        total, late = len(journal.batch.tasks), self._late
        behind = f"{abs(late):.1f} s {'behind' if late > 0 else 'ahead of'} the plan"
        planned = journal.planned_runs
        end = max(one.end for one in planned.values())
        lines = [f"{now:.1f} s of {end:.1f} s   {self._ended} of {total} tasks   {behind}"]
        for task, begun in list(self._running.items())[:8]:
            one = planned[task]
            begin = begun - journal.began
            lines.append(
                f"  {one.profile}@{one.start} {task}: since {begin:.1f} s (plan {one.begin:.1f} to {one.end:.1f} s)"
            )
        lines += [f"  {text}" for text in (*self._doing.values(), *self._silent.values())]
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def shown_execution(*, quiet: bool) -> Iterator[Observer | None]:
    """Show an execution while it goes on, on a terminal; without one, a line for each event on standard error."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    from mig_opt.cli.progress import REFRESHES_PER_SECOND, can_take_lines_back
    from mig_opt.operations.execute.attempts import uptime

    if not can_take_lines_back():
        yield _say_event
        return
    view = ExecutionView(uptime)
    console = Console(stderr=True, highlight=False)
    with Live(console=console, get_renderable=lambda: view, refresh_per_second=REFRESHES_PER_SECOND, transient=True):
        yield view.take


def _say_event(journal: Journal, event: Event) -> None:
    if event.kind in ("run", "create", "destroy", "begin", "end"):
        return
    what = event.task or ("" if event.instance is None else str(journal.lifetimes[event.instance]))
    code = f", exit code {event.code}" if event.code else ""
    text = f": {event.text}" if event.text else ""
    say(f"{event.time - journal.began:9.3f} s  {f'{event.kind} {what}'.rstrip()}{code}{text}")
