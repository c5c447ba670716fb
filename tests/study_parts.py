"""What the tests of studies share: small studies, and methods that go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mig_opt import Batch, InputError
from mig_opt.control import Control
from mig_opt.registry import Method
from mig_opt.studies import GeneratedBatches, MethodSettings, Row, Study, StudyProgress, StudyRun

FAR = MethodSettings("far")
SMALL = Study((GeneratedBatches(n=(3, 4), seeds=(0, 1)),), (FAR, MethodSettings("cp", time_limit=(5.0,))))


def document(**changes: Any) -> dict[str, Any]:
    return {"schema": "mig-opt/study/1", "batches": [{"n": 3}], "methods": [{"method": "far"}], **changes}


def problems(call: Callable[[], object]) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        call()
    return {problem.path: problem.message for problem in caught.value.problems}


def method_that(monkeypatch: pytest.MonkeyPatch, runner: Callable[[Batch, Control], None]) -> None:
    monkeypatch.setattr(Method, "load", lambda method: runner)
    monkeypatch.setattr("mig_opt.studies.runs.warm_up", lambda method: None)
    monkeypatch.setattr("mig_opt.studies.comparing.warm_up", lambda method: None)


class Heard(StudyProgress):
    def __init__(self) -> None:
        self.missing: list[StudyRun] = []
        self.known = -1
        self.rows: list[Row[StudyRun]] = []

    def on_start(self, missing: Sequence[StudyRun], known: int) -> None:
        self.missing, self.known = list(missing), known

    def on_row(self, row: Row[StudyRun]) -> None:
        self.rows.append(row)


def failing(batch: Batch, control: Control) -> None:
    raise ZeroDivisionError("broken")
