"""Tables as pandas frames."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any

from mig_opt.errors import InputError, Problem


def frame(columns: Iterable[str], rows: Iterable[Mapping[str, object]]) -> Any:
    """Return rows as a frame with these columns; a value that a row lacks is missing.

    Raises
    ------
    InputError
        If pandas is not installed.
    """
    if importlib.util.find_spec("pandas") is None:
        message = 'tables as frames need pandas, which is not installed: pip install "mig-opt[frames]"'
        raise InputError([Problem("", message)])
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns))
