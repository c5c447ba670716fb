"""Pictures of executions."""

from __future__ import annotations

import dataclasses

import tiny

from mig_opt.gpu.devices import Device
from mig_opt.views import plot


def test_plan_and_execution_are_one_above_the_other() -> None:
    runs = [dataclasses.replace(run, end=run.end + 0.5) for run in tiny.BEST.runs]
    figure = plot(tiny.BATCH, tiny.BEST, tiny.BEST.replace(runs=runs))
    assert [axes.get_ylabel() for axes in figure.axes] == ["plan", "measured"]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    labels = {text.get_gid(): text.get_text() for text in figure.axes[0].texts}
    assert labels["planned-label"] == "planned 6.34 s"
    assert labels["measured-label"] == "measured 6.84 s"


def test_two_gpus_and_equal_makespans() -> None:
    batch = tiny.BATCH.replace(gpus=2)
    figure = plot(batch, tiny.BEST, tiny.BEST)
    assert [axes.get_ylabel() for axes in figure.axes] == ["plan 0", "plan 1", "measured 0", "measured 1"]
    labels = {text.get_gid(): text.get_text() for text in figure.axes[0].texts}
    assert labels["measured-label"] == "measured = planned = 6.34 s"
    batch = batch.replace(devices=(Device(1), Device(3, "n1")))
    figures = plot(batch, tiny.BEST), plot(batch, tiny.BEST, tiny.BEST)
    assert [[axes.get_ylabel() for axes in figure.axes] for figure in figures] == [
        ["GPU 1", "GPU 3 of n1"],
        ["plan 1", "plan 3 of n1", "measured 1", "measured 3 of n1"],
    ]
