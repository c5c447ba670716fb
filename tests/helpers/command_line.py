"""A small batch, and the command line as a function, for every test of a command."""

import json
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from mig_opt.cli import main
from mig_opt.method.control import Control
from mig_opt.method.registry import Method

TASKS = [
    {"name": "a", "times": {"1": 4.0, "2": 2.5}},
    {"name": "b", "times": {"1": 3.0, "2": 2.0, "4": 1.5}},
    {"name": "c", "times": {"1": 2.9, "2": 2.7, "4": 2.6}},
]
BATCH = {"schema": "mig-opt/batch/1", "gpu": "A30", "tasks": TASKS}
MODULE = [sys.executable, "-m", "mig_opt"]


class Outcome(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Outcome]


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ending:
            main([str(argument) for argument in arguments])
    finally:
        signal.signal(signal.SIGINT, handler)
    code = ending.value.code or 0
    assert isinstance(code, int)
    return Outcome(code, *capsys.readouterr())


def method_that(monkeypatch: pytest.MonkeyPatch, runner: Callable[[Any, Control[Any]], None]) -> None:
    """Let every method be ``runner``, whatever else methods are told."""
    monkeypatch.setattr(Method, "load", lambda method: lambda problem, control, **known: runner(problem, control))


def refuses(outcome: Outcome, *messages: str) -> None:
    assert (outcome.code, outcome.out) == (2, "")
    for message in messages:
        assert message in outcome.err
    assert "Traceback" not in outcome.err
