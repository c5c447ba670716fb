"""Every picture: what its scene says is in its image and on its page. More pictures are in the folders of problems."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import tiny
from charts import artists, top_down
from demands import A30, one_model
from hypothesis import given
from hypothesis import strategies as st
from online_worlds import NO_COSTS, job, trace

from mig_opt import Deployment, RateTable, Segment, deploy_day, simulate
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.views.batch.schedules import execution_scene, schedule_scene
from mig_opt.views.batch.tasks import batch_scene
from mig_opt.views.fleet.simulations import simulation_scene
from mig_opt.views.pictures import draw, save
from mig_opt.views.scene import Box, Boxes, Line, Only, Scene, uncovered
from mig_opt.views.serving.days import day_scene
from mig_opt.views.serving.deployments import deployment_scene
from mig_opt.views.serving.latencies import latency_scene


def simulation(gpus: int) -> Scene:
    jobs = [job(f"j{number}", 0.0, "7g.40gb", 5.0) for number in range(gpus + 1)]
    return simulation_scene(simulate(trace(*jobs, gpus=gpus, costs=NO_COSTS), "first-fit"))


def deployment() -> Scene:
    segments = [Segment("chat", gpu, "7g.80gb", 0, 8, 2, 410.0, 0.04) for gpu in range(20)]
    wasteful = Segment("search", 20, "3g.40gb", 0, 8, 2, 410.0, 0.04)
    return deployment_scene(Deployment(("A100-80GB",) * 22, (*segments, wasteful)))


def latencies() -> Scene:
    quantiles = (0.01, 0.01, 0.02, 0.03, 0.04, 0.05)
    service = ServiceLatencies("chat", 0.05, 100, 1, 0.01, (0.0, 0.03), 50, 1, 0, *quantiles, ((0.01, 60), (0.06, 40)))
    return latency_scene(RequestSimulation((service,), (), "poisson", "shortest queue", 10.0, 1.0, 0, 0.1), 0.99)


def day() -> Scene:
    demand = one_model({"a": 1.0}, {1: 100.0, 2: 210.0, 4: 440.0}, A30)
    return day_scene(deploy_day(demand, RateTable((0.0, 3600.0, 7200.0), {"a": (90.0, 700.0)}), time_limit=20))


SCENES: dict[str, Callable[[], Scene]] = {
    "batch": lambda: batch_scene(tiny.BATCH),
    "schedule": lambda: schedule_scene(*top_down("A100", [f"task {number}" for number in range(40)], gpus=3), 9.0),
    "execution": lambda: execution_scene(tiny.BATCH, tiny.BEST, tiny.BEST.replace(runs=())),
    "deployment": deployment,
    "latencies": latencies,
    "day": day,
    "simulation": lambda: simulation(2),
    "simulation of a fleet that is large in an image": lambda: simulation(9),
    "simulation of a fleet that is large on a page": lambda: simulation(65),
}


def boxes(scene: Scene, kind: Only, *, beneath: bool) -> list[Box]:
    groups = [mark for panel in scene.seen(kind) for mark in panel.marks if isinstance(mark, Boxes)]
    return [box for group in groups for box in group.boxes if beneath or not group.beneath]


def tables(page: str) -> list[dict[str, list[Any]]]:
    """The columns of all data on a page."""

    def within(value: Any) -> list[dict[str, list[Any]]]:
        if isinstance(value, dict) and value.get("name") == "ColumnDataSource":
            return [dict(value["attributes"]["data"]["entries"])]
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [table for part in inner for table in within(part)]

    found = re.search(r'id="item">(.*?)</script>', page)
    assert found
    return within(json.loads(found[1]))


@pytest.mark.parametrize("name", SCENES)
def test_an_image_has_every_mark(name):
    scene = SCENES[name]()
    drawn = artists(draw(scene), "")
    lines = [mark.gid for panel in scene.seen("image") for mark in panel.marks if isinstance(mark, Line)]
    assert {box.gid for box in boxes(scene, "image", beneath=True)} | set(lines) <= drawn.keys()


@pytest.mark.parametrize("name", SCENES)
def test_a_page_has_every_mark(name, tmp_path):
    pytest.importorskip("bokeh", reason="draws the pages; the extra html has it")
    scene = SCENES[name]()
    save(scene, tmp_path / "page.html", 150)
    found = tables((tmp_path / "page.html").read_text(encoding="utf-8"))
    drawn = {row for table in found if "head" in table for row in zip(*table.values(), strict=True)}
    expected = boxes(scene, "page", beneath=False)
    assert drawn >= {
        (box.left, box.right, box.top, box.bottom, box.colour, box.head, "\n".join(box.facts)) for box in expected
    }
    lines = [mark for panel in scene.seen("page") for mark in panel.marks if isinstance(mark, Line)]
    assert [table for table in found if table.keys() == {"x", "y"}] == [
        {"x": list(map(float, line.x)), "y": list(map(float, line.y))} for line in lines
    ]


@pytest.mark.parametrize("suffix", ["svg", "html"])
@pytest.mark.parametrize("name", SCENES)
def test_equal_scenes_are_equal_files(name, suffix, tmp_path):
    if suffix == "html":
        pytest.importorskip("bokeh", reason="draws the pages; the extra html has it")
    for path in (tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"):
        save(SCENES[name](), path, 150)
    assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


spans = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), st.integers(0, 2), st.integers(1, 2)), max_size=6)


@given(under=spans, over=spans)
def test_uncovered_parts_are_where_no_other_box_is(under, over):
    def marks(boxes: list[tuple[int, int, int, int]]) -> list[Box]:
        return [Box(left, left + wide, top, top + high, "#000000", "") for left, wide, top, high in boxes]

    def cells(boxes: list[Box]) -> list[float]:
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
