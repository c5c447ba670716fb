"""One fleet in each form of two versions, and what is said of texts that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mig_opt import InputError
from mig_opt.operations.observe.sightings import Source
from mig_opt.operations.observe.state_import import Format, StateImport, import_state

FORMS = Path(__file__).parents[1] / "operations" / "observe" / "forms"
FILES = sorted(FORMS.iterdir())
TEXTS = {file.name: file.read_text() for file in FILES}
LGI = "| GPU instances:                                         |"


def state_from_text(text: str, form: Format | None = None, **options: Any) -> StateImport:
    """The state that a text tells of."""
    return import_state(Source(text), format=form, **options)


def complaints(text: str, form: Format | None = None, **options: Any) -> list[str]:
    """The problems of a text, which is refused."""
    with pytest.raises(InputError) as error:
        state_from_text(text, form, **options)
    return [str(problem) for problem in error.value.problems]
