"""The log of the package on standard error, for the option ``--log-level``."""

from __future__ import annotations

import sys

_LEVELS = ("debug", "info", "warning", "error")


def begin_log(level: str | None) -> None:
    """Let the package tell on standard error what goes on, from a level on; nothing without one."""
    if level is None:
        return
    import logging

    from mig_opt.cli.checks import refuse
    from mig_opt.errors import nearest

    if level.casefold() not in _LEVELS:
        refuse("--log-level", f"there is no level {level!r}; {nearest(level, _LEVELS)}")
    logger = logging.getLogger("mig_opt")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logger.handlers = [handler]
    logger.setLevel(level.upper())


def log_is_shown() -> bool:
    """Return True if the log goes to standard error, where nothing may be written over it then."""
    logging = sys.modules.get("logging")
    return logging is not None and bool(logging.getLogger("mig_opt").handlers)
