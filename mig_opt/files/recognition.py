"""Recognition of the kind of file that a document is."""

from __future__ import annotations

import re

from mig_opt.errors import InputError
from mig_opt.files import KINDS
from mig_opt.files.documents import decoded, parsed
from mig_opt.files.tables import columns_of


def document_kind(document: str | bytes, *, table: bool = False) -> str | None:
    """Return the kind of file that a document is meant to be, mistakes or not; None if that cannot be told.

    A CSV table is one of services if it has a column that only they have, else one of tasks.

    Examples
    --------
    >>> document_kind('{"schema": "mig-opt/services/1"}'), document_kind("model,slo_s,rate_rps", table=True)
    ('services', 'services')
    """
    try:
        text = decoded(document, "") if isinstance(document, bytes) else document
        if table:
            from mig_opt.files.serving.demands import SERVICE_COLUMNS  # with all that reads services

            keys = {SERVICE_COLUMNS.get(column) for column in columns_of(text)}
            return "services" if keys & {"slo", "rate"} else "batch"
        raw, _ = parsed(text, "")
    except InputError:
        return None
    stated = raw.get("schema")
    if stated is None:
        return "services" if "services" in raw else "batch" if "tasks" in raw else None
    named = re.fullmatch(r"mig-opt/([a-z-]+)/[0-9]+", str(stated))
    return next((kind for kind in KINDS if named and kind == named[1]), None)
