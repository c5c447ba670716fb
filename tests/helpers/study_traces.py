"""For the tests of studies of schedulers: the least study file, and a trace of two jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from online_worlds import job, trace

from mig_opt import write_trace
from mig_opt.studies import PolicySettings, Study, TraceFromFile

FIRST_FIT = PolicySettings("first-fit")


def document(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "mig-opt/study/1",
        "traces": [{"family": "normal-25"}],
        "policies": [{"policy": "first-fit"}],
        **changes,
    }


def two_jobs(folder: Path) -> Study:
    """One after the other on a whole GPU; a creation takes 1 s."""
    write_trace(trace(job("a", 0.0, "7g.40gb", 10.0), job("b", 1.0, "7g.40gb", 5.0)), folder / "two.json")
    return Study(traces=(TraceFromFile("two.json"),), policies=(FIRST_FIT,))
