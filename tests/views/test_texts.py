"""Texts and colours of charts: every name can be read, and every task told from others."""

import dataclasses
import math
import warnings
from itertools import combinations

import numpy as np
import pytest
from charts import A30_BATCH, A30_SCHEDULE, MISO_NAMES, artists, assert_labels_inside, assert_texts_apart, key, top_down
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from mig_opt import Batch, Run, Schedule, Task, get_gpu, solve
from mig_opt.gpu.devices import Device
from mig_opt.views import plot, texts


@pytest.mark.parametrize("gpu", ["A30", "A100", "RTX-PRO-6000"])
@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.deep)])
def test_names_stay_inside_their_rectangles_and_nothing_overlaps(gpu, count):
    names = [f"{MISO_NAMES[index % len(MISO_NAMES)]}-{index}" for index in range(count)]
    batch, schedule = top_down(gpu, names)
    figure = plot(batch, schedule, lower_bound=0.98 * schedule.makespan)
    assert len(artists(figure, "run:")) == count
    assert_texts_apart(figure)
    assert_labels_inside(figure)


def test_every_task_is_named_in_its_rectangle_or_in_the_key():
    names = [f"{name}-{index}" for index in range(2) for name in MISO_NAMES]
    batch = Batch(tuple(Task(name, {1: 1.0}) for name in names), get_gpu("A100"))
    now, runs = 0.0, []
    for index, name in enumerate(names):
        seconds = 0.2 + 4.0 * (index / len(names)) ** 2
        runs.append(Run(name, 0, "1g.5gb", 3, now, now + seconds))
        now += seconds
    figure = plot(batch, Schedule(tuple(runs)))
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


def test_the_key_has_an_end():
    batch = Batch(tuple(Task(f"t{index}", {1: 1.0}) for index in range(260)), get_gpu("A30"))
    runs = [Run(task.name, 0, "1g.6gb", 0, float(index), index + 1.0) for index, task in enumerate(batch.tasks)]
    entries = key(plot(batch, Schedule(tuple(runs))))
    assert len(entries) == 240
    assert entries[-1].startswith("and ")
    assert int(entries[-1].split()[1]) + len(entries) - 1 == 260


def test_names_are_text_not_commands(tmp_path):
    names = ["_hidden", r"$\frac{1}{$", "a\tb\nc", "\x01\u200b", "x" * 300, "#1", "&<>\"'"]
    batch = Batch(tuple(Task(name, {1: 0.01, 4: 4.0}) for name in names), get_gpu("A30"), name="$odd_")
    wide = [Run(name, 0, "4g.24gb", 0, 4.0 * index, 4.0 * index + 4.0) for index, name in enumerate(names)]
    narrow = [Run(name, 0, "1g.6gb", 0, 30.0 + index, 30.01 + index) for index, name in enumerate(names)]
    for runs in (wide, [wide[0], *narrow[1:]], [*narrow, Run("", 0, "1g.6gb", 3, 0.0, 40.0)]):
        figure = plot(batch, Schedule(tuple(runs)))
        assert_labels_inside(figure)
        plot(batch, Schedule(tuple(runs)), to=tmp_path / "odd.svg")
    assert {"_hidden (slice 0, at 30 s)", r"$\frac{1}{$ (slice 0, at 31 s)"} <= set(key(figure))
    assert artists(plot(batch, Schedule(tuple(wide))), "label:")["label:a b c"].get_text() == "a b c"
    profiles = tuple(dataclasses.replace(each, name=f"${each.name}^$") for each in batch.gpu.profiles)
    own = dataclasses.replace(batch.gpu, name="own", aliases=(), profiles=profiles)
    two = Batch((Task("a", {4: 4.0}),), own, 2, devices=(Device(0, "$a^$"), Device(1)))
    plot(two, solve(two).schedule, to=tmp_path / "odd.svg")


@given(st.text("ab1-_/. ", min_size=1, max_size=40), st.integers(1, 4))
def test_wrapping_keeps_every_letter(name, lines):
    wrapped = texts.wrap_name(name, lines)
    assert wrapped.count("\n") < lines
    assert "".join(wrapped.split()) == "".join(name.split())


@pytest.mark.deep
def test_names_that_the_font_lacks_raise_no_warnings(tmp_path):
    """Warnings are errors in these tests."""
    name = "\u4efb\u52a1 \U0001f600 \u05d0"
    batch = Batch((Task(name, {4: 4.0}),), get_gpu("A30"), name=name)
    schedule = Schedule((Run(name, 0, "4g.24gb", 0, 0.0, 4.0),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("png", "pdf", "svg"):
            plot(batch, schedule, to=tmp_path / f"chart.{kind}")
    figure = plot(batch, schedule)
    with pytest.warns(UserWarning, match="Glyph"):  # a figure of the caller is the caller's
        figure.savefig(tmp_path / "own.png")


@pytest.mark.parametrize("seconds", [1e-9, 1e-4, 3.0, 2.5e6, 1e7, 1e300])
def test_numbers_stay_short_whatever_the_seconds(seconds):
    batch = Batch((Task("a", {4: seconds}),), get_gpu("A30"), name="long")
    figure = plot(batch, Schedule((Run("a", 0, "4g.24gb", 0, 0.0, seconds),)), lower_bound=seconds / 2)
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert len(set(ticks)) == len(ticks) >= 3
    assert max(len(text) for text in [*ticks, texts.spell_seconds(seconds)]) <= 10
    assert_texts_apart(figure)
    assert figure.texts[-1].get_text().count("\n") == 0


def test_colours_depend_on_the_names_only():
    reordered = A30_BATCH.replace(tasks=A30_BATCH.tasks[::-1])
    shorter = Schedule(A30_SCHEDULE.runs[:3])

    def colours(figure: Figure) -> dict[str, object]:
        return {gid: patch.get_facecolor() for gid, patch in artists(figure, "run:").items()}

    first = colours(plot(A30_BATCH, A30_SCHEDULE))
    assert colours(plot(reordered, A30_SCHEDULE)) == first
    assert colours(plot(A30_BATCH, shorter)).items() <= first.items()
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
def test_the_first_colours_differ_for_all_eyes(view):
    seen = oklab(np.clip(linear_rgb(texts.PALETTE[:10]) @ view.T, 0, 1))
    assert min(math.dist(one, two) for one, two in combinations(seen, 2)) > 0.06


def test_a_hundred_colours_differ_and_none_is_grey():
    assert len(texts.PALETTE) >= 100
    seen = oklab(linear_rgb(texts.PALETTE[:100]))
    assert min(math.dist(one, two) for one, two in combinations(seen, 2)) > 0.015
    assert np.hypot(seen[:, 1], seen[:, 2]).min() > 0.08


@pytest.mark.parametrize("colour", texts.PALETTE)
def test_names_contrast_with_their_rectangles(colour):
    luminance = float(linear_rgb([colour])[0] @ np.array([0.2126, 0.7152, 0.0722]))
    ratio = {"black": (luminance + 0.05) / 0.05, "white": 1.05 / (luminance + 0.05)}
    ink = texts.contrast(f"#{colour}")
    assert ratio[ink] == max(ratio.values())
    assert ratio[ink] >= 4.5  # the WCAG's figure for text


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_names_of_a_million_characters_are_drawn_without_their_middle(suffix, tmp_path):
    """They would be measured character by character, and stand in a picture three times."""
    name = "a" + "x" * 1_000_000
    names = [f"{name}{end}" for end in "yz"]
    batch = Batch(tuple(Task(each, {1: 3.0}) for each in names), get_gpu("A30"), name=name)
    schedule = Schedule(tuple(Run(each, 0, "1g.6gb", start, 0.0, 3.0) for start, each in enumerate(names)))
    plot(batch, schedule, to=tmp_path / f"chart.{suffix}")
    text = (tmp_path / f"chart.{suffix}").read_text(encoding="utf-8")
    assert "x" * 90 + "y" in text
    assert "x" * texts.LONGEST_TITLE not in text
    figure = plot(batch)
    assert len(artists(figure, "task:")) == 2
