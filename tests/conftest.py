"""Profiles of hypothesis and shared fixtures.

The tests are the same on every run by default. ``HYPOTHESIS_PROFILE=thorough pytest`` tries many more examples, new
ones each time.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from controlled import controlled
from hypothesis import HealthCheck, settings

from mig_opt.files.batch.batches import BATCH as BATCH_FILE
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.gpu.model import KNOWN
from mig_opt.heuristics.batch.far import far

if TYPE_CHECKING:
    from collections.abc import Iterator

    from command_line import Command

# What these assert is shown as well as in tests; they are imported later.
pytest.register_assert_rewrite("charts", "command_line", "documents")

# Time never decides a test: no deadline, and a slow machine is no health problem.
settings.register_profile(
    "default", max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", max_examples=500, deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Tests neither read nor write the user's cache; those of the cache name a folder of their own.
os.environ["MIG_OPT_CACHE"] = "off"

# Dask asks any NVML that the process has loaded for more than the tests' GPU answers.
os.environ["DASK_DISTRIBUTED__DIAGNOSTICS__NVML"] = "False"

# A shell ignores Ctrl-C for what it runs in the background; the processes that tests start and interrupt would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run take a part of the tests, so that several runs share the long ones."""
    parser.addoption("--part", default="1/1", metavar="K/N", help="the K-th of N parts of the tests, e.g. 2/3")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the part; a test is in the same part in every run."""
    part, parts = map(int, config.getoption("--part").split("/"))
    if parts > 1:
        left_out = [item for item in items if zlib.crc32(item.nodeid.encode()) % parts != part % parts]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % parts == part % parts]


@pytest.fixture(autouse=True)
def only_known_in_this_test() -> Iterator[None]:
    """GPUs that a test makes known are those of that test."""
    before = dict(KNOWN)
    yield
    KNOWN.clear()
    KNOWN.update(before)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line, on a screen of 120 columns."""
    from command_line import called

    monkeypatch.setenv("COLUMNS", "120")
    return functools.partial(called, capsys)


@pytest.fixture
def narrow(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in the folder of the test, on a screen of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture
def batch_file(tmp_path: Path) -> Path:
    from command_line import BATCH

    path = tmp_path / "small.json"
    path.write_text(json.dumps(BATCH))
    return path


@pytest.fixture
def plan_file(tmp_path: Path, batch_file: Path) -> Path:
    """A valid schedule of the small batch, with operations."""
    path = tmp_path / "plan.json"
    SCHEDULE.write(controlled(far, BATCH_FILE.read(batch_file)).plan, path)
    return path


@pytest.fixture
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody own the partitions of this machine, no slurmd run, and root be a user like any other."""
    monkeypatch.setattr("mig_opt.operations.execute.machines.owner_of_partitions", lambda: "")
    monkeypatch.setattr("mig_opt.operations.driver.surroundings._processes", lambda _: iter(()))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
