"""The screens of fleets: they fit, whatever the services are called and however many GPUs there are."""

import contextlib
import io
import os
from collections.abc import Sequence
from unittest import mock

import pytest
from demands import A100, flat_table
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from serving_files import names

from mig_opt import Demand, Deployment, GpuPool, Segment, Service, align, plan_change
from mig_opt.cli.screens import show_report
from mig_opt.cli.serving.reports import change_report, deployment_table, services_table
from mig_opt.method.report import Part, Report

STRANGE = "\x1b[31m日本語の長い名前\n strange and [bold]very[/] long, Supercalifragilisticexpialidocious-42"


def lines(parts: Sequence[Part], width: int = 80) -> list[str]:
    shown = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS=str(width)), contextlib.redirect_stdout(shown):
        show_report(Report(parts=parts))
    return shown.getvalue().splitlines()


def demand(*services: str) -> Demand:
    table = flat_table("m", A100, {1: 10.0, 2: 22.0, 3: 33.0, 4: 44.0, 7: 1234567.8})
    return Demand(tuple(Service(name, 1.0, 5.0, "m") for name in services), (table,), (GpuPool(A100),))


def segment(service: str, gpu: int, profile: str = "1g.10gb", start: int = 0, batch: int = 8) -> Segment:
    return Segment(service, gpu, profile, start, batch, 2, 1234567.8, 0.012)


def fits(shown: list[str], width: int) -> None:
    assert max(map(cell_len, shown)) <= width
    assert all(line.isprintable() for line in shown)


@pytest.mark.deep
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("gpus", [1, 13, 13_000])
def test_long_and_strange_names_are_cut(width, gpus):
    services = [f"{index} {STRANGE}" for index in range(min(gpus, 60))]
    held = [
        segment(services[gpu % len(services)], gpu, "2g.20gb", 2 * place) for gpu in range(gpus) for place in (0, 2)
    ]
    deployment = Deployment(("A100-80GB",) * gpus, tuple(held))
    fleet = lines([deployment_table(deployment)], width)
    table = lines([services_table(demand(*services), deployment)], width)
    plan = plan_change(deployment.replace(segments=held[:1]), deployment).plan if gpus < 20 else None
    change = [] if plan is None else lines([change_report(plan)], width)
    for shown in (fleet, table, change or fleet):
        fits(shown, width)
    assert table[0].split()[-4:] == ["latency", "s", "limit", "s"]
    assert fleet[0].split()[-1] == ("segments" if gpus > 40 else "s")
    assert "0 \\x1b[31m" in fleet[2]
    assert len(fleet) < 50


@given(st.lists(names, min_size=1, max_size=5, unique=True), st.integers(40, 130))
@settings(max_examples=50)
def test_any_names_at_any_width(services, width):
    deployment = Deployment(("A100-80GB",) * 5, tuple(segment(name, gpu) for gpu, name in enumerate(services)))
    shown = lines([deployment_table(deployment), services_table(demand(*services), deployment)], width)
    assert all(line.isprintable() for line in shown)
    if width >= 80:
        assert max(map(cell_len, shown)) <= width


def test_many_gpus_that_are_alike_stand_together():
    held = [segment("a", gpu, start=start) for gpu in range(30) for start in (0, 1)]
    held = [s for s in held if s.gpu != 7] + [segment("b", 7)]
    shown = lines([deployment_table(Deployment(("A100-80GB",) * 30, tuple(held)))])
    assert [line.split()[:3] for line in shown[2:5]] == [
        ["0-6,", "8-29", "1g.10gb@0"],
        ["1g.10gb@1", "a", "8"],
        ["7", "1g.10gb@0", "b"],
    ]
    assert shown[-1] == "GPUs with the same segments stand together."
    odd = Deployment(("A100-80GB",) * 99, tuple(segment("ab"[gpu % 2], gpu) for gpu in range(99)))
    assert [line.split()[:3] for line in lines([deployment_table(odd)])[2:4]] == [["0", "+", "49"], ["1", "+", "48"]]


def test_very_many_groups_are_cut_off_with_a_remark():
    held = tuple(segment(f"s{gpu}", gpu, start=start) for gpu in range(50) for start in (0, 1, 3))
    shown = lines([deployment_table(Deployment(("A100-80GB",) * 50, held))], 120)
    assert shown[2].split() == ["0", "3/7", "s0", "3", "x", "1g.10gb"]
    assert shown[-1] == "The first 40 of 50 groups are shown. -o FILE or --json gives every segment."
    names = [f"s{index}" for index in range(50)]
    table = lines([services_table(demand(*names), Deployment(("A100-80GB",) * 50, held))], 120)
    assert table[-1] == "The first 40 of 50 services are shown."


def test_what_a_switch_does():
    old = Deployment(("A100-80GB",), (segment("a", 0), segment("b", 0, start=1)))
    new = old.replace(segments=(segment("c", 0), segment("b", 0, start=1, batch=16)))
    plan = plan_change(old, align(old, new)).plan
    shown = lines([change_report(plan)], 120)
    assert "switched     2 instances to another service, batch size or processes" in shown
    assert any(line.endswith("switch  a -> c") for line in shown)
    assert any(line.endswith("switch  interrupts b 8 x 2 -> 16 x 2") for line in shown)


def test_steps_beyond_the_first_are_counted():
    held = tuple(segment("a", gpu, start=start) for gpu in range(10) for start in range(7))
    plan = plan_change(Deployment(("A100-80GB",) * 10, ()), Deployment(("A100-80GB",) * 10, held)).plan
    shown = lines([change_report(plan)])
    assert shown[-1] == "The first 40 of 70 steps are shown; --export nvidia-smi has all of them."
    assert sum("create" in line.split() for line in shown) == 40
