"""Files of charts, and what matplotlib has to do with it."""

import math
import os
import subprocess
import sys

import pytest
from charts import A30_BATCH, A30_SCHEDULE
from documents import refused

from mig_opt.batch.schedule import Run, Schedule
from mig_opt.views import check_plot_path, plot


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")]
)
def test_the_suffix_gives_the_format_and_equal_charts_are_equal_files(tmp_path, suffix, magic):
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    plot(A30_BATCH, A30_SCHEDULE, to=first, lower_bound=20.0)
    plot(A30_BATCH, A30_SCHEDULE, to=str(second), lower_bound=20.0)
    data = first.read_bytes()
    assert data.startswith(magic)
    assert data == second.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_dpi_gives_the_size_of_a_png(tmp_path):
    widths = []
    for dpi in (50, 100):
        plot(A30_BATCH, A30_SCHEDULE, to=tmp_path / "chart.png", dpi=dpi)
        widths.append(int.from_bytes((tmp_path / "chart.png").read_bytes()[16:20], "big"))
    assert widths[1] == pytest.approx(2 * widths[0], abs=2)


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "chart.png"
    target.write_bytes(b"old")

    def fail(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(match=r"chart\.png: cannot be written: No space left on device"):
        plot(A30_BATCH, A30_SCHEDULE, to=target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_schedule_of_another_batch_is_refused_with_every_problem():
    runs = Run("a", 1, "2g.12gb", 0, 0.0, 1.0), Run("b", 0, "9g.99gb", 0, 0.0, math.inf)
    beyond = Run("a", 0, "2g.12gb", 3, 0.0, 1.0)
    paths = refused(plot, A30_BATCH, Schedule((*runs, beyond)), lower_bound=math.nan)
    assert paths == ["runs[0].gpu", "runs[1].profile", "runs[1].end", "runs[2].start", "lower_bound"]
    assert refused(plot, A30_BATCH, A30_SCHEDULE, dpi=0) == ["dpi"]
    assert refused(plot, A30_BATCH, A30_SCHEDULE, to=3) == ["to"]


def test_drawing_needs_neither_pyplot_nor_a_display(tmp_path):
    code = (
        "import sys\n"
        "from mig_opt.batch.batch import Batch, Task\n"
        "from mig_opt.gpu.catalogue import get_gpu\n"
        "from mig_opt.views import plot\n"
        "from mig_opt.batch.schedule import Run, Schedule\n"
        "batch = Batch((Task('a', {4: 2.0}),), get_gpu('A30'))\n"
        "plot(batch, Schedule((Run('a', 0, '4g.24gb', 0, 0.0, 2.0),)), to=sys.argv[1])\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)\n"
    )
    target = tmp_path / "chart.png"
    assert subprocess.run([sys.executable, "-c", code, str(target)], check=False).returncode == 0
    assert target.exists()


def test_settings_of_the_caller_are_left_alone(tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plot(A30_BATCH, A30_SCHEDULE, to=tmp_path / "chart.svg")
    assert dict(mpl.rcParams) == before


def test_a_missing_matplotlib_is_named_with_its_mend(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for attempt in (
        lambda: check_plot_path(tmp_path / "chart.png"),
        lambda: plot(A30_BATCH, A30_SCHEDULE),
        lambda: plot(A30_BATCH, A30_SCHEDULE, to=tmp_path / "chart.png"),
    ):
        refused(attempt, match=r'pip install "mig-opt\[plot\]"')
