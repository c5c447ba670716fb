"""When a run of any method ends: at a wanted gap, when ``stop`` says so, or when the caller raises."""

from __future__ import annotations

import pytest
from method_suite import HARD, NAMES, Diary, options_of

from mig_opt import Batch, Callbacks, Status, Task, get_gpu, solve
from mig_opt.instances.bundled import load_instance
from mig_opt.method.result import TrajectoryPoint, relative_gap


@pytest.mark.parametrize("method", NAMES)
def test_a_gap_of_everything_is_closed_by_the_first_schedule(method: str) -> None:
    result = solve(HARD, method, gap=1.0, **options_of(method, HARD))
    assert result.status is Status.FEASIBLE
    assert [point.makespan for point in result.trajectory if point.makespan is not None] == [result.makespan]


@pytest.mark.deep
@pytest.mark.parametrize("method", NAMES)
def test_the_run_ends_with_the_improvement_that_closes_the_gap(method: str) -> None:
    every = solve(HARD, method, gap=0.05, deterministic=True, time_limit=1.0, **options_of(method, HARD))
    gaps = [relative_gap(point.makespan, point.lower_bound) for point in every.trajectory if point.makespan]
    assert all(gap > 0.05 for gap in gaps[:-1])
    assert gaps[-1] == every.gap
    assert every.gap is not None
    assert every.gap <= 0.05 or method != "cp"  # not everyone gets there


@pytest.mark.parametrize("method", NAMES)
def test_a_wanted_gap_does_not_hide_a_proof(method: str) -> None:
    batch = Batch((Task("a", {4: 3.0}),), get_gpu("A30"))
    assert solve(batch, method, gap=0.5, **options_of(method, batch)).status is Status.OPTIMAL


@pytest.mark.parametrize("method", NAMES)
def test_stop_is_asked_after_each_improvement_and_ends_the_run(method: str) -> None:
    asked: list[TrajectoryPoint] = []

    def stop(point: TrajectoryPoint) -> bool:
        asked.append(point)
        return point.makespan is not None

    diary = Diary()
    result = solve(HARD, method, stop=stop, callbacks=diary, **options_of(method, HARD))
    assert result.status is Status.FEASIBLE
    assert tuple(asked) == result.trajectory
    assert diary.makespans == [result.makespan]
    assert diary.events[-2:] == ["incumbent", "end feasible"]


@pytest.mark.parametrize("method", NAMES)
def test_stop_may_say_so_before_there_is_a_schedule(method: str) -> None:
    result = solve(HARD, method, stop=lambda point: point.lower_bound > 0, **options_of(method, HARD))
    assert result.status is Status.NO_SOLUTION
    assert [point.makespan for point in result.trajectory] == [None]


@pytest.mark.deep
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("which", ["schedule", "bound"])
def test_stop_reaches_the_solver(which: str, workers: int) -> None:
    batch = load_instance("miso-a100-32")  # its bound rises within a tenth of a second
    first = solve(batch, "far").trajectory[-1]
    assert first.makespan is not None

    def stop(point: TrajectoryPoint) -> bool:
        if which == "bound":
            return point.lower_bound > first.lower_bound
        return point.makespan is not None and point.makespan < first.makespan

    result = solve(batch, "cp", stop=stop, workers=workers)
    assert result.status is Status.FEASIBLE
    assert [stop(point) for point in result.trajectory].index(True) == len(result.trajectory) - 1


class MineError(Exception):
    """Not an exception of anybody else."""


@pytest.mark.parametrize("kind", ["stop", "on_incumbent", "on_bound"])
@pytest.mark.parametrize("method", NAMES)
def test_what_the_caller_raises_ends_the_run_and_arrives(method: str, kind: str) -> None:
    error = MineError()

    def fail(*arguments: object) -> bool:
        raise error

    listener = Callbacks()
    setattr(listener, kind, fail)
    with pytest.raises(MineError) as caught:
        solve(HARD, method, callbacks=listener, stop=fail if kind == "stop" else None, **options_of(method, HARD))
    assert caught.value is error
