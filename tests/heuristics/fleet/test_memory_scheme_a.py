"""Scheme A of the memory-aware schedulers: sizes one after the other, least memory first."""

from memory_jobs import free, full, places, sized, small
from online_worlds import rows, run


def test_jobs_of_a_size_come_by_increasing_memory() -> None:
    """All fit in 40 GB, one after the other: 21, 25, 25 (in the order of arrival), 30, 39 GB."""
    needs = {"a": 39.0, "b": 25.0, "c": 21.0, "d": 30.0, "e": 25.0}
    wanted = free(*(sized(name, gb, {7: 5.0}) for name, gb in needs.items()))
    for options in ({}, {"division": "shared"}):
        assert [row[0] for row in rows(run("memory-aware-a", wanted, **options).log)] == list("cbeda")
    assert [row[0] for row in rows(run("memory-aware-b", wanted).log)] == list("abcde")


def test_smaller_jobs_that_come_later_do_not_starve_a_larger_one_of_their_size() -> None:
    """They join the phase in the order of arrival: s00, s01, then large. A new phase sorts those that wait: e, d."""
    stream = [sized(f"s{number:02}", 21.0, {7: 5.0}, 2.0 * number) for number in range(40)]
    done = run("memory-aware-a", free(*stream, sized("large", 39.0, {7: 5.0}, 3.0)))
    assert [row[0] for row in rows(done.log)][:4] == ["s00", "s01", "large", "s02"]
    jobs = [small("a", 5), small("b", 5, 1.0), sized("d", 39.0, {7: 5.0}, 2.0), sized("e", 25.0, {7: 5.0}, 3.0)]
    assert [row[0] for row in rows(run("memory-aware-a", free(*jobs)).log)] == list("abed")


def test_equal_parts_for_unequal_halves() -> None:
    """Five jobs of 6 s on 3g and 4 s on 4g. Dealt: a, c, e on 3g, 18 s; b, d on 4g, 8 s.

    From one queue: 4g takes b, c at 4 and e at 8, 3g takes a and d: 12 s, as in scheme B.
    """
    wanted = free(*(sized(name, 16.0, {3: 6.0, 4: 4.0}) for name in "abcde"))
    equal = run("memory-aware-a", wanted)
    assert equal.metrics.makespan == 18
    assert {name: where for name, where in places(equal).items() if where.endswith("3g.20gb@4")}.keys() == set("ace")
    shared, in_order = run("memory-aware-a", wanted, division="shared"), run("memory-aware-b", wanted)
    assert rows(shared.log) == rows(in_order.log)
    assert shared.metrics.makespan == 12


def test_a_steady_stream_of_small_jobs_does_not_starve_a_large_one() -> None:
    jobs = [small(f"s{number:02}", 5, number) for number in range(60)]
    done = run("memory-aware-a", free(*jobs, full("large", 5, 2.5)))
    (end,) = [row[4] for row in rows(done.log) if row[0] == "large"]
    # s00 to s02 are there before it and end by 7.
    assert end == 12


def test_jobs_with_the_same_memory_on_other_profiles_have_another_phase() -> None:
    """a can run on 4g alone, b on 3g alone: b, which takes fewer slices, is first, though both would fit."""
    done = run("memory-aware-a", free(sized("a", 16.0, {4: 3.0}), sized("b", 16.0, {3: 5.0})))
    assert [(row[0], *row[3:5]) for row in rows(done.log)] == [("b", 0, 5), ("a", 5, 8)]
