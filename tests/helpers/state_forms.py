"""One fleet in each form of two versions, and what is said of texts that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mig_opt import InputError
from mig_opt.operations.observe.state_import import Format, state_from_text

FORMS = Path(__file__).parents[1] / "operations" / "observe" / "forms"
FILES = sorted(FORMS.iterdir())
TEXTS = {file.name: file.read_text() for file in FILES}
LGI = "| GPU instances:                                         |"


def complaints(text: str, form: Format | None = None, **options: Any) -> list[str]:
    """The problems of a text, which is refused."""
    with pytest.raises(InputError) as error:
        state_from_text(text, form, **options)
    return [str(problem) for problem in error.value.problems]
