"""The search for overlaps that the rules of several problems share."""

from __future__ import annotations

import operator

import pytest

from mig_opt.batch.schedule import Run
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import Placement
from mig_opt.validation.placed import Span, clashes, in_seconds, placed_entries, too_late


def found(spans: list[Span[str, str]], tolerance: float = 0.0) -> list[tuple[str, str]]:
    return [(earlier.item, later.item) for earlier, later in clashes(spans, operator.eq, tolerance)]


def test_spans_with_one_key_on_one_gpu_clash_where_they_overlap() -> None:
    spans = [Span(2.0, 3.0, 0, "a", "late"), Span(0.0, 2.1, 0, "a", "early")]
    elsewhere = [Span(0.0, 9.0, 1, "a", "other GPU"), Span(0.0, 9.0, 0, "b", "other key")]
    assert found([*spans, *elsewhere]) == [("early", "late")]
    assert found(spans, tolerance=0.1) == []


def test_the_earlier_span_that_ends_last_is_named() -> None:
    spans = [Span(0.0, 9.0, 0, "a", "long"), Span(1.0, 2.0, 0, "a", "short"), Span(3.0, 4.0, 0, "a", "late")]
    assert found(spans) == [("long", "short"), ("long", "late")]


def test_keys_may_exclude_others_than_themselves() -> None:
    a30 = get_gpu("A30")
    whole, left, right = a30.placement("4g.24gb", 0), a30.placement("2g.12gb", 0), a30.placement("2g.12gb", 2)
    spans = [Span(0.0, 2.0, 0, left, 0), Span(0.0, 2.0, 0, right, 1), Span(1.0, 2.0, 0, whole, 2)]
    assert [(one.item, two.item) for one, two in clashes(spans, Placement.conflicts, 0.0)] == [(0, 2), (1, 2)]


def test_entries_without_a_place_are_left_out() -> None:
    runs = [Run("a", gpu, profile, start, 0.0, 1.0) for gpu, profile, start in [(1, "1g.6gb", 0), (0, "1g.6gb", 3)]]
    runs += [
        Run("b", 0, "1g.6gb", 4, 0.0, 1.0),
        Run("c", 0, "1g.5gb", 0, 0.0, 1.0),
        Run("d", -1, "1g.6gb", 0, 0.0, 1.0),
    ]
    kinds = (get_gpu("A30"), None)
    assert [(placed.index, str(placed.placement), placed.location) for placed in placed_entries(kinds, runs)] == [
        (1, "1g.6gb@3", (0, "1g.6gb", 3))
    ]


@pytest.mark.parametrize(("seconds", "text"), [(2.0, "2 s"), (0.1 + 0.2, "0.3 s"), (1e-9, "1e-09 s")])
def test_times_are_spelled_to_the_nanosecond(seconds: float, text: str) -> None:
    assert in_seconds(seconds) == text


@pytest.mark.parametrize(
    ("begin", "seconds", "lost"),
    [(0.1, 0.2, False), (1e9, 0.11, False), (0.0, 1e17, False), (1e17, 1e17, False), (1e16, 2.5, True)],
)
def test_seconds_are_lost_where_numbers_are_far_apart(begin: float, seconds: float, lost: bool) -> None:
    assert too_late(begin, begin + seconds, seconds) == lost
    assert not too_late(begin, begin + seconds, seconds, tolerance=3.0)
