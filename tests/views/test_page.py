"""Pages to explore: what is in the file. In a browser they are tested by ``test_browser.py``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import tiny
from charts import top_down
from hypothesis import given
from hypothesis import strategies as st
from online_worlds import NO_COSTS, job, trace

from mig_opt import Deployment, Segment
from mig_opt.batch.schedule import Run, Schedule
from mig_opt.errors import InputError
from mig_opt.simulation import simulate
from mig_opt.views import check_plot_path, save_deployment_plot, save_execution_plot, save_plot, save_simulation_plot
from mig_opt.views.page import Mark, uncovered

needs_bokeh = pytest.mark.usefixtures("bokeh")


@pytest.fixture
def bokeh() -> None:
    pytest.importorskip("bokeh", reason="draws the pages; the extra html has it")


class Parts(HTMLParser):
    """The tags of a page with their attributes, and the description of its drawings."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.item: Any = None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][1].get("id") == "item" and self.item is None:
            self.item = json.loads(data)

    def boxes(self) -> dict[str, dict[str, Any]]:
        """The boxes of all drawings by their heads; of several with one head the last."""
        found: dict[str, dict[str, Any]] = {}
        for columns in self.tables(self.item):
            if "head" in columns:
                rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
                found |= {row["head"]: row for row in rows}
        return found

    def tables(self, value: Any) -> list[dict[str, list[Any]]]:
        if isinstance(value, dict) and value.get("name") == "ColumnDataSource":
            return [dict(value["attributes"]["data"]["entries"])]
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [table for part in inner for table in self.tables(part)]


@needs_bokeh
def test_equal_arguments_give_equal_files_that_need_nothing_else(tmp_path: Path) -> None:
    for name in ("one.html", "two.HTML"):
        save_plot(tiny.BATCH, tiny.BEST, tmp_path / name, lower_bound=6.34)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.HTML").read_bytes()
    tags = Parts(tmp_path / "one.html").tags
    assert [tag for tag, attributes in tags if {"src", "href"} & attributes.keys()] == []
    assert "link" not in {tag for tag, _ in tags}


@needs_bokeh
def test_each_run_is_a_box_that_says_its_facts(tmp_path: Path) -> None:
    batch, schedule = top_down("A100", [f"task {number}" for number in range(40)], gpus=3)
    save_plot(batch, schedule, tmp_path / "plan.html")
    boxes = Parts(tmp_path / "plan.html").boxes()
    for run in schedule.runs:
        box, memory = boxes[run.task], batch.gpu.profile(run.profile).memory_slices
        assert (box["left"], box["right"]) == (run.begin, run.end)
        assert box["bottom"] - box["top"] == pytest.approx(memory)
        slices = f"slices {run.start}-{run.start + memory - 1}" if memory > 1 else f"slice {run.start}"
        assert box["facts"].split("\n")[:2] == [f"on {run.profile}", f"GPU {run.gpu}, {slices}"]


@needs_bokeh
def test_boxes_of_runs_are_apart_as_their_instances_are(tmp_path: Path) -> None:
    batch, schedule = top_down("A30", ["a", "b", "c", "d"], gpus=2)
    save_plot(batch, schedule, tmp_path / "plan.html")
    boxes = [box for head, box in Parts(tmp_path / "plan.html").boxes().items() if head in {"a", "b", "c", "d"}]
    for number, one in enumerate(boxes):
        for two in boxes[number + 1 :]:
            across = one["left"] < two["right"] and two["left"] < one["right"]
            assert not (across and one["top"] < two["bottom"] and two["top"] < one["bottom"])


@needs_bokeh
def test_titles_and_names_are_no_markup(tmp_path: Path) -> None:
    batch, schedule = top_down("A30", ["</script><img src=x>"])
    save_plot(batch, schedule, tmp_path / "plan.html", title="<b>&</b>")
    page = Parts(tmp_path / "plan.html")
    assert not {"img", "b"} & {tag for tag, _ in page.tags}
    assert "</script><img src=x>" in page.boxes()


@needs_bokeh
def test_an_execution_has_two_rows(tmp_path: Path) -> None:
    save_execution_plot(tiny.BATCH, tiny.BEST, tiny.BEST.replace(runs=()), tmp_path / "run.html")
    facts = Parts(tmp_path / "run.html").boxes()["big"]["facts"]
    assert facts.split("\n")[1] == "plan, slices 0-3"


@needs_bokeh
def test_gpus_with_the_same_segments_share_a_row(tmp_path: Path) -> None:
    segments = [Segment("chat", gpu, "7g.80gb", 0, 8, 2, 410.0, 0.04) for gpu in range(20)]
    save_deployment_plot(Deployment(("A100-80GB",) * 20, tuple(segments)), tmp_path / "fleet.html")
    box = Parts(tmp_path / "fleet.html").boxes()["chat"]
    assert (box["left"], box["right"]) == (0, 8)
    assert box["facts"].startswith("GPUs 0-19 (A100-80GB)\n7g.80gb, slices 0-7\n2 processes, batches of 8\n")


@needs_bokeh
def test_large_fleets_show_how_much_of_them_is_busy(tmp_path: Path) -> None:
    world = trace(*(job(f"j{number}", 0.0, "7g.40gb", 5.0) for number in range(65)), gpus=65, costs=NO_COSTS)
    save_simulation_plot(simulate(world, "first-fit"), tmp_path / "large.html")
    boxes = Parts(tmp_path / "large.html").boxes()
    assert boxes["busy with 7g.40gb"]["facts"].startswith("100 % of the compute slices")
    assert "j0" not in boxes


@needs_bokeh
def test_what_cannot_be_drawn_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape("runs[0].profile")):
        save_plot(tiny.BATCH, Schedule((Run("big", 0, "9g", 0, 0.0, 1.0),)), tmp_path / "plan.html")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_bokeh_is_named_with_its_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    message = r'pages to explore \(\.html\) need bokeh, which is not installed: pip install "mig-opt\[html\]"'
    for attempt in (
        lambda: check_plot_path(tmp_path / "plan.html"),
        lambda: save_plot(tiny.BATCH, tiny.BEST, tmp_path / "plan.html"),
    ):
        with pytest.raises(InputError, match=message):
            attempt()
    check_plot_path(tmp_path / "plan.svg")


@needs_bokeh
def test_pages_need_no_matplotlib(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "from mig_opt import load, solve, save_plot\n"
        "batch = load('rodinia-a30')\n"
        "save_plot(batch, solve(batch, 'far').schedule, sys.argv[1])\n"
    )
    target = tmp_path / "plan.html"
    assert subprocess.run([sys.executable, "-c", code, str(target)], check=False).returncode == 0
    assert target.exists()


spans = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), st.integers(0, 2), st.integers(1, 2)), max_size=6)


@given(under=spans, over=spans)
def test_uncovered_parts_are_where_no_other_box_is(
    under: list[tuple[int, int, int, int]], over: list[tuple[int, int, int, int]]
) -> None:
    def marks(boxes: list[tuple[int, int, int, int]]) -> list[Mark]:
        return [Mark(left, left + wide, top, top + high, "#000000", "") for left, wide, top, high in boxes]

    def cells(boxes: list[Mark]) -> list[float]:
        return sorted(cell + 0.5 for box in boxes for cell in range(int(box.left), int(box.right)))

    covers = marks(over)
    for below in marks(under):
        near = [other for other in covers if other.top < below.bottom and below.top < other.bottom]
        free = [
            cell + 0.5
            for cell in range(int(below.left), int(below.right))
            if not any(other.left < cell + 0.5 < other.right for other in near)
        ]
        assert cells(uncovered([below], covers)) == free
