"""Charts: what they show is read back from the artists, by group id, and from the renderer's extents."""

import pytest
import tiny
from charts import A30_BATCH, A30_SCHEDULE, artists, assert_texts_apart
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from mig_opt import Device, Schedule
from mig_opt.views import plot, texts


def test_an_empty_schedule_is_drawn_too():
    figure = plot(A30_BATCH, Schedule(()), lower_bound=0.0)
    assert figure.axes[0].get_xlim()[1] > 0
    assert not artists(figure, "run:")


def line_positions(figure: Figure, gid: str) -> set[float]:
    found = [line for line in figure.findobj() if line.get_gid() == gid]
    assert len(found) == len(figure.axes)
    return {float(x) for line in found for x in line.get_xdata()}


@pytest.mark.parametrize("difference", [0.0, 1e-9, -1e-9])
def test_values_that_coincide_share_one_label(difference):
    figure = plot(A30_BATCH, A30_SCHEDULE, lower_bound=A30_SCHEDULE.makespan + difference)
    labels = [text.get_text() for gid, text in artists(figure, "").items() if gid.endswith("-label")]
    assert labels == [f"makespan = lower bound = {A30_SCHEDULE.makespan:.6g} s"]
    assert line_positions(figure, "lower-bound") == {A30_SCHEDULE.makespan + difference}


@pytest.mark.deep
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.3, 0.6, 0.9, 0.97, 0.999, 1.0, 1.01, 1.2, 9.0])
def test_no_text_overlaps_another_wherever_the_bound_is(share):
    assert_texts_apart(plot(A30_BATCH, A30_SCHEDULE, lower_bound=share * A30_SCHEDULE.makespan))


@given(
    positions=st.lists(st.floats(0, 700), min_size=1, max_size=2).map(sorted),
    widths=st.tuples(st.floats(20, 200), st.floats(20, 200)),
)
@example([30.0, 60.0], (100.0, 100.0))
@example([400.0, 400.5], (100.0, 100.0))
def test_labels_of_lines_touch_neither_each_other_nor_the_other_line(positions, widths):
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


def test_a_long_title_is_broken_and_an_empty_one_left_out():
    title = "a title of a few words, " * 12
    figure = plot(A30_BATCH, A30_SCHEDULE, title=title)
    assert " ".join(figure.texts[-1].get_text().split()) == title.strip()
    assert_texts_apart(figure)
    assert not plot(A30_BATCH, A30_SCHEDULE, title="").texts


def test_two_gpus_and_equal_makespans():
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
