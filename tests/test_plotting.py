"""Charts: what they show is read back from the artists, by group id, and from the renderer's extents."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from mig_opt.batch import Batch, LiveInstance, Task
from mig_opt.errors import InputError
from mig_opt.gpu import get_gpu
from mig_opt.plotting import check_plot_path, plot_schedule, save_plot, texts
from mig_opt.schedule import Run, Schedule
from mig_opt.timing import PlannedInstance, timed_schedule

MISO_NAMES = [f"{model}-b{2**power}-{index}" for index, (model, power) in enumerate(
    (model, power) for power in range(4, 9) for model in ("transformer", "resnet", "gnn", "embedding", "mobilenet")
)]  # fmt: skip


def a30_batch(**changes: object) -> Batch:
    times = {"gaussian": 11.52, "lud": 0.3, "hotspot3D": 6.5, "lavaMD": 7.2, "backprop": 3.0, "nw": 5.2}
    tasks = tuple(Task(name, {1: seconds, 2: seconds}) for name, seconds in times.items())
    return Batch(tasks, get_gpu("A30"), name="rodinia").replace(**changes)


def a30_schedule(batch: Batch) -> Schedule:
    """2g@0 with three tasks, beside it 2g@2, then 1g@2 and 1g@3 in its place."""
    tasks = {task.name: task for task in batch.tasks}
    place = batch.gpu.placement
    instances = [
        PlannedInstance(0, place("2g.12gb", 0), [tasks["gaussian"], tasks["lud"], tasks["hotspot3D"]]),
        PlannedInstance(0, place("2g.12gb", 2), [tasks["lavaMD"]]),
        PlannedInstance(0, place("1g.6gb", 2), [tasks["backprop"]]),
        PlannedInstance(0, place("1g.6gb", 3), [tasks["nw"]]),
    ]
    order = [("create", 0), ("create", 1), ("destroy", 1), ("create", 2), ("create", 3)]
    return timed_schedule(batch, instances, order)


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


def assert_labels_inside(figure: Figure) -> None:
    runs = artists(figure, "run:")
    for dpi in (100, 150, 300):
        figure.set_dpi(dpi)
        renderer = figure.canvas.get_renderer()
        for gid, label in artists(figure, "label:").items():
            box, own = runs["run:" + gid.removeprefix("label:")].get_window_extent(), label.get_window_extent(renderer)
            assert box.x0 <= own.x0, gid
            assert own.x1 <= box.x1, gid
            assert box.y0 <= own.y0, gid
            assert own.y1 <= box.y1, gid


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
        assert figure.bbox.x0 <= box.x0, wording
        assert box.x1 <= figure.bbox.x1, wording
        assert figure.bbox.y0 <= box.y0, wording
        assert box.y1 <= figure.bbox.y1, wording


# --- what the chart shows ---


def test_each_run_covers_its_footprint_and_its_time() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    figure = plot_schedule(batch, schedule)
    patches = artists(figure, "run:")
    assert len(patches) == len(schedule.runs) == 6
    for run in schedule.runs:
        memory = batch.gpu.profile(run.profile).memory_slices
        expected = (run.begin, run.end, run.start, run.start + memory)
        assert extent(patches[f"run:{run.task}"]) == pytest.approx(expected)


def test_slices_are_labelled_from_top_to_bottom() -> None:
    batch = a30_batch()
    axes = plot_schedule(batch, a30_schedule(batch)).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"slice {index}" for index in range(4)]
    assert list(axes.get_yticks()) == [0.5, 1.5, 2.5, 3.5]
    assert axes.get_ylim() == (4, 0)
    assert axes.get_xlabel() == "time in seconds"


def test_a_panel_for_each_gpu_with_one_time_axis() -> None:
    batch, schedule = top_down("A30", [f"t{index}" for index in range(12)], gpus=3)
    figure = plot_schedule(batch, schedule)
    assert [axes.get_ylabel() for axes in figure.axes] == ["GPU 0", "GPU 1", "GPU 2"]
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "time in seconds"]
    lefts, tops = zip(*[(axes.get_position().x0, axes.get_position().y1) for axes in figure.axes], strict=True)
    assert len(set(lefts)) == 1
    assert list(tops) == sorted(tops, reverse=True)
    for run in schedule.runs:
        assert artists(figure, "run:")[f"run:{run.task}"].axes is figure.axes[run.gpu]


def test_operations_are_visible_however_short_and_stay_within_the_life_of_their_instance() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    figure = plot_schedule(batch, schedule, lower_bound=3000.0)  # stretches the axis: 0.1 s is a 3000th of it
    least = 2.4 / 72 * figure.dpi
    assert schedule.operations is not None
    for index, operation in enumerate(schedule.operations):
        patch = artists(figure, f"{operation.kind}:")[f"{operation.kind}:{index}"]
        begin, end, low, high = extent(patch)
        assert patch.get_window_extent().width >= least
        assert (low, high) == (operation.start, operation.start + batch.gpu.profile(operation.profile).memory_slices)
        if operation.kind == "create":
            assert begin == pytest.approx(operation.begin)
        else:
            assert end == pytest.approx(operation.end)
    assert {"creation (not to scale)", "destruction (not to scale)"} <= set(key(figure))


def test_operations_that_are_long_enough_are_drawn_to_scale() -> None:
    batch = a30_batch()
    figure = plot_schedule(batch, a30_schedule(batch))
    assert extent(artists(figure, "create:")["create:0"]) == pytest.approx((0.0, 0.12, 0, 2))
    assert {"creation", "destruction"} <= set(key(figure))


def test_the_life_of_each_instance_is_outlined_and_named() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    figure = plot_schedule(batch, schedule)
    lives = sorted(extent(patch) for patch in artists(figure, "instance:").values())
    assert schedule.operations is not None
    destroyed = next(operation for operation in schedule.operations if operation.kind == "destroy")
    assert len(lives) == 4
    assert lives[0] == pytest.approx((0.0, schedule.makespan, 0, 2))
    assert lives[1] == pytest.approx((0.12, destroyed.end, 2, 4))
    names = sorted(artist.get_text() for artist in artists(figure, "profile:").values())
    assert names == ["1g.6gb", "1g.6gb", "2g.12gb", "2g.12gb"]
    assert "instance without a task" in key(figure)


def test_without_operations_only_runs_are_drawn() -> None:
    batch = a30_batch()
    figure = plot_schedule(batch, Schedule(a30_schedule(batch).runs))
    assert len(artists(figure, "run:")) == 6
    assert not any(artists(figure, prefix) for prefix in ("create:", "destroy:", "instance:", "idle:", "profile:"))
    assert "creation" not in key(figure)


def test_initial_instances_are_busy_until_they_are_free() -> None:
    live = LiveInstance(0, "2g.12gb", 0, free=2.5), LiveInstance(0, "1g.6gb", 3)
    batch = a30_batch(initial=live)
    gaussian = batch.tasks[0]
    instances = [PlannedInstance(0, batch.gpu.placement("2g.12gb", 0), [gaussian], free=2.5)]
    figure = plot_schedule(batch, timed_schedule(batch, instances, [("destroy", 0)]))
    earlier = artists(figure, "earlier:")
    assert list(earlier) == ["earlier:0"]
    assert extent(earlier["earlier:0"]) == pytest.approx((0.0, 2.5, 0, 2))
    assert earlier["earlier:0"].get_hatch()
    lives = sorted(extent(patch) for patch in artists(figure, "instance:").values())
    end = 2.5 + 11.52 + 0.1
    assert lives == [pytest.approx((0.0, end, 0, 2)), pytest.approx((0.0, end, 3, 4))]
    assert "busy with earlier work" in key(figure)


def test_an_empty_schedule_is_drawn_too() -> None:
    figure = plot_schedule(a30_batch(), Schedule(()), lower_bound=0.0)
    assert figure.axes[0].get_xlim()[1] > 0
    assert not artists(figure, "run:")


# --- makespan and lower bound ---


def line_positions(figure: Figure, gid: str) -> set[float]:
    found = [line for line in figure.findobj() if line.get_gid() == gid]
    assert len(found) == len(figure.axes)
    return {float(x) for line in found for x in line.get_xdata()}


def test_makespan_and_bound_are_lines_at_their_seconds() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    figure = plot_schedule(batch, schedule, lower_bound=12.25)
    assert line_positions(figure, "makespan") == {schedule.makespan}
    assert line_positions(figure, "lower-bound") == {12.25}
    labels = {gid: artist.get_text() for gid, artist in artists(figure, "").items() if gid.endswith("-label")}
    assert labels == {
        "makespan-label": f"makespan {schedule.makespan:.6g} s",
        "lower-bound-label": "lower bound 12.25 s",
    }


def test_without_a_bound_there_is_no_bound() -> None:
    batch = a30_batch()
    figure = plot_schedule(batch, a30_schedule(batch))
    assert not artists(figure, "lower-bound")


@pytest.mark.parametrize("difference", [0.0, 1e-9, -1e-9])
def test_values_that_coincide_share_one_label(difference: float) -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    figure = plot_schedule(batch, schedule, lower_bound=schedule.makespan + difference)
    labels = [text.get_text() for gid, text in artists(figure, "").items() if gid.endswith("-label")]
    assert labels == [f"makespan = lower bound = {schedule.makespan:.6g} s"]
    assert line_positions(figure, "lower-bound") == {schedule.makespan + difference}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.3, 0.6, 0.9, 0.97, 0.999, 1.0, 1.01, 1.2, 9.0])
def test_no_text_overlaps_another_wherever_the_bound_is(share: float) -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    assert_texts_apart(plot_schedule(batch, schedule, lower_bound=share * schedule.makespan))


@given(
    positions=st.lists(st.floats(0, 700), min_size=1, max_size=2).map(sorted),
    widths=st.tuples(st.floats(20, 200), st.floats(20, 200)),
)
@example([30.0, 60.0], (100.0, 100.0))
@example([400.0, 400.5], (100.0, 100.0))
def test_labels_of_lines_touch_neither_each_other_nor_the_other_line(
    positions: list[float], widths: tuple[float, float]
) -> None:
    places = texts.apart(positions, widths[: len(positions)])
    spans = []
    for x, width, (side, tier) in zip(positions, widths, places, strict=False):
        spans.append((x - 3 - width, x - 3, tier) if side == "right" else (x + 3, x + 3 + width, tier))
    assert len(spans) == len(positions)
    assert all(begin >= 0 for begin, _, _ in spans) or len(positions) == 2
    if len(spans) == 2:
        (begin0, end0, tier0), (begin1, end1, tier1) = spans
        assert tier0 != tier1 or end0 <= begin1 or end1 <= begin0
        # A line rises to the tier of its own label.
        assert tier0 < tier1 or not begin1 < positions[0] < end1
        assert tier1 < tier0 or not begin0 < positions[1] < end0


# --- names ---


@pytest.mark.parametrize("gpu", ["A30", "A100", "RTX-PRO-6000"])
@pytest.mark.parametrize("count", [8, 100])
def test_names_stay_inside_their_rectangles_and_nothing_overlaps(gpu: str, count: int) -> None:
    names = [f"{MISO_NAMES[index % len(MISO_NAMES)]}-{index}" for index in range(count)]
    batch, schedule = top_down(gpu, names)
    figure = plot_schedule(batch, schedule, lower_bound=0.98 * schedule.makespan)
    assert len(artists(figure, "run:")) == count
    assert_texts_apart(figure)
    assert_labels_inside(figure)


def test_eight_gpus_stay_readable() -> None:
    batch, schedule = top_down("A100", [f"task-{index}" for index in range(32)], gpus=8)
    figure = plot_schedule(batch, schedule)
    assert len(figure.axes) == 8
    assert 10 < figure.get_figheight() < 26
    assert all(len(axes.get_yticklabels()) == 8 for axes in figure.axes)
    assert_texts_apart(figure)
    assert_labels_inside(figure)


def test_the_height_has_a_limit() -> None:
    batch, schedule = top_down("A100", ["only"], gpus=60)
    assert plot_schedule(batch, schedule).get_figheight() < 26


def test_every_task_is_named_in_its_rectangle_or_in_the_key() -> None:
    names = [f"{name}-{index}" for index in range(2) for name in MISO_NAMES]
    batch = Batch(tuple(Task(name, {1: 1.0}) for name in names), get_gpu("A100"))
    now, runs = 0.0, []
    for index, name in enumerate(names):
        seconds = 0.2 + 4.0 * (index / len(names)) ** 2
        runs.append(Run(name, 0, "1g.5gb", 3, now, now + seconds))
        now += seconds
    figure = plot_schedule(batch, Schedule(tuple(runs)))
    shown = {gid.removeprefix("label:"): label.get_text() for gid, label in artists(figure, "label:").items()}
    entries = key(figure)
    for run in runs:
        wording = shown.get(run.task)
        if wording is None:
            assert f"{run.task} (slice 3, at {run.begin:.6g} s)" in entries
        elif wording.startswith("#"):
            assert f"{wording} {run.task}" in entries
        else:
            assert wording.replace("\n", "") == run.task
    numbers = [wording for wording in shown.values() if wording.startswith("#")]
    assert numbers == [f"#{index + 1}" for index in range(len(numbers))]
    assert 0 < len(numbers) < len(shown) < len(runs)  # there are some of each kind


def test_the_key_has_an_end() -> None:
    batch = Batch(tuple(Task(f"t{index}", {1: 1.0}) for index in range(260)), get_gpu("A30"))
    runs = [Run(task.name, 0, "1g.6gb", 0, float(index), index + 1.0) for index, task in enumerate(batch.tasks)]
    entries = key(plot_schedule(batch, Schedule(tuple(runs))))
    assert len(entries) == 240
    assert entries[-1].startswith("and ")
    assert int(entries[-1].split()[1]) + len(entries) - 1 == 260


def test_a_short_run_shows_its_name_when_that_fits_sideways() -> None:
    batch = a30_batch()
    label = artists(plot_schedule(batch, a30_schedule(batch)), "label:")["label:lud"]
    assert (label.get_text(), label.get_rotation()) == ("lud", 90)


def test_names_are_text_not_commands(tmp_path: Path) -> None:
    names = ["_hidden", r"$\frac{1}{$", "a\tb\nc", "\x01\u200b", "x" * 300, "#1", "&<>\"'"]
    batch = Batch(tuple(Task(name, {1: 0.01, 4: 4.0}) for name in names), get_gpu("A30"), name="$odd_")
    wide = [Run(name, 0, "4g.24gb", 0, 4.0 * index, 4.0 * index + 4.0) for index, name in enumerate(names)]
    narrow = [Run(name, 0, "1g.6gb", 0, 30.0 + index, 30.01 + index) for index, name in enumerate(names)]
    for runs in (wide, [wide[0], *narrow[1:]], [*narrow, Run("", 0, "1g.6gb", 3, 0.0, 40.0)]):
        figure = plot_schedule(batch, Schedule(tuple(runs)))
        assert_labels_inside(figure)
        save_plot(batch, Schedule(tuple(runs)), tmp_path / "odd.svg")
    assert {"_hidden (slice 0, at 30 s)", r"$\frac{1}{$ (slice 0, at 31 s)"} <= set(key(figure))
    assert artists(plot_schedule(batch, Schedule(tuple(wide))), "label:")["label:a\tb\nc"].get_text() == "a b c"


@given(st.text("ab1-_/. ", min_size=1, max_size=40), st.integers(1, 4))
def test_wrapping_keeps_every_letter(name: str, lines: int) -> None:
    wrapped = texts.wrap_name(name, lines)
    assert wrapped.count("\n") < lines
    assert "".join(wrapped.split()) == "".join(name.split())


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=25),
            st.sampled_from([("4g.24gb", 0), ("2g.12gb", 2), ("1g.6gb", 1)]),
            st.floats(0.01, 100),
        ),
        min_size=1,
        max_size=6,
        unique_by=lambda run: run[0],
    )
)
def test_names_stay_inside_whatever_they_are(parts: list[tuple[str, tuple[str, int], float]]) -> None:
    batch, now, runs = a30_batch(), 0.0, []
    for name, (profile, start), seconds in parts:
        runs.append(Run(name, 0, profile, start, now, now + seconds))
        now += seconds
    assert_labels_inside(plot_schedule(batch, Schedule(tuple(runs)), lower_bound=now / 2))


def test_names_that_the_font_lacks_raise_no_warnings(tmp_path: Path) -> None:
    """Warnings are errors in these tests."""
    name = "\u4efb\u52a1 \U0001f600 \u05d0"
    batch = Batch((Task(name, {4: 4.0}),), get_gpu("A30"), name=name)
    schedule = Schedule((Run(name, 0, "4g.24gb", 0, 0.0, 4.0),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("png", "pdf", "svg"):
            save_plot(batch, schedule, tmp_path / f"chart.{kind}")
    figure = plot_schedule(batch, schedule)
    with pytest.warns(UserWarning, match="Glyph"):  # a figure of the caller is the caller's
        figure.savefig(tmp_path / "own.png")


@pytest.mark.parametrize("seconds", [1e-9, 1e-4, 3.0, 2.5e6, 1e7, 1e300])
def test_numbers_stay_short_whatever_the_seconds(seconds: float) -> None:
    batch = Batch((Task("a", {4: seconds}),), get_gpu("A30"), name="long")
    figure = plot_schedule(batch, Schedule((Run("a", 0, "4g.24gb", 0, 0.0, seconds),)), lower_bound=seconds / 2)
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert len(set(ticks)) == len(ticks) >= 3
    assert max(len(text) for text in [*ticks, texts.spell_seconds(seconds)]) <= 10
    assert_texts_apart(figure)
    assert figure.texts[-1].get_text().count("\n") == 0


# --- title ---


def test_the_default_title_names_batch_gpus_and_makespan() -> None:
    batch, schedule = top_down("A30", ["a", "b"], gpus=2)
    title = plot_schedule(batch, schedule).texts[-1].get_text()
    assert title == f"random · 2 x NVIDIA A30 24GB · makespan {schedule.makespan:.6g} s"


def test_a_long_title_is_broken_and_an_empty_one_left_out() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    title = "a title of a few words, " * 12
    figure = plot_schedule(batch, schedule, title=title)
    assert " ".join(figure.texts[-1].get_text().split()) == title.strip()
    assert_texts_apart(figure)
    assert not plot_schedule(batch, schedule, title="").texts


# --- colours ---


def test_colours_depend_on_the_names_only() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    reordered = batch.replace(tasks=batch.tasks[::-1])
    shorter = Schedule(schedule.runs[:3])

    def colours(figure: Figure) -> dict[str, object]:
        return {gid: patch.get_facecolor() for gid, patch in artists(figure, "run:").items()}

    first = colours(plot_schedule(batch, schedule))
    assert colours(plot_schedule(reordered, schedule)) == first
    assert colours(plot_schedule(batch, shorter)).items() <= first.items()
    assert len(set(first.values())) == 6


def linear_rgb(colours: list[str]) -> np.ndarray:
    encoded = np.array([[int(colour[index : index + 2], 16) / 255 for index in (0, 2, 4)] for colour in colours])
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def oklab(linear: np.ndarray) -> np.ndarray:
    lms = linear @ np.array([[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]]).T
    return (
        np.cbrt(lms)
        @ np.array([[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]]).T
    )


@pytest.mark.parametrize(
    "view",
    [
        np.eye(3),
        np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),  # no red cones
        np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),  # no green cones
    ],
)
def test_the_first_colours_differ_for_all_eyes(view: np.ndarray) -> None:
    seen = oklab(np.clip(linear_rgb(texts.PALETTE[:10]) @ view.T, 0, 1))
    assert min(math.dist(one, two) for one, two in combinations(seen, 2)) > 0.06


def test_a_hundred_colours_differ_and_none_is_grey() -> None:
    assert len(texts.PALETTE) >= 100
    seen = oklab(linear_rgb(texts.PALETTE[:100]))
    assert min(math.dist(one, two) for one, two in combinations(seen, 2)) > 0.015
    assert np.hypot(seen[:, 1], seen[:, 2]).min() > 0.08


@pytest.mark.parametrize("colour", texts.PALETTE)
def test_names_contrast_with_their_rectangles(colour: str) -> None:
    luminance = float(linear_rgb([colour])[0] @ np.array([0.2126, 0.7152, 0.0722]))
    ratio = {"black": (luminance + 0.05) / 0.05, "white": 1.05 / (luminance + 0.05)}
    ink = texts.contrast(f"#{colour}")
    assert ratio[ink] == max(ratio.values())
    assert ratio[ink] >= 4.5  # the WCAG's figure for text


# --- files ---


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")]
)
def test_the_suffix_gives_the_format_and_equal_charts_are_equal_files(
    tmp_path: Path, suffix: str, magic: bytes
) -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    save_plot(batch, schedule, first, lower_bound=20.0)
    save_plot(batch, schedule, str(second), lower_bound=20.0)
    data = first.read_bytes()
    assert data.startswith(magic)
    assert data == second.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_dpi_gives_the_size_of_a_png(tmp_path: Path) -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    widths = []
    for dpi in (50, 100):
        save_plot(batch, schedule, tmp_path / "chart.png", dpi=dpi)
        widths.append(int.from_bytes((tmp_path / "chart.png").read_bytes()[16:20], "big"))
    assert widths[1] == pytest.approx(2 * widths[0], abs=2)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("chart.jpeg", "not as '.jpeg'"),
        ("chart", "no suffix"),
        ("nowhere/chart.png", "no folder"),
        ("folder.png", "is a folder"),
    ],
)
def test_bad_paths_are_found_before_anything_is_written(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder.png").mkdir()
    before = sorted(tmp_path.rglob("*"))
    batch = a30_batch()
    with pytest.raises(InputError, match=words):
        check_plot_path(tmp_path / name)
    with pytest.raises(InputError, match=words):
        save_plot(batch, a30_schedule(batch), tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_good_path_passes_the_check(tmp_path: Path) -> None:
    check_plot_path(tmp_path / "chart.svg")
    (tmp_path / "old.pdf").write_text("old")
    check_plot_path(str(tmp_path / "old.pdf"))
    assert not (tmp_path / "chart.svg").exists()


def test_a_bad_suffix_and_a_missing_folder_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        check_plot_path(tmp_path / "nowhere" / "chart.gif")
    assert len(caught.value.problems) == 2


def test_a_failing_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "chart.png"
    target.write_bytes(b"old")

    def fail(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    batch = a30_batch()
    with pytest.raises(InputError, match=r"chart\.png: cannot be written: No space left on device"):
        save_plot(batch, a30_schedule(batch), target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


# --- bad input ---


def test_a_schedule_of_another_batch_is_refused_with_every_problem() -> None:
    runs = Run("a", 1, "2g.12gb", 0, 0.0, 1.0), Run("b", 0, "9g.99gb", 0, 0.0, math.inf)
    with pytest.raises(InputError) as caught:
        plot_schedule(a30_batch(), Schedule(runs), lower_bound=math.nan)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["runs[0].gpu", "runs[1].profile", "runs[1].end", "lower_bound"]


def test_an_invalid_schedule_is_drawn() -> None:
    runs = Run("a", 0, "2g.12gb", 1, -1.0, 3.0), Run("unknown", 0, "4g.24gb", 0, 0.0, 2.0)
    figure = plot_schedule(a30_batch(), Schedule(runs))
    assert extent(artists(figure, "run:")["run:a"]) == (-1.0, 3.0, 1, 3)
    assert figure.axes[0].get_xlim()[0] == -1.0


# --- matplotlib ---


def test_importing_the_module_does_not_import_matplotlib() -> None:
    code = "import sys, mig_opt.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_drawing_needs_neither_pyplot_nor_a_display(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from mig_opt.batch import Batch, Task\n"
        "from mig_opt.gpu import get_gpu\n"
        "from mig_opt.plotting import save_plot\n"
        "from mig_opt.schedule import Run, Schedule\n"
        "batch = Batch((Task('a', {4: 2.0}),), get_gpu('A30'))\n"
        "save_plot(batch, Schedule((Run('a', 0, '4g.24gb', 0, 0.0, 2.0),)), sys.argv[1])\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)\n"
    )
    target = tmp_path / "chart.png"
    assert subprocess.run([sys.executable, "-c", code, str(target)], check=False).returncode == 0
    assert target.exists()


def test_settings_of_the_caller_are_left_alone(tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    batch = a30_batch()
    save_plot(batch, a30_schedule(batch), tmp_path / "chart.svg")
    assert dict(mpl.rcParams) == before


def test_a_missing_matplotlib_is_named_with_its_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    batch = a30_batch()
    for attempt in (
        lambda: check_plot_path(tmp_path / "chart.png"),
        lambda: plot_schedule(batch, a30_schedule(batch)),
        lambda: save_plot(batch, a30_schedule(batch), tmp_path / "chart.png"),
    ):
        with pytest.raises(InputError, match=r'pip install "mig-opt\[plot\]"'):
            attempt()
