"""The message of Ctrl-C. Loads next to nothing, so that it works while everything else is still being loaded."""

from __future__ import annotations

import contextlib
import signal
import sys

INTERRUPTED = 130
"""The exit code."""


def interrupted() -> int:
    """Say that the program was interrupted; return the exit code.

    Another Ctrl-C has nothing left to stop: it is ignored, so that it cannot disturb the end of the program.
    """
    with contextlib.suppress(ValueError):  # outside of the main thread, which no Ctrl-C reaches
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write("interrupted\n")
        sys.stderr.flush()
    return INTERRUPTED
