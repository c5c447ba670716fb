"""Jobs whose memory is not known: failures, forecasts and restarts on larger instances."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_jobs import BOTH, STEPS, free, full, growing, places, sized, small
from online_worlds import A100, rows, run

from mig_opt import Job

# Memory that is not known (sections 2.3 and 3.2)


@BOTH
def test_start_small_and_restart_after_a_failure(policy: str) -> None:
    """1 GB and 0.5 GB more each second: 5.5 GB at 9 s, so 2g; 10.5 GB at its 19 s, so a half, where it takes 20 s.

    The half is made beside what is idle.
    """
    done = run(policy, free(growing("a", 1.0, 10.5)), prediction=False)
    assert rows(done.log) == [
        ("a", 0, "1g.5gb@6", 0, 9, "OUT_OF_MEMORY"),
        ("a", 0, "2g.10gb@4", 9, 28, "OUT_OF_MEMORY"),
        ("a", 0, "3g.20gb@0", 28, 48, "FINISHED"),
    ]


@BOTH
def test_early_restart(policy: str) -> None:
    """Looked at from second 1 to 6 it has 1.5 to 4 GB: a line to 11 GB at the end, which needs a half."""
    done = run(policy, free(growing("a", 1.0, 10.5)))
    assert rows(done.log) == [("a", 0, "1g.5gb@6", 0, 6, "STOPPED"), ("a", 0, "3g.20gb@0", 6, 26, "FINISHED")]
    seldom = run(policy, free(growing("a", 1.0, 10.5)), sample_s=4.0)
    # Looks are at 4 and 8; at 9 it fails. On 2g they are at 12, 16, 20 and 24, four are too few; at 28 it fails again.
    assert [row[3:] for row in rows(seldom.log)] == [
        (0, 9, "OUT_OF_MEMORY"),
        (9, 28, "OUT_OF_MEMORY"),
        (28, 48, "FINISHED"),
    ]


@BOTH
def test_a_job_that_will_fit_is_left_alone(policy: str) -> None:
    done = run(policy, free(growing("a", 1.0, 4.0)))
    assert rows(done.log) == [("a", 0, "1g.5gb@6", 0, 20, "FINISHED")]


@pytest.mark.deep
@BOTH
@pytest.mark.parametrize(
    ("arrival", "seconds", "sample_s"), [(0.0, 1e12, 1.0), (1e17, 1600.0, 1.0), (0.0, 1.0, 1e-300), (1e9, 1.0, 1e-12)]
)
def test_looks_come_to_an_end(policy: str, arrival: float, seconds: float, sample_s: float) -> None:
    """1e12 s are not looked at every second, and 1e17 s and one more are 1e17 s.

    After a thousandth of what is left each time, a second is left of 1e12 s after a thousand times ln(1e12), so fewer
    than 28,000 looks, and of the last thousand seconds each: 1000.
    """
    grows = Job("a", arrival, {1: seconds}, memory_growth=((0.0, 1.0), (0.5, 2.0)))
    done = run(policy, free(grows), sample_s=sample_s)
    assert not done.unfinished
    assert done.events < 150_000


@BOTH
def test_the_start_can_be_larger(policy: str) -> None:
    wanted = free(growing("a", 1.0, 10.5), Job("b", 0.0, {1: 3.0}, "1g.5gb", memory_growth=((0.0, 2.0),)))
    done = run(policy, wanted, prediction=False, start_gb=10.0)
    found = [row for row in rows(done.log) if row[0] == "a"]
    assert found[0][2] == ("2g.10gb@4" if policy.endswith("a") else "2g.10gb@0")
    assert [row[4] for row in found] == [found[0][3] + 19, found[0][3] + 39]
    assert places(done)["b"].startswith("0:1g.5gb"), "it cannot have more"


@BOTH
def test_a_forecast_beyond_the_largest_instance(policy: str) -> None:
    """3 GB more each second: 61 GB at the end are predicted, but it levels off at 30. It gets the whole GPU."""
    growth = tuple((step / STEPS, min(1.0 + 3.0 * step, 30.0)) for step in range(STEPS))
    wanted = free(Job("a", 0.0, dict.fromkeys(A100.sizes, 20.0), memory_growth=growth))
    done = run(policy, wanted, start_gb=20.0)
    assert [row[2] for row in rows(done.log)] == ["3g.20gb@4", "7g.40gb@0"]
    assert rows(done.log)[-1][3:] == (6, 26, "FINISHED")


@BOTH
def test_nothing_larger_is_waited_for_in_vain(policy: str) -> None:
    """a asks for 1g.5gb and outgrows it: nobody can help. b goes on."""
    stuck = Job("a", 0.0, {1: 20.0}, "1g.5gb", memory_growth=growing("x", 1.0, 10.5).memory_growth)
    done = run(policy, free(stuck, small("b", 3, 30.0)))
    assert done.unfinished == ("a",)
    assert rows(done.log) == [("a", 0, "1g.5gb@6", 0, 9, "OUT_OF_MEMORY"), ("b", 0, "1g.5gb@6", 30, 33, "FINISHED")]
    known = run(policy, free(sized("a", 50.0, {7: 3.0}), small("b", 3)))
    assert (known.unfinished, len(rows(known.log))) == (("a",), 1), "it never begins"


def test_a_restarted_job_is_last() -> None:
    """a fails at 9 and waits for a half behind b, which needs the whole GPU, and c."""
    wanted = free(growing("a", 1.0, 10.5), full("b", 5), small("c", 3))
    done = run("memory-aware-b", wanted, prediction=False)
    assert [(row[0], *row[3:5]) for row in rows(done.log)][:3] == [("a", 0, 9), ("b", 9, 14), ("c", 14, 17)]
    by_size = run("memory-aware-a", wanted, prediction=False)
    # Small ones first, a among them; what a needs now, 5.5 GB, is less than what b needs.
    assert [(row[0], *row[3:5]) for row in rows(by_size.log)] == [
        ("c", 0, 3), ("a", 0, 9), ("a", 9, 28), ("a", 28, 48), ("b", 48, 53),
    ]  # fmt: skip


@pytest.mark.deep
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.floats(0.5, 39), st.floats(0.5, 39)), min_size=1, max_size=10),
    st.integers(1, 3),
    st.booleans(),
)
@BOTH
def test_all_that_can_be_done_is_done(
    policy: str, wanted: list[tuple[int, float, float]], gpus: int, prediction: bool
) -> None:
    jobs = [
        growing(f"j{number}", first, last, arrival=float(arrival))
        for number, (arrival, first, last) in enumerate(wanted)
    ]
    done = run(policy, free(*jobs, gpus=gpus), prediction=prediction, sample_s=0.7)
    assert done.unfinished == ()
    assert prediction or not done.metrics.stops
