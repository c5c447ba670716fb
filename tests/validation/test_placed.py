"""The search for overlaps that the rules of several problems share."""

from dataclasses import replace

import pytest
from documents import refused

from mig_opt import (
    Batch,
    FleetState,
    HeldInstance,
    Job,
    Migration,
    Run,
    Schedule,
    Task,
    Trace,
    get_gpu,
    solve,
    validate,
)
from mig_opt.fleet.admission import AcceptedJob, Admission
from mig_opt.gpu.model import GpuModel
from mig_opt.validation import validate_migrations
from mig_opt.validation.fleet.admissions import check_admission
from mig_opt.validation.placed import Span, clash_message, clashes, overlaps, placed_entries, too_late


def found(spans: list[Span[str, str]], tolerance: float = 0.0) -> list[tuple[str, str]]:
    return [(earlier.item, later.item) for earlier, later in overlaps(spans, tolerance)]


def test_spans_with_one_key_on_one_gpu_clash_where_they_overlap() -> None:
    spans = [Span(2.0, 3.0, 0, "a", "late"), Span(0.0, 2.1, 0, "a", "early")]
    elsewhere = [Span(0.0, 9.0, 1, "a", "other GPU"), Span(0.0, 9.0, 0, "b", "other key")]
    assert found([*spans, *elsewhere]) == [("early", "late")]
    assert found(spans, tolerance=0.1) == []
    rounded = [replace(spans[0], begin=2e11, end=3e11), replace(spans[1], end=2e11 + 1e-4)]
    assert [found(rounded, tolerance) for tolerance in (0.0, 1e-6)] == [[("early", "late")], []]


def test_the_earlier_span_that_ends_last_is_named() -> None:
    spans = [Span(0.0, 9.0, 0, "a", "long"), Span(1.0, 2.0, 0, "a", "short"), Span(3.0, 4.0, 0, "a", "late")]
    assert found(spans) == [("long", "short"), ("long", "late")]


def test_instances_that_share_slices_clash() -> None:
    a30 = get_gpu("A30")
    whole, left, right = a30.placement("4g.24gb", 0), a30.placement("2g.12gb", 0), a30.placement("2g.12gb", 2)
    spans = [Span(0.0, 2.0, 0, left, 0), Span(0.0, 2.0, 0, right, 1), Span(1.0, 2.0, 0, whole, 2)]
    ((later, earlier),) = clashes(spans, 0.0)
    assert (later.item, [other.item for other in earlier]) == (2, [0, 1])
    assert clash_message(later, earlier) == (
        "4g.24gb@0 is created on GPU 0 at 1 s, while 2g.12gb@0, which shares memory slices with it, exists until 2 s, "
        "and 2g.12gb@2, which shares memory slices with it, exists until 2 s"
    )


def two_of_four() -> GpuModel:
    """Return an A30 of whose four smallest instances two may exist."""
    a30 = get_gpu("A30")
    profiles = (replace(own, max_count=2) if own.name == "1g.6gb" else own for own in a30.profiles)
    return replace(a30, name="two of four", profiles=tuple(profiles))


def test_as_many_of_a_profile_may_exist_as_the_gpu_allows() -> None:
    places = [two_of_four().placement("1g.6gb", start) for start in range(4)]
    spans = [Span(float(begin), begin + 2.5, 0, place, begin) for begin, place in enumerate(places[:3])]
    ((later, earlier),) = clashes(spans, 0.0)
    assert (later.item, [other.item for other in earlier]) == (2, [0, 1])
    assert clash_message(later, earlier) == (
        "1g.6gb@2 is created on GPU 0 at 2 s, when 2 of 1g.6gb exist already; at most 2 may exist at once"
    )
    assert not list(clashes(spans, 0.5))
    assert not list(clashes([spans[0], spans[1], replace(spans[2], gpu=1)], 0.0))


def test_every_validator_counts_the_instances_of_a_profile() -> None:
    gpu = two_of_four()
    tasks = tuple(Task(name, {1: 5.0}) for name in "abc")
    runs = tuple(Run(name, 0, "1g.6gb", at, 1.0 + at, 6.0 + at) for at, name in enumerate("abc"))
    assert [str(each.code) for each in validate(Batch(tasks[:2], gpu), Schedule(runs[:2])).violations] == []
    assert refused(solve, Batch(tasks, gpu)) == ["batch"]
    (violation,) = validate(Batch(tasks, gpu), Schedule(runs)).violations
    assert str(violation) == (
        "runs[2]: task 'c' begins on 1g.6gb@2 of GPU 0 at 3 s, while task 'a' runs on 1g.6gb@0 until 6 s and task 'b' "
        "runs on 1g.6gb@1 until 7 s; at most 2 of 1g.6gb may exist (too-many-instances)"
    )
    trace = Trace(tuple(Job(name, at, {1: 5.0}) for at, name in enumerate("abc")), gpu)
    accepted = tuple(AcceptedJob(name, 0, "1g.6gb", at) for at, name in enumerate("abc"))
    assert check_admission(trace, Admission(accepted[:2])) == []
    assert [problem.path for problem in check_admission(trace, Admission(accepted))] == ["accepted[2]"]
    state = FleetState(gpu, 2, (HeldInstance(0, "1g.6gb", 0), *(HeldInstance(1, "1g.6gb", at) for at in (0, 1))))
    (wrong,) = validate_migrations(state, [Migration(0, "1g.6gb", 0, 1, 2)]).violations
    assert str(wrong.code) == "too-many-instances"


def test_entries_without_a_place_are_left_out() -> None:
    places = [(1, "1g.6gb", 0), (0, "1g.6gb", 3), (0, "1g.6gb", 4), (0, "1g.5gb", 0), (-1, "1g.6gb", 0)]
    (placed,) = placed_entries((get_gpu("A30"), None), [Run("a", *place, 0.0, 1.0) for place in places])
    assert (placed.index, str(placed.placement), placed.location) == (1, "1g.6gb@3", places[1])


@pytest.mark.parametrize(
    ("begin", "seconds", "lost"),
    [(0.1, 0.2, False), (1e9, 0.11, False), (0.0, 1e17, False), (1e17, 1e17, False), (1e16, 2.5, True)],
)
def test_seconds_are_lost_where_numbers_are_far_apart(begin: float, seconds: float, lost: bool) -> None:
    assert too_late(begin, begin + seconds, seconds) == lost
    assert not too_late(begin, begin + seconds, seconds, tolerance=3.0)
