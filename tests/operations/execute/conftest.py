"""Executions of these tests have the machine to themselves."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _alone(nobody_else: None) -> None:
    pass
