"""The contract of a run, the same for every entry point: options, callbacks, limits, Ctrl-C, validation and result."""

import itertools
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from documents import refused
from listening import Recorder
from method_suite import FITS, NAMES, options_of

from mig_opt import Callbacks, Job, Trace, defragment, deploy, generate_batch, get_gpu, methods, plan_change, solve
from mig_opt.errors import SolverError
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.instances.bundled import load
from mig_opt.method.result import Result, Status, TrajectoryPoint
from mig_opt.models.fleet.admission import admission_optimum
from mig_opt.models.fleet.optimum import trace_optimum
from mig_opt.serving.deployment import Deployment, Segment

A30, A100 = get_gpu("A30"), get_gpu("A100")

BATCH = generate_batch(7, gpu="A30", seed=2)
DEMAND = load("parvagpu-s2")
STATE = FleetState(A100, 3, tuple(HeldInstance(gpu, "1g.5gb", start) for gpu in range(3) for start in (1, 4)))
TRACE = Trace(tuple(Job(str(at), at, {1: 9.0 + at, 2: 5.0, 4: 3.0 + at / 2}) for at in range(4)), A30)


def segments(profile: str, starts: tuple[int, ...], throughput: float) -> tuple[Segment, ...]:
    return tuple(
        Segment(service, gpu, profile, start, 1, 1, throughput, 0.1)
        for gpu in range(2)
        for start, service in zip(starts, "abcd", strict=False)
    )


BEFORE = Deployment(("A30-24GB",) * 2, segments("1g.6gb", (0, 1, 2, 3), 10.0))
AFTER = Deployment(("A30-24GB",) * 2, segments("2g.12gb", (2, 0), 20.0))

RUNS: dict[str, Callable[..., Result[Any]]] = {
    **{f"solve {name}": partial(solve, FITS, name, **options_of(name, FITS)) for name in NAMES},
    "solve cp longer": partial(solve, BATCH, "cp"),
    **{f"deploy {method.name}": partial(deploy, DEMAND, method.name) for method in methods("deploy")},
    "room": partial(defragment, STATE, ["4g.20gb", "4g.20gb", "4g.20gb"]),
    "least": partial(defragment, STATE),
    "makespan": partial(trace_optimum, TRACE),
    "completion": partial(trace_optimum, TRACE, "completion"),
    "admission": partial(admission_optimum, TRACE, "slices"),
    "change": partial(plan_change, BEFORE, AFTER),
}
EXACT = {"cp", "exact", "brute-force", "milp", "milp-highs", "milp-cbc"}
"""Methods that prove what they find; the others may only by a bound."""
VALIDATORS = {
    "solve cp": "mig_opt.validation.batch.schedules.validate",
    "deploy exact": "mig_opt.api.deploy.deployment.validate_deployment",
    "room": "mig_opt.api.defragment.defragmentation.validate_migrations",
    "makespan": "mig_opt.validation.batch.schedules.validate",
    "change": "mig_opt.api.change.plans.validate_change",
}


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Callable[..., Result[Any]]:
    return RUNS[request.param]


def test_callbacks_hear_of_everything_in_order(run: Callable[..., Result[Any]]) -> None:
    recorder = Recorder()
    result = run(callbacks=recorder)
    assert result.status is Status.OPTIMAL or result.method not in EXACT
    kinds = [kind for kind, _ in recorder.calls]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert set(kinds[1:-1]) <= {"incumbent", "bound"}
    assert recorder.calls[-1][1] == (result,)
    reports = [call for kind, call in recorder.calls if kind in ("incumbent", "bound")]
    assert [report[2] for report in reports] == [point.lower_bound for point in result.trajectory]
    assert "incumbent" in kinds


def test_the_trajectory_only_improves(run: Callable[..., Result[Any]]) -> None:
    result = run(seed=3)
    assert result.seed == 3
    assert result.trajectory
    for before, after in itertools.pairwise(result.trajectory):
        assert before.seconds <= after.seconds
        assert before.lower_bound <= after.lower_bound
        assert before.objective is None or (after.objective is not None and after.objective <= before.objective)
    last = result.trajectory[-1]
    assert last.lower_bound <= last.objective * (1 + 1e-6)
    assert last.makespan == last.objective


def test_a_wide_gap_ends_the_run_at_the_first_plan(run: Callable[..., Result[Any]]) -> None:
    result = run(gap=1.0)
    assert result.plan is not None
    assert [point.objective is None for point in result.trajectory[:-1]] == [True] * (len(result.trajectory) - 1)


def test_stop_ends_the_run(run: Callable[..., Result[Any]]) -> None:
    asked: list[TrajectoryPoint] = []

    def stop(point: TrajectoryPoint) -> bool:
        asked.append(point)
        return point.objective is not None

    result = run(stop=stop)
    assert tuple(asked) == result.trajectory
    assert [point.objective is None for point in asked[:-1]] == [True] * (len(asked) - 1)
    assert result.plan is not None


@pytest.mark.deep
def test_deterministic_runs_are_the_same(run: Callable[..., Result[Any]]) -> None:
    one, two = (run(deterministic=True, time_limit=limit, workers=workers) for limit, workers in ((30, 1), (30, 2)))
    assert (one.plan, one.status, one.lower_bound, one.proven) == (two.plan, two.status, two.lower_bound, two.proven)
    known = [[(point.objective, point.lower_bound) for point in result.trajectory] for result in (one, two)]
    assert known[0] == known[1]


def test_ctrl_c_keeps_the_incumbent(run: Callable[..., Result[Any]]) -> None:
    class Interrupting(Callbacks):
        def on_incumbent(self, seconds: float, plan: Any, lower_bound: float) -> None:
            raise KeyboardInterrupt

    recorder = Recorder()
    result = run(callbacks=[recorder, Interrupting()])
    (kept,) = [call[1] for kind, call in recorder.calls if kind == "incumbent"]
    assert result.plan == kept
    assert result.status in (Status.INTERRUPTED, Status.OPTIMAL)
    assert recorder.calls[-1] == ("end", (result,))


class MineError(Exception):
    """Not an exception of anybody else."""


@pytest.mark.parametrize("kind", ["stop", "on_incumbent", "on_bound"])
def test_what_the_caller_raises_ends_the_run_and_arrives(run: Callable[..., Result[Any]], kind: str) -> None:
    error = MineError()

    def fail(*arguments: object) -> bool:
        raise error

    recorder = Recorder()
    if kind == "on_bound":
        run(callbacks=recorder)
        if "bound" not in dict(recorder.calls):
            return  # the bound is known before the run
    setattr(recorder, kind, fail)
    with pytest.raises(MineError) as caught:
        run(callbacks=recorder, stop=fail if kind == "stop" else None)
    assert caught.value is error


def test_the_same_seed_gives_the_same_plan(run: Callable[..., Result[Any]]) -> None:
    one, two = (run(seed=3, workers=1) for _ in range(2))
    assert one.plan == two.plan
    assert one.plan is not None


@pytest.mark.parametrize("name", VALIDATORS)
def test_a_plan_that_breaks_a_rule_does_not_leave(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(str):
        code = "broken"

    found = SimpleNamespace(valid=False, violations=(Broken("broken rule"),), fragmentation=0.0)
    monkeypatch.setattr(VALIDATORS[name], lambda *_, **__: found)
    with pytest.raises(SolverError, match=r"invalid .*: broken rule"):
        RUNS[name]()


def test_wrong_options_are_named_all_at_once(run: Callable[..., Result[Any]]) -> None:
    wrong: dict[str, Any] = {"time_limit": 0, "seed": -1, "workers": 0, "callbacks": [Callbacks], "gap": 2}
    wrong |= {"stop": 3, "deterministic": "yes"}
    assert sorted(path.partition("[")[0] for path in refused(run, **wrong)) == sorted(wrong)


def test_an_option_by_a_wrong_name_is_refused(run: Callable[..., Result[Any]]) -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'seeed'.*seed"):
        run(seeed=1)


@pytest.mark.deep
def test_every_result_has_a_card(run: Callable[..., Result[Any]]) -> None:
    result = run()
    lines = str(result).splitlines()
    assert lines[0].split(maxsplit=1) == ["status", result.status.value.replace("_", " ")]
    told = [label for label, text in result.figures() if text is not None]
    assert [line.partition("  ")[0] for line in lines[1:-1]] == told
    assert lines[-1].startswith("runtime ")
    assert result.gap >= 0.0
    assert result.versions["mig-opt"]
