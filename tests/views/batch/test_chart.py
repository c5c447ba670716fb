"""Charts: what they show is read back from the artists, by group id, and from the renderer's extents."""

from __future__ import annotations

import pytest
from charts import (
    a30_batch,
    a30_schedule,
    artists,
    assert_texts_apart,
    extent,
    key,
    top_down,
)
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from mig_opt.batch.batch import LiveInstance
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import PlannedInstance, timed_schedule
from mig_opt.views import plot, texts

# --- what the chart shows ---


def test_each_run_covers_its_footprint_and_its_time() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    figure = plot(batch, schedule)
    patches = artists(figure, "run:")
    assert len(patches) == len(schedule.runs) == 6
    for run in schedule.runs:
        memory = batch.gpu.profile(run.profile).memory_slices
        expected = (run.begin, run.end, run.start, run.start + memory)
        assert extent(patches[f"run:{run.task}"]) == pytest.approx(expected)


def test_slices_are_labelled_from_top_to_bottom() -> None:
    batch = a30_batch()
    axes = plot(batch, a30_schedule(batch)).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"slice {index}" for index in range(4)]
    assert list(axes.get_yticks()) == [0.5, 1.5, 2.5, 3.5]
    assert axes.get_ylim() == (4, 0)
    assert axes.get_xlabel() == "time in seconds"


def test_a_panel_for_each_gpu_with_one_time_axis() -> None:
    batch, schedule = top_down("A30", [f"t{index}" for index in range(12)], gpus=3)
    figure = plot(batch, schedule)
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
    figure = plot(batch, schedule, lower_bound=3000.0)  # stretches the axis: 0.1 s is a 3000th of it
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
    figure = plot(batch, a30_schedule(batch))
    assert extent(artists(figure, "create:")["create:0"]) == pytest.approx((0.0, 0.12, 0, 2))
    assert {"creation", "destruction"} <= set(key(figure))


def test_the_life_of_each_instance_is_outlined_and_named() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    figure = plot(batch, schedule)
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
    figure = plot(batch, Schedule(a30_schedule(batch).runs))
    assert len(artists(figure, "run:")) == 6
    assert not any(artists(figure, prefix) for prefix in ("create:", "destroy:", "instance:", "idle:", "profile:"))
    assert "creation" not in key(figure)


def test_initial_instances_are_busy_until_they_are_free() -> None:
    live = LiveInstance(0, "2g.12gb", 0, free=2.5), LiveInstance(0, "1g.6gb", 3)
    batch = a30_batch(initial=live)
    gaussian = batch.tasks[0]
    instances = [PlannedInstance(0, batch.gpu.placement("2g.12gb", 0), [gaussian], free=2.5)]
    figure = plot(batch, timed_schedule(batch, instances, [("destroy", 0)]))
    earlier = artists(figure, "earlier:")
    assert list(earlier) == ["earlier:0"]
    assert extent(earlier["earlier:0"]) == pytest.approx((0.0, 2.5, 0, 2))
    assert earlier["earlier:0"].get_hatch()
    lives = sorted(extent(patch) for patch in artists(figure, "instance:").values())
    end = 2.5 + 11.52 + 0.1
    assert lives == [pytest.approx((0.0, end, 0, 2)), pytest.approx((0.0, end, 3, 4))]
    assert "busy with earlier work" in key(figure)


def test_an_empty_schedule_is_drawn_too() -> None:
    figure = plot(a30_batch(), Schedule(()), lower_bound=0.0)
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
    figure = plot(batch, schedule, lower_bound=12.25)
    assert line_positions(figure, "makespan") == {schedule.makespan}
    assert line_positions(figure, "lower-bound") == {12.25}
    labels = {gid: artist.get_text() for gid, artist in artists(figure, "").items() if gid.endswith("-label")}
    assert labels == {
        "makespan-label": f"makespan {schedule.makespan:.6g} s",
        "lower-bound-label": "lower bound 12.25 s",
    }


def test_without_a_bound_there_is_no_bound() -> None:
    batch = a30_batch()
    figure = plot(batch, a30_schedule(batch))
    assert not artists(figure, "lower-bound")


@pytest.mark.parametrize("difference", [0.0, 1e-9, -1e-9])
def test_values_that_coincide_share_one_label(difference: float) -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    figure = plot(batch, schedule, lower_bound=schedule.makespan + difference)
    labels = [text.get_text() for gid, text in artists(figure, "").items() if gid.endswith("-label")]
    assert labels == [f"makespan = lower bound = {schedule.makespan:.6g} s"]
    assert line_positions(figure, "lower-bound") == {schedule.makespan + difference}


@pytest.mark.deep
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.3, 0.6, 0.9, 0.97, 0.999, 1.0, 1.01, 1.2, 9.0])
def test_no_text_overlaps_another_wherever_the_bound_is(share: float) -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    assert_texts_apart(plot(batch, schedule, lower_bound=share * schedule.makespan))


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


# --- title ---


def test_the_default_title_names_batch_gpus_and_makespan() -> None:
    batch, schedule = top_down("A30", ["a", "b"], gpus=2)
    title = plot(batch, schedule).texts[-1].get_text()
    assert title == f"random · 2 x NVIDIA A30 24GB · makespan {schedule.makespan:.6g} s"


def test_a_long_title_is_broken_and_an_empty_one_left_out() -> None:
    batch = a30_batch()
    schedule = a30_schedule(batch)
    title = "a title of a few words, " * 12
    figure = plot(batch, schedule, title=title)
    assert " ".join(figure.texts[-1].get_text().split()) == title.strip()
    assert_texts_apart(figure)
    assert not plot(batch, schedule, title="").texts
