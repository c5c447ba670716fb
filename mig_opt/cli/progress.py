"""Whether the progress of a method is shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mig_opt.control import Callbacks


@contextlib.contextmanager
def shown_progress(*, quiet: bool) -> Iterator[list[Callbacks]]:
    """Provide the callbacks that show how a method gets on, where that is wanted and can be shown."""
    with contextlib.ExitStack() as stack:
        callbacks: list[Callbacks] = []
        if not quiet:
            from mig_opt.cli.live import LiveLine

            if LiveLine.possible():
                callbacks.append(stack.enter_context(LiveLine()))
        yield callbacks


@contextlib.contextmanager
def shown_time(method: str, *, quiet: bool) -> Iterator[None]:
    """Show how long a method takes that reports nothing else, where that is wanted and can be shown."""
    if not quiet:
        from mig_opt.cli.live import LiveLine

        if LiveLine.possible():
            with LiveLine() as line:
                line.begin(method)
                yield
            return
    yield
