"""Pictures of executions."""

import tiny

from mig_opt.gpu.devices import Device
from mig_opt.views import plot


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
