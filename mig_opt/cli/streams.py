"""The standard streams, and the message of Ctrl-C.

What a stream lacks or refuses becomes a message and an exit code, whatever the command. Loads next to nothing: closed
streams are replaced before other modules open files, and Ctrl-C works while these are still being loaded.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from typing import IO

_CLOSED = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
"""The standard streams in order of their numbers, each with how the null device is opened where it is closed.

To read input or to write output fails then, as it should; error messages go nowhere.
"""

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def open_streams() -> None:
    """Put something in the place of streams that are closed: the next file would get their numbers."""
    for name, access, mode in _CLOSED:
        if getattr(sys, name) is None:
            number = os.open(os.devnull, access)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def prepare_streams() -> None:
    """Let the streams spell out what the terminal cannot show: a strange name is no defect."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: IO[str]) -> None:
    """Let what is still to come on a stream go nowhere, so that the interpreter's last flush does not complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def drain_errors() -> None:
    """Give up what standard error does not take: Python 3.14 would end with exit code 120 for it."""
    try:
        sys.stderr.flush()
    except AttributeError:  # there is none
        pass
    except (OSError, ValueError):
        silence(sys.stderr)


def refusal(error: OSError) -> str:
    """Return why a stream cannot be used."""
    return "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)


def interrupted() -> int:
    """Say that the program was interrupted; return the exit code.

    Another Ctrl-C has nothing left to stop: it is ignored, so that it cannot disturb the end of the program.
    """
    with contextlib.suppress(ValueError):  # outside of the main thread, which no Ctrl-C reaches
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none is there
        sys.stderr.write("interrupted\n")
        sys.stderr.flush()
    return INTERRUPTED
