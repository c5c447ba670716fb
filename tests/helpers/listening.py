"""Callbacks that note every call, and a Ctrl-C that comes from inside the process."""

import os
import signal
import sys
import traceback
from collections.abc import Callable

from mig_opt import Batch, Callbacks, Result, Schedule


class Listener(Callbacks):
    """Notes every call, and does something at the n-th call of one kind."""

    def __init__(self, kind: str = "", turn: int = 1, act: Callable[[], None] = lambda: None) -> None:
        self.calls: list[tuple[str, float | None, float]] = []
        self.ends: list[Result] = []
        self._kind, self._turn, self._act = kind, turn, act

    def _note(self, kind: str, makespan: float | None, lower_bound: float) -> None:
        self.calls.append((kind, makespan, lower_bound))
        if kind == self._kind and sum(call[0] == kind for call in self.calls) == self._turn:
            self._act()

    def on_start(self, batch: Batch, method: str) -> None:
        self._note("start", None, 0.0)

    def on_incumbent(self, seconds: float, schedule: Schedule, lower_bound: float) -> None:
        self._note("incumbent", schedule.makespan, lower_bound)

    def on_bound(self, seconds: float, makespan: float | None, lower_bound: float) -> None:
        self._note("bound", makespan, lower_bound)

    def on_end(self, result: Result) -> None:
        self.ends.append(result)
        self._note("end", result.makespan, result.lower_bound)


def presses_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def solver_threads() -> list[int]:
    """The threads in which a solver or an import is at work while another one waits."""
    stacks = {thread: traceback.extract_stack(frame) for thread, frame in sys._current_frames().items()}
    return [thread for thread, stack in stacks.items() if any(frame.name == "run_work" for frame in stack)]
