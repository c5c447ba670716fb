"""Objects in notebooks: cards, frames and pictures, and what happens without pandas."""

import dataclasses
import subprocess
import sys

import pytest
import tiny
from documents import refused
from online_worlds import NO_COSTS, job, trace

from mig_opt import (
    Batch,
    Deployment,
    DeploymentResult,
    InputError,
    LiveInstance,
    Pool,
    ScheduleResult,
    Segment,
    Status,
    Task,
    get_gpu,
    plot,
    solve,
)
from mig_opt.files.batch.batches import BATCH
from mig_opt.simulation import simulate

BEST = ScheduleResult(Status.OPTIMAL, "cp", tiny.BEST, 6.34, 0.5, reason="it meets the bound", batch=tiny.BATCH)
DEPLOYMENT = Deployment(
    ("A100-80GB",),
    (
        Segment("search", 0, "1g.10gb", 4, batch=4, processes=1, throughput=60.0, latency=0.01),
        Segment("chat", 0, "3g.40gb", 0, batch=8, processes=2, throughput=410.0, latency=0.04),
    ),
)
DEPLOYED = DeploymentResult(Status.OPTIMAL, "exact", DEPLOYMENT, 1, 0.5)
SIMULATED = simulate(
    trace(job("one", 0.0, "4g.20gb", 4.0), job("two", 1.0, "4g.20gb", 2.0), costs=NO_COSTS), "first-fit"
)


def test_names_are_no_markup():
    segment = dataclasses.replace(DEPLOYMENT.segments[0], service="<script>x</script>&")
    card = Deployment(DEPLOYMENT.gpus, (segment,))._repr_html_()
    assert "<script" not in card
    assert "&lt;script&gt;x&lt;/script&gt;&amp;" in card


def test_a_result_knows_its_batch():
    result = solve(tiny.BATCH, "far")
    assert result.batch is tiny.BATCH
    assert result == dataclasses.replace(result, batch=None)


def test_the_frame_of_a_batch_is_a_file_of_a_batch(tmp_path):
    pytest.importorskip("pandas", reason="makes the frames; the extra frames has it")
    file = tmp_path / "tasks.csv"
    tiny.BATCH.to_frame().to_csv(file, index=False)
    assert file.read_text(encoding="utf-8").splitlines()[::3] == ["task,t1_s,t2_s,t4_s,memory_gb", "right,4.0,,,5.0"]
    assert BATCH.read(file, gpu="A30").tasks == tiny.BATCH.tasks


def test_columns_without_any_figure_are_of_numbers():
    pytest.importorskip("pandas", reason="makes the frames; the extra frames has it")
    frame = Batch((Task("a", {1: 4.0}),), tiny.BATCH.gpu).to_frame()
    assert {str(frame[name].dtype) for name in ("t1_s", "t2_s", "memory_gb")} == {"float64"}


def test_frames_of_nothing_have_their_columns():
    pytest.importorskip("pandas", reason="makes the frames; the extra frames has it")
    nothing = ScheduleResult(Status.NO_SOLUTION, "cp", None, 0, 0.5).to_frame()
    assert list(nothing.columns) == list(BEST.to_frame().columns)
    assert len(nothing) == 0
    empty = DeploymentResult(Status.NO_SOLUTION, "exact", None, 0, 0.5).to_frame()
    assert list(empty.columns) == list(DEPLOYED.to_frame().columns)
    assert len(empty) == 0


def test_a_missing_pandas_is_named_with_its_mend(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for thing in (tiny.BATCH, tiny.BEST, BEST, DEPLOYED, DEPLOYMENT, SIMULATED):
        refused(thing.to_frame, match=r'pip install "mig-opt\[frames\]"')


def test_nothing_of_it_is_imported_before():
    code = (
        "import sys, mig_opt.views\n"
        "from mig_opt import Batch, Deployment, Schedule\n"
        "sys.exit(any(name.startswith(('pandas', 'matplotlib', 'mig_opt.views.cards')) for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pictures():
    assert plot(tiny.BATCH)._repr_png_().startswith(b"\x89PNG")
    assert tiny.BATCH.plot(title="tasks").texts[-1].get_text() == "tasks"
    assert tiny.BEST.plot(tiny.BATCH).findobj(lambda artist: artist.get_gid() == "run:left")
    assert BEST.plot().findobj(lambda artist: artist.get_gid() == "lower-bound")
    assert BEST.plot(title="best").texts[-1].get_text() == "best"
    assert DEPLOYED.plot().findobj(lambda artist: artist.get_gid() == "segment:1")
    assert DEPLOYMENT.plot(title="fleet").texts[-1].get_text() == "fleet"
    assert SIMULATED.plot().axes[0].get_label() == "fleet 0"


def test_what_is_not_there_cannot_be_drawn():
    with pytest.raises(InputError, match="there is none to draw: the result is no_solution"):
        DeploymentResult(Status.NO_SOLUTION, "exact", None, 0, 0.5).plot()
    with pytest.raises(InputError, match="there is none to draw: the result is infeasible"):
        ScheduleResult(Status.INFEASIBLE, "cp", None, float("inf"), 0.0).plot()
    with pytest.raises(InputError, match=r"batch: is not known, .* plot\(batch, result\.schedule\)"):
        dataclasses.replace(BEST, batch=None).plot()


def test_what_is_no_batch_or_schedule_cannot_be_drawn():
    refused(tiny.BEST.plot, "rodinia-a30", match="there is no picture of str with Schedule")
    refused(plot, tiny.BATCH, BEST, match="schedule: must be a Schedule")


def test_a_batch_on_several_kinds_has_a_line_for_each_task_and_kind_that_can_run_it(tmp_path):
    pytest.importorskip("pandas", reason="makes the frames; the extra frames has it")
    times = {"A30": {1: 4.0}, "A100": {1: 3.0}}
    tasks = [Task(f"t{number}", times if number else {"A30": {2: 1.0}}) for number in range(8)]
    batch = Batch(tuple(tasks), pools=(Pool(get_gpu("A30"), 1), Pool(get_gpu("A100"), 1)))
    batch.to_frame().to_csv(tmp_path / "tasks.csv", index=False)
    assert BATCH.read(tmp_path / "tasks.csv") == batch
    assert "and 5 more lines" in batch._repr_html_()
    whole = Batch((Task("a", {4: 2.0}),), pools=(Pool(get_gpu("A30"), 2, mig=False),))
    assert "live instance" not in whole._repr_html_()
    busy = whole.replace(initial=(LiveInstance(1, "4g.24gb", 0, 3.0),))
    assert "1 live instance<" in busy._repr_html_()
