"""mig-opt deploy with room for queues: --promise and --headroom."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from command_line import Command

SERVICES = """{"schema": "mig-opt/services/1", "gpu": "A30", "services": [{"name": "a", "slo": 0.2, "rate": 799}],
"profiles": [{"model": "a", "points": [{"size": 4, "batch": 8, "processes": 1, "throughput": 400, "latency": 0.02},
{"size": 1, "batch": 8, "processes": 1, "throughput": 100, "latency": 0.08}]}]}"""


@pytest.fixture
def deploy(narrow: Command) -> Command:
    Path("s.json").write_text(SERVICES)
    return functools.partial(narrow, "deploy", "s.json")


def test_what_no_instance_keeps_is_told(deploy: Command) -> None:
    """Exit code 1, and for every service what could be kept; with rates over time as well."""
    slow = SERVICES.replace('"throughput": 400', '"throughput": 4').replace('"throughput": 100', '"throughput": 10')
    Path("s.json").write_text(
        slow.replace('"rate": 799}', '"rate": 7}, {"name": "b", "slo": 0.25, "rate": 1, "model": "a"}')
    )
    Path("rates.csv").write_text("time,a,b\n0:00,7,1\n1:00,,\n")
    shown, document, day = (deploy("--promise", "90%", *more) for more in ((), ("--json",), ("--rates", "rates.csv")))
    assert (shown.code, document.code, day.code) == (1, 1, 1)
    for text in (" ".join(shown.out.split()), document.err, day.err):
        assert "no instance keeps 90 % of the requests of 'a' in time, at any rate" in text
        assert "'b' in time, at any rate: at best 0 % are, on 1g.6gb, where a batch of 8 takes 0.8 s" in text
        assert text.count("what can be kept: an SLO of 0.8 s") == 2


def test_why_nothing_was_found_is_shown(deploy: Command) -> None:
    """Nothing is proven by a method that has no use for two processes."""
    Path("s.json").write_text(SERVICES.replace('"processes": 1', '"processes": 2'))
    Path("rates.csv").write_text("time,a\n0:00,7\n1:00,\n")
    promise = ("--promise", "90%", "--method", "parvagpu-single")
    shown, document, day = (deploy(*promise, *more) for more in ((), ("--json",), ("--rates", "rates.csv")))
    assert (shown.code, document.code, day.code) == (1, 1, 1)
    for text in (" ".join(shown.out.split()), document.err, day.err):
        assert "at most 1 may share an instance" in text
