"""Callbacks that note every call, and a Ctrl-C that comes from inside the process."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partialmethod
from typing import Any

from mig_opt import Callbacks


class Recorder(Callbacks):
    """Keeps what it is told, and does something at the n-th call of one kind."""

    def __init__(self, kind: str = "", turn: int = 1, act: Callable[[], None] = lambda: None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._kind, self._turn, self._act = kind, turn, act

    def _note(self, kind: str, *told: Any) -> None:
        self.calls.append((kind, told))
        if kind == self._kind and sum(call[0] == kind for call in self.calls) == self._turn:
            self._act()

    on_start, on_incumbent = partialmethod(_note, "start"), partialmethod(_note, "incumbent")
    on_bound, on_end = partialmethod(_note, "bound"), partialmethod(_note, "end")


def presses_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def solver_threads() -> list[int]:
    """The threads in which a solver or an import is at work while another one waits."""
    stacks = {thread: traceback.extract_stack(frame) for thread, frame in sys._current_frames().items()}
    return [thread for thread, stack in stacks.items() if any(frame.name == "run_work" for frame in stack)]
