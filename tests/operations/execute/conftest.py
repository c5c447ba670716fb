"""In all executions of these tests, nobody owns the partitions, and root is a user like any other."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _like_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.operations.execute.checks.owner_of_partitions", lambda: "")
    monkeypatch.setattr("mig_opt.operations.driver.surroundings._processes", lambda root: iter(()))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
