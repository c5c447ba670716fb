"""For the tests of studies: small studies and study files, and methods that go wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from online_worlds import job, trace

from mig_opt import Batch, InputError, Method, Schedule, Study, run_study
from mig_opt.files.fleet.traces import TRACE
from mig_opt.method.control import Control
from mig_opt.studies import (
    GeneratedBatches,
    MethodSettings,
    PolicySettings,
    StudyProgress,
    StudyRows,
    TraceFromFile,
    study_rows,
)

FAR = MethodSettings("far")
SMALL = Study((GeneratedBatches(n=(3, 4), seeds=(0, 1)),), (FAR, MethodSettings("cp", time_limit=(5.0,))))
FIRST_FIT = PolicySettings("first-fit")


def document(**changes: Any) -> dict[str, Any]:
    return {"schema": "mig-opt/study/1", "batches": [{"n": 3}], "methods": [{"method": "far"}], **changes}


def trace_document(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "mig-opt/study/1",
        "traces": [{"family": "normal-25"}],
        "policies": [{"policy": "first-fit"}],
        **changes,
    }


def two_jobs(folder: Path) -> Study:
    """One after the other on a whole GPU; a creation takes 1 s."""
    TRACE.write(trace(job("a", 0.0, "7g.40gb", 10.0), job("b", 1.0, "7g.40gb", 5.0)), folder / "two.json")
    return Study(traces=(TraceFromFile("two.json"),), policies=(FIRST_FIT,))


def problems(call: Callable[[], object]) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        call()
    return {problem.path: problem.message for problem in caught.value.problems}


def method_that(monkeypatch: pytest.MonkeyPatch, runner: Callable[[Batch, Control[Schedule]], None]) -> None:
    monkeypatch.setattr(Method, "load", lambda method: runner)
    monkeypatch.setattr("mig_opt.studies.batch.warm_up", lambda method: None)


def resumed(study: Study, path: Path) -> StudyRows:
    """Stop a study of eight runs after three of them, begin it again, and return what it ends with."""
    heard, again = Mock(spec=StudyProgress), Mock(spec=StudyProgress)
    heard.on_row.side_effect = [None, None, KeyboardInterrupt]
    with pytest.raises(KeyboardInterrupt):
        run_study(study, path, progress=heard)
    before = path.read_text()
    path.write_text(before + '{"run": {"ba')  # killed while it wrote
    assert len(study_rows(study, path).missing) == 5
    found = run_study(study, path, progress=again)
    missing, known = again.on_start.call_args.args
    assert (known, len(missing), again.on_row.call_count) == (3, 5, 5)
    assert (len(found.rows), found.missing, found.failures, found.contradictions) == (8, (), [], [])
    assert path.read_text().startswith(before)
    assert len(path.read_text().splitlines()) == 8
    return found


def failing(batch: Batch, control: Control[Schedule]) -> None:
    raise ZeroDivisionError("broken")
