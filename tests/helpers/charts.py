"""Batches and schedules to be drawn, and what their charts show."""

import random
from itertools import combinations

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from mig_opt import Batch, Schedule, Task, get_gpu
from mig_opt.batch.timing import PlannedInstance, timed_schedule

MISO_NAMES = [f"{model}-b{2**power}-{index}" for index, (model, power) in enumerate(
    (model, power) for power in range(4, 9) for model in ("transformer", "resnet", "gnn", "embedding", "mobilenet")
)]  # fmt: skip


_TIMES = {"gaussian": 11.52, "lud": 0.3, "hotspot3D": 6.5, "lavaMD": 7.2, "backprop": 3.0, "nw": 5.2}
_TASKS = {name: Task(name, {1: seconds, 2: seconds}) for name, seconds in _TIMES.items()}
_ON = {("2g.12gb", 0): ("gaussian", "lud", "hotspot3D"), ("2g.12gb", 2): ("lavaMD",)}
_ON |= {("1g.6gb", 2): ("backprop",), ("1g.6gb", 3): ("nw",)}
A30_BATCH = Batch(tuple(_TASKS.values()), get_gpu("A30"), name="rodinia")
A30_SCHEDULE = timed_schedule(
    A30_BATCH,
    [PlannedInstance(0, A30_BATCH.gpu.placement(*place), [_TASKS[name] for name in on]) for place, on in _ON.items()],
    [("create", 0), ("create", 1), ("destroy", 1), ("create", 2), ("create", 3)],
)
"""2g@0 with three tasks, beside it 2g@2, then 1g@2 and 1g@3 in its place."""


def top_down(gpu: str, names: list[str], gpus: int = 1, seed: int = 0) -> tuple[Batch, Schedule]:
    """A batch of random tasks, each on a random placement, parents before children."""
    rng = random.Random(seed)
    model = get_gpu(gpu)
    tasks = tuple(Task(name, {size: rng.uniform(0.3, 30.0) / size for size in model.sizes}) for name in names)
    batch = Batch(tasks, model, gpus, name="random")
    chosen: dict[tuple[int, object], list[Task]] = {}
    for task in tasks:
        placement, _ = rng.choice(batch.options(task))
        chosen.setdefault((rng.randrange(gpus), placement), []).append(task)
    instances, order, alive = [], [], []
    for number in range(gpus):
        for placement in model.repartition_tree():
            if (number, placement) not in chosen:
                continue
            for other in [other for other in alive if instances[other].gpu == number]:
                if instances[other].placement.conflicts(placement):
                    order.append(("destroy", other))
                    alive.remove(other)
            order.append(("create", len(instances)))
            alive.append(len(instances))
            instances.append(PlannedInstance(number, placement, chosen[number, placement]))
    return batch, timed_schedule(batch, instances, order)


def artists(figure: Figure, prefix: str) -> dict[str, Artist]:
    found = {artist.get_gid(): artist for artist in figure.findobj() if artist.get_gid()}
    return {gid: artist for gid, artist in found.items() if gid.startswith(prefix)}


def extent(patch: Artist) -> tuple[float, float, float, float]:
    assert isinstance(patch, Rectangle)
    return patch.get_x(), patch.get_x() + patch.get_width(), patch.get_y(), patch.get_y() + patch.get_height()


def key(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.findobj(Legend) for text in legend.get_texts()]


def assert_labels_inside(figure: Figure, prefix: str = "run:") -> None:
    """Each label is within its box, and beside what is lost there."""
    boxes, lost, usual = artists(figure, prefix), artists(figure, "lost:"), figure.dpi
    for dpi in (100, 150, 300):
        figure.set_dpi(dpi)
        renderer = figure.canvas.get_renderer()
        for gid, label in artists(figure, "label:").items():
            index, own = gid.removeprefix("label:"), label.get_window_extent(renderer)
            box = boxes[f"{prefix}{index}"].get_window_extent()
            right = lost[f"lost:{index}"].get_window_extent().x0 if f"lost:{index}" in lost else box.x1
            assert box.x0 <= own.x0 < own.x1 <= right, gid
            assert box.y0 <= own.y0 < own.y1 <= box.y1, gid
    figure.set_dpi(usual)


def assert_texts_apart(figure: Figure) -> None:
    """No two visible texts overlap, apart from those that share a tick position outside the view."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    inside = [(wording, box) for wording, box in boxes if box.width > 0 and figure.bbox.overlaps(box)]
    for (one, first), (two, second) in combinations(inside, 2):
        assert not first.overlaps(second), (one, two)
    for wording, box in inside:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, wording
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, wording
