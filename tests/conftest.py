"""Profiles of hypothesis and shared fixtures.

The tests are the same on every run by default. ``HYPOTHESIS_PROFILE=thorough pytest`` tries many more examples, new
ones each time.
"""

from __future__ import annotations

import os

import pytest
import tiny
from hypothesis import HealthCheck, settings

from mig_opt.batch import Batch
from mig_opt.schedule import Schedule

# Time never decides a test: no deadline, and a slow machine is no health problem.
settings.register_profile(
    "default", max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", max_examples=1500, deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def tiny_batch() -> Batch:
    """The instance that can be checked by hand."""
    return tiny.BATCH


@pytest.fixture
def tiny_best() -> Schedule:
    """Its optimal schedule, 6.34 s."""
    return tiny.BEST
