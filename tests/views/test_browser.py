"""Pages to explore in a real browser without a network: no error, hints, zoom, labels, what is on the screen."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny
from browser import Browser, start_browser
from charts import top_down
from command_line import MODULE
from online_worlds import NO_COSTS, Scripted, job, place, trace
from scripts import ended

from mig_opt import Deployment, Segment, plot, simulate
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.views.texts import PALETTE

pytest.importorskip("bokeh", reason="draws the pages; the extra html has it")
pytestmark = pytest.mark.deep

Opened = Callable[..., Browser]


@pytest.fixture(scope="module")
def browser():
    started = start_browser()
    yield started
    started.quit()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Draw something as a page, and open it; the browser has nothing to complain of in the end."""

    def plotted(*content: Any, **options: Any) -> Browser:
        plot(*content, to=tmp_path / "page.html", **options)
        browser.open(tmp_path / "page.html")
        return browser

    yield plotted
    assert browser.errors() == []


def test_a_task_says_where_and_when_it_runs(opened):
    browser = opened(tiny.BATCH, tiny.BEST, lower_bound=6.34)
    for run in tiny.BEST.runs:
        hint = browser.hint(0, run.task)
        assert run.profile in hint
        assert "GPU 0, slice" in hint
        assert f"{run.begin:.6g} s to {run.end:.6g} s" in hint
    names = sorted(run.task for run in tiny.BEST.runs)
    at = browser.place(0, names[0])
    # Beside the label, which is in the middle.
    assert browser.colour((at[0] - 25, at[1] - 12)) == f"#{PALETTE[0]}"


def test_the_page_that_the_command_line_writes(browser, tmp_path):
    command = [*MODULE, "solve", "rodinia-a30", "--method", "far", "--plot", "plan.html"]
    ended(*command, cwd=tmp_path)
    browser.open(tmp_path / "plan.html")
    assert "gaussian on 1g.6gb GPU 0, slice 2 0.34 s to 22.6509 s (22.3109 s)" in browser.hint(0, "gaussian")
    assert browser.errors() == []


def test_the_wheel_zooms_and_dragging_moves(opened):
    browser = opened(tiny.BATCH, tiny.BEST)
    whole = browser.view(0)
    at = browser.place(0, tiny.BEST.runs[0].task)
    for _ in range(3):
        browser.mouse("mouseWheel", at, deltaX=0, deltaY=-200)
    browser.wait(lambda: browser.view(0)[1] - browser.view(0)[0] < 0.8 * (whole[1] - whole[0]))
    zoomed = browser.settled(lambda: browser.view(0))
    moved = browser.wait(lambda: browser.dragged(0, at, -60), 60)
    assert moved[0] > zoomed[0]
    assert moved[1] - moved[0] == pytest.approx(zoomed[1] - zoomed[0])


def test_a_thousand_tasks_on_sixteen_gpus(browser, tmp_path):
    batch, schedule = top_down("A100", [f"task-{number}" for number in range(1000)], gpus=16)
    path = tmp_path / "plan.html"
    plot(batch, schedule, to=path)
    assert path.stat().st_size < 2_000_000
    browser.open(path)
    shown = browser.labels(0)
    high = [run for run in schedule.runs if batch.gpu.profile(run.profile).memory_slices >= 4]
    unnamed = max((run for run in high if run.task not in shown), key=lambda run: run.end - run.begin)
    assert f"GPU {unnamed.gpu}, slice" in browser.hint(0, unnamed.task)
    at = browser.place(0, unnamed.task)
    for _ in range(8):
        browser.mouse("mouseWheel", at, deltaX=0, deltaY=-200)
    browser.wait(lambda: unnamed.task in browser.labels(0))
    assert browser.errors() == []


def test_names_are_text_whatever_is_in_them(opened):
    name = "</script><b>x</b> @facts $x {{y}}"
    batch, schedule = top_down("A30", [name, "other"])
    browser = opened(batch, schedule, title=name)
    assert name in browser.hint(0, name)
    assert browser.run("return document.querySelector('h1').textContent") == name


def test_an_execution_has_plan_and_measurement(opened):
    browser = opened(tiny.BATCH, tiny.BEST, tiny.BEST)
    assert "plan, slice" in browser.hint(0, tiny.BEST.runs[0].task)


def test_a_segment_says_what_it_serves(opened):
    segments = (
        Segment("chat", 0, "3g.40gb", 0, batch=8, processes=2, throughput=410.0, latency=0.04),
        Segment("search", 0, "1g.10gb", 4, batch=4, processes=1, throughput=60.0, latency=0.01),
    )
    browser = opened(Deployment(("A100-80GB", "A100-80GB"), segments))
    hint = browser.hint(0, "chat")
    for words in ("GPU 0 (A100-80GB)", "3g.40gb, slices 0-3", "2 processes, batches of 8", "410 requests/s, 40 ms"):
        assert words in hint
    assert "slice 3" in browser.hint(0, "compute slice lost to the segment beside it: 3g.40gb of chat")
    assert "chat · 3g.40gb" in browser.labels(0)


def test_a_simulation_says_which_job_moved(opened):
    world = trace(job("one", 0.0, "2g.10gb", 10.0), job("two", 1.0, "4g.20gb", 6.0), gpus=2, costs=NO_COSTS)
    steps = [(3.0, lambda cluster: cluster.migrate(0, 1, place("2g.10gb@2")))]
    moved = simulate(world, Scripted({"one": (0, "2g.10gb@4"), "two": (0, "4g.20gb@0")}, steps))
    browser = opened([moved, simulate(world, "first-fit")])
    hint = browser.hint(0, "one")
    assert "job 1, arrived at 0 s, waited 0 s on 2g.10gb; migrated at the end of this run" in hint
    assert "GPU 0, slices 4-5 0 s to 3 s (3 s)" in hint
    assert "done" in browser.hint(1, "two")


def test_a_narrow_window_cuts_no_legend(opened):
    one = ServiceLatencies("service", 0.05, 100, 1, 0.01, (0.0, 0.03), 50, 1, 0, *[0.05] * 6, ((0.06, 1),))
    services = tuple(dataclasses.replace(one, name=f"service-{number}") for number in range(7))
    browser = opened(RequestSimulation(services, (), "poisson", "uniform", 10.0, 1.0, 0, 0.1))
    wide, narrow = (browser.resized(width, browser.legend) for width in (1300, 500))
    browser.driver.set_window_size(1300, 1000)
    assert wide["columns"] > narrow["columns"] > 1
    assert narrow["right"] < 500
    assert narrow["height"] == wide["height"]
