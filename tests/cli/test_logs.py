"""The option --log-level, and what the library logs: nothing by itself."""

import logging
from collections.abc import Iterator

import pytest
from command_line import Command

import mig_opt
from mig_opt.cli.errors import log_is_shown


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    """The log as it was."""
    yield
    logger = logging.getLogger("mig_opt")
    logger.handlers = []
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    "arguments",
    [("--log-level", "debug", "solve", "rodinia-a30"), ("solve", "rodinia-a30", "--log-level", "DEBUG")],
)
def test_before_and_behind_the_command(run: Command, arguments: tuple[str, ...]) -> None:
    silent = run("solve", "rodinia-a30", "--method", "far")
    assert silent.err == ""
    outcome = run(*arguments, "--method", "far")
    assert outcome.code == 0
    lines = outcome.err.splitlines()
    assert all(" mig_opt." in line for line in lines)
    assert "INFO    mig_opt.method.control: far begins: no limit, seed 0" in lines[0]
    assert any("DEBUG   mig_opt.method.control: objective" in line for line in lines)
    assert "far ends: feasible, objective 29.2" in lines[-1]
    assert log_is_shown()


def test_the_library_sets_no_handler(caplog: pytest.LogCaptureFixture) -> None:
    assert not logging.getLogger("mig_opt").handlers
    with caplog.at_level(logging.INFO, logger="mig_opt"):
        mig_opt.solve(mig_opt.load("rodinia-a30"), "far")
        trace = mig_opt.Trace((mig_opt.Job("a", 0.0, {3: 10.0}, "3g.20gb"),), mig_opt.get_gpu("A100"))
        mig_opt.simulate(trace, "first-fit")
    assert [record.name for record in caplog.records] == ["mig_opt.method.control"] * 2 + [
        "mig_opt.simulation.fleet.simulator"
    ]
    assert not log_is_shown()
