"""Threads of a run: how many there are cores for, and work in one that Ctrl-C must not strike."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def interruptibly(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """Return the result of ``work``, done in another thread while this one waits.

    That way Ctrl-C does not strike inside of ``work``, which may be foreign code that cannot cope with it: it is told
    to stop and waited for, and then KeyboardInterrupt goes on to the caller.
    """
    results: list[T] = []
    failures: list[BaseException] = []
    begun, finished, cancelled = threading.Event(), threading.Event(), threading.Event()

    def run_work() -> None:
        begun.set()
        try:
            if not cancelled.is_set():
                results.append(work())
        except BaseException as error:  # handed to the waiting thread
            failures.append(error)
        finally:
            finished.set()

    # After Ctrl-C neither Thread.is_alive() nor Thread.join() can be trusted (in Python 3.11): hence the events.
    try:
        threading.Thread(target=run_work, name="mig-opt", daemon=True).start()
        while not finished.wait(0.05):
            pass
    except KeyboardInterrupt:
        cancelled.set()
        while begun.is_set() and not finished.is_set():
            stop()  # again and again: a solver that is only just starting does not listen
            finished.wait(0.05)
        raise
    if failures:
        raise failures[0]
    return results[0]


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
